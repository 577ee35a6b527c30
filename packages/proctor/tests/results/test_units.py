"""Metrics whose value is a share of several units: pairwise accuracy counts pairs, not items."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from proctor.core import (
    ACCURACY,
    Answer,
    Benchmark,
    FailedPolicy,
    InputError,
    Item,
    PublishedRow,
    PublishedTable,
    Reference,
    Status,
)
from proctor.core.formats import OrderingFormat
from proctor.metrics import code_scorers
from proctor.metrics.ordering import NEIGHBOURS, RUN_METRICS, compare_orders, order_estimates
from proctor.reports import write_report
from proctor.results import Options, compare, leaderboard, load_items, load_orders, results
from proctor.runs import Store
from proctor.stats import Resampling
from tests.support.program import proctor

ORDERS = {
    "one": {"q1": "ABCD", "q2": "ACBDEF", "q3": "BADC", "q4": "FEDCBA"},
    "two": {"q1": "ABDC", "q2": "ABCDEF", "q3": "ABCD", "q4": "ABCDEF"},
}


def said_order(item: Item, order: str) -> Answer:
    return Answer(item_id=item.id, text=order, parsed=[*order])


def benchmark(*, tagged: bool = True, videos: int = 0) -> Benchmark:
    """Four orders of a video each; with `videos` four of each of so many."""
    items = []
    for row, frames in enumerate((4, 6, 4, 6) * max(1, videos)):
        labels = tuple("ABCDEF"[:frames])
        items.append(
            Item(
                id=f"q{row + 1}",
                group=f"v{row % videos if videos else row}",
                question="In which order were they taken?",
                answer=OrderingFormat(labels=labels),
                reference=Reference(answer=[*labels]),
                tags={"frames": frames, **({NEIGHBOURS: frames - 1} if tagged else {})},
            )
        )
    return Benchmark("frames", "Frames", tuple(items), (ACCURACY, *RUN_METRICS), "accuracy", facets=("frames",))


def stored(path: Path, loaded: Benchmark) -> Store:
    store = Store(str(path / "runs.db"))
    store.add_benchmark(loaded)
    for system, orders in ORDERS.items():
        run = store.start_run(loaded.name, system, "video", {})
        scored = []
        for item in loaded.items:
            answer = Answer(item_id=item.id, text=orders[item.id], parsed=[*orders[item.id]])
            scores = [one for scorer in code_scorers() for one in asyncio.run(scorer.score(item, answer))]
            scored.append((answer, scores))
        store.write(run, scored)
    return store


def test_pairwise_accuracy_is_the_share_of_all_pairs(tmp_path: Path) -> None:
    """By hand: of system one 3 + 4 + 1 + 0 of 3 + 5 + 3 + 5 pairs are in order; as `order_estimates` has it."""
    loaded = benchmark()
    store = stored(tmp_path, loaded)
    rows = results(store, "frames", Options(draws=500)).rows
    (row,) = [one for one in rows if one.system == "one" and one.metric == "pairwise_accuracy"]
    compared = [
        compare_orders("ABCDEF"[: 4 + 2 * (index % 2)], said) for index, said in enumerate(ORDERS["one"].values())
    ]
    scores = order_estimates(compared, ["v0", "v1", "v2", "v3"], plan=Resampling(draws=500))
    assert (row.value, row.n, row.groups, row.answered) == (8 / 16, 16, 4, 4)
    assert row.value == scores[1].estimate.value
    assert (row.ci_low, row.ci_high) == (
        scores[1].estimate.ci_low,
        scores[1].estimate.ci_high,
    )  # one interval everywhere
    by_frames = results(store, "frames", Options(by=("frames",), draws=500)).rows
    shares = {
        one.facets["frames"]: (one.value, one.n)
        for one in by_frames
        if one.system == "one" and one.metric == "pairwise_accuracy"
    }
    assert shares == {"4": (4 / 6, 6), "6": (4 / 10, 10)}
    for metric, score in (("kendall_tau", scores[2]), ("longest_run", scores[3]), ("up_to_reversal", scores[6])):
        (found,) = [one for one in rows if one.system == "one" and one.metric == metric]
        assert found.value == pytest.approx(score.estimate.value)
        assert found.n == 4


@pytest.mark.parametrize("policy", FailedPolicy)
def test_the_official_figures_have_the_intervals_of_results_where_orders_are_invalid_or_lacking(
    tmp_path: Path, policy: FailedPolicy
) -> None:
    """One order is invalid, one failed, one was refused and one was not asked."""
    loaded = benchmark(videos=3)
    store = Store(str(tmp_path / "runs.db"))
    store.add_benchmark(loaded)
    run = store.start_run(loaded.name, "one", "video", {})
    given: list[str | Status | None] = ["ABCD", "ABCDEE", "BAC", Status.FAILED, "BADC", "ABCDEF", Status.REFUSED, None]
    given += ["ABDC", "ACBDEF", "DCBA", "FEDCBA"]
    scored = []
    for item, said in zip(loaded.items, given, strict=True):
        if said is None:
            continue
        answer = Answer(item_id=item.id, status=said) if isinstance(said, Status) else said_order(item, said)
        failed = answer.status is Status.FAILED
        scorers = [] if failed else code_scorers()
        scored.append((answer, [one for scorer in scorers for one in asyncio.run(scorer.score(item, answer))]))
    store.write(run, scored)
    rows = {row.metric: row for row in results(store, "frames", Options(draws=500, failed=policy)).rows}
    table, items = load_items(store, store.card("frames")), {item.id: item for item in loaded.items}
    (official,) = load_orders(store, [run], table, items, policy)
    for score in (*official.metrics(draws=500), official.partial(draws=500)):
        name = "accuracy" if score.metric.name == "task_accuracy" else score.metric.name
        assert (score.estimate.value, score.estimate.ci_low, score.estimate.ci_high) == (
            rows[name].value,
            rows[name].ci_low,
            rows[name].ci_high,
        ), name
    assert rows["pairwise_partial"].value != rows["pairwise_accuracy"].value


def test_leaderboard_and_comparison_count_pairs_too(tmp_path: Path) -> None:
    store = stored(tmp_path, benchmark())
    board = leaderboard(store, "frames", condition="video", metric="pairwise_accuracy")
    assert [(row.system, row.value, row.n) for row in board.rows] == [("two", 15 / 16, 16), ("one", 0.5, 16)]
    found = compare(store, "frames", metrics=["pairwise_accuracy"]).comparisons
    assert [(one.difference.value, one.difference.n) for one in found] == [(-7 / 16, 16)]


def test_an_item_that_says_no_number_of_units_is_named(tmp_path: Path) -> None:
    store = stored(tmp_path, benchmark(tagged=False))
    with pytest.raises(InputError) as error:
        results(store, "frames")
    assert str(error.value) == (
        "item 'q1', tag 'neighbours': found no number of them, expected one, for pairwise_accuracy"
    )


def test_no_order_has_nothing_in_order_and_a_failed_answer_is_never_scored() -> None:
    item = benchmark().items[0]
    scorer = code_scorers()[1]
    late = asyncio.run(scorer.score(item, Answer(item_id="q1", status=Status.TIMED_OUT)))
    assert [(one.metric, one.value) for one in late] == [
        ("pairwise_accuracy", 0.0),
        ("kendall_tau", -1.0),
        ("longest_run", 0.0),
        ("first_right", 0.0),
        ("last_right", 0.0),
        ("up_to_reversal", 0.0),
        ("pairwise_partial", 0.0),
        ("valid_order", 0.0),
    ]
    with pytest.raises(ValueError, match="never scored"):
        asyncio.run(scorer.score(item, Answer(item_id="q1", status=Status.FAILED)))


@pytest.mark.parametrize(
    ("said", "partial", "state"),
    [("ABC", 2 / 3, "invalid"), ("ABCDD", 1.0, "invalid"), ("ABCDX", 1.0, "invalid"), ("XY", 0.0, "invalid")],
)
def test_an_invalid_order_is_wrong_and_its_pairs_stand_apart(said: str, partial: float, state: str) -> None:
    """The task's script regards an order that misses, repeats or invents a label as invalid."""
    answer = Answer(item_id="q1", text=said, parsed=[*said])
    scores = {one.metric: one for one in asyncio.run(code_scorers()[1].score(benchmark().items[0], answer))}
    worst = {metric.name: metric.worst for metric in RUN_METRICS if metric.name != "pairwise_partial"}
    assert {name: scores[name].value for name in worst} == worst
    assert scores["pairwise_partial"].value == pytest.approx(partial)
    assert scores["valid_order"].label == state


def test_of_several_accepted_orders_the_nearest_counts() -> None:
    known = benchmark().items[0]
    item = known.model_copy(update={"reference": Reference(answer=[*"ABCD"], accepted=([*"BADC"],))})
    scores = asyncio.run(code_scorers()[1].score(item, Answer(item_id="q1", text="BADC", parsed=[*"BADC"])))
    assert [one.value for one in scores] == [1.0] * 8


def test_published_figures_stay_beside_the_results(tmp_path: Path) -> None:
    """They are shown, scored and in their own order, and never enter a number."""
    table = PublishedTable(
        "A paper, table 2",
        "On other items.",
        (ACCURACY,),
        (PublishedRow("a team", {"accuracy": 0.63}), PublishedRow("none", {})),
    )
    store = stored(tmp_path, replace(benchmark(), published=table))
    assert store.card("frames").published == table
    assert {row.system for row in results(store, "frames").rows} == {"one", "two"}
    out = tmp_path / "report.html"
    write_report(store, "frames", out)
    page = out.read_text(encoding="utf-8")
    assert "A paper, table 2." in page
    assert "a team" in page
    shown = proctor("results", "frames", "--store", str(tmp_path / "runs.db"))
    assert [line.split()[:5] for line in shown.stdout.splitlines() if "published" in line][:1] == [
        ["a", "team", "published", "63.0", "%"]
    ]
    assert "published: A paper, table 2. On other items." in shown.stderr


def test_a_guess_without_the_media_is_no_other_condition_to_compare(tmp_path: Path) -> None:
    """Two systems are named, one of them also ran as a floor without the media: they share one condition alone."""
    loaded = benchmark()
    store = stored(tmp_path, loaded)
    run = store.start_run("frames", "two", "text-only", {})
    scored = []
    for item in loaded.items:
        answer = Answer(item_id=item.id, text="B > A", parsed=["B", "A"])
        scored.append((answer, [one for scorer in code_scorers() for one in asyncio.run(scorer.score(item, answer))]))
    store.write(run, scored)
    pair = Options(systems=("one", "two"), draws=100)
    (found,) = compare(store, "frames", pair, metrics=["pairwise_accuracy"]).comparisons
    assert (str(found.first), str(found.second)) == ("one / video", "two / video")
    (alone,) = compare(store, "frames", Options(draws=100), metrics=["pairwise_accuracy"]).comparisons
    assert {alone.first.system, alone.second.system} == {"two"}
