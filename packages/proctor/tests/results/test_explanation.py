"""What explains a gap: eight planted differences, alone and in pairs, by hand, and against an enumeration of all orders."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import combinations, permutations
from pathlib import Path

import numpy as np
import pytest
from pydantic import JsonValue

from proctor.core import (
    ACCURACY,
    CONFIDENCE,
    Answer,
    Benchmark,
    FailedPolicy,
    InputError,
    Item,
    Reference,
    UsageError,
    read_answer,
)
from proctor.core.formats import CountFormat
from proctor.metrics import AccuracyScorer
from proctor.results import Options, compare
from proctor.results.arrays import load_items
from proctor.results.explained_run import ExplainedItems, ExplainedRun, Scoring, run_to_explain
from proctor.results.explanation import Explanation, explain_gap
from proctor.results.gap_game import GapGame
from proctor.runs import Store
from proctor.stats import Resampling
from tests.support.explained_runs import JUDGES, PLANTED, planted, settings
from tests.support.simulation import assert_share, repetitions

FEW = Resampling(draws=200)
SWAPPED = {"items", "missing", "reader", "judge"}


def sides(store: Store, differences: Collection[str]) -> tuple[ExplainedRun, ExplainedRun]:
    card = store.card("organs")
    shared = ExplainedItems(store, card, load_items(store, card), card.metric("accuracy"))
    runs = {run.system: run for run in store.runs("organs")}
    judges = JUDGES if "judge" in differences else (JUDGES[0], JUDGES[0])
    left_out = FailedPolicy.EXCLUDE if "missing" in differences else FailedPolicy.WRONG
    return (
        run_to_explain(shared, runs["first"], scorer=judges[0], policy=FailedPolicy.WRONG),
        run_to_explain(shared, runs["second"], scorer=judges[1], policy=left_out),
    )


def explained(store: Store, differences: Collection[str], *, turned: bool = False) -> Explanation:
    first, second = sides(store, differences)
    return explain_gap(GapGame(second, first) if turned else GapGame(first, second), FEW)


def parts(found: Explanation) -> dict[str, float]:
    return {part.player: float(part.estimate.value or 0.0) for part in found.parts}


def mean(values: Mapping[str, float]) -> float:
    return sum(values.values()) / len(values)


PAIRS = [*((one,) for one in PLANTED), *combinations(PLANTED, 2)]


@pytest.mark.parametrize("differences", PAIRS, ids="+".join)
def test_planted_differences_are_named_and_add_up(tmp_path: Path, differences: tuple[str, ...]) -> None:
    store = planted(tmp_path / "s.db", differences)
    found = explained(store, differences)
    kinds = {one.kind for one in found.differences}
    assert set(differences) <= kinds
    assert kinds - set(differences) <= set()
    assert found.first.estimate.value is not None
    assert found.second.estimate.value is not None
    assert found.gap.value == pytest.approx(found.first.estimate.value - found.second.estimate.value, abs=1e-12)
    assert sum(parts(found).values()) == pytest.approx(found.gap.value, abs=1e-12)
    for part in found.parts:
        if part.player != "asked":
            assert (abs(part.estimate.value or 0.0) > 1e-12) == (part.player in differences), part
        assert (part.estimate.ci_low is None) == bool(part.why)
    asked = parts(found)["asked"]
    assert (abs(asked) > 1e-12) == bool(set(differences) - SWAPPED)
    turned = explained(store, differences, turned=True)
    assert parts(turned) == pytest.approx({name: -value for name, value in parts(found).items()}, abs=1e-12)


def test_nothing_differs(tmp_path: Path) -> None:
    found = explained(planted(tmp_path / "s.db", ()), ())
    assert found.differences == ()
    assert found.gap.value == 0
    assert parts(found) == {"asked": 0.0}
    (part,) = found.parts
    assert (part.share, part.changed) == (None, 0)
    assert part.estimate.ci_low is not None  # groups that are not here may differ, as `compare` says
    assert (part.estimate.ci_low, part.estimate.ci_high) == (found.gap.ci_low, found.gap.ci_high)


def test_parts_by_hand(tmp_path: Path) -> None:
    """48 items: 36 with options, 12 in free text. The judges call 4 and 6 of 12 right. Of the 36, numbers 0, 5, 10 … are
    wrong; the reader loses each third one that is right."""
    differences = ("reader", "judge")
    found = explained(planted(tmp_path / "s.db", differences), differences)
    numbers = [number for number in range(48) if number % 4 != 3]
    right = [number for number in numbers if number % 5]
    lost = [number for number in right if number % 3 == 0]
    assert found.first.estimate.value == pytest.approx((len(right) + 4) / 48, abs=1e-12)
    assert found.second.estimate.value == pytest.approx((len(right) - len(lost) + 6) / 48, abs=1e-12)
    assert parts(found) == pytest.approx({"reader": len(lost) / 48, "judge": -2 / 48, "asked": 0.0}, abs=1e-12)
    shares = {part.player: part.share for part in found.parts}
    assert shares["reader"] == pytest.approx(len(lost) / (len(lost) - 2), abs=1e-12)
    assert {part.player: part.changed for part in found.parts}["reader"] == len(lost)


def test_missing_and_reader_interact_by_hand(tmp_path: Path) -> None:
    """With failed answers left out, a lost reply weighs 1/44 instead of 1/48: half of the time each, in two orders."""
    differences = ("missing", "reader")
    found = explained(planted(tmp_path / "s.db", differences), differences)
    failed = [number for number in range(48) if number % 4 == 0 and number // 4 % 3 == 0]
    right = [number for number in range(48) if number % 4 != 3 and number % 5 and number not in failed]
    lost = [number for number in right if number % 3 == 0]
    good, bad, n, m = len(right) + 4, len(right) - len(lost) + 4, 48, 48 - len(failed)
    assert found.first.estimate.value == pytest.approx(good / n, abs=1e-12)
    assert found.second.estimate.value == pytest.approx(bad / m, abs=1e-12)
    reader = ((good - bad) / n + (good - bad) / m) / 2
    missing = (good / n - good / m + bad / n - bad / m) / 2
    assert parts(found) == pytest.approx({"missing": missing, "reader": reader, "asked": 0.0}, abs=1e-12)


def test_replies_are_read_again_as_a_run_reads_them(tmp_path: Path) -> None:
    """A confidence below an answer is no part of it, and an abstention is one: neither is a difference of readers."""
    items = tuple(
        Item(
            id=f"q{n}",
            group=f"v{n}",
            question="How many?",
            answer=CountFormat(strict=True),
            reference=Reference(answer=n),
        )
        for n in range(1, 5)
    )
    store = Store(tmp_path / "s.db")
    store.add_benchmark(Benchmark("counts", "Counts", items, (ACCURACY,), "accuracy"))
    run = store.start_run("counts", "m", "video", settings())
    said = ("1\nConfidence: 85", "2\nConfidence: high", "UNANSWERABLE\nConfidence: 20", "many")
    asked: dict[str, JsonValue] = {CONFIDENCE: {"source": "stated", "value": 0.85}}
    answers = [
        read_answer(item, Answer(item_id=item.id, text=text, extra=asked))
        for item, text in zip(items, said, strict=True)
    ]
    assert [one.parsed for one in answers] == [1, 2, None, None]
    assert [one.status for one in answers] == ["answered", "answered", "abstained", "answered"]
    store.write(run, [(one, [AccuracyScorer().compute(item, one)]) for item, one in zip(items, answers, strict=True)])
    card = store.card("counts")
    side = run_to_explain(ExplainedItems(store, card, load_items(store, card), card.metric("accuracy")), run)
    assert side.asked_here
    assert side.reread.scores.tolist() == side.own.scores.tolist() == [[1.0, 1.0, 0.0, 0.0]]
    assert not side.read_otherwise.any()


def test_a_gap_that_is_rounding_has_no_shares(tmp_path: Path) -> None:
    """The same scores in another order: their sums differ by 2e-16."""
    first, second = sides(planted(tmp_path / "s.db", ()), ())
    scores = np.tile([0.1, 0.2, 0.3], 16)
    one, other = (Scoring(row[None, :], np.zeros((1, 48), dtype=np.bool_)) for row in (scores, np.sort(scores)[::-1]))
    game = GapGame(replace(first, own=one, reread=one), replace(second, own=other, reread=other))
    found = explain_gap(game, FEW)
    assert 0 < abs(float(found.gap.value or 0)) < 1e-15
    assert [part.share for part in found.parts] == [None]


def test_items_of_one_side_are_a_term_of_their_own(tmp_path: Path) -> None:
    differences = ("items", "sampling")
    store = planted(tmp_path / "s.db", differences)
    found = explained(store, differences)
    first, second = sides(store, ())
    one, two = first.values(first.own, first.policy), second.values(second.own, second.policy)
    common = ~np.isnan(two)
    assert found.common == common.sum() < 48
    assert parts(found)["items"] == pytest.approx(one.mean() - one[common].mean(), abs=1e-12)
    assert parts(found)["asked"] == pytest.approx(one[common].mean() - two[common].mean(), abs=1e-12)


def test_values_equal_those_of_all_orders(tmp_path: Path) -> None:
    """The Shapley values are the means of what each difference changes over all orders, computed from `combinations`."""
    differences = ("missing", "reader", "judge", "sampling")
    found = explained(planted(tmp_path / "s.db", differences), differences)
    count = len(found.players)
    assert found.players == ("missing", "reader", "judge", "asked")
    sums = dict.fromkeys(found.players, 0.0)
    orders = list(permutations(range(count)))
    for order in orders:
        subset = 0
        for player in order:
            before, after = found.values[subset], found.values[subset | 1 << player]
            assert before is not None
            assert after is not None
            sums[found.players[player]] += after - before
            subset |= 1 << player
    assert parts(found) == pytest.approx({name: total / len(orders) for name, total in sums.items()}, abs=1e-12)


def test_the_intervals_are_of_groups_and_drawn_by_a_seed(tmp_path: Path) -> None:
    differences = ("missing", "reader", "sampling")
    store = planted(tmp_path / "s.db", differences)
    first, again = explained(store, differences), explained(store, differences)
    assert first == again
    assert {part.estimate.groups for part in first.parts} == {12}
    assert (first.draws, first.seed, first.level) == (200, 0, 0.95)
    other = explain_gap(GapGame(*sides(store, differences)), Resampling(draws=200, seed=1))
    assert parts(other) == parts(first)
    assert [part.estimate for part in other.parts] != [part.estimate for part in first.parts]


def test_one_group_has_no_interval_and_says_why(tmp_path: Path) -> None:
    found = explained(planted(tmp_path / "s.db", ("prompt",), groups=1), ("prompt",))
    assert {(part.player, part.estimate.ci_low, part.why) for part in found.parts} == {
        ("asked", None, "too few groups")
    }


def test_the_gap_has_the_interval_that_compare_gives(tmp_path: Path) -> None:
    store = planted(tmp_path / "s.db", ("reader", "sampling"))
    found = explained(store, ("reader", "sampling"))
    options = Options(failed=FailedPolicy.WRONG, draws=200, systems=("first", "second"), conditions=("video",))
    compared = next(one for one in compare(store, "organs", options).comparisons if one.scorer == JUDGES[0])
    assert (found.gap.ci_low, found.gap.ci_high) == (compared.difference.ci_low, compared.difference.ci_high)
    assert found.gap.value == pytest.approx(compared.difference.value, abs=1e-12)


def test_a_judge_of_one_side_is_swapped_by_the_other_sides_answers(tmp_path: Path) -> None:
    """The second judge has scored the second run alone: what it changes there is what it changes."""
    differences = ("judge",)
    first, second = sides(planted(tmp_path / "s.db", differences), differences)
    first = replace(first, judged={})
    found = explain_gap(GapGame(first, second), FEW)
    assert parts(found) == pytest.approx({"judge": -2 / 48, "asked": 0.0}, abs=1e-12)
    alone = explain_gap(GapGame(first, replace(second, judged={})), FEW)
    assert parts(alone) == pytest.approx({"asked": -2 / 48}, abs=1e-12)
    assert alone.fixed == (
        ("judge", f"neither {JUDGES[0]} nor {JUDGES[1]} has scored answers of both (proctor score)"),
    )


def test_runs_between_the_sides_split_what_was_asked(tmp_path: Path) -> None:
    """Two steps: frames (the first side with the other's frames) and all the rest."""
    differences = ("frames", "sampling")
    store = planted(tmp_path / "s.db", differences)
    first, second = sides(store, ())
    rng = np.random.default_rng(7)
    scores = np.where(first.own.lacking, np.nan, rng.integers(0, 2, first.own.scores.shape).astype(float))
    middle = replace(first, name="middle", own=replace(first.own, scores=scores), reread=first.own)
    between = {frozenset({"frames"}): middle}
    found = explain_gap(GapGame(first, second, ("frames",), between), FEW)
    one, two, three = (side.own.scores.mean() for side in (first, middle, second))
    assert parts(found) == pytest.approx({"frames": one - two, "asked": two - three}, abs=1e-12)
    ends = {frozenset({"frames"}): middle, frozenset({"sampling"}): first}
    both = explain_gap(GapGame(first, second, ("frames", "sampling"), ends), FEW)
    frames = ((one - two) + (one - three)) / 2
    assert parts(both) == pytest.approx({"frames": frames, "sampling": one - three - frames}, abs=1e-12)


def test_what_cant_be_explained_is_refused(tmp_path: Path) -> None:
    store = planted(tmp_path / "s.db", ("judge",))
    first, second = sides(store, ("judge",))
    shared, run = first.shared, first.run
    assert run is not None
    with pytest.raises(UsageError, match="first / video has several scores of Accuracy: choose --scorer"):
        run_to_explain(shared, run)
    with pytest.raises(UsageError, match="--scorer 'nobody' has not scored first / video: choose"):
        run_to_explain(shared, run, scorer="nobody")
    nothing = replace(second, own=replace(second.own, scores=second.own.scores * np.nan))
    with pytest.raises(InputError, match="first / video and second / video: found no item that both have a score of"):
        explain_gap(GapGame(first, nothing), FEW)
    other = replace(shared, metric=replace(shared.metric, name="rouge", label="ROUGE"))
    with pytest.raises(InputError, match="first / video: found no score of ROUGE by item"):
        run_to_explain(other, run)


@pytest.mark.parametrize("seed", range(12))
def test_random_sides_add_up_and_do_not_depend_on_the_order(tmp_path: Path, seed: int) -> None:
    """Scores, missing answers, readings and judges at random, with repetitions."""
    rng = np.random.default_rng(seed)
    first, second = sides(planted(tmp_path / "s.db", ("judge", "missing")), ("judge", "missing"))

    def drawn(side: ExplainedRun, *, exact: bool) -> ExplainedRun:
        shape = (rng.integers(1, 4), first.own.scores.shape[1])

        def scoring(lacking: np.ndarray) -> object:
            scores = rng.integers(0, 2, shape).astype(float) if exact else rng.random(shape)
            return replace(side.own, scores=np.where(lacking, np.nan, scores), lacking=lacking)

        lacking = rng.random(shape) < 0.2
        judged = {name: scoring(rng.random(shape) < 0.1) for name in side.judged}
        return replace(side, own=scoring(lacking), reread=scoring(lacking), judged=judged)  # type: ignore[arg-type]

    game = GapGame(drawn(first, exact=seed % 2 == 0), drawn(second, exact=seed % 2 == 0))
    found = explain_gap(game, Resampling(draws=100))
    assert {"missing", "reader", "judge", "asked"} <= set(parts(found))
    assert found.gap.value is not None
    assert abs(sum(parts(found).values()) - found.gap.value) < 1e-12
    turned = explain_gap(GapGame(game.second, game.first), Resampling(draws=100))
    for name, value in parts(found).items():
        assert abs(parts(turned)[name] + value) < 1e-12


def simulated(side: ExplainedRun, rng: np.random.Generator, *, second: bool, effect: np.ndarray) -> ExplainedRun:
    """A side whose groups share effects: the second one fails more often where it is better, and its reader loses replies."""
    count = side.own.scores.shape[1]
    right = rng.random(count) < 1 / (1 + np.exp(-((0.2 if second else 0.8) + effect[0] + second * effect[1])))
    failed = np.asarray(rng.random(count) < (0.04 + 0.15 * (effect[1] > 0) if second else 0.03))
    lost = (rng.random(count) < 0.12 + 0.1 * (effect[0] > 0)) & side.by_code & second
    lacking = failed.reshape(1, -1)
    own, now = (np.where(lacking, np.nan, values.astype(float)) for values in (right & ~lost, right))
    return replace(side, own=Scoring(own, lacking), reread=Scoring(now, lacking))


def drawn(both: tuple[ExplainedRun, ExplainedRun], rng: np.random.Generator) -> GapGame:
    groups = both[0].own.scores.shape[1] // 4
    effect = (rng.normal(0, [[1.0], [0.7]], (2, groups))).repeat(4, axis=1)
    first, second = both
    return GapGame(
        simulated(first, rng, second=False, effect=effect), simulated(second, rng, second=True, effect=effect)
    )


@pytest.fixture(scope="module")
def true_parts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    """Those of 4,000 groups."""
    many = sides(planted(tmp_path_factory.mktemp("many") / "s.db", (), groups=4000), ("missing",))
    return parts(explain_gap(drawn(many, np.random.default_rng(99)), Resampling(draws=1)))


@pytest.mark.simulation
@pytest.mark.parametrize("groups", [12, 24, 48])
def test_intervals_of_parts_cover(tmp_path: Path, true_parts: dict[str, float], groups: int) -> None:
    """Four items in each group. A part without an interval, since no reply in it was lost, is left out."""
    few = sides(planted(tmp_path / "s.db", (), groups=groups), ("missing",))
    rng, times = np.random.default_rng(1), repetitions(300)
    covered = {name: [0, 0] for name in true_parts}
    for _ in range(times):
        for part in explain_gap(drawn(few, rng), Resampling(draws=400)).parts:
            low, high = part.estimate.ci_low, part.estimate.ci_high
            if low is not None and high is not None:
                covered[part.player][0] += low <= true_parts[part.player] <= high
                covered[part.player][1] += 1
    assert set(covered) == {"missing", "reader", "asked"}
    for count, known in covered.values():
        assert known > 0.9 * times
        assert_share(count, known, 0.93, 1.0)


def test_the_explanation_is_plain_data(tmp_path: Path) -> None:
    found = explained(planted(tmp_path / "s.db", ("reader", "prompt")), ("reader", "prompt")).to_json()
    assert [part["part"] for part in found["parts"]] == ["reader", "asked"]
    assert found["settings"] == {"draws": 200, "seed": 0, "level": 0.95}
    assert found["combinations"]["players"] == ["reader", "asked"]
    assert len(found["combinations"]["scores"]) == 4
    assert found["first"]["missing"] == 0
