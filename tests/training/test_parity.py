"""The parity gate: which differences between paths are faults, by hand."""

from __future__ import annotations

import pytest

from proctor.core import InputError
from proctor.training.parity import ParityPath, PathScores, compare_paths


def path(name: ParityPath, *values: float, flip: bool = False, **more: str | dict[str, str]) -> PathScores:
    scores = {f"e{k}": {"overall": value} for k, value in enumerate(values)}
    levels = {item: {"overall": 1.0 if flip else 0.5} for item in scores}
    return PathScores.model_validate({"path": name, "scores": scores, "levels": levels, **more})


BASE = path("base", 0.5, 0.5, 0.5)
MEMORY = path("memory", 0.2, 0.8, 0.5, template="t" * 64, tokenizer="k" * 64, dtype="float32")


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
        (path("merged", 0.2, 0.8, 0.5, dtype="bfloat16"), "merged: another precision (bfloat16, trained with float32)"),
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
