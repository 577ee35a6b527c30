"""A recorded letter means the option that was shown, and a file's own scores are compared with ours."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pytest

import proctor
from proctor.core import Benchmark, InputError, Item, Reference, generator
from proctor.core.formats import ChoiceFormat, ChoicesFormat, OrderingFormat, option_letters
from proctor.interchange.shown_options import option_order, options_in_fields, options_in_prompt
from tests.support.foreign import foreign

OPTIONS = ("liver", "stomach", "bladder", "kidney")
LETTERS = "ABCD"


def organs(**formats: Any) -> Benchmark:
    """Twelve questions with four options each; A (the liver) is right."""
    answer = formats.get("answer", ChoiceFormat())
    items = tuple(
        Item(
            id=f"q{number}",
            group=f"v{number}",
            question=f"Which organ is in view {number}?",
            answer=answer,
            options=OPTIONS,
            reference=Reference(answer=formats.get("right", "A")),
        )
        for number in range(12)
    )
    return Benchmark("organs", "Organs", items, (proctor.ACCURACY,), "accuracy")


def shuffles() -> list[list[str]]:
    """Another order of the options for each question."""
    draw = generator(3, "shown options")
    return [[OPTIONS[slot] for slot in draw.permutation(4)] for _ in range(12)]


def letter(shown: list[str], option: str = "liver") -> str:
    return LETTERS[shown.index(option)]


def imported(file: Path, benchmark: Benchmark | None = None, **options: Any) -> proctor.Evaluation:
    return proctor.import_answers(benchmark or organs(), file, **{"name": "m", "store": ":memory:"} | options)


def accuracy(made: proctor.Evaluation) -> float:
    return float(next(row["value"] for row in made.results() if (row["metric"], row["scorer"]) == ("accuracy", "code")))


def lines(file: Path, rows: list[dict[str, Any]]) -> Path:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


def accuracy_of(made: proctor.Evaluation, repetition: int) -> float:
    """The share of right answers of one repetition."""
    rows = made.store.score_rows(made.runs[0], metric="accuracy", scorer="code", repetition=repetition)
    return float(sum(row.value for row in rows) / len(rows))


# -- each reader


def test_inspect_shuffles_choices_and_asks_several_times(tmp_path: Path) -> None:
    """Inspect itself: a model that always names the right option is right in all of 12, though A stands for it in few."""
    found = foreign("tests.support.foreign_inspect", tmp_path, "shuffled")
    two_of_three = pytest.approx(2 / 3)
    for name, figure, same in (("one", 1.0, "12 items"), ("all", two_of_three, "36 answers")):
        assert found[name]["figures"] == {"accuracy/code": figure, "choice/inspect": figure}
        assert len(found[name]["letters"]) > 1
        assert sorted(found[name]["shown"]) == sorted(OPTIONS)
        assert f"the file's own score (choice) is the same as ours on {same}" in found[name]["notes"]
    assert found["third"]["figures"] == {"accuracy/code": 0.0, "choice/inspect": 0.0}
    each = "epoch 1: 12 samples, choice 1.000; epoch 2: 12 samples, choice 1.000; epoch 3: 12 samples, choice 0.000"
    assert f"3 epochs, read as 3 repetitions of each item. {each}" in found["all"]["notes"]
    assert (found["one"]["repetitions"], found["all"]["repetitions"], found["third"]["repetitions"]) == (1, 3, 1)
    assert any(note.startswith("3 epochs: epoch 3 alone is read (--epoch)") for note in found["third"]["notes"])
    assert not any("epochs" in note for note in found["one"]["notes"])
    assert found["fourth"]["error"] == "--epoch 4 is not there: choose one of 1, 2, 3"


def test_vlmevalkits_columns_are_the_options(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.append(["index", "question", *LETTERS, "answer", "prediction", "hit"])
    for number, shown in enumerate(shuffles()):
        sheet.append([f"q{number}", "?", *shown, letter(shown), f"The answer is {letter(shown)}.", 1])
    book.save(tmp_path / "m_organs.xlsx")
    made = imported(tmp_path / "m_organs.xlsx")
    assert made.notes[0].startswith("m_organs.xlsx: read as vlmevalkit")
    assert accuracy(made) == 1.0
    assert made.notes[-1] == "the file's own score (hit) is the same as ours on 12 items"
    answer = made.store.answers(made.runs[0])["q0"]
    assert answer.extra["options_shown"] == shuffles()[0]


@pytest.mark.parametrize("location", ["doc", "input", "arguments", "columns", "mmmu", "letters", "prompt"])
def test_lmms_eval_and_tables_have_options_in_many_ways(location: str, tmp_path: Path) -> None:
    rows = []
    for number, shown in enumerate(shuffles()):
        listed = "\n".join(f"{score}. {text}" for score, text in zip(LETTERS, shown, strict=True))
        row: dict[str, Any] = {"doc_id": f"q{number}", "filtered_resps": [letter(shown)], "target": letter(shown)}
        if location in {"prompt", "letters"}:
            row = {"id": f"q{number}", "prediction": letter(shown)}
        locations: dict[str, dict[str, Any]] = {
            "doc": {"doc": {"options": [f"{score}. {text}" for score, text in zip(LETTERS, shown, strict=True)]}},
            "input": {"input": f"Q: which?\nA. liver\nB. eye\nAnswer: A\n\nWhich organ?\n{listed}\nAnswer: "},
            "arguments": {"arguments": {"gen_args_0": {"arg_0": f"Which organ?\n{listed}", "arg_1": {"until": []}}}},
            "columns": {"doc": {f"option_{n}": text for n, text in enumerate(shown)}},
            "mmmu": {"doc": {"options": repr(shown)}},
            "letters": {"options": dict(zip(LETTERS, shown, strict=True))},
            "prompt": {
                "prompt": f"Which organ is in view {number}? (A) {shown[0]} (B) {shown[1]} (C) {shown[2]} (D) {shown[3]}"
            },
        }
        row |= locations[location]
        rows.append(row)
    made = imported(lines(tmp_path / "s.jsonl", rows))
    assert accuracy(made) == 1.0
    assert not any("differs" in note or "name options by letters" in note for note in made.notes)


_SHOWN = ("spleen", "liver", "aorta", "left kidney")
_MARKED = [f"{score}. {text}" for score, text in zip("ABCD", _SHOWN, strict=True)]


def _columns(*names: str) -> dict[str, Any]:
    return dict(zip(names, _SHOWN, strict=True))


@pytest.mark.parametrize(
    "fields",
    [
        _columns("A", "B", "C", "D") | {"E": float("nan"), "F": ""},
        _columns("opa", "opb", "opc", "opd"),
        _columns("choiceA", "choiceB", "choiceC", "choiceD"),
        _columns("ending0", "ending1", "ending2", "ending3"),
        _columns("选项A", "选项B", "选项C", "选项D"),
        _columns("Option A", "Option B", "Option C", "Option D"),
        {"options": "; ".join(_SHOWN)},
        {"options": "|".join(_SHOWN)},
        {"options": "\n".join(_MARKED)},
        {"options": "A) spleen B) liver C) aorta D) left kidney"},
        {"options": "(A) spleen (B) liver (C) aorta (D) left kidney"},
        {"options": "A: spleen, B: liver, C: aorta, D: left kidney"},
        {"options": _columns("a", "b", "c", "d")},
        {"options": _columns("0", "1", "2", "3")},
        {"options": _columns("1", "2", "3", "4")},
        {
            "options": [
                {"key": "A", "value": "spleen"},
                {"value": "liver"},
                {"value": "aorta"},
                {"value": "left kidney"},
            ]
        },
        {"answer_options": [*_SHOWN]},
        {"multi-choice options": "\n".join(_MARKED)},
        {"all_choices": ["A", "B", "C", "D"], "index2ans": _columns("A", "B", "C", "D")},
    ],
    ids=str,
)
def test_options_stand_in_fields_of_many_shapes(fields: dict[str, Any]) -> None:
    """Where they are not found, letters are read in the benchmark's own order."""
    items = ["liver", "spleen", "left kidney", "aorta"]
    order = option_order(options_in_fields(fields), items)
    assert tuple(items[slot] for slot in order) == _SHOWN


def test_answers_of_several_systems_are_no_options() -> None:
    assert options_in_fields({"answer_a": "spleen", "answer_b": "liver"}) == ()
    assert options_in_fields({"all_choices": ["A", "B"]}) == ()


def test_sets_and_orders_by_letters(tmp_path: Path) -> None:
    rows = [
        {
            "id": f"q{number}",
            "prediction": f"{letter(shown, 'kidney')}, {letter(shown)}",
            **dict(zip(LETTERS, shown, strict=True)),
        }
        for number, shown in enumerate(shuffles())
    ]
    right = organs(answer=ChoicesFormat(), right=["A", "D"])
    assert accuracy(imported(lines(tmp_path / "sets.jsonl", rows), right)) == 1.0
    wanted = ["kidney", "liver", "bladder", "stomach"]
    for row, shown in zip(rows, shuffles(), strict=True):
        row["prediction"] = " > ".join(letter(shown, name) for name in wanted)
    ordered = organs(answer=OrderingFormat(labels=tuple(option_letters(4))), right=["D", "A", "C", "B"])
    assert accuracy(imported(lines(tmp_path / "orders.jsonl", rows), ordered)) == 1.0


def test_a_letter_for_an_item_without_options_is_the_options_text(tmp_path: Path) -> None:
    from tests.support.lamp_benchmark import lamps

    rows = [
        {"id": item.id, "prediction": "B" if item.id.endswith("q3") else "A) yes", "A": "yes", "B": "no"}
        for item in lamps().items
    ]
    assert accuracy(imported(lines(tmp_path / "a.jsonl", rows), lamps())) == 1.0


def test_a_batch_with_its_requests(tmp_path: Path) -> None:
    rows = []
    for number, shown in enumerate(shuffles()):
        prompt = f"Which organ is in view {number}?\n" + "\n".join(
            f"{score}) {text}" for score, text in zip(LETTERS, shown, strict=True)
        )
        content: Any = prompt if number % 2 else [{"type": "image_url"}, {"type": "text", "text": prompt}]
        reply = {"choices": [{"message": {"content": letter(shown)}}]}
        sent = {"body": {"messages": [{"role": "system", "content": "A."}, {"role": "user", "content": content}]}}
        rows.append({"custom_id": f"q{number}", "response": {"status_code": 200, "body": reply}, "request": sent})
    made = imported(lines(tmp_path / "b.jsonl", rows))
    assert accuracy(made) == 1.0
    assert not any("letters" in note for note in made.notes)


# -- what is not assumed


def test_letters_without_options_and_scores_that_differ_are_named(tmp_path: Path) -> None:
    """The file holds letters alone: they are read in the order here, which is said, and its own score contradicts."""
    rows: list[dict[str, Any]] = [
        {"index": f"q{number}", "prediction": letter(shown), "answer": letter(shown), "hit": 1}
        for number, shown in enumerate(shuffles())
    ]
    right = sum(row["prediction"] == "A" for row in rows)
    made = imported(lines(tmp_path / "a.jsonl", rows))
    assert accuracy(made) == pytest.approx(right / 12)
    some = ", ".join([row["index"] for row in rows if row["prediction"] != "A"][:3])
    assert made.notes[-3:] == (
        "12 answers name options by letters, and the file does not say which options were shown: read in the order here",
        f"the file's own score (hit) differs from ours on {12 - right} of 12 items: {some} …",
        f"the file's own reference answer differs from ours on {12 - right} of 12 items: {some} …",
    )


def test_answers_by_their_text_need_no_order(tmp_path: Path) -> None:
    rows = [{"id": f"q{number}", "prediction": "It is the liver."} for number in range(12)]
    made = imported(lines(tmp_path / "a.jsonl", rows))
    assert accuracy(made) == 1.0
    assert not any("letters" in note for note in made.notes)


def test_other_options_are_refused_item_by_item(tmp_path: Path) -> None:
    rows = [{"id": f"q{n}", "prediction": "A", **dict(zip(LETTERS, OPTIONS, strict=True))} for n in range(12)]
    rows[3]["B"] = "spleen"
    rows[5]["D"] = "spleen"
    with pytest.raises(InputError) as caught:
        imported(lines(tmp_path / "a.jsonl", rows))
    expected = "expected the options liver; stomach; bladder; kidney"
    assert str(caught.value).endswith(
        f"a.jsonl: row 4 (q3): found other options: liver; spleen; bladder; kidney, {expected}"
    )
    assert any("row 6 (q5)" in note for note in caught.value.__notes__)
    prompt = "Which organ?\nA. spleen\nB. liver\nC. eye\nD. ear\n"
    with pytest.raises(InputError, match="found other options: spleen; liver; eye; ear"):
        imported(lines(tmp_path / "b.jsonl", [{"id": "q0", "prediction": "A", "prompt": prompt}]))


def test_an_export_of_ours_comes_back_without_doubts(tmp_path: Path) -> None:
    rows = [
        {"index": f"q{number}", "prediction": letter(shown), **dict(zip(LETTERS, shown, strict=True))}
        for number, shown in enumerate(shuffles())
    ]
    made = imported(lines(tmp_path / "a.jsonl", rows))
    for form in ("csv", "jsonl", "lmms-eval"):
        out = tmp_path / f"rows.{form}"
        made.export(out, format=form)
        again = imported(out)
        assert accuracy(again) == 1.0
        assert "the file's own score (accuracy) is the same as ours on 12 items" in again.notes
        assert not any("letters" in note for note in again.notes)


def test_a_table_with_epochs(tmp_path: Path) -> None:
    rows = [
        {"id": f"q{n}", "prediction": "A" if epoch == 1 else "B", "epoch": epoch} for epoch in (1, 2) for n in range(12)
    ]
    file = tmp_path / "a.csv"
    pd.DataFrame(rows).to_csv(file, index=False)
    first, second = imported(file), imported(file, epoch=2)
    assert (accuracy(first), accuracy(second)) == (0.5, 0.0), "the mean over the repetitions, or one of them"
    assert [accuracy_of(first, number) for number in (0, 1)] == [1.0, 0.0]
    assert "2 repetitions of each item, by the column 'epoch'" in first.notes
    assert "2 repetitions: 2 alone is read (--epoch)" in second.notes
    assert second.store.repetitions(second.runs[0]) == [0]
    with pytest.raises(InputError, match=r"--epoch 3 is not there: choose one of 1, 2"):
        imported(file, epoch=3)
    samples = [{"doc_id": f"q{n}", "resps": [["A", "B"]], "filtered_resps": ["A"]} for n in range(12)]
    made = imported(lines(tmp_path / "s.jsonl", samples), epoch=2)
    assert accuracy(made) == 0.0
    assert any(
        note.startswith("12 samples with several replies (up to 2): reply 2 alone is read (--epoch)")
        for note in made.notes
    )
    both = imported(lines(tmp_path / "s.jsonl", samples))
    assert [accuracy_of(both, number) for number in (0, 1)] == [1.0, 0.0]
    batch = [{"custom_id": "q0", "response": {}}]
    with pytest.raises(InputError, match=r"openai-batch has one answer of a system to an item. Leave --epoch 2 out"):
        imported(lines(tmp_path / "b.jsonl", batch), epoch=2)


# -- texts of options


def test_option_texts_are_compared_as_they_stand_and_then_by_their_words() -> None:
    assert option_order(["<b>Left</b>  kidney.", "**liver**"], ["liver", "left kidney"]) == (1, 0)
    assert option_order(["(A) T1", "(B) t2"], ["T2", "T1"]) == (1, 0)
    assert option_order(["mg", "Mg"], ["Mg", "mg"]) == (1, 0)  # differ as they stand
    assert option_order(["same", "same"], ["same", "same"]) == (0, 1)  # in the same order nothing is to tell
    assert option_order(["a) no", "b) yes"], ["a) no", "b) yes"]) == (0, 1)
    with pytest.raises(proctor.core.ParseError, match="found 'clip twice'"):
        option_order(["CLIP", "clip ", "scissors"], ["scissors", "Clip", "clip"])
    for other in (["liver"], ["liver", "spleen", "aorta"], ["liver", "Spleen?"]):
        with pytest.raises(proctor.core.ParseError, match="found 'other options"):
            option_order(other, ["liver", "spleen"])


def test_every_order_in_every_manner_of_a_prompt() -> None:
    item = organs().items[0]
    for order in permutations(OPTIONS):
        for manner in ("\n{}. {}", " ({}) {}", "\n**{}**: {}", "\n{}) {},", "; {} - {}"):
            listed = "".join(manner.format(score, text) for score, text in zip(LETTERS, order, strict=True))
            assert options_in_prompt(f"{item.question}{listed}\nAnswer with A, B, C or D.", item) == order
    assert options_in_prompt("Which organ? Vitamin A. A liver is seen.", item) == ()
    assert options_in_prompt(item.question, item) == ()


def test_a_list_inside_the_question_is_no_list_of_options() -> None:
    question = "Which are seen?\nA. a clip\nB. a mesh\nC. a drain\nD. a port"
    item = organs().items[0].model_copy(update={"question": question})
    assert options_in_prompt(question, item) == ()
