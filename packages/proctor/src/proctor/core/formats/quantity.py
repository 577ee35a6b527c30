"""The answer format for a number with a unit: a length, a pressure, a dose."""

from __future__ import annotations

import itertools
import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from pydantic import Field, JsonValue, field_validator

from proctor.core.errors import ParseError
from proctor.core.formats.base import StrictFormat, alone, cell_quantity
from proctor.core.formats.declarations import first_sentence
from proctor.core.formats.reply import Statement, json_fields, read_reply
from proctor.core.formats.units import QUANTITIES, Unit, names_of, round_off, unit_of, units_named
from proctor.core.text import NUMBER_WORDS, deferred

_MOST = 1e15
_SLACK = 1e-9  # tolerance for rounding errors of conversions
_KEYS = (
    "value",
    "measurement",
    "number",
    "quantity",
    "amount",
    "size",
    "length",
    "diameter",
    "estimate",
    "dose",
    "rate",
)
_DIGITS = r"\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d{1,15})?|\d{1,15}(?:[.,]\d{1,15})?"
_NUMBER = (
    rf"(?<![A-Za-z0-9_.,:/^])(?P<sign>[-+]\s?)?(?:(?P<digits>{_DIGITS})(?P<e>[eE][-+]?\d{{1,2}})?(?![\d])"
    r"(?:\s?(?:[x×*·]\s?)?10\^(?P<power>[-+]?\d{1,2})|(?:\s?[x×*·]\s?|\s)10(?P<small>[⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,2}))?"
    rf"|(?<![\w-])(?P<word>{'|'.join(sorted(NUMBER_WORDS, key=len, reverse=True))})\b)"
)
_CLOCK = deferred(r"\b\d{1,3}:\d{2}(?::\d{2})?(?:\.\d+)?")
_ELSEWHERE = deferred(
    r"\b(?:frames?|images?|pictures?|steps?|figures?|fig\.|questions?|phases?|options?|no\.|number|item|table|level"
    r"|segment|grade|type|t ?=|T|L|C|S)\s?#?\d+(?:\.\d+)?\b"
    r"|^[ \t]*\d{1,2}[.)][ \t]+(?=[A-Za-z])|\b\d+(?:st|nd|rd|th)\b",
    re.MULTILINE,
)
_ASIDE = deferred(r"\([^()]{0,200}\)")
_BOUND = deferred(
    r"(?:\b(?:at least|at most|more than|less than|greater than|smaller than|larger than|fewer than|over|under|above"
    r"|below|exceed(?:s|ing)?|up to|minimum of|maximum of|no more than"
    r"|not|between|from|either|within|beyond)(?:\s(?:about|around|roughly|the))?|[<>≤≥])\s?\Z",
    re.IGNORECASE,
)
_OPEN = deferred(
    r"\s?(?:\+(?!\d)|\bor (?:more|less|greater|smaller|larger|so many)\b|\band (?:above|over|more)\b)", re.IGNORECASE
)
_JOINT = deferred(
    r"\s{0,2}(?:-{1,2}|~|/|,?\s?\bor\b|\bto\b|\band\b|[x×*]|\bby\b|到|至|或)\s{0,2}(?:about |maybe |even |up to )?",
    re.IGNORECASE,
)
_LEAD = deferred(r"[^\d\n]{0,60}")
_LONE = deferred(
    r"\s{0,200}$|\s?(?:[.,;:!)\]}\"'|]|\n|(?:at|in|on|since|because|as|for|based|when|is|was|to the nearest|overall"
    r"|here|approximately|approx)\b)",
    re.IGNORECASE,
)
_ENDS = 1_500  # characters that are read at both ends of a long text
_SPREAD = deferred(r"\s?(?:±|\+/-|\+-)\s?\d{1,9}(?:[.,]\d{1,9})?")
_SUPER = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


@dataclass(frozen=True)
class _Measure:
    """A number in a text, its possible units (empty: without unit), and its position."""

    number: float
    units: tuple[Unit, ...]
    start: int
    end: int


class QuantityFormat(StrictFormat):
    """A number in `unit`, right within `tolerance` units, or within the share `relative` of the reference, whichever is
    larger.

    Other units of the same quantity are converted ("3.5 cm" is 35 mm); numbers without a unit are in the format's unit.
    Units of another quantity, ranges and bounds are invalid. Known units are in the table of `units`; without `unit`
    the format is a plain number. Strict: only the number in the format's unit, with or without the unit.

    >>> QuantityFormat(unit="mm").parse("The duct measures about 0.8 cm.")
    8.0
    >>> QuantityFormat(unit="mm", tolerance=1).match(8.0, 8.9)
    True
    """

    kind: Literal["quantity"] = "quantity"
    unit: str = ""
    tolerance: float = Field(default=0.0, ge=0)
    relative: float = Field(default=0.0, ge=0, lt=1)

    @field_validator("unit")
    @classmethod
    def _known(cls, unit: str) -> str:
        return unit_of(unit).symbol

    @property
    def _unit(self) -> Unit:
        return unit_of(self.unit)

    def _expected(self) -> str:
        return f"one number in {self.unit}" if self.unit else "one number"

    def instruction(self, options: Sequence[str] = ()) -> str:
        del options
        if self.strict:
            return f"Reply with a number{f' in {self.unit}' if self.unit else ''} and nothing else."
        unit = f" {self.unit}" if self.unit else ""
        return f'Start your reply with "Answer: N{unit}", where N is a number.'

    def parse(self, text: str, options: Sequence[str] = ()) -> JsonValue:
        del options
        if self.strict:
            said = alone(text)
            unit = next((one for one in (self.unit,) if one and said.endswith(one)), "")
            return self._number(
                cell_quantity(said.removesuffix(unit).strip(), f"{self._expected()} and nothing else"), text
            )
        for value in json_fields(text):
            if isinstance(value, dict) and (said := _with_unit(value)):
                return self.parse(said)
        return read_reply(text, self._read, expected=self._expected(), keys=_KEYS)

    def _number(self, number: float, text: str) -> float:
        if not math.isfinite(number) or abs(number) > _MOST:
            raise ParseError(expected=self._expected(), found=text)
        return float(number)

    def _read(self, statement: Statement) -> JsonValue:
        value, text = statement.value, statement.text
        if isinstance(value, int | float) and not isinstance(value, bool):
            return self._number(float(str(value)), text)
        if isinstance(value, list | dict) and not (isinstance(value, list) and len(value) == 1):
            return None
        text = _SPREAD.sub("", text if len(text) <= 2 * _ENDS else f"{text[:_ENDS]}\n{text[-_ENDS:]}")
        start = first_sentence(text)
        for part in (start, text) if statement.sure else (text,):
            for said in (_ASIDE.sub(lambda hit: " " * len(hit[0]), part), part):
                found = self._own(said)
                if found:
                    return self._number(self._chosen(statement, said, found), text)
        return None

    def _own(self, text: str) -> list[_Measure]:
        """The numbers with units of the format's quantity, or else those without a unit."""
        found = [measure for measure in measures(text, self._unit.quantity) if self._is_own(measure, text)]
        named = [measure for measure in found if measure.units] if self.unit else []
        return named or found

    def _is_own(self, measure: _Measure, text: str) -> bool:
        if not self.unit:
            return not measure.units
        if measure.units:
            return any(unit.quantity == self._unit.quantity for unit in measure.units)
        return bool(_LONE.match(text, measure.end))

    def _value(self, measure: _Measure) -> float:
        unit = next((unit for unit in measure.units if unit.quantity == self._unit.quantity), self._unit)
        return unit.to(self._unit, measure.number)

    def _chosen(self, statement: Statement, text: str, found: list[_Measure]) -> float:
        """The stated number. Raises `ParseError` for bounds, ranges and different numbers."""
        first = found[0]
        values = [self._value(measure) for measure in found]
        alike = all(math.isclose(values[0], value, rel_tol=1e-6) for value in values)
        every, own = measures(text, self._unit.quantity), set(found)
        joined = any(
            _JOINT.fullmatch(text, one.end, other.start)
            and (one in own or other in own)
            and not math.isclose(self._value(one), self._value(other), rel_tol=1e-6)
            for one, other in itertools.pairwise(every)
        )
        bounded = _BOUND.search(text, max(0, first.start - 30), first.start) or _OPEN.match(text, first.end)
        heads = statement.sure and _LEAD.fullmatch(text, 0, first.start) is not None
        if joined or bounded or not (alike or heads):
            raise ParseError(expected=self._expected(), found=statement.text)
        return values[0]

    def check(self, value: JsonValue, options: Sequence[str] = ()) -> JsonValue:
        del options
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _MOST:
            return float(value)
        raise ParseError(expected=self._expected(), found=str(value))

    def from_cell(self, text: str, options: Sequence[str] = ()) -> JsonValue:
        """Parse the number with an optional unit; other units of the same quantity are converted."""
        del options
        hit = re.fullmatch(
            r"([-+\u2212\u2013]?[\d.,]+(?:[eE][-+]?\d{1,2})?)\s*(.*)", unicodedata.normalize("NFC", text.strip())
        )
        if hit is None:
            raise ParseError(expected=self._expected(), found=text)
        number = cell_quantity(hit[1], self._expected())
        units = [unit for unit in units_named(hit[2]) if unit.quantity == self._unit.quantity]
        if hit[2] and not units:
            raise ParseError(expected=f"a unit of {self._unit.quantity}, such as {self.unit or 'none'}", found=hit[2])
        return self._number(units[0].to(self._unit, number) if units else number, text)

    def write(self, value: JsonValue) -> str:
        """The number with 12 significant digits, and its unit."""
        number = f"{float(str(value)):.12g}"
        number = f"{float(number):.12f}".rstrip("0").rstrip(".") if "e" in number else number
        return f"{number} {self.unit}".strip()

    def match(self, reference: JsonValue, prediction: JsonValue) -> bool:
        error = self.distance(reference, prediction)
        key = abs(float(str(reference)))
        return error is not None and error <= max(self.tolerance, self.relative * key) + _SLACK * max(key, 1e-12)

    def distance(self, reference: JsonValue, prediction: JsonValue) -> float | None:
        """The absolute error in the format's unit."""
        if isinstance(reference, int | float) and isinstance(prediction, int | float):
            return abs(float(reference) - float(prediction))
        return None


def _with_unit(value: dict[str, JsonValue]) -> str:
    """The number and unit in an object with both; otherwise nothing."""
    named = {str(key).strip().lower(): one for key, one in value.items()}
    number = next((named[key] for key in ("value", "answer", "number", "final_answer", *_KEYS) if key in named), None)
    unit = next((named[key] for key in ("unit", "units") if key in named), None)
    plain = isinstance(number, int | float | str) and not isinstance(number, bool) and isinstance(unit, str)
    measure = f"{number} {unit}" if plain else ""
    return measure if len(measure) < 60 else ""


def measures(text: str, quantity: str) -> list[_Measure]:
    """The numbers in a text with their units; "1 h 30 min" is one number. Clock times, frame numbers and numbers after
    ± are excluded."""
    blank = text
    for pattern in (_CLOCK, _ELSEWHERE):
        blank = pattern.sub(lambda hit: "\x00" * len(hit[0]), blank)
    found: list[_Measure] = []
    for hit in _pattern().finditer(blank):
        number = _value(hit)
        units = units_named(hit["unit"]) if hit["unit"] else ()
        if number is None or (hit["word"] and not any(unit.quantity == quantity for unit in units)):
            continue
        one = _Measure(number, units, hit.start(), hit.end())
        before = found[-1] if found else None
        if before is not None and quantity == "time" and _continues(before, one, blank[before.end : one.start]):
            seconds = _seconds(before) + _seconds(one)
            found[-1] = _Measure(round_off(seconds / one.units[0].factor), one.units[:1], before.start, one.end)
        else:
            found.append(one)
    return found


def _continues(before: _Measure, measure: _Measure, between: str) -> bool:
    """Whether "1 h" continues with "30 min"."""
    both = [unit for some in (before.units, measure.units) for unit in some[:1]]
    fits = len(both) == 2 and all(unit.quantity == "time" for unit in both) and both[0].factor > both[1].factor
    return fits and re.fullmatch(r"[\s,]{0,3}(?:and )?", between) is not None


def _seconds(measure: _Measure) -> float:
    return measure.number * measure.units[0].factor


@lru_cache(maxsize=1)
def _pattern() -> re.Pattern[str]:
    """The regular expression for a number with an optional unit."""
    names = sorted({name for name in _spoken() if name}, key=len, reverse=True)
    units = "|".join(re.escape(name).replace(r"\ ", r"\s?").replace("/", r"\s?(?:/|\bper\b)\s?") for name in names)
    return re.compile(rf"{_NUMBER}(?:\s?-?(?P<unit>{units})(?![A-Za-z0-9µμ²³/^]))?", re.IGNORECASE)


def _spoken() -> list[str]:
    """The spellings of each unit: with u or µ, superscripts or digits, with or without a caret."""
    names = [name for some in QUANTITIES.values() for symbol in some for name in names_of(symbol)]
    plain = [unicodedata.normalize("NFKC", name) for name in names]
    carets = [re.sub(r"(?<=[a-zA-Z])([23])(?=$|/)", r"^\1", name) for name in plain]
    every = [*names, *plain, *carets]
    micro = [name.replace("µ", other).replace("μ", other) for name in every for other in ("u", "μ", "µ", "mc")]
    return [name for name in dict.fromkeys([*every, *micro]) if not name.startswith("10")]


def _value(hit: re.Match[str]) -> float | None:
    if hit["word"]:
        return float(NUMBER_WORDS.index(hit["word"].casefold()))
    digits = hit["digits"]
    grouped = re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", digits)
    number = float((digits.replace(",", "") if grouped else digits.replace(",", ".")) + (hit["e"] or ""))
    power = hit["power"] or (hit["small"] or "").translate(_SUPER)
    number *= 10.0 ** int(power) if power else 1.0
    return -number if (hit["sign"] or "").strip() == "-" else number
