"""`kill -9` at random moments of a run with five repetitions, in SQLite and in PostgreSQL: every repetition of every item
is answered once, none is lost, and none that was recorded is paid again. The same for a judge that is asked five times."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from proctor.core import Answer, InputError, Status, generator
from proctor.runs import Run, Store, check_store
from proctor.runs.judge_repetitions import judge_score_rows
from tests.runs.test_judge_repetitions import JUDGE, verdict, words
from tests.support.faulty_server import FaultyServer, Request
from tests.support.forked import Program
from tests.support.program import start_proctor, wait_for
from tests.support.text_folder import answer_tray, item_of, write_text_folder

ITEMS, REPEATS, KILLS, CONCURRENCY = 40, 5, 8, 8
LATENCY_S = 0.04
PATIENCE_S = 600.0  # a guard, no property

Key = tuple[str, int]


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield str(tmp_path / "runs.db")
    else:
        yield request.getfixturevalue("postgres_url")


def asked(request: Request) -> Key:
    """What a request asked for: its seed tells the repetition."""
    return item_of(request), int(request.body.get("seed") or 0)


def own_run(store: Store, benchmark: str, system: str) -> Run | None:
    if benchmark not in store.benchmark_names():
        return None
    return next((run for run in store.runs(benchmark) if run.system == system), None)


def on_disk(url: str) -> dict[Key, Answer]:
    try:
        store = Store(url, create=False)
    except InputError:  # killed before there was a store
        return {}
    run = own_run(store, "simulated", "local")
    numbers = [] if run is None else store.repetitions(run)
    found = {(item, n): one for n in numbers if run for item, one in store.answers(run, n).items()}
    store.close()
    return found


def kill(process: Program) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL, "the run ended before it was killed"


def test_five_repetitions_survive_kills_and_none_is_paid_twice(url: str, tmp_path: Path) -> None:
    folder = write_text_folder(tmp_path / "data", ITEMS)
    rng = generator(5, "kill repeats")
    moments = sorted(int(one) for one in rng.choice(range(5, ITEMS * REPEATS - 20), KILLS, replace=False))
    states: list[tuple[dict[Key, Answer], int]] = []

    def start(server: FaultyServer) -> Program:
        return start_proctor(
            "run", "simulated", "--data", folder, "--store", url, "--condition", "text-only", "--repeats", str(REPEATS),
            "--model", "local", "--base-url", server.url, "--concurrency", str(CONCURRENCY),
        )  # fmt: skip

    with FaultyServer(answer_tray, latency_s=LATENCY_S) as server:
        for moment in moments:
            server.holds_after = max(moment, server.count) + CONCURRENCY  # nobody ends before the kill
            process = start(server)
            wait_for(lambda moment=moment: server.count >= moment, process)  # type: ignore[misc]
            time.sleep(float(rng.uniform(0.0, LATENCY_S)))
            kill(process)
            states.append((on_disk(url), server.count))
        server.release()
        last = start(server)
        _, complained = last.communicate(timeout=PATIENCE_S)
        requests = [asked(request) for request in server.requests]
    assert last.returncode == 0, complained

    final = on_disk(url)
    every = {(f"q{number:03d}", repetition) for number in range(ITEMS) for repetition in range(REPEATS)}
    assert final.keys() == every
    assert {one.status for one in final.values()} == {Status.ANSWERED}
    for recorded, count in states:
        assert not recorded.keys() & set(requests[count:]), "asked again after they were recorded"
        assert {key: final[key] for key in recorded} == recorded, "nothing recorded was lost or replaced"
    assert set(requests) == every
    assert 0 < len(requests) - len(every) <= KILLS * CONCURRENCY, "only what was under way is paid again"
    assert Counter(requests).most_common(1)[0][1] > 1
    for recorded, _ in states:  # whole repetitions first
        numbers = Counter(number for _, number in recorded)
        begun = max(numbers, default=0)
        lacking = sum(ITEMS - numbers[number] for number in range(begun))
        assert lacking <= CONCURRENCY, numbers
    store = Store(url, create=False)
    run = own_run(store, "simulated", "local")
    assert run is not None
    assert store.settled_repetitions(run) == dict.fromkeys(range(REPEATS), ITEMS)
    assert [len(store.scored(run, "code", number)) for number in range(REPEATS)] == [ITEMS] * REPEATS
    assert list(check_store(store)) == []
    store.close()


def test_five_judgements_of_each_answer_survive_kills_and_none_is_paid_twice(url: str) -> None:
    store = Store(url)
    store.add_benchmark(words(20))
    run = store.start_run("words", "mine", "text-only", {})
    texts = {f"q{number}": f"answer {number}" for number in range(20)}
    store.write(run, [(Answer(item_id=item, text=text, parsed=text), []) for item, text in texts.items()])
    store.close()
    rng = generator(6, "kill judge")
    moments = sorted(int(one) for one in rng.choice(range(5, 20 * REPEATS - 15), 4, replace=False))
    states: list[tuple[set[str], int]] = []

    def reply(request: Request) -> str:
        return verdict(int(request.body.get("seed") or 0) % 3)

    def start(server: FaultyServer) -> Program:
        return start_proctor(
            "score", "words", "--store", url, "--judge", "three-level", "--model", "openai:judge", "--base-url",
            server.url, "--repeats", str(REPEATS), "--concurrency", "4",
        )  # fmt: skip

    with FaultyServer(reply, latency_s=LATENCY_S) as server:
        for moment in moments:
            server.holds_after = max(moment, server.count) + 4
            process = start(server)
            wait_for(lambda moment=moment: server.count >= moment, process)  # type: ignore[misc]
            kill(process)
            states.append((judged(url), server.count))
        server.release()
        last = start(server)
        _, complained = last.communicate(timeout=PATIENCE_S)
        requests = [json.dumps(request.body, sort_keys=True) for request in server.requests]
    assert last.returncode == 0, complained
    final = judged(url)
    assert len(final) == len(set(requests)) == 20 * REPEATS
    for kept, _ in states:
        assert kept <= final
    assert 0 <= len(requests) - len(final) <= 4 * len(moments), "only what was under way is paid again"
    assert len(requests) - len(final) <= sum(count - len(kept) for kept, count in states)
    opened = Store(url, create=False)
    rows = [row for row in judge_score_rows(opened, opened.runs("words")[0], scorer=JUDGE) if row.metric == "rubric"]
    assert Counter((row.item_id, row.judge_repetition) for row in rows) == {
        (item, number): 1 for item in texts for number in range(REPEATS)
    }
    means = opened.score_rows(opened.runs("words")[0], scorer=JUDGE, metric="rubric")
    assert {row.value for row in means} == {sum((0, 1, 2, 0, 1)) / 5}
    assert len(means) == 20
    opened.close()


def judged(url: str) -> set[str]:
    """The keys of the judgements on disk."""
    store = Store(url, create=False)
    with store.reading() as connection:
        found = set(connection.exec_driver_sql("select key from judgements").scalars())
    store.close()
    return found
