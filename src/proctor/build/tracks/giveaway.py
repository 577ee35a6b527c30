"""Questions that give their answer away, alone or by how questions of their kind always end."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from proctor.build.tracks.offers import Offer
from proctor.core.formats import (
    BinaryFormat,
    ChoiceFormat,
    CountFormat,
    PatternFormat,
    PercentageFormat,
    TimestampsFormat,
)

__all__ = ["foregone", "gives_away"]

_TIME = re.compile(r"(\d\d):(\d\d):(\d\d)")
_WORDS = (
    "none",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
)
_ENOUGH = 3  # videos from which on an answer that is always the same is known beforehand


def gives_away(offer: Offer, *shown: float) -> bool:
    """Whether the text names the answer: the right option and no other, the number, a time within tolerance
    (also a time that every question shows: that of asking, and of a segment its start), the pattern's text, the
    class."""
    text = offer.question.casefold()
    if isinstance(offer.format, ChoiceFormat):
        named = [option for option in offer.options if option.casefold() in text]
        return named == [offer.answer]
    if isinstance(offer.format, TimestampsFormat) and isinstance(offer.answer, list):
        told = [float(int(h) * 3600 + int(m) * 60 + int(s)) for h, m, s in _TIME.findall(text)]
        told += shown
        answers = [float(str(time)) for time in offer.answer]
        return any(abs(one - other) <= offer.format.tolerance for one in told for other in answers)
    if isinstance(offer.format, CountFormat | PercentageFormat):
        return float(str(offer.answer)) in _numbers(text)
    if isinstance(offer.format, PatternFormat):
        return re.search(rf"(?<!\w){re.escape(str(offer.answer).casefold())}(?!\w)", text) is not None
    if isinstance(offer.answer, list):
        return any(str(name).casefold() in text for name in offer.answer)
    return False  # yes or no: `foregone`


def _numbers(text: str) -> set[float]:
    plain = _TIME.sub(" ", text)
    digits = {float(number) for number in re.findall(r"\d+(?:\.\d+)?", plain)}
    return digits | {float(number) for number, word in enumerate(_WORDS) if re.search(rf"\b{word}\b", plain)}


def foregone(pool: Mapping[str, Sequence[Offer]]) -> set[tuple[str, tuple[str, ...]]]:
    """The yes-or-no rules, with the classes that they name, that all of three or more videos answer alike: about
    these classes, or whatever the classes."""
    answers: dict[tuple[str, tuple[str, ...] | None], set[str]] = {}
    videos: dict[tuple[str, tuple[str, ...] | None], set[str]] = {}
    asked = [(v, one) for v, some in pool.items() for one in some if isinstance(one.format, BinaryFormat)]
    for video, offer in asked:
        for about in (offer.mentions, None):
            answers.setdefault((offer.rule, about), set()).add(offer.key)
            videos.setdefault((offer.rule, about), set()).add(video)
    known = {key for key, said in answers.items() if len(said) == 1 and len(videos[key]) >= _ENOUGH}
    return {
        (one.rule, one.mentions)
        for _, one in asked
        if (one.rule, one.mentions) in known or (one.rule, None) in known
    }
