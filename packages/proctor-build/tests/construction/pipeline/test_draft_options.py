"""Projects take wrong options from the same engine as `proctor build repair`: candidates for a model, and blocks."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import yaml

from proctor.audits.items import audit_items
from proctor.audits.splits import split_items
from proctor.core import OPTION_POOL, generator
from proctor_build.distractors import alike
from proctor_build.pipeline import DraftQuestion, Project, as_item, run_stages
from proctor_build.pipeline.draft_options import candidates, in_blocks, too_like
from tests.support.faulty_server import FaultyServer

VERBS = ("Rotate", "Slide", "Tilt", "Sweep", "Press", "Centre", "Freeze", "Measure")
THINGS = [
    "probe",
    "beam",
    "border",
    "lobe",
    "duct",
    "wall",
    "window",
    "shadow",
    "focus",
    "margin",
    "texture",
    "echo",
    "flow",
    "valve",
    "apex",
    "septum",
    "cortex",
    "fossa",
    "ridge",
    "vessel",
    "tendon",
    "muscle",
    "fascia",
    "needle",
    "marker",
    "chamber",
    "plane",
    "axis",
    "gain",
    "depth",
]


def drafts(count: int = 48) -> list[DraftQuestion]:
    """Choices of two types on twelve sources, the right option always first and by far the longest."""
    rng = generator(0, "drafts")
    found = []
    for number in range(count):
        said = [
            " ".join([str(rng.choice(VERBS)), *map(str, rng.choice(THINGS, size=size, replace=False))])
            for size in (int(rng.integers(6, 9)), 3, 3, 3)
        ]
        found.append(
            DraftQuestion(
                id=f"q{number:02d}",
                source=f"s{number % 12:02d}",
                start=20.0 * (number // 12),
                end=20.0 * (number // 12) + 8,
                type=f"Type{number % 2}",
                kind="mcq",
                text=f"What is done in step {number} of the clip, and why?",
                options=tuple(said),
                key=0,
                groundtruth=f"It is done as told in the log, entry {number}.",
            )
        )
    return found


def changed(some: list[DraftQuestion], seed: int = 0) -> list[DraftQuestion]:
    fields, _ = in_blocks(some, seed, rounds=20)
    return [draft.model_copy(update=fields.get(draft.id, {})) for draft in some]


def test_blocks_remove_the_longest_option_from_a_project() -> None:
    before = drafts()
    after = changed(before)
    texts = {draft.id: draft.options[draft.key or 0] for draft in before}
    rules = []
    for some in (before, after):
        found = audit_items([as_item(draft) for draft in some], draws=100, facets=()).format("choice")
        assert found is not None
        rules.append({one.name: one.accuracy.value or 0.0 for one in found.baselines})
    assert rules[0]["longest-option"] == rules[0]["always-A"] == 1.0
    assert rules[1]["longest-option"] <= 0.3
    assert rules[1]["always-A"] <= 0.3
    right = {text: name for name, text in texts.items()}
    for draft in after:
        assert draft.options[draft.key or 0] == texts[draft.id]
        assert draft.pool
        for text in draft.options:  # each is right in a question of the same type and pool
            other = next(one for one in after if one.id == right[text])
            assert (other.type, other.pool) == (draft.type, draft.pool)
    assert max(Counter(text for draft in after for text in draft.options).values()) <= 7


def test_the_same_seed_gives_the_same_blocks_and_another_one_others() -> None:
    some = drafts()
    assert changed(some) == changed(some[::-1])[::-1]
    assert changed(some) != changed(some, seed=1)


def test_pools_stay_in_one_part() -> None:
    items = [as_item(draft) for draft in changed(drafts(96))]
    pools = {str(item.tags[OPTION_POOL]) for item in items}
    assert len(pools) >= 2
    part = split_items(items, {"train": 0.5, "test": 0.5})
    assert all(len({part[item.id] for item in items if item.tags[OPTION_POOL] == pool}) == 1 for pool in pools)


def test_too_few_choices_are_left_as_they_are_and_it_is_said() -> None:
    some = drafts(4)
    fields, note = in_blocks(some, 0)
    assert fields == {}
    assert note.startswith("no options exchanged in blocks: ")
    assert "too few questions of its kind" in note


def test_a_candidate_is_neither_like_the_right_option_nor_supported_by_its_stretch() -> None:
    one, like, told, plain = (
        draft.model_copy(update={"type": "T", "id": f"d{number}"}) for number, draft in enumerate(drafts(4))
    )
    wrong = one.options[1:]
    one = one.model_copy(
        update={"options": ("Rotate probe to the duct", *wrong), "groundtruth": "Then press the septum."}
    )
    like = like.model_copy(update={"options": ("Rotating the probe to the duct", *wrong)})
    told = told.model_copy(update={"options": ("Press septum", *wrong)})
    plain = plain.model_copy(update={"options": ("Slide along the valve", *wrong)})
    assert candidates(one, [one, like, told, plain], 5) == ["Slide along the valve"]
    every = candidates(one, [one, like, plain], 5, similar=1.0)
    assert sorted(every) == ["Rotating the probe to the duct", "Slide along the valve"]


def test_options_are_compared_with_the_right_one_and_each_other() -> None:
    assert too_like("Rotate", ["Slide to the liver edge", "Slide to the edge of the liver"], 0.8)
    assert not too_like("Rotate", ["Slide to the liver edge", "Slide to the edge of the liver"], 1.0)
    assert alike("Slide to the liver edge", "Slide to the edge of the liver") == pytest.approx(1.0)


def test_a_project_exchanges_in_blocks_before_a_model_is_asked(
    tmp_path: Path, film: Path, server: FaultyServer
) -> None:
    """The writer's right options are the longest; the blind model takes the longest one."""
    root = tmp_path / "p"
    (root / "sources").mkdir(parents=True)
    sources = []
    for name in "abcdefgh":
        (root / "sources" / f"{name}.mp4").symlink_to(film / "videos" / "sim-000.mp4")
        (root / "sources" / f"{name}.vtt").write_text("WEBVTT\n\n00:00.000 --> 00:03.000\nWe begin.\n")
        rows = []
        for n in range(6):
            verb, goal = ("bring", "move", "slide", "take", "hold", "turn")[n], ("open", "clear", "free")[n % 3]
            things = [str(one) for one in generator(0, "events", name, str(n)).choice(THINGS, size=5, replace=False)]
            rows.append(f"{n * 4}.0,{n * 4 + 3}.5,we {verb} {' '.join(things[:4])},to {goal} {things[4]}")
        (root / "sources" / f"{name}.csv").write_text("\n".join(["start,end,action,intent", *rows]) + "\n")
        paths = {"video": f"sources/{name}.mp4", "transcript": f"sources/{name}.vtt", "events": f"sources/{name}.csv"}
        sources.append({"id": name, **paths})
    model = {"name": "openai:m", "base_url": server.url, "retries": 0, "structured": "prompted"}
    settings = {
        "kind": "rexsonovqa",
        "models": {"writer": model, "screen": [{**model, "name": f"openai:m{n}"} for n in (1, 2, 3)]},
        "sources": sources,
        "stages": {"questions": {"free_share": 0.0, "per_event": 1.0}, "repair": {"blocks": True}},
    }
    (root / "project.yaml").write_text(yaml.safe_dump(settings))
    assert {one.state for one in asyncio.run(run_stages(Project(root), until="export"))} <= {"made", "kept"}
    found = json.loads((root / "work" / "repair" / "all.json").read_text())
    assert any(note.startswith("options exchanged in blocks: ") for note in found["notes"])
    exchanged = [one for one in found["records"] if one["pool"]]
    assert exchanged
    for one in exchanged:
        first = one["former"][0]
        assert one["options"][one["key"]] == first["options"][first["key"]]
        assert "new options: to be confirmed by a clinician" in one["flags"]
    assert np.mean([one["screening"]["solved"] > 0 for one in exchanged]) < 0.5
    written = [
        one
        for file in sorted((root / "items").glob("benchmark_questions/mcq/*.json"))
        for one in json.loads(file.read_text())
    ]
    assert {one["option_pool"] for one in written if "option_pool" in one} == {one["pool"] for one in exchanged}
