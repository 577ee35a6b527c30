"""Files with several answers of a system to each item: each is a repetition, never an item; what numbers them badly is
refused in one line, and nothing is stored."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import proctor
from proctor.core import Answer, Benchmark, InputError, RecordedAnswers, Score, admit_recorded
from proctor.runs import Store, evaluation_content
from tests.support.foreign import foreign
from tests.support.toy_run import toy

ITEMS = 4
VALUES = {f"q{number:03d}": ("1", str(number), "1") for number in range(ITEMS)}


def table(file: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    with file.open("w", newline="", encoding="utf-8") as opened:
        writer = csv.DictWriter(opened, list(dict.fromkeys(name for row in rows for name in row)))
        writer.writeheader()
        writer.writerows(rows)
    return file


def rows(first: int = 1, column: str = "repetition") -> list[dict[str, Any]]:
    return [
        {"id": item, "answer": text, column: number}
        for item, texts in VALUES.items()
        for number, text in enumerate(texts, start=first)
    ]


def imported(file: Path, store: Path | str = ":memory:", **more: Any) -> proctor.Evaluation:
    return proctor.import_answers(toy(ITEMS), file, name="mine", store=store, **more)


def said(made: proctor.Evaluation) -> dict[tuple[str, int], Any]:
    return answers_in(made.store)


def answers_in(store: Store) -> dict[tuple[str, int], Any]:
    run = next(one for one in store.runs("toy") if one.system == "mine")
    numbers = store.repetitions(run)
    return {(item, number): one.parsed for number in numbers for item, one in store.answers(run, number).items()}


WHOLE = {(item, number): int(text) for item, texts in VALUES.items() for number, text in enumerate(texts)}


@pytest.mark.parametrize("column", ["repetition", "epoch"])
@pytest.mark.parametrize("first", [0, 1])
def test_a_column_numbers_them_from_0_or_from_1(first: int, column: str, tmp_path: Path) -> None:
    made = imported(table(tmp_path / "a.csv", rows(first, column)))
    assert said(made) == WHOLE
    assert made.runs[0].settings["repeats"] == 3
    assert f"3 repetitions of each item, by the column {column!r}" in made.notes
    row = next(one for one in made.results() if one["metric"] == "accuracy")
    assert row["n"] == ITEMS, "items are counted, not answers"
    right = sum(text == "1" for texts in VALUES.values() for text in texts)
    assert row["value"] == pytest.approx(right / (3 * ITEMS))


def test_an_item_may_lack_an_answer_which_is_said(tmp_path: Path) -> None:
    made = imported(table(tmp_path / "a.csv", rows()[:-1]))
    assert len(said(made)) == 3 * ITEMS - 1
    assert (
        "1 of 12 answers are missing in 3 repetitions: q003 has no answer of repetition 2 (counted from 0)"
        in made.notes
    )


def refused(tmp_path: Path, rows: Sequence[Mapping[str, Any]]) -> str:
    with pytest.raises(InputError) as caught:
        imported(table(tmp_path / "a.csv", rows), tmp_path / "runs.db")
    told = str(caught.value)
    assert told.startswith(f"{tmp_path / 'a.csv'}: ")
    assert "\n" not in told
    if (tmp_path / "runs.db").exists():
        assert Store(tmp_path / "runs.db", create=False).benchmark_names() == []
    return told.removeprefix(f"{tmp_path / 'a.csv'}: ")


def test_what_numbers_them_badly_is_one_line(tmp_path: Path) -> None:
    good = rows()
    twice = [*good, good[0] | {"answer": "7"}]
    assert (
        refused(tmp_path, twice) == "row 14: found another answer to q000 in the same repetition, expected one (row 2)"
    )
    gap = [row for row in good if row["repetition"] != 2]
    assert refused(tmp_path, gap) == "column 'repetition': found 1, 3 and no 2, expected every number from 1 to 3", (
        "of all items"
    )
    one = [row for row in good if (row["id"], row["repetition"]) != ("q001", 2)]
    assert refused(tmp_path, one) == (
        "found repetitions 0, 2 of 'q001', expected repetition 1, too: counted from 0, without a gap"
    )
    for wrong in ("second", "1.5", "", "-1", "99999"):
        told = refused(tmp_path, [*good[:2], good[2] | {"repetition": wrong}])
        assert told == f"row 4, column 'repetition': found {wrong!r}, expected a whole number from 0 or 1"
    later = [row | {"repetition": row["repetition"] + 4} for row in good]
    assert refused(tmp_path, later).startswith("column 'repetition': found 5, 6, 7 and no 1")


def test_repetitions_of_different_prompts_are_refused(tmp_path: Path) -> None:
    asked = [row | {"prompt": "How many clips?"} for row in rows()]
    assert said(imported(table(tmp_path / "good.csv", asked))) == WHOLE
    asked[4]["prompt"] = "How many clips? Think first."
    assert refused(tmp_path, asked) == (
        "row 6: found another prompt for q001: 'How many clips? Think first.', expected the one of row 5"
    )


@pytest.mark.parametrize("between", ["#", "_", "-rep", " run ", "/", "@epoch-", " (", "_sample_"])
def test_repetitions_passed_off_as_items_are_refused(between: str, tmp_path: Path) -> None:
    end = ")" if between == " (" else ""
    given = [
        {"id": f"{item}{between}{number}{end}", "answer": text}
        for item, texts in VALUES.items()
        for number, text in enumerate(texts)
    ]
    told = refused(tmp_path, given)
    one, two = given[1]["id"], given[0]["id"]
    assert told == (
        f"row 3: found {one!r} after {two!r} (row 2), answers to one item as if to two, expected the id 'q000' for "
        "both, and a column 'repetition' with their numbers"
    )


def test_an_item_given_twice_without_numbers_is_refused_with_advice(tmp_path: Path) -> None:
    given = [{"id": row["id"], "answer": row["answer"]} for row in rows()]
    assert refused(tmp_path, given) == (
        "row 3: found another answer to q000, expected one (row 2), or a column 'repetition' that numbers a system's "
        "answers to an item"
    )


def test_a_run_of_another_number_of_repetitions_is_refused(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    whole, two = (
        table(tmp_path / "a.csv", rows()),
        table(tmp_path / "b.csv", [r for r in rows() if r["repetition"] < 3]),
    )
    imported(whole, store)
    before = evaluation_content(Store(store), "toy").sha256
    with pytest.raises(InputError, match=r"found 3 repetitions already, and 2 here, expected the same answers"):
        imported(two, store)
    imported(whole, store)
    assert evaluation_content(Store(store), "toy").sha256 == before, "the same file again changes nothing"


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet", "xlsx", "lmms-eval"])
def test_what_is_exported_comes_back_the_same(form: str, tmp_path: Path) -> None:
    made = imported(table(tmp_path / "a.csv", rows()))
    out = tmp_path / (f"out.{form}" if form != "lmms-eval" else "out")
    made.export(out, format=form)
    again = imported(out)
    assert said(again) == WHOLE
    if form == "csv":
        written = pd.read_csv(out)
        assert sorted(set(written["repetition"])) == [0, 1, 2]
        assert len(written) == 3 * ITEMS


def test_a_row_of_a_run_without_repetitions_says_so(tmp_path: Path) -> None:
    made = imported(table(tmp_path / "a.csv", [row for row in rows() if row["repetition"] == 1]))
    made.export(tmp_path / "out.csv")
    assert set(pd.read_csv(tmp_path / "out.csv")["repetition"]) == {0}
    assert "repeats" not in made.runs[0].settings


@pytest.mark.parametrize(
    ("ends", "none", "first"), [("#", False, 1), ("#", False, 0), ("-r", True, 0), ("-r", False, 1)]
)
def test_batches_have_the_number_in_the_id(ends: str, none: bool, first: int, tmp_path: Path) -> None:
    lines = []
    for item, texts in VALUES.items():
        for number, text in enumerate(texts, start=first):
            body = {"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]}
            response = {"status_code": 200, "body": body}
            name = item if none and number == 0 else f"{item}{ends}{number}"
            lines.append({"custom_id": name, "response": response, "error": None})
    file = tmp_path / "batch.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert said(imported(file)) == WHOLE
    file.write_text("".join(json.dumps(line) + "\n" for line in [*lines, lines[0] | {"custom_id": f"q000{ends}9"}]))
    told = rf"column 'custom_id': found {first}, .*9 and no {first + 3}, expected every number from {first} to 9$"
    with pytest.raises(InputError, match=told):
        imported(file)


def test_a_position_counts_within_each_repetition(tmp_path: Path) -> None:
    by_repetition = sorted(rows(), key=lambda row: row["repetition"])
    given = [{"answer": row["answer"], "repetition": row["repetition"]} for row in by_repetition]
    assert said(imported(table(tmp_path / "a.csv", given), id_column="position")) == WHOLE


def test_a_submission_has_one_answer_to_each_item(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match="found 3 repetitions, expected a submission, which has one answer to each item"
    ):
        imported(table(tmp_path / "a.csv", rows()), submission=True)


def recorded(*numbers: int, item: str = "q000") -> RecordedAnswers:
    return RecordedAnswers(tuple(Answer(item_id=item, text="1", parsed=1, repetition=number) for number in numbers))


@pytest.mark.parametrize(
    ("numbers", "told"),
    [
        ((0, 0), "found another answer to 'q000', expected one answer to each question"),
        ((0, 1, 1), "found another answer to 'q000' in repetition 1, expected one answer to each question"),
        ((1,), "found repetitions 1 of 'q000', expected repetition 0, too: counted from 0, without a gap"),
    ],
)
def test_other_packages_readers_are_held_to_it(numbers: tuple[int, ...], told: str) -> None:
    some: Benchmark = toy(ITEMS)
    with pytest.raises(InputError) as caught:
        admit_recorded(recorded(*numbers), some, "x.csv")
    assert str(caught.value) == f"x.csv: {told}"
    admit_recorded(recorded(0, 1, 2), some, "x.csv")


def test_inspect_has_each_repetition_as_an_epoch(tmp_path: Path) -> None:
    found = foreign("tests.support.foreign_inspect", tmp_path, "repetitions")
    scored = [[9, 0]]  # of all epochs, as Inspect counts them
    assert found == {"same": True, "epochs": [3, [1, 2, 3]], "status": "success", "samples": 9, "scored": scored}


SURE = {(item, number): round(0.1 * number + 0.02 * int(item[-1]), 2) for item in VALUES for number in range(3)}
"""A confidence for each answer; none for one of them."""


def sure_rows() -> list[dict[str, Any]]:
    return [
        row
        | {"confidence": "" if (row["id"], row["repetition"]) == ("q001", 1) else SURE[row["id"], row["repetition"]]}
        for row in rows(0)
    ]


def confidences(store: Store) -> dict[tuple[str, int], Any]:
    run = next(one for one in store.runs("toy") if one.system == "mine")
    numbers = store.repetitions(run)
    found = {(item, number): one.confidence for number in numbers for item, one in store.answers(run, number).items()}
    return {key: None if one is None else (one.source, one.value, one.missing) for key, one in found.items()}


@pytest.mark.parametrize("form", ["lmms-eval", "table"])
def test_confidences_go_out_and_come_back_with_each_repetition(form: str, tmp_path: Path) -> None:
    made = imported(table(tmp_path / "a.csv", sure_rows()), tmp_path / "a.db")
    out = tmp_path / ("out" if form == "lmms-eval" else "out.csv")
    made.export(out, **({"format": form} if form == "lmms-eval" else {}))
    file = next(out.glob("*_samples_*.jsonl")) if form == "lmms-eval" else out
    again = imported(file, tmp_path / "b.db")
    assert answers_in(again.store) == WHOLE
    missing = ("recorded", None, "an empty cell")
    expected = {key: missing if key == ("q001", 1) else ("recorded", one, "") for key, one in SURE.items()}
    assert confidences(made.store) == confidences(again.store) == expected


def test_a_confidence_that_somebody_changed_is_missing_and_never_a_number(tmp_path: Path) -> None:
    made = imported(
        table(tmp_path / "a.csv", [row for row in sure_rows() if row["repetition"] == 0]), tmp_path / "a.db"
    )
    made.export(tmp_path / "out", format="lmms-eval")
    (file,) = (tmp_path / "out").glob("*_samples_*.jsonl")
    wrong = ['{"source": "stated", "value": 7}', '{"source": "stated", "value": NaN}', "{", '["stated", 1]']
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    file.write_text(
        "".join(json.dumps(line | {"proctor_confidence": one}) + "\n" for line, one in zip(lines, wrong, strict=True))
    )
    found = confidences(imported(file, tmp_path / "b.db").store)
    bad = ("recorded", None, "no confidence from 0 to 1")
    assert found == dict.fromkeys(((item, 0) for item in VALUES), bad)


def test_every_eval_ever_has_the_confidence_of_a_row_without_words_of_the_reply(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs.db")
    some: Benchmark = toy(2)
    store.add_benchmark(some)
    run = store.start_run("toy", "mine", "video", {})
    told: list[dict[str, Any]] = [
        {"source": "stated", "value": 0.85},
        {"source": "stated", "missing": "no whole number: 'the patient is Mr Smith'"},
    ]
    store.write(
        run,
        [
            (
                Answer(item_id=item.id, text="1", parsed=1, extra={"confidence": one}),
                [Score(item_id=item.id, metric="accuracy", value=1.0)],
            )
            for item, one in zip(some.items, told, strict=True)
        ],
    )
    proctor.export(store, tmp_path / "eee", "toy", format="every-eval-ever", systems="mine")
    (samples,) = (tmp_path / "eee").rglob("*_samples.jsonl")
    assert "Smith" not in samples.read_text()
    found = [json.loads(line)["metadata"]["confidence"] for line in samples.read_text().splitlines()]
    assert sorted(map(json.loads, found), key=str) == [
        {"source": "stated", "missing": "no whole number"}, {"source": "stated", "value": 0.85}
    ]  # fmt: skip
