"""The parity gate: which differences between paths are faults, by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from proctor.core import InputError, Usage
from proctor.models import FixedForm
from proctor.models.reply import Reply, Token
from proctor_train.parity import (
    ParityItem,
    ParityPath,
    PathScores,
    compare_paths,
    form_chances,
    read_items,
    write_items,
)
from tests.support.ordinal_task import FORM, parity_items, rated_prompts


def path(name: ParityPath, *values: float, flip: bool = False, **more: str | dict[str, str]) -> PathScores:
    scores = {f"e{k}": {"overall": value} for k, value in enumerate(values)}
    levels = {item: {"overall": 1.0 if flip else 0.5} for item in scores}
    return PathScores.model_validate({"path": name, "scores": scores, "levels": levels, **more})


BASE = path("base", 0.5, 0.5, 0.5)
MEMORY = path("memory", 0.2, 0.8, 0.5, template="t" * 64, tokenizer="k" * 64, precision="float32")


def test_paths_that_agree_pass() -> None:
    report = compare_paths(BASE, MEMORY, [path("merged", 0.2, 0.791, 0.5, flip=True), path("served", 0.2, 0.8, 0.51)])
    assert report.faults == ()
    report.check()
    memory, merged, served = report.rows
    assert [memory.worst, memory.from_base, merged.worst] == pytest.approx([0.0, 0.3, 0.009])
    assert [memory.flips, merged.flips, merged.items] == [0, 3, 3]
    assert served.worst == pytest.approx(0.01)
    assert report.table().texts[1] == ["merged", "3", "0.009", "3", "0.300"]


@pytest.mark.parametrize(
    ("other", "fault"),
    [
        (path("served", 0.2, 0.8, 0.512), "served: a score is off by 0.012 (e2, overall), at most 0.01 is expected"),
        (path("served", 0.2, 0.8), "served: scores missing that the trainer's memory gives: 1"),
        (
            path("merged", 0.2, 0.8, 0.5, template="x" * 64),
            "merged: another chat template (xxxxxxxxxxxx, trained with t",
        ),
        (path("merged", 0.2, 0.8, 0.5, tokenizer="y" * 64), "merged: another tokenizer (yyyyyyyyyyyy, trained with k"),
        (path("merged", 0.2, 0.8, 0.5, precision="bfloat16"), "merged: weights in bfloat16, trained in float32"),
    ],
)
def test_each_difference_is_a_fault(other: PathScores, fault: str) -> None:
    report = compare_paths(BASE, MEMORY, [other])
    (found,) = report.faults
    assert found.startswith(fault)
    with pytest.raises(InputError, match=r"^parity: found (served|merged): .*: no export$"):
        report.check()


def test_a_path_that_gives_the_base_models_scores_is_inert() -> None:
    report = compare_paths(BASE, MEMORY, [path("reloaded", 0.5, 0.5, 0.5)])
    assert report.faults[0].startswith("reloaded: a score is off by 0.300")
    assert report.faults[1].startswith("reloaded: the adapter is inert")
    with pytest.raises(InputError, match=r"\(and 1 more\)"):
        report.check()


def test_a_judge_that_training_did_not_change_can_not_be_certified() -> None:
    same = path("memory", 0.5, 0.509, 0.5)
    report = compare_paths(BASE, same, [path("merged", 0.5, 0.5, 0.5)])
    assert [one.split(":")[0] for one in report.faults] == ["memory", "merged"]


def test_prompts_of_other_tokens_are_a_fault_where_the_scores_are_close() -> None:
    memory = MEMORY.model_copy(update={"prompts": {"e0": "a", "e1": "b"}})
    other = path("reloaded", 0.2, 0.8, 0.5, prompts={"e0": "a", "e1": "c"})
    assert compare_paths(BASE, memory, [other]).faults == ("reloaded: prompts of other tokens than in training: 1",)


def test_nothing_to_compare_is_an_error() -> None:
    with pytest.raises(InputError, match="found no scores"):
        compare_paths(BASE, path("memory"), [])


def test_items_are_kept_as_they_are(tmp_path: Path) -> None:
    items = parity_items(rated_prompts(60))
    query = replace(items[0].query, parts=("?", b"\xff\xd8jpeg"), system="Grade.")
    items[0] = ParityItem.of("i0", query, items[0].dimensions, items[0].levels)
    write_items(tmp_path, items)
    assert read_items(tmp_path) == items[:50]
    assert read_items(tmp_path)[0].query == query


def reply(*tokens: tuple[str, dict[str, float]]) -> Reply[None]:
    said = tuple(
        Token(text.encode(), {one.encode(): chance for one, chance in (chances or {text: 1.0}).items()})
        for text, chances in tokens
    )
    return Reply("".join(text for text, _ in tokens), None, Usage(), "stop", "judge", said)


def test_chances_are_read_from_a_replys_tokens() -> None:
    form = FixedForm(('{"a": ', ', "b": ', "}"), (("0", "1"), ("0", "1", "2")))
    found = form_chances(
        form, reply((' {"a":', {}), (" 1", {" 1": 0.75, " 0": 0.25}), (', "b": ', {}), ("2", {"2": 0.5}), ("}", {}))
    )
    assert found == [{"0": 0.25, "1": 0.75}, {"0": 0.0, "1": 0.0, "2": 0.5}]
    assert form_chances(FORM, reply(('{"overall": 1}', {}))) is None  # the level has no token of its own
    assert form_chances(FORM, reply(('{"overall": ', {}), ("3", {}), ("}", {}))) is None
    assert form_chances(FORM, reply(("Well: ", {}), ('{"overall": ', {}), ("1", {}), ("}", {}))) is None
