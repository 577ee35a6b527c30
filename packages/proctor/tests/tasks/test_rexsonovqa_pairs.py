"""Video against text-only: the paper's cross-setting tables of Gemini, its recovery rate, and gains by facet.

The authors did not release their blind answers, so blind outcomes are dealt out here as their tables A1 and A2 say.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from proctor.core import Answer, Benchmark, InputError, RecordedAnswers, Score
from proctor.judges import RUBRIC_LABELS, verdict_scores
from proctor.metrics import AccuracyScorer
from proctor.reports import write_report
from proctor.results import Options, compare, results
from proctor.runs import Store, import_answers
from proctor.tasks.rexsonovqa import READER
from tests.support.browser_items import data_of
from tests.support.program import within

A1 = [[97, 8], [68, 76]]  # rows: blind right, blind wrong; columns: with the video
A2 = [[15, 2, 1, 1], [7, 4, 2, 8], [13, 1, 3, 6], [64, 22, 18, 98]]
KINDS = dict(
    zip(RUBRIC_LABELS, [(2, "none"), (1, "wrong_conclusion"), (1, "wrong_visual_evidence"), (0, "both")], strict=True)
)
JUDGE = "gemini-3-pro-preview"


@pytest.fixture(scope="module")
def benchmark(data: Path) -> Benchmark:
    return READER.load(data / "rexsonovqa")


@pytest.fixture(scope="module")
def store(data: Path, benchmark: Benchmark, tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store(tmp_path_factory.mktemp("pairs") / "runs.db")
    video = READER.read_recorded(data / "rexsonovqa" / "results" / "gemini-3-pro", benchmark)
    for condition, recorded in (("video", video), ("text-only", dealt(benchmark, video))):
        importing = import_answers(
            store, benchmark, recorded, name="gemini-3-pro", condition=condition, scorers=[AccuracyScorer()]
        )
        asyncio.run(importing)
    return store


def dealt(benchmark: Benchmark, video: RecordedAnswers) -> RecordedAnswers:
    """Blind answers and scores with the tables' counts, spread over the items by a fixed stride."""
    given = {answer.item_id: answer for answer in video.answers}
    label = {score.item_id: score.label for score in video.scores if score.metric == "rubric_by_error_type"}
    answers: list[Answer] = []
    scores: list[Score] = []
    left = {("mcq", k): Counter(dict(enumerate(row[k] for row in A1))) for k in range(2)}
    left |= {("free", k): Counter(dict(enumerate(row[k] for row in A2))) for k in range(4)}
    for item in benchmark.counted():
        assert item.reference is not None
        right = given[item.id].parsed == item.reference.answer
        column = ("mcq", int(not right)) if item.options else ("free", RUBRIC_LABELS.index(label[item.id]))
        row = max(left[column], key=lambda kind: (left[column][kind], kind))
        left[column][row] -= 1
        if item.options:
            letter = str(item.reference.answer) if row == 0 else "ABCD"["BCDA".index(str(item.reference.answer))]
            answers.append(Answer(item_id=item.id, text=f"Answer: {letter}", parsed=letter))
            continue
        answers.append(Answer(item_id=item.id, text="A guess.", parsed="A guess."))
        scores += verdict_scores(*KINDS[RUBRIC_LABELS[row]], item_id=item.id, scorer=JUDGE)
    assert not any(count for counts in left.values() for count in counts.values())
    return RecordedAnswers(tuple(answers), scores=tuple(scores))


def test_the_papers_tables_and_its_recovery_rate(store: Store) -> None:
    options = Options(conditions=("text-only", "video"), draws=200)
    found = {one.metric: one for one in compare(store, "rexsonovqa", options).comparisons}
    assert found["accuracy"].table == A1
    assert found["rubric_by_error_type"].table == A2
    assert found["accuracy"].recovered == (68, 144)
    assert found["accuracy"].to_json()["recovered"] == 68
    assert found["rubric_by_error_type"].recovered is None
    (turned,) = compare(
        store, "rexsonovqa", Options(conditions=("video", "text-only"), draws=200), metrics=("accuracy",)
    ).comparisons
    assert turned.recovered == (68, 144)
    assert turned.difference.value == pytest.approx((165 - 105) / 249)


@pytest.mark.parametrize("facet", ["question_type", "duration", "category"])
@pytest.mark.parametrize("metric", ["accuracy", "rubric_by_error_type"])
def test_gains_by_facet_are_the_differences_of_the_parts(store: Store, facet: str, metric: str) -> None:
    gains = compare(store, "rexsonovqa", Options(by=(facet,), draws=300), metrics=(metric,)).comparisons
    rows = {
        (row.facets[facet], row.condition): row
        for row in results(store, "rexsonovqa", Options(by=(facet,), draws=200)).rows
        if row.metric == metric and row.system == "gemini-3-pro"
    }
    assert {one.facets[facet] for one in gains} == {value for value, _ in rows}
    assert sum(one.difference.n for one in gains) == (249 if metric == "accuracy" else 265)
    for one in gains:
        parts = [rows[one.facets[facet], condition] for condition in ("video", "text-only")]
        values = [part.value for part in parts if part.value is not None]
        assert one.difference.value is not None
        assert one.difference.value == pytest.approx(values[0] - values[1])
        assert (one.difference.n, one.difference.groups) == (parts[0].n, parts[0].groups)
        assert one.difference.ci_low is not None
        assert one.difference.ci_high is not None
        assert one.difference.ci_low <= one.difference.value <= one.difference.ci_high
    plain = np.array([one.difference.p for one in gains], dtype=float)
    adjusted = np.array([one.p_holm for one in gains], dtype=float)
    order = np.argsort(plain, kind="stable")
    by_hand = np.minimum(1, np.maximum.accumulate(plain[order] * np.arange(len(plain), 0, -1)))
    assert adjusted[order] == pytest.approx(by_hand)


def test_gains_do_not_depend_on_the_other_parts(store: Store) -> None:
    """A part by itself is the comparison of those items alone, whatever else there is."""
    options = Options(by=("question_type", "duration"), draws=200)
    found = compare(store, "rexsonovqa", options, metrics=("accuracy",)).comparisons
    assert sum(one.difference.n for one in found) == 249
    assert {tuple(one.facets) for one in found} == {("question_type", "duration")}


def told(store: Store, *arguments: str) -> tuple[int, str]:
    return within("compare", "rexsonovqa", "--store", store.shown, "--draws", "200", *arguments)


def test_the_command_prints_gains_and_the_recovery_rate(store: Store) -> None:
    code, text = told(store, "--by", "question_type", "--metric", "accuracy")
    assert code == 0, text
    assert "gemini-3-pro / video minus gemini-3-pro / text-only" in text
    lines = [line for line in text.splitlines() if line.startswith(("1 action", "2 artifact", "3 context"))]
    assert len(lines) == 3
    assert all(" pts" in line for line in lines)
    code, text = told(store, "--condition", "text-only", "--condition", "video", "--metric", "accuracy")
    assert (
        "Recovery rate 47.2 % (37.8 to 57.5): of 144 wrong without the media in 45 groups, 68 are right with them"
        in text
    )
    code, text = told(store, "--by", "anatomy")
    assert code == 1
    assert "found no facet 'anatomy', expected one of" in text


def test_the_report_prints_the_table_as_the_paper_does_and_the_gains(store: Store, tmp_path: Path) -> None:
    written = write_report(store, "rexsonovqa", tmp_path / "r.html", options=Options(draws=200))
    assert {"crossings", "gains"} <= set(written.sections)
    text = written.path.read_text(encoding="utf-8")
    assert "text-only ↓  video →" in text
    assert (
        "Recovery rate 47.2 % (37.8 to 57.5): of 144 wrong without the media in 45 groups, 68 are right with them."
        in text
    )
    section = text[text.index('id="crossings"') :]
    rows = re.findall(r"<tr>.*?</tr>", section, re.DOTALL)
    cells = [re.findall(r">\s*(\d+)\s*<", row) for row in rows if "incorrect" in row or "correct" in row]
    assert ["97", "8", "105"] in cells
    assert ["68", "76", "144"] in cells
    assert "What video gains over text-only, by kind of question" in text


def test_the_browser_says_whose_letters_are_meant_and_where_the_clip_lies(store: Store, tmp_path: Path) -> None:
    written = write_report(store, "rexsonovqa", tmp_path / "r.html", options=Options(draws=100))
    text = written.path.read_text(encoding="utf-8")
    data = data_of(text)
    item = next(one for one in data["items"] if one["id"] == "1st_Trimester_Scan/mcq-01")
    given = {data["runs"][one["run"]]["condition"]: one for one in item["answers"]}
    assert plain(given["video"]["text"]).startswith("Answer: D")
    read = given["video"]["read"]
    assert given["video"]["other"] == f"saw the options in another order: its D is {read} here"
    assert given["video"]["shown"]["ABCD".index("D")] == item["options"]["ABCD".index(read)]
    assert "other" not in given["text-only"]
    assert item["clips"] == [
        {
            "text": "0.1 s to 3.5 s of video 1st_Trimester_Scan",
            "url": "https://www.youtube.com/watch?v=PnoPvJXhanI&t=18s",
        }
    ]


def plain(text: str | list[Any]) -> str:
    return text if isinstance(text, str) else str(text[0])


def test_gains_for_programs(store: Store) -> None:
    code, text = told(store, "--by", "duration", "--metric", "accuracy", "--format", "json")
    assert code == 0, text
    rows: list[dict[str, Any]] = json.loads(text)
    assert [row["facets"]["duration"] for row in rows] == ["0-5 s", "5-10 s", "10-20 s", ">20 s"]
    code, text = told(store, "--by", "duration", "--metric", "accuracy", "--format", "csv")
    assert "duration" in text.splitlines()[0]


def test_two_runs_are_named_by_system_and_condition(store: Store) -> None:
    names = ("gemini-3-pro/text-only", "gemini-3-pro/video")
    (one,) = compare(store, "rexsonovqa", Options(systems=names, draws=200), metrics=("accuracy",)).comparisons
    assert [str(one.first), str(one.second)] == ["gemini-3-pro / text-only", "gemini-3-pro / video"]
    assert one.table == A1


def test_without_a_pair_the_command_says_what_makes_one(store: Store) -> None:
    with pytest.raises(InputError) as raised:
        compare(store, "rexsonovqa", Options(systems=("gemini-3-pro",), conditions=("video",)))
    message = str(raised.value)
    assert "Only gemini-3-pro / video matches; compare needs two runs. Add --" in message


MARGINS = {  # the totals that the paper prints
    "A1": ((105, 144), (165, 84)),
    "A2": ((19, 21, 23, 202), (99, 29, 24, 113)),
    "A3": ((105, 144), (74, 175)),
    "A4": ((19, 21, 23, 202), (7, 21, 28, 209)),
    "A5": ((105, 144), (138, 111)),
    "A6": ((19, 21, 23, 202), (74, 16, 32, 143)),
    "A7": ((105, 144), (130, 119)),
    "A8": ((19, 21, 23, 202), (80, 24, 28, 133)),
}


def test_the_published_tables_have_the_published_totals(benchmark: Benchmark) -> None:
    assert benchmark.published is not None
    found = {one.name: one for one in benchmark.published.crossings}
    assert set(found) == set(MARGINS)
    for name, (rows, columns) in MARGINS.items():
        assert tuple(map(sum, found[name].counts)) == rows
        assert tuple(map(sum, zip(*found[name].counts, strict=True))) == columns
    assert found["A1"].counts == tuple(map(tuple, A1))
    assert found["A2"].counts == tuple(map(tuple, A2))


def test_published_rows_are_what_the_text_says_and_what_the_recorded_answers_give(
    benchmark: Benchmark, store: Store
) -> None:
    known = benchmark.published
    assert known is not None
    overall = {(row.system, row.condition): row.values for row in known.rows if not row.facets}
    gemini, blind = overall["Gemini 3 Pro", "video"], overall["Gemini 3 Pro", "text-only"]
    assert [round(100 * one["accuracy"], 1) for one in (gemini, blind)] == [66.3, 42.2]
    assert [round(one["rubric_by_error_type"], 2) for one in (gemini, blind)] == [0.95, 0.31]
    for facet in ("question_type", "duration"):
        ours = {
            (row.metric, row.facets[facet]): row.value
            for row in results(store, "rexsonovqa", Options(by=(facet,), draws=100)).rows
            if row.condition == "video" and row.system == "gemini-3-pro"
        }
        for metric, locations in (("accuracy", 3), ("rubric_by_error_type", 2)):
            rows = [row for row in known.split(metric, (facet,)) if row.condition == "video"]
            assert len(rows) == 2
            for row in rows:
                value = ours[metric, row.facets[facet]]
                assert value is not None
                assert round(value, locations) == row.values[metric]


def test_published_rows_stand_beside_ours(store: Store) -> None:
    code, text = within("results", "rexsonovqa", "--store", store.shown, "--draws", "100")
    assert code == 0, text
    assert re.search(r"Seed 2\.0 Pro +video, published +52\.2 %", text)
    code, text = within("results", "rexsonovqa", "--store", store.shown, "--draws", "100", "--by", "question_type")
    assert re.search(r"Gemini 3 Pro +video, published +1 action-goal +69\.9 %", text)
    assert not re.search("Seed", text)
