"""The analysis: numbers that can be worked out by hand, from a store of made-up submissions."""

from __future__ import annotations

import asyncio
import csv
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from proctor.core import InputError, Item, natural
from proctor.core.formats import AnswerFormat, BinaryFormat, ClassesFormat, CountFormat, TimestampsFormat
from proctor.metrics import AccuracyScorer
from proctor.reports import AnalysisTables
from proctor.reports.figures.marks import PLOT_SHAPES
from proctor.reports.report_numbers import Source
from proctor.results import (
    Analysis,
    Board,
    Contest,
    Options,
    RankedRun,
    analyse,
    lead_rows,
    results,
    rule_rows,
    write_tables,
)
from proctor.results.performance import ParsedAnswers, box_of, vote
from proctor.results.ranking import RankedScores
from proctor.results.ranking_tables import resampled_rank_sd
from proctor.runs import Store, import_answers
from proctor.stats import RankingPlan, Resampling, holm, rank_buckets
from proctor.tasks.focus import READER
from tests.support.program import proctor

N = 60


def asked(number: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """A yes-or-no question and a count in turn, on six videos; every third asks of two capabilities."""
    request = {
        "qID": f"q{number:02d}",
        "videoID": f"v{number % 6}.mp4",
        "start_time": 0,
        "end_time": 300 if number % 5 else 4000,
        "procedure_type": "resection",
        "question": f"Question {number}?",
    }
    counts = number % 2
    reference = {
        "qID": request["qID"],
        "primary": "object_aggregation" if counts else "object_identification",
        "secondaries": ["temporal_ordering"] if number % 3 == 0 else [],
        "format": "number" if counts else "binary",
        "answer": str(number % 4) if counts else "yes",
        "ood": number % 4 < 2,
        "clinical": number % 7 == 0,
    }
    return request, reference


def given(system: str, number: int, answer: str) -> str | None:
    """`one`, `two` and `three` are wrong on different thirds; `mute` leaves out the first ten."""
    if system == "mute":
        return None if number < 10 else "what?"
    wrong = {"one": 0, "two": 1, "three": 2}[system] == number % 3
    if not wrong:
        return answer
    return "9" if answer.isdigit() else "no"


def store_of(path: Path, said: Mapping[str, Callable[[int, dict[str, Any]], str | None]]) -> Store:
    """A store of submissions: by system what it says to each question, of which its reference is known here."""
    pairs = [asked(number) for number in range(N)]
    (path / "requests.json").write_text(json.dumps([request for request, _ in pairs]))
    (path / "references.json").write_text(json.dumps([reference for _, reference in pairs]))
    benchmark, opened = READER.load(path), Store(str(path / "runs.db"))
    for system, says in said.items():
        answers = [(ref["qID"], says(number, ref)) for number, (_, ref) in enumerate(pairs)]
        (path / "r.json").write_text(
            json.dumps([{"qID": name, "content": text} for name, text in answers if text is not None])
        )
        recorded = READER.read_recorded(path / "r.json", benchmark)
        asyncio.run(
            import_answers(opened, benchmark, recorded, name=system, condition="video", scorers=[AccuracyScorer()])
        )
    return opened


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    def says(system: str) -> Callable[[int, dict[str, Any]], str | None]:
        return lambda number, reference: given(system, number, reference["answer"])

    systems = ("one", "two", "three", "mute")
    return store_of(tmp_path_factory.mktemp("analysis"), {system: says(system) for system in systems})


@pytest.fixture(scope="module")
def found(store: Store) -> Analysis:
    return analyse(store, "focus", Contest(baselines=("mute",)), stability=20, plan=Resampling(draws=200))


def row(found: Analysis, table: str, **wanted: Any) -> dict[str, Any]:
    rows = [one for one in found.tables[table] if all(one[key] == value for key, value in wanted.items())]
    assert len(rows) == 1, rows
    return rows[0]


def test_capabilities_alone_and_together(found: Analysis) -> None:
    every = row(found, "capabilities", system="one", label="event_understanding", stratum="all")
    assert (every["n"], every["value"]) == (20, 0.0)  # it is wrong on exactly these
    alone = row(found, "capabilities", system="one", label="aggregation", stratum="alone")
    assert (alone["n"], alone["value"]) == (20, 1.0)
    both = row(found, "capabilities", system="two", label="aggregation", stratum="with event_understanding")
    assert (both["n"], both["value"]) == (10, 1.0)


def test_the_plot_of_an_analysis_shows_all_questions_that_carry_a_capability(found: Analysis) -> None:
    """Of the 30 counts a third is wrong for each system; of the 20 that ask of nothing else `one` has all right."""
    (axes,) = AnalysisTables(found).plot().axes
    labels = [label.get_text() for label in axes.get_yticklabels()]
    dots = {
        str(line.get_label()): np.asarray(line.get_xdata()) for line in axes.lines if line.get_marker() in PLOT_SHAPES
    }
    shown = dict(zip(labels, dots["one"], strict=True))
    assert shown["aggregation"] == pytest.approx(100 * 2 / 3)
    assert shown["event_understanding"] == 0.0


def test_pairs_and_videos(found: Analysis) -> None:
    pair = row(found, "pairs", first="one", second="two")
    assert (pair["difference"], pair["only_first_right"], pair["only_second_right"]) == (0.0, 20, 20)
    silent = row(found, "pairs", first="one", second="mute")
    assert (silent["only_first_right"], silent["only_second_right"]) == (40, 0)
    assert silent["difference"] == pytest.approx(2 / 3)
    video = row(found, "videos", system="one", part="all")
    # Six videos, number % 6: those of 0 and 3 are all wrong, the four others all right.
    assert (video["groups"], video["lowest"], video["median"], video["highest"]) == (6, 0.0, 1.0, 1.0)
    assert video["sd"] == pytest.approx((2 / 3 * 1 / 3 * 6 / 5) ** 0.5)


def test_ensembles_and_the_bound(found: Analysis) -> None:
    values = {one["ensemble"]: one["value"] for one in found.tables["ensembles"] if one["format"] == "all"}
    assert values == {"best": pytest.approx(2 / 3), "vote of all": 1.0, "any right (upper bound)": 1.0}
    assert "mute" not in found.tables["ensembles"][-1]["systems"]


def test_failures_by_format_and_cause(found: Analysis) -> None:
    causes = {
        (one["format"], one["cause"]): one["count"] for one in found.tables["failures"] if one["system"] == "mute"
    }
    assert causes == {
        ("binary", "missing"): 5,
        ("binary", "unreadable"): 25,
        ("number", "missing"): 5,
        ("number", "unreadable"): 25,
    }


def test_scores_gaps_and_the_model(found: Analysis) -> None:
    within = row(found, "scores", system="one", metric="within_one")
    assert (within["n"], within["value"]) == (30, pytest.approx(2 / 3))
    gap = row(found, "gaps", system="one", factor="distribution")
    inside = [number for number in range(N) if number % 4 >= 2]
    outside = [number for number in range(N) if number % 4 < 2]
    share = [sum(number % 3 != 0 for number in some) / len(some) for some in (inside, outside)]
    assert gap["value"] == pytest.approx(share[1] - share[0])


def test_the_model_rests_on_the_submissions_alone(store: Store, found: Analysis) -> None:
    """A baseline in the model would make its own weaknesses properties of the questions."""
    systems = ("one", "two", "three")
    alone = analyse(store, "focus", Contest(systems=systems, baselines=("none",)), stability=0)
    assert found.tables["regression"] == alone.tables["regression"]
    assert {"system = three", "system = two"} <= {one["term"] for one in found.tables["regression"]}
    assert found.reference["system"] == "one"
    # As a submission, `mute` counts. It is never right, so that no odds can be given to it.
    every = analyse(store, "focus", Contest(systems=(*systems, "mute"), baselines=("none",)), stability=0)
    notes = {one["term"]: one["note"] for one in every.tables["regression"]}
    assert notes["intercept"] == "some columns tell right from wrong without fail"


@pytest.mark.parametrize("knows", [True, False])
def test_the_interval_of_a_gap_reaches_no_farther_than_gaps_can(tmp_path: Path, knows: bool) -> None:
    """A system that knows all of the one kind and nothing of the other, but for one question."""

    def says(number: int, reference: dict[str, Any]) -> str:
        right = (reference["ood"] is knows) != (number == 2)
        return str(reference["answer"]) if right else "9" if number % 2 else "no"

    store = store_of(tmp_path, {"one": says})
    tables = analyse(store, "focus", Contest(), plan=Resampling(draws=200)).tables
    (gap,) = [one for one in tables["gaps"] if one["factor"] == "distribution"]
    assert abs(gap["value"]) == pytest.approx(1 - 1 / 30)
    assert (gap["ci_high"] if gap["value"] > 0 else -gap["ci_low"]) == 1.0
    assert 0.2 < (gap["ci_low"] if gap["value"] > 0 else -gap["ci_high"]) < 1 - 1 / 30


def test_stability_and_significance_are_there(found: Analysis) -> None:
    chances = [one["chance"] for one in found.tables["rank_chances"] if one["board"] == "technical"]
    assert len(chances) == 9
    assert sum(chances) == pytest.approx(3)
    # Boards × pairs × buckets; the baseline is in no pair, and has no rank.
    assert len(found.tables["significance"]) == 2 * 3 * 4
    assert {one["board"] for one in found.tables["ranking"]} == {"technical", "clinical"}
    mute = row(found, "ranking", board="technical", system="mute")
    assert (mute["baseline"], mute["rank"], mute["won"], mute["mean"]) == (True, None, None, 0.0)
    own = row(found, "ranking", board="technical", system="one")
    assert (own["rank_by_mean"], own["rank_low"], own["rank_high"]) == (1, 1, 3)


def test_the_spread_of_a_rank_by_hand(found: Analysis) -> None:
    """A share of 0.5, 0.25 and 0.25 of the ranks 1, 2 and 3: mean 1.75, variance 0.5 · 0.5625 + 0.25 · 0.0625 +
    0.25 · 1.5625 = 0.6875."""
    assert resampled_rank_sd((0.5, 0.25, 0.25)) == pytest.approx(0.6875**0.5)
    assert resampled_rank_sd((0.0, 1.0)) == 0.0
    shares = {
        one["rank"]: one["chance"]
        for one in found.tables["rank_chances"]
        if (one["board"], one["system"]) == ("technical", "one")
    }
    own = row(found, "ranking", board="technical", system="one")
    assert own["resampled_rank_sd"] == pytest.approx(resampled_rank_sd([shares[index] for index in (1, 2, 3)]))


def test_whiskers_end_at_the_last_group_within_one_and_a_half_widths_of_the_box() -> None:
    """Quartiles 0.5 and 0.7, width 0.2: whiskers reach to 0.2 and 1.0; the group at 0.15 lies beyond, that at 0.25
    not."""
    box = box_of(np.array([0.15, 0.25, 0.5, 0.5, 0.6, 0.6, 0.7, 0.7, 0.8]))
    assert (box["q1"], box["q3"]) == (0.5, 0.7)
    assert (box["lowest"], box["whisker_low"], box["whisker_high"]) == (0.15, 0.25, 0.8)


def test_pairs_with_baselines_are_a_family_of_their_own(found: Analysis) -> None:
    families = {
        name: [one for one in found.tables["pairs"] if one["family"] == name] for name in ("systems", "baselines")
    }
    assert [(one["first"], one["second"]) for one in families["systems"]] == [
        ("one", "three"),
        ("one", "two"),
        ("three", "two"),
    ]
    assert {one["second"] for one in families["baselines"]} == {"mute"}
    for rows in families.values():
        assert [one["p_holm"] for one in rows] == pytest.approx(holm([one["p"] for one in rows]).tolist())


def test_what_a_vote_gains_is_paired_with_the_best(found: Analysis) -> None:
    """Alone each is right on two of three questions; of three, two always are."""
    vote_of_all = row(found, "ensembles", ensemble="vote of all", format="all")
    assert (vote_of_all["n"], vote_of_all["gain"]) == (60, pytest.approx(1 / 3))
    assert vote_of_all["left_out"] == 0
    counts = row(found, "ensembles", ensemble="vote of all", format="count")
    assert (counts["n"], counts["value"]) == (30, 1.0)


def test_groups_and_whiskers(found: Analysis) -> None:
    """Of each video one system is wrong on everything, all others right: two share rank 1, a baseline has
    none."""
    of_one = {one["system"]: (one["value"], one["rank"]) for one in found.tables["groups"] if one["group"] == "v0.mp4"}
    assert of_one == {"one": (0.0, 3), "two": (1.0, 1), "three": (1.0, 1), "mute": (0.0, None)}
    video = row(found, "videos", system="one", part="all")
    # Quartiles of 0, 0, 1, 1, 1, 1 are 0.25 and 1: 0 lies within 1.5 widths of the box.
    assert [video[name] for name in ("whisker_low", "q1", "q3", "whisker_high")] == [0.0, 0.25, 1.0, 1.0]


def test_facets_have_their_accuracies(found: Analysis) -> None:
    long = row(found, "factors", system="two", factor="context", value_of="long")
    inside = [number for number in range(N) if number % 5 == 0]
    assert (long["n"], long["value"]) == (12, sum(number % 3 != 1 for number in inside) / len(inside))


def test_lengths_stand_from_short_to_long_in_every_table(found: Analysis, store: Store) -> None:
    by_length = ["short", "long"]
    assert (
        list(dict.fromkeys(one["value_of"] for one in found.tables["factors"] if one["factor"] == "context"))
        == by_length
    )
    rows = results(store, "focus", Options(by=("context",), draws=100)).rows
    assert list(dict.fromkeys(one.facets["context"] for one in rows)) == by_length
    assert Source(store, "focus", Options(draws=100), ()).values("context") == by_length
    assert sorted(["other", "Long", "medium", "none", "short"], key=natural) == [
        "short",
        "medium",
        "Long",
        "none",
        "other",
    ]


def test_rules_and_leads_from_scores_worked_by_hand() -> None:
    """Ten videos, one question a bucket each. In the first bucket `a` is right on all, `b` on none: p of the
    sign flip is 2 / 2^10. In the second both are right; there is no lead to show."""
    groups = np.repeat(np.arange(10), 2)
    buckets = np.tile([0, 1], 10)
    right = {"a": np.ones(20), "b": np.tile([0.0, 1.0], 10)}
    standings = rank_buckets(
        np.stack(list(right.values())), list(right), groups, buckets, ["x", "y"], RankingPlan(draws=100)
    )
    ranked = [RankedRun(one, None) for one in standings.systems]
    board = Board(
        "technical", "All", standings, ranked, 20, 0, 0.05, RankedScores(right, groups, buckets, np.arange(20))
    )
    indices = {(one["system"], one["rule"]): (one["rank"], one["score"]) for one in rule_rows([board])}
    assert indices["a", "copeland"] == (1, 1.0)
    assert indices["b", "borda"] == (2, -1.0)
    assert (indices["a", "mean"], indices["b", "mean"]) == ((1, 1.0), (2, 0.5))
    leads = {one["bucket"]: one for one in lead_rows(board, "a", plan=Resampling(draws=100))}
    assert {name: (one["lead"], one["p"], one["p_adjusted"], one["verdict"]) for name, one in leads.items()} == {
        "all": (0.5, 2 / 2**10, 2 / 2**10, "ahead"),
        "x": (1.0, 2 / 2**10, 2 * 2 / 2**10, "ahead"),  # Holm over the two buckets
        "y": (0.0, 1.0, 1.0, "not shown"),
    }
    assert lead_rows(board, "b", ["a"], plan=Resampling(draws=100))[1]["verdict"] == "behind"
    with pytest.raises(InputError, match=r"board technical: found 'c', expected one of a, b$"):
        lead_rows(board, "c")


def test_tables_as_files(found: Analysis, tmp_path: Path) -> None:
    written = write_tables(found, tmp_path / "out")
    assert {file.stem for file in written} == set(found.tables)
    with (tmp_path / "out" / "pairs.csv").open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) == 6
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="expected a writable path"):
        write_tables(found, tmp_path / "file")


def test_the_program(store: Store, tmp_path: Path) -> None:
    done = proctor(
        *("analyze", "focus", "--store", store.shown, "--baseline", "mute", "--draws", "100"),
        *("--stability", "10", "--format", "json", "--out", tmp_path),
    )
    assert done.returncode == 0, done.stderr
    assert set(json.loads(done.stdout)) == {file.stem for file in tmp_path.glob("*.csv")}
    assert {"pairs", "failures", "ranks-technical"} <= {file.stem for file in tmp_path.glob("*.svg")}
    shown = proctor("analyze", "focus", "--store", store.shown, "--draws", "100", "--stability", "10")
    assert "Ensembles (p is not adjusted)" in shown.stdout
    assert "Variation between groups" in shown.stdout


@pytest.mark.parametrize(
    ("form", "values", "expected"),
    [
        (CountFormat(), [4, 1, None, 2, 9], 2),
        (CountFormat(), [4, 1, None, 2], 2),
        (BinaryFormat(), [False, True, True], True),
        (BinaryFormat(), [False, True], False),
        (ClassesFormat(classes=("clip", "mesh")), [["clip"], ["clip", "mesh"], []], ["clip"]),
        (TimestampsFormat(several=True), [[10.0, 30.0], [12.0, 31.0], [5.0]], [11.0, 30.5]),
        (TimestampsFormat(several=True), [[10.0, 30.0], [5.0]], [5.0]),
        (CountFormat(), [None, None], None),
    ],
)
def test_votes_by_hand(form: AnswerFormat, values: list[Any], expected: Any) -> None:
    item = Item(id="q", group="v", question="What?", answer=form)
    assert vote(item, values) == expected


@pytest.mark.parametrize("seed", range(5))
def test_votes_on_many_questions_at_once_are_those_of_each_alone(seed: int) -> None:
    rng = np.random.default_rng(seed)
    codes = rng.integers(-1, 4, size=(rng.integers(1, 7), 200))
    systems = [f"system {number}" for number in range(len(codes))]
    answers = ParsedAnswers(["A", True, 1, [1.5]], dict(zip(systems, codes, strict=True)))
    item = Item(id="q", group="v", question="?", answer=BinaryFormat())
    alone = [vote(item, [answers.at(one, np.array([index]))[0] for one in systems]) for index in range(codes.shape[1])]
    together = answers.most_frequent(systems, np.arange(codes.shape[1]))
    assert list(map(repr, together)) == list(map(repr, alone))


def test_the_best_system_has_no_gain_over_itself(found: Analysis) -> None:
    best = [row for row in found.tables["ensembles"] if row["ensemble"] == "best"]
    assert best
    assert {row[name] for row in best for name in ("gain", "gain_low", "gain_high", "p")} == {None}
