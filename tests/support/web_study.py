"""Studies for tests: people, items of each form, and complete readings of them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, select

from proctor.runs import open_engine
from proctor_web import schema, site_tables
from proctor_web.settings import StudyPlan, StudySettings
from proctor_web.sources import NewItem
from proctor_web.studies import add_study, deal_study, import_items
from tests.support.web_rows import people

NOW = datetime(2026, 11, 23, 8, tzinfo=UTC)

QUESTION: dict[str, Any] = {
    "stem": "What does the operator do next?",
    "options": ["Slides to the liver edge", "Rotates the probe", "Freezes the picture"],
    "key": 0,
    "explanation": "The probe slides to the edge.",
}
ALL_CHECKS = {"pictures": True, "one_right": True, "distractors": True, "clinical": True}
ACCEPT: dict[str, Any] = {"decision": "accept", "checks": ALL_CHECKS}
REJECT: dict[str, Any] = {
    "decision": "reject",
    "checks": ALL_CHECKS | {"one_right": False},
    "reason": "two options are right",
}

BODIES: dict[str, dict[str, Any]] = {
    "question": QUESTION,
    "order": {"frames": [{"id": name, "time": number} for number, name in enumerate("abc")]},
    "rationale": {
        "frames": [{"id": name, "time": number} for name, number in zip("ABC", (1.2, 0.4, 0.8), strict=True)],
        "recorded": ["B", "C", "A"],
        "sentences": [
            {"id": "s1", "text": "In B the hand is free.", "frames": ["B"]},
            {
                "id": "s2",
                "text": "Pads lie in C, then A.",
                "frames": ["C", "A"],
                "flags": ["not visible"],
                "why": "Dark.",
            },
        ],
        "origin": "1",
    },
    "presence": {"classes": ["clip", "stapler"]},
    "boxes": {"classes": ["clip", "stapler"], "times": [1.0, 2.0]},
    "choice": {
        "question": "Is it a clip?",
        "options": ["accept", "reject"],
        "boxes": [{"time": 1.0, "label": "proposed: clip", "x": 0.1, "y": 0.1, "width": 0.2, "height": 0.2}],
    },
    "moments": {"kinds": ["insertion", "retrieval"], "tolerance": 1.0},
    "rating": {
        "question": "What is it?",
        "answer": "Eczema.",
        "dimensions": [{"name": "correct", "levels": [0, 1, 2]}, {"name": "tone", "levels": [0, 0.5, 1]}],
    },
    "pairwise": {"question": "What is it?", "answers": ["Eczema.", "Psoriasis."]},
}
"""A body of each form."""

_BOX = {"time": 1.0, "label": "clip", "x": 0.1, "y": 0.1, "width": 0.2, "height": 0.2}
READINGS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "question": (ACCEPT, REJECT),
    "order": (
        {"order": ["b", "a", "c"], "rationale": [{"text": "b shows the start.", "frames": ["b"]}]},
        {"order": ["a", "b", "c"], "rationale": [{"text": "a shows the start.", "frames": ["a"]}]},
    ),
    "rationale": (
        {
            "order": ["B", "C", "A"],
            "ordered": True,
            "sentences": {
                "s1": {"verdict": "keep"},
                "s2": {"verdict": "correct", "text": "C is dark.", "frames": ["C"]},
            },
        },
        {"order": ["B", "C", "A"], "ordered": True, "sentences": {n: {"verdict": "keep"} for n in ("s1", "s2")}},
    ),
    "presence": ({"present": ["clip"]}, {"nothing": True}),
    "boxes": ({"boxes": [_BOX]}, {"boxes": [_BOX | {"x": 0.5}]}),
    "choice": ({"choice": "accept"}, {"choice": "reject"}),
    "moments": ({"moments": [{"time": 3.0, "kind": "insertion"}]}, {"moments": [{"time": 5.0, "kind": "insertion"}]}),
    "rating": ({"scores": {"correct": 2, "tone": 0.5}}, {"scores": {"correct": 1, "tone": 0.5}}),
    "pairwise": ({"choice": "first"}, {"choice": "tie"}),
}
"""Two complete readings of each form that differ."""


def review(url: str | Path) -> Engine:
    """A database with the tables of a review and with people."""
    engine = open_engine(str(url), create=True)
    site_tables.prepare(engine)
    with engine.begin() as connection:
        people(connection)
    return engine


def accounts_of(connection: Connection) -> dict[str, int]:
    rows = connection.execute(select(schema.accounts.c.name, schema.accounts.c.id))
    return {row.name: row.id for row in rows}


def new_items(count: int, form: str = "question", gold: int = 0) -> list[NewItem]:
    """Items of a form, two to a group; the last ones are gold."""
    return [
        NewItem(
            f"q{number:03d}",
            f"video {number // 2}",
            (),
            dict(BODIES[form]),
            READINGS[form][0] if number >= count else None,
        )
        for number in range(count + gold)
    ]


def study_of(engine: Engine, items: list[NewItem], form: str = "question", **plan: Any) -> dict[str, int]:
    """A study `s` that Anna and Ben read and Cleo adjudicates; the ids of its items by key."""
    people_of = {"readers": ("anna", "ben"), "adjudicators": ("cleo",)}
    settings = StudySettings(name="s", form=form, items="items.jsonl", plan=StudyPlan(**(people_of | plan)))
    with engine.begin() as connection:
        study = add_study(connection, settings, NOW)
        import_items(connection, study, items, NOW)
        deal_study(connection, study, settings.plan, NOW)
        rows = connection.execute(select(schema.study_items.c.key, schema.study_items.c.id))
        return {row.key: row.id for row in rows}
