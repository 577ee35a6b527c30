"""A recorded judge compared with a second one, on the answers that both have scored."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from scipy import stats as reference

from proctor.audits import CorrelationSettings, audit
from proctor.core import BENCHMARKS, InputError, generator
from proctor.judges.verdict_metrics import verdict_scores
from proctor.metrics import AccuracyScorer
from proctor.results import compared, judges_of
from proctor.runs import Store, import_answers
from tests.support.audit_page import Tables
from tests.support.browser_items import data_of
from tests.support.program import proctor

RECORDED = "gemini-3-pro-preview"
VERDICTS = ((0, "both"), (1, "wrong_conclusion"), (2, "none"))


@pytest.fixture(scope="module")
def store(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recorded answers of one model, and a second judge that mostly says what the first said."""
    reader = BENCHMARKS.get("rexsonovqa")
    benchmark = reader.load(data / "rexsonovqa")
    recorded = reader.read_recorded(data / "rexsonovqa" / "results" / "gemini-3-pro", benchmark)
    path = tmp_path_factory.mktemp("judges") / "runs.db"
    opened = Store(path)
    scorers = (AccuracyScorer(),)
    asyncio.run(import_answers(opened, benchmark, recorded, name="gemini", condition="video", scorers=scorers))
    (run,) = opened.runs("rexsonovqa")
    rng = generator(0, "second judge")
    for number, one in enumerate(one for one in recorded.scores if one.metric == "rubric"):
        if number % 10:  # a tenth stays unscored
            level = int(one.value) if rng.random() < 0.7 else int(rng.integers(0, 3))
            opened.add_scores(run, verdict_scores(*VERDICTS[level], item_id=one.item_id, scorer="second"))
    opened.close()
    return path


def test_one_judge_stands_for_the_raters(store: Path) -> None:
    opened = Store(store, create=False)
    assert judges_of(opened, "rexsonovqa") == [RECORDED, "second"]
    table, (metric,) = compared(opened, "rexsonovqa", ["second"], [RECORDED])
    assert {dimension for _, dimension in table.dimensions} == {"rubric", "rubric_by_error_type"}
    assert {one.rater for one in table.ratings} == {RECORDED}
    assert {one.system for one in table.ratings} == {"gemini / video"}
    assert len(table.ratings) + sum(int(note.split()[0]) for note in metric.notes) == 2 * 265
    (note,) = metric.notes
    assert note.endswith(f" scores by {RECORDED} alone: left out")
    found = audit(table, metric, CorrelationSettings(draws=200))
    rubric = next(row for row in found.agreements if row.dimension == "rubric")
    pairs = [(metric.scores[one.key] or 0.0, one.value) for one in table.ratings if one.dimension == "rubric"]
    assert rubric.kendall.value == pytest.approx(float(reference.kendalltau(*zip(*pairs, strict=True)).statistic))
    assert rubric.mean.groups == len({one.group for one in table.ratings}) > 40


def test_the_other_way_round_is_the_same_correlation(store: Path) -> None:
    opened = Store(store, create=False)
    there, back = (
        audit(table, metric, CorrelationSettings(draws=0)).agreements[0].mean.value
        for pair in (("second", RECORDED), (RECORDED, "second"))
        for table, (metric,) in [compared(opened, "rexsonovqa", pair[:1], pair[1:])]
    )
    assert there == pytest.approx(back)


def test_judges_that_are_not_there(store: Path) -> None:
    opened = Store(store, create=False)
    with pytest.raises(InputError, match=rf"found 'third', expected one of {RECORDED}, second$"):
        compared(opened, "rexsonovqa", ["third"], [RECORDED])
    with pytest.raises(InputError, match=r"found second twice, expected two judges$"):
        compared(opened, "rexsonovqa", ["second"], ["second"])


def test_on_the_command_line(store: Path) -> None:
    done = proctor(
        *("audit", "rexsonovqa", "--scorer", "second", "--against", RECORDED, "--store", store),
        *("--format", "json", "--draws", "100"),
    )
    assert done.returncode == 0, done.stderr
    (metric,) = json.loads(done.stdout)["metrics"]
    assert metric["metric"] == "second"
    assert [row["dimension"] for row in metric["agreement"]] == ["rubric", "rubric_by_error_type"]
    assert 0.4 < metric["agreement"][0]["kendalltau"]["value"] < 0.9


def test_two_judges_have_a_report(store: Path, tmp_path: Path) -> None:
    out = tmp_path / "judges.html"
    done = proctor(
        *("audit", "rexsonovqa", "--scorer", "second", "--against", RECORDED, "--store", store),
        *("--draws", "100", "--report", out),
    )
    assert done.returncode == 0, done.stderr
    text = out.read_text(encoding="utf-8")
    page = Tables(text)
    assert any(row[0] == "second" for row in page.rows("leaderboard"))
    assert f"scores by {RECORDED} alone: left out" in page.texts["counts"]
    data = data_of(text)
    assert (data["ratings"]["metrics"], data["ratings"]["raters"]) == (["second"], RECORDED)
    assert all(item["question"] and item["references"] for item in data["items"])
