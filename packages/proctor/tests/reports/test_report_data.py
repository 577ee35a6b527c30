"""What a report asks of a store: worked by hand on a handful of answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor.core import ACCURACY, NO_ANSWER, Answer, Item, Metric, Reference, Score, Status, Timing, Usage
from proctor.core.formats import AnswerFormat, BinaryFormat, ChoiceFormat, CountFormat, FreeTextFormat
from proctor.metrics import chance_level
from proctor.results import (
    Consumption,
    ItemTable,
    load_answers,
    load_consumption,
    load_items,
    load_scores,
    newest_run,
    status_counts,
)
from proctor.runs import Run, Store
from tests.support.report_store import a_benchmark


@pytest.fixture
def empty(tmp_path: Path) -> tuple[Store, Run, ItemTable]:
    store = Store(tmp_path / "runs.db")
    benchmark = a_benchmark(items=7, groups=3)
    store.add_benchmark(benchmark)
    run = store.start_run("toy", "one", "video", {})
    return store, run, load_items(store, store.card("toy"))


def answered(row: int, seconds: float | None = None, *, status: Status = Status.ANSWERED, **usage: float) -> Answer:
    return Answer(
        item_id=f"q{row:03d}",
        parsed="A",
        status=status,
        timing=None if seconds is None else Timing(model_s=seconds, queue_s=0.0, retry_s=1.0 if seconds > 8 else 0.0),
        usage=Usage.model_validate(usage),
    )


def test_times_are_those_of_answers_that_did_not_fail(empty: tuple[Store, Run, ItemTable]) -> None:
    store, run, items = empty
    given = [answered(row, seconds) for row, seconds in enumerate((1.0, 2.0, 3.0, 4.0, 10.0))]
    given.append(answered(5, 500.0, status=Status.FAILED))
    store.write(run, [(answer, []) for answer in given])
    found = load_consumption(store, run, items)
    # sorted 1 2 3 4 10: the median is the third, 90 % lie 0.6 of the way from the fourth to the fifth
    assert set(found.seconds) == {"model", "retry"}  # no media, no queue: not shown as 0
    model, retry = found.seconds["model"], found.seconds["retry"]
    assert (model.n, retry.n) == (5, 5)
    assert [model.median, model.p90, retry.median, retry.p90] == pytest.approx([3.0, 7.6, 0.0, 0.6])


def test_cost_is_known_partly_known_or_unknown(empty: tuple[Store, Run, ItemTable]) -> None:
    store, run, items = empty
    nothing = load_consumption(store, run, items)
    assert nothing == Consumption({}, 0, None, None, None, None, 0)
    store.write(run, [(answered(0, requests=2, input_tokens=100, output_tokens=10, cached_tokens=50), [])])
    unknown = load_consumption(store, run, items)
    assert (unknown.cost_usd, unknown.unpriced, unknown.requests) == (None, 1, 2)
    store.write(run, [(answered(1, requests=1, input_tokens=7, output_tokens=3, cost_usd=0.25), [])])
    store.write(run, [(answered(2, requests=1, cost_usd=0.5), []), (answered(3), [])])
    found = load_consumption(store, run, items)
    assert found == Consumption({}, 4, 107, 13, 50, 0.75, 1, priced=2)


def test_every_item_ends_one_way(empty: tuple[Store, Run, ItemTable]) -> None:
    store, run, items = empty
    unreadable = answered(1).model_copy(update={"parsed": None, "problem": "expected a letter"})
    given = [
        answered(0),
        unreadable,
        answered(2, status=Status.REFUSED),
        answered(3, status=Status.TIMED_OUT),
        answered(4, status=Status.FAILED),
        Answer(item_id=items.ids[5], reason=NO_ANSWER, problem=NO_ANSWER),
        answered(6, status=Status.ERROR),
    ]
    store.write(run, [(answer, []) for answer in given])
    assert status_counts(store, run, items) == {
        "readable": 1,
        "unreadable": 1,
        "not_submitted": 1,
        "refused": 1,
        "timed_out": 1,
        "error": 1,
        "failed": 1,
        "not_asked": 0,
        "abstained": 0,
        "unsupported": 0,
    }


def test_scores_come_by_place_with_their_judgements(empty: tuple[Store, Run, ItemTable]) -> None:
    store, run, items = empty
    scores = [
        Score(item_id="q002", metric="helpful", value=1, scorer="b", label="1", judgement_key="k"),
        Score(item_id="q002", metric="accuracy", value=0),
    ]
    store.write(run, [(answered(2), scores)])
    assert load_scores(store, run, items, range(6)) == {2: [scores[1], scores[0]]}


def test_only_the_first_items_are_read(empty: tuple[Store, Run, ItemTable]) -> None:
    store, run, items = empty
    store.write(run, [(answered(row), [Score(item_id=f"q{row:03d}", metric="m", value=1)]) for row in (0, 2, 5)])
    assert set(load_answers(store, run, items, range(3))) == set(load_scores(store, run, items, range(3))) == {0, 2}
    assert load_answers(store, run, items, range(6)) == {row: answered(row) for row in (0, 2, 5)}
    assert load_answers(store, run, items, range(0)) == {}


def test_the_newest_run_is_named_by_the_store(empty: tuple[Store, Run, ItemTable]) -> None:
    store, _, _ = empty
    newest = newest_run(store, "toy")
    assert newest is not None
    assert newest.endswith("+00:00")
    assert newest_run(store, "another") is None


def item(form: AnswerFormat, *, options: int = 0, accepted: tuple[str, ...] = ()) -> Item:
    named = tuple(f"option {number}" for number in range(options))
    reference = Reference(answer="A", accepted=accepted)
    return Item(id="q", group="g", question="?", answer=form, options=named, reference=reference)


def test_chance_is_the_mean_over_what_is_scored() -> None:
    choice, binary = item(ChoiceFormat(), options=4), item(BinaryFormat())
    assert chance_level(ACCURACY, [choice]) == 0.25
    assert chance_level(ACCURACY, [choice, binary]) == pytest.approx(0.375)
    assert chance_level(ACCURACY, [choice, item(ChoiceFormat(), options=4, accepted=("B",))]) == pytest.approx(0.375)
    assert chance_level(ACCURACY, [choice, item(FreeTextFormat())]) == 0.25  # free text is not scored by it
    assert chance_level(ACCURACY, [choice, item(CountFormat())]) is None
    assert chance_level(ACCURACY, []) is None
    assert chance_level(Metric("overlap", "Overlap"), [choice]) is None
    assert chance_level(Metric("tau", "Tau", low=-1, chance=0.0), [choice]) == 0.0
