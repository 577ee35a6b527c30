"""The words and signs by which orders are stated, in several languages."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pydantic import JsonValue

from proctor.core.text import deferred

NAMES = (
    r"图片?|图像|画像|pictures?|images?|frames?|key ?frames?|photos?|steps?|labels?|options?|scenes?|panels?|schritte?|bild(?:er)?"
    r"|étapes?|pasos?|im[áa]gen(?:es)?|passos?|imagens?|步骤|ステップ|الخطوة|الصورة|шаг|кадр"
)
"""What labels stand for."""
THING = rf"(?:(?:the )?(?:{NAMES})\s?:?\s?)?"
PREFIX = deferred(rf"^(?:{NAMES})\b[\s:]*", re.IGNORECASE)
WORD = (
    r"(?:and|then|next|after that|afterwards?|followed by|finally|lastly|last|(?:first|second|third|fourth|fifth|sixth)(?:ly)?|which|initially|proceed(?:ing)? to|move on to"
    r"|subsequently|thereafter|later|before|precedes|leads to|to|comes?|is|goes|continues?|ends?|ending|1st|2nd|3rd|[4-9]th|with|at (?:the )?end"
    r"|und|kommt|zuerst|als (?:erstes|nächstes|letztes)|zum schluss|erst|dann|danach|anschließend|zuletzt|schließlich|et|en (?:premier|dernier)|d'abord|puis|ensuite|enfin|y|primero|luego|después|por último|finalmente|es|en"
    r"|e|primeiro|depois|em seguida|por fim|prima|poi|quindi|infine|и|сначала|затем|потом|наконец|أولا|ثم|و?أخيرا)"
)
_UNSPACED = r"然后|接着|最后|最後[にが]?|其次|随后|接下来|再|之后|后|後|先|第[一二三四五六](?:步|张)?|是|最初[にが]?|まず|その次[にが]?|次[にが]?|が|その後|それから"
BETWEEN = deferred(
    rf"[\s\"'\])}}.*]{{0,4}}(?:\([^()\n]{{0,60}}\))?\s?(?:-{{1,3}}>|={{1,2}}>|>{{1,2}}|<{{1,2}}|[,;|/&+·•∙~]|-{{1,3}}|\.\s"
    rf"|[,;]?\s?\b{WORD}\b\u064b?[,:]?|[;,]?\n)?"
    rf"(?:[\s,:]{{0,3}}(?:\b{WORD}\b\u064b?|{_UNSPACED})[,:]?){{0,3}}[\s\"'\[({{*]{{0,6}}(?:\(?\d{{1,2}}(?:st|nd"
    rf"|rd|th)?[.):]\s{{0,3}})?{THING}[\s\"'\[({{*]{{0,4}}",
    re.IGNORECASE,
)
BACKWARDS = deferred(
    r"<-{1,3}(?=\s?[\w(\[])|←|\b(?:last to first|latest to earliest|from (?:the )?(?:last|end)|backwards|(?:in )?reverse(?:d)? order|rückwärts|umgekehrte?r? reihenfolge"
    r"|ordre inverse|orden inverso|ordem inversa)\b|倒序|逆序|逆順",
    re.IGNORECASE,
)
ORDINALS = {word: n for n, word in enumerate(("first", "second", "third", "fourth", "fifth", "sixth", "seventh"), 1)}
CARDINALS = {word: n for n, word in enumerate(("one", "two", "three", "four", "five", "six", "seven"), 1)}
POSITION = r"(?:(?:step|position|place|rank|no\.?|number|frame|picture|image|schritt|étape|paso|passo|步骤|第|ステップ|الخطوة|шаг)[\s_#]{0,2})?"
POSITIONED = re.compile(r"position|order|step|rank|place|index|number|sequence|time|#|^no\b|^n$|^$", re.IGNORECASE)
_NUMBER = deferred(
    rf"^[\W_]*{POSITION}(?:(?P<digits>\d{{1,2}})(?:st|nd|rd|th)?|(?P<word>{'|'.join(ORDINALS)}))[\W_]*$", re.IGNORECASE
)
TURNS = deferred(
    r"[.;\n]+|,?\s(?=(?:and )?(?:then|next|followed by|finally|lastly|afterwards?|after that|before)\b(?!\s?[.;,]|\s?$))",
    re.IGNORECASE | re.MULTILINE,
)
BEGINS = deferred(r"\b(?:first|begins?|starts?|starting|beginning|initial(?:ly)?|earliest|1st)\b", re.IGNORECASE)
GOES_ON = deferred(
    r"\b(?:then|next|followed|follows?|continues?|middle|after|afterwards?|second|third|fourth|fifth|sixth|last|lastly|latest|finally"
    r"|final|ends?|before|subsequently|later|2nd|3rd|[4-9]th)\b",
    re.IGNORECASE,
)
ANY_ORDER = deferred(r"\b(?:in (?:any|either|no particular) order|interchangeabl[ey])\b", re.IGNORECASE)
ASKS = deferred(r"\b(?:which|what|cannot|can't|unable|sorry|not)\b|\?", re.IGNORECASE)
RELATES = deferred(r"\b(?:precedes?|follows|before|after)\b", re.IGNORECASE)
"""Words that order two labels, not all."""
ABOUT_ORDER = deferred(
    r"\b(?:order\w*|sequence\w*|chronolog\w*|arrang\w*|sort\w*|first|then|next|final\w*|answer|reihenfolge|ordre|orden|ordem"
    r"|ordine)\b|顺序|順序|答案|正解",
    re.IGNORECASE,
)
DENIED = deferred(r"(?:\b(?:not|never|nicht|pas)\s(?:simply |just |necessarily )?|不是)\Z", re.IGNORECASE)
_ROMAN = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x")
_ENUMERATED = deferred(r"(?P<before>^|\s)(?P<mark>[ivxIVX]{1,4}|[a-j])(?P<sign>[.)])(?=\s)", re.MULTILINE)


def position_in(text: str) -> int:
    """The position that a text names ("2", "second", "Step 2"), or 0."""
    hit = _NUMBER.match(text)
    if hit is None:
        return 0
    return int(hit["digits"]) if hit["digits"] else ORDINALS[hit["word"].casefold()]


def position_named_in(entry: JsonValue) -> int:
    """The position in an object with one, or −1."""
    if not isinstance(entry, dict):
        return -1
    for name, value in entry.items():
        if POSITIONED.search(str(name)) and isinstance(value, int | str) and not isinstance(value, bool):
            text = str(value)
            return 0 if text == "0" else position_in(text) or -1
    return -1


def counts_up(hits: Sequence[tuple[int, str]]) -> bool:
    """Whether two or more numbers are 1, 2, 3 …, each with a label."""
    return (
        len(hits) > 1 and [number for number, _ in hits] == [*range(1, len(hits) + 1)] and all(name for _, name in hits)
    )


def with_numbers(text: str) -> str:
    """A text whose list is counted by Roman numerals or small letters, counted by numbers.

    >>> with_numbers("i) D ii) B")
    '1) D 2) B'
    """
    marks = [hit["mark"] for hit in _ENUMERATED.finditer(text)]
    small = [mark.casefold() for mark in marks]
    if len(marks) < 2 or small not in ([*_ROMAN[: len(marks)]], [*"abcdefghij"[: len(marks)]]):
        return text
    numbers = iter(range(1, len(marks) + 1))
    return _ENUMERATED.sub(lambda hit: f"{hit['before']}{next(numbers)}{hit['sign']}", text)


def kind_of(between: str) -> str:
    """The kind of separator between two labels: a sign, a list number ("1"), a word ("w"), a line ("\\n"), a space ("
    "), or invalid ("")."""
    if not BETWEEN.fullmatch(between):
        return ""
    plain = re.sub(r"\([^()]*\)", "", between)
    if re.search(r"\d", plain):
        return "1"
    sign = re.search(r"[><,;|/&+·•∙~-]", plain)
    if sign:
        return ">" if ">" in plain else sign[0]
    if re.search(r"[^\W\d_]", plain):
        return "w"
    if "." in plain or "(" in plain.strip():
        return ""
    return "\n" if "\n" in plain else " "


def follows(before: str, kind: str, *, whole: bool) -> bool:
    """Whether a sequence continues with another kind of separator; not if it is already `whole`."""
    if not before or before == kind:
        return True
    return not whole and not {before, kind} & {" ", "\n"} and {before, kind} != {"<", ">"}
