"""The steps of regular expressions, counted instead of timed: a matcher that backtracks as `re` does, on the tree that
`re` parses; and texts on which a pattern is slow, if it is slow on any.

Steps are attempts at a part of a pattern, and characters that a repeat of one compares. `re` leaves some attempts out, so
it never needs more steps, up to a factor.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from re import _compiler, _constants, _parser  # type: ignore[attr-defined]
from typing import Any

Then = Callable[[int], int]
"""What comes after a part: from a position in the text to the end of the whole match, or −1."""
Part = Callable[[int, Then], int]

_ONE_CHARACTER = {_constants.LITERAL, _constants.NOT_LITERAL, _constants.ANY, _constants.IN}
_REPEATS = {_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT}
_ALPHABET = " \n\tabA1-.,:;!?\"'`><=*|/_#~(){}[]\\不。"


@dataclass
class Matcher:
    """Matches one pattern and counts steps. With `most`, no bounded repeat allows more: what is slow without bound stays
    so, and what has a bound is fast on short texts already. Raises `OverflowError` beyond `limit` steps."""

    pattern: re.Pattern[str]
    most: int | None = None
    limit: int = 300_000
    steps: int = 0
    _text: str = ""
    _groups: dict[int, tuple[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.tree = _parser.parse(self.pattern.pattern, self.pattern.flags)
        self._flags = self.pattern.flags | self.tree.state.flags
        self._whole = self._sequence(self.tree, self._flags)

    def match(self, text: str, *, whole: bool = False) -> int:
        """Where the match at the start of a text ends, or −1."""
        return self._at(text, 0, whole)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """The spans of all matches, as `finditer` has them."""
        found: list[tuple[int, int]] = []
        row = 0
        while row <= len(text):
            end = self._at(text, row, whole=False, empty=not found or found[-1] != (row, row))
            if end >= 0:
                found.append((row, end))
            row = end if end >= 0 else row + 1
        return found

    def _at(self, text: str, row: int, whole: bool, *, empty: bool = True) -> int:
        self._text, self._groups = text, {}

        def ended(end: int) -> int:
            return end if (not whole or end == len(text)) and (empty or end > row) else -1

        return self._whole(row, ended)

    def _step(self, number: int = 1) -> None:
        self.steps += number
        if self.steps > self.limit:
            raise OverflowError(f"more than {self.limit} steps")

    def _sequence(self, nodes: Any, flags: int) -> Part:
        parts = [self._part(node, flags) for node in nodes]

        def run(row: int, then: Then, first: int = 0) -> int:
            if first == len(parts):
                return then(row)
            return parts[first](row, lambda end: run(end, then, first + 1))

        return parts[0] if len(parts) == 1 else run

    def _part(self, node: Any, flags: int) -> Part:
        kind, value = node
        if kind in _ONE_CHARACTER:
            return self._character(node, flags)
        if kind in _REPEATS:
            return self._repeat(kind, value, flags)
        if kind is _constants.AT:
            known = self._compiled(node, flags)
            return lambda location, then: self._counted(then, location) if known.match(self._text, location) else -1
        if kind is _constants.BRANCH:
            return self._branch([self._sequence(one, flags) for one in value[1]])
        if kind is _constants.SUBPATTERN:
            number, added, removed, inner = value
            return self._group(number, self._sequence(inner, (flags | added) & ~removed))
        if kind in {_constants.ASSERT, _constants.ASSERT_NOT}:
            return self._look(value[0], value[1], flags, wanted=kind is _constants.ASSERT)
        if kind is _constants.ATOMIC_GROUP:
            return self._atomic(self._sequence(value, flags))
        if kind is _constants.GROUPREF:
            return lambda location, then: self._same_as(value, location, then)
        raise NotImplementedError(str(kind))

    def _compiled(self, node: Any, flags: int) -> re.Pattern[str]:
        state = _parser.State()
        state.flags = flags
        found: re.Pattern[str] = _compiler.compile(_parser.SubPattern(state, [node]), flags)
        return found

    def _tests(self, node: Any, flags: int) -> Callable[[str], bool]:
        compiled, known = self._compiled(node, flags), dict[str, bool]()

        def test(char: str) -> bool:
            if char not in known:
                known[char] = compiled.match(char) is not None
            return known[char]

        return test

    def _counted(self, then: Then, row: int) -> int:
        self._step()
        return then(row)

    def _character(self, node: Any, flags: int) -> Part:
        test = self._tests(node, flags)

        def run(row: int, then: Then) -> int:
            self._step()
            return then(row + 1) if row < len(self._text) and test(self._text[row]) else -1

        return run

    def _branch(self, ways: Sequence[Part]) -> Part:
        def run(row: int, then: Then) -> int:
            for way in ways:
                self._step()
                if (end := way(row, then)) >= 0:
                    return end
            return -1

        return run

    def _group(self, number: int | None, inner: Part) -> Part:
        if number is None:
            return inner

        def run(row: int, then: Then) -> int:
            before = self._groups.get(number)

            def closed(end: int) -> int:
                self._groups[number] = (row, end)
                return then(end)

            if (end := inner(row, closed)) < 0:
                self._groups.pop(number, None)
                if before is not None:
                    self._groups[number] = before
            return end

        return run

    def _same_as(self, number: int, row: int, then: Then) -> int:
        self._step()
        start, end = self._groups.get(number, (0, -1))
        said = self._text[start:end]
        alike = self._text[row : row + len(said)].casefold() == said.casefold()
        return then(row + len(said)) if end >= start and alike else -1

    def _look(self, direction: int, nodes: Any, flags: int, *, wanted: bool) -> Part:
        inner, width = self._sequence(nodes, flags), nodes.getwidth()[0] if direction < 0 else 0

        def run(row: int, then: Then) -> int:
            self._step()
            found = row >= width and inner(row - width, lambda end: end) >= 0
            return then(row) if found is wanted else -1

        return run

    def _atomic(self, inner: Part) -> Part:
        def run(row: int, then: Then) -> int:
            end = inner(row, lambda end: end)
            return then(end) if end >= 0 else -1

        return run

    def _repeat(self, kind: Any, value: Any, flags: int) -> Part:
        least, most, nodes = value
        if most is _constants.MAXREPEAT:
            most = 10**9
        elif self.most is not None:
            most = max(least, min(most, self.most))
        if len(nodes) == 1 and nodes[0][0] in _ONE_CHARACTER:
            part = self._repeat_of_one(self._tests(nodes[0], flags), least, most, lazy=kind is _constants.MIN_REPEAT)
        else:
            part = self._repeat_of_many(self._sequence(nodes, flags), least, most, lazy=kind is _constants.MIN_REPEAT)
        return self._atomic(part) if kind is _constants.POSSESSIVE_REPEAT else part

    def _repeat_of_one(self, test: Callable[[str], bool], least: int, most: int, *, lazy: bool) -> Part:
        def run(row: int, then: Then) -> int:
            text, reach = self._text, 0
            while reach < most and row + reach < len(text) and test(text[row + reach]):
                reach += 1
                self._step()
            for count in range(least, reach + 1) if lazy else range(reach, least - 1, -1):
                self._step()
                if (end := then(row + count)) >= 0:
                    return end
            return -1

        return run

    def _repeat_of_many(self, inner: Part, least: int, most: int, *, lazy: bool) -> Part:
        def run(row: int, then: Then, count: int = 0) -> int:
            self._step()

            def again() -> int:
                if count >= most:
                    return -1
                return inner(row, lambda end: run(end, then, count + 1) if end > row or count < least else -1)

            if count < least:
                return again()
            if lazy:
                return end if (end := then(row)) >= 0 else again()
            return end if (end := again()) >= 0 else then(row)

        return run


def has_unbounded_repeat(nodes: Any) -> bool:
    """Whether a part of a pattern may go on without end. Without one a pattern takes linear time."""
    return any(True for _ in _unbounded(nodes, ""))


def pumped(pattern: re.Pattern[str], size: int, times: int = 1) -> Iterator[str]:
    """Texts of about this size, or `times` as long, that make a pattern repeat: what its unbounded repeats take, alone,
    after what comes before them, and both again and again; each followed by a character that fits nothing."""
    tree = _parser.parse(pattern.pattern, pattern.flags)
    seen = set[tuple[str, str]]()
    for nodes, before in _unbounded(tree, ""):
        test = _compiler.compile(nodes, pattern.flags | tree.state.flags)
        for one in {_example(nodes), *(char for char in _ALPHABET if test.fullmatch(char))} - {""}:
            seen.add(("", one))
            seen.add((before, one))
    for before, one in sorted(seen):
        parts = ((before, one), ("", before + one), *([("", before)] if before else []))
        for first, again in parts:
            yield first + again * (times * max(2, size // len(again))) + "\0"


def _unbounded(nodes: Any, before: str) -> Iterator[tuple[Any, str]]:
    """What each unbounded repeat repeats, and an example of what comes before it."""
    for kind, value in nodes:
        inner: list[Any] = []
        if kind in _REPEATS:
            inner = [value[2]]
            if value[1] is _constants.MAXREPEAT:
                yield value[2], before
        elif kind is _constants.BRANCH:
            inner = value[1]
        elif kind is _constants.SUBPATTERN:
            inner = [value[3]]
        elif kind in {_constants.ASSERT, _constants.ASSERT_NOT}:
            inner = [value[1]]
        elif kind is _constants.ATOMIC_GROUP:
            inner = [value]
        for one in inner:
            yield from _unbounded(one, before)
        before += _example([(kind, value)])


def _example(nodes: Any) -> str:
    """A short text that a part of a pattern takes, but for assertions."""
    said = ""
    for kind, value in nodes:
        if kind is _constants.LITERAL:
            said += chr(value)
        elif kind in {_constants.NOT_LITERAL, _constants.ANY}:
            said += "a"
        elif kind is _constants.IN:
            said += _member((kind, value))
        elif kind is _constants.BRANCH:
            said += _example(value[1][0])
        elif kind is _constants.SUBPATTERN:
            said += _example(value[3])
        elif kind in _REPEATS:
            said += _example(value[2]) * value[0]
        elif kind is _constants.ATOMIC_GROUP:
            said += _example(value)
    return said


def _member(node: Any) -> str:
    """A character of a class."""
    test = _compiler.compile(_parser.SubPattern(_parser.State(), [node]), 0)
    own = [chr(value if kind is _constants.LITERAL else value[0]) for kind, value in node[1] if kind in _STATED]
    return next((char for char in [*_ALPHABET, *own] if test.match(char)), "a")


_STATED = {_constants.LITERAL, _constants.RANGE}
