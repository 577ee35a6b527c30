"""A judge over many answers: equal ones once, all at once where it can, stopped, given up, held to its word."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import JsonValue

from proctor.core import ConfigurationError, InputError, ProctorError
from proctor.judges.dimensions import NOT_JUDGED, Case, DimensionScores, JudgesAll, Progress, judge_cases
from tests.support.dimension_cases import case

NAMES = tuple(one.name for one in case().dimensions)


def full(score: float = 0.5) -> DimensionScores:
    return DimensionScores(dict.fromkeys(NAMES, score))


class OneByOne:
    """Scores by length; fails, or raises, where a candidate says so."""

    name = "one-by-one"

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.at_once = self.most_at_once = 0

    @property
    def settings(self) -> dict[str, JsonValue]:
        return {}

    async def judge(self, what: Case) -> DimensionScores:
        self.seen.append(what.candidate)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0.001)
        self.at_once -= 1
        if what.candidate.startswith("no access"):
            raise ConfigurationError("no access")
        if what.candidate.startswith("fails"):
            return DimensionScores.none(what, "it failed")
        return full(len(what.candidate) / 100)


class AllAtOnce(OneByOne):
    """Compares all answers."""

    name = "all-at-once"

    async def judge_all(self, cases: Sequence[Case]) -> list[DimensionScores]:
        self.seen.append(f"{len(cases)} cases")
        return [full(place / 10) for place, _ in enumerate(cases)]


def run(judge: OneByOne, *candidates: str, **more: Any) -> tuple[list[DimensionScores], list[int]]:
    done: list[int] = []

    def update(progress: Progress) -> None:
        done.append(progress.done)
        assert progress.total == len(set(candidates))

    cases = [case(one) for one in candidates]
    return asyncio.run(judge_cases(judge, cases, on_change=update, **more)), done


def test_scores_come_in_the_order_of_the_cases_and_equal_ones_are_judged_once() -> None:
    judge = OneByOne()
    texts = ["a" * n for n in (30, 10, 30, 20, 10)]
    said, done = run(judge, *texts, concurrency=2)
    assert [one.values["overall"] for one in said] == [0.3, 0.1, 0.3, 0.2, 0.1]
    assert (sorted(judge.seen), done, judge.most_at_once) == (sorted(set(texts)), [1, 2, 3], 2)


def test_a_judge_that_takes_all_gets_all() -> None:
    judge = AllAtOnce()
    assert isinstance(judge, JudgesAll)
    assert not isinstance(OneByOne(), JudgesAll)
    said, done = run(judge, "a", "b", "a")
    assert [one.values["overall"] for one in said] == [0.0, 0.1, 0.0]
    assert (judge.seen, done) == (["2 cases"], [2])


def test_after_many_failures_in_a_row_the_rest_is_left() -> None:
    judge = OneByOne()
    said, _ = run(judge, *(f"fails {n}" for n in range(20)), concurrency=1, give_up_after=5)
    assert [one.missing["overall"] for one in said] == ["it failed"] * 5 + [NOT_JUDGED] * 15
    judge = OneByOne()
    texts = [f"fails {n}" if n % 5 else f"good {n}" for n in range(20)]
    said, _ = run(judge, *texts, concurrency=1, give_up_after=5)
    assert sum(bool(one.values) for one in said) == 4
    assert len(judge.seen) == 20


def test_told_to_stop_it_starts_nothing_new() -> None:
    judge = OneByOne()

    async def stopped() -> list[DimensionScores]:
        stop = asyncio.Event()

        def update(progress: Progress) -> None:
            if progress.done == 3:
                stop.set()

        cases = [case(f"good {n}") for n in range(10)]
        return await judge_cases(judge, cases, concurrency=1, stop=stop, on_change=update)

    said = asyncio.run(stopped())
    assert [bool(one.values) for one in said] == [True] * 3 + [False] * 7
    assert set(said[-1].missing.values()) == {NOT_JUDGED}


def test_what_can_not_get_better_ends_it() -> None:
    with pytest.raises(ConfigurationError, match="no access"):
        run(OneByOne(), "good", "no access", "more")


@pytest.mark.parametrize(
    ("scores", "text"),
    [
        (full(1.5), "bad: iiyi/E1/en: disagree_flag is 1.5, not 0 to 1"),
        (DimensionScores({"overall": 0.5}), "bad: iiyi/E1/en: left out completeness"),
        (
            DimensionScores(dict.fromkeys(NAMES, 0.5) | {"empathy": 0.5}),
            "bad: iiyi/E1/en: scored the unknown dimension empathy",
        ),
    ],
)
def test_scores_that_are_not_of_the_case_are_an_error(scores: DimensionScores, text: str) -> None:
    class Bad(OneByOne):
        name = "bad"

        async def judge(self, what: Case) -> DimensionScores:
            return scores

    with pytest.raises(ProctorError) as caught:
        run(Bad(), "good")
    assert str(caught.value) == text
    assert not isinstance(caught.value, InputError)
