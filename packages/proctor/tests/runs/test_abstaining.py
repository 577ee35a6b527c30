"""Abstaining and confidences from the prompt to the table: a scripted server, a store, results, export and import."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import proctor
from proctor.core import CONFIDENCE, InputError, Status, UsageError
from proctor.runs import Store
from tests.support.faulty_server import FaultyServer, Request, Tokens
from tests.support.program import proctor as shell

ROWS = [
    # id, group, question, answer, format, A, B, C
    ("q1", "v1", "Which organ?", "B", "", "liver", "spleen", "aorta"),
    ("q2", "v1", "Which vessel?", "C", "", "liver", "spleen", "aorta"),
    ("q3", "v2", "Which duct?", "unanswerable", "", "liver", "spleen", "aorta"),
    ("q4", "v3", "Is a clip visible?", "yes", "", "", "", ""),
    ("q5", "v4", "Is a sponge visible?", "UNANSWERABLE", "binary", "", "", ""),
    ("q6", "v5", "What is done?", "The probe slides.", "free text", "", "", ""),
]


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    return sheet(tmp_path / "own.csv", ROWS)


def sheet(file: Path, rows: Sequence[tuple[str, ...]]) -> Path:
    with file.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(("id", "group", "question", "answer", "format", "A", "B", "C"))
        writer.writerows(rows)
    return file


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


def says(replies: dict[str, str | Tokens], otherwise: str = "Answer: UNANSWERABLE") -> Any:
    def reply(request: Request) -> str | Tokens:
        return next((said for asked, said in replies.items() if asked in request.text), otherwise)

    return reply


def ask(questions: Path, store: Path, reply: Any, **options: Any) -> tuple[Any, list[Request]]:
    with FaultyServer(reply) as server:
        given = {"conditions": "text-only", "baselines": False, **options}
        run = proctor.run(str(questions), model="m", base_url=server.url, store=str(store), **given)
        return run, list(server.requests)


def answers(store: Path, condition: str = "text-only") -> dict[str, Any]:
    opened = Store(store)
    (run,) = [one for one in opened.runs("own") if one.condition == condition and one.system == "m"]
    return opened.answers(run)


REPLIES: dict[str, str | Tokens] = {
    "Which organ?": "Answer: B",
    "Which vessel?": "Answer: UNANSWERABLE",
    "Which duct?": "Answer: UNANSWERABLE (no duct is shown)",
    "clip visible": "I can't tell from this.",
    "sponge visible": "Answer: yes",
    "What is done?": "UNANSWERABLE",
}


def test_unanswerable_questions_let_models_abstain(questions: Path, store: Path) -> None:
    run, requests = ask(questions, store, says(REPLIES))
    assert all("UNANSWERABLE" in request.text for request in requests)
    assert not any("best guess" in request.text for request in requests)
    found = answers(store)
    assert {name: one.status for name, one in found.items()} == {
        "q1": Status.ANSWERED, "q2": Status.ABSTAINED, "q3": Status.ABSTAINED, "q4": Status.ANSWERED,
        "q5": Status.ANSWERED, "q6": Status.ABSTAINED,
    }  # fmt: skip
    opened = Store(store)
    (stored,) = opened.runs("own")
    labels = {
        row.item_id: (row.value, row.label) for row in opened.score_rows(stored, metric="accuracy", scorer="code")
    }
    # Right: B, and abstaining where nothing is right. Wrong: abstaining and refusing elsewhere, answering what can't be.
    assert labels == {
        "q1": (1.0, "right"),
        "q2": (0.0, "abstained"),
        "q3": (1.0, "right"),
        "q4": (0.0, "unreadable"),
        "q5": (0.0, "wrong"),
    }
    (row,) = [one for one in run.results().rows if one["metric"] == "accuracy"]
    assert (row["value"], row["n"], row["abstained"], row["unreadable"]) == (0.4, 5, 2, 1)
    assert stored.settings["system"] == {**stored.settings["system"], "abstain": "allow"}  # type: ignore[dict-item]


def test_what_the_prompt_says(questions: Path, store: Path, tmp_path: Path) -> None:
    plain = sheet(tmp_path / "plain.csv", [row for row in ROWS if "nanswerable" not in row[3].lower()])
    asked = {}
    for abstain in (None, "allow", "forbid"):
        _, requests = ask(plain, tmp_path / f"{abstain}.db", says({}), abstain=abstain)
        asked[abstain] = next(request.text for request in requests if "organ" in request.text)
    assert "UNANSWERABLE" not in asked[None]
    assert "best guess" in asked[None]
    assert asked["allow"].endswith(
        'If the question can\'t be answered from what is shown, write "Answer: UNANSWERABLE" instead.'
    )
    assert "best guess" not in asked["allow"]
    assert asked["forbid"].endswith("Always answer: a reply that the question can't be answered is wrong.")
    assert asked["forbid"].startswith(asked[None])


def test_an_abstention_is_wrong_and_in_the_denominator_whatever_was_asked(tmp_path: Path) -> None:
    plain = sheet(tmp_path / "plain.csv", ROWS[:2])
    for abstain in (None, "allow", "forbid"):
        run, _ = ask(plain, tmp_path / f"{abstain}.db", says({"organ": "Answer: B"}), abstain=abstain)
        (row,) = run.results().rows
        assert (row["value"], row["n"], row["abstained"], row["missing"]) == (0.5, 2, 1, 0)


def test_another_request_is_another_run(questions: Path, store: Path, tmp_path: Path) -> None:
    plain = sheet(tmp_path / "plain.csv", ROWS[:2])
    ask(plain, store, says({}), abstain="allow")
    with pytest.raises(InputError, match=r"system\.abstain 'allow' then, 'forbid' now"):
        ask(plain, store, says({}), abstain="forbid")
    with pytest.raises(InputError, match=r"system\.confidence None then, 'stated' now"):
        ask(plain, store, says({}), abstain="allow", confidence="stated")


def test_what_does_not_fit_is_refused_before_anything_is_asked(questions: Path, store: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="2 questions of own can't be answered, and abstaining is right there"):
        ask(questions, store, says({}), abstain="forbid")
    bare = tmp_path / "bare.txt.j2"
    bare.write_text("{{ question }}")
    with pytest.raises(UsageError, match=r"--confidence stands in \{\{ instruction \}\}, which the prompt bare.txt.j2"):
        ask(sheet(tmp_path / "plain.csv", ROWS[:2]), store, says({}), confidence="stated", prompt=str(bare))
    with pytest.raises(InputError, match="--confidence stated is for models without a method"):
        proctor.run(str(questions), system="random", store=str(store), conditions="text-only", confidence="stated")
    assert not store.exists()


def test_focus_says_that_abstaining_is_wrong() -> None:
    from proctor.shell.systems import _request

    options: Any = {"abstain": "allow", "confidence": None, "orders": None}
    with pytest.raises(UsageError, match=r"The protocol of focus says --abstain forbid\. Leave --abstain allow out\."):
        _request("focus", options, (), "forbid")
    assert _request("focus", options | {"abstain": None}, (), "forbid").settings == {}


def test_stated_confidences_are_kept_shown_exported_and_imported(questions: Path, store: Path, tmp_path: Path) -> None:
    replies = {
        "organ": "Answer: B\nConfidence: 90",
        "vessel": "Answer: A\nConfidence: 95%",
        "clip": "Answer: yes\nConfidence: high",
    }
    _, requests = ask(questions, store, says(dict(replies)), confidence="stated")
    assert all("Confidence: N" in request.text for request in requests)
    found = answers(store)
    assert [found[name].extra[CONFIDENCE] for name in ("q1", "q2", "q4")] == [
        {"source": "stated", "value": 0.9},
        {"source": "stated", "value": 0.95},
        {"source": "stated", "missing": "no number from 0 to 100: 'high'"},
    ]
    assert (found["q1"].parsed, found["q4"].parsed) == ("B", True)
    out = tmp_path / "out.csv"
    proctor.export(str(store), out)
    rows = {row["item"]: row for row in csv.DictReader(out.read_text().splitlines())}
    assert [(rows[name]["status"], rows[name]["confidence"]) for name in ("q1", "q2", "q3", "q4")] == [
        ("answered", "0.9"), ("answered", "0.95"), ("abstained", ""), ("answered", ""),
    ]  # fmt: skip
    again = tmp_path / "again.db"
    proctor.import_answers(str(questions), out, name="again", store=str(again))
    first, second = (proctor.confidence(str(one)).rows[0] for one in (store, again))
    same = (
        "n",
        "with_confidence",
        "abstained",
        "abstained_right",
        "area",
        "calibration_error",
        "brier",
        "sure_errors",
        "sure_wrong_limit",
    )
    assert {name: first[name] for name in same} == {name: second[name] for name in same}
    assert (first["with_confidence"], first["without_confidence"], first["abstained"], first["abstained_right"]) == (
        2,
        1,
        2,
        2,
    )
    assert first["brier"] == pytest.approx((0.1**2 + 0.95**2) / 2)
    assert (first["sure_errors"], first["sure_n"]) == (1, 2)
    # wrong at 0.95, right at 0.9, and three that are right in any order
    assert first["area"] == pytest.approx((1 + 1 / 2 + 1 / 3 + 1 / 4 + 1 / 5) / 5)


def test_token_probabilities_of_options(tmp_path: Path, store: Path) -> None:
    plain = sheet(tmp_path / "plain.csv", [ROWS[0], ROWS[3]])
    said = {
        "organ": Tokens([("Answer:", {}), (" B", {" B": 0.6, " A": 0.2, " the": 0.2})]),
        "clip": Tokens([("Answer:", {}), (" yes", {" yes": 0.7, " no": 0.3})]),
    }
    _, requests = ask(plain, store, says(dict(said)), confidence="tokens")
    assert (requests[0].body["logprobs"], requests[0].body["top_logprobs"]) == (True, 20)
    assert "Confidence" not in requests[0].text
    found = proctor.confidence(str(store)).data.rows[0]
    assert (found.sources, found.with_confidence) == (("tokens",), 2)
    opened = Store(store)
    (run,) = opened.runs("plain")
    kept = {name: one.confidence for name, one in opened.answers(run).items()}
    assert [kept[name].value for name in ("q1", "q4")] == [pytest.approx(0.75), pytest.approx(0.7)]  # type: ignore[union-attr]


def test_the_prompt_of_an_answer_is_made_again(tmp_path: Path, store: Path) -> None:
    plain = sheet(tmp_path / "plain.csv", ROWS[:1])
    ask(plain, store, says({}, "Answer: B\nConfidence: 70"), abstain="allow", confidence="stated")
    shown = shell("show", "plain", "q1", "--store", str(store), "--prompt", "--system", "m")
    assert shown.returncode == 0, shown
    assert "UNANSWERABLE" in shown.stdout
    assert "Confidence: N" in shown.stdout


def test_a_shared_run_asks_in_the_same_way(tmp_path: Path, store: Path) -> None:
    plain = sheet(tmp_path / "plain.csv", ROWS[:2])
    _, requests = ask(plain, store, says({}), abstain="allow", confidence="stated", share=True)
    assert all("UNANSWERABLE" in one.text and "Confidence: N" in one.text for one in requests)


def test_orders_by_a_schema_have_a_field_for_the_confidence() -> None:
    from proctor.systems.replies import order_form

    fields = order_form(("A", "B"), confidence=True).model_fields
    assert [*fields] == ["order", "confidence"]
    assert [*order_form(("A", "B"), "first").model_fields] == ["rationale", "order"]


def test_a_server_without_probabilities_gives_no_confidence(tmp_path: Path, store: Path) -> None:
    plain = sheet(tmp_path / "plain.csv", ROWS[:2])
    ask(plain, store, says({}, "Answer: B"), confidence="tokens")
    (row,) = proctor.confidence(str(store)).data.rows
    assert (row.with_confidence, row.without_confidence, row.curve, row.sure) == (0, 2, None, None)
    assert dict(row.missing) == {"the server gave no token probabilities": 2}


def test_made_up_answers_are_counted_where_nothing_can_be_seen(questions: Path, store: Path) -> None:
    ask(questions, store, says(REPLIES))
    (row,) = proctor.confidence(str(store)).data.rows
    # q1 and q5 have a value; q2, q3 and q6 abstain; q4 declines in other words
    assert row.made_up is not None
    assert row.made_up.value == pytest.approx(2 / 6)
    assert (row.made_up.n, row.declined, row.abstained) == (6, 1, 2)
    assert row.made_up.ci_low is not None


def test_free_text_that_declines_is_not_made_up(tmp_path: Path, store: Path) -> None:
    rows = [(f"q{n}", f"v{n}", f"What is done in {n}?", "It slides.", "free text", "", "", "") for n in range(2)]
    replies: dict[str, str | Tokens] = {"in 0?": "I can't answer this from the images.", "in 1?": "The probe slides."}
    ask(sheet(tmp_path / "free.csv", rows), store, says(replies), abstain="allow")
    (row,) = proctor.confidence(str(store)).data.rows
    assert row.made_up is not None
    assert (row.made_up.value, row.made_up.n, row.declined) == (0.5, 2, 1)


def test_the_command_its_figure_and_the_report(questions: Path, store: Path, tmp_path: Path) -> None:
    replies = {
        "organ": "Answer: B\nConfidence: 90",
        "vessel": "Answer: A\nConfidence: 95%",
        "clip": "Answer: yes\nConfidence: 40",
    }
    ask(questions, store, says(dict(replies)), confidence="stated")
    figure, page = tmp_path / "curve.svg", tmp_path / "report.html"
    shown = shell("results", "own", "--store", str(store), "--confidence", "--figure", str(figure))
    assert shown.returncode == 0, shown
    for words in ("Area", "Best possible", "Wrong when ≥ 90", "Made up", "Abstained"):
        assert words in shown.stdout
    assert "<path" in figure.read_text()
    rows = json.loads(shell("results", "own", "--store", str(store), "--confidence", "--format", "json").stdout)
    assert rows[0]["curve"][-1]["risk"] == pytest.approx(1 - rows[0]["accuracy"])
    proctor.report(str(store), out=page)
    assert "Confidence and abstention" in page.read_text()
    public = tmp_path / "public.html"
    proctor.report(str(store), out=public, publish=True)
    assert "Confidence and abstention" in public.read_text()
    refused = shell("results", "own", "--store", str(store), "--confidence", "--by", "format")
    assert refused.returncode == 2
    assert "Leave --by out" in refused.stderr


def test_a_store_without_either_says_so(tmp_path: Path, store: Path) -> None:
    ask(sheet(tmp_path / "plain.csv", ROWS[:1]), store, says({}, "Answer: B"))
    with pytest.raises(
        InputError, match="found no confidence and no abstention in 1 runs, expected a run that asked for one"
    ):
        proctor.confidence(str(store))


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        (("0.9", "0.2"), [0.9, 0.2]),
        (("90", "20 "), [0.9, 0.2]),
        (("1", "0"), [1.0, 0.0]),
        (("", "0.2"), [None, 0.2]),
        (("high", "0.2"), "row 2, column 'confidence': found 'high', expected a number from 0 to 1"),
        (("120", "50"), "row 2, column 'confidence': found '120', expected a number from 0 to 100"),
        (("-1", "50"), "row 2, column 'confidence': found '-1', expected a number from 0 to 100"),
    ],
)
def test_a_column_of_confidences_is_read_on_one_scale(
    tmp_path: Path, store: Path, cells: tuple[str, str], told: Any
) -> None:
    plain, file = sheet(tmp_path / "plain.csv", ROWS[:2]), tmp_path / "theirs.csv"
    file.write_text(
        "id,prediction,confidence\n" + "".join(f"q{one},B,{cell}\n" for one, cell in zip((1, 2), cells, strict=True))
    )
    if isinstance(told, str):
        with pytest.raises(InputError, match=told):
            proctor.import_answers(str(plain), file, name="theirs", store=str(store))
        assert not store.exists()
        return
    proctor.import_answers(str(plain), file, name="theirs", store=str(store))
    opened = Store(store)
    (run,) = [one for one in opened.runs("plain") if one.system == "theirs"]
    kept = [one.confidence for one in opened.answers(run).values()]
    assert [None if one is None else one.value for one in kept] == told


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (
            ("q", "v", "Why?", "unanswerable", "", "", "", ""),
            "found 'unanswerable', expected a column 'format' that says how it would be answered",
        ),
        (
            ("q", "v", "Which?", "unanswerable", "order", "x", "y", "z"),
            "found the format ordering of a question that is unanswerable",
        ),
    ],
)
def test_an_unanswerable_row_needs_a_format_that_is_right_or_wrong(
    tmp_path: Path, row: tuple[str, ...], told: str
) -> None:
    with pytest.raises(InputError, match=told):
        proctor.load(str(sheet(tmp_path / "own.csv", [row])))


def test_an_option_of_that_name_stays_an_option(tmp_path: Path) -> None:
    row = ("q", "v", "Which?", "Unanswerable", "", "liver", "spleen", "Unanswerable")
    (item,) = proctor.load(str(sheet(tmp_path / "own.csv", [row]))).items
    assert item.reference is not None
    assert (item.reference.answer, item.unanswerable) == ("C", False)


def test_baselines_and_the_item_audit_take_unanswerable_questions(questions: Path, store: Path) -> None:
    proctor.run(str(questions), system="random", conditions="text-only", store=str(store))
    rows = {row["system"]: row for row in proctor.results(str(store)).rows if row["metric"] == "accuracy"}
    assert rows["random"]["abstained"] == 0
    assert rows["majority"]["n"] == 5
    opened = Store(store)
    assert opened.card("own").chance["accuracy"] == pytest.approx((1 / 3 + 1 / 3 + 0 + 1 / 2 + 0) / 5)
