"""`--max-cost` and `--max-time`: a run stops cleanly, costs at most what was under way more, and goes on later."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from pydantic import JsonValue

from proctor.core import Answer, ConfigurationError, Item, Status, Usage, View
from proctor.runs import Limits, Store, Tally
from proctor.runs.engine import Job, ask_all
from tests.cli.test_score_cli import VERDICT
from tests.support.faulty_server import FaultyServer
from tests.support.program import proctor, proctor_process
from tests.support.text_folder import answer_tray, item_of, write_text_folder
from tests.support.toy_run import BlindView, toy
from tests.support.virtual_time import run_in_virtual_time

ITEMS = 40


class Priced:
    """A system that takes a second and some dollars for an item; it counts what it begins."""

    def __init__(self, cost: float | None = 0.01) -> None:
        self.name, self.cost = "priced", cost
        self.settings: dict[str, JsonValue] = {}
        self.begun: list[str] = []

    def supports(self, item: Item) -> bool:
        return True

    async def answer(self, item: Item, view: View) -> Answer:
        self.begun.append(item.id)
        await asyncio.sleep(1.0)
        return Answer(item_id=item.id, text="Answer: 1", usage=Usage(requests=1, cost_usd=self.cost))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "runs.db")
    made.add_benchmark(toy(ITEMS))
    return made


def ask(store: Store, system: Priced, limits: Limits) -> Tally:
    run = store.start_run("toy", system.name, "text-only", {})
    left = [item for item in store.items("toy") if item.id not in store.settled(run)]
    return run_in_virtual_time(ask_all([Job(run, system, left, lambda _: BlindView())], store, limits=limits))


@pytest.mark.parametrize("concurrency", [1, 4, 8])
def test_the_cost_is_exceeded_by_at_most_what_was_under_way(store: Store, concurrency: int) -> None:
    system = Priced()
    tally = ask(store, system, Limits(concurrency, max_cost_usd=0.10))
    spent = tally.usage.cost_usd
    assert spent is not None
    assert 0.10 - 1e-9 <= spent <= 0.10 + 0.01 * (concurrency - 1) + 1e-9
    assert tally.stopped == "stopped at $0.1000, --max-cost $0.1000"
    assert tally.done == len(system.begun), "an answer that was paid for is lost"
    again = ask(store, system, Limits(concurrency))
    assert again.remaining == 0
    assert sorted(system.begun) == [f"q{number:03d}" for number in range(ITEMS)], "an item was paid for twice"


def test_failed_answers_cost_too(store: Store) -> None:
    from proctor.core import InfrastructureError

    class Failing(Priced):
        async def answer(self, item: Item, view: View) -> Answer:
            self.begun.append(item.id)
            raise InfrastructureError("no").after(Usage(requests=1, cost_usd=0.02))

    tally = ask(store, Failing(), Limits(1, max_cost_usd=0.05, give_up_after=1000))
    assert tally.by_status[Status.FAILED] == 3


def test_an_unknown_cost_stops_since_the_limit_can_not_be_kept(store: Store) -> None:
    system = Priced(cost=None)
    with pytest.raises(ConfigurationError, match="the cost of an answer is unknown, so that --max-cost can't be kept"):
        ask(store, system, Limits(3, max_cost_usd=1.0))
    run = store.start_run("toy", system.name, "text-only", {})
    assert len(system.begun) == 3 == len(store.settled(run))
    assert ask(store, Priced(cost=None), Limits(3)).remaining == 0


def test_time_is_over_for_new_items_and_not_for_those_under_way(store: Store) -> None:
    stop = asyncio.Event()

    class Waiting(Priced):
        async def answer(self, item: Item, view: View) -> Answer:
            self.begun.append(item.id)
            if len(self.begun) > 5:
                await stop.wait()  # for the end of the time, which alone sets it
            return Answer(item_id=item.id, text="Answer: 1")

    system, run = Waiting(), store.start_run("toy", "priced", "text-only", {})
    job = Job(run, system, store.items("toy"), lambda _: BlindView())
    tally = asyncio.run(ask_all([job], store, limits=Limits(3, max_time_s=0.05), stop=stop))
    assert tally.stopped == "stopped after 0.05 s (--max-time)"
    assert tally.done == len(system.begun) <= 8
    assert len(store.settled(run)) == tally.done
    assert ask(store, Priced(), Limits(2, max_time_s=1e6)).stopped == ""


def command(folder: Path, store: Path, server: FaultyServer, *more: str) -> list[str | Path]:
    return ["run", "simulated", "--data", folder, "--store", store, "--condition", "text-only", "--model", "local",
            "--base-url", server.url, *more]  # fmt: skip


def test_the_command_stops_and_goes_on(tmp_path: Path) -> None:
    folder, store = write_text_folder(tmp_path / "data", 20), tmp_path / "runs.db"
    with FaultyServer(answer_tray) as server:
        price = ("--price", "100000/0", "--concurrency", "2")
        stopped = proctor(*command(folder, store, server, *price, "--max-cost", "20"))
        paid = len(server.requests)
        assert stopped.returncode == 130
        assert "--max-cost $20.00" in stopped.stderr
        assert f"{20 - paid} items still to be asked: run the same command again." in stopped.stderr
        whole = proctor(*command(folder, store, server, *price))
        assert whole.returncode == 0, whole.stderr
        asked = [item_of(request) for request in server.requests]
    assert 0 < paid < 20
    assert len(asked) == len(set(asked)) == 20


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--max-cost", "1"), "--max-cost needs the price of local. Give --price INPUT/OUTPUT."),
        (("--max-time", "soon"), "--max-time 'soon' can't be used: write it like 90 (seconds), 45m, 2h or 1h30m."),
        (("--max-time", "0"), "--max-time '0' can't be used"),
        (("--max-time", "1h", "--on", "store"), "Leave them out, or --on."),
        (
            ("--max-cost", "1", "--price", "1/1", "--batch", "folder"),
            "Leave --max-cost and --max-time out, or --batch.",
        ),
    ],
)
def test_a_limit_that_can_not_be_kept_is_refused(tmp_path: Path, more: tuple[str, ...], said: str) -> None:
    folder = write_text_folder(tmp_path / "data", 4)
    with FaultyServer(answer_tray) as server:
        done = proctor(*command(folder, tmp_path / "runs.db", server, *more))
        assert server.requests == []
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / "runs.db").exists()


def test_workers_share_the_money(tmp_path: Path) -> None:
    """Each of two has half of it: together they exceed it by at most what each had under way."""
    folder, store = write_text_folder(tmp_path / "data", 40), tmp_path / "runs.db"
    more = ("--price", "100000/0", "--concurrency", "1", "--workers", "2")
    with FaultyServer(answer_tray, latency_s=0.05) as server:
        limited = command(folder, store, server, *more, "--max-cost", "100")
        stopped = proctor_process(*limited)
        assert stopped.returncode == 130, stopped.stderr
        assert "a worker stopped at $" in stopped.stderr
    opened = Store(store, create=False)
    (run,) = [one for one in opened.runs("simulated") if one.system == "local"]
    costs = [one.usage.cost_usd or 0.0 for one in opened.answers(run).values()]
    opened.close()
    assert 50 <= sum(costs) <= 100 + 2 * max(costs)
    assert len(costs) < 40


def test_a_judge_stops_at_its_cost_and_goes_on(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    rows = "".join(f"q{number},What happens?,The cup is moved {number}.,p{number}\n" for number in range(8))
    (tmp_path / "mine" / "questions.csv").write_text(f"id,question,answer,patient\n{rows}")
    with FaultyServer(VERDICT) as server:
        model = ("--model", "served", "--base-url", server.url, "--store", tmp_path / "runs.db", "--concurrency", "1")
        assert proctor("run", tmp_path / "mine", "--condition", "text-only", *model).returncode == 0
        asked = server.count
        score = ("score", "mine", "--judge", "three-level", *model, "--price", "100000/0")
        stopped = proctor(*score, "--max-cost", "0.01")
        assert (stopped.returncode, server.count - asked) == (3, 1), stopped.stderr
        assert "stopped at $" in stopped.stderr + stopped.stdout
        unpriced = ("score", "mine", "--judge", "three-level", *model, "--max-cost", "5")
        assert "the cost of a judgement is unknown" in proctor(*unpriced).stderr
        assert server.count - asked == 2
        assert proctor(*score).returncode == 0
        assert server.count - asked == 8, "a judgement was paid twice"
