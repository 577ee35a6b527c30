"""Margins, interactions, limits of critical errors, pilots and item analysis, as read from a store."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import proctor
from proctor.core import InputError
from proctor.results import CompareExtras, MarginRecord, Options, analyse_items, compare, critical_errors, read_pilot
from proctor.runs import Store
from proctor.stats import interaction, variance_parts
from tests.support.contest import contest_store, skilled, write_run
from tests.support.program import proctor as command


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    made = contest_store(tmp_path_factory.mktemp("margins"))
    for number, (name, easy, hard) in enumerate(
        [("good", 0.9, 0.8), ("fair", 0.9, 0.5), ("poor", 0.4, 0.3), ("worst", 0.3, 0.1)]
    ):
        write_run(made, name, skilled(easy, hard, seed=number))
    return made


def benchmark(store: Store) -> str:
    return store.benchmark_names()[0]


def test_the_margin_is_told_before_the_figures_and_its_hash_names_runs_and_margin(store: Store) -> None:
    told: list[MarginRecord] = []
    options = Options(systems=("good", "fair"), draws=200)
    found = compare(store, benchmark(store), options, asked=CompareExtras(margin=5.0, told=told.append))
    again = compare(store, benchmark(store), options, asked=CompareExtras(margin=6.0, told=told.append))
    assert found.margin == told[0]
    assert told[0].runs == (("good", "video"), ("fair", "video"))
    assert again.margin is not None
    assert len({told[0].sha256, told[1].sha256}) == 2
    (one,) = [comparison for comparison in found.comparisons if comparison.metric == "accuracy"]
    assert one.margin is not None
    low = one.difference.ci_low
    assert low is not None
    assert (one.margin.finding == "not worse") == (low > -0.05)
    assert one.to_json()["margin"] == 0.05
    assert one.to_json()["margin_finding"] == "not worse"


def test_a_worse_system_is_worse_by_more_than_the_margin(store: Store) -> None:
    found = compare(store, benchmark(store), Options(systems=("worst", "good")), asked=CompareExtras(margin=3.0))
    assert [one.margin.finding for one in found.comparisons if one.margin is not None] == ["worse"]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (CompareExtras(margin=0.0), "margin: found 0, expected points above 0"),
        (CompareExtras(margin=100.0), "margin of accuracy: found 100, expected less than 100"),
        (CompareExtras(equivalence=True), r"equivalence: found no margin, expected one \(--margin POINTS\)"),
        (
            CompareExtras(interaction=True),
            r"interaction: found no facet, expected one to split the items by \(--by FACET\)",
        ),
    ],
)
def test_what_can_not_be_asked_is_one_line(store: Store, asked: CompareExtras, said: str) -> None:
    with pytest.raises(InputError, match=said):
        compare(store, benchmark(store), Options(systems=("good", "fair")), asked=asked)


def test_an_interaction_is_that_of_the_items_differences(store: Store) -> None:
    options = Options(systems=("good", "fair"), by=("level",))
    found = compare(store, benchmark(store), options, asked=CompareExtras(interaction=True)).interactions
    (one,) = [each for each in found if each.metric.name == "accuracy"]
    good, fair = (np.array(skilled(*how), dtype=float) for how in ((0.9, 0.8, 240, 0), (0.9, 0.5, 240, 1)))
    items = store.items(benchmark(store))
    wanted = interaction(
        good - fair, ["hard" if number % 2 else "easy" for number in range(240)], [item.group for item in items]
    )
    assert one.found.p == pytest.approx(wanted.p)
    assert [part["level"] for part in one.parts] == ["easy", "hard"]
    assert one.found.parts[1].difference == pytest.approx((good - fair)[1::2].mean())
    assert one.found.p is not None
    assert one.found.p < 0.05


def test_commands_print_margin_interaction_and_forest(store: Store) -> None:
    base = ("compare", benchmark(store), "--store", store.shown, "--system", "good", "--system", "fair")
    shown = command(*base, "--margin", "3", "--by", "level", "--interaction", "--metric", "accuracy")
    assert "Interaction: p " in shown.stdout
    assert any("o" in line and "|" in line for line in shown.stdout.splitlines())
    assert "recorded" in shown.stderr
    rows = json.loads(command(*base, "--margin", "3", "--metric", "accuracy", "--format", "json").stdout)
    assert rows[0]["margin_record"]["kind"] == "non-inferiority"
    assert rows[0]["margin_finding"] in {"not worse", "undecided"}


def test_critical_errors_count_missing_answers_as_errors(tmp_path: Path) -> None:
    store = contest_store(tmp_path)
    right: list[bool | None] = [True] * 240
    write_run(store, "silent", [None if number < 20 and number % 2 else one for number, one in enumerate(right)])
    write_run(store, "safe", right)
    silent, safe = (
        next(one for one in critical_errors(store, benchmark(store), "level=hard") if one.system == name)
        for name in ("silent", "safe")
    )
    assert (silent.errors, silent.n) == (10.0, 120)
    assert silent.limit is not None
    assert safe.limit is not None
    assert silent.limit > silent.share
    assert safe.errors == 0
    assert safe.limit == pytest.approx(1 - 0.05 ** (1 / safe.groups), abs=1e-6)  # whole groups without an error
    assert safe.effective == pytest.approx(safe.groups, rel=1e-3)


def test_unknown_critical_items_are_refused(store: Store) -> None:
    with pytest.raises(InputError, match="no scored item with level=odd, expected one of easy, hard"):
        critical_errors(store, benchmark(store), "level=odd")
    with pytest.raises(InputError, match="no facet 'nix'"):
        critical_errors(store, benchmark(store), "nix")


def test_a_pilot_has_the_variances_of_its_differences(store: Store) -> None:
    found = read_pilot(store, benchmark(store), ("good", "fair"))
    apart = np.array(skilled(0.9, 0.8, seed=0), dtype=float) - np.array(skilled(0.9, 0.5, seed=1))
    assert found.parts == variance_parts(apart, [item.group for item in store.items(benchmark(store))])
    table = proctor.plan(store, systems=("good", "fair"), margin=3, questions=(2, 20), repeats=(1, 5))
    few, *_, many = table.rows
    assert few["groups"] > many["groups"]
    assert few["groups_low"] < few["groups"] < few["groups_high"]


def test_plan_refuses_two_sources_and_none(store: Store) -> None:
    with pytest.raises(
        proctor.core.UsageError, match=r"a true difference \(--difference POINTS\), or .* \(--margin POINTS\)"
    ):
        proctor.plan(store, systems=("good", "fair"))
    with pytest.raises(proctor.core.UsageError, match="The variances are missing"):
        proctor.plan(margin=3)
    with pytest.raises(proctor.core.UsageError, match="Leave them or --from out"):
        proctor.plan(store, systems=("good", "fair"), sd_item=40, margin=3)


def test_a_wrong_key_is_the_first_suspect(tmp_path: Path) -> None:
    store = contest_store(tmp_path)
    for number, skill in enumerate((0.9, 0.8, 0.7, 0.4, 0.3, 0.2)):
        right = skilled(skill, skill, seed=number)
        right[7] = skill < 0.5  # only the poor ones give the answer of the key
        write_run(store, f"s{number}", right)
    found = analyse_items(store, benchmark(store))
    assert found is not None
    first = found.rows()[0]
    assert first["item"] == "q007"
    assert first["discrimination"] < -0.9
    assert (first["missed_by_better_half"], first["right_in_poorer_half"]) == (1.0, 1.0)
    assert found.found.mean_discrimination.ci_low is not None


def test_three_systems_are_too_few_for_item_analysis(tmp_path: Path) -> None:
    store = contest_store(tmp_path)
    for number in range(3):
        write_run(store, f"s{number}", skilled(0.5, 0.5, seed=number))
    assert analyse_items(store, benchmark(store)) is None
