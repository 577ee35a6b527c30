"""Answer formats for levels of a scale, and for preferences between two."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, Self

from pydantic import Field, JsonValue, model_validator

from proctor.core.errors import ParseError
from proctor.core.formats.base import StrictFormat, alone, cell_quantity, plain_words
from proctor.core.formats.declarations import first_sentence
from proctor.core.formats.numbers import read_quantity
from proctor.core.formats.reply import Statement, read_reply
from proctor.core.text import deferred

_OF = deferred(r"(?<=\d)\s?(?:/|\bout of\b|\bvon\b|\bsur\b|\bof\b)\s?(?P<most>\d{1,3})(?!\d|\.\d)", re.IGNORECASE)
_SCALE = deferred(
    r"\b(?:on|using) (?:a|the) (?:scale|likert scale)(?: (?:of|from))? \d{1,3}\s?(?:to|-)\s?\d{1,3}\b,?"
    r"|\(\d{1,3}\s?(?:to|-)\s?\d{1,3}\)|(?<=\d)\s?(?:stars?|points?|分)\b|(?<=\d)分",
    re.IGNORECASE,
)
_ALONE = deferred(r"[\s*\"'(\[]{0,4}\d{1,3}(?!\d|[.,]\d|\s?(?:/|out of|of|von|sur|-|to|or)\s?\d)", re.IGNORECASE)
_LEAD = deferred(
    r"[\s*\"'(\[]{0,4}(?:(?:i (?:would )?(?:rate|score|give)(?: (?:it|this|that))?|rating|score|level|grade|a|an|it is"
    r"|it's|is|the|as|of|rated|rate|it)\b[\s:=,]{0,3}){0,6}[\s*\"'(\[]{0,4}",
    re.IGNORECASE,
)
_KEYS = ("rating", "score", "level", "grade", "value", "stars")


class ScaleFormat(StrictFormat):
    """A level of a scale: an integer from `low` to `high`, right within `tolerance` levels. `labels` are optional names
    of all levels in ascending order, which replies may use. Strict: only the number or the name.

    >>> ScaleFormat(labels=("poor", "fair", "good", "very good", "excellent")).parse("I would rate it 4/5.")
    4
    >>> ScaleFormat(labels=("poor", "fair", "good", "very good", "excellent")).parse("Answer: very good")
    4
    """

    kind: Literal["scale"] = "scale"
    low: int = Field(default=1, ge=-100, le=100)
    high: int = Field(default=5, ge=-100, le=100)
    labels: tuple[str, ...] = ()
    tolerance: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _levels(self) -> Self:
        if self.low >= self.high:
            raise ValueError(f"a scale from {self.low} to {self.high}: expected a higher level than the lowest")
        count = self.high - self.low + 1
        names = {plain_words(label) for label in self.labels}
        if self.labels and (len(self.labels) != count or len(names) != count or "" in names):
            raise ValueError(f"{len(self.labels)} labels: expected a name for each of {count} levels, or none")
        return self

    def _expected(self) -> str:
        return f"one level from {self.low} to {self.high}"

    def instruction(self, options: Sequence[str] = ()) -> str:
        del options
        named = "; ".join(f"{self.low + position}: {label}" for position, label in enumerate(self.labels))
        levels = f"a whole number from {self.low} to {self.high}{f' ({named})' if named else ''}"
        if self.strict:
            return f"Reply with {levels} and nothing else."
        return f'Start your reply with "Answer: N", where N is {levels}.'

    def parse(self, text: str, options: Sequence[str] = ()) -> JsonValue:
        if self.strict:
            return self.from_cell(alone(text), options)
        return read_reply(text, self._read, expected=self._expected(), keys=_KEYS)

    def _read(self, statement: Statement) -> JsonValue:
        value, text = statement.value, statement.text
        if isinstance(value, int | float) and not isinstance(value, bool):
            return self._level(float(str(value)), text)
        if isinstance(value, dict) or (isinstance(value, list) and len(value) != 1):
            return None
        of = None if statement.sure and _ALONE.match(text) else _OF.search(text)
        if of and int(of["most"]) != self.high:
            raise ParseError(expected=self._expected(), found=text)
        plain = _SCALE.sub(" ", _OF.sub(" ", text))
        minus = re.match(r"[^\d\n]{0,30}(?<![\d\w])-(?P<n>\d{1,3})(?![\d.,]|\s?-)", plain)
        if minus and self.low < 0:
            return self._level(-float(minus["n"]), text)
        named = self._named(statement, plain)
        number = read_quantity(Statement(plain, statement.sure), self._expected(), share=False)
        if named is not None and (number is None or number == named):
            return named
        return None if number is None else self._level(number, text)

    def _named(self, statement: Statement, text: str) -> int | None:
        """The level whose name begins a statement or is all of it."""
        start = plain_words(_LEAD.sub("", first_sentence(text), count=1)).strip(" .!*\"'()[]")
        for position, label in sorted(enumerate(self.labels), key=lambda one: -len(one[1])):
            name = plain_words(label)
            ends = r"(?!\w|-|\s(?:to|or|and)\b)" if statement.sure else r"\s?[:;,]"
            if start == name or re.match(re.escape(name) + ends, start):
                return self.low + position
        return None

    def _level(self, number: float, text: str) -> int:
        if number != number // 1 or not self.low <= number <= self.high:
            raise ParseError(expected=self._expected(), found=text)
        return int(number)

    def check(self, value: JsonValue, options: Sequence[str] = ()) -> JsonValue:
        del options
        if isinstance(value, int | float) and not isinstance(value, bool) and self.low <= value <= self.high:
            return self._level(float(value), str(value))
        raise ParseError(expected=self._expected(), found=str(value))

    def from_cell(self, text: str, options: Sequence[str] = ()) -> JsonValue:
        """Parse the number or the name of the level."""
        names = {plain_words(label): self.low + position for position, label in enumerate(self.labels)}
        known = names.get(plain_words(text))
        return known if known is not None else self.check(cell_quantity(text, self._expected()), options)

    def match(self, reference: JsonValue, prediction: JsonValue) -> bool:
        error = self.distance(reference, prediction)
        return error is not None and error <= self.tolerance

    def distance(self, reference: JsonValue, prediction: JsonValue) -> float | None:
        """The number of levels between the two."""
        if isinstance(reference, int | float) and isinstance(prediction, int | float):
            return abs(float(reference) - float(prediction))
        return None

    def chance(self, accepted: Sequence[JsonValue], options: Sequence[str] = ()) -> float | None:
        """The number of levels that count as right divided by the number of levels."""
        del options
        levels = range(self.low, self.high + 1)
        right = [level for level in levels if any(self.match(key, level) for key in accepted)]
        return len(right) / len(levels) if accepted else None


_NAME = (
    r"(?i:(?:the\s)?(?:response|answer|assistant|option|model|video|clip|image|picture|system|candidate|version|choice"
    r"|performance|one|回答|选项)\s?)?"
)
_OPEN = r"[\s*_`(\[{\"'<#:]{0,6}"
_SURE = (
    r"(?i:(?:i (?:think|believe|prefer|would prefer|would choose|choose|pick|would say)|overall|clearly|definitely"
    r"|probably|(?:my )?(?:final )?verdict(?: is)?"
    r"|(?:my )?preference(?: is)?|(?:the )?winner(?: is)?|(?:the )?(?:better|best|preferred|superior)(?: \w{2,12})?(?: "
    r"is)?|it is|it's|is|that)\b[\s,:=]{0,3}){0,4}"
)
_SIDE = deferred(
    rf"{_OPEN}{_SURE}{_OPEN}{_NAME}{_OPEN}(?P<side>[AB])(?![A-Za-z0-9'_]|-[a-z])[)\]}}>*\"'.]{{0,4}}"
    rf"(?!\s?(?:and|&|or|/|=|和|或|,)\s?{_NAME}{_OPEN}[AB]\b)(?P<rest>[^\n]{{0,60}})"
)
_COMPARES = deferred(
    rf"\b(?:{_NAME})(?P<first>[AB])\s{{0,2}}(?P<sign>>{{1,2}}|<{{1,2}}|=|≥|≤|≫)\s{{0,2}}{_NAME}(?P<second>[AB])\b"
)
_BETTER = deferred(
    rf"\b{_NAME}(?P<side>[AB])\b\s(?:is|was|performs?|performed|does|did|looks|seems|would be|appears|shows|gives"
    rf"|provides|has|(?=better|worse|superior|inferior))\s?(?P<how>[^.;,\n]{{0,60}})|\bprefer\s{_NAME}(?P<liked>[AB])\b|\b{_NAME}(?P<wins>[AB])\b\s(?:wins"
    rf"|won)\b|(?<![A-Za-z])(?P<zh>[AB])\s?(?:更好|更优|较好)"
)
_GOOD = deferred(
    r"\b(?:better|best|superior|preferable|preferred|stronger|more (?:accurate|correct|complete|precise|skil\w+|careful"
    r"|efficient|helpful)|the winner|well)\b|更好|更优",
    re.IGNORECASE,
)
_BAD = deferred(r"\b(?:worse|worst|inferior|weaker|less|not)\b", re.IGNORECASE)
_TIE = deferred(
    r"\b(?:tied?|draw|equal(?:ly)?(?: (?:good|bad|well))?|equivalent|the same|no (?:clear |significant |real "
    r")?(?:difference|preference|winner)|neither (?:one )?(?:is|was|of them is|response is|video is)?\s?(?:better"
    r"|superior|preferable)"
    r"|both (?:are |were )?(?:equally|the same|comparable|similar)|comparable|on a par|indistinguishable)\b|平局|一样好"
    r"|差不多|不相上下|\bC\b(?=\s?[\]\"']{0,2}$)",
    re.IGNORECASE,
)
_NO_TIE = deferred(
    r"\b(?:not|no|isn't|never|without) (?:a |an )?(?:tie|draw|equal)|\bnot (?:the same|equivalent|comparable)",
    re.IGNORECASE,
)
_REJECTS = deferred(
    r"\s?(?:is|was|are|looks|seems|performs?|does|did)\b[^.;\n]{0,30}\b(?:worse|inferior|weaker|less|not|wrong"
    r"|incorrect|bad)\b|\s?<",
    re.IGNORECASE,
)
_ASIDE = deferred(r"\s\([^()\n]{1,100}\s[^()\n]{1,200}\)")
_OR_TIE = deferred(r"\b[AB]\W{0,3}\sor\s(?:a )?(?:tie|draw|equal)|\b(?:tie|draw|equal)\W{0,3}\sor\s[AB]\b")
_NEITHER = deferred(rf"\b[Nn]either {_NAME}A nor {_NAME}B\b")


def _compared(text: str) -> set[str]:
    """The sides, or a tie, that signs between both say: "A > B"."""
    sides: set[str] = set()
    for hit in _COMPARES.finditer(text):
        if hit["first"] != hit["second"]:
            sides.add("tie" if hit["sign"] == "=" else hit["first"] if hit["sign"][0] in ">≥≫" else hit["second"])
    return sides


def _praised(text: str) -> set[str]:
    """The sides that words say are better, or the other of one that is worse."""
    sides: set[str] = set()
    for hit in _BETTER.finditer(text):
        side = hit["side"] or hit["liked"] or hit["wins"] or hit["zh"]
        how = hit["how"] or "better"
        if _BAD.search(how) and not _GOOD.search(how):
            sides.add("A" if side == "B" else "B")
        elif _GOOD.search(how) and not _BAD.search(how):
            sides.add(side)
    return sides


def _at_head(text: str, *, sure: bool) -> set[str]:
    """The side that a text begins with, if it is not rejected, and the text is a verdict: `sure`, or short."""
    head = _SIDE.match(text)
    if head is None or _REJECTS.match(head["rest"]):
        return set()
    closed = re.match(
        r"\s{0,2}(?:$|[.,;:!)\]-]|\n|(?:is|was|because|since|as|due|with|by|shows|for|wins|has|looks|performs"
        r"|has|uses|keeps)\b)",
        head["rest"],
    )
    return {head["side"]} if closed and (sure or len(text) < 400) else set()


class PreferenceFormat(StrictFormat):
    """A preference: "A", "B", or, if `ties` are allowed, "tie".

    Parsed are a letter at the start, "B is better than A", "A > B", and words for a tie ("equally good", "no
    difference"), and also "[[A]]", "[[B]]" and "[[C]]" (a tie), as written by MT-Bench's judges (Zheng et al. 2023,
    NeurIPS). Alternatives, and both letters without a word for a tie, are invalid. Strict: only the letter or word.

    >>> PreferenceFormat().parse("B is better than A: the needle stays in view.")
    'B'
    >>> PreferenceFormat().parse("Both are equally good.")
    'tie'
    """

    kind: Literal["preference"] = "preference"
    ties: bool = True

    def _values(self) -> tuple[str, ...]:
        return ("A", "B", "tie") if self.ties else ("A", "B")

    def _expected(self) -> str:
        return "A, B or tie" if self.ties else "A or B"

    def instruction(self, options: Sequence[str] = ()) -> str:
        del options
        words = '"A", "B" or "tie"' if self.ties else '"A" or "B"'
        if self.strict:
            return f"Reply with {words} and nothing else: which of the two is better."
        choices = '"Answer: A", "Answer: B" or "Answer: tie"' if self.ties else '"Answer: A" or "Answer: B"'
        return f"Start your reply with {choices}: which of the two is better."

    def parse(self, text: str, options: Sequence[str] = ()) -> JsonValue:
        if self.strict:
            return self.from_cell(alone(text), options)
        keys = ("preference", "preferred", "winner", "better", "choice", "verdict", "best")
        return read_reply(text, self._read, expected=self._expected(), keys=keys)

    def _read(self, statement: Statement) -> JsonValue:
        if isinstance(statement.value, list | dict) and not (
            isinstance(statement.value, list) and len(statement.value) == 1
        ):
            return None
        text = re.sub(r"\[\[([ABC])\]\]", r" \1 ", statement.text)
        text = _ASIDE.sub("", text) if statement.sure else text
        if _OR_TIE.search(text):
            raise ParseError(expected=self._expected(), found=text)
        side = self._judged(first_sentence(text), sure=True) if statement.sure else ""
        side = side or self._judged(text.strip(), sure=statement.sure)
        if side == "tie" and not self.ties:
            raise ParseError(expected=self._expected(), found=statement.text)
        return side or None

    def _judged(self, text: str, *, sure: bool) -> str:
        """The side or tie in a text; "" for none. Raises `ParseError` for both sides."""
        tie = _TIE.search(text) is not None and not _NO_TIE.search(text)
        if _NEITHER.search(text):
            return "tie"
        sides = _compared(text) | _praised(text)
        if not sides and not tie:
            sides = _at_head(text, sure=sure)
        if tie and not sides:
            return "tie"
        if len(sides) > 1:
            raise ParseError(expected=self._expected(), found=text)
        return next(iter(sides), "")

    def check(self, value: JsonValue, options: Sequence[str] = ()) -> JsonValue:
        del options
        if isinstance(value, str) and value in self._values():
            return value
        raise ParseError(expected=self._expected(), found=str(value))

    def from_cell(self, text: str, options: Sequence[str] = ()) -> JsonValue:
        """Parse A, B, or, if ties are allowed, "tie" or "equal", in any case."""
        word = plain_words(text)
        return self.check(
            {"a": "A", "b": "B", **dict.fromkeys(("tie", "equal", "draw", "="), "tie")}.get(word, text), options
        )

    def distance(self, reference: JsonValue, prediction: JsonValue) -> float | None:
        """0 for equal values, 1 for opposite sides, 0.5 if one of them is a tie."""
        return 0.0 if reference == prediction else 0.5 if "tie" in {reference, prediction} else 1.0

    def chance(self, accepted: Sequence[JsonValue], options: Sequence[str] = ()) -> float | None:
        """The number of right values divided by that of all: one third with ties, one half without."""
        del options
        return max(1, len(set(map(str, accepted)))) / len(self._values())
