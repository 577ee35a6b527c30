"""`--repeats`: each item is asked several times, each time anew; what is there is never paid again, and more can be asked
later."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import proctor
from proctor.core import Answer, InputError, Item, Status, SystemFaultError, View, current_repetition
from proctor.metrics import AccuracyScorer
from proctor.runs import ItemClaims, Limits, PlanOptions, Run, Store, execute, plan, stored_runs
from proctor.runs.engine import Job, ask_all
from proctor.runs.run_identity import same_run
from proctor.shell import arrange
from tests.support.faulty_server import FaultyServer
from tests.support.program import proctor as command
from tests.support.text_folder import answer_tray, item_of, write_text_folder
from tests.support.toy_run import BlindView, toy


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield str(tmp_path / "runs.db")
    else:
        yield request.getfixturevalue("postgres_url")


class Counting:
    """Answers by the number of the repetition, and notes what it was asked."""

    name = "counting"

    def __init__(self) -> None:
        self.asked: list[tuple[int, str]] = []

    @property
    def settings(self) -> dict[str, Any]:
        return {}

    def supports(self, item: Item) -> bool:
        return True

    async def answer(self, item: Item, view: View) -> Answer:
        number = current_repetition().number
        self.asked.append((number, item.id))
        await asyncio.sleep(0)
        return Answer(item_id=item.id, text=f"Answer: {number}")


def run(store: Store, system: Any, repeats: int, **more: Any) -> Run:
    """The run once nothing is left to ask."""
    from proctor.media import MediaLibrary

    options = PlanOptions(repeats=repeats, **more)
    library = MediaLibrary(None)
    found = plan(store, toy(), [system], ["text-only"], library, scorers=(AccuracyScorer(),), options=options)
    asyncio.run(execute(store, found, Limits(concurrency=3)))
    return found.runs[0]


def texts(store: Store, of: Run) -> list[set[str]]:
    return [{answer.text for answer in store.answers(of, number).values()} for number in store.repetitions(of)]


def test_each_item_is_asked_k_times_the_first_repetition_of_all_items_first(tmp_path: Path) -> None:
    store, system = Store(tmp_path / "runs.db"), Counting()
    made = run(store, system, 3)
    assert [number for number, _ in system.asked] == [0] * 10 + [1] * 10 + [2] * 10
    assert Counter(system.asked).most_common(1)[0][1] == 1
    assert texts(store, made) == [{"Answer: 0"}, {"Answer: 1"}, {"Answer: 2"}]
    assert [store.scored(made, "code", number) for number in range(3)] == [store.settled(made)] * 3
    assert [row.value for row in store.score_rows(made, repetition=1)] == [1.0] * 10, "the right answer is 1"
    assert [row.value for row in store.score_rows(made)] == [0.0] * 10
    run(store, system, 3)
    assert len(system.asked) == 30, "a second call asks nothing"


def test_more_are_asked_later_and_fewer_take_nothing_away(tmp_path: Path) -> None:
    store, system = Store(tmp_path / "runs.db"), Counting()
    first = run(store, system, 1)
    assert "repeats" not in first.settings
    same = run(store, system, 3)
    assert (same.id, same.settings["repeats"]) == (first.id, 3)
    assert [number for number, _ in system.asked[10:]] == [1] * 10 + [2] * 10
    run(store, system, 2)
    assert len(system.asked) == 30
    assert store.settled_repetitions(same) == {0: 10, 1: 10, 2: 10}
    assert store.runs("toy")[0].settings["repeats"] == 3, "what was asked for once stays on record"
    assert same_run(first.settings, store.runs("toy")[0].settings)


def test_a_run_that_is_stopped_is_whole_to_the_repetition_before(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs.db")
    stop = asyncio.Event()

    class Stopping(Counting):
        async def answer(self, item: Item, view: View) -> Answer:
            if len(self.asked) == 24:
                stop.set()
            return await super().answer(item, view)

    from proctor.media import MediaLibrary

    found = plan(
        store, toy(), [Stopping()], ["text-only"], MediaLibrary(None), scorers=(), options=PlanOptions(repeats=5)
    )
    asyncio.run(execute(store, found, Limits(concurrency=2), stop=stop))
    counts = store.settled_repetitions(found.runs[0])
    assert (counts[0], counts[1]) == (10, 10)
    assert 0 < counts[2] < 10
    assert 3 not in counts


def test_a_function_can_take_the_repetition(tmp_path: Path) -> None:
    def says(question: str, repetition: int) -> str:
        return f"Answer: {repetition}"

    made = proctor.run(toy(), says, conditions="text-only", store=tmp_path / "r.db", repeats=3, baselines=False)
    assert texts(made.store, made.runs[0]) == [{"Answer: 0"}, {"Answer: 1"}, {"Answer: 2"}]
    more = proctor.run(toy(), says, conditions="text-only", store=tmp_path / "r.db", repeats=2, baselines=False)
    assert any("--repeats 2 asks no more of them and takes none away" in note for note in more.notes)


def test_a_random_guess_is_another_one_in_each_repetition_and_the_same_again(tmp_path: Path) -> None:
    found = []
    for name in ("a", "b"):
        made = proctor.run(toy(), "random", conditions="text-only", store=tmp_path / f"{name}.db", repeats=3)
        own = next(one for one in made.runs if one.system == "random")
        found.append([{item: one.text for item, one in made.store.answers(own, n).items()} for n in range(3)])
    assert found[0] == found[1]
    assert found[0][0] != found[0][1] != found[0][2]


def sent(server: FaultyServer) -> list[tuple[str, int | None]]:
    return [(item_of(request), request.body.get("seed")) for request in server.requests]


def test_a_model_gets_a_seed_of_its_own_in_each_repetition_which_is_on_record(tmp_path: Path) -> None:
    folder, path = write_text_folder(tmp_path / "data", 4), tmp_path / "runs.db"
    words: list[str | Path] = ["run", "simulated", "--data", folder, "--store", path, "--condition", "text-only"]
    words += ["--model", "local"]
    with FaultyServer(answer_tray) as server:
        done = command(*words, "--base-url", server.url, "--repeats", "3", "--settings", "temperature=0")
        assert done.returncode == 0, done.stderr
        assert "temperature 0: repetitions measure the noise of the provider or the machine alone" in done.stderr
        assert "12 answered" in done.stdout
        asked = sent(server)
        again = command(*words, "--base-url", server.url, "--repeats", "3", "--settings", "temperature=0")
        assert (again.returncode, server.count) == (0, 12)
    seeds = {seed for _, seed in asked}
    assert len(seeds) == 3
    assert None in seeds, "the first repetition is a run as ever"
    assert Counter(asked).most_common(1)[0][1] == 1
    store = Store(path, create=False)
    (own,) = [one for one in store.runs("simulated") if one.system == "local"]
    recorded: dict[tuple[str, int], Any] = {
        (item, answer.repetition): answer.extra.get("seeds")
        for number in range(3)
        for item, answer in store.answers(own, number).items()
    }
    assert {value[0] for (_, number), value in recorded.items() if number} == seeds - {None}
    assert {value for (_, number), value in recorded.items() if not number} == {None}
    told = command(*words, "--base-url", "http://localhost:9/v1", "--repeats", "5", "--dry-run")
    assert told.returncode == 0, told.stderr
    row = next(line for line in told.stdout.splitlines() if "local" in line)
    assert [int(cell) for cell in row.split() if cell.isdigit()][:3] == [5, 12, 8], row


def test_no_two_repetitions_share_a_reply_of_a_batch(tmp_path: Path) -> None:
    folder, batch = write_text_folder(tmp_path / "data", 3), tmp_path / "batch"
    words: list[str | Path] = ["run", "simulated", "--data", folder, "--store", tmp_path / "r.db"]
    words += ["--condition", "text-only"]
    words += ["--model", "local", "--base-url", "http://localhost:9/v1", "--batch", batch, "--repeats", "2"]
    assert command(*words).returncode == 0
    requests = [json.loads(line) for line in (batch / "requests-0001.jsonl").read_text().splitlines()]
    names = [one["custom_id"] for one in requests]
    assert len(set(names)) == 6
    assert [name.partition("-r")[2] for name in names] == ["", "", "", "1", "1", "1"]
    lines = []
    for number, one in enumerate(requests):
        message = {"role": "assistant", "content": f"Answer: {number}"}
        body = {"id": "c", "object": "chat.completion", "created": 1, "model": "local"}
        body |= {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
        lines.append(json.dumps({"custom_id": one["custom_id"], "response": {"status_code": 200, "body": body}}) + "\n")
    (batch / "output.jsonl").write_text("".join(lines))
    done = command(*words)
    assert done.returncode == 0, done.stderr
    store = Store(tmp_path / "r.db", create=False)
    (own,) = [one for one in store.runs("simulated") if one.system == "local"]
    said = [answer.text for number in range(2) for answer in store.answers(own, number).values()]
    assert sorted(said) == [f"Answer: {number}" for number in range(6)]


def test_workers_share_the_repetitions_and_none_is_asked_twice(url: str) -> None:
    store = Store(url)
    store.add_benchmark(toy(40))
    made = store.start_run("toy", "counting", "text-only", {})
    system = Counting()

    def jobs() -> list[Job]:
        return [
            Job(made, system, store.items("toy"), lambda _: BlindView(), (AccuracyScorer(),), repetition=number)
            for number in (1, 0, 2)
        ]

    async def both() -> None:
        limits = Limits(concurrency=2)
        await asyncio.gather(*(ask_all(jobs(), store, limits=limits, claims=ItemClaims(store)) for _ in range(2)))

    asyncio.run(both())
    assert len(system.asked) == len(set(system.asked)) == 120
    assert store.settled_repetitions(made) == {0: 40, 1: 40, 2: 40}
    where = {n: [row for row, (number, _) in enumerate(system.asked) if number == n] for n in range(3)}
    assert sum(where[0]) < sum(where[1]) < sum(where[2]), "a later repetition waits, unless nothing earlier is free"
    store.close()


def test_a_claim_is_on_one_repetition(url: str) -> None:
    store = Store(url)
    store.add_benchmark(toy(3))
    made = store.start_run("toy", "counting", "text-only", {})
    one, other = ItemClaims(store), ItemClaims(store)
    with one.sharing([made]), other.sharing([made]):
        assert one.take(made, ["q000", "q001"], 1) == ["q000", "q001"]
        assert other.take(made, ["q000", "q001"], 0) == ["q000", "q001"]
        assert other.take(made, ["q000", "q002"], 1) == ["q002"]
        answer = Answer(item_id="q000", text="1", repetition=1)
        assert store.write_many([(made, answer, [])], other.kept) == [False], "its claim is on another repetition"
        assert store.write_many([(made, answer, [])], one.kept) == [True]
        assert one.look(made, 1).busy == {"q001", "q002"}
        assert one.look(made, 2).free == {"q000", "q001", "q002"}
    store.close()


def test_only_the_repetition_that_a_server_rejected_is_asked_again(tmp_path: Path) -> None:
    """Errors of an earlier repetition are answers: the server answered others there."""
    store = Store(tmp_path / "runs.db")

    class Rejected(Counting):
        async def answer(self, item: Item, view: View) -> Answer:
            if current_repetition().number or item.id == "q009":
                error = SystemFaultError("HTTP 400: not so")
                error.rejected = "request" if current_repetition().number else ""
                raise error
            return await super().answer(item, view)

    made = run(store, Rejected(), 1)
    assert store.answers(made)["q009"].status is Status.ERROR
    with pytest.raises(proctor.ConfigurationError):
        run(store, Rejected(), 2)
    assert store.answers(made)["q009"].status is Status.ERROR
    assert {one.status for one in store.answers(made, 1).values()} <= {Status.FAILED}


def test_an_order_for_workers_counts_what_was_asked_beyond(tmp_path: Path) -> None:
    """A run with more repetitions than are asked for now, and a gap in those, is still open."""
    from proctor.media import MediaLibrary

    store = Store(tmp_path / "runs.db")
    made = run(store, Counting(), 3)
    with store.writing() as connection:
        connection.exec_driver_sql("delete from answers where repetition = 0")
    options = PlanOptions(repeats=2)
    found = plan(store, toy(), [Counting()], ["text-only"], MediaLibrary(None), scorers=(), options=options)
    assert found.to_ask == 10
    ((_, answers),) = found.expected
    assert answers == 30
    assert store.count_answers(made)[0] == 20


def test_a_broken_number_of_repetitions_is_one_line(tmp_path: Path) -> None:
    for wrong in (0, 1001):
        with pytest.raises(InputError, match="repeats"):
            arrange(toy(), "random", repeats=wrong, store=tmp_path / "r.db")
    assert not (tmp_path / "r.db").exists()
    store = Store(tmp_path / "r.db")
    run(store, Counting(), 2)
    assert [row["answered"] for row in stored_runs(store)] == [20]
