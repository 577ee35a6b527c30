"""Which questions are asked: a seeded choice among candidates, balanced so that the text alone reveals nothing, and
where the right one stands among the options."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from proctor.construction.rules import CandidateQuestion
from proctor.core import NUMBER_WORDS, InputError
from proctor.core.formats import (
    BinaryFormat,
    ChoiceFormat,
    CountFormat,
    PatternFormat,
    PercentageFormat,
    TimestampsFormat,
    option_letters,
)

_TIME = re.compile(r"(\d\d):(\d\d):(\d\d)")
_WORDS = ("none", *NUMBER_WORDS[1:13])
_ENOUGH = 3  # videos from which on an answer that is always the same is known beforehand


def leaks_answer(candidate: CandidateQuestion, *shown: float) -> bool:
    """Whether the text names the answer: the right option and no other, the number, a time within tolerance (also a
    time that every question shows: that of asking, and of a segment its start), the pattern's text, the class."""
    text = candidate.question.casefold()
    if isinstance(candidate.format, ChoiceFormat):
        named = [option for option in candidate.options if option.casefold() in text]
        return named == [candidate.answer]
    if isinstance(candidate.format, TimestampsFormat) and isinstance(candidate.answer, list):
        told = [float(int(h) * 3600 + int(m) * 60 + int(s)) for h, m, s in _TIME.findall(text)]
        told += shown
        answers = [float(str(time)) for time in candidate.answer]
        return any(abs(one - other) <= candidate.format.tolerance for one in told for other in answers)
    if isinstance(candidate.format, CountFormat | PercentageFormat):
        return float(str(candidate.answer)) in _numbers(text)
    if isinstance(candidate.format, PatternFormat):
        return re.search(rf"(?<!\w){re.escape(str(candidate.answer).casefold())}(?!\w)", text) is not None
    if isinstance(candidate.answer, list):
        return any(str(name).casefold() in text for name in candidate.answer)
    return False  # yes or no: `constant_answers`


def _numbers(text: str) -> set[float]:
    plain = _TIME.sub(" ", text)
    digits = {float(number) for number in re.findall(r"\d+(?:\.\d+)?", plain)}
    return digits | {float(number) for number, word in enumerate(_WORDS) if re.search(rf"\b{word}\b", plain)}


def constant_answers(pool: Mapping[str, Sequence[CandidateQuestion]]) -> set[tuple[str, tuple[str, ...]]]:
    """The yes-or-no rules, with the classes that they name, that all of three or more videos answer alike: about
    these classes, or whatever the classes."""
    answers: dict[tuple[str, tuple[str, ...] | None], set[str]] = {}
    videos: dict[tuple[str, tuple[str, ...] | None], set[str]] = {}
    asked = [(v, one) for v, some in pool.items() for one in some if isinstance(one.format, BinaryFormat)]
    for video, candidate in asked:
        for about in (candidate.mentions, None):
            answers.setdefault((candidate.rule, about), set()).add(candidate.key)
            videos.setdefault((candidate.rule, about), set()).add(video)
    known = {key for key, said in answers.items() if len(said) == 1 and len(videos[key]) >= _ENOUGH}
    return {
        (one.rule, one.mentions) for _, one in asked if (one.rule, one.mentions) in known or (one.rule, None) in known
    }


FORMATS = ("choice", "count", "binary", "classes", "timestamps", "ordering")
"""The formats, in the order in which they take turns."""


_Slot = tuple[str, str]  # a kind of candidates, and a part of it


def choose(
    pool: dict[str, list[CandidateQuestion]],
    per_video: int,
    rng: np.random.Generator,
    *,
    turns: Mapping[str, Sequence[str]] = MappingProxyType({"": FORMATS}),
    slot_of: Callable[[CandidateQuestion], tuple[str, str]] = lambda candidate: ("", candidate.format.kind),
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, list[CandidateQuestion]]:
    """`per_video` questions of each video, the formats taking turns; fewer where there are not enough candidates.

    Other `turns` may be named: kinds take turns, and within each of them its parts; `slot_of` says of which kind and
    part a candidate is. Where a part has nothing (more) to ask of a video, its turn goes to the next. Among the
    candidates of a part the one is taken that disturbs these balances least, ties at random: answers within a rule and
    within a format, answers given what the text tells, rules, and within a video how often each class is
    named in questions and offered as an option (a class that is asked about more often would be suspected
    of being there). `progress` is called with turns done and turns in all.
    """
    chosen: dict[str, list[CandidateQuestion]] = {video: [] for video in pool}
    slots = [(kind, part) for kind, parts in turns.items() for part in parts]
    left = {
        video: {slot: [one for one in candidates if slot_of(one) == slot] for slot in slots}
        for video, candidates in pool.items()
    }
    ledger = _Ledger(pool)
    for turn in range(per_video):
        order = _order(turn, turns)
        for video, by_slot in left.items():
            best = _best(by_slot, order, ledger, video, rng)
            if best is not None:
                ledger.add(best, video)
                chosen[video].append(best)
                slot = slot_of(best)
                by_slot[slot] = [one for one in by_slot[slot] if _text(one) != _text(best)]
        if progress is not None:
            progress(turn + 1, per_video)
    return chosen


def _order(turn: int, turns: Mapping[str, Sequence[str]]) -> list[_Slot]:
    """Whose turn it is, and who is asked instead: the kinds in a circle, and after each round of them their parts."""
    kinds, rounds = list(turns), turn // len(turns)
    in_turn = [kinds[(turn + step) % len(kinds)] for step in range(len(kinds))]
    return [
        (kind, turns[kind][(rounds + step) % len(turns[kind])]) for kind in in_turn for step in range(len(turns[kind]))
    ]


def _text(candidate: CandidateQuestion) -> tuple[str, frozenset[str], float | None]:
    """What makes two questions of one video the same; of two choices with one stem only one is asked."""
    return candidate.question, frozenset(getattr(candidate.format, "labels", ())), candidate.end


def _best(
    by_slot: dict[_Slot, list[CandidateQuestion]],
    order: list[_Slot],
    ledger: _Ledger,
    video: str,
    rng: np.random.Generator,
) -> CandidateQuestion | None:
    for slot in order:
        asked = by_slot[slot]
        if asked:
            lots = rng.random(len(asked))
            costs = [ledger.cost(candidate, video) + lot for candidate, lot in zip(asked, lots, strict=True)]
            return asked[int(np.argmin(costs))]
    return None


# By how much it matters that answers are even within a format, a rule, a rule given the text's cue …
_WITHIN = {"format": 4.0, "rule": 6.0, "cue": 3.0}
_RULE, _RULE_IN_VIDEO, _NAMED, _OFFERED, _COMMON = 1.5, 8.0, 2.0, 1.0, 4.0


class _Ledger:
    """What was taken so far, and what one more candidate would cost."""

    def __init__(self, pool: dict[str, list[CandidateQuestion]]) -> None:
        self._used: Counter[tuple[str, ...]] = Counter()
        self._keys: dict[tuple[str, ...], set[str]] = {}
        self._rarest: dict[tuple[str, ...], int] = {}  # by scope; forgotten when an answer is taken in it
        for candidate in (candidate for candidates in pool.values() for candidate in candidates):
            for scope in self._scopes(candidate):
                self._keys.setdefault(scope, set()).add(candidate.key)
        available = Counter(pair for some in pool.values() for pair in {(one.rule, one.key) for one in some})
        self._common = {pair: videos / len(pool) for pair, videos in available.items()}

    @staticmethod
    def _scopes(candidate: CandidateQuestion) -> list[tuple[str, ...]]:
        """Within what answers are to be even."""
        return [("format", candidate.format.kind), ("rule", candidate.rule), ("cue", candidate.rule, candidate.cue)]

    @staticmethod
    def _uses(candidate: CandidateQuestion, video: str) -> dict[tuple[str, ...], float]:
        """What else is to be used evenly, with its weight."""
        uses = {("rule", candidate.rule): _RULE, ("rule in video", video, candidate.rule): _RULE_IN_VIDEO}
        uses |= {("named", video, name): _NAMED for name in candidate.mentions}
        return uses | {("offered", video, name): _OFFERED for name in candidate.choices}

    def add(self, candidate: CandidateQuestion, video: str) -> None:
        for scope in self._scopes(candidate):
            self._used[*scope, candidate.key] += 1
            self._rarest.pop(scope, None)
        self._used.update(self._uses(candidate, video).keys())

    def cost(self, candidate: CandidateQuestion, video: str) -> float:
        """By how much its answer is ahead of the rarest one in each scope, and how used up the rest is.

        An answer that few videos can give comes first where it can be had.
        """
        ahead = sum(
            _WITHIN[scope[0]] * (self._used[*scope, candidate.key] - self._least(scope))
            for scope in self._scopes(candidate)
        )
        common = _COMMON * self._common[candidate.rule, candidate.key]
        return ahead + common + sum(weight * self._used[use] for use, weight in self._uses(candidate, video).items())

    def _least(self, scope: tuple[str, ...]) -> int:
        """How often the rarest answer within a scope was taken."""
        if scope not in self._rarest:
            self._rarest[scope] = min(self._used[*scope, key] for key in self._keys[scope])
        return self._rarest[scope]


def deal_options(
    options: Sequence[Sequence[str]], right: Sequence[int], rng: np.random.Generator
) -> list[tuple[list[str], str]]:
    """Reshuffles the options of many choices: per choice the options in their new order and the key's letter.

    `right[i]` is the index of the right one among `options[i]`. Among choices of the same size every letter
    is the key equally often (up to one), which of them where is at random, and so are the places of the others.
    """
    decks: dict[int, list[int]] = {}
    for size in sorted({len(some) for some in options}):
        number = sum(len(some) == size for some in options)
        first = int(rng.integers(size))
        deck = [(first + place) % size for place in range(number)]
        decks[size] = [deck[int(index)] for index in rng.permutation(number)]
    dealt = []
    for some, key in zip(options, right, strict=True):
        place = decks[len(some)].pop()
        others = [option for index, option in enumerate(some) if index != key]
        mixed = [others[int(index)] for index in rng.permutation(len(others))]
        mixed.insert(place, some[key])
        dealt.append((mixed, option_letters(len(some))[place]))
    return dealt


def check_bounds(bounds: Iterable[tuple[str, float, float, float]]) -> None:
    """Raises `InputError` for the first of some numbers (name, value, least, most) that is out of its range."""
    for name, value, low, high in bounds:
        if not low <= value <= high:
            raise InputError(name, found=f"{value:g}", expected=f"{low:g} to {high:g}")
