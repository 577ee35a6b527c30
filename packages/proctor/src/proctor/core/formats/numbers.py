"""Answer formats for counts and percentages, and parsing of numbers in digits and words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Literal

from pydantic import Field, JsonValue

from proctor.core.errors import ParseError
from proctor.core.formats.base import StrictFormat, bare, cell_quantity
from proctor.core.formats.declarations import first_sentence
from proctor.core.formats.reply import Statement, read_reply
from proctor.core.text import NUMBER_WORDS, deferred

_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_WORDS = {word: number for number, word in enumerate(NUMBER_WORDS)} | {
    word: 10 * position for position, word in enumerate(_TENS, 2)
}
_WORDS |= {"no": 0, "none": 0, "a single": 1, "a hundred": 100, "one hundred": 100, "hundred": 100}
_WORDS |= {
    word: number
    for words in (  # German, French, Spanish, Italian, Portuguese; without those that are English words, too
        "eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
        "- deux trois quatre cinq - sept huit neuf dix onze douze",
        "- dos tres cuatro cinco seis siete ocho nueve diez - doce",
        "- - tre quattro cinque sei sette otto nove dieci undici dodici",
        "- dois três quatro - - sete oito - dez onze doze",
    )
    for number, word in enumerate(words.split(), 1)
    if word != "-"
}
_FOREIGN = "|".join(
    word
    for word in _WORDS
    if (word not in NUMBER_WORDS and word not in _TENS and " " not in word and word[0] != "n")
    or word in {"neun", "neuf", "nueve", "nove"}
)
_CHINESE = {char: number for number, char in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2, "十": 10}

_DIGITS = r"\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:[.,]\d+)?"
_NAMES = (
    rf"(?:{'|'.join(_TENS)})(?:[ -](?:{'|'.join(NUMBER_WORDS[1:10])}))?|(?:a|one) hundred|hundred|a single"
    rf"|{'|'.join(NUMBER_WORDS)}|{_FOREIGN}"
)
_ZERO = (
    r"none(?! of)|no(?= \w+s\b(?! (?:is|has))| (?:\w+ )?(?:clip|sponge|needle|object|mesh|bag|drain|loop|specimen|item"
    r"|instance)s?\b)"
)
_HAN = (
    r"百分之[零〇一二两三四五六七八九十百\d]{1,4}|[零〇一二两三四五六七八九十]{1,3}(?=\s?(?:[个枚只块根条次片张把处颗针"
    r"种名]|$|[.,;!]))"
)
_SHARE = r"(?P<share>\s?(?:%|percent\b|per cent\b|per-cent\b|pct\b|percentage points?\b|个百分点))?"
_QUANTITY = deferred(
    rf"(?=[-+\d百{''.join(_CHINESE)}]|\b[acdefhnoqstuvz])"
    rf"(?P<sign>(?<![\w)])[-+])?(?:(?<![A-Za-z0-9_.,:/#^])(?P<digits>{_DIGITS})|\b(?P<name>{_NAMES}|{_ZERO})\b"
    rf"|(?P<han>{_HAN})){_SHARE}"
    r"(?![A-Za-z0-9_½⅓⅔¼¾²³^]|\s\d+/\d|:\d|[.,/]\d|\s?-\s?(?:second|minute|hour|year|frame|fps|mm|cm|step|picture"
    r"|image))",
    re.IGNORECASE,
)
_ELSEWHERE = deferred(
    r"\b(?=[\daefimnopqstv])(?:\d{1,3}:\d{2}(?::\d{2})?(?:\.\d+)?|"
    r"(?:frames?|images?|pictures?|steps?|figures?|fig\.|questions?|phases?|videos?|options?|minutes?|seconds?|time"
    r"|port|no\.|number|item|table|second|t)"
    r"\s?(?:#|=|no\. )?\d+(?:\.\d+)?(?!\s?(?:%|percent))\b(?:\s?(?:-|to|and|through)\s?\d+\b)?|"
    r"\d+(?:\.\d+)?(?:\s?(?:-|to)\s?\d+(?:\.\d+)?)?[\s-]?(?:s|secs?|seconds?|min|mins|minutes?|h|hours?|ms|fps|hz|cm"
    r"|mm|ml|l|kg|g|px|pixels|x\d+|years?|st|nd|rd|th)\b|"
    r"(?:one|two)(?= (?:can|could|may|might|should|would|sees?|after|by one|of (?:the|these|them)|another|more "
    r"time)\b)|"
    r"(?:one|two|three|\d{1,2}) (?:thirds?|quarters?|halves|fifths?|tenths?)\b|"
    r"(?:first|second|third|fourth|at one point|one by one|no one|each one|this one|that one|every one|number one"
    r"|step one|one hand|one side|the other one)\b)|"
    r"\b\d{1,3}(?:\.\d+)?\s?%\s(?:sure|confiden\w+|certain\w*|likel\w+|probab\w+)|\b\d{1,3}(?=\s(?:would be|would mean|means|stands for)\b)|"
    r"第\s?[\d一二三四五六七八九十]+|(?<!\d)\d{1,9}\s?(?:秒|分钟|分|小时|毫米|厘米)",
    re.IGNORECASE,
)
_LIST_MARK = deferred(r"^[ \t]*\d{1,2}[.)][ \t]+(?=[A-Za-z\u4e00-\u9fff])", re.MULTILINE)
_LEAD = deferred(
    r"[\s\"'(\[{~:=.]{0,6}(?:(?:about|approximately|approx\.?|around|roughly|circa|ca\.|exactly|precisely|nearly|almost"
    r"|only|just|probably|likely|most likely|maybe|perhaps"
    r"|possibly|certainly|definitely|i (?:think|believe|see|count|counted|can see|could see|estimate|would say"
    r"|observed?|identified|found|would estimate)(?: that)?"
    r"|there (?:are|is|were|was|appear to be|appears to be|seem to be|should be)|it(?:'s| is| was| would be)|we (?:see"
    r"|can see|count)|that(?:'s| is)|is|are|was|were|be|a total of|total(?: of|:)?|in total"
    r"|altogether|overall|equal to|equals|the (?:total )?(?:number|count|percentage|share|proportion)(?: of [a-z "
    r"]{1,40}?)? (?:is|was|are)"
    r"|shows?|contains?|visible|有|共有|共|一共|总共|约|大约|大概|约为|为|是|看到|可以看到)\b[\s:,]{0,3}){0,5}~?\s?",
    re.IGNORECASE,
)
_BOUND_BEFORE = deferred(
    r"(?:\b(?:at least|at most|more than|less than|fewer than|over|under|above|below|up to|minimum of|maximum of|no "
    r"more than|no fewer than|not|between|from|either|minus)|[<>≤≥±]|至少|至多|超过|不到|少于|多于)\s?\Z",
    re.IGNORECASE,
)
_BOUND_AFTER = deferred(
    r"\s?(?:\+(?!\d)|\bor (?:more|less|fewer|so many)\b|\band (?:more|above|over)\b|以上|以下|左右或)", re.IGNORECASE
)
_OR = deferred(
    r"[\s%]{0,3}(?:percent )?(?:[a-z]{1,12}\s?)?(?:\bor\b|\bto\b|\band\b|\bup to\b|\bpossibly\b|,? then\b|,? (?:maybe"
    r"|perhaps|possibly)\b|或者?|到|至|和)\s{0,2}"
    r"(?:maybe |possibly |perhaps |even |about |roughly )?|\s{0,2},?\s{1,2}",
    re.IGNORECASE,
)
_PARTS = deferred(
    r"%[^.%]{0,40}\b(?:half|third|quarter|early|beginning|part)\b[^.%]{0,30}\d%"
    r"|% of (?:the )?(\w{1,30})\b[^%\n]{0,30}\d ?% of (?:the )?(?!\1)\w",
    re.IGNORECASE,
)
_DENIED = deferred(r"\b(?:not|rather than|instead of)\s\Z", re.IGNORECASE)
_RESULT = deferred(
    r"(?<!\d)(?:\d{1,9}|[a-z]{3,5})\s?[+x×*-]\s?(?:\d{1,9}|[a-z]{3,5})[^=\n]{0,30}=\s?(?:\d+|[a-z]{3,9})", re.IGNORECASE
)
_OF_MEDIA = deferred(r"\s(?:frames?|images?|pictures?|photos?|videos?)\b", re.IGNORECASE)
_GROUPED = deferred(r"\d{1,3}(?:\.\d{3})+")  # ambiguous between countries
_SECOND = deferred(r"[.?!]\s+(?:or|wait|actually|hmm)\b", re.IGNORECASE)
_TOTAL = deferred(
    r"\b(?:total|altogether|overall|in all|sum)\b(?: number)?(?: of| is| are|:|=)?[^.\d\n]{0,20}?(?:\d+|[a-z]+)"
    r"|\b(?:\d+|[a-z]+) (?:[a-z]+ )?(?:in total|altogether|overall|in all)\b",
    re.IGNORECASE,
)


def read_quantity(statement: Statement, expected: str, *, share: bool) -> float | None:
    """The number at the start of a statement, or else the only one in its first sentence, or else the only one in all
    of it. For shares, numbers with a per cent sign take precedence. Raises `ParseError` for several numbers, a range or
    a bound."""
    value = statement.value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return min(max(float(str(value)), -1.0), 1e18)
    if isinstance(value, list) and len(value) != 1:
        return None
    head = _head(statement.text)
    start = first_sentence(statement.text)
    tries = [(start, True), (statement.text, True)] if share else []
    for text, only in [*tries, (start, False), (statement.text, False)]:
        quantities = _of_kind(text, share, only)
        if not quantities:
            continue
        total = None if share else _total(text, quantities)
        if total:
            return total.value
        if _unclear(statement, text, quantities, share):
            raise ParseError(expected=expected, found=statement.text)
        if head and quantities[0].start == head.start and (share or not _adds_up(text, quantities)):
            return head.value
        if len({quantity.value for quantity in quantities}) > 1:
            raise ParseError(expected=expected, found=statement.text)
        return quantities[0].value
    return None


def _of_kind(text: str, share: bool, only: bool) -> list[_Quantity]:
    """The numbers in a text: for counts those without a per cent sign; for shares all, or `only` those with one."""
    quantities = _quantities(text)
    if only:
        return [quantity for quantity in quantities if quantity.share]
    kept = list(quantities) if share else [quantity for quantity in quantities if not quantity.share]
    affirmed = [quantity for quantity in kept if not _DENIED.search(text, max(0, quantity.start - 14), quantity.start)]
    return affirmed if affirmed and kept[0] in affirmed else kept


def _total(text: str, quantities: list[_Quantity]) -> _Quantity | None:
    """The number that is named as the total, if there is one."""
    if (sum_ := _RESULT.search(text)) and quantities[-1].end <= len(text):
        results = [quantity for quantity in quantities if quantity.end == sum_.end()]
        if results and quantities[0].start >= sum_.start():
            return results[0]
    total = _TOTAL.search(text)
    totals = [
        quantity for quantity in quantities if total and total.start() <= quantity.start and quantity.end <= total.end()
    ]
    return totals[0] if len(totals) == 1 else None


def _unclear(statement: Statement, text: str, quantities: list[_Quantity], share: bool) -> bool:
    """Whether the first number is a bound, one of several, negative, a share of a part, later retracted, or has an
    ambiguous thousands separator."""
    first = quantities[0]
    if _alternatives(text, first) or first.value < 0 or _PARTS.search(text) or _contradicts(text, quantities):
        return True
    more = len(quantities) < len(_of_kind(statement.text, share, only=first.share))
    if not statement.sure and more and _SECOND.search(statement.text):
        return True
    return not share and _GROUPED.fullmatch(text, first.start, first.end) is not None


def _contradicts(text: str, quantities: list[_Quantity]) -> bool:
    """Whether the second number says another than the first ("three (4)"), or the first counts pictures ("12 frames show
    3 clips")."""
    if len(quantities) < 2 or quantities[0].value == quantities[1].value:
        return False
    between = text[quantities[0].end : quantities[1].start]
    repeated = re.fullmatch(r"\s?\(", between) and text[quantities[1].end : quantities[1].end + 1] == ")"
    return bool(repeated) or _OF_MEDIA.match(between) is not None


def _adds_up(text: str, quantities: list[_Quantity]) -> bool:
    """Whether the first number is one of several parts without a total ("2 clips and 1 sponge")."""
    between = text[quantities[0].end : quantities[1].start] if len(quantities) > 1 else ""
    none = len(quantities) > 1 and quantities[1].value == 0  # "3 clips and no sutures"
    return not none and bool(re.fullmatch(r"(?: [a-z-]+){1,5},? (?:and|plus) ", between, re.IGNORECASE))


@dataclass(frozen=True)
class _Quantity:
    """A number in a text: its value, whether a per cent sign follows, and its position."""

    value: float
    share: bool
    start: int
    end: int


@lru_cache(maxsize=4)  # called several times per text
def _quantities(text: str) -> tuple[_Quantity, ...]:
    """The numbers in a text that may be counts or shares, excluding times, lengths and frame numbers."""
    blank = _ELSEWHERE.sub(lambda hit: "\x00" * len(hit[0]), text)
    blank = _LIST_MARK.sub(lambda hit: "\x00" * len(hit[0]), blank) if len(_LIST_MARK.findall(blank)) > 1 else blank
    quantities = []
    for hit in _QUANTITY.finditer(blank):
        value = _value(hit)
        if hit["sign"] == "-":
            value = -1.0
        share = bool(hit["share"]) or hit[0].startswith("百分之")
        quantities.append(_Quantity(value, share, hit.start(), hit.end()))
    return tuple(quantities)


def _head(text: str) -> _Quantity | None:
    """The number at the start of a text, ignoring words such as "about" or "there are"."""
    quantities = _quantities(text)
    lead = _LEAD.match(text)
    at = lead.end() if lead else 0
    if not quantities or quantities[0].start > at or text[: quantities[0].start].strip("\x00 ").isdigit():
        return None
    return quantities[0]


def _alternatives(text: str, chosen: _Quantity) -> bool:
    """Whether a number belongs to a range, alternatives or a bound ("2 to 3", "2 or 3", "at least 2")."""
    if _BOUND_BEFORE.search(text, max(0, chosen.start - 16), chosen.start) or _BOUND_AFTER.match(text, chosen.end):
        return True
    quantities = _quantities(text)
    return any(
        first.value != second.value and chosen in (first, second) and _either(text, first, second)
        for first, second in pairwise(quantities)
    )


def _either(text: str, first: _Quantity, second: _Quantity) -> bool:
    between = text[first.end : second.start]
    if len(between) > 40:
        return False
    if second.value == 0 and text[second.start : second.end].casefold() == "no":  # "3 clips and no sutures"
        return False
    if first.share and not second.share and between.startswith(" "):
        return False
    if between.strip(" %") in {"-", "--", "~", "/", ">", "->", "...", "…"}:
        return text[second.start].isdigit() == text[first.start].isdigit()
    return bool(_OR.fullmatch(between))


def _value(hit: re.Match[str]) -> float:
    if hit["digits"]:
        digits = hit["digits"]
        grouped = "," in digits and re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", digits)
        return float(digits.replace(",", "" if grouped else "."))
    if hit["han"]:
        return float(_han(hit["han"].removeprefix("百分之")))
    name = hit["name"].casefold().replace("\u0307", "").replace("ı", "i")  # the pattern also matches Turkish letters
    return float(_WORDS[name]) if name in _WORDS else float(sum(_WORDS[part] for part in re.split(r"[ -]", name)))


def _han(text: str) -> int:
    if text.isdigit():
        return int(text)
    if "百" in text:
        return 100
    if "十" in text:
        tens, _, ones = text.partition("十")
        return 10 * (_CHINESE.get(tens, 1) if tens else 1) + (_CHINESE.get(ones, 0) if ones else 0)
    return _CHINESE.get(text[-1], 0) if len(text) == 1 else -1


# Larger counts and percentages are meaningless, and floats do not represent all larger integers.
_MOST = 10**15
_BARE_SHARE = deferred(r"(\d+(?:\.\d+)?)\s*%?")  # digits of any script, as in the toolkit
_COUNT_KEYS = ("count", "number", "total", "n", "quantity", "num")
_SHARE_KEYS = ("percentage", "percent", "share", "proportion", "estimate")


class CountFormat(StrictFormat):
    """A non-negative integer. Strict: only its digits.

    >>> CountFormat().parse("There are three needles.")
    3
    """

    kind: Literal["count"] = "count"

    def instruction(self, options: Sequence[str] = ()) -> str:
        del options
        if self.strict:
            return "Reply with a whole number in digits and nothing else."
        return 'Start your reply with "Answer: N", where N is a whole number in digits.'

    def parse(self, text: str, options: Sequence[str] = ()) -> JsonValue:
        del options
        if self.strict:
            return _digits(text)
        return read_reply(text, _count, expected=_COUNT, keys=_COUNT_KEYS)

    def check(self, value: JsonValue, options: Sequence[str] = ()) -> JsonValue:
        del options
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
        raise ParseError(expected="a whole number of 0 or more", found=str(value))

    def from_cell(self, text: str, options: Sequence[str] = ()) -> JsonValue:
        """Parse the number in digits; "3.0", as in spreadsheets, is 3."""
        number = cell_quantity(text, "a whole number of 0 or more")
        if number != number // 1 or not 0 <= number < _MOST:
            raise ParseError(expected="a whole number of 0 or more", found=text)
        return self.check(int(number), options)

    def distance(self, reference: JsonValue, prediction: JsonValue) -> float | None:
        """The absolute error."""
        return _absolute_error(reference, prediction)


class PercentageFormat(StrictFormat):
    """A number from 0 to 100, right within `tolerance` percentage points. Strict: only the number, with or without a
    per cent sign; it may exceed 100.

    >>> PercentageFormat(tolerance=5).match(40.0, 44.0)
    True
    """

    kind: Literal["percentage"] = "percentage"
    tolerance: float = Field(default=0.0, ge=0)

    def instruction(self, options: Sequence[str] = ()) -> str:
        del options
        if self.strict:
            return "Reply with a number from 0 to 100 and nothing else."
        return 'Start your reply with "Answer: N%", where N is a number from 0 to 100.'

    def parse(self, text: str, options: Sequence[str] = ()) -> JsonValue:
        del options
        if self.strict:
            share = _BARE_SHARE.fullmatch(bare(text))
            if share is None or float(share[1]) > _MOST:
                raise ParseError(expected="a number of 0 or more and nothing else", found=text)
            return float(share[1])
        return read_reply(text, _share, expected=_PERCENTAGE, keys=_SHARE_KEYS)

    def check(self, value: JsonValue, options: Sequence[str] = ()) -> JsonValue:
        del options
        highest = _MOST if self.strict else 100
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= highest:
            return float(value)
        raise ParseError(expected="a number from 0 to 100", found=str(value))

    def from_cell(self, text: str, options: Sequence[str] = ()) -> JsonValue:
        """The number, with or without a per cent sign."""
        return self.check(cell_quantity(text.rstrip("% "), "a number from 0 to 100"), options)

    def write(self, value: JsonValue) -> str:
        """The number to 4 decimals, with a per cent sign."""
        return f"{float(str(value)):.4f}".rstrip("0").rstrip(".") + "%"

    def match(self, reference: JsonValue, prediction: JsonValue) -> bool:
        error = self.distance(reference, prediction)
        return error is not None and error <= self.tolerance

    def distance(self, reference: JsonValue, prediction: JsonValue) -> float | None:
        """The absolute error in percentage points."""
        return _absolute_error(reference, prediction)


def _digits(text: str) -> int:
    """Parse an integer of digits of any script."""
    digits = bare(text)
    try:
        value = int(digits) if digits.isdecimal() else _MOST
    except ValueError:  # Python and the toolkit do not parse integers of more than 4,300 digits
        value = _MOST
    if value >= _MOST:
        raise ParseError(expected="a whole number of 0 or more in digits and nothing else", found=text)
    return value


_COUNT = "one whole number of 0 or more"
_PERCENTAGE = "one percentage from 0 to 100"


def _count(statement: Statement) -> int | None:
    value = read_quantity(statement, _COUNT, share=False)
    if value is None:
        return None
    if value != value // 1 or not 0 <= value < _MOST:
        raise ParseError(expected=_COUNT, found=statement.text)
    return int(value)


def _share(statement: Statement) -> float | None:
    value = read_quantity(statement, _PERCENTAGE, share=True)
    if value is not None and not 0 <= value <= 100:
        raise ParseError(expected=_PERCENTAGE, found=statement.text)
    return value


def _absolute_error(reference: JsonValue, prediction: JsonValue) -> float | None:
    if isinstance(reference, int | float) and isinstance(prediction, int | float):
        return abs(float(reference) - float(prediction))
    return None
