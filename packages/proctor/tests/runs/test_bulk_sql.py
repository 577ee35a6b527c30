"""Many rows at once come out as they would one by one, in both databases."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proctor.core import Answer, InputError, Score, Status, Timing, Usage
from proctor.runs import Run, Store
from proctor.runs.bulk_sql import FEWEST
from tests.runs.test_store import a_benchmark, a_run

HOSTILE = ("a\tb", "a\\tb\\", "\\N", "\\.", "one\n\\.\ntwo\r\n", "'; drop table answers; --", "\u2028 胆囊 🙂", "", " ")


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    found = Store(tmp_path / "runs.db" if request.param == "sqlite" else request.getfixturevalue("postgres_url"))
    yield found
    found.close()


def many(store: Store) -> tuple[Run, list[str]]:
    benchmark = a_benchmark(FEWEST + len(HOSTILE))
    return a_run(store, benchmark), [item.id for item in benchmark.items]


def scored(item: str, text: str, value: float = 1.0, **more: Any) -> tuple[Answer, list[Score]]:
    answer = Answer.model_validate({"item_id": item, "text": text, **more})
    return answer, [Score(item_id=item, metric="m", value=value, label=text)]


def test_hostile_texts_and_missing_numbers_come_back(store: Store) -> None:
    run, ids = many(store)
    texts = [HOSTILE[number % len(HOSTILE)] for number in range(len(ids))]
    usage = Usage(requests=1, input_tokens=3, cost_usd=0.1 + 0.2)
    timing = Timing(model_s=1 / 3, media_s=0.0)
    rows = [
        scored(item, text, number / 7, usage=usage if number % 2 else Usage(), timing=timing if number % 3 else None)
        for number, (item, text) in enumerate(zip(ids, texts, strict=True))
    ]
    store.write(run, rows)
    assert store.answers(run) == {answer.item_id: answer for answer, _ in rows}
    kept = {one.item_id: (one.value, one.label) for one in store.score_rows(run)}
    assert kept == {score.item_id: (score.value, score.label) for _, (score,) in rows}


def test_a_failed_answer_is_replaced_and_a_settled_one_stays(store: Store) -> None:
    run, ids = many(store)
    failed: dict[str, Any] = {"status": Status.FAILED, "reason": "away"}
    store.write(run, [scored(item, "first", **(failed if row % 2 else {})) for row, item in enumerate(ids)])
    store.write(run, [scored(item, "second", 0.5) for item in ids])
    texts = [store.answers(run)[item].text for item in ids]
    assert texts == ["second" if row % 2 else "first" for row in range(len(ids))]
    kept = {one.item_id: (one.value, one.label) for one in store.score_rows(run)}
    assert kept == {item: (0.5, "second") if row % 2 else (1.0, "first") for row, item in enumerate(ids)}


def test_of_two_answers_to_one_item_in_a_batch_the_first_settled_one_counts(store: Store) -> None:
    run, ids = many(store)
    store.write(run, [*(scored(item, "first") for item in ids), scored(ids[0], "second", 0.25)])
    assert store.answers(run)[ids[0]].text == "first"
    assert [(one.value, one.label) for one in store.score_rows(run, item=ids[0])] == [(1.0, "first")]


@pytest.mark.parametrize("size", [7, FEWEST])  # in statements, and where PostgreSQL takes them by COPY
def test_scores_are_those_of_the_answer_that_stands(store: Store, size: int) -> None:
    """Against a plain account of what each item has: a failed answer gives way, any other stays with its scores."""
    run, ids = many(store)
    draw = random.Random(size)
    answers, scores = dict[str, Answer](), dict[str, tuple[float, str]]()
    for turn in range(8):
        rows = list[tuple[Answer, list[Score]]]()
        for row in range(size):
            item, text = draw.choice(ids[: 2 * size]), draw.choice(("yes", "no"))
            failed = draw.random() < 0.4
            answer, own = scored(item, text, turn + row / size, **({"status": Status.FAILED} if failed else {}))
            rows.append((answer, [] if failed else own))
            there = answers.get(item)
            if there is None or there.status is Status.FAILED:
                answers[item] = answer
            if answers[item] == answer and not failed:  # the same answer once more brings scores of it
                scores[item] = (own[0].value, text)
        store.write(run, rows)
        assert store.answers(run) == answers
        assert {one.item_id: (one.value, one.label) for one in store.score_rows(run)} == scores


def test_all_of_a_batch_is_written_or_nothing(store: Store) -> None:
    run, ids = many(store)
    strange = Run(999, run.benchmark, run.system, run.condition, {})
    with pytest.raises(InputError, match="expected a store that can be written"):
        store.write_many([(strange, *scored(item, "text")) for item in ids])
    assert store.count_answers(run) == (0, 0)
