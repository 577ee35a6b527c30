"""Attacks that see all questions at once, and pairs of words of questions and options."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from proctor.audits.items import FormatAudit, audit_items
from proctor.audits.items.assignment import Assignment, answered_together
from proctor.audits.items.options import OptionTable, right_options
from proctor.core import Item, Reference, generator
from proctor.core.formats import ChoiceFormat


def choice(
    name: str, options: Sequence[str], key: str = "A", *, question: str = "What is done?", group: str = ""
) -> Item:
    return Item(
        id=name,
        group=group or name,
        question=question,
        answer=ChoiceFormat(),
        options=tuple(options),
        reference=Reference(answer=key),
    )


def audited(items: list[Item]) -> FormatAudit:
    found = audit_items(items, draws=200, facets=()).format("choice")
    assert found is not None
    return found


def accuracies(items: list[Item]) -> dict[str, float]:
    return {one.name: one.accuracy.value or 0.0 for one in audited(items).baselines}


def assigned(items: list[Item], scores: list[list[float]], rows: list[int] | None = None) -> list[bool]:
    table = OptionTable(items, 0)
    indices = np.arange(len(items)) if rows is None else np.array(rows)
    return [bool(hit) for hit in Assignment(table).hits(np.array(scores), right_options(table), indices)]


def test_each_text_is_chosen_once_by_hand() -> None:
    """Both questions score "rotate" highest. Used once, it goes where it is ahead by more: 5 + 2 is more than 3 + 3."""
    items = [choice("q1", ["rotate", "slide"], "A"), choice("q2", ["slide", "rotate"], "A")]
    scores = [[5.0, 3.0], [2.0, 3.0]]
    table = OptionTable(items, 0)
    assert table.hits(np.array(scores), right_options(table)).tolist() == [True, False]
    assert assigned(items, scores) == [True, True]
    assert assigned(items, scores, [1]) == [False]  # one question alone is answered alone


def test_a_spare_text_stays_unused() -> None:
    items = [choice(f"q{n}", ["rotate", "slide", "press"], key) for n, key in enumerate("AB")]
    assert assigned(items, [[3.0, 0.0, 1.0], [3.0, 2.0, 1.5]]) == [True, True]
    assert assigned(items, [[3.0, 0.0, 2.9], [3.0, 2.0, 1.5]]) == [False, False]  # "press" and "rotate": 5.9


def test_more_items_than_texts_are_answered_alone() -> None:
    """Three questions with two texts: nobody can use each once."""
    items = [choice(f"q{n}", ["rotate", "slide"]) for n in range(3)]
    assert assigned(items, [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]) == [True, True, False]
    assert not Assignment(OptionTable(items, 0)).applies
    table = OptionTable(items, 0)
    assert answered_together(table, right_options(table), seed=0) is None


def test_a_text_that_is_right_twice_costs_whoever_uses_it_once() -> None:
    items = [choice(f"q{n}", ["liver", f"other {n}"]) for n in range(3)]
    table = OptionTable(items, 0)
    found = answered_together(table, right_options(table), seed=0)
    assert found is not None
    assert found.together < 0.45 < found.alone


def blocks(seed: int, told: float) -> list[Item]:
    """Blocks of four questions with the same four options, in an order of their own; a share of the questions begins with
    a word that resembles its own option, the others with none."""
    rng = generator(seed, "blocks")
    items = []
    for number in range(160):
        names = [f"{chr(97 + number // 4 % 26)}{syllable}{number // 4:02d}" for syllable in ("ro", "sla", "tin", "pex")]
        own = number % 4
        order = [int(row) for row in rng.permutation(4)]
        hint = f"{names[own]}ing" if rng.random() < told else "this"
        items.append(
            choice(
                f"q{number:03d}",
                [names[row] for row in order],
                "ABCD"[order.index(own)],
                question=f"What of {hint}?",
                group=f"v{number // 8}",
            )
        )
    return items


def test_the_attack_on_blocks_is_a_row_of_the_audit() -> None:
    """Half of the questions name their own option: 62.5 % alone. With each option used once, of those without a name one is right in each block that has any:
    (2 + 15/16) / 4 = 73.4 %."""
    found = accuracies(blocks(0, 0.5))
    alone, once = found["nearest-in-characters"], found["nearest-in-characters-once"]
    assert alone == pytest.approx(0.625, abs=0.08)
    assert once == pytest.approx(0.734, abs=0.06)
    assert {"logistic-features-once", "logistic-words-once", "logistic-pairs-once"} <= found.keys()


def test_where_questions_tell_nothing_using_each_once_gains_nothing() -> None:
    found = accuracies(blocks(1, 0.0))
    for name, accuracy in found.items():
        if name.endswith("-once"):
            assert accuracy == pytest.approx(0.25, abs=0.11), name


def test_without_shared_options_there_is_nothing_to_assign() -> None:
    items = [choice(f"q{n}", [f"one {n}", f"two {n}"], "AB"[n % 2], group=f"v{n % 6}") for n in range(36)]
    assert not [name for name in accuracies(items) if name.endswith("-once")]


def test_pairs_of_words_of_question_and_option_are_learned() -> None:
    """ "Why" asks for "because", "how" for "slowly": each word is right as often as wrong."""
    rng = generator(3, "pairs")
    items = []
    for number in range(120):
        why = bool(rng.integers(2))
        texts = [f"because of item {number}x", f"slowly with item {number}y"]
        order = [int(row) for row in rng.permutation(2)]
        key = "AB"[order.index(0 if why else 1)]
        question = f"{'Why' if why else 'How'} is it done in clip {number}?"
        items.append(
            choice(f"q{number}", [texts[row] for row in order], key, question=question, group=f"v{number % 20}")
        )
    found = accuracies(items)
    assert found["logistic-pairs"] > 0.95
    assert found["logistic-words"] < 0.65
