"""Runs steered from elsewhere: paused, resumed, asked again, and seen as they stand."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest
from pydantic import JsonValue

import proctor
from proctor.core import Answer, InputError, Item, Status, Usage, View
from proctor.metrics import AccuracyScorer
from proctor.runs import (
    ItemClaims,
    Limits,
    Run,
    RunStatus,
    Store,
    delete_runs,
    merge_stores,
    pause_runs,
    requeue,
    resume_runs,
    run_statuses,
)
from proctor.runs.engine import Job
from proctor.runs.plan import Plan, execute
from tests.support.toy_run import BlindView, toy

ITEMS = 30


class Counting:
    """A system that tells a function of each item that it begins, and counts what it was asked."""

    def __init__(self, name: str = "counting") -> None:
        self.name = name
        self.settings: dict[str, JsonValue] = {}
        self.begun: Counter[str] = Counter()
        self.told: asyncio.Event | None = None

    def supports(self, item: Item) -> bool:
        return True

    async def answer(self, item: Item, view: View) -> Answer:
        self.begun[item.id] += 1
        await asyncio.sleep(0.005)
        return Answer(item_id=item.id, text="Answer: 1", usage=Usage(requests=1, cost_usd=0.01))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "runs.db")
    made.add_benchmark(toy(ITEMS))
    return made


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proctor.runs.controls.LOOK_S", 0.02)
    monkeypatch.setattr("proctor.runs.controls._REST_S", 0.01)
    monkeypatch.setattr("proctor.runs.item_leases._LOOK_S", 0.02)


def job(store: Store, system: Counting) -> Job:
    run = store.start_run("toy", system.name, "text-only", {})
    left = [item for item in store.items("toy") if item.id not in store.settled(run)]
    settled = len(store.settled(run))
    return Job(run, system, left, lambda _: BlindView(), [AccuracyScorer()], settled=settled)


async def until(condition: object) -> None:
    async with asyncio.timeout(60):
        while not condition():  # type: ignore[operator]  # noqa: ASYNC110
            await asyncio.sleep(0.005)


def state(store: Store, run: Run) -> RunStatus:
    return next(one for one in run_statuses(store) if (one.system, one.condition) == (run.system, run.condition))


async def paused_and_resumed(store: Store, systems: list[Counting], *, share: bool) -> None:
    """Runs the systems, pauses the first one after a few answers, sees it stand still, and resumes it."""
    jobs = [job(store, system) for system in systems]
    first = jobs[0].run
    claims = ItemClaims(store) if share else None
    asking = asyncio.create_task(execute(store, Plan(jobs), Limits(2), claims=claims))
    await until(lambda: len(systems[0].begun) >= 5)
    assert pause_runs(store, [first], "the server is serviced") == [first]
    assert pause_runs(store, [first]) == []
    if len(systems) > 1:
        await until(lambda: sum(systems[1].begun.values()) == ITEMS)  # the other one is not held up
    await until(lambda: _still(store, first, systems[0]))
    there = len(store.settled(first))
    await asyncio.sleep(0.2)
    assert len(store.settled(first)) == there == len(systems[0].begun) < ITEMS
    found = state(store, first)
    assert (found.state, found.why, found.wanted, found.answered) == ("paused", "the server is serviced", ITEMS, there)
    assert not asking.done()
    assert resume_runs(store, [first]) == [first]
    assert resume_runs(store, [first]) == []
    outcome = await asking
    assert (outcome.remaining, outcome.failed) == (0, 0)


_seen: dict[int, tuple[int, int]] = {}


def _still(store: Store, run: Run, system: Counting) -> bool:
    """Whether nothing is under way any more, twice in a row."""
    now = len(store.settled(run)), len(system.begun)
    before, _seen[run.id] = _seen.get(run.id), now
    return now[0] == now[1] and before == now


@pytest.mark.parametrize("share", [False, True])
@pytest.mark.parametrize("several", [False, True])
def test_a_pause_loses_nothing_and_asks_nothing_twice(store: Store, share: bool, several: bool) -> None:
    _seen.clear()
    systems = [Counting("first"), *([Counting("second")] if several else [])]
    asyncio.run(paused_and_resumed(store, systems, share=share))
    for system in systems:
        assert system.begun == Counter(item.id for item in store.items("toy"))
        (run,) = [one for one in store.runs("toy") if one.system == system.name]
        assert (state(store, run).state, state(store, run).left) == ("complete", 0)
        assert store.scored(run, "code") == store.settled(run)


def test_a_paused_run_can_be_stopped_and_goes_on_later(store: Store) -> None:
    system = Counting()
    made = job(store, system)
    pause_runs(store, [made.run])

    async def stopped() -> int:
        stop = asyncio.Event()
        asking = asyncio.create_task(execute(store, Plan([made]), Limits(2), stop=stop))
        await asyncio.sleep(0.1)
        stop.set()
        return (await asking).remaining

    assert (asyncio.run(stopped()), len(system.begun)) == (ITEMS, 0)
    resume_runs(store, [made.run])
    assert state(store, made.run).why == "stopped"
    assert asyncio.run(execute(store, Plan([job(store, system)]), Limits(2))).remaining == 0


def test_the_state_says_who_is_at_work_and_why_a_run_ended(store: Store) -> None:
    system = Counting()
    made = job(store, system)
    assert state(store, made.run).state == "recorded"
    with store.owning([made.run]):
        assert state(store, made.run).by.startswith("process ")
        assert state(store, made.run).state == "running"
    asyncio.run(execute(store, Plan([made]), Limits(1, max_cost_usd=0.05)))
    found = state(store, made.run)
    assert (found.state, found.answered, found.left) == ("stopped", 5, ITEMS - 5)
    assert found.why == "stopped at $0.0500, --max-cost $0.0500"
    assert found.cost_usd == pytest.approx(0.05)
    assert proctor.status(store) == run_statuses(store, ["toy"])
    seen: list[list[RunStatus]] = []
    assert proctor.status(store, "toy", watch=lambda one: seen.append([*one])) == seen[0]  # nobody is at work: once


def test_single_items_are_asked_again_and_it_stays_on_record(store: Store) -> None:
    system = Counting()
    asyncio.run(execute(store, Plan([job(store, system)]), Limits(2)))
    run = store.runs("toy")[0]
    assert requeue(store, [run], ["q003", "q007"], "the frames were\nblack") == 2
    assert store.settled(run) == {item.id for item in store.items("toy")} - {"q003", "q007"}
    assert store.scored(run, "code") == store.settled(run)
    assert store.answers(run)["q003"].reason == "asked again by a person: the frames were black"
    found = state(store, run)
    assert (found.state, found.failed, found.left, found.requeued) == ("stopped", 2, 2, 2)
    asyncio.run(execute(store, Plan([job(store, system)]), Limits(2)))
    assert system.begun == Counter(item.id for item in store.items("toy")) + Counter(["q003", "q007"])
    assert (state(store, run).state, state(store, run).requeued) == ("complete", 2)
    assert {one.status for one in store.answers(run).values()} == {Status.ANSWERED}
    notes = proctor.results(store).data.served
    assert notes == ("counting / text-only: 2 answers asked again by a person (proctor status)",)


@pytest.mark.parametrize(
    ("items", "reason", "said"),
    [
        (["q003"], " ", "--reason is empty"),
        (["q003", "nix"], "why", "item of toy: found 'nix', expected the id of an item"),
        (["q003"], "why", "found no answer to these items that is not failed, expected at least one"),
    ],
)
def test_what_can_not_be_asked_again_changes_nothing(store: Store, items: list[str], reason: str, said: str) -> None:
    run = job(store, Counting()).run
    if "nix" in items:
        store.write(run, [(Answer(item_id="q003", text="Answer: 1"), [])])
    with pytest.raises(InputError, match=said):
        requeue(store, [run], items, reason)
    assert store.settled(run) == ({"q003"} if "nix" in items else set())
    assert run_statuses(store)[0].requeued == 0


def test_a_store_without_controls_is_read_and_not_changed(store: Store, tmp_path: Path) -> None:
    before = (tmp_path / "runs.db").read_bytes()
    run_statuses(store)
    proctor.status(store)
    assert (tmp_path / "runs.db").read_bytes() == before


def test_deleted_runs_leave_no_controls_and_merging_takes_none(store: Store, tmp_path: Path) -> None:
    system = Counting()
    asyncio.run(execute(store, Plan([job(store, system)]), Limits(2)))
    run = store.runs("toy")[0]
    pause_runs(store, [run])
    other = Store(tmp_path / "other.db")
    merge_stores(other, [store])
    assert [one.state for one in run_statuses(other)] == ["recorded"]
    delete_runs(store, [run])
    again = job(store, Counting()).run
    assert state(store, again).state == "recorded"


@pytest.mark.parametrize("share", [False, True])
def test_runs_are_steered_in_postgresql(postgres_url: str, share: bool) -> None:
    """What another machine sees of a run, and does to it: the same in the database that machines share."""
    _seen.clear()
    store, elsewhere = Store(postgres_url), Store(postgres_url, create=False)
    store.add_benchmark(toy(ITEMS))
    system = Counting("first")
    asyncio.run(paused_and_resumed(elsewhere, [system], share=share))
    (run,) = store.runs("toy")
    assert system.begun == Counter(item.id for item in store.items("toy"))
    assert [one.state for one in run_statuses(elsewhere)] == ["complete"]
    assert requeue(elsewhere, [run], ["q001"], "a black frame") == 1
    assert (state(store, run).state, state(store, run).requeued) == ("stopped", 1)
    store.close()
    elsewhere.close()
