"""ReXSonoVQA: its files, its recorded results, and the figures that were published from them."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proctor.core import Benchmark, InputError, Status
from proctor.metrics import AccuracyScorer
from proctor.results import Options, Result, analyse, compare, leaderboard, results
from proctor.runs import Store, import_answers
from proctor.stats import Resampling
from proctor.tasks.rexsonovqa import READER
from proctor.tasks.rexsonovqa.native import split_options

MODELS = ("gemini-3-pro", "llava-video-72b", "qwen3.5-397b")
VIDEO = "Scanning_the_Appendix"


@pytest.fixture(scope="module")
def tree(data: Path) -> Path:
    return data / "rexsonovqa"


@pytest.fixture(scope="module")
def benchmark(tree: Path) -> Benchmark:
    return READER.load(tree)


@pytest.fixture(scope="module")
def store(tree: Path, benchmark: Benchmark, tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store(tmp_path_factory.mktemp("rexsonovqa") / "runs.db")
    for model in MODELS:
        recorded = READER.read_recorded(tree / "results" / model, benchmark)
        importing = import_answers(
            store, benchmark, recorded, name=model, condition="video", scorers=[AccuracyScorer()]
        )
        asyncio.run(importing)
    return store


def rows(store: Store, **options: Any) -> list[Result]:
    return results(store, "rexsonovqa", Options(draws=200, **options)).rows


def per_cent(value: float | None) -> float:
    assert value is not None
    return round(100 * value, 1)


def test_the_items_that_count(benchmark: Benchmark) -> None:
    assert len(benchmark.items) == 657
    counted = benchmark.counted()
    assert Counter(item.answer.kind for item in counted) == {"choice": 249, "free_text": 265}
    assert Counter(item.tags["question_type"] for item in counted if item.options) == {
        "1 action-goal": 103,
        "2 artifact-optimization": 79,
        "3 context-planning": 67,
    }
    assert len({item.group for item in counted}) == 47
    assert sum(one.end - one.start for one in benchmark.excerpts.values()) / 60 == pytest.approx(115.1, abs=0.05)
    assert {item.tags["category"] for item in counted} == {
        "abdominal",
        "genitourinary",
        "obstetric",
        "musculoskeletal",
        "thoracic",
        "vascular",
    }


def test_options_are_shuffled_by_the_seed_alone(tree: Path, benchmark: Benchmark) -> None:
    assert READER.load(tree).fingerprint == benchmark.fingerprint
    other = READER.load(tree, seed=1)
    assert other.fingerprint != benchmark.fingerprint
    for first, second in zip(benchmark.items, other.items, strict=True):
        assert sorted(first.options) == sorted(second.options)
        if first.options:
            assert first.reference is not None
            assert second.reference is not None
            right = [
                item.options["ABCD".index(str(item.reference.answer))] for item in (first, second) if item.reference
            ]
            assert right[0] == right[1]


def test_the_published_order_of_options_plays_no_part(small: Path) -> None:
    """The key stands first in 110 of the 249 published questions: turned round in the file, the options are the
    same."""
    before = [item.options for item in READER.load(small).items]

    def turned(content: list[dict[str, Any]]) -> None:
        for entry in content:
            stem, options = split_options(entry["question"])
            listed = [f"{letter}. {option}" for letter, option in zip("ABCD", reversed(options), strict=True)]
            entry["question"] = "\n".join([f"[MCQ] {stem}", *listed])
            entry["answer"] = "DCBA"["ABCD".index(entry["answer"])]

    keys = [
        item.reference and item.options["ABCD".index(str(item.reference.answer))]
        for item in READER.load(small).items
        if item.options
    ]
    spoil(small / "benchmark_questions" / "mcq" / f"{VIDEO}.json", turned)
    after = READER.load(small).items
    assert [item.options for item in after] == before
    assert [
        item.reference and item.options["ABCD".index(str(item.reference.answer))] for item in after if item.options
    ] == keys


@pytest.mark.parametrize(("model", "correct"), list(zip(MODELS, (165, 74, 138), strict=True)))
def test_recorded_choices(store: Store, model: str, correct: int) -> None:
    row = next(row for row in rows(store, systems=(model,)) if row.metric == "accuracy")
    assert (row.n, row.answered, row.failed, row.groups) == (249, 249, 0, 47)
    assert row.value == correct / 249


def test_geminis_published_splits(store: Store) -> None:
    by_type = [row for row in rows(store, systems=("gemini-3-pro",), by=("question_type",)) if row.metric == "accuracy"]
    assert [per_cent(row.value) for row in by_type] == [69.9, 60.8, 67.2]
    by_duration = [row for row in rows(store, systems=("gemini-3-pro",), by=("duration",)) if row.metric == "accuracy"]
    assert [(row.facets["duration"], per_cent(row.value)) for row in by_duration] == [
        ("0-5 s", 61.0),
        ("5-10 s", 66.3),
        ("10-20 s", 64.9),
        (">20 s", 75.8),
    ]


@pytest.mark.parametrize(
    ("model", "by_score", "by_error_type", "contradictory"),
    [
        ("gemini-3-pro", (99, 24, 18, 124), (99, 29, 24, 113), 11),
        ("llava-video-72b", (7, 21, 28, 209), (7, 21, 29, 208), 1),
        ("qwen3.5-397b", (74, 16, 32, 143), (74, 18, 32, 141), 2),
    ],
)
def test_recorded_free_responses_in_both_views(
    store: Store, model: str, by_score: tuple[int, ...], by_error_type: tuple[int, ...], contradictory: int
) -> None:
    """The paper's table for Gemini (99, 29, 24, 113) counts by error type; its scores say 99/42/124."""
    found = {row.metric: row for row in rows(store, systems=(model,))}
    levels = ("2", "1 wrong conclusion", "1 wrong visual evidence", "0")
    assert tuple(found["rubric"].levels[level] for level in levels) == by_score
    assert tuple(found["rubric_by_error_type"].levels[level] for level in levels) == by_error_type
    flags = found["contradiction"]
    assert flags.value is not None
    assert round(flags.value * flags.n) == contradictory
    assert {row.scorer for row in found.values()} == {"code", "gemini-3-pro-preview"}
    value = found["rubric"].value
    assert value == pytest.approx((2 * by_score[0] + by_score[1] + by_score[2]) / 265)


def test_a_recorded_call_that_was_rejected_for_its_content_is_an_error_and_wrong(store: Store) -> None:
    found = rows(store, systems=("qwen3.5-397b",), all_items=True, by=("question_type",))
    row = next(row for row in found if row.metric == "rubric" and row.error)
    assert (row.failed, row.error, row.n) == (0, 1, row.answered)
    (run,) = [run for run in store.runs("rexsonovqa") if run.system == "qwen3.5-397b"]
    errors = [answer for answer in store.answers(run).values() if answer.status is Status.ERROR]
    assert [answer.item_id for answer in errors] == ["Third_Trimester_Locate_Fetus_and_Placenta/free-01"]
    assert "The video file is too short" in errors[0].reason


def test_latencies_and_explanations_come_along(store: Store) -> None:
    (run,) = [run for run in store.runs("rexsonovqa") if run.system == "gemini-3-pro"]
    answers = store.answers(run)
    first = answers["1st_Trimester_Scan/mcq-01"]
    assert first.timing is not None
    assert first.timing.model_s == pytest.approx(6.443593978881836)
    assert first.text.startswith("Answer: D")
    judgements = store.judgements(_judgement_keys(store, run.id))
    assert len(judgements) == 337
    assert all(
        judgement.judge == "gemini-3-pro-preview" and judgement.reply["explanation"]
        for judgement in judgements.values()
    )
    assert sum("contradiction" in judgement.flags for judgement in judgements.values()) == 14


def _judgement_keys(store: Store, run: int) -> list[str]:
    from sqlalchemy import text

    with store.reading() as connection:
        query = text("select distinct judgement_key from scores where run = :run and judgement_key <> ''")
        return [str(row[0]) for row in connection.execute(query, {"run": run})]


def test_two_models_side_by_side(store: Store) -> None:
    options = Options(systems=("gemini-3-pro", "qwen3.5-397b"), draws=200)
    found = compare(store, "rexsonovqa", options, metrics=("accuracy",))
    (one,) = found.comparisons
    assert one.table is not None
    assert [sum(row) for row in one.table] == [165, 84]
    assert [sum(column) for column in zip(*one.table, strict=True)] == [138, 111]
    assert one.difference.value == pytest.approx((165 - 138) / 249)


def test_the_leaderboard_ranks_the_three(store: Store) -> None:
    board = leaderboard(store, "rexsonovqa", condition="video", options=Options(draws=200))
    assert [row.system for row in board.rows] == ["gemini-3-pro", "qwen3.5-397b", "llava-video-72b"]
    assert board.rows[-1].rank == 3


def test_a_figure_has_one_interval_in_every_table(store: Store) -> None:
    """Whatever stands beside it: in `results` by one facet, in an analysis by label and by facet, on the
    leaderboard."""
    found = analyse(store, "rexsonovqa", stability=0, plan=Resampling(draws=200))
    shown: dict[tuple[str, str], set[tuple[Any, ...]]] = {}
    for facet in ("question_type", "duration", "category"):
        for one in rows(store, by=(facet,)):
            if one.metric == "accuracy" and one.condition == "video":
                shown[one.system, one.facets[facet]] = {(one.value, one.ci_low, one.ci_high)}
    told = [(row, row["label"]) for row in found.tables["capabilities"] if row["stratum"] in {"all", "alone"}]
    told += [(row, row["value_of"]) for row in found.tables["factors"]]
    for row, part in told:
        if row["system"] in MODELS:
            shown[row["system"], part].add((row["value"], row["ci_low"], row["ci_high"]))
    assert len(shown) == 3 * (3 + 4 + 6)
    assert {key for key, intervals in shown.items() if len(intervals) > 1} == set()
    whole = {one.system: (one.value, one.ci_low, one.ci_high) for one in rows(store) if one.metric == "accuracy"}
    for index in leaderboard(store, "rexsonovqa", condition="video", options=Options(draws=200)).rows:
        assert (index.value, index.ci_low, index.ci_high) == whole[index.system]


def test_importing_twice_changes_nothing(store: Store, tree: Path, benchmark: Benchmark) -> None:
    recorded = READER.read_recorded(tree / "results" / MODELS[0], benchmark)
    before = rows(store)
    scorers = [AccuracyScorer()]
    again = import_answers(store, benchmark, recorded, name=MODELS[0], condition="video", scorers=scorers)
    asyncio.run(again)
    assert rows(store) == before


def test_other_answers_under_a_known_name_are_refused(store: Store, tree: Path, benchmark: Benchmark) -> None:
    recorded = READER.read_recorded(tree / "results" / MODELS[1], benchmark)
    importing = import_answers(
        store, benchmark, recorded, name=MODELS[0], condition="video", scorers=[AccuracyScorer()]
    )
    before = rows(store)
    said = f"run of {MODELS[0]} under video: found other answers already, expected the same answers, or a new name: "
    with pytest.raises(InputError, match=re.escape(f"{said}--name {MODELS[0]}-2") + "$"):
        asyncio.run(importing)
    assert rows(store) == before


def test_the_media_help_names_every_missing_video(tree: Path) -> None:
    help_text = READER.media_help(
        tree, [VIDEO, "First_Trimester_Intrauterine_Pregnancy _Ultrasound_Scanning_Technique"]
    )
    assert f"-o {VIDEO}.mp4 'https://www.youtube.com/watch?v=" in help_text
    assert "--download-sections '*66.29-147.8'" in help_text
    assert "'First_Trimester_Intrauterine_Pregnancy _Ultrasound_Scanning_Technique.mp4'" in help_text


def test_split_options_keeps_lines_that_belong_to_an_option() -> None:
    stem, options = split_options("[MCQ] A question\nof two lines:\nA. one\nmore\nB) two")
    assert stem == "A question\nof two lines:"
    assert options == ["one more", "two"]


# -- bad input: one line that names file, item and field; nothing is written


@pytest.fixture
def small(tree: Path, tmp_path: Path) -> Path:
    """One video's questions, to be spoiled."""
    for kind in ("mcq", "free"):
        folder = tmp_path / "benchmark_questions" / kind
        folder.mkdir(parents=True)
        shutil.copyfile(tree / "benchmark_questions" / kind / f"{VIDEO}.json", folder / f"{VIDEO}.json")
    shutil.copyfile(tree / "video_metadata_new.json", tmp_path / "video_metadata_new.json")
    return tmp_path


def spoil(file: Path, change: Callable[[Any], Any]) -> None:
    content = json.loads(file.read_text())
    file.write_text(json.dumps(change(content) or content))


def put(index: int, key: str, value: Any) -> Callable[[Any], Any]:
    def change(content: Any) -> None:
        content[index][key] = value

    return change


BAD_QUESTIONS = [
    (put(1, "answer", "E"), r"item 2, field 'answer': found 'E', expected one of A, B, C, D"),
    (put(0, "time_end", 0.0), r"item 1, field 'time_end': found 0 s, expected a time after time_start"),
    (put(0, "time_end", 1e4), r"item 1, field 'time_end': found 10000 s, expected a time within the video's 81.51 s"),
    (put(2, "time_start", "soon"), r"item 3, field 'time_start': found 'soon', expected a number"),
    (put(0, "question_type", "Type9"), r"item 1, field 'question_type': found 'Type9', expected one of Type1_"),
    (put(0, "question", "[MCQ] No options?"), r"item 1, field 'question': found 0 different options"),
    (lambda content: [*content, content[0]], r"found item 1 again, expected no duplicates"),
    (lambda content: [{**content[0], "answer": None}], r"item 1, field 'answer'"),
    (lambda content: {"questions": content}, r"found dict, expected a list of questions"),
]


@pytest.mark.parametrize(("change", "message"), BAD_QUESTIONS)
def test_bad_questions(small: Path, change: Callable[[Any], Any], message: str) -> None:
    file = small / "benchmark_questions" / "mcq" / f"{VIDEO}.json"
    spoil(file, change)
    with pytest.raises(InputError, match=message) as raised:
        READER.load(small)
    assert str(raised.value).startswith(f"{file}: ")
    assert "\n" not in str(raised.value)


def test_broken_json_names_line_and_column(small: Path) -> None:
    file = small / "benchmark_questions" / "free" / f"{VIDEO}.json"
    file.write_text('[\n {"question": }\n]')
    with pytest.raises(InputError, match=rf"{re.escape(str(file))}: line 2, column 15: found no value, expected JSON"):
        READER.load(small)


def test_a_region_outside_the_frame(small: Path) -> None:
    file = small / "video_metadata_new.json"
    content = json.loads(file.read_text())
    content[VIDEO]["roi"]["x_prop"] = 0.9
    file.write_text(json.dumps(content))
    with pytest.raises(
        InputError, match=rf"video '{VIDEO}', field 'roi': found x 0.9, .*expected a region inside 0 to 1"
    ):
        READER.load(small)


def test_an_empty_tree(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"video_metadata_new.json: found no such file"):
        READER.load(tmp_path)


def test_a_video_without_metadata(small: Path) -> None:
    file = small / "video_metadata_new.json"
    content = json.loads(file.read_text())
    del content[VIDEO]
    file.write_text(json.dumps(content))
    with pytest.raises(InputError, match="found questions on video 'Scanning_the_Appendix', expected its entry"):
        READER.load(small)


BAD_RESULTS = [
    (put(0, "question", "[MCQ] Which?\nA. x\nB. y"), "found a question not in the benchmark: 'Which\\?'"),
    (lambda content: [*content, content[0]], "found a second answer to Scanning_the_Appendix/mcq-01"),
    (put(0, "answer", "Z"), "item 1, field 'answer': found 'Z', expected one of A, B, C, D"),
]


@pytest.mark.parametrize(("change", "message"), BAD_RESULTS)
def test_bad_results(
    tree: Path, benchmark: Benchmark, tmp_path: Path, change: Callable[[Any], Any], message: str
) -> None:
    for kind in ("mcq", "free"):
        folder = tmp_path / kind
        folder.mkdir()
        shutil.copyfile(
            tree / "results" / MODELS[0] / kind / f"score_pred_{VIDEO}.json", folder / f"score_pred_{VIDEO}.json"
        )
    spoil(tmp_path / "mcq" / f"score_pred_{VIDEO}.json", change)
    with pytest.raises(InputError, match=message):
        READER.read_recorded(tmp_path, benchmark)


def test_a_key_that_contradicts_the_benchmark(tree: Path, benchmark: Benchmark, tmp_path: Path) -> None:
    for kind in ("mcq", "free"):
        shutil.copytree(tree / "results" / MODELS[0] / kind, tmp_path / kind, copy_function=shutil.copyfile)
        (tmp_path / kind).chmod(0o755)
    file = tmp_path / "mcq" / f"score_pred_{VIDEO}.json"
    wrong = {"A": "B", "B": "C", "C": "D", "D": "A"}
    spoil(file, lambda content: [{**one, "answer": wrong[one["answer"]]} for one in content])
    with pytest.raises(InputError, match=r"item 1, field 'answer': found the key .*, expected the benchmark's key"):
        READER.read_recorded(tmp_path, benchmark)


def test_an_empty_results_tree(benchmark: Benchmark, tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"found no score_pred_\*.json and no pred_\*.json, expected one file of results"
    ):
        READER.read_recorded(tmp_path, benchmark)


def test_missing_recorded_answers_are_counted(tree: Path, benchmark: Benchmark, tmp_path: Path) -> None:
    for kind in ("mcq", "free"):
        folder = tmp_path / kind
        folder.mkdir()
        shutil.copyfile(
            tree / "results" / MODELS[0] / kind / f"score_pred_{VIDEO}.json", folder / f"score_pred_{VIDEO}.json"
        )
    recorded = READER.read_recorded(tmp_path, benchmark)
    assert f"{657 - len(recorded.answers)} questions have no recorded answer" in recorded.notes


def test_a_judge_that_had_failed_gives_no_score(tree: Path, benchmark: Benchmark, tmp_path: Path) -> None:
    for kind in ("mcq", "free"):
        folder = tmp_path / kind
        folder.mkdir()
        shutil.copyfile(
            tree / "results" / MODELS[0] / kind / f"score_pred_{VIDEO}.json", folder / f"score_pred_{VIDEO}.json"
        )
    file = tmp_path / "free" / f"score_pred_{VIDEO}.json"
    spoil(file, put(0, "judge_explanation", "Evaluation Failed: 429"))
    recorded = READER.read_recorded(tmp_path, benchmark)
    assert f"{VIDEO}/free-01" not in {score.item_id for score in recorded.scores}
    assert any("1 answer has no score, since the recorded judge's call failed" in note for note in recorded.notes)
