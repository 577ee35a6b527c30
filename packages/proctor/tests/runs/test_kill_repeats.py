"""`kill -9` at random moments of a run with five repetitions, in SQLite and in PostgreSQL: every repetition of every item
is answered once, none is lost, and none that was recorded is paid again. The same for a judge that is asked five times."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from proctor.core import Answer, generator
from proctor.runs import Store
from proctor.runs.judge_work import judge_score_rows
from tests.runs.test_judge_repetitions import JUDGE, verdict, words
from tests.support.faulty_server import FaultyServer, Request
from tests.support.forked import Program
from tests.support.killed_runs import LATENCY_S, PATIENCE_S, kill, kill_run
from tests.support.program import start_proctor, wait_for

REPEATS = 5


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield str(tmp_path / "runs.db")
    else:
        yield request.getfixturevalue("postgres_url")


def test_five_repetitions_survive_kills_and_none_is_paid_twice(url: str, tmp_path: Path) -> None:
    found = kill_run(url, tmp_path, items=40, repeats=REPEATS, kills=8)
    assert found.answers == 40 * REPEATS
    assert found.again > 0, "the kills came while answers were under way"


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
