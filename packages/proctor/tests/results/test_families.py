"""Every adjusted p names the comparisons that it is adjusted for, and a pair has the same p wherever it is compared."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest

import proctor
from proctor.core import InputError
from proctor.reports import Source
from proctor.reports.comparisons import significance_words, unadjusted_line
from proctor.reports.summary import story_of
from proctor.results import Comparison, Options, compare, compare_runs
from proctor.runs import Store
from proctor.stats import holm_known
from tests.support.contest import NAME, contest_store, skilled, write_run

ITEMS = 120
RATES = {"one": (0.9, 0.7), "two": (0.8, 0.6), "three": (0.6, 0.5), "four": (0.4, 0.3)}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    made = contest_store(tmp_path_factory.mktemp("families"), ITEMS, failed=None)
    for number, (system, (easy, hard)) in enumerate(RATES.items(), start=1):
        write_run(made, system, skilled(easy, hard, ITEMS, number))
        write_run(made, system, skilled(0.5, 0.4, ITEMS, number + 10), condition="text-only")
    return made


def of_pair(found: list[Comparison], *names: str) -> Comparison:
    (one,) = [one for one in found if one.metric == "accuracy" and {str(one.first), str(one.second)} == set(names)]
    return one


def test_two_of_four_systems_have_the_p_of_all_pairs(store: Store) -> None:
    pairs = list(combinations(RATES, 2))
    every = [compare(store, NAME, Options(systems=pair, conditions=("video",))).comparisons for pair in pairs]
    alone = [of_pair(found, *(f"{name} / video" for name in pair)) for found, pair in zip(every, pairs, strict=True)]
    wanted = holm_known([one.difference.p for one in alone])
    assert [one.p_holm for one in alone] == wanted
    assert {one.family for one in alone} == {"the 6 pairs of 4 systems"}
    together = compare(store, NAME, Options(conditions=("video",))).comparisons
    for pair, one in zip(pairs, alone, strict=True):
        again = of_pair(together, *(f"{name} / video" for name in pair))
        assert (again.p_holm, again.family) == (one.p_holm, one.family)


def test_a_condition_and_text_only_belong_to_all_such_comparisons(store: Store) -> None:
    one = compare(store, NAME, Options(systems=("one",))).comparisons
    every = compare(store, NAME).comparisons
    names = ("one / video", "one / text-only")
    assert of_pair(one, *names).p_holm == of_pair(every, *names).p_holm
    assert of_pair(one, *names).family == "the 4 comparisons with text-only"


def test_of_several_families_each_is_said_of_its_metrics(store: Store) -> None:
    """It said "for the 4 comparisons with text-only, or the 3 comparisons with text-only"."""
    one = of_pair(compare(store, NAME, Options(systems=("one",))).comparisons, "one / video", "one / text-only")
    effort = replace(one, family="the 3 comparisons", declared=replace(one.declared, name="effort", label="Effort"))
    found = [one, replace(effort, metric="effort"), replace(one, scorer="panel")]
    assert unadjusted_line(found[:2]) == (
        "p (Holm) is adjusted for the 4 comparisons with text-only (Accuracy); the 3 comparisons (Effort). "
        "Intervals are not adjusted."
    )
    assert "text-only (Accuracy by code, Accuracy by panel); the 3 comparisons (Effort)." in unadjusted_line(found)
    assert unadjusted_line([one]).startswith("p (Holm) is adjusted for the 4 comparisons with text-only. ")


def test_one_comparison_alone_is_adjusted_for_nothing(store: Store) -> None:
    runs = {(run.system, run.condition): run for run in store.runs(NAME)}
    (one, *_) = compare_runs(store, NAME, [(runs["one", "video"], runs["two", "text-only"])])
    assert (one.p_holm, one.family, one.family_size) == (one.difference.p, "", 1)
    assert "adjusted" not in significance_words(one)
    (pair, *_) = compare_runs(store, NAME, [(runs["one", "video"], runs["two", "video"])], alone=True)
    assert (pair.p_holm, pair.family) == (pair.difference.p, "")


def test_parts_are_adjusted_for_what_was_asked_for(store: Store) -> None:
    found = compare(store, NAME, Options(systems=("one", "two"), conditions=("video",), by=("level",)))
    parts = [one for one in found.comparisons if one.metric == "accuracy"]
    assert len(parts) > 1
    assert {one.family for one in parts} == {f"the {len(parts)} comparisons asked for"}
    assert [one.p_holm for one in parts] == holm_known([one.difference.p for one in parts])


def test_the_first_screen_the_comparison_and_the_analysis_agree(store: Store) -> None:
    options = Options(draws=1000)
    comparison = of_pair(compare(store, NAME, Options(conditions=("video",))).comparisons, "one / video", "two / video")
    words = significance_words(comparison)
    assert words.endswith(" adjusted for the 6 pairs of 4 systems")
    answers = " ".join(answer.answer for answer in story_of(Source(store, NAME, options)).answers)
    assert words in answers
    rows = proctor.analyze(store, NAME, draws=1000, baselines="none")["pairs"].to_dict("records")
    (row,) = [row for row in rows if {row["first"], row["second"]} == {"one", "two"}]
    assert (row["p"], row["p_holm"]) == (comparison.difference.p, comparison.p_holm)
    assert row["adjusted_for"] == comparison.family


def test_columns_of_a_frame_do_not_contradict_the_table(store: Store) -> None:
    table = proctor.compare(store, NAME, systems=["one", "two"], conditions="video", draws=100)
    row = next(row for row in table.rows if row["metric"] == "accuracy")
    comparison = next(one for one in table.data.comparisons if one.metric == "accuracy")
    assert comparison.table is not None
    (both, first), (second, neither) = comparison.table
    assert (row["right_wrong"], row["wrong_right"]) == (first, second)
    assert both + first + second + neither == row["n"]
    assert (row["scored_only_first"], row["scored_only_second"]) == (0, 0)
    assert "only_first" not in row


def test_flags_of_a_judge_are_compared_only_if_they_are_named(tmp_path: Path) -> None:
    from tests.support.fuzzed_store import NAME as FUZZED
    from tests.support.fuzzed_store import fuzzed

    made = fuzzed(tmp_path, 1, items=40, waits=0.0).store
    usual = {one.metric for one in compare(made, FUZZED, Options(failed=None)).comparisons}
    assert "unresolved" not in usual
    assert {"accuracy", "helpful"} <= usual
    named = compare(made, FUZZED, metrics=("unresolved",)).comparisons
    assert {one.metric for one in named} == {"unresolved"}


def test_facets_are_found_without_case(store: Store) -> None:
    exact = proctor.results(store, NAME, by="level", draws=100).rows
    assert proctor.results(store, NAME, by="Level", draws=100).rows == exact
    found = proctor.compare(store, NAME, systems=["one", "two"], conditions="video", by="LEVEL", draws=100)
    assert "level" in found.rows[0]
    assert proctor.rank(store, NAME, by="Level", draws=100, stability=0).rows
    with pytest.raises(InputError, match="no facet 'levels'"):
        proctor.results(store, NAME, by="levels", draws=100)
