"""Results go out: Every Eval Ever by its own validator, Hugging Face's files, a table for a model's card."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import JsonValue

import proctor
from proctor.core import Answer, Item, Reference, Score, Status, UsageError
from proctor.core.formats import BinaryFormat
from proctor.interchange.every_eval_ever import _check
from proctor.interchange.hugging_face import markdown_text
from proctor.runs import Store
from proctor.runs.schema import SHOWN
from tests.support.foreign import foreign
from tests.support.program import proctor as program
from tests.support.report_store import a_benchmark, fill

_VALIDATE = """
import json, sys
from every_eval_ever.validate import main
sys.argv[0] = "eee-validate"
print(json.dumps(main(["--format", "github", *sys.argv[1:]])))
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    made = Store(tmp_path_factory.mktemp("out") / "toy.db")
    fill(made, a_benchmark())
    return made


def _written(folder: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    (results,) = folder.rglob("*.json")
    (samples,) = folder.rglob("*_samples.jsonl")
    assert samples.name == f"{results.stem}_samples.jsonl"
    rows = [json.loads(line) for line in samples.read_text(encoding="utf-8").splitlines()]
    return json.loads(results.read_text(encoding="utf-8")), rows


def test_a_run_without_any_score_is_no_result_of_0(tmp_path: Path) -> None:
    """The server was down; what is missing must not stand in a registry as a number."""
    store = Store(tmp_path / "down.db")
    benchmark = a_benchmark()
    store.add_benchmark(benchmark)
    run = store.start_run(benchmark.name, "down", "video", {})
    store.write(run, [(Answer(item_id=item.id, status=Status.FAILED), []) for item in benchmark.items])
    made = proctor.export(store, tmp_path / "eee", benchmark.name, format="every-eval-ever", systems="down")
    assert made.count == 0
    assert any("without any answer that has a score" in one for one in made.dropped)
    assert "down: no result, so no file" in made.notes


def test_every_eval_ever_holds_what_results_say(store: Store, tmp_path: Path) -> None:
    out = tmp_path / "eee"
    made = proctor.export(
        store,
        out,
        "toy",
        format="every-eval-ever",
        systems="looker",
        origin={"model": "a-lab/looker-1", "licence": "CC0-1.0"},
    )
    record, rows = _written(out)
    ours = proctor.results(store, "toy", systems="looker").to_pandas()
    assert len(record["evaluation_results"]) == len(ours) == 8
    for one in record["evaluation_results"]:
        condition, metric, scorer = one["evaluation_result_id"].split("/")
        (row,) = ours[(ours.condition == condition) & (ours.metric == metric) & (ours.scorer == scorer)].to_dict(
            "records"
        )
        assert one["score_details"]["score"] == (row["value"] if row["policy"] != "both" else row["if_wrong"])
        interval = one["score_details"]["uncertainty"]["confidence_interval"]
        assert (interval["lower"], interval["upper"]) == (row["ci_low"], row["ci_high"])
        assert one["score_details"]["details"]["failed"] == str(row["failed"])
        assert one["source_data"]["additional_details"]["licence"] == "CC0-1.0"
    # One accuracy for each of 42 questions and one score for each of 6 free ones, but for what did not end in an answer.
    fates = [
        answer.status for run in store.runs("toy") if run.system == "looker" for answer in store.answers(run).values()
    ]
    assert (
        len(rows)
        == 4 * 48 - sum(status is not Status.ANSWERED for status in fates)
        == record["detailed_evaluation_results"]["total_rows"]
    )
    assert sum(status is Status.FAILED for status in fates) == 4
    assert made.dropped[1].startswith("8 answers without a score (failed, timed out, refused, error)")
    right = [row["evaluation"]["is_correct"] for row in rows if row["evaluation_result_id"] == "video/accuracy/code"]
    share = next(one for one in record["evaluation_results"] if one["evaluation_result_id"] == "video/accuracy/code")
    # 42 questions count: those that failed or came late have no row, and are wrong in the score.
    assert sum(right) / 42 == pytest.approx(share["score_details"]["score"], abs=1e-12)
    files = [str(file) for file in sorted(out.rglob("*.json*"))]
    assert foreign(_VALIDATE, *files) == 0


def test_the_same_export_has_the_same_names(store: Store, tmp_path: Path) -> None:
    for name in ("one", "two"):
        proctor.export(store, tmp_path / name, "toy", format="every-eval-ever", systems="guesser")
    first, second = (
        sorted(file.relative_to(tmp_path / name) for file in (tmp_path / name).rglob("*.json*"))
        for name in ("one", "two")
    )
    assert first == second


def test_a_file_that_breaks_the_schema_is_not_written(store: Store, tmp_path: Path) -> None:
    with pytest.raises(proctor.InputError) as caught:
        proctor.export(store, tmp_path / "eee", "toy", format="every-eval-ever", origin={"relationship": "friend"})
    assert "field 'source_metadata.evaluator_relationship': found 'friend' is not one of" in str(caught.value)
    assert not (tmp_path / "eee").exists()
    with pytest.raises(proctor.InputError, match="schema_version"):
        _check({}, "every_eval_ever-0.3.0.json", "a.json")


def test_origin_is_checked(store: Store, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did you mean 'licence'"):
        proctor.export(store, tmp_path / "a.md", "toy", format="model-card", origin={"license": "MIT"})
    with pytest.raises(UsageError, match=r"these are several systems: guesser, looker. Choose one by --system"):
        proctor.export(store, tmp_path / "eee", "toy", format="every-eval-ever", origin={"model": "a/b"})
    with pytest.raises(UsageError, match="dataset on the Hub"):
        proctor.export(store, tmp_path / "hf", "toy", format="hf-results")


def test_hugging_face_files(store: Store, tmp_path: Path) -> None:
    origin = {"dataset": "a-lab/toy", "url": "https://example.org/run"}
    made = proctor.export(store, tmp_path / "hf", "toy", format="hf-results", systems="guesser", origin=origin)
    (file,) = (tmp_path / "hf").rglob("*.yaml")
    assert file.relative_to(tmp_path / "hf").as_posix() == "unknown__guesser/.eval_results/toy.yaml"
    entries = yaml.safe_load(file.read_text(encoding="utf-8"))
    ours = proctor.results(store, "toy", systems="guesser").to_pandas()
    ours = ours[ours.metric == "accuracy"]
    assert [one["value"] for one in entries] == list(ours.value)
    assert entries[0]["dataset"] == {"id": "a-lab/toy", "task_id": "toy_black"}
    assert isinstance(entries[0]["date"], str)
    assert entries[0]["source"]["url"] == "https://example.org/run"
    assert "metrics other than accuracy" in made.dropped[1]
    proctor.export(store, tmp_path / "eval.yaml", "toy", format="hf-eval")
    registered = yaml.safe_load((tmp_path / "eval.yaml").read_text(encoding="utf-8"))
    assert {one["dataset"]["task_id"] for one in entries} <= {one["id"] for one in registered["tasks"]}
    assert registered["evaluation_framework"] == "proctor"


def test_incomplete_runs_have_no_single_value_for_the_hub(store: Store, tmp_path: Path) -> None:
    made = proctor.export(
        store, tmp_path / "hf", "toy", format="hf-results", systems="looker", origin={"dataset": "a/b"}
    )
    assert made.count == 0
    assert "4 results of incomplete runs" in made.dropped[2]


def test_a_model_card_is_one_table_that_no_name_can_break(tmp_path: Path) -> None:
    item = Item(id="q", group="v", question="?", answer=BinaryFormat(), reference=Reference(answer=True))
    mine = proctor.Benchmark("b", "A <b>title</b>", (item,), (proctor.ACCURACY,), "accuracy", conditions=("text-only",))
    said = proctor.system(name="a|b\n<img>")(lambda frames: "yes")
    made = proctor.run(mine, said, conditions="text-only", store=":memory:", baselines=False)
    shown = made.export(tmp_path / "card.md", format="model-card", origin={"citation": "Us, 2026"})
    lines = (tmp_path / "card.md").read_text(encoding="utf-8").splitlines()
    assert shown.count == 1
    assert lines[0] == r"## A \<b\>title\</b\>"
    assert lines[4].startswith(r"| a\|b \<img\> | text-only | Accuracy | 100.0 %")
    assert "Citation: Us, 2026." in lines
    assert markdown_text("*a*") == r"\*a\*"


def test_the_command_prints_what_is_dropped(store: Store, tmp_path: Path) -> None:
    done = program("export", "toy", "--store", store.shown, "--format", "every-eval-ever", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "dropped: media: the schema has no field" in done.stderr
    assert done.stdout.startswith("2 systems in ")
    listed = program("list", "formats")
    assert "every-eval-ever" in listed.stdout
    unknown = program("export", "toy", "--store", store.shown, "--format", "every-eval", "--out", tmp_path / "x")
    assert unknown.returncode == 2
    assert "every-eval-ever" in unknown.stderr


def test_what_was_shown_goes_along(tmp_path: Path) -> None:
    made = Store(tmp_path / "a.db")
    benchmark = a_benchmark(items=1)
    made.add_benchmark(benchmark)
    run = made.start_run("toy", "seer", "video", {"system": {"model": "a:b", "base_url": "http://10.0.0.7/v1"}})
    shown: dict[str, JsonValue] = {
        "times": [0.0, 2.5],
        "prefixes": ["7692c3ad", "3fc4ccfe"],
        "sha256": "ab" * 32,
        "media": {"a.mp4": "cd" * 32},
    }
    answer = Answer(item_id="q000", text="Answer: A", parsed="A", extra={SHOWN: [shown]})
    made.write(run, [(answer, [Score(item_id="q000", metric="accuracy", value=1.0)])])
    proctor.export(made, tmp_path / "eee", "toy", format="every-eval-ever")
    record, rows = _written(tmp_path / "eee")
    assert json.loads(rows[0]["metadata"]["shown"]) == [shown]
    assert record["model_info"]["id"] == "a/b"
    assert "10.0.0.7" not in json.dumps(record)


# -- JSON Lines whose lines are lines for every reader

BREAKS = "one\u2028two\u2029three\u0085four"


def test_json_lines_have_one_line_each_also_for_readers_that_know_more_line_ends(tmp_path: Path) -> None:
    """Models write U+2028. `str.splitlines`, as many readers split, must find what `json` wrote as one line."""
    asked = [
        {"id": f"q{n}", "question": f"{BREAKS}?", "answer": "clip", "format": "short text", "patient": f"p{n}"}
        for n in (1, 2)
    ]
    questions = tmp_path / "own.json"
    questions.write_text(json.dumps(asked), encoding="utf-8")
    said = tmp_path / "said.jsonl"
    said.write_text("".join(json.dumps({"id": one["id"], "answer": BREAKS}) + "\n" for one in asked), encoding="utf-8")
    made = proctor.import_answers(questions, said, name="m", store=tmp_path / "s.db", condition="text-only")
    outs = {
        "jsonl": "rows.jsonl",
        "lmms-eval": "lmms",
        "croissant": "croissant",
        "inspect-task": "task",
        "every-eval-ever": "eee",
        "lmms-eval-task": "lmms-task",
    }
    for form, name in outs.items():
        more = {"origin": {"licence": "CC0-1.0", "model": "a/m"}} if form == "every-eval-ever" else {}
        made.export(tmp_path / name, format=form, conditions="text-only", **more)
    files = [
        file
        for name in outs.values()
        for file in [tmp_path / name, *(tmp_path / name).rglob("*")]
        if file.suffix == ".jsonl"
    ]
    assert len(files) >= 6
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert len(text.splitlines()) == text.count("\n") > 1, file
        assert all(json.loads(line) for line in text.splitlines())
    eee = sorted((tmp_path / "eee").rglob("*.json*"))
    assert foreign(_VALIDATE, *map(str, eee)) == 0  # its own validator splits by `splitlines`
    assert json.loads((tmp_path / "rows.jsonl").read_text().splitlines()[0])["text"] == BREAKS
    again = proctor.import_answers(questions, tmp_path / "rows.jsonl", store=":memory:")
    assert again.store.answers(again.runs[0])["q1"].text == BREAKS
