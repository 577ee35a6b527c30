"""Several workers on the same runs: every item is asked by one of them, what a dead one had goes to another, and nothing
is written without a claim."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from proctor.core import Answer, InputError, Item, Status
from proctor.metrics import AccuracyScorer
from proctor.runs import ItemClaims, Limits, Run, Store, evaluation_content
from proctor.runs.engine import Job, ask_all
from tests.runs.test_engine import Scripted
from tests.runs.test_store import a_benchmark, an_answer
from tests.support.faulty_server import FaultyServer
from tests.support.program import proctor, start_proctor, wait_for
from tests.support.text_folder import answer_tray, item_of, write_text_folder
from tests.support.toy_run import BlindView

ITEMS = 40


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield str(tmp_path / "runs.db")
    else:
        yield request.getfixturevalue("postgres_url")


OPEN: list[Store] = []


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    while OPEN:
        OPEN.pop().close()


def opened(url: str, items: int = ITEMS) -> tuple[Store, Run]:
    OPEN.append(store := Store(url))
    store.add_benchmark(a_benchmark(items))
    return store, store.start_run("toy", "one", "video", {})


def say_two(item: Item) -> Answer:
    return Answer(item_id=item.id, text="2")


def job_of(store: Store, run: Run, system: Scripted) -> Job:
    left = [item for item in store.items("toy") if item.id not in store.settled(run)]
    return Job(run, system, left, lambda _: BlindView(), (AccuracyScorer(),))


def test_what_one_worker_has_no_other_one_gets_until_the_claim_ends(url: str) -> None:
    store, run = opened(url)
    one, other, late = ItemClaims(store), ItemClaims(store), ItemClaims(store)
    with one.sharing([run]), other.sharing([run]):
        assert one.take(run, ["q0", "q1", "q2"]) == ["q0", "q1", "q2"]
        assert other.take(run, ["q1", "q2", "q3"]) == ["q3"]
        store.write_many([(run, an_answer("q1"), [])], one.kept)
        assert other.take(run, ["q1", "q2"]) == []
        found = other.look(run)
        assert found.busy == {"q0", "q2", "q3"}
        assert found.free == {f"q{number}" for number in range(4, ITEMS)}
    assert late.look(run).busy == set()
    assert late.take(run, ["q1", "q2"]) == ["q2"]


def test_an_answer_that_comes_after_its_claim_ended_is_dropped(url: str) -> None:
    store, run = opened(url)
    slow, quick = (
        ItemClaims(store, lease_s=-1.0),
        ItemClaims(store),
    )  # the claims of the first one have ended when it makes them
    with slow.sharing([run]), quick.sharing([run]):
        assert slow.take(run, ["q0", "q1"]) == ["q0", "q1"]
        assert quick.take(run, ["q0"]) == ["q0"]
        store.write_many([(run, an_answer(name, text="slow"), []) for name in ("q0", "q1")], slow.kept)
        assert (slow.stale, store.settled(run)) == (1, {"q1"})
        store.write_many([(run, an_answer("q0", text="quick"), [])], quick.kept)
    assert {name: one.text for name, one in store.answers(run).items()} == {"q0": "quick", "q1": "slow"}


def test_what_failed_rests_for_all_workers_and_is_asked_by_a_run_that_starts_anew(url: str) -> None:
    store, run = opened(url)
    one, other = ItemClaims(store), ItemClaims(store)
    with one.sharing([run]), other.sharing([run]):
        one.take(run, ["q0"])
        store.write_many([(run, an_answer("q0", Status.FAILED), [])], one.kept)
        assert other.take(run, ["q0"]) == []
        found = other.look(run)
        assert "q0" not in found.free | found.busy
    with store.owning([run]):
        pass
    assert ItemClaims(store).take(run, ["q0"]) == ["q0"]


def test_one_process_alone_and_workers_keep_out_of_each_others_way(url: str) -> None:
    store, run = opened(url)
    claims = ItemClaims(store)
    with claims.sharing([run]):
        claims.take(run, ["q0"])
        with pytest.raises(InputError, match="workers at work on it"), store.owning([run]):
            raise AssertionError("both")
    context = multiprocessing.get_context("spawn")
    holding, done = context.Event(), context.Event()
    from tests.runs.test_store import _hold

    process = context.Process(target=_hold, args=(url, holding, done))
    process.start()
    assert holding.wait(600)
    held = next(one for one in store.runs("toy") if one.system == "one")
    try:
        with pytest.raises(InputError, match="one process a run"), ItemClaims(store).sharing([held]):
            raise AssertionError("both")
        with pytest.raises(InputError, match="one process a run"):
            ItemClaims(store).take(held, ["q1"])
    finally:
        done.set()
        process.join(600)


def test_workers_together_ask_each_item_once_and_have_the_hash_of_one_alone(url: str, tmp_path: Path) -> None:
    alone, own = opened(str(tmp_path / "alone.db"))
    asyncio.run(ask_all([job_of(alone, own, Scripted(say_two))], alone))
    store, run = opened(url)
    systems = [Scripted(say_two) for _ in range(4)]

    async def together() -> None:
        jobs = [job_of(store, run, system) for system in systems]
        await asyncio.gather(
            *(ask_all([job], store, limits=Limits(concurrency=2), claims=ItemClaims(store)) for job in jobs)
        )

    asyncio.run(together())
    asked = Counter(name for system in systems for name in system.asked)
    assert asked == Counter({f"q{number}": 1 for number in range(ITEMS)})
    assert asdict(evaluation_content(store, "toy")) == asdict(evaluation_content(alone, "toy"))


def test_run_with_workers_asks_each_item_once(tmp_path: Path) -> None:
    folder, path = write_text_folder(tmp_path / "data", ITEMS), tmp_path / "runs.db"
    with FaultyServer(answer_tray) as server:
        words = ("run", "simulated", "--data", folder, "--store", path, "--condition", "text-only", "--model", "local")
        done = proctor(*words, "--base-url", server.url, "--workers", "2")
        asked = Counter(item_of(request) for request in server.requests)
    assert done.returncode == 0, done.stderr
    assert f"Asked {ITEMS}: {ITEMS} answered" in done.stdout
    assert set(asked.values()) == {1}
    assert len(asked) == ITEMS


def children_of(pid: int) -> set[int]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return {int(child) for task in tasks for child in task.read_text().split()}


def is_alive(pid: int) -> bool:
    """Whether a process of another parent still runs; one that ended and waits for that parent does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_workers_of_a_killed_run_keep_the_answers_under_way_and_ask_nothing_more(tmp_path: Path) -> None:
    folder, path = write_text_folder(tmp_path / "data", ITEMS), tmp_path / "runs.db"
    words = ("run", "simulated", "--data", folder, "--store", path, "--condition", "text-only", "--model", "local")
    with FaultyServer(answer_tray, holds_after=6) as server:
        given = (*words, "--base-url", server.url, "--concurrency", "2")
        run = start_proctor(*given, "--workers", "2")
        wait_for(lambda: server.count == 10, run)  # 6 were answered, 2 of each worker are under way
        workers = children_of(run.pid)
        os.kill(run.pid, signal.SIGKILL)
        run.communicate()
        server.release()
        ends = time.monotonic() + 600
        while any(map(is_alive, workers)):
            assert time.monotonic() < ends, "the workers go on"
            time.sleep(0.01)
        assert (len(workers), server.count) == (2, 10)
        store = Store(path, create=False)
        OPEN.append(store)
        (own,) = [one for one in store.runs("simulated") if one.system == "local"]
        assert store.count_answers(own) == (10, 0)
        assert proctor(*given, "--workers", "2").returncode == 0
        asked = Counter(item_of(request) for request in server.requests)
    assert asked == Counter({f"q{number:03d}": 1 for number in range(ITEMS)})
