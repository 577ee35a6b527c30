"""What a blind answer flags, when a rule flags, and that nothing is removed before it was changed."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from proctor.audits.items import audit_items
from proctor_build.pipeline import DraftQuestion, Project, RepairStage, ScreenSettings, Work, as_item, rework, screening
from proctor_build.pipeline.records import Refused
from proctor_build.pipeline.rework import LATE
from proctor_build.pipeline.screening import GUESSED, ONCE, SOLVED_BLIND, BlindAnswer, Screening, guessable
from tests.construction.pipeline.test_questions import EVENT, choice

ALL = "answered without the video each time, by too few models to exclude chance"


def judgements(*rights: tuple[str, bool | None]) -> list[Any]:
    return [(BlindAnswer(model=model, seed=n, said="A", right=right), ()) for n, (model, right) in enumerate(rights)]


@pytest.mark.parametrize(
    ("given", "flags"),
    [
        ([("a", True), ("a", False), ("a", False)], (ONCE,)),
        ([("a", False), ("b", False), ("c", True)], (ONCE,)),
        ([("a", True), ("a", True), ("a", True)], (ALL,)),  # one model is one witness, however often it is asked
        ([("a", True), ("b", True), ("c", True)], (SOLVED_BLIND,)),
        ([("a", False), ("a", None), ("a", False)], ()),
    ],
)
def test_one_right_answer_asks_for_a_look(given: list[tuple[str, bool | None]], flags: tuple[str, ...]) -> None:
    found = screening._screening(choice(), judgements(*given), 0, None, ScreenSettings())
    assert found.flags == flags


def test_three_answers_are_the_default_and_in_the_template() -> None:
    from proctor_build.pipeline import PROJECT_KINDS

    assert ScreenSettings().seeds == 3
    assert "screen: {seeds: 3}" in PROJECT_KINDS.get("rexsonovqa").example.read_text()


def drafts(longest: bool) -> list[DraftQuestion]:
    """Sixty choices in twelve sources, with even letters; the right option is the longest one, or like the others."""
    made = []
    for number in range(60):
        key = number % 4
        options = [f"We move the {side} part {number % 7}" for side in ("left", "right", "upper", "lower")]
        options[key] += " to see the duct better" if longest else ""
        one = choice(key=key, options=tuple(options))
        made.append(one.model_copy(update={"id": f"q{number:02d}", "source": f"s{number % 12}"}))
    return made


@pytest.mark.parametrize("longest", [True, False])
def test_a_rule_flags_only_if_it_beats_chance_elsewhere(longest: bool) -> None:
    settings = SimpleNamespace(groups={f"s{n}": f"s{n}" for n in range(12)}, seed=0)
    found = guessable(drafts(longest), SimpleNamespace(project=SimpleNamespace(settings=settings)))  # type: ignore[arg-type]
    assert len(found) == 60
    assert sum(found.values()) == (60 if longest else 0)


def test_a_rule_that_luck_explains_flags_nothing() -> None:
    """In three of ten questions the right option has a word more: one fold chooses a rule, whose interval covers chance."""
    rng, made = random.Random(1), []
    for number in range(60):
        key = number % 4
        options = [f"We move {rng.choice('abcdefgh')}{rng.randrange(99)} the part" for _ in range(4)]
        options[key if rng.random() < 0.3 else rng.randrange(4)] += " now"
        one = choice(key=key, options=tuple(options))
        made.append(one.model_copy(update={"id": f"q{number:02d}", "source": f"s{number % 10}"}))
    audit = audit_items([as_item(one) for one in made], seed=0)
    found = audit.format("choice")
    assert found is not None
    assert found.selected is not None
    assert found.selected.covers_chance
    assert any(audit.guessable.values())
    settings = SimpleNamespace(groups={f"s{n}": f"s{n}" for n in range(10)}, seed=0)
    assert not any(guessable(made, SimpleNamespace(project=SimpleNamespace(settings=settings))).values())  # type: ignore[arg-type]


def repaired(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, rounds: list[set[str]], *, broken: str = "", **settings: Any
) -> tuple[dict[str, tuple[int, tuple[str, ...]]], list[Refused]]:
    """What the stage makes of q0 to q3 if screening flags the drafts of each round; changes of `broken` break a rule."""
    (tmp_path / "project.yaml").write_text(
        f"kind: rexsonovqa\nstages: {{repair: {settings or {}}}}\n".replace("'", '"').replace("True", "true")
    )
    first = [choice().model_copy(update={"id": f"q{number}", "made_from": (EVENT.id,)}) for number in range(4)]
    turns = iter([*rounds[1:], *[rounds[-1]] * 20])

    def screened(some: list[DraftQuestion], flagged: set[str]) -> list[Screening]:
        return [
            Screening(
                id=f"{one.id}-screen", question=one.id, asked=3, solved=0, flags=(GUESSED,) if one.id in flagged else ()
            )
            for one in some
        ]

    async def screen(_: Work, some: list[DraftQuestion], how: ScreenSettings) -> tuple[list[Screening], list[Refused]]:
        del how
        return screened(some, next(turns)), []

    async def changed(self: RepairStage, work: Work, one: DraftQuestion, *more: Any, again: bool) -> Any:
        del self, work, more, again
        if one.id == broken:
            return Refused(id=one.id, kind="options", reason="options: 2 instead of 4")
        return one.model_copy(update={"version": one.version + 1})

    monkeypatch.setattr(rework, "screen", screen)
    monkeypatch.setattr(RepairStage, "_changed", changed)
    before: dict[str, Any] = {"events": [EVENT], "questions": first, "screen": screened(first, rounds[0])}
    project = Project(tmp_path)
    made = asyncio.run(RepairStage([], Path("unused")).make(Work(project, "repair", "all", (), before)))
    return {one.id: (len(one.former), one.flags) for one in made.records}, [*made.refused]


def test_what_is_flagged_late_is_changed_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """q1 is flagged for the first time after the first change of q0, q2 after the last round of the settings."""
    stays, refused = repaired(monkeypatch, tmp_path, [{"q0"}, {"q1"}, {"q2"}, set()])
    assert {name: changes for name, (changes, _) in stays.items()} == {"q0": 1, "q1": 1, "q2": 1, "q3": 0}
    assert not refused


def test_nothing_is_removed_before_it_was_changed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rounds = [{"q0"}, {"q0"}, {"q1"}, {"q1"}, {"q2", "q3"}]
    stays, refused = repaired(monkeypatch, tmp_path, rounds)
    assert stays.keys() == {"q0", "q1", "q2", "q3"}
    assert {name for name, (_, flags) in stays.items() if LATE in flags} == {"q2", "q3"}
    assert not refused


def test_what_is_flagged_after_its_changes_is_removed_and_says_how_many(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stays, refused = repaired(monkeypatch, tmp_path, [{"q0", "q1"}], broken="q1")
    assert stays.keys() == {"q2", "q3"}
    reasons = {one.id: one.reason for one in refused if one.kind == "removed"}
    assert reasons == {
        "q0": "still guessed by a rule of the item audit after 2 changes",
        "q1": "still guessed by a rule of the item audit and every change of it broke a rule",
    }
    kept, _ = repaired(monkeypatch, tmp_path, [{"q0"}], keep=True)
    assert kept.keys() == {"q0", "q1", "q2", "q3"}
