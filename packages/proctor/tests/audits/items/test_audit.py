"""The item audit: finds what gives the answer away, in real and in planted data, and else is silent."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from pydantic import JsonValue

from proctor.audits.items import FormatAudit, ItemAudit, audit_items, to_json
from proctor.audits.items.baselines import BaselineComparison, fold_of_groups, random_baseline, rule_baselines
from proctor.audits.items.options import OptionTable
from proctor.core import Frame, InputError, Item, Reference, generator
from proctor.core.formats import (
    AnswerFormat,
    BinaryFormat,
    ChoiceFormat,
    CountFormat,
    FreeTextFormat,
    OrderingFormat,
    RatingsFormat,
)
from proctor.metrics import AccuracyScorer
from proctor.reports import audit_section
from proctor.reports.blocks import Figure
from proctor.systems.baselines import ShortestOption

WORDS = tuple(
    word
    for line in (
        "probe liver kidney spleen vessel aorta depth gain sweep angle rotate slide fan rock tilt plane axis",
        "shadow border lobe duct wall fluid view image contrast focus window pressure contact margin texture",
        "echo flow valve septum apex base chamber cortex",
    )
    for word in line.split()
)

Plant = Callable[[np.random.Generator, list[str], int], list[str]]
"""Changes the options of one item, told which is right."""


def benchmark(seed: int, *, plant: Plant | None = None, groups: int = 60, size: int = 4) -> list[Item]:
    """Items without artefacts: options of random words and lengths, the key at random."""
    rng = generator(seed, "synthetic benchmark")
    items = []
    for number in range(groups * size):
        options = [" ".join(rng.choice(WORDS, size=rng.integers(3, 12))) for _ in range(4)]
        key = int(rng.integers(4))
        if plant is not None:
            options = plant(rng, options, key)
        items.append(
            Item(
                id=f"q{number}",
                group=f"v{number // size}",
                question="What is done with the " + " ".join(rng.choice(WORDS, size=5)) + "?",
                answer=ChoiceFormat(),
                options=tuple(options),
                reference=Reference(answer="ABCD"[key]),
                tags={"type": "odd" if number % 2 else "even", "clip": f"c{number}", "length_s": number / 3},
            )
        )
    return items


def choice_of(audit: ItemAudit) -> FormatAudit:
    found = audit.format("choice")
    assert found is not None
    return found


def rexsonovqa(data: Path) -> list[Item]:
    items = []
    for path in sorted((data / "rexsonovqa" / "benchmark_questions" / "mcq").glob("*.json")):
        for number, question in enumerate(json.loads(path.read_text(encoding="utf-8"))):
            lines = question["question"].split("\n")
            options = [line.strip()[3:].strip() for line in lines if re.match(r"\s*[A-D][.):] ", line)]
            stem = " ".join(line for line in lines if not re.match(r"\s*[A-D][.):] ", line))
            if question["keep"]:
                items.append(
                    Item(
                        id=f"{path.stem}/{number}",
                        group=path.stem,
                        question=stem,
                        options=tuple(options),
                        answer=ChoiceFormat(),
                        reference=Reference(answer=question["answer"]),
                        tags={"type": question["question_type"]},
                    )
                )
    return items


class Blind:
    """A view without anything to see."""

    condition = "text-only"
    span = None

    async def frames(
        self, *, count: int | None = None, fps: float | None = None, window: tuple[float, float] | None = None
    ) -> list[Frame]:
        raise AssertionError(f"nothing to see: {count}, {fps}, {window}")


def test_the_shortest_option_is_found_in_real_data(data: Path) -> None:
    items = rexsonovqa(data)
    audit = audit_items(items)
    choice = choice_of(audit)
    assert (audit.n, choice.n, choice.chance) == (249, 249, 0.25)
    best = choice.best_rule
    assert best is not None
    assert best.name == "shortest-option"
    assert best.accuracy.value == 191 / 249
    assert best.p_holm is not None
    assert best.p_holm < 1e-10
    assert choice.constant_share == 110 / 249
    options = choice.options
    assert options is not None
    assert (options.strictly_shortest, options.strictly_longest) == (191, 16)
    assert options.key_positions[0].counts == (110, 52, 43, 44)
    assert options.length_ranks[0].counts[0] == 191
    length = next(contrast for contrast in options.contrasts if contrast.feature == "length")
    assert length.right < length.wrong
    selected = choice.selected
    assert selected is not None
    assert selected.covers_chance is False
    assert selected.accuracy.value is not None
    assert selected.accuracy.value > 0.7
    assert sum(audit.guessable.values()) == round(249 * selected.accuracy.value)
    types = [part for part in selected.facets if part.facet == "type"]
    assert len(types) == 3
    assert sum(part.accuracy.n for part in types) == 249


def test_the_system_scores_what_the_audit_says(data: Path) -> None:
    system, scorer = ShortestOption(), AccuracyScorer()
    items = rexsonovqa(data)
    marks = [scorer.compute(item, asyncio.run(system.answer(item.as_asked(), Blind()))) for item in items]
    assert sum(mark.value for mark in marks) == 191


def longest_in_70_percent(rng: np.random.Generator, options: list[str], key: int) -> list[str]:
    order = sorted(options, key=len)
    target = 3 if rng.random() < 0.6 else int(rng.integers(4))  # 0.6 + 0.4 / 4 = 0.7
    right = order.pop(target)
    return [*order[:key], right, *order[key:]]


def hedged(rng: np.random.Generator, options: list[str], key: int) -> list[str]:
    del rng
    return [f"{option} possibly" if row == key else f"{option} distal" for row, option in enumerate(options)]


def unheard_of_word(rng: np.random.Generator, options: list[str], key: int) -> list[str]:
    """No rule knows it: every option gets a word of its own, the right ones out of words of their own."""
    right, wrong = (rng.permutation(["ra", "rb", "rc"]), rng.permutation([f"w{letter}" for letter in "abcdefghi"]))
    return [f"{option} {right[0] if row == key else wrong[row]}" for row, option in enumerate(options)]


@pytest.mark.parametrize(
    ("plant", "rule", "accuracy"), [(longest_in_70_percent, "longest-option", 0.7), (hedged, "most-hedged", 1.0)]
)
def test_a_planted_rule_is_found(plant: Plant, rule: str, accuracy: float) -> None:
    choice = choice_of(audit_items(benchmark(1, plant=plant), draws=500))
    best, selected = choice.best_rule, choice.selected
    assert best is not None
    assert best.name == rule
    assert best.accuracy.value == pytest.approx(accuracy, abs=0.07)
    assert best.p_holm is not None
    assert best.p_holm < 0.001
    assert selected is not None
    assert selected.covers_chance is False
    assert selected.accuracy.value is not None
    assert selected.accuracy.value > accuracy - 0.1
    assert "random" not in selected.chosen


def test_an_artefact_that_no_rule_knows_is_learned() -> None:
    choice = choice_of(audit_items(benchmark(2, plant=unheard_of_word), draws=500))
    assert choice.baselines[0].name == "logistic-words"
    assert choice.baselines[0].kind == "learned"
    selected = choice.selected
    assert selected is not None
    assert selected.chosen == {"logistic-words": 240}
    assert selected.covers_chance is False
    rule = choice.best_rule
    assert rule is not None
    assert rule.p_holm is not None
    assert rule.p_holm > 0.05


def test_without_artefacts_the_audit_is_silent() -> None:
    """The whole audit, classifiers included, on a few benchmarks made without artefacts."""
    found = []
    for seed in range(8):
        audit = audit_items(benchmark(seed), seed=seed, draws=300, facets=())
        choice = choice_of(audit)
        assert choice.selected is not None
        found.append(choice.selected.covers_chance)
        silent = set(choice.selected.chosen) == {"random"}
        assert any(audit.guessable.values()) is not silent
    assert sum(map(bool, found)) >= 7


def test_over_many_keys_the_interval_covers_chance_as_often_as_it_says() -> None:
    """All fixed rules on the same options with 300 random keys. The best rule in sample flatters, the
    selected one does not."""
    items = benchmark(0)
    table = OptionTable(items, 0)
    groups = [item.group for item in items]
    chance = np.full(len(items), 0.25)
    covered, values, flattering = [], [], []
    for seed in range(300):
        key = generator(seed, "key by lot").integers(4, size=len(items))
        right = np.arange(4) == key[:, None]
        fold = fold_of_groups(groups, seed)
        baselines = [random_baseline(items, chance, fold, seed), *rule_baselines(table, right, 5)]
        contest = BaselineComparison(items, fold, chance, 300, seed)
        selected, _ = contest.selected(baselines, ())
        covered.append(selected.covers_chance)
        values.append(selected.accuracy.value)
        flattering.append(max(baseline.hits[:, 0].mean() for baseline in baselines))
    assert np.mean(np.array(covered, dtype=bool)) >= 0.94
    assert np.mean(np.array(values, dtype=float)) == pytest.approx(0.25, abs=0.006)
    assert np.mean(flattering) > 0.3


def test_the_same_items_and_seed_give_the_same_audit() -> None:
    items = benchmark(3, groups=20)
    assert to_json(audit_items(items, draws=200)) == to_json(audit_items(items, draws=200))
    turned, straight = (choice_of(audit_items(some, draws=200)) for some in (items[::-1], items))
    rules = [
        {result.name: result.accuracy.value for result in choice.baselines if result.kind == "rule"}
        for choice in (turned, straight)
    ]
    assert rules[0] == rules[1]
    assert turned.options is not None
    assert straight.options is not None
    assert turned.options.key_positions == straight.options.key_positions
    assert turned.options.length_ranks == straight.options.length_ranks


def test_an_audit_is_plain_json() -> None:
    plain = to_json(audit_items(benchmark(4, groups=6), draws=100))
    assert json.loads(json.dumps(plain)) == plain
    assert isinstance(plain, dict)
    assert set(plain) == {"n", "groups", "seed", "draws", "formats", "repeats", "guessable", "left_out"}


def test_what_is_drawn_says_that_its_test_takes_items_as_independent(data: Path) -> None:
    """The p of the histograms is no clustered one, and stands beside others that are."""
    section = audit_section(audit_items(rexsonovqa(data), draws=100))
    assert section is not None
    captions = [block.caption for block in section.blocks if isinstance(block, Figure)]
    assert len(captions) == 2
    assert all("(chi-square; items are taken as independent, p is not adjusted)" in one for one in captions)


def test_facets_are_tags_with_a_few_values() -> None:
    items = benchmark(5, groups=10)
    selected = choice_of(audit_items(items, draws=100)).selected
    assert selected is not None
    assert {part.facet for part in selected.facets} == {"type"}
    assert [part.value for part in selected.facets] == ["even", "odd"]
    asked = choice_of(audit_items(items, draws=100, facets=("clip",))).selected
    assert asked is not None
    assert len(asked.facets) == 40


def test_a_value_that_an_items_tag_names_twice_counts_once() -> None:
    items = benchmark(5, groups=10)
    doubled = [
        one.model_copy(update={"tags": {"type": (one.tags["type"],) * (1 + row % 3)}}) for row, one in enumerate(items)
    ]
    once, twice = (
        choice_of(audit_items(some, draws=100, facets=facets)).selected
        for some, facets in ((items, ("type",)), (doubled, ("type", "type")))
    )
    assert once is not None
    assert twice is not None
    assert [part.accuracy.n for part in twice.facets] == [20, 20]
    assert twice.facets == once.facets


def _made(
    form: AnswerFormat, answers: Sequence[JsonValue], *, questions: Sequence[str] = (), options: int = 0
) -> list[Item]:
    return [
        Item(
            id=f"{form.kind}{number}",
            group=f"v{number}",
            question=questions[number] if questions else "What is seen?",
            answer=form,
            options=tuple(f"option {row}" for row in range(options)),
            reference=None if answer is None else Reference(answer=answer),
        )
        for number, answer in enumerate(answers)
    ]


def test_a_leaning_binary_format_is_found() -> None:
    audit = audit_items(_made(BinaryFormat(), [True] * 36 + [False] * 4), draws=300)
    (binary,) = audit.formats
    assert (binary.kind, binary.chance, binary.constant_share) == ("binary", 0.5, 0.9)
    assert binary.options is None
    assert binary.selected is not None
    assert binary.selected.covers_chance is False
    assert binary.selected.chosen == {"usual-answer": 40}
    assert audit.guessable == {f"binary{number}": number < 36 for number in range(40)}


def test_a_fair_binary_format_is_silent() -> None:
    coins = [bool(coin) for coin in generator(0, "coins").random(60) < 0.5]
    (binary,) = audit_items(_made(BinaryFormat(), coins), draws=300).formats
    assert binary.selected is not None
    assert binary.selected.covers_chance is True


def test_answers_that_the_question_gives_away_are_found() -> None:
    numbers = [number % 4 for number in range(40)]
    names = ("clips", "sponges", "needles", "bags")
    questions = [f"How many {names[number]} are seen in clip {row}?" for row, number in enumerate(numbers)]
    (count,) = audit_items(_made(CountFormat(), numbers, questions=questions), draws=300).formats
    assert count.chance is None
    assert count.constant_share == 0.25
    assert [result.name for result in count.baselines] == ["nearest-question", "usual-answer"]
    assert count.baselines[0].accuracy.value == 1.0
    assert count.baselines[0].p is None
    assert count.selected is not None
    assert count.selected.covers_chance is None
    assert count.selected.chosen == {"nearest-question": 40}


def test_a_standing_order_is_found() -> None:
    (ordering,) = audit_items(_made(OrderingFormat(labels=("A", "B", "C")), [["A", "B", "C"]] * 12), draws=300).formats
    assert ordering.chance == pytest.approx(1 / 6)
    assert ordering.selected is not None
    assert ordering.selected.covers_chance is False


def test_what_is_left_out_is_said() -> None:
    items = [
        *_made(FreeTextFormat(), ["a clip", "a bag"]),
        *_made(RatingsFormat(dimensions=("accuracy",)), [{"accuracy": 1.0}]),
        *_made(CountFormat(), [None, 2]),
        *_made(ChoiceFormat(), ["A"], options=1),
    ]
    audit = audit_items(items, draws=100)
    undecided = "what is right is not decided by code, so no guess can be scored"
    assert audit.left_out == {
        "free_text": f"2 items: {undecided}",
        "ratings": f"1 item: {undecided}",
        "count": "1 item: no reference",
        "choice": "1 item: fewer than two options",
    }
    (count,) = audit.formats
    assert (count.n, count.selected) == (1, None)
    assert count.unselected == "too few groups to choose on some and try on others"
    assert audit.guessable == {}


def test_no_items_are_an_empty_audit() -> None:
    audit = audit_items([])
    assert (audit.n, audit.groups, audit.formats, audit.guessable) == (0, 0, (), {})


def test_one_group_has_rules_but_no_selection() -> None:
    choice = choice_of(audit_items(benchmark(6, groups=1, size=20), draws=100))
    assert choice.selected is None
    assert choice.baselines
    assert all(result.kind == "rule" for result in choice.baselines)
    assert all(result.accuracy.ci_low is None for result in choice.baselines)


def test_two_groups_are_enough_for_rules_alone() -> None:
    choice = choice_of(audit_items(benchmark(7, groups=2, size=20), draws=100))
    assert choice.selected is not None
    assert choice.selected.folds == 2
    assert all(result.kind == "rule" for result in choice.baselines)


def test_a_key_outside_the_options_is_named() -> None:
    items = _made(ChoiceFormat(), ["A", "E"], options=4)
    with pytest.raises(InputError, match=r"item choice1, reference: found 'E', expected one of A, B, C, D"):
        audit_items(items)


def test_accepted_alternatives_raise_chance_and_count_as_hits() -> None:
    items = [
        item.model_copy(update={"reference": Reference(answer="A", accepted=("B",))})
        for item in _made(ChoiceFormat(), ["A"] * 8, options=4)
    ]
    choice = choice_of(audit_items(items, draws=100))
    assert choice.chance == 0.5
    hits = {result.name: result.accuracy.value for result in choice.baselines}
    assert [hits[f"always-{letter}"] for letter in "ABCD"] == [1.0, 1.0, 0.0, 0.0]


def test_different_numbers_of_options_get_a_histogram_each() -> None:
    items = [*_made(ChoiceFormat(), list("AB") * 10, options=2), *benchmark(8, groups=10)]
    options = choice_of(audit_items(items, draws=100)).options
    assert options is not None
    assert [(histogram.options, sum(histogram.counts)) for histogram in options.key_positions] == [(2, 20), (4, 40)]
    assert options.key_positions[0].p == 1.0
