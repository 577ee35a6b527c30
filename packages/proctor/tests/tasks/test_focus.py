"""FOCUS: its files, its formats, its summary, compared with what the official toolkit gives."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from proctor.core import BENCHMARKS, NO_ANSWER, Benchmark, InputError, Item, RecordedAnswers, Score, Status
from proctor.core.formats import ChoiceFormat, ClassesFormat, FreeTextFormat, PatternFormat, TimestampsFormat
from proctor.metrics import AccuracyScorer
from proctor.tasks.focus import READER
from proctor.tasks.focus import toolkit_summary as program
from proctor.tasks.focus.native import (
    NativeReference,
    NativeRequest,
    NativeResponse,
    read_references,
    read_requests,
    read_responses,
    write_answer,
    write_native,
)
from proctor.tasks.focus.submission import validate_submission
from proctor.tasks.focus.toolkit_summary import _Draws
from proctor.tasks.focus.vocabulary import CAPABILITIES, FOREIGN_OBJECT, GROUPS
from proctor.tracks import OBJECTS
from tests.support.program import within

REQUEST: dict[str, Any] = {
    "qID": "q1",
    "videoID": "v1.mp4",
    "start_time": 0.0,
    "end_time": 90.0,
    "procedure_type": "sigmoid resection",
    "question": "When was the needle last seen?",
}
REFERENCE: dict[str, Any] = {
    "qID": "q1",
    "primary": "temporal_localization",
    "format": "time",
    "format_kwargs": {},
    "answer": "00:00:10",
}


@pytest.fixture(scope="module")
def toolkit(data: Path) -> Path:
    return data / "focus-toolkit"


@pytest.fixture(scope="module")
def benchmark(toolkit: Path) -> Benchmark:
    return READER.load(toolkit)


@pytest.fixture(scope="module")
def recorded(toolkit: Path, benchmark: Benchmark) -> RecordedAnswers:
    return READER.read_recorded(toolkit / "responses.json", benchmark)


@pytest.fixture(scope="module")
def scores(benchmark: Benchmark, recorded: RecordedAnswers) -> dict[str, Score]:
    scorer = AccuracyScorer()
    pairs = zip(benchmark.items, recorded.answers, strict=True)
    return {item.id: scorer.compute(item, answer) for item, answer in pairs}


def plain(item: Item) -> dict[str, Any]:
    return dict(item.tags)


def table(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def folder(
    path: Path, requests: list[dict[str, Any]] | None = None, references: list[dict[str, Any]] | None = None
) -> Path:
    path.mkdir(exist_ok=True)
    (path / "requests.json").write_text(json.dumps([REQUEST] if requests is None else requests))
    (path / "references.json").write_text(json.dumps([REFERENCE] if references is None else references))
    return path


def test_correctness_agrees_on_all_questions(
    toolkit: Path, scores: dict[str, Score], recorded: RecordedAnswers
) -> None:
    expected = table(toolkit / "expected_results.csv")
    assert len(expected) == 1200
    assert {row["qID"]: row["correctness"] == "True" for row in expected} == {
        name: score.value == 1 for name, score in scores.items()
    }
    late = {answer.item_id for answer in recorded.answers if answer.status is Status.TIMED_OUT}
    assert late == {row["qID"] for row in expected if row["timed_out"] == "True"}


def test_every_wrong_answer_has_its_cause(scores: dict[str, Score], recorded: RecordedAnswers) -> None:
    causes = Counter(score.label for score in scores.values())
    assert causes == {"right": 654, "unreadable": 325, "wrong": 132, "missing": 54, "timed out": 35}
    assert recorded.notes == (
        "35 of 1200 questions came late and are wrong",
        "54 of 1200 questions have no answer and are wrong",
        "325 of 1200 questions can't be read and are wrong",
    )


def test_the_official_summary_agrees_to_the_last_bit(
    toolkit: Path, benchmark: Benchmark, scores: dict[str, Score]
) -> None:
    expected = table(toolkit / "expected_summary.csv")
    found = program.figures(
        [item.group for item in benchmark.items],
        [plain(item) for item in benchmark.items],
        [scores[item.id].value for item in benchmark.items],
        late=35,
        official=True,
        draws=2000,
        seed=42,
    )
    assert [(one.level, one.name, one.n) for one in found] == [
        (row["level"], row["name"], int(row["count"])) for row in expected
    ]
    for one, row in zip(found, expected, strict=True):
        for value, column in ((one.value, "accuracy"), (one.ci_low, "ci_low"), (one.ci_high, "ci_high")):
            assert value == (float(row[column]) if row[column] else None)


@pytest.mark.parametrize("limit", [3, 60, 2**31])
def test_many_draws_at_once_are_numpys_own(limit: int) -> None:
    for seed in range(40):
        draw = np.random.default_rng(seed + 1000)
        sizes, limits = draw.integers(1, 30, size=6), draw.integers(1, limit, size=6)
        rng, stream = np.random.default_rng(seed), _Draws(seed)
        for size, high in zip(sizes, limits, strict=True):
            assert stream.below(np.full(size, high, dtype=np.uint64)).tolist() == rng.integers(0, high, size).tolist()


def test_the_mended_summary_has_the_same_scores(benchmark: Benchmark, scores: dict[str, Score]) -> None:
    arguments: tuple[Any, ...] = (
        [item.group for item in benchmark.items],
        [plain(item) for item in benchmark.items],
        [scores[item.id].value for item in benchmark.items],
        35,
    )
    official = program.figures(*arguments, official=True, draws=1, seed=0)
    corrected = program.figures(*arguments, official=False, draws=500, seed=0)
    for one, other in zip(official, corrected, strict=True):
        assert other.value == (None if one.value is None else pytest.approx(one.value, abs=1e-12))
    score = corrected[-1]
    assert score.ci_low is not None
    assert score.ci_high is not None
    assert score.value is not None
    assert score.ci_low < score.value < score.ci_high
    assert len(program.CORRECTIONS) == 3


def test_an_empty_bucket_leaves_the_mended_score_empty() -> None:
    tags: list[Any] = [
        {"primary": "temporal_ordering", "capability": "event_understanding", "answer_format": "binary"}
        | {"distribution": "in"}
    ] * 3
    official = program.figures(["a", "a", "b"], tags, [1, 0, 1], 0, official=True, draws=10, seed=0)[-1]
    corrected = program.figures(["a", "a", "b"], tags, [1, 0, 1], 0, official=False, draws=10, seed=0)[-1]
    assert official.value == pytest.approx(2 / 3)
    assert official.n == 1
    assert (corrected.value, corrected.n) == (None, 1)


def test_tags_say_what_a_question_is(benchmark: Benchmark) -> None:
    item = benchmark.items[9]
    assert item.tags == {
        "track": "procedure",
        "capability": "temporal_grounding",
        "primary": "duration_estimation",
        "secondary": ("object_attributes", "causal_consequence_reasoning"),
        "capabilities": ("temporal_grounding", "object_recognition", "complex_reasoning"),
        "distribution": "out",
        "clinical": True,
        "answer_format": "number",
        "context": "long",
        "procedure_type": "proctocolectomy",
    }
    assert item.question == "Question 9 (number)\n(Procedure: proctocolectomy. Asked at 00:43:28.)"
    assert item.group == "video_011.mp4"


def test_a_time_without_a_threshold_may_be_five_seconds_off(tmp_path: Path) -> None:
    """As in the toolkit, however short the video; only its published rows have the document's formula."""
    loaded = READER.load(folder(tmp_path, [REQUEST | {"end_time": 60.0}]))
    assert isinstance(loaded.items[0].answer, TimestampsFormat)
    assert loaded.items[0].answer.tolerance == 5.0


def test_no_content_is_no_answer(tmp_path: Path) -> None:
    benchmark = READER.load(folder(tmp_path))
    (tmp_path / "r.json").write_text('[{"qID": "q1", "content": null}]')
    found = READER.read_recorded(tmp_path / "r.json", benchmark)
    assert found.answers[0].reason == NO_ANSWER
    assert found.notes[0] == "1 of 1 questions have no answer and are wrong"
    lint = validate_submission(tmp_path / "r.json", benchmark)
    assert [str(one) for one in lint.findings] == [
        "wrong: missing: q1: found None as 'content' (entry 1), expected a text"
    ]


def test_files_come_back_as_they_were(toolkit: Path, tmp_path: Path) -> None:
    for name, read in (
        ("requests.json", read_requests),
        ("references.json", read_references),
        ("responses.json", lambda path: read_responses(path / "responses.json")),
    ):
        write_native(tmp_path / name, read(toolkit))
        assert json.loads((tmp_path / name).read_text()) == json.loads((toolkit / name).read_text())


def test_a_container_s_answers_have_no_latency(tmp_path: Path) -> None:
    file = tmp_path / "answer.json"
    write_answer(file, [NativeResponse(qID="q1", content="00:00:12", latency=2.0)])
    assert json.loads(file.read_text()) == [{"qID": "q1", "content": "00:00:12"}]
    benchmark = READER.load(folder(tmp_path / "data"))
    for text in (file.read_text(), '{"q1": "00:00:12"}'):
        file.write_text(text)
        found = READER.read_recorded(file, benchmark)
        assert [(one.parsed, one.timing) for one in found.answers] == [([12.0], None)]
        assert found.notes == ("1 of 1 questions have no latency, so it is unknown whether they came in time",)


@pytest.mark.parametrize(("track", "budget"), [("frame", 5), ("segment", 15), ("procedure", 30)])
def test_tracks_have_their_budgets(track: str, budget: float, tmp_path: Path) -> None:
    start = 90.0 if track == "frame" else 0.0
    loaded = READER.on_track(track).load(folder(tmp_path, [REQUEST | {"start_time": start}]))
    assert loaded.budget_s == budget
    assert loaded.items[0].tags["track"] == track
    (tmp_path / "r.json").write_text(json.dumps([{"qID": "q1", "content": "00:00:10", "latency": budget}]))
    assert READER.read_recorded(tmp_path / "r.json", loaded).answers[0].status is Status.ANSWERED
    late = [{"qID": "q1", "content": "00:00:10", "latency": budget + 0.001}]
    (tmp_path / "r.json").write_text(json.dumps(late))
    answer = READER.read_recorded(tmp_path / "r.json", loaded).answers[0]
    assert answer.status is Status.TIMED_OUT
    assert answer.reason == f"took {budget:.1f} s of {budget} s"


def test_a_frame_is_one_moment(tmp_path: Path) -> None:
    data = folder(tmp_path, [REQUEST | {"start_time": 90.0}])
    clip = READER.on_track("frame").load(data).items[0].media[0]
    assert clip.model_dump(exclude={"kind", "region"}) == {"source": "v1.mp4", "start": 90.0, "end": 90.04}
    with pytest.raises(
        InputError, match=r"requests.json: question q1, field 'end_time': found 90 s, expected a time after"
    ):
        READER.load(data)


@pytest.mark.parametrize(
    ("track", "start", "end", "message"),
    [
        ("frame", 10.0, 10.0, ""),
        ("frame", 10.0, 10.04, ""),
        ("frame", 10.0, 11.0, "field 'end_time': found 1 s after start_time, expected one frame"),
        ("segment", 3600.0, 3900.0, ""),
        ("segment", 3600.0, 3900.5, "field 'end_time': found 300.5 s after start_time, expected at most 300 s"),
        ("segment", 60.0, 60.0, "field 'end_time': found 60 s, expected a time after start_time 60 s"),
        ("procedure", 0.0, 9000.0, ""),
        ("procedure", 0.5, 9000.0, "field 'start_time': found 0.5 s, expected 0, the start of the video"),
        ("procedure", 0.0, 0.0, "field 'end_time': found 0 s, expected a time after start_time 0 s"),
    ],
)
def test_what_is_shown_is_what_the_track_has(
    track: str, start: float, end: float, message: str, tmp_path: Path
) -> None:
    data = folder(tmp_path, [REQUEST | {"start_time": start, "end_time": end}])
    if not message:
        assert len(READER.on_track(track).load(data).items) == 1
        return
    with pytest.raises(InputError) as caught:
        READER.on_track(track).load(data)
    assert f"question q1, {message} (track {track})" in str(caught.value)


def test_further_fields_are_kept_as_facets(tmp_path: Path) -> None:
    requests = [REQUEST | {"qID": f"q{number}", "centre": f"c{number % 3}"} for number in range(6)]
    more: dict[str, Any] = {"required_knowledge": ["anatomy", "counting"], "remark": "x" * 200, "nested": {"a": 1}}
    references = [
        REFERENCE | more | {"qID": f"q{number}", "decision_impact": "high" if number % 2 else "low"}
        for number in range(6)
    ]
    loaded = READER.load(folder(tmp_path, requests, references))
    assert loaded.facets[-2:] == ("centre", "decision_impact")
    tags = loaded.items[1].tags
    assert (tags["decision_impact"], tags["centre"]) == ("high", "c1")
    assert tags["required_knowledge"] == ("anatomy", "counting")
    assert "remark" not in tags
    assert "nested" not in tags
    assert tags["capability"] == "temporal_grounding", "a further field replaces none of the toolkit's"


def test_results_by_a_further_field(tmp_path: Path) -> None:
    requests = [REQUEST | {"qID": f"q{number}", "videoID": f"v{number}"} for number in range(6)]
    references = [
        REFERENCE | {"qID": f"q{number}", "decision_impact": ("high", "low")[number % 2]} for number in range(6)
    ]
    data, store = folder(tmp_path, requests, references), tmp_path / "runs.db"
    (tmp_path / "r.json").write_text(
        json.dumps([{"qID": f"q{number}", "content": f"00:00:{10 + 20 * (number % 2)}"} for number in range(6)])
    )
    code, printed = within("import", "focus", tmp_path / "r.json", "--data", data, "--name", "a", "--store", store)
    assert code == 0, printed
    code, printed = within(
        *("results", "focus", "--store", store, "--system", "a", "--by", "decision_impact"),
        *("--draws", "100", "--format", "csv"),
    )
    assert code == 0, printed
    rows = {
        row["decision_impact"]: float(row["value"]) for row in csv.DictReader(io.StringIO(printed)) if row.get("value")
    }
    assert rows == {"high": 1.0, "low": 0.0}


def test_the_formats_without_data(tmp_path: Path) -> None:
    kinds: list[dict[str, Any]] = [
        {"format": "open_ended", "answer": "to keep the bowel aside"},
        {"format": "matching", "format_kwargs": {"pattern": "[1-4]/4"}, "answer": "2/4"},
        {"format": "multiple_choice", "options": ["left", "right"], "answer": "right"},
        {"format": "multiple_choice", "answer": "B) right"},
        {"format": "fo_class", "answer": "Tape, sponge"},
    ]
    requests = [REQUEST | {"qID": f"q{number}"} for number in range(len(kinds))]
    references = [REFERENCE | {"qID": f"q{number}"} | kind for number, kind in enumerate(kinds)]
    items = READER.load(folder(tmp_path, requests, references)).items
    assert isinstance(items[0].answer, FreeTextFormat)
    assert items[0].answer.max_chars == 300
    assert isinstance(items[1].answer, PatternFormat)
    assert isinstance(items[2].answer, ChoiceFormat)
    assert isinstance(items[3].answer, FreeTextFormat)
    answers = [item.reference.answer for item in items if item.reference]
    assert answers == ["to keep the bowel aside", "2/4", "B", "B) right", ["Sponge", "Tape"]]


def test_classes_that_only_references_name_are_known_once(tmp_path: Path) -> None:
    answers = ["Tape, sponge.", "tape", " Surgical  Tape ,TAPE", "none"]
    requests = [REQUEST | {"qID": f"q{number}"} for number in range(4)]
    references = [
        REFERENCE | {"qID": f"q{number}", "format": "fo_class", "answer": answer}
        for number, answer in enumerate(answers)
    ]
    items = READER.load(folder(tmp_path, requests, references)).items
    assert isinstance(items[0].answer, ClassesFormat)
    assert set(items[0].answer.classes) == {*OBJECTS, "Tape", "Surgical  Tape"}
    keys = [item.reference.answer for item in items if item.reference]
    assert keys == [["Sponge", "Tape"], ["Tape"], ["Surgical  Tape", "Tape"], []]


def test_models_and_judges_are_told_what_the_words_mean() -> None:
    told = READER.briefing
    assert told is not None
    assert list(told.definitions) == ["Foreign object", *OBJECTS]
    assert told.definitions["Foreign object"] == FOREIGN_OBJECT
    assert told.own_clock
    assert READER.rubric_judge == "panel"


def drop(name: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda entry: {key: value for key, value in entry.items() if key != name}


@pytest.mark.parametrize(
    ("references", "message"),
    [
        ([REFERENCE | {"primary": "magic"}], r"question q1: found the capability 'magic', expected one of object_"),
        ([REFERENCE | {"format": "ode"}], r"question q1, field 'format': found 'ode', expected one of binary, num"),
        ([REFERENCE | {"answer": "ten"}], r"field 'answer': found 'ten', expected times as hh:mm:ss"),
        ([REFERENCE, REFERENCE], r"entry 2: found q1 again, expected each qID once"),
        ([REFERENCE | {"qID": "q2"}], r"requests.json: found q1, expected the same question in references.json"),
        ([drop("answer")(REFERENCE)], r"entry 1, field 'answer': found nothing, expected a value"),
        ([REFERENCE | {"format": "matching"}], r"field 'format_kwargs': found \{\}, expected the arguments of the f"),
        (
            [REFERENCE | {"format_kwargs": {"threshold_seconds": "x"}}],
            r"field 'format_kwargs': found \{'threshold_seconds': 'x'\}, expected the arguments of the format time",
        ),
        (
            [REFERENCE | {"format": "multiple_choice", "format_kwargs": {"options": "AB"}}],
            r"field 'format_kwargs': found \{'options': 'AB'\}, expected the arguments of the format multiple_choice",
        ),
        ([7], r"entry 1: found 7, expected an object"),
    ],
)
def test_bad_references_are_named(references: list[Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        READER.load(folder(tmp_path, references=references))


def test_an_unknown_secondary_capability_is_left_out_and_counted(tmp_path: Path) -> None:
    """One dirty row of 20,000 refused the whole benchmark; the toolkit warns and drops the label."""
    dirty = REFERENCE | {"secondaries": ["magic", None, "1b", "aggregation"]}
    found = READER.load(folder(tmp_path, references=[dirty]))
    assert found.items[0].tags["secondary"] == ("instance_matching",)
    assert found.notes[-1] == "Left out: unknown secondary capabilities of 1 question ('magic', null, 'aggregation')."
    clean = READER.load(folder(tmp_path, references=[REFERENCE | {"secondaries": None}]))
    assert clean.items[0].tags["secondary"] == ()
    assert not any("Left out" in one for one in clean.notes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", r"r.json: line 1, column 2: found the end of the file: it is cut off, expected JSON"),
        ("{}", "r.json: found an empty object, expected a list of objects, each with a qID"),
        ("3", "r.json: found no list, expected a list of objects, each with a qID"),
        ('[{"qID": "q9", "content": "x"}]', "r.json: found an answer to q9, expected answers to the benchmark's"),
        ('[{"qID": "q1"}]', "r.json: entry 1, field 'content': found nothing, expected a value"),
        ('[{"qID": "q1", "content": "x", "latency": -1}]', "field 'latency': found -1"),
    ],
)
def test_bad_responses_are_named(text: str, message: str, tmp_path: Path) -> None:
    benchmark = READER.load(folder(tmp_path))
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(InputError, match=message):
        READER.read_recorded(tmp_path / "r.json", benchmark)


@pytest.mark.parametrize("digits", [400, 5000])
@pytest.mark.parametrize("field", ["start_time", "end_time", "qID", "question"])
def test_numbers_of_hundreds_of_digits_are_one_line(digits: int, field: str, tmp_path: Path) -> None:
    folder(tmp_path)
    entry = json.dumps(REQUEST | {field: 0}).replace(f'"{field}": 0', f'"{field}": {"9" * digits}')
    (tmp_path / "requests.json").write_text(f"[{entry}]")
    with pytest.raises(InputError, match=r"requests\.json: ") as caught:
        READER.load(tmp_path)
    assert len(str(caught.value)) < 600
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("file", ["requests.json", "references.json", "r.json"])
def test_half_a_surrogate_in_a_file_is_named(file: str, tmp_path: Path) -> None:
    folder(tmp_path, [REQUEST | {"question": "\ud800"}] if file == "requests.json" else None)
    if file == "references.json":
        folder(tmp_path, references=[REFERENCE | {"format": "open_ended", "answer": "\ud800"}])
    if file == "r.json":
        (tmp_path / file).write_text(json.dumps([{"qID": "q1", "content": "\ud800"}]))
    with pytest.raises(InputError, match=rf"{file}: entry 1, field '\w+': found '.{{1,2}}ud800', expected "):
        READER.read_recorded(tmp_path / "r.json", READER.load(tmp_path))


def test_files_that_are_not_there_and_tracks_that_do_not_exist(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"requests.json: found no such file, expected a JSON file"):
        READER.load(tmp_path)
    with pytest.raises(InputError, match="--track: found 'film', expected one of frame, segment, procedure"):
        READER.on_track("film")


def test_the_taxonomy_is_the_document_s() -> None:
    assert len(CAPABILITIES) == len(set(CAPABILITIES)) == 15
    assert [len(group["leaves"]) for group in GROUPS.values()] == [5, 2, 2, 3, 3]
    assert len(OBJECTS) == 10
    assert BENCHMARKS.get("focus") is READER
    assert NativeRequest.model_validate(REQUEST).model_dump(exclude_unset=True) == REQUEST
    assert NativeReference.model_validate(REFERENCE).secondaries == ()


OPTIONS = [f"option {number}" for number in range(27)]


def test_more_options_than_letters_are_one_line(tmp_path: Path) -> None:
    choice = {"format": "multiple_choice", "answer": "option 3", "format_kwargs": {}, "options": OPTIONS}
    data = folder(tmp_path / "data", references=[REFERENCE | choice])
    code, printed = within("run", "focus", "--data", data, "--system", "random", "--store", tmp_path / "runs.db")
    found = "question q1, field 'options': found 27 options, expected at most 26, a letter for each"
    assert (code, printed) == (1, f"proctor: {data}/references.json: {found}\n")
    assert not (tmp_path / "runs.db").exists()
    (data / "references.json").unlink()
    (data / "requests.json").write_text(
        json.dumps([REQUEST | {"answer_format": "multiple_choice", "format_kwargs": {}, "options": OPTIONS}])
    )
    with pytest.raises(InputError) as caught:
        READER.load(data)
    assert str(caught.value) == f"{data}/requests.json: {found}"
