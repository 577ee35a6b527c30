"""The report of an audit: its numbers are the audit's, and faults that were planted show."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from proctor.audits import AuditReport, RatingsTable, to_json
from proctor.audits.profile import LengthSlope
from proctor.core import InputError, number
from proctor.reports import AuditSource, ReportSummary, metric_pairs_table, write_audit_report
from proctor.reports.metric_profile import _verdict
from proctor.reports.metric_ranking import metric_pairs_section
from proctor.stats import Contrast
from tests.support.audit_page import FEW, Tables, embedded, ends, planted_source, read, signed
from tests.support.browser_items import data_of
from tests.support.planted_metrics import planted
from tests.support.program import proctor


@pytest.fixture(scope="module")
def source() -> AuditSource:
    return planted_source("long", "fair", "flat")


@pytest.fixture(scope="module")
def summary(source: AuditSource, tmp_path_factory: pytest.TempPathFactory) -> ReportSummary:
    return write_audit_report(source, tmp_path_factory.mktemp("audit") / "audit.html")


def found_in(rows: list[list[str]], *starts: list[str]) -> None:
    """Every list of cells begins a row."""
    missing = [start for start in starts if not any(row[: len(start)] == start for row in rows)]
    assert starts
    assert missing == []


def test_boards_and_pairs_are_those_of_the_audit(source: AuditSource, summary: ReportSummary) -> None:
    page, data = read(summary), json.loads(json.dumps(to_json(source.found)))
    for board in data["boards"]:
        alone = board["dimension"] != "ALL"
        if not alone and board["language"] == "zh":  # one dimension: its own board is shown
            continue
        for location in board["ranking"]:
            kinds = [number(location[kind]) for kind in ("kendalltau", "pearson", "spearman")] if alone else []
            rank = "–" if location["rank"] is None else str(location["rank"])
            ties = ", ".join(map(str, location["ties"])) or "–"
            found_in(page.rows("leaderboard"), [location["metric"], rank, ties, *kinds, *ends(location["mean"])])
        shown = [
            [pair["first"], pair["second"], *signed({"value": pair["difference"]} | pair)]
            for pair in board["comparisons"]
        ]
        found_in(page.rows("pairs"), *shown)


def test_the_finding_counts_the_pairs_that_the_table_sets_in_bold(source: AuditSource) -> None:
    """Whatever the level of intervals is: the finding took its level for that of the tests."""
    found = source.found
    wide = AuditReport(found.table, found.metrics, replace(found.settings, draws=200, level=0.99))
    shown = replace(source, found=wide)
    section = metric_pairs_section(shown)
    assert section is not None
    for language, said in zip(shown.languages, section.finding.split("; "), strict=True):
        board = shown.main_board(language)
        bold = sum(getattr(row[2], "strong", False) for row in metric_pairs_table(board).rows)
        strict = sum(pair.p_holm is not None and pair.p_holm <= 0.01 for pair in board.comparisons)
        assert bold > strict or language == "zh"
        assert f"{bold} of {len(board.comparisons)} pairs" in said


def test_agreement_and_length_are_those_of_the_audit(source: AuditSource, summary: ReportSummary) -> None:
    page, data = read(summary), json.loads(json.dumps(to_json(source.found)))
    for metric in data["metrics"][:2]:
        for row in metric["agreement"]:
            kinds = [number(row[kind]["value"]) for kind in ("kendalltau", "pearson", "spearman")]
            found_in(page.rows("agreement"), [row["dimension"], row["dataset"], *kinds, *ends(row["mean"])])
        for row in metric["by_length"]:
            if row["dataset"] == "ALL":
                shown = [metric["metric"], row["dimension"], *ends(row["scores"]), *ends(row["ratings"])]
                found_in(page.rows("bias"), [*shown, *signed(row["excess"]), number(row["partial"])])


def test_bias_and_calibration_are_those_of_the_audit(source: AuditSource, summary: ReportSummary) -> None:
    page, data = read(summary), json.loads(json.dumps(to_json(source.found)))
    text = summary.path.read_text(encoding="utf-8")
    assert "p is not adjusted for their number" in text[text.index('<section id="bias"') :].partition("<h3")[0]
    for portrait in data["profiles"]:
        for row in portrait["bias"]:
            name = "mean over the dimensions" if row["dimension"] == "ALL" else row["dimension"]
            found_in(page.rows("bias"), [portrait["metric"], name, row["value"], *signed(row["residual"])])
        for row in portrait["calibration"]:
            for part in row["bins"]:
                shown = [row["dimension"], f"{number(part['low'])} to {number(part['high'])}"]
                shown += [number(part["score"]), *ends(part["rating"]), str(part["ratings"])]
                found_in(page.rows("calibration"), shown)


def test_a_judge_that_likes_long_answers_shows(summary: ReportSummary) -> None:
    page = read(summary)
    said = page.texts["bias"]
    assert (
        len(re.findall(r"Favours long answers beyond their ratings: long \(\+0\.\d+, 0\.\d+ to 0\.\d+\)\.", said)) == 2
    )
    assert len(re.findall(r"Neither is shown: fair \(", said)) == 2
    slopes = [row for row in page.rows("bias") if row[0] == "long" and row[1] == "mean over the dimensions"]
    assert slopes
    assert "signs are turned" in said


def test_a_constant_metric_has_a_reason_and_no_number(summary: ReportSummary) -> None:
    page = read(summary)
    rows = [row for row in page.rows("agreement") if row[-1] == "constant: all scores are 1"]
    assert {row[0] for row in rows} == {"flat"}
    assert len(rows) == 9
    assert "no correlation: flag: all scores are 1; overall: all scores are 1" in page.texts["leaderboard"]
    assert not re.search(r"\bnan\b", summary.path.read_text(encoding="utf-8"), re.IGNORECASE)


def test_every_section_is_there_and_the_same_source_gives_the_same_page(
    source: AuditSource, summary: ReportSummary, tmp_path: Path
) -> None:
    assert summary.sections == (
        *("leaderboard", "pairs", "agreement", "raters", "systems"),
        *("calibration", "bias", "counts"),
    )
    assert (summary.items, summary.answers, summary.left_out) == (120, 360, ())
    again = write_audit_report(source, tmp_path / "again.html")
    assert again.path.read_bytes() == summary.path.read_bytes()
    ids = [known["id"] for _, known in read(summary).elements if known.get("id")]
    assert len(ids) == len(set(ids))


def test_one_metric_alone_and_raters_of_the_same_answers(tmp_path: Path) -> None:
    table, metrics = planted(5)
    second = tuple(replace(one, rater="q", value=1 - one.value) for one in table.ratings if one.system == "s1")
    found = AuditReport(RatingsTable((*table.ratings, *second)), [metrics["fair"]], FEW)
    page = read(write_audit_report(AuditSource("One", found), tmp_path / "one.html"))
    assert "pairs" not in page.sections
    ceiling = found.each[0].ceilings[0]
    row = next(row for row in page.rows("raters") if row[0] == "flag")
    assert row[4:6] == [number(ceiling.mean.value), f"{number(ceiling.mean.ci_low)} to {number(ceiling.mean.ci_high)}"]
    assert number(ceiling.alpha.value) in row
    (tmp_path / "audit").mkdir()
    with pytest.raises(InputError, match=r"audit: found .*, expected a writable path$"):
        write_audit_report(AuditSource("One", found), tmp_path / "audit")
    with pytest.raises(InputError, match=r"^metrics: found none, expected one or more$"):
        write_audit_report(AuditSource("None", AuditReport(table, [], FEW)), tmp_path / "none.html")


def test_disagreement_puts_questions_in_order(source: AuditSource, summary: ReportSummary) -> None:
    data = embedded(summary)
    assert data["ratings"]["metrics"] == ["long", "fair", "flat"]
    gaps = source.found.discrepancies
    assert gaps["flat"] == {}

    def apart(item: dict[str, Any]) -> float:
        means = []
        for answer in item["answers"]:
            own = [
                abs(gap)
                for name in ("long", "fair")
                for (where, system, _), gap in gaps[name].items()
                if (where, system) == (item["id"], data["runs"][answer["run"]]["system"])
            ]
            means.append(sum(own) / len(own))
        return max(means)

    order = [apart(item) for item in data["items"]]
    assert order == pytest.approx(sorted(order, reverse=True), abs=1e-3)  # the page's gaps have four digits
    item = data["items"][0]
    assert item["references"] == [["Usual.", "frequency 3, completeness 0.5"], ["Rare.", ""]]
    first = item["answers"][0]
    assert [len(score) for score in first["rated"]] == [4] * len(first["rated"])
    assert first["rated"][0][2][2] == 1.0  # the constant's score is shown,
    assert first["rated"][0][3][2] is None  # and has no gap


# -- on the command line


def test_the_real_data(data: Path, tmp_path: Path) -> None:
    task, out = data / "mediqa-eval", tmp_path / "audit.html"
    store = ("--store", tmp_path / "runs.db")
    for command in (
        ("import", "mediqa-eval", task / "ratings.csv", "--data", task),
        ("import", "mediqa-eval", task / "submission_overlap.csv", "--data", task, "--scorer", "overlap"),
        ("score", "mediqa-eval", "--metric", "rouge-l-mean"),
    ):
        done = proctor(*command, *store)
        assert done.returncode == 0, done.stderr
    done = proctor(*("audit", "mediqa-eval", *store, "--draws", "100"), *("--report", out, "--format", "json"))
    assert done.returncode == 0, done.stderr
    assert f"{out}: " in done.stderr.replace("\n", "")
    found = json.loads(done.stdout)
    page = Tables(out.read_text(encoding="utf-8"))
    for board in found["boards"]:
        for index in board["ranking"]:
            assert any(row[0] == index["metric"] and ends(index["mean"])[0] in row for row in page.rows("leaderboard"))
    slope = next(
        one["slope"]
        for one in found["profiles"][0]["length_slopes"]
        if (one["language"], one["dimension"]) == ("en", "ALL")
    )
    # Word overlap counts references' words: the longer an answer, the more of them it has.
    assert slope["ci_low"] > 0.2
    assert "Favours long answers beyond their ratings: " in page.texts["bias"]
    assert "No answer was rated by two raters on the same dimension." in page.texts["raters"]
    assert out.stat().st_size < 8e6
    items = data_of(out.read_text(encoding="utf-8"))["items"]
    assert len(items) == 242
    assert all(item["question"] and item["references"] for item in items)
    assert sum(len(item["answers"]) for item in items) == 726
    done = proctor(*("audit", "mediqa-eval", *store, "--scorer", "overlap", "--draws", "0", "--report", out))
    assert done.returncode == 0, done.stderr
    assert "rouge" not in done.stdout
    assert "Metrics compared in pairs" not in out.read_text(encoding="utf-8")


def test_any_ratings_have_a_report(tmp_path: Path) -> None:
    ratings, scores, out = tmp_path / "ratings.csv", tmp_path / "mine.csv", tmp_path / "folder" / "audit.html"
    rows = [f"q{k},text {k},s{k % 2},quality,{rater},{k % 3}\n" for k in range(12) for rater in "ab"]
    ratings.write_text("item,candidate,system,dimension,rater,value\n" + "".join(rows), encoding="utf-8")
    values = [f"q{k},s{k % 2},quality,{(k * 5) % 7}\n" for k in range(12)]
    scores.write_text("item,system,dimension,value\n" + "".join(values), encoding="utf-8")
    done = proctor("audit", "--scores", scores, "--ratings", ratings, "--draws", "100", "--report", out)
    assert done.returncode == 0, done.stderr
    page = Tables(out.read_text(encoding="utf-8"))
    assert any(row[0] == "mine" for row in page.rows("leaderboard"))
    assert "12 questions have no text at hand" not in page.texts["items"]  # none was promised


def test_whom_length_favours_is_said_by_the_ends_of_its_interval() -> None:
    ends = {"long": (0.1, 0.4), "short": (-0.4, -0.1), "neither": (-0.1, 0.2), "unsure": (None, None)}
    slopes = [
        (name, LengthSlope("en", "", Contrast(sum(filter(None, two)) / 2, *two, None), 30, 10, ""))
        for name, two in ends.items()
    ]
    said = [point.partition(": ") for point in _verdict(slopes).points]
    assert [head for head, _, _ in said] == [
        "Favours long answers beyond their ratings", "Favours short answers beyond their ratings", "Neither is shown",
    ]  # fmt: skip
    assert [re.findall(r"(\w+) \(", tail) for _, _, tail in said] == [["long"], ["short"], ["neither", "unsure"]]
