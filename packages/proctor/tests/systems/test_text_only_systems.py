"""The embedded systems that never look."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from proctor.core import Answer, ConfigurationError, Frame, Item, NeedsReferences, Reference, RefusalError, System
from proctor.core.formats import (
    AnswerFormat,
    BinaryFormat,
    ChoiceFormat,
    ClassesFormat,
    CountFormat,
    FreeTextFormat,
    OrderingFormat,
    PercentageFormat,
    RatingsFormat,
    TimestampsFormat,
    option_letters,
)
from proctor.metrics.accuracy import best_constant
from proctor.systems import build_system, format_value
from proctor.systems.baselines import (
    DEFAULT_SPAN_S,
    LongestOption,
    Majority,
    OptionLength,
    RandomGuess,
    ShortestOption,
    TextSimilarity,
)


class NoFrames:
    """A view that shows nothing, and fails a test that asks it for frames."""

    def __init__(self, span: tuple[float, float] | None = None) -> None:
        self.span = span
        self.condition = "text-only"

    async def frames(
        self, *, count: int | None = None, fps: float | None = None, window: tuple[float, float] | None = None
    ) -> list[Frame]:
        raise AssertionError(f"a system that never looks has asked for frames: {count}, {fps}, {window}")


def ask(system: System, item: Item, span: tuple[float, float] | None = None) -> Answer:
    return asyncio.run(system.answer(item.as_asked(), NoFrames(span)))


def make(
    form: AnswerFormat,
    reference: JsonValue = None,
    *,
    name: str = "q1",
    group: str = "v1",
    question: str = "What is seen?",
    options: Sequence[str] = (),
) -> Item:
    return Item(
        id=name,
        group=group,
        question=question,
        answer=form,
        options=tuple(options),
        reference=None if reference is None else Reference(answer=reference),
    )


FORMATS: list[tuple[AnswerFormat, JsonValue, tuple[str, ...]]] = [
    (ChoiceFormat(), "B", ("liver", "spleen", "left kidney")),
    (BinaryFormat(), True, ()),
    (CountFormat(), 3, ()),
    (PercentageFormat(), 40.5, ()),
    (OrderingFormat(labels=("A", "B", "C")), ["B", "C", "A"], ()),
    (ClassesFormat(classes=("clip", "sponge", "specimen bag")), ["clip"], ()),
    (TimestampsFormat(), [65.25], ()),
    (TimestampsFormat(several=True), [30.0, 3665.5], ()),
    (RatingsFormat(dimensions=("accuracy", "safety"), low=1, high=5), {"accuracy": 3.0, "safety": 2.5}, ()),
]


@pytest.mark.parametrize(("form", "value", "options"), [*FORMATS, (FreeTextFormat(), "A clip is placed.", ())])
def test_what_is_said_is_read_back(form: AnswerFormat, value: JsonValue, options: tuple[str, ...]) -> None:
    assert form.parse(format_value(form, value), options) == value


@given(st.integers(0, 99 * 3600 * 1000))
def test_every_time_to_the_millisecond_is_read_back(millis: int) -> None:
    form = TimestampsFormat()
    read = form.parse(format_value(form, [millis / 1000]))
    assert isinstance(read, list)
    assert [float(str(moment)) for moment in read] == pytest.approx([millis / 1000], abs=1e-6)


@given(st.floats(0, 100))
def test_every_percentage_is_read_back(value: float) -> None:
    form = PercentageFormat()
    assert form.parse(format_value(form, value)) == pytest.approx(value, abs=5.1e-5)


@pytest.mark.parametrize("build", [RandomGuess, Majority, LongestOption, ShortestOption, TextSimilarity])
def test_every_system_answers_every_format_in_its_words(build: type[System]) -> None:
    system = build()
    items = [
        make(form, value, name=f"{position}-{group}", group=group, options=options)
        for position, (form, value, options) in enumerate(FORMATS)
        for group in ("v1", "v2")
    ]
    if isinstance(system, NeedsReferences):
        system.learn(items)
    for item in items:
        if isinstance(system, OptionLength) and isinstance(item.answer, OrderingFormat):
            assert not system.supports(item)
            continue
        assert system.supports(item)
        answer = ask(system, item, (5.0, 50.0))
        assert answer.parsed == item.answer.parse(answer.text, item.options)
        assert answer.item_id == item.id
        item.answer.check(answer.parsed, item.options)


def test_random_is_the_same_in_any_order_and_differs_by_seed_and_item() -> None:
    items = [make(ChoiceFormat(), name=f"q{n}", options=("a", "b", "c", "d")) for n in range(40)]
    forwards = {item.id: ask(RandomGuess(seed=1), item).parsed for item in items}
    backwards = {item.id: ask(RandomGuess(seed=1), item).parsed for item in reversed(items)}
    other = {item.id: ask(RandomGuess(seed=2), item).parsed for item in items}
    assert forwards == backwards
    assert forwards != other
    assert set(forwards.values()) == {"A", "B", "C", "D"}
    assert RandomGuess(seed=2).settings == {"seed": 2}


def test_random_draws_uniformly() -> None:
    system = RandomGuess()
    letters = Counter(
        ask(system, make(ChoiceFormat(), name=f"q{n}", options=("a", "b", "c", "d"))).parsed for n in range(1200)
    )
    assert all(240 < letters[letter] < 360 for letter in "ABCD")  # 300 ± 4 standard deviations
    counts = {ask(system, make(CountFormat(), name=f"q{n}")).parsed for n in range(100)}
    assert counts == {0, 1, 2, 3, 4, 5}


def test_random_times_lie_in_the_span() -> None:
    for number in range(50):
        item = make(TimestampsFormat(several=True), name=f"q{number}")
        (low, high) = (600.5, 602.5)
        shown = ask(RandomGuess(), item, (low, high)).parsed
        blind = ask(RandomGuess(), item).parsed
        assert isinstance(shown, list)
        assert isinstance(blind, list)
        assert all(low <= float(str(moment)) <= high for moment in shown)
        assert all(DEFAULT_SPAN_S[0] <= float(str(moment)) <= DEFAULT_SPAN_S[1] for moment in blind)


@pytest.mark.parametrize("build", [RandomGuess, Majority, LongestOption, ShortestOption])
def test_free_text_needs_words(build: type[System]) -> None:
    assert not build().supports(make(FreeTextFormat(), "a clip"))


def test_option_length_counts_characters_and_takes_the_first_of_equals() -> None:
    item = make(ChoiceFormat(), options=("bb", "a", "ccc", "d", "eee"))
    assert ask(ShortestOption(), item).parsed == "B"
    assert ask(LongestOption(), item).parsed == "C"
    assert ask(LongestOption(), item).extra == {}


@pytest.mark.parametrize("build", [LongestOption, ShortestOption])
def test_option_length_skips_orders(build: type[System]) -> None:
    """An order has no options: all that would be left is the row of `random` once more, three times in all."""
    assert not build().supports(make(OrderingFormat(labels=("A", "B", "C")), ["C", "A", "B"]))


def test_option_length_without_options_answers_as_random_and_says_so() -> None:
    item = make(CountFormat(), name="q7")
    answer = ask(ShortestOption(seed=3), item)
    assert answer.parsed == ask(RandomGuess(seed=3), item).parsed
    assert answer.extra == {"fallback": "random"}


def test_majority_takes_the_best_constant_of_each_format() -> None:
    two = ("a", "b")
    four = ("a", "b", "c", "d")
    items = [
        *(make(ChoiceFormat(), key, name=f"c{n}", options=four) for n, key in enumerate("DDAB")),
        *(make(ChoiceFormat(), key, name=f"d{n}", options=two) for n, key in enumerate("BAB")),
        *(make(CountFormat(), number, name=f"n{n}") for n, number in enumerate((3, 0, 3, 1))),
    ]
    system = Majority()
    system.learn(items)
    assert [ask(system, items[position]).parsed for position in (0, 4, 7)] == ["D", "B", 3]
    shuffled = Majority()
    shuffled.learn(items[::-1])
    assert [ask(shuffled, item).parsed for item in items] == [ask(system, item).parsed for item in items]


def test_of_orders_the_constant_is_an_order_of_positions() -> None:
    """Every item names its labels again, so an order of names would only learn the key by heart."""

    def order(labels: str, answer: str, name: str) -> Item:
        return make(OrderingFormat(labels=tuple(labels)), list(answer), name=name)

    items = [order("abc", "cab", "o1"), order("xyz", "zxy", "o2"), order("pqr", "pqr", "o3"), order("uv", "vu", "o4")]
    system = Majority()
    system.learn(items)
    assert [ask(system, item).parsed for item in items] == [list("cab"), list("zxy"), list("rpq"), list("vu")]


def _references(*answers: JsonValue) -> list[Reference]:
    return [Reference(answer=answer) for answer in answers]


def test_best_constants_by_hand() -> None:
    assert best_constant(CountFormat(), _references(2, 10)) == 2  # equal: the smaller
    assert best_constant(BinaryFormat(), _references(True, False, True)) is True
    assert best_constant(TimestampsFormat(), _references([10.0], [20.0], [90.0])) == [20.0]
    several = TimestampsFormat(several=True)
    assert best_constant(several, _references([1.0, 9.0], [5.0], [3.0, 11.0])) == [2.0, 10.0]
    assert best_constant(PercentageFormat(tolerance=5), _references(0.0, 0.0, 40.0, 44.0, 48.0)) == 44.0
    labels = OrderingFormat(labels=("A", "B"))
    assert best_constant(labels, _references(["B", "A"], ["A", "B"], ["B", "A"])) == ["B", "A"]
    ratings = RatingsFormat(dimensions=("accuracy",))
    assert best_constant(ratings, _references({"accuracy": 0.5}, {"accuracy": 1.0}, {"accuracy": 0.0})) == {
        "accuracy": 0.5
    }
    accepted = [Reference(answer=1, accepted=(2,)), Reference(answer=2), Reference(answer=3)]
    assert best_constant(CountFormat(), accepted) == 2  # right for two items, though key of only one


def test_majority_can_not_answer_what_it_was_not_told() -> None:
    item = make(CountFormat(), 3)
    with pytest.raises(ConfigurationError, match="majority has learned no count reference before item 'q1'"):
        ask(Majority(), item)
    told = Majority()
    told.learn([make(BinaryFormat(), True)])
    assert not told.supports(item)
    assert Majority().supports(item)


def test_similarity_takes_the_option_nearest_to_the_question() -> None:
    item = make(
        ChoiceFormat(),
        "A",
        question="Why is the probe rotated over the left kidney?",
        options=("To find the aorta", "To see the left kidney lengthwise", "To add gel"),
    )
    system = TextSimilarity()
    assert isinstance(system, NeedsReferences)
    system.learn([item])
    assert ask(system, item).parsed == "B"


def test_similarity_without_a_common_word_takes_the_first() -> None:
    item = make(ChoiceFormat(), "B", question="Why?", options=("x1", "x2"))
    system = TextSimilarity()
    assert isinstance(system, NeedsReferences)
    system.learn([item])
    assert ask(system, item).parsed == "A"


def test_similarity_borrows_from_another_group_only() -> None:
    items = [
        make(CountFormat(), 1, name="own", group="v1", question="How many clips are on the duct?"),
        make(CountFormat(), 2, name="own2", group="v1", question="How many clips are on the cystic duct?"),
        make(CountFormat(), 4, name="near", group="v2", question="How many clips are on the artery?"),
        make(CountFormat(), 5, name="far", group="v3", question="Sponges: what number?"),
    ]
    system = TextSimilarity()
    assert isinstance(system, NeedsReferences)
    system.learn(items)
    answer = ask(system, items[0])
    assert (answer.parsed, answer.extra) == (4, {"donor": "near"})


def test_similarity_borrows_only_what_the_item_can_say() -> None:
    items = [
        make(ClassesFormat(classes=("clip",)), ["clip"], name="q1", group="v1", question="Which are seen?"),
        make(ClassesFormat(classes=("bag",)), ["bag"], name="q2", group="v2", question="Which are seen?"),
        make(ClassesFormat(classes=("clip", "bag")), ["clip"], name="q3", group="v3", question="Which clips?"),
    ]
    system = TextSimilarity()
    assert isinstance(system, NeedsReferences)
    system.learn(items)
    assert ask(system, items[0]).extra == {"donor": "q3"}


def test_similarity_answers_free_text_within_its_limit() -> None:
    items = [
        make(FreeTextFormat(max_chars=10), "short", name="q1", group="v1", question="What moves?"),
        make(FreeTextFormat(), "The probe slides caudally.", name="q2", group="v2", question="What moves?"),
    ]
    system = TextSimilarity()
    assert isinstance(system, NeedsReferences)
    system.learn(items)
    assert ask(system, items[0]).text == "The probe"
    assert ask(system, items[1]).text == "short"


def test_similarity_with_one_group_declines() -> None:
    items = [make(CountFormat(), number, name=f"q{number}") for number in (1, 2)]
    system = TextSimilarity()
    with pytest.raises(ConfigurationError, match="text-similarity has to learn the questions before item 'q1'"):
        ask(system, items[0])
    assert isinstance(system, NeedsReferences)
    system.learn(items)
    assert not system.supports(items[0])
    with pytest.raises(RefusalError, match="no question of another group lends a count answer to item 'q1'"):
        ask(system, items[0])


def test_random_supports_up_to_26_options() -> None:
    item = make(ChoiceFormat(), options=[f"option {n}" for n in range(26)])
    assert ask(RandomGuess(), item).parsed in option_letters(26)


@pytest.mark.parametrize("name", ["random", "majority", "longest-option", "shortest-option", "text-similarity"])
def test_the_registry_finds_them_under_their_names(name: str) -> None:
    assert build_system(name, seed=3).name == name
