"""Answers are read and scored as the official toolkit reads and scores them: on thousands of answers at random."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from proctor.core import Answer, Benchmark, InputError, Item, Status
from proctor.core.formats import FreeTextFormat
from proctor.metrics import AccuracyScorer
from proctor.tasks.focus import READER
from proctor.tasks.focus import toolkit_summary as program
from proctor.tasks.focus.native import NativeResponse, write_native
from proctor.tasks.focus.vocabulary import GROUP_OF, leaf_of
from proctor_build import complete
from proctor_build.focus.builder import build_focus
from proctor_build.focus.plan import FocusPlan
from tests.support.drawn_tracks import drawn
from tests.support.focus_fuzz import fuzzed
from tests.support.focus_toolkit import same_words, toolkit

_COUNT = 4_000


def official(folder: Path, responses: list[Any], draws: int = 2) -> tuple[dict[str, bool], Any]:
    """Correctness by question, and the toolkit's summary."""
    kit = toolkit()
    evaluator = kit.evaluator.Evaluator(judges=[], n_boot=draws)
    results, summary = evaluator.run(
        kit.models.load_requests(folder / "requests.json"),
        kit.models.load_references(folder / "references.json"),
        [kit.models.Response(**one) for one in responses],
        track="procedure",
    )
    return dict(zip(results["qID"], map(bool, results["correctness"]), strict=True)), summary


def right(item: Item, answer: Answer) -> bool:
    """Whether an answer is right; free text by the judge that the toolkit has here, too."""
    if isinstance(item.answer, FreeTextFormat):
        assert item.reference is not None
        readable = answer.status is Status.ANSWERED and answer.parsed is not None
        return readable and same_words(str(item.reference.answer), answer.text)
    return AccuracyScorer().compute(item, answer).value == 1


def plain(item: Item) -> dict[str, Any]:
    return dict(item.tags)


def folder(path: Path, requests: list[Any], references: list[Any]) -> Path:
    (path / "requests.json").write_text(json.dumps(requests))
    (path / "references.json").write_text(json.dumps(references))
    return path


@pytest.mark.parametrize("seed", [1])
def test_correctness_and_summary_agree_on_answers_at_random(seed: int, tmp_path: Path) -> None:
    requests, references, responses = fuzzed(_COUNT, seed)
    folder(tmp_path, requests, references)
    # null would end the toolkit's evaluation: it counts as no answer.
    expected, summary = official(tmp_path, [one for one in responses if one["content"] is not None])
    (tmp_path / "responses.json").write_text(json.dumps(responses))
    benchmark = READER.load(tmp_path)
    answers = READER.read_recorded(tmp_path / "responses.json", benchmark).answers
    scored = {item.id: right(item, answer) for item, answer in zip(benchmark.items, answers, strict=True)}
    texts = {one["qID"]: (one["content"] or "")[:60] for one in responses}
    formats = {one["qID"]: (one["format"], one["format_kwargs"], one["answer"]) for one in references}
    differ = [(formats[name], texts.get(name)) for name in expected if expected[name] != scored[name]]
    assert differ == []
    rights = Counter(formats[name][0] for name, correct in expected.items() if correct)
    assert min(rights.values()) >= 40, rights  # the test is of both: what is right and what is wrong
    assert len(rights) == 8
    late = sum(answer.status is Status.TIMED_OUT for answer in answers)
    figures = program.figures(
        [item.group for item in benchmark.items],
        [plain(item) for item in benchmark.items],
        [scored[item.id] for item in benchmark.items],
        late,
        official=True,
        draws=2,
        seed=42,
    )
    assert [(one.level, one.name, one.n) for one in figures] == [
        (row.level, row.name, row.count_) for row in summary.rename(columns={"count": "count_"}).itertuples()
    ]
    for one, row in zip(figures, summary.itertuples(), strict=True):
        assert one.value == (None if row.accuracy != row.accuracy else pytest.approx(row.accuracy, abs=1e-12))


def test_the_toolkit_reads_what_build_focus_writes_and_scores_its_key_right(tmp_path: Path) -> None:
    out = tmp_path / "built"
    videos = [complete(drawn(11, f"v{number:02d}", 60.0)[0]) for number in range(16)]
    built = build_focus(videos, out, FocusPlan(per_video=21, seed=4))
    assert len(built.references) >= 300
    key = [{"qID": one.qID, "content": one.answer} for one in built.references]
    expected, _ = official(out, key)
    assert set(expected.values()) == {True}
    assert {one.format for one in built.references} >= {"matching", "percentage", "multiple_choice", "time"}
    benchmark = READER.load(out)
    write_native(tmp_path / "key.json", [NativeResponse.model_validate(one) for one in key])
    answers = READER.read_recorded(tmp_path / "key.json", benchmark).answers
    assert all(right(item, answer) for item, answer in zip(benchmark.items, answers, strict=True))


def test_codes_of_capabilities_are_the_toolkit_s() -> None:
    capability = toolkit().taxonomy.Capability
    for leaf in capability.leaves():
        assert leaf_of(leaf.code) == leaf.value
        assert leaf_of(leaf.value.upper()) == leaf.value
        assert GROUP_OF[leaf.value] == leaf.group.value
    assert leaf_of("6a") is None
    assert leaf_of("3") is None  # a group, which no question has


ROW: dict[str, Any] = {
    "id": 17,
    "video": "v1.mp4",
    "timestamp_start": "00:00:00",
    "timestamp_end": "00:03:00",
    "procedure_type": "sigmoid resection",
    "question": "When was the needle last seen?",
    "primary_capability": "2a",
    "secondary_capabilities": ["1b", "object_attributes"],
    "answer_format": "time",
    "answer": "00:00:10",
    "clinical_relevance": True,
}


def _write(file: Path, rows: list[dict[str, Any]]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.suffix == ".parquet":
        import pyarrow as pa
        from pyarrow import parquet

        parquet.write_table(pa.Table.from_pylist(rows), file)
    else:
        lines = [json.dumps(row) for row in rows]
        file.write_text("\n".join(lines) if file.suffix == ".jsonl" else f"[{', '.join(lines)}]")


@pytest.mark.parametrize("name", ["rows.json", "rows.jsonl", "data/procedure/test-00000-of-00001.parquet"])
def test_published_rows_are_read_as_the_toolkit_reads_them(name: str, tmp_path: Path) -> None:
    rows = [ROW, ROW | {"id": 18, "answer_format": "percentage", "answer": "40", "secondary_capabilities": []}]
    _write(tmp_path / name, rows)
    _write(tmp_path / "data" / "frame" / "test.parquet", [ROW | {"id": 99}])
    loaded: Benchmark = READER.load(tmp_path)
    assert len(loaded.items) == 2
    for item, row in zip(loaded.items, rows, strict=True):
        request, reference = toolkit().rows.FocusDataset._parse_row(row)
        assert (item.id, item.group) == (request.qID, request.videoID)
        assert item.tags["primary"] == reference.primary.value
        assert item.tags["clinical"] == reference.clinical
        assert item.tags["secondary"] == tuple(one.value for one in reference.secondaries)
        assert item.answer.model_dump()["tolerance"] == reference.format_kwargs.get("threshold_seconds", 5.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"timestamp_end": "3 minutes"}, r"rows.json: row 1, field 'timestamp_end': found '3 minutes'"),
        ({"primary_capability": "9z"}, r"question 17: found the capability '9z', expected one of"),
        ({"answer": None}, r"rows.json: row 1, field 'answer': found None"),
        ({"answer": "\ud800"}, r"rows.json: row 1, field 'answer': found"),
        ({"track": "frame"}, r"found no row of this track, expected rows of the track procedure"),
    ],
)
def test_bad_rows_are_named(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    _write(tmp_path / "rows.json", [ROW | change])
    with pytest.raises(InputError, match=message):
        READER.load(tmp_path)


@pytest.mark.parametrize(
    ("kind", "arguments", "message"),
    [
        ("percentage", {"threshold": 3}, r"expected the arguments of the format percentage \(threshold_pp\)"),
        ("binary", {"x": 1}, r"expected the arguments of the format binary \(none\)"),
        ("time", {"threshold_seconds": 10**400}, r"references.json: .*expected"),
        ("matching", {"pattern": "(a|aa)+$"}, "expected the arguments of the format matching"),
        ("matching", {"pattern": "a{99999999999}"}, "expected the arguments of the format matching"),
        ("matching", {"pattern": "(" * 400 + ")" * 400}, "expected the arguments of the format matching"),
        ("matching", {"pattern": "((a{5000}){5000})"}, "expected the arguments of the format matching"),
        ("matching", {"pattern": "\ud800"}, "field 'format_kwargs'"),
        ("fo_class", {"valid_names": []}, "expected the arguments of the format fo_class"),
    ],
)
def test_arguments_that_can_not_be_used_are_named(
    kind: str, arguments: dict[str, Any], message: str, tmp_path: Path
) -> None:
    requests, references, _ = fuzzed(1, 0)
    folder(tmp_path, requests, [references[0] | {"format": kind, "format_kwargs": arguments, "answer": "1"}])
    with pytest.raises(InputError, match=message):
        READER.load(tmp_path)
