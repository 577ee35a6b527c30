"""Select questions among candidates by seed, balanced so that the text alone reveals nothing, and order their options."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

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
from proctor.tracks.rules import CandidateQuestion

_TIME = re.compile(r"(\d\d):(\d\d):(\d\d)")
_WORDS = ("none", *NUMBER_WORDS[1:13])
_ENOUGH = 3  # videos after which an answer that never varies can be guessed


def leaks_answer(candidate: CandidateQuestion, *shown: float) -> bool:
    """Whether the text contains the answer: the right option alone, the number, a time within tolerance, the pattern's
    text, or the class. `shown` are times that every question shows (the time of asking, the start of a segment)."""
    text = candidate.question.casefold()
    if isinstance(candidate.format, ChoiceFormat):
        named = [option for option in candidate.options if option.casefold() in text]
        return named == [candidate.answer]
    if isinstance(candidate.format, TimestampsFormat) and isinstance(candidate.answer, list):
        named_times = [float(int(h) * 3600 + int(m) * 60 + int(s)) for h, m, s in _TIME.findall(text)]
        answers = [float(str(time)) for time in candidate.answer]
        tolerance = candidate.format.tolerance
        return any(abs(one - other) <= tolerance for one in (*named_times, *shown) for other in answers)
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
    """The yes-or-no rules, with the classes that they name, whose answer is the same in three or more videos: for these
    classes, or for all classes."""
    answers: dict[tuple[str, tuple[str, ...] | None], set[str]] = {}
    videos: dict[tuple[str, tuple[str, ...] | None], set[str]] = {}
    binary = [
        (v, question) for v, some in pool.items() for question in some if isinstance(question.format, BinaryFormat)
    ]
    for video, candidate in binary:
        for about in (candidate.mentions, None):
            answers.setdefault((candidate.rule, about), set()).add(candidate.key)
            videos.setdefault((candidate.rule, about), set()).add(video)
    known = {key for key, keys in answers.items() if len(keys) == 1 and len(videos[key]) >= _ENOUGH}
    return {
        (one.rule, one.mentions) for _, one in binary if (one.rule, one.mentions) in known or (one.rule, None) in known
    }


FORMATS = ("choice", "count", "binary", "classes", "timestamps", "ordering")
"""The formats, in order of their turns."""


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
    """Selects `per_video` questions for each video, or fewer if there are not enough candidates.

    Formats take turns; with other `turns`, kinds do, and within each kind its parts (`slot_of` gives the kind and part
    of a candidate). A part without candidates passes its turn on. Of a part's candidates the one that keeps these
    counts most even is taken, ties at random: answers within a rule, within a format and given the text's cue, rules,
    and within a video the classes named in questions and offered as options (a class that is named more often would
    seem more likely to be there). `progress` is called with turns done and turns in all.
    """
    chosen: dict[str, list[CandidateQuestion]] = {video: [] for video in pool}
    slots = [(kind, part) for kind, parts in turns.items() for part in parts]
    left = {
        video: {slot: [candidate for candidate in candidates if slot_of(candidate) == slot] for slot in slots}
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
                by_slot[slot] = [question for question in by_slot[slot] if _text(question) != _text(best)]
        if progress is not None:
            progress(turn + 1, per_video)
    return chosen


def _order(turn: int, turns: Mapping[str, Sequence[str]]) -> list[_Slot]:
    """The order of slots in a turn: kinds rotate, and after each round their parts do."""
    kinds, rounds = list(turns), turn // len(turns)
    in_turn = [kinds[(turn + step) % len(kinds)] for step in range(len(kinds))]
    return [
        (kind, turns[kind][(rounds + step) % len(turns[kind])]) for kind in in_turn for step in range(len(turns[kind]))
    ]


def _text(candidate: CandidateQuestion) -> tuple[str, frozenset[str], float | None]:
    """Two questions of a video with the same value are duplicates, as are two choices with one stem."""
    return candidate.question, frozenset(getattr(candidate.format, "labels", ())), candidate.end


def _best(
    by_slot: dict[_Slot, list[CandidateQuestion]],
    order: list[_Slot],
    ledger: _Ledger,
    video: str,
    rng: np.random.Generator,
) -> CandidateQuestion | None:
    for slot in order:
        candidates = by_slot[slot]
        if candidates:
            noise = rng.random(len(candidates))
            costs = [ledger.cost(candidate, video) + tie for candidate, tie in zip(candidates, noise, strict=True)]
            return candidates[int(np.argmin(costs))]
    return None


# Weights of even answers within a format, a rule, a rule given the text's cue, and of other even counts.
_WITHIN = {"format": 4.0, "rule": 6.0, "cue": 3.0}
_RULE, _RULE_IN_VIDEO, _NAMED, _OFFERED, _COMMON = 1.5, 8.0, 2.0, 1.0, 4.0


class _Ledger:
    """Counts of what was selected so far, and the cost of one more candidate."""

    def __init__(self, pool: dict[str, list[CandidateQuestion]]) -> None:
        self._used: Counter[tuple[str, ...]] = Counter()
        self._keys: dict[tuple[str, ...], set[str]] = {}
        self._rarest: dict[tuple[str, ...], int] = {}  # a cache by scope
        for candidate in (candidate for candidates in pool.values() for candidate in candidates):
            for scope in self._scopes(candidate):
                self._keys.setdefault(scope, set()).add(candidate.key)
        available = Counter(
            pair for some in pool.values() for pair in {(question.rule, question.key) for question in some}
        )
        self._common = {pair: videos / len(pool) for pair, videos in available.items()}

    @staticmethod
    def _scopes(candidate: CandidateQuestion) -> list[tuple[str, ...]]:
        """The scopes within which answers should be even."""
        return [("format", candidate.format.kind), ("rule", candidate.rule), ("cue", candidate.rule, candidate.cue)]

    @staticmethod
    def _uses(candidate: CandidateQuestion, video: str) -> dict[tuple[str, ...], float]:
        """What else should be used evenly, with its weight."""
        uses = {("rule", candidate.rule): _RULE, ("rule in video", video, candidate.rule): _RULE_IN_VIDEO}
        uses |= {("named", video, name): _NAMED for name in candidate.mentions}
        return uses | {("offered", video, name): _OFFERED for name in candidate.choices}

    def add(self, candidate: CandidateQuestion, video: str) -> None:
        for scope in self._scopes(candidate):
            self._used[*scope, candidate.key] += 1
            self._rarest.pop(scope, None)
        self._used.update(self._uses(candidate, video).keys())

    def cost(self, candidate: CandidateQuestion, video: str) -> float:
        """How far its answer is ahead of the rarest one in each scope, plus the weighted counts of the rest. Answers
        that few videos can give cost less."""
        ahead = sum(
            _WITHIN[scope[0]] * (self._used[*scope, candidate.key] - self._least(scope))
            for scope in self._scopes(candidate)
        )
        common = _COMMON * self._common[candidate.rule, candidate.key]
        return ahead + common + sum(weight * self._used[use] for use, weight in self._uses(candidate, video).items())

    def _least(self, scope: tuple[str, ...]) -> int:
        if scope not in self._rarest:
            self._rarest[scope] = min(self._used[*scope, key] for key in self._keys[scope])
        return self._rarest[scope]


def deal_options(
    options: Sequence[Sequence[str]], right: Sequence[int], rng: np.random.Generator
) -> list[tuple[list[str], str]]:
    """Shuffles the options of many choices; returns for each the options in their new order and the right letter.

    `right[i]` is the index of the right one among `options[i]`. Among choices of the same size every letter is right
    equally often (up to one); everything else is random.
    """
    decks: dict[int, list[int]] = {}
    for size in sorted({len(some) for some in options}):
        number = sum(len(some) == size for some in options)
        first = int(rng.integers(size))
        deck = [(first + row) % size for row in range(number)]
        decks[size] = [deck[int(index)] for index in rng.permutation(number)]
    dealt = []
    for some, key in zip(options, right, strict=True):
        row = decks[len(some)].pop()
        others = [option for index, option in enumerate(some) if index != key]
        mixed = [others[int(index)] for index in rng.permutation(len(others))]
        mixed.insert(row, some[key])
        dealt.append((mixed, option_letters(len(some))[row]))
    return dealt


def check_bounds(bounds: Iterable[tuple[str, float, float, float]]) -> None:
    """Raises `InputError` for the first (name, value, low, high) whose value is out of range."""
    for name, value, low, high in bounds:
        if not low <= value <= high:
            raise InputError(name, found=f"{value:g}", expected=f"{low:g} to {high:g}")
