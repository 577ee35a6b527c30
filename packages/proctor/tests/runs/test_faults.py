"""A whole run over a real server that breaks on purpose: every item ends answered or failed, no answer is
wrong by accident, and a second run asks again for what failed and for nothing else."""

from __future__ import annotations

import asyncio
import base64
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from proctor.core import ACCURACY, Answer, Benchmark, FailedPolicy, Item, Reference, Status, VideoClip
from proctor.core.formats import CountFormat
from proctor.media import MediaLibrary
from proctor.metrics import AccuracyScorer
from proctor.models import ModelClient, ModelSpec
from proctor.results import BOTH, Options, Result, results
from proctor.runs import Limits, Outcome, Run, Store, execute, plan
from proctor.systems import ModelSystem, Sampling
from tests.support.clock_video import ClockVideo, read_clock, write_clock_video
from tests.support.failures import failed_items
from tests.support.faulty_server import AT_ONCE, Fault, FaultyServer, Request

SEEN = 80  # items on a second of the video each
TOLD = 40  # items that the text alone answers


def a_benchmark(folder: Path) -> Benchmark:
    """The clock shows a new number every second; of each clip, which lies within a second, all frames show
    the same one. The other items are sums."""
    write_clock_video(folder / "clock.mp4", ClockVideo(range(0, 1000 * (SEEN + 1), 1000), keyint=10))
    seen = [
        Item(
            id=f"q{number:03d}",
            group=f"v{number // 10}",
            question=f"Item q{number:03d}: which number do the pictures show?",
            answer=CountFormat(),
            media=(VideoClip(source="clock.mp4", start=number + 0.2, end=number + 0.8),),
            reference=Reference(answer=number),
            tags={"kind": "seen"},
        )
        for number in range(SEEN)
    ]
    told = [
        Item(
            id=f"q{number:03d}",
            group=f"v{number // 10}",
            question=f"Item q{number:03d}: how much is {number} plus 7?",
            answer=CountFormat(),
            reference=Reference(answer=number + 7),
            tags={"kind": "told"},
        )
        for number in range(SEEN, SEEN + TOLD)
    ]
    return Benchmark(
        name="clock",
        title="Clock",
        items=(*seen, *told),
        metrics=(ACCURACY,),
        headline="accuracy",
        facets=("kind",),
        media_root=folder,
    )


def right_answer(request: Request) -> str:
    """What a model answers that sees and adds: it looks at the pictures of the request itself."""
    if request.image_bytes:
        shown = {read_clock(jpeg) for jpeg in pictures(request)}
        assert len(shown) == 1, f"pictures of several items in one request: {shown}"
        return f"Answer: {shown.pop()}"
    terms = re.search(r"how much is (\d+) plus (\d+)", request.text)
    assert terms, request.text
    return f"Answer: {int(terms[1]) + int(terms[2])}"


def pictures(request: Request) -> list[bytes]:
    parts: list[Any] = request.body["messages"][-1]["content"]
    urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    return [base64.b64decode(url.partition(",")[2]) for url in urls]


def asked_for(request: Request) -> str:
    found = re.search(r"Item (q\d+):", request.text)
    assert found, request.text
    return found[1]


def ask(server: FaultyServer, store: Store, benchmark: Benchmark, cache: Path, retries: int) -> tuple[Run, Outcome]:
    spec = ModelSpec(
        name="local", base_url=server.url, retries=retries, timeout_s=600.0, backoff_s=0.02, max_wait_s=0.2
    )

    async def run() -> tuple[Run, Outcome]:
        client = ModelClient(spec)
        system = ModelSystem(client, sampling=Sampling(count=3))
        library = MediaLibrary(benchmark.media_root, cache_dir=cache)
        planned = plan(store, benchmark, [system], ["video"], library, scorers=[AccuracyScorer()])
        outcome = await execute(store, planned, Limits(concurrency=16))
        await client.aclose()
        return planned.runs[0], outcome

    return asyncio.run(run())


def accuracy(store: Store, **options: Any) -> list[Result]:
    return results(store, "clock", Options(draws=200, **options)).rows


def by_status(answers: dict[str, Answer]) -> Counter[Status]:
    return Counter(answer.status for answer in answers.values())


def test_faults_on_30_percent_of_the_calls_are_never_wrong_answers(tmp_path: Path) -> None:
    benchmark, store = a_benchmark(tmp_path), Store(tmp_path / "runs.db")
    with FaultyServer(right_answer, faults=0.3, kinds=AT_ONCE, seed=4, retry_after_s=0.05) as server:
        run, outcome = ask(server, store, benchmark, tmp_path / "cache", 1)
        first = list(server.requests)
        answers = store.answers(run)
        failed = failed_items(store, run)

        assert {request.fault for request in first} > {None, Fault.RATE_LIMIT, Fault.RESET, Fault.WRONG_TYPES}
        assert set(answers) == {item.id for item in benchmark.items}
        assert set(by_status(answers)) == {Status.ANSWERED, Status.FAILED}
        assert outcome.failed == len(failed) > 0
        assert store.scored(run, "code") == store.settled(run) == set(answers) - failed
        assert_failed_is_said(answers, failed)
        assert_numbers_of_an_incomplete_run(store, len(benchmark.items), len(failed))

        server.faults = 0.0
        _, again = ask(server, store, benchmark, tmp_path / "cache", 6)
        second = server.requests[len(first) :]
    assert (again.failed, again.remaining) == (0, 0)
    assert Counter(map(asked_for, second)) == Counter(failed)
    now = store.answers(run)
    assert by_status(now) == {Status.ANSWERED: len(benchmark.items)}
    assert {item: now[item] for item in set(answers) - failed} == {
        item: answer for item, answer in answers.items() if item not in failed
    }
    (row,) = accuracy(store)
    assert row.policy == ""
    assert (row.value, row.n, row.answered, row.failed) == (1.0, len(benchmark.items), len(benchmark.items), 0)


def assert_failed_is_said(answers: dict[str, Answer], failed: set[str]) -> None:
    """Each failure names the model, what happened and how often it was tried, and holds nothing else."""
    for item in failed:
        answer = answers[item]
        assert re.fullmatch(r"local: .+ \(after 2 tries\)", answer.reason), answer.reason
        assert (answer.text, answer.parsed, answer.problem) == ("", None, "")


def assert_numbers_of_an_incomplete_run(store: Store, items: int, failed: int) -> None:
    (row,) = accuracy(store)
    assert (row.value, row.if_excluded, row.policy) == (None, 1.0, BOTH)
    (row,) = accuracy(store, failed=FailedPolicy.EXCLUDE)
    assert (row.value, row.n, row.answered, row.failed) == (1.0, items - failed, items - failed, failed)
    (row,) = accuracy(store, failed=FailedPolicy.WRONG)
    assert row.value == pytest.approx((items - failed) / items, abs=1e-12)
    assert (row.n, row.answered, row.failed) == (items, items - failed, failed)
    parts = accuracy(store, by=("kind",), failed=FailedPolicy.EXCLUDE)
    assert [row.facets for row in parts] == [{"kind": "seen"}, {"kind": "told"}]
    assert [row.answered + row.failed for row in parts] == [SEEN, TOLD]
    assert all(row.value == 1.0 for row in parts)


def test_a_server_that_is_down_fails_the_run_and_records_no_wrong_answer(tmp_path: Path) -> None:
    benchmark, store = a_benchmark(tmp_path), Store(tmp_path / "runs.db")
    with FaultyServer(right_answer, faults=1.0, kinds=[Fault.UNAVAILABLE, Fault.RESET]) as server:
        run, outcome = ask(server, store, benchmark, tmp_path / "cache", 0)
        assert outcome.tally.stopped.startswith("gave up after 50 failures in a row: local: ")
        assert by_status(store.answers(run)) == {Status.FAILED: outcome.failed}
        assert 50 <= outcome.failed < 50 + 16
        (row,) = accuracy(store)
        assert (row.value, row.ci_low, row.ci_high) == (None, None, None)
        assert (row.if_wrong, row.if_excluded, row.n) == (0.0, None, len(benchmark.items))
        assert row.missing == len(benchmark.items) - outcome.failed == outcome.remaining

        server.faults = 0.0
        _, again = ask(server, store, benchmark, tmp_path / "cache", 0)
    assert (again.failed, again.remaining) == (0, 0)
    assert [row.value for row in accuracy(store)] == [1.0]
