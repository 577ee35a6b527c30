"""Whatever bytes a model replies with, a run goes on: every item gets its answer, and the next run asks only for what
the infrastructure failed to give."""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from proctor.core import ACCURACY, Answer, Benchmark, Item, Reference, Status
from proctor.core.formats import (
    AnswerFormat,
    BinaryFormat,
    ChoiceFormat,
    ClassesFormat,
    CountFormat,
    FreeTextFormat,
    OrderingFormat,
    PatternFormat,
    PercentageFormat,
    RatingsFormat,
    TimestampsFormat,
)
from proctor.media import MediaLibrary
from proctor.metrics import AccuracyScorer
from proctor.models import ModelClient, ModelSpec
from proctor.runs import Limits, Store, execute, plan
from proctor.systems import ModelSystem
from tests.support.failures import failed_items
from tests.support.raw_server import completion, raw_server

FORMATS: list[tuple[AnswerFormat, JsonValue]] = [
    (ChoiceFormat(), "A"),
    (OrderingFormat(labels=("A", "B")), ["B", "A"]),
    (BinaryFormat(), True),
    (CountFormat(), 3),
    (PercentageFormat(), 40.0),
    (ClassesFormat(classes=("Clip", "Sponge")), ["Clip"]),
    (TimestampsFormat(), [65.0]),
    (PatternFormat(pattern=r"\d/\d"), "2/3"),
    (FreeTextFormat(), "a clip"),
    (RatingsFormat(dimensions=("accuracy",)), {"accuracy": 0.5}),
]

TEXTS = [
    "\ud800",
    "Answer: \udfff A",
    "\x00",
    "Answer: A\x00",
    "Answer: " + "9" * 400,
    "Answer: " + "9" * 5_000,
    "Answer: 1e" + "9" * 400,
    "Answer: -" + "9" * 400 + "%",
    "Answer: 00:00:" + "9" * 5_000,
    "{" * 100_000,
    "[" * 100_000,
    '{"accuracy": ' * 20_000,
    "Answer: " + "[" * 100_000,
    "Answer: A" + " > A" * 50_000,
    "(" * 100_000,
    "<think>" * 10_000,
    "```" * 30_000,
    "**" * 50_000,
    "\\boxed{" * 20_000,
    "Answer:" * 20_000,
    "\n" * 100_000,
    "\u202e\u2066 Answer: A",
    '{"accuracy": NaN}',
    '{"accuracy": 1e999}',
    '{"accuracy": ' + "9" * 5_000 + "}",
    "NaN",
    "Infinity",
    "٣",
    "²",
    "Ⅳ",
    "Answer: ½",
]

USAGES: list[dict[str, int]] = [
    {"prompt_tokens": 10**30, "completion_tokens": 1, "total_tokens": 1},
    {"prompt_tokens": -(10**12), "completion_tokens": 10**19, "total_tokens": 0},
    {"prompt_tokens": 2**63, "completion_tokens": 2**31, "total_tokens": 5},
]


def a_benchmark(rounds: int) -> Benchmark:
    items = [
        Item(
            id=f"q{number:04d}",
            group=f"g{number % 7}",
            question=f"Item {number}: what is seen?",
            answer=form,
            options=("red", "blue") if form.kind == "choice" else (),
            reference=Reference(answer=key),
        )
        for number, (form, key) in enumerate(one for _ in range(rounds) for one in FORMATS)
    ]
    return Benchmark(name="hostile", title="Hostile", items=tuple(items), metrics=(ACCURACY,), headline="accuracy")


def run(bodies: Sequence[bytes], benchmark: Benchmark, folder: Path) -> dict[str, Answer]:
    """Item n is answered with body n; returns what is stored after two runs."""
    asked: list[int] = []

    def reply(request: dict[str, Any]) -> bytes:
        found = re.search(r"Item (\d+):", json.dumps(request))
        assert found
        asked.append(int(found[1]))
        return bodies[int(found[1]) % len(bodies)]

    async def go(url: str, store: Store) -> None:
        client = ModelClient(ModelSpec(name="m", base_url=url, retries=0, backoff_s=0.001))
        library = MediaLibrary(None, cache_dir=folder / "cache")
        planned = plan(store, benchmark, [ModelSystem(client)], ["text-only"], library, scorers=[AccuracyScorer()])
        await execute(store, planned, Limits(concurrency=8, give_up_after=10**6))
        await client.aclose()

    store = Store(folder / "runs.db")
    with raw_server(reply) as url:
        asyncio.run(go(url, store))
        (first,) = store.runs("hostile")
        assert set(store.answers(first)) == {item.id for item in benchmark.items}
        failed = {int(item[1:]) for item in failed_items(store, first)}
        asked.clear()
        asyncio.run(go(url, store))
        assert set(asked) == failed
    answers = store.answers(first)
    store.close()
    return answers


def test_no_text_ends_a_run(tmp_path: Path) -> None:
    benchmark = a_benchmark(len(TEXTS))
    bodies = [completion(text) for text in TEXTS for _ in FORMATS]
    answers = run(bodies, benchmark, tmp_path)
    assert {answer.status for answer in answers.values()} == {Status.ANSWERED}
    assert answers["q0000"].text == "\ufffd"
    assert not any("\x00" in answer.text for answer in answers.values())


def test_no_usage_ends_a_run(tmp_path: Path) -> None:
    benchmark = a_benchmark(len(USAGES))
    bodies = [completion("Answer: A", **usage) for usage in USAGES for _ in FORMATS]
    answers = run(bodies, benchmark, tmp_path)
    assert {answer.status for answer in answers.values()} == {Status.ANSWERED}
    assert {answer.usage.input_tokens for answer in answers.values()} == {0}  # no such numbers: nothing is known


BYTES = st.one_of(
    st.binary(max_size=300),
    st.text(max_size=300).map(completion),
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
        max_leaves=12,
    ).map(lambda value: json.dumps(value).encode()),
    st.tuples(st.sampled_from(range(60)), st.binary(min_size=1, max_size=4)).map(
        lambda change: completion("Answer: A")[: change[0]] + change[1] + completion("Answer: A")[change[0] :]
    ),
)


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(BYTES, min_size=len(FORMATS), max_size=len(FORMATS)))
def test_no_bytes_end_a_run(bodies: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run(bodies, a_benchmark(1), Path(folder))
