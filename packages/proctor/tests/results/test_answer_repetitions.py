"""Where repetitions of an item differ: by hand, and against a loop over all answers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from proctor.core import Answer, InputError, generator
from proctor.results import AnswerFilter, load_index, repetition_flips
from proctor.stats import Resampling, mean_interval
from tests.support.repeated_store import repeated_store

SAID = {
    "steady": "AAA",
    "steadily wrong": "BBB",
    "flips": "ABA",
    "other error": "BCB",
    "unread": "-B-",
    "one failed": "A!A",
    "one left": "A!.",
}


def test_answers_and_results_differ_as_counted_by_hand(tmp_path: Path) -> None:
    store = repeated_store(tmp_path, SAID)
    index = load_index(store, "again")

    def kept(how: str) -> set[str]:
        chosen = index.select(store, AnswerFilter(differ=how))
        located = [index.located(row) for row in chosen.rows.tolist()]
        assert {index.columns[number].run.system for _, number in located} <= {"m"}, "what was asked once never differs"
        return {index.items.ids[position] for position, _ in located}

    assert kept("result") == {"flips"}
    assert kept("answer") == {"flips", "other error", "unread"}
    (one,) = repetition_flips(store, index)
    assert (one.run.system, one.repetitions) == ("m", 3)
    assert (one.answers.value, one.answers.n, one.answers.groups) == (3 / 6, 6, 3), "of items with two answers"
    assert (one.results.value, one.results.n, one.results.groups) == (1 / 6, 6, 3)
    assert len(index.select(store, AnswerFilter(differ="result"))) == 3, "each repetition of it is a row"
    assert len(index.select(store, AnswerFilter(differ="result", results=("wrong",)))) == 1
    with pytest.raises(InputError, match="differ: found 'reply', expected one of answer, result"):
        index.select(store, AnswerFilter(differ="reply"))


def test_a_new_answer_is_looked_at_again(tmp_path: Path) -> None:
    store = repeated_store(tmp_path, {"x": "AA.", "y": "AAA"})
    before = load_index(store, "again")
    assert len(before.select(store, AnswerFilter(differ="answer"))) == 0
    run = store.runs("again")[0]
    store.write(run, [(Answer(item_id="x", repetition=2, parsed="B", text="B"), [])])
    now = load_index(store, "again", before)
    assert len(now.select(store, AnswerFilter(differ="answer"))) == 3
    assert len(now.select(store, AnswerFilter(differ="result"))) == 0, "it has no score yet"


def test_it_finds_what_a_loop_over_all_answers_finds(tmp_path: Path) -> None:
    rng = generator(3, "flips")
    said = {f"q{number}": "".join(rng.choice(list("AABC-!."), 4)) for number in range(120)}
    store = repeated_store(tmp_path, said, repeats=4, groups=15)
    index = load_index(store, "again")
    answers, results = {}, {}
    for item, letters in said.items():
        there = [letter for letter in letters if letter not in "!."]
        if len(there) > 1:
            answers[item] = "-" in there or len(set(there)) > 1
            results[item] = len({letter == "A" for letter in there}) > 1
    (one,) = repetition_flips(store, index, draws=500, seed=1)
    for how, expected, estimate in (("answer", answers, one.answers), ("result", results, one.results)):
        chosen = index.select(store, AnswerFilter(differ=how))
        found = {index.items.ids[index.located(row)[0]] for row in chosen.rows.tolist()}
        assert found == {item for item, differs in expected.items() if differs}
        groups = [f"g{list(said).index(item) % 15}" for item in expected]
        plan = Resampling(draws=500, seed=1, bounds=(0.0, 1.0), shares=True)
        same = mean_interval(np.array([float(one) for one in expected.values()]), groups, plan)
        assert (estimate.value, estimate.n) == (same.value, len(expected))
        assert (estimate.ci_low, estimate.ci_high) == pytest.approx((same.ci_low, same.ci_high))
