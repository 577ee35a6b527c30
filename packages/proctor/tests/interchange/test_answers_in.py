"""Answers of other programs come in: their own writers, their statuses, and what can't be mapped."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import proctor
from proctor.core import (
    BenchmarkReader,
    ConfigurationError,
    InputError,
    Status,
    UsageError,
    generator,
    read_safe_cell,
    safe_cell,
)
from proctor.interchange import recognised
from proctor.runs import Store
from tests.support.foreign import foreign
from tests.support.lamp_benchmark import lamps
from tests.support.program import proctor as program

IDS = [item.id for item in lamps().items]
RIGHT = ["no" if name.endswith("q3") else "yes" for name in IDS]


def imported(file: Path, **options: Any) -> proctor.Evaluation:
    return proctor.import_answers(lamps(), file, store=":memory:", **{"name": "a model", **options})


def statuses(made: proctor.Evaluation) -> dict[str, str]:
    return {name: str(one.status) for name, one in made.store.answers(made.runs[0]).items()}


def figure(made: proctor.Evaluation, metric: str = "accuracy", failed: str = "wrong") -> float:
    rows = made.results(failed=failed).to_pandas()
    return float(rows[rows.metric == metric]["value"].iloc[0])


def jsonl(file: Path, rows: list[Any]) -> Path:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


# -- Inspect: its own evaluation, its own reader


def test_inspect_and_proctor_read_each_others_logs(tmp_path: Path) -> None:
    found = foreign("tests.support.foreign_inspect", tmp_path)
    for form in ("eval", "json"):
        read = found["read"][form]
        assert read["system"] == ["mockllm/model"]
        assert (read["statuses"]["room-1/q1"], read["statuses"]["room-1/q2"], read["statuses"]["room-1/q3"]) == (
            "failed",
            "timed_out",
            "refused",
        )
        # Six of eleven are wrong: two that did not answer, the lie in room 2, and "yes" to each q3 of three rooms.
        assert read["scored"] == 11
        assert read["figures"]["match/inspect"] == pytest.approx(read["inspect"]["accuracy"], abs=1e-9)
        assert read["figures"]["accuracy/code"] == pytest.approx(5 / 11, abs=1e-9)
        wrote = found["write"][form]
        assert wrote["same"]
        assert wrote["samples"] == 12
        assert "room-1/q1" not in wrote["scored"]
        assert wrote["unscored"] == 1
        assert wrote["mean"] == pytest.approx(5 / 11, abs=1e-9)
        assert sum(wrote["scored"].values()) / len(wrote["scored"]) == pytest.approx(wrote["mean"], abs=1e-9)
        assert wrote["metadata"]["proctor"]["licence"] == "CC0-1.0"
        assert wrote["figures"]["accuracy/inspect"] == pytest.approx(wrote["figures"]["accuracy/code"], abs=1e-9)


def test_inspects_samples_end_by_the_words_of_our_own_runs(tmp_path: Path) -> None:
    """Half a text was an answer where Inspect did not know why it ended; a cut one was not told."""
    found = foreign("tests.support.foreign_inspect", tmp_path, "ended")
    limit = "the reply was cut off by the model's token limit (--settings max_tokens=…)"
    assert found["answers"] == [
        ["answered", "", {"finish_reason": "stop", "cut_off": False}],
        ["answered", "", {"finish_reason": "max_tokens", "cut_off": True}],
        ["error", limit, {"finish_reason": "max_tokens", "cut_off": True}],
        ["error", "the context is too long", {}],
        ["answered", "", {"finish_reason": "model_length", "cut_off": True}],
        ["refused", "content_filter", {"finish_reason": "content_filter", "cut_off": False}],
        ["failed", "the reply broke off ('unknown')", {"finish_reason": "unknown", "cut_off": False}],
        ["answered", "", {"finish_reason": "tool_calls", "cut_off": False}],
        ["failed", "the reply broke off ('stop': the upstream is gone)", {"finish_reason": "stop", "cut_off": False}],
    ]
    assert "2 failed, for example: the reply broke off ('unknown')" in found["notes"]
    assert "2 answers cut off by the model's token limit" in found["notes"]


def test_inspects_package_is_named_where_it_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    file = tmp_path / "log.json"
    file.write_text('{"version": 2, "status": "success", "eval": {}}')
    assert recognised(file) == "inspect"
    with pytest.raises(ConfigurationError, match=r"pip install 'proctor-eval\[inspect\]'"):
        imported(file)


# -- lmms-eval: its own tracker, its own readers


def test_lmms_eval_and_proctor_read_each_others_samples(tmp_path: Path) -> None:
    wrote = foreign("tests.support.foreign_lmms_eval", "write", tmp_path)
    file = Path(wrote["file"])
    with pytest.raises(InputError, match=r"line 1: found '0', expected the id of an item, such as 'room-1/q1'"):
        imported(file)
    made = proctor.import_answers(lamps(), file, store=tmp_path / "a.db", id_column="position")
    assert made.systems == ("a-lab/seer-7b",)
    assert statuses(made)["room-1/q1"] == "failed"
    assert figure(made, "exact_match") == pytest.approx(wrote["exact_match"], abs=1e-9)
    assert figure(made) == pytest.approx(wrote["exact_match"], abs=1e-9)
    assert figure(made, failed="exclude") == pytest.approx(12 * wrote["exact_match"] / 11, abs=1e-9)
    answer = made.store.answers(made.runs[0])["room-1/q2"]
    assert (answer.text, answer.parsed, answer.usage.input_tokens) == ("Answer: yes", True, 90)

    written = made.export(tmp_path / "ours", format="lmms-eval")
    assert any("1 failed answer" in line for line in written.dropped)
    read = foreign("tests.support.foreign_lmms_eval", "read", tmp_path / "ours", "lamps_video")
    kept = made.store.answers(made.runs[0])
    assert read["replies"] == [kept[name].text for name in IDS]
    assert read["results"]["results"]["lamps_video"]["accuracy,none"] == pytest.approx(figure(made), abs=1e-9)
    (samples,) = (tmp_path / "ours").glob("*_samples_*.jsonl")
    again = proctor.import_answers(lamps(), samples, store=":memory:")
    assert again.systems == made.systems
    assert again.conditions == ("video",)
    assert statuses(again) == statuses(made)
    assert figure(again) == pytest.approx(figure(made), abs=1e-9)


def test_a_place_with_another_question_is_refused(tmp_path: Path) -> None:
    rows = [{"doc_id": n, "filtered_resps": "yes", "input": f"Is lamp {n % 3 + 2} on?"} for n in range(12)]
    with pytest.raises(InputError) as caught:
        imported(jsonl(tmp_path / "a.jsonl", rows), id_column="position")
    assert "line 1: found 'Is lamp 2 on?', expected the question of the item at this index" in str(caught.value)
    assert any("12 times" in note for note in caught.value.__notes__)


def test_places_may_be_those_of_the_items_that_count(tmp_path: Path) -> None:
    whole = lamps()
    items = tuple(
        item.model_copy(update={"question": f"Lamp {number}?", "tags": {"keep": number % 2 == 1}})
        for number, item in enumerate(whole.items)
    )
    some = replace(whole, items=items, only={"keep": True}, facets=(), buckets=())
    asked = [item.question for item in some.counted()]
    rows = [{"doc_id": n, "filtered_resps": "yes", "input": f"{text}\nAnswer."} for n, text in enumerate(asked)]
    file = jsonl(tmp_path / "a.jsonl", rows)
    made = proctor.import_answers(some, file, store=":memory:", name="a", id_column="position")
    assert list(made.store.answers(made.runs[0])) == [item.id for item in some.counted()]


def test_log_likelihoods_are_no_words(tmp_path: Path) -> None:
    rows = [{"doc_id": IDS[0], "filtered_resps": [[-1.5, False], [-0.2, True]]}]
    with pytest.raises(InputError, match="found log-likelihoods, no text"):
        imported(jsonl(tmp_path / "a.jsonl", rows))


# -- VLMEvalKit


@pytest.mark.parametrize("ending", ["xlsx", "tsv", "csv", "json"])
def test_vlmevalkit_predictions(tmp_path: Path, ending: str) -> None:
    said = ["Failed to obtain answer via API.", "", *RIGHT[2:11], "=cmd()"]
    hits = [0, 0, *[1] * 9, 0]
    frame = pd.DataFrame({"index": IDS, "question": "?", "answer": RIGHT, "prediction": said, "hit": hits})
    file = tmp_path / f"model_lamps.{ending}"
    # As vlmeval/smp/file.py `dump` writes them, with every cell in quotes and no formula.
    if ending == "xlsx":
        import openpyxl

        book = openpyxl.Workbook()
        sheet = book.active
        assert sheet is not None
        for row in [list(frame.columns), *frame.to_numpy().tolist()]:
            sheet.append(row)
        sheet.cell(13, 4).data_type = "s"
        book.save(file)
    elif ending == "json":
        frame.to_json(file, orient="records")
    else:
        frame.to_csv(file, sep="\t" if ending == "tsv" else ",", index=False, quoting=1)
    assert recognised(file) == "vlmevalkit"
    made = imported(file)
    assert made.notes[0] == f"{file.name}: read as vlmevalkit (Predictions of VLMEvalKit)"
    found = statuses(made)
    assert [found[IDS[0]], found[IDS[1]], found[IDS[2]], found[IDS[11]]] == ["failed", "failed", "answered", "answered"]
    assert figure(made, failed="exclude") == pytest.approx(9 / 10, abs=1e-9)
    assert figure(made, "hit", failed="exclude") == pytest.approx(9 / 10, abs=1e-9)
    assert made.store.answers(made.runs[0])[IDS[11]].text == "=cmd()"


# -- OpenAI's batches


def _line(name: str, content: str | None = None, *, status: int = 200, **message: Any) -> dict[str, Any]:
    choice = {"message": {"content": content, **message}, "finish_reason": "stop"}
    body = {"model": "gpt-x", "choices": [choice], "usage": {"prompt_tokens": 7, "completion_tokens": 2}}
    return {"id": "b", "custom_id": name, "response": {"status_code": status, "body": body}, "error": None}


def test_openai_batches(tmp_path: Path) -> None:
    error = {"error": {"message": "maximum context length", "code": "context_length_exceeded"}}
    blocked = {"error": {"message": "not allowed", "code": "content_policy_violation"}}
    part = {"content": [{"type": "output_text", "text": "yes"}]}
    rows: list[dict[str, Any]] = [
        _line(IDS[0], "Answer: yes"),
        {"custom_id": IDS[1], "response": None, "error": {"code": "batch_expired", "message": "too late"}},
        {"custom_id": IDS[2], "response": {"status_code": 429, "body": {}}, "error": None},
        {"custom_id": IDS[3], "response": {"status_code": 400, "body": error}, "error": None},
        {"custom_id": IDS[4], "response": {"status_code": 400, "body": blocked}, "error": None},
        _line(IDS[5], None, refusal="I can't look at people."),
        {"custom_id": IDS[6], "response": {"status_code": 200, "body": {"output": [part]}}, "error": None},
        {"custom_id": IDS[7], "response": {"status_code": 500, "body": {}}, "error": None},
        _line("elsewhere", "yes"),
    ]
    file = jsonl(tmp_path / "batch.jsonl", rows)
    made = imported(file, name="")
    assert made.systems == ("gpt-x",)
    words = ["answered", "failed", "failed", "error", "refused", "refused", "answered", "failed"]
    assert statuses(made) == dict(zip(IDS, words, strict=False))
    assert made.store.answers(made.runs[0])[IDS[0]].usage.input_tokens == 7
    assert any(
        "Line 9 left out: no question has the id 'elsewhere' (the first has 'room-1/q1')." in note
        for note in made.notes
    )
    assert any("4 items of lamps without an answer" in note for note in made.notes)


def test_recorded_replies_end_by_the_words_of_live_ones(tmp_path: Path) -> None:
    """Half a text with `abort` was an answer."""
    words = ["stop", "length", "MAX_TOKENS", "abort", "nap", "content_filter", "sensitive", None]
    rows = [_line(name, "Answer: yes") for name in IDS[: len(words)]]
    for row, word in zip(rows, words, strict=True):
        row["response"]["body"]["choices"][0]["finish_reason"] = word
    rows.append(_line(IDS[8], ""))
    rows[-1]["response"]["body"]["choices"][0]["finish_reason"] = "length"
    part = {"content": [{"type": "output_text", "text": "yes"}]}
    cut = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": [part]}
    broken = {"status": "failed", "error": {"message": "busy"}, "output": [part]}
    for name, body in ((IDS[9], cut), (IDS[10], broken)):
        rows.append({"custom_id": name, "response": {"status_code": 200, "body": body}, "error": None})
    made = imported(jsonl(tmp_path / "batch.jsonl", rows), name="gpt-x")
    ended = [
        "answered",
        "answered",
        "answered",
        "failed",
        "failed",
        "refused",
        "refused",
        "answered",
        "error",
        "answered",
        "failed",
    ]
    assert statuses(made) == dict(zip(IDS, ended, strict=False))
    answers = made.store.answers(made.runs[0])
    assert [answers[name].extra.get("cut_off") for name in IDS[:3]] == [False, True, True]
    assert [answers[name].extra.get("finish_reason") for name in IDS[:5]] == words[:5]
    assert answers[IDS[3]].reason == "the reply broke off ('abort')"
    assert answers[IDS[4]].reason == "the reply ended for an unknown reason ('nap')"
    assert answers[IDS[8]].reason == "the reply was cut off by the model's token limit (--settings max_tokens=…)"
    assert answers[IDS[9]].extra == {"finish_reason": "max_output_tokens", "cut_off": True}
    assert answers[IDS[10]].reason == "the reply broke off ('failed': busy)"


# -- plain tables


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_a_table_of_ids_and_answers(tmp_path: Path, ending: str) -> None:
    frame = pd.DataFrame({"item_id": IDS, "prediction": ["yes"] * 12})
    frame["status"] = [*["answered"] * 10, "refused", "failed"]
    file = tmp_path / f"a.{ending}"
    if ending == "csv":
        frame.to_csv(file, index=False)
    elif ending == "jsonl":
        frame.to_json(file, orient="records", lines=True)
    else:
        frame.to_parquet(file)
    made = imported(file)
    assert figure(made, failed="exclude") == pytest.approx(7 / 11, abs=1e-9)  # eight times yes, one of them refused
    assert statuses(made)[IDS[10]] == "refused"


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_what_was_exported_comes_in_again(tmp_path: Path, ending: str) -> None:
    table = tmp_path / "a.csv"
    said = ["=HYPERLINK(1)", "", *RIGHT[2:]]
    pd.DataFrame({"id": IDS, "answer": said}).to_csv(table, index=False)
    first = imported(table, condition="black")
    assert statuses(first)[IDS[1]] == "failed"
    out = tmp_path / f"rows.{ending}"
    first.export(out)
    again = imported(out)
    assert again.conditions == ("black",)
    before, after = (made.store.answers(made.runs[0]) for made in (first, again))
    assert {name: one.text for name, one in before.items()} == {name: one.text for name, one in after.items()}
    assert statuses(again) == statuses(first)
    assert figure(again) == figure(first)


def test_faults_are_listed_at_once(tmp_path: Path) -> None:
    rows = [
        {"id": IDS[0], "answer": "yes"},
        {"id": IDS[0], "answer": "no"},
        {"id": IDS[1], "answer": "no", "status": "odd"},
    ]
    with pytest.raises(InputError) as caught:
        imported(jsonl(tmp_path / "a.jsonl", rows))
    lines = [str(caught.value), *caught.value.__notes__]
    assert any("row 3, column 'status'" in line and "'odd'" in line for line in lines)
    assert any("row 2: found another answer to room-1/q1, expected one (row 1)" in line for line in lines)


def test_columns_that_nobody_can_tell(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    pd.DataFrame({"Frage": IDS, "Antwort": "yes"}).to_csv(file, index=False)
    with pytest.raises(UsageError, match="Which column holds the question ids"):
        imported(file)
    with pytest.raises(UsageError, match="did you mean 'Frage'"):
        imported(file, id_column="Frege")
    assert figure(imported(file, id_column="Frage", answer_column="Antwort")) == pytest.approx(8 / 12)
    with pytest.raises(UsageError, match="did you mean 'vlmevalkit'"):
        imported(file, form="vlmevalkitt")


def test_a_benchmarks_own_tables_stay_its_own(tmp_path: Path) -> None:
    from proctor.api.import_export import form_of

    class Native(BenchmarkReader):
        name = "native"
        summary = "one with a format of its own"

        def load(self, data: Path, media: Path | None = None, *, seed: int = 0) -> proctor.Benchmark:
            return lamps()

        def read_recorded(self, path: Path, benchmark: proctor.Benchmark) -> Any:
            raise NotImplementedError

    table = tmp_path / "a.csv"
    table.write_text("id,answer\na,b\n")
    samples = jsonl(tmp_path / "b.jsonl", [{"doc_id": 1, "filtered_resps": "a"}])
    assert form_of(table, "", Native()) == ""
    assert form_of(table, "table", Native()) == "table"
    assert form_of(samples, "", Native()) == "lmms-eval"
    assert form_of(tmp_path, "", Native()) == ""


def test_broken_files_are_one_line_each(tmp_path: Path) -> None:
    for name, content in {
        "a.eval": b"PK\x03\x04broken",
        "b.jsonl": b'{"custom_id": "a", "response": {}}\n{"custom_id": ',
        "c.jsonl": b'{"doc_id": 1, "filtered_resps": "x"}\n[1]\n',
        "d.csv": b"item_id,prediction\nroom-1/q1\n",
        "e.parquet": b"PAR1 not",
        "f.xlsx": b"PK\x05\x06" + bytes(18),
        "g.jsonl": b"\x00\x01",
        "h.json": b"[" * 5000,
    }.items():
        file = tmp_path / name
        file.write_bytes(content)
        with pytest.raises((InputError, ConfigurationError)) as caught:
            imported(file)
        assert "\n" not in str(caught.value)


def test_the_command_says_what_it_took_the_file_for(tmp_path: Path) -> None:
    questions = tmp_path / "questions.csv"
    pd.DataFrame({"id": ["q1", "q2"], "question": "Is it on?", "answer": ["yes", "no"], "group": ["a", "b"]}).to_csv(
        questions, index=False
    )
    rows = [_line("q1", "yes"), {"custom_id": "q2", "response": None, "error": {"code": "batch_expired"}}]
    batch = jsonl(tmp_path / "out.jsonl", rows)
    done = program("import", questions, batch, "--store", tmp_path / "s.db")
    assert done.returncode == 0, done.stderr
    assert "out.jsonl: read as openai-batch" in done.stderr
    assert "1 failed, for example: batch_expired" in done.stderr
    assert done.stdout.startswith("2 answers and 0 judgements as gpt-x / video")
    assert Status.FAILED.value in done.stderr


def test_one_of_several_systems_and_conditions_is_named(tmp_path: Path) -> None:
    rows = [{"item": name, "text": "yes", "system": system} for name in IDS for system in ("a", "b")]
    file = jsonl(tmp_path / "rows.jsonl", rows)
    with pytest.raises(InputError, match=r"column 'system': found a, b, expected one, or --name one of them"):
        imported(file, name="")
    assert imported(file, name="b").systems == ("b",)
    both = [{"item": name, "text": "yes", "condition": one} for name in IDS for one in ("video", "black")]
    with pytest.raises(InputError, match=r"column 'condition': found black, video"):
        imported(jsonl(tmp_path / "both.jsonl", both))


def test_published_answers_go_round_without_a_change(data: Path, tmp_path: Path) -> None:
    folder = data / "rexsonovqa"
    store = tmp_path / "runs.db"
    recorded = folder / "results" / "gemini-3-pro"
    made = proctor.import_answers("rexsonovqa", recorded, data=folder, name="gemini-3-pro", store=store)
    first = made.results().to_pandas()
    before = first[(first.metric == "accuracy") & (first.scorer == "code")]["value"].iloc[0]
    made.export(tmp_path / "lmms", format="lmms-eval", all_items=True)
    made.export(tmp_path / "rows.parquet", all_items=True)
    (samples,) = (tmp_path / "lmms").glob("*_samples_*.jsonl")
    for name, file, form in (("lmms", samples, ""), ("rows", tmp_path / "rows.parquet", "table")):
        again = proctor.import_answers(
            "rexsonovqa", file, data=folder, name="gemini-3-pro", store=tmp_path / f"{name}.db", form=form
        )
        table = again.results().to_pandas()
        after = table[(table.metric == "accuracy") & (table.scorer == "code")]["value"].iloc[0]
        assert after == pytest.approx(before, abs=1e-9)
        old, new = made.store.answers(made.runs[0]), again.store.answers(again.runs[0])
        assert {key: (one.status, one.text) for key, one in old.items()} == {
            key: (one.status, one.text) for key, one in new.items()
        }


# -- what Proctor wrote itself comes back by the path that it was written to


def test_a_csv_export_comes_back_word_for_word(tmp_path: Path) -> None:
    parts = ["'", "=", "+1", "-", "@", "\t", "\n", "a", "''", " ", '"', ","]
    draw = generator(0, "formulas")
    texts = ["'=1", "''=1", "=1", "'tis", "'", "'\t=", "-", "'@", "'''+"]
    texts += ["".join(draw.choice(parts, size=draw.integers(1, 6))) for _ in range(300)]
    assert [read_safe_cell(safe_cell(text)) for text in texts] == texts
    assert not any(str(safe_cell(text)).startswith(("=", "+", "-", "@", "\t", "\r", "\n")) for text in texts)
    texts = [text for text in texts if text.strip()]
    scores = ("", "'", "=", "'=", "-")
    ids = [f"{scores[number % 5]}{number}" for number in range(len(texts))]
    questions, store, out = tmp_path / "own.json", tmp_path / "s.db", tmp_path / "out.csv"
    asked = [{"id": name, "question": "Is it on?", "answer": "yes", "patient": name} for name in ids]
    questions.write_text(json.dumps(asked), encoding="utf-8")
    said = jsonl(tmp_path / "said.jsonl", [{"id": name, "answer": one} for name, one in zip(ids, texts, strict=True)])
    first = proctor.import_answers(questions, said, name="=mine", store=store)
    proctor.export(first, out)
    assert program("import", questions, out, "--store", tmp_path / "t.db").returncode == 0
    (run,) = (one for one in Store(tmp_path / "t.db").runs("own") if one.condition == "video")
    assert run.system == "=mine"
    assert {name: one.text for name, one in Store(tmp_path / "t.db").answers(run).items()} == dict(
        zip(ids, texts, strict=True)
    )


@pytest.fixture(scope="module")
def recorded(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a model's published answers."""
    store = tmp_path_factory.mktemp("recorded") / "s.db"
    folder = data / "rexsonovqa"
    proctor.import_answers("rexsonovqa", folder / "results" / "gemini-3-pro", data=folder, name="g", store=store)
    return store


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet", "lmms-eval"])
def test_what_was_exported_is_imported_by_its_path_alone(form: str, recorded: Path, data: Path, tmp_path: Path) -> None:
    out, store = tmp_path / (f"out.{form}" if form != "lmms-eval" else "out"), tmp_path / "t.db"
    proctor.export(recorded, out, systems="g", format=form)
    done = program("import", "rexsonovqa", out, "--data", data / "rexsonovqa", "--store", store)
    assert done.returncode == 0, done.stderr
    first, again = Store(recorded), Store(store)
    (old,), (new,) = ([run for run in one.runs("rexsonovqa") if run.system == "g"] for one in (first, again))
    assert new.condition == old.condition == "video"
    said = {name: (one.text, one.parsed, one.status) for name, one in first.answers(old).items()}
    told = {name: (one.text, one.parsed, one.status) for name, one in again.answers(new).items()}
    wanted = {name: said[name] for name in told}
    assert (len(told) >= 249, told) == (True, wanted)


def test_own_questions_take_the_folder_that_lmms_eval_wrote(tmp_path: Path) -> None:
    questions, out = tmp_path / "own.csv", tmp_path / "out"
    questions.write_text("id,question,answer,patient\nq1,Is it on?,yes,p1\nq2,Is it on?,no,p2\n")
    made = proctor.run(proctor.load(questions), "random", conditions="text-only", store=tmp_path / "s.db")
    proctor.export(made, out, format="lmms-eval")
    again = proctor.import_answers(questions, out, name="again", store=":memory:")
    samples = next(out.glob("*_samples_*.jsonl"))
    assert again.runs[0].settings["recorded"] == samples.name
    texts = [{name: one.text for name, one in own.store.answers(own.runs[0]).items()} for own in (made, again)]
    assert texts[0] == texts[1] != {}
    (out / "b_samples_own.jsonl").write_text(samples.read_text())
    why = (
        rf"out: files of samples \(\*_samples_\*.jsonl\): found 2 \({samples.name}, b_samples_own.jsonl\), expected one"
    )
    with pytest.raises(InputError, match=why):
        proctor.import_answers(questions, out, name="again", store=":memory:")
    (tmp_path / "none").mkdir()
    with pytest.raises(InputError, match="found none, expected one, or the path of one"):
        proctor.import_answers(questions, tmp_path / "none", form="lmms-eval", name="x", store=":memory:")
