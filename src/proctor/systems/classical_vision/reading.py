"""From a question's wording and a story to the answer: one pattern and one function for each kind of question."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from pydantic import JsonValue

from proctor.core import Item
from proctor.core.formats import OrderingFormat, option_letters
from proctor.systems.classical_vision.detection import LOOKS
from proctor.systems.classical_vision.tracking import Life, Story

__all__ = ["answer_from", "understood"]

Asked = re.Match[str]
Handler = Callable[[Item, Story, Asked], JsonValue]

_X = r"(?:an?|the) (?P<x>[a-z ]+?)"
_TIME = r"(?P<time>\d\d:\d\d:\d\d)"


def understood(item: Item) -> bool:
    """Whether the question's wording is one that can be answered from the pixels."""
    return _handler(item) is not None


def answer_from(item: Item, story: Story) -> JsonValue:
    """The answer in the item's canonical form; None where the story does not settle it."""
    found = _handler(item)
    if found is None:
        return None
    handler, asked = found
    return handler(item, story, asked)


def _handler(item: Item) -> tuple[Handler, Asked] | None:
    text = " ".join(item.question.casefold().split())
    for pattern, handler in _PATTERNS:
        asked = pattern.match(text)
        if asked and not any(
            _named(said) is None for name, said in asked.groupdict().items() if name != "time"
        ):
            return handler, asked
    return None


def _named(text: str) -> str | None:
    """The class that a text names, the longest name first."""
    return next((name for name in sorted(LOOKS, key=len, reverse=True) if name in text.casefold()), None)


def _class(asked: Asked, group: str = "x") -> str:
    name = _named(asked[group])
    if name is None:
        raise ValueError(f"no class in {asked[group]!r}")
    return name


def _seconds(asked: Asked) -> float:
    hours, minutes, seconds = asked["time"].split(":")
    return 3600.0 * int(hours) + 60 * int(minutes) + int(seconds)


def _letter(item: Item, right: str | None) -> JsonValue:
    """The letter of the option that names a class (or is that text)."""
    if right is None:
        return None
    letters = option_letters(len(item.options))
    for letter, option in zip(letters, item.options, strict=True):
        if right in (_named(option), option.casefold()):
            return letter
    return None


def _offered(item: Item) -> list[str]:
    return [name for option in item.options if (name := _named(option)) is not None]


def _classes(lives: Iterable[Life]) -> JsonValue:
    return [str(name) for name in sorted({life.class_name for life in lives})]


def _in_order(item: Item, lives: list[Life]) -> JsonValue:
    """The labels in the order in which they occur first; those that were missed come last."""
    if not isinstance(item.answer, OrderingFormat):
        return None
    names = [life.class_name for life in lives]
    labels = sorted(
        item.answer.labels, key=lambda label: names.index(label) if label in names else len(names)
    )
    return [str(label) for label in labels]


def _first_of(item: Item, lives: list[Life]) -> JsonValue:
    offered = _offered(item)
    return _letter(item, next((life.class_name for life in lives if life.class_name in offered), None))


def _times(moments: list[float]) -> JsonValue:
    return [round(moment, 1) for moment in moments] if moments else None


def _out_time(life: Life, story: Story) -> float:
    return min(life.last + story.step / 2, story.end)


def _before(item: Item, story: Story, asked: Asked) -> JsonValue:
    del item
    x, y = story.of(_class(asked)), story.of(_class(asked, "y"))
    if not x or not y:
        return bool(x)
    return x[0].first < y[0].first


def _where(item: Item, story: Story, asked: Asked) -> JsonValue:
    shown = [region for life, region in story.in_view(_seconds(asked)) if life.class_name == _class(asked)]
    if not shown:
        return None
    side = "left" if shown[0].x < 0.5 else "right"
    return _letter(item, f"{'upper' if shown[0].y < 0.5 else 'lower'} {side}")


def _most(item: Item, marks: dict[str, float]) -> JsonValue:
    """The option whose class has the highest mark, if one has."""
    offered = {name: marks.get(name, 0.0) for name in _offered(item)}
    best = [name for name, mark in offered.items() if mark == max(offered.values()) and mark > 0]
    return _letter(item, best[0]) if len(best) == 1 else None


def _never(item: Item, story: Story, asked: Asked) -> JsonValue:
    del asked
    return _most(item, {name: float(not story.of(name)) for name in LOOKS})


def _several(item: Item, story: Story, asked: Asked) -> JsonValue:
    del asked
    return _most(item, {name: float(len(story.of(name)) > 1) for name in LOOKS})


def _which_hidden(item: Item, story: Story, asked: Asked) -> JsonValue:
    del asked
    return _most(item, {name: float(any(life.was_hidden for life in story.of(name))) for name in LOOKS})


def _which_moved(item: Item, story: Story, asked: Asked) -> JsonValue:
    del asked
    return _most(item, {name: float(any(life.was_moved for life in story.of(name))) for name in LOOKS})


def _patterns(*entries: tuple[str, Handler]) -> tuple[tuple[re.Pattern[str], Handler], ...]:
    return tuple((re.compile(pattern), handler) for pattern, handler in entries)


_PATTERNS = _patterns(
    (rf"does {_X} come into view before the first (?P<y>[a-z ]+?) does", _before),
    (rf"does {_X} come into view", lambda _, story, asked: bool(story.of(_class(asked)))),
    (
        rf"is {_X} in view at {_TIME}",
        lambda _, story, asked: any(
            life.class_name == _class(asked) for life, _ in story.in_view(_seconds(asked))
        ),
    ),
    (rf"is {_X} carried out of view", lambda _, story, asked: bool(story.gone(_class(asked)))),
    (
        rf"is {_X} covered completely for a while",
        lambda _, story, asked: any(life.was_hidden for life in story.of(_class(asked))),
    ),
    (
        rf"is {_X} picked up and put down",
        lambda _, story, asked: any(life.was_moved for life in story.of(_class(asked))),
    ),
    (
        rf"which kinds of foreign object are in view at {_TIME}",
        lambda _, story, asked: _classes(life for life, _ in story.in_view(_seconds(asked))),
    ),
    (r"which kinds of foreign object are carried out", lambda _, story, __: _classes(story.gone())),
    (r"which kinds of foreign object come into view", lambda _, story, __: _classes(story.lives)),
    (rf"how many times is {_X} brought into view", lambda _, story, asked: len(story.of(_class(asked)))),
    (
        rf"how many foreign objects are in view at {_TIME}",
        lambda _, story, asked: len(story.in_view(_seconds(asked))),
    ),
    (r"how many foreign objects are carried out", lambda _, story, __: len(story.gone())),
    (
        rf"when does {_X} first come into view",
        lambda _, story, asked: _times([life.first for life in story.of(_class(asked))][:1]),
    ),
    (
        rf"at which times is {_X} brought into view",
        lambda _, story, asked: _times([life.first for life in story.of(_class(asked))]),
    ),
    (
        rf"when is {_X} carried out of view",
        lambda _, story, asked: _times([_out_time(life, story) for life in story.gone(_class(asked))][:1]),
    ),
    (r"in which order do these .* come into view", lambda item, story, _: _in_order(item, list(story.lives))),
    (
        r"in which order are these .* carried out of view",
        lambda item, story, _: _in_order(item, story.gone()),
    ),
    (
        r"which of these objects comes into view first",
        lambda item, story, _: _first_of(item, list(story.lives)),
    ),
    (
        r"which of these objects is carried out of view first",
        lambda item, story, _: _first_of(item, story.gone()),
    ),
    (r"which of these objects never comes into view", _never),
    (r"which of these objects is brought into view more than once", _several),
    (r"which of these objects is covered completely", _which_hidden),
    (r"which of these objects is picked up and put down", _which_moved),
    (rf"in which part of the picture is {_X} at {_TIME}", _where),
)
