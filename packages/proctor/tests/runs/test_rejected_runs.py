"""A server that rejects every request ends the run after a few items; one item's fault never does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pydantic import JsonValue

from proctor.core import (
    Answer,
    ConfigurationError,
    InfrastructureError,
    Item,
    ProctorError,
    Status,
    SystemFaultError,
    View,
)
from proctor.metrics import AccuracyScorer
from proctor.runs import Limits, Store, Tally
from proctor.runs.controls import rejected_items
from proctor.runs.engine import Job, ask_all
from proctor.runs.served import served_by, served_note
from tests.support.toy_run import BlindView, toy
from tests.support.virtual_time import run_in_virtual_time

Act = Callable[[int], "Answer | ProctorError"]
MANY_S = 30.0


class Server:
    """A system that answers the items by their numbers; a rejection comes at once, an answer after half a minute."""

    name = "scripted"

    def __init__(self, act: Act) -> None:
        self.settings: dict[str, JsonValue] = {"model": "medical-vlm-72b"}
        self.act = act
        self.asked: list[int] = []

    def supports(self, item: Item) -> bool:
        return True

    async def answer(self, item: Item, view: View) -> Answer:
        number = int(item.id.removeprefix("q"))
        self.asked.append(number)
        said = self.act(number)
        if isinstance(said, ProctorError):
            await asyncio.sleep(0.01)
            raise said
        await asyncio.sleep(MANY_S)
        return said


def rejected(message: str, *, kind: str = "request", fault: type[ProctorError] = InfrastructureError) -> ProctorError:
    error = fault(message)
    error.rejected = "item" if kind == "item" else "request"
    return error


def right(number: int, model: str = "") -> Answer:
    extra: dict[str, JsonValue] = {"model": model} if model else {}
    return Answer(item_id=f"q{number:03d}", text="Answer: 1", extra=extra)


def unknown(number: int) -> ProctorError:
    return rejected(f"m: HTTP 400: request req_{number}a of 'q{number}' has {100 + number} bad parts")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path / "runs.db")
    yield opened
    opened.close()


def asked(store: Store, act: Act, *, count: int = 20, per_group: int = 1, concurrency: int = 1) -> tuple[Server, Tally]:
    server = Server(act)
    benchmark = toy(count, per_group)
    store.add_benchmark(benchmark)
    run = store.start_run("toy", server.name, "text-only", {"system": server.settings})
    known = store.settled(run)
    left = [item for item in benchmark.items if item.id not in known]
    job = Job(run, server, left, lambda _: BlindView(), [AccuracyScorer()], rejected=rejected_items(store, run))
    return server, run_in_virtual_time(ask_all([job], store, limits=Limits(concurrency=concurrency)))


def statuses(store: Store) -> dict[str, int]:
    (run,) = store.runs("toy")
    return {status.value: count for status, count in store.count_by_status(run).items()}


@pytest.mark.parametrize("concurrency", [1, 4, 8])
def test_a_server_that_rejects_all_alike_ends_the_run_after_a_few(store: Store, concurrency: int) -> None:
    with pytest.raises(ConfigurationError) as caught:
        asked(store, unknown, concurrency=concurrency)
    assert str(caught.value).startswith("m: HTTP 400: request req_")
    assert "items asked, and no answer: change the settings or the server)" in str(caught.value)
    count = sum(statuses(store).values())
    assert statuses(store) == {"failed": count}
    assert 5 <= count <= 4 + concurrency


def test_too_many_images_end_the_run_with_the_way_out_and_no_item_is_wrong(store: Store) -> None:
    said = "m: HTTP 400: At most 4 image(s) may be provided in one prompt; this server takes 4 images: --max-frames 4"
    with pytest.raises(ConfigurationError, match="--max-frames 4"):
        asked(store, lambda _: rejected(said, fault=SystemFaultError))
    assert statuses(store) == {"failed": 5}
    (run,) = store.runs("toy")
    assert store.score_rows(run) == []
    server, tally = asked(
        store, right
    )  # the server was started with another limit: the run goes on, from its beginning
    assert (server.asked, tally.by_status[Status.ANSWERED]) == ([*range(20)], 20)


def test_four_rejections_are_the_items_fault(store: Store) -> None:
    fault = rejected("m: HTTP 400: too long", kind="item", fault=SystemFaultError)
    _, tally = asked(store, lambda _: fault, count=4)
    assert tally.by_status[Status.ERROR] == 4
    assert statuses(store) == {"error": 4}


def test_rejections_before_a_slow_answer_wait_for_it(store: Store) -> None:
    """Seven of eight requests under way are rejected in 10 ms, the eighth is answered after 30 s: nobody stops."""
    server, tally = asked(
        store, lambda number: right(number) if number == 7 or number > 11 else unknown(number), concurrency=8
    )
    assert (tally.by_status[Status.ANSWERED], tally.by_status[Status.FAILED]) == (9, 11)
    assert server.asked[:8] == [*range(8)]
    assert tally.rejected == 11


def test_no_more_is_asked_while_a_decision_is_open(store: Store) -> None:
    server = Server(lambda number: right(number) if number == 0 else unknown(number))
    _, tally = asked(store, server.act, count=40, concurrency=6)
    assert tally.by_status[Status.ANSWERED] == 1
    assert tally.stopped == ""  # 39 rejections after the answer: fewer than 50 failures in a row


def test_after_an_answer_rejections_are_the_items_fault(store: Store) -> None:
    _, tally = asked(store, lambda number: right(number) if number == 4 else unknown(number))
    assert (tally.by_status[Status.ANSWERED], tally.by_status[Status.FAILED]) == (1, 19)


def test_different_rejections_are_no_configuration(store: Store) -> None:
    said = ["bad hair", "no shoes", "no ticket", "too late", "wrong door"]
    _, tally = asked(store, lambda number: rejected(f"m: HTTP 400: {said[number % 5]}"))
    assert tally.by_status[Status.FAILED] == 20


def test_many_questions_on_one_long_video_are_one_items_fault(store: Store) -> None:
    """Ten questions a video; the first one is too long for the context."""
    fault = rejected("m: HTTP 400: prompt is too long", kind="item", fault=SystemFaultError)
    _, tally = asked(store, lambda number: fault if number < 10 else right(number), per_group=10)
    assert (tally.by_status[Status.ERROR], tally.by_status[Status.ANSWERED]) == (10, 10)


def test_a_context_too_short_for_all_videos_is_a_configuration(store: Store) -> None:
    fault = rejected("m: HTTP 400: prompt is too long", kind="item", fault=SystemFaultError)
    with pytest.raises(ConfigurationError, match="prompt is too long"):
        asked(store, lambda _: fault, per_group=2)
    assert statuses(store) == {"failed": 9}  # five videos
    with pytest.raises(
        ConfigurationError, match="prompt is too long"
    ):  # and of a benchmark of fewer videos, all of them
        asked(store, lambda _: fault, per_group=2)


def test_outages_between_rejections_decide_nothing(store: Store) -> None:
    def act(number: int) -> ProctorError:
        return InfrastructureError("m: HTTP 503: busy") if number % 2 else unknown(number)

    with pytest.raises(ConfigurationError):
        asked(store, act)
    assert statuses(store) == {"failed": 9}


def test_a_resumed_run_follows_the_same_rule(store: Store) -> None:
    asked(store, right, count=20)
    with store.writing() as connection:
        connection.exec_driver_sql("DELETE FROM answers WHERE item > 10")
    with pytest.raises(ConfigurationError):  # the server was started again, in another way
        asked(store, unknown)
    assert statuses(store) == {"answered": 10, "failed": 5}


def test_items_that_were_rejected_before_do_not_end_a_resumed_run(store: Store) -> None:
    """The first ten are rejected for good. They are asked first again, and those after them must get their turn."""

    def first(number: int) -> Answer | ProctorError:
        return right(number) if number in {0, 19} else unknown(number) if number < 11 else InfrastructureError("down")

    asked(store, first)
    assert statuses(store) == {"answered": 2, "failed": 18}
    server, tally = asked(store, lambda number: right(number) if number > 10 else unknown(number))
    assert server.asked == [*range(1, 19)]
    assert tally.by_status[Status.ANSWERED] == 8


# ── the model that answered ──


def test_the_model_that_answered_is_kept_with_the_run(store: Store) -> None:
    asked(store, lambda number: right(number, "tiny-model-1b"))
    (run,) = store.runs("toy")
    assert served_by(run.settings) == ["tiny-model-1b"]
    assert served_note(run.settings) == "asked medical-vlm-72b, answered by tiny-model-1b"


def test_another_model_within_a_run_ends_it_and_its_answer_is_not_kept(store: Store) -> None:
    with pytest.raises(ConfigurationError) as caught:
        asked(store, lambda number: right(number, "tiny-model-1b" if number < 3 else "other-model"))
    assert str(caught.value) == (
        "scripted under text-only: asked medical-vlm-72b, answered by tiny-model-1b so far and now by other-model: a run "
        "is one system. Load the model again that answered before, or give the run another name (--name)"
    )
    assert statuses(store) == {"answered": 3}
    with pytest.raises(ConfigurationError, match="now by other-model"):  # the same when it is resumed
        asked(store, lambda number: right(number, "other-model"))
    _, tally = asked(store, lambda number: right(number, "tiny-model-1b"))
    assert tally.by_status[Status.ANSWERED] == 17


def test_snapshots_of_the_model_asked_for_may_alternate(store: Store) -> None:
    _, tally = asked(store, lambda number: right(number, f"medical-vlm-72b-2026-0{1 + number % 2}-01"))
    assert tally.by_status[Status.ANSWERED] == 20
    (run,) = store.runs("toy")
    assert served_note(run.settings) == (
        "asked medical-vlm-72b, answered by medical-vlm-72b-2026-01-01 and medical-vlm-72b-2026-02-01"
    )
