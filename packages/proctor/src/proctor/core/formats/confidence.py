"""The confidence in a reply: a number from 0 to 100 that it states, or the probabilities of the options' tokens."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from proctor.core.errors import ParseError
from proctor.core.formats.base import Format
from proctor.core.formats.binary import BinaryFormat
from proctor.core.formats.choice import ChoiceFormat, option_letters
from proctor.core.formats.markup import PLAIN
from proctor.core.formats.reply import MAX_ANSWER_CHARS, by_plain_name, json_values
from proctor.core.formats.thoughts import without_thoughts
from proctor.core.formatting import shorten
from proctor.core.records import Confidence
from proctor.core.text import deferred

_CUE = r"(?:confidence(?:[ _](?:level|score))?|certainty|konfidenz|sicherheit|gewissheit|confiance|certitude|confianza|certeza|置信度|信心|把握|确信度)"
_MARKS = r"[*_`\"']{0,3}"
_STATED = deferred(
    rf"(?:^|\(|(?<=[\s,;.|。，；]))[ \t]{{0,8}}(?:[-#>]{{1,3}}[ \t]{{0,2}})?{_MARKS}(?:my )?{_CUE}{_MARKS}\s{{0,2}}(?::|=|：|\bis\b|\bist\b|\best\b|\bes\b|是|为)\s{{0,2}}"
    rf"(?P<said>[^\n,;}}]{{0,40}})",
    re.IGNORECASE | re.MULTILINE,
)
_NUMBER = deferred(
    r"[\s*_`\"'(\[]{0,4}(?P<number>\d{1,3}(?:[.,]\d{1,17})?)(?!\d|[.,]\d|e[+-]?\d)\s{0,2}(?P<unit>%|percent\b|per cent\b|prozent\b|pour ?cent\b|por ?ciento\b|/\s?100\b|out of 100\b)?[\s*_`\"')\].。!]{0,4}\s{0,2}"
    r"(?:$|[({|].{0,40}$|\w.{0,40}$)",
    re.IGNORECASE,
)
_FIELD = re.compile(r"\s*\"[\w ]{1,20}\"\s*:")
_SEVERAL = re.compile(r"\d\s?(?:-|–|±|\+/-|to|bis|à|a|至|到|or|und|and)\s?\d")
_OTHER_SCALE = deferred(r"\s{0,2}(?:/|out of|of|in|von|auf|sur|de|sobre)\s{0,2}(?!100\b)\d|\s?stars?\b", re.IGNORECASE)
_KEYS = ("confidence", "confidence_score", "confidence_level", "certainty", "置信度")

CONFIDENCE_LINE = (
    'Below your answer, on a line of its own, write "Confidence: N", where N is a whole number from 0 to 100: the probability, '
    "in percent, that your answer is right."
)
"""The sentence that a prompt adds to the instruction of a format to ask for a confidence."""

CONFIDENCE_FIELD = 'Add as the number "confidence" the probability, in percent (a whole number from 0 to 100), that your answer is right.'
"""The same for a reply that is requested by a JSON schema."""


def read_confidence(text: str) -> Confidence:
    """The confidence that a reply states from 0 to 100, in English, German, French, Spanish or Chinese: on a line
    ("Confidence: 85"), or as the field `confidence` of a JSON object. The last one counts.

    It is missing, with the reason, where there is none, where the number is not from 0 to 100, where several are given
    ("80-90"), where it is of another scale ("4 out of 5"), and where a number with decimals is at most 1: it may mean 0.85 or
    85 of 100.

    >>> read_confidence("Answer: B\\nConfidence: 85%").value, read_confidence('{"answer": "B", "confidence": 40}').value
    (0.85, 0.4)
    >>> read_confidence("Answer: B\\nConfidence: high").missing
    "no number from 0 to 100: 'high'"
    """
    body = _bounded(without_thoughts(text)).translate(PLAIN)
    hits = list(_STATED.finditer(body))
    fields = [by_plain_name(one) for one in json_values(body) if isinstance(one, dict)]
    named = [one[key] for one in fields for key in _KEYS if key in one]
    if named:
        return _of_field(named[-1])
    return _of_text(hits[-1]["said"]) if hits else _missing("no confidence in the reply")


def without_confidence(text: str) -> str:
    """A reply without the lines, or the parts of lines, that state a confidence, so that its number is no answer. JSON is
    unchanged.

    >>> without_confidence("Answer: 3\\nConfidence: 85%")
    'Answer: 3'
    """
    return _STATED.sub(_kept, text).rstrip() if _STATED.search(text) else text


def _kept(hit: re.Match[str]) -> str:
    """What follows the number of a stated confidence on its line, or nothing; a field of JSON as it is."""
    if _FIELD.match(hit[0]):
        return hit[0]
    number = re.match(
        r"[\s*_`\"'(\[]{0,4}\d{0,3}(?:[.,]\d{1,4})?\s{0,2}(?:%|/\s?100\b)?[*_`\"')\].。]{0,4}", hit["said"]
    )
    rest = hit["said"][number.end() :] if number else ""
    return rest if re.match(r"\s*[A-Z({]", rest) else ""


def _bounded(text: str) -> str:
    half = MAX_ANSWER_CHARS // 2
    return text if len(text) <= MAX_ANSWER_CHARS else f"{text[:half]}\n\n{text[-half:]}"


def _of_field(value: JsonValue) -> Confidence:
    if isinstance(value, str):
        return _of_text(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _missing("no number from 0 to 100", str(value))
    return _of_number(value, str(value), decimals=isinstance(value, float))


def _of_text(said: str) -> Confidence:
    said = said.strip()
    if _SEVERAL.search(said):
        return _missing("several numbers", said)
    hit = _NUMBER.match(said)
    if hit is None:
        return _missing("no number from 0 to 100", said)
    if not hit["unit"] and _OTHER_SCALE.match(said, hit.end("number")):
        return _missing("of another scale than 0 to 100", said)
    decimals = re.search(r"[.,]", hit["number"]) is not None and not hit["unit"]
    return _of_number(float(hit["number"].replace(",", ".")), said, decimals=decimals)


def _of_number(number: float, said: str, *, decimals: bool) -> Confidence:
    if not 0 <= number <= 100:  # NaN, too
        return _missing("not from 0 to 100", said)
    if decimals and number <= 1:
        return _missing("may be of 1 or of 100", said)
    return Confidence(source="stated", value=number / 100)


def _missing(why: str, said: str = "") -> Confidence:
    """No confidence, with the reason and the beginning of what was said; of hidden characters their codes, cut off."""
    return Confidence(source="stated", missing=f"{why}: {shorten(repr(said[:40]), 120)}" if said else why)


# ------------------------------------------------------------------------------------------------------------ tokens

_AROUND = " \t\r\n\"'`*_([{.:)"
_MOST_TOKENS = 400
_CERTAIN = 0.999
"""A token this probable may have no listed alternative."""

ListedToken = tuple[bytes, Mapping[bytes, float]]
"""A token of a reply, and the probabilities of the listed alternatives, itself included."""


def token_confidence(text: str, tokens: Sequence[ListedToken], form: Format, options: Sequence[str] = ()) -> Confidence:
    """The probability of the chosen option at the token that decides the answer, over the options alone: normalised, so
    that all options add up to 1. An option that the server does not list there has the probability 0.

    The deciding token is the first one that names the answer (its letter, or yes or no) and would make the format read
    another answer if it named another option. What the model wrote before it, such as a rationale, is given: the
    probability is that of the option after that text.

    Missing, with the reason: for other formats than choice and binary, without tokens, for a reply that can't be read or
    does not name its answer by a token, and where the server lists no alternatives.

    >>> tokens = [(b"Answer", {b"Answer": 1.0}), (b":", {b":": 1.0}), (b" B", {b" B": 0.6, b" A": 0.2, b" The": 0.1})]
    >>> round(token_confidence("Answer: B", tokens, ChoiceFormat(), ("liver", "spleen", "aorta")).value, 9)
    0.75
    """
    labels = _labels(form, options)
    if len(labels) == 1:
        return _untold("there is only one option")
    if not labels:
        return _untold("only letters of options, yes and no have a token of their own")
    if not tokens:
        return _untold("the server gave no token probabilities")
    try:
        value = form.parse(text, options)
    except ParseError:
        return _untold("the reply can't be read")
    raw = text.encode()
    start = b"".join(token for token, _ in tokens).rfind(raw)
    if start < 0:
        return _untold("the tokens do not make up the reply")
    return _at_decision(raw, _positions(tokens, start, len(raw)), labels, value, form, options)


def _at_decision(
    raw: bytes,
    positions: Sequence[tuple[int, ListedToken]],
    labels: Mapping[str, JsonValue],
    value: JsonValue,
    form: Format,
    options: Sequence[str],
) -> Confidence:
    for at, (token, chances) in positions:
        label = _label(token, labels)
        if label is None or labels[label] != value or not _decides(raw, at, token, label, labels, form, options):
            continue
        if len(chances) < 2 and max(chances.values(), default=0.0) < _CERTAIN:
            return _untold("the server lists no alternatives")
        found = [
            (labels[one], chance) for other, chance in chances.items() if (one := _label(other, labels)) is not None
        ]
        total = sum(chance for _, chance in found)
        if not total > 0:
            return _untold("no option has a probability")
        return Confidence(source="tokens", value=min(1.0, sum(chance for one, chance in found if one == value) / total))
    return _untold("no token names the answer")


def _labels(form: Format, options: Sequence[str]) -> dict[str, JsonValue]:
    """The texts of the tokens that name an answer, in small letters, and the answer."""
    if isinstance(form, ChoiceFormat):
        return {letter.casefold(): letter for letter in option_letters(len(options))}
    return {"yes": True, "no": False} if isinstance(form, BinaryFormat) else {}


def _label(token: bytes, labels: Mapping[str, JsonValue]) -> str | None:
    plain = token.decode(errors="replace").strip(_AROUND).casefold()
    return plain if plain in labels else None


def _positions(tokens: Sequence[ListedToken], start: int, length: int) -> list[tuple[int, ListedToken]]:
    """The tokens within the reply, with their positions in it; of a long one, those at its end."""
    found, at = [], -start
    for token in tokens:
        if at >= 0 and at + len(token[0]) <= length + 8:
            found.append((at, token))
        at += len(token[0])
    return found[-_MOST_TOKENS:]


def _decides(
    raw: bytes, at: int, token: bytes, label: str, labels: Mapping[str, JsonValue], form: Format, options: Sequence[str]
) -> bool:
    """Whether the format reads another answer if this token names another option."""
    other = next(one for one in reversed([*labels]) if one != label)
    text = token.decode(errors="replace")
    begin = text.casefold().find(label)
    shown = other.upper() if text[begin : begin + len(label)].isupper() else other
    changed = (text[:begin] + shown + text[begin + len(label) :]).encode()
    try:
        found = form.parse((raw[:at] + changed + raw[at + len(token) :]).decode(errors="replace"), options)
    except ParseError:
        return False
    return found == labels[other]


def _untold(why: str) -> Confidence:
    return Confidence(source="tokens", missing=why)
