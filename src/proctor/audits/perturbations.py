"""Changed answers: what a scorer of answers should notice, and what should change nothing.

Each perturbation changes an answer, or the references that it is compared with, in one way, and says what a sound scorer
does then. The wording of each language stands in `perturbations.yaml`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from proctor.core import Answer, Item, read_yaml

Expected = Literal["lower", "not higher", "same", "higher", "any"]
"""What a sound scorer gives a changed answer, beside the answer itself."""

_HAN = re.compile(r"[\u4e00-\u9fff]")
_SENTENCES = re.compile(r"(?<=[.!?。！？；;\n])\s*")
_NUMBER = r"(?<![\d.])(\d+(?:\.\d+)?)(?=\s*-?\s*{units})"


class Wording(BaseModel):
    """What the perturbations of one language are worded with: sentences around {text}, the words that statements are
    negated at, units of doses, and diagnoses that stand in for one another."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    negation: str
    retraction: str
    boilerplate: str
    order: str
    after: tuple[str, ...]
    not_after: str
    before: tuple[str, ...]
    not_before: str
    units: tuple[str, ...]
    ten_times: dict[str, str]
    diagnoses: tuple[str, ...]


@cache
def wordings() -> dict[str, Wording]:
    """The wording by language."""
    found = read_yaml(Path(__file__).with_name("perturbations.yaml"))
    return {language: Wording.model_validate(one) for language, one in found.items()}


@dataclass(frozen=True)
class Material:
    """An answer in free text, and what it is changed with. `other` is an answer to another case by the same system,
    `translated` its answer to the same case in another language, '' where there is none. `rng` draws what is drawn."""

    item: Item
    text: str
    language: str
    other: str
    translated: str
    rng: np.random.Generator

    @property
    def references(self) -> tuple[str, ...]:
        """The reference answers that are texts."""
        given = self.item.reference
        return () if given is None else tuple(one for one in (given.answer, *given.accepted) if isinstance(one, str))

    @property
    def wording(self) -> Wording | None:
        """That of its language; none where it is not known."""
        return wordings().get(self.language)

    def says(self, term: str) -> bool:
        """Whether question, references or answer have the term."""
        return any(term.casefold() in one.casefold() for one in (self.item.question, self.text, *self.references))


Change = Callable[[Material], str | Item | None]
"""The changed text, or the item with changed references; None where the answer can't be changed so."""


@dataclass(frozen=True)
class Perturbation:
    """One way of changing. `does` says what is done, `fault` what is said of a scorer that does not do what is
    expected."""

    name: str
    does: str
    expected: Expected
    fault: str
    change: Change

    def of(self, material: Material, answer: Answer) -> tuple[Item, Answer] | None:
        """The changed item and answer; None where nothing would change."""
        found = self.change(material)
        if isinstance(found, Item):
            return (found, answer) if found != material.item else None
        if not found or (found == material.text and self.name != AGAIN):
            return None
        return material.item, answer.model_copy(update={"text": found, "parsed": found})


AGAIN = "asked-again"
"""The perturbation that changes nothing: the scorer is asked once more."""


def language_of(item: Item, text: str) -> str:
    """The item's language; where it names none, Chinese by its characters, English else.

    >>> language_of(Item.model_construct(tags={}), "湿疹"), language_of(Item.model_construct(tags={}), "Eczema")
    ('zh', 'en')
    """
    return str(item.tags.get("language", "")) or ("zh" if _HAN.search(text) else "en")


def _worded(place: Callable[[Wording], str]) -> Change:
    return lambda one: None if one.wording is None else place(one.wording).replace("{text}", one.text.strip())


def _any_of(terms: Sequence[str], language: str) -> str:
    """A pattern for any of the terms, the longest first; whole words, where words are parted."""
    listed = "|".join(re.escape(one) for one in sorted(terms, key=len, reverse=True))
    return f"(?:{listed})" if language == "zh" else rf"(?<!\w)(?:{listed})(?!\w)"


def _negated_within(one: Material) -> str | None:
    """Each sentence with its first statement negated, or with its negation taken away."""
    wording = one.wording
    if wording is None:
        return None
    parts = [_turned(part, wording, one.language) for part in _SENTENCES.split(one.text)]
    return _joined(one.text, parts)


def _joined(text: str, parts: Sequence[str]) -> str:
    gaps = [*_SENTENCES.findall(text), ""]
    return "".join(part + gap for part, gap in zip(parts, gaps, strict=False))


def _turned(sentence: str, wording: Wording, language: str) -> str:
    apart = "" if language == "zh" else " "
    for words, no, behind in ((wording.after, wording.not_after, True), (wording.before, wording.not_before, False)):
        if not words:
            continue
        listed = _any_of(words, language)
        denied = rf"{listed}{apart}{re.escape(no)}(?!\w)" if behind else rf"{re.escape(no)}{apart}{listed}"
        found = re.search(denied, sentence, re.IGNORECASE)
        if found:
            kept = found[0][: -len(no)].rstrip() if behind else found[0][len(no) :].lstrip()
            return sentence[: found.start()] + kept + sentence[found.end() :]
        anywhere = language == "zh" or behind
        found = re.search(listed if anywhere else rf"^\s*{listed}", sentence, re.IGNORECASE)
        if found:
            said = found[0].strip()
            new = f"{said}{apart}{no}" if behind else f"{no}{apart}{said[0].lower()}{said[1:]}"
            new = new[0].upper() + new[1:] if said[0].isupper() else new
            return sentence[: found.start()] + new + sentence[found.end() :]
    return sentence


def _wrong_diagnosis(one: Material) -> str | None:
    """Every known diagnosis in the answer replaced by one that neither question, references nor answer have."""
    wording = one.wording
    free = [] if wording is None else [term for term in wording.diagnoses if not one.says(term)]
    if wording is None or not free:
        return None
    drawn: dict[str, str] = {}

    def instead(found: re.Match[str]) -> str:
        return drawn.setdefault(found[0].casefold(), free[int(one.rng.integers(len(free)))])

    return re.sub(_any_of(wording.diagnoses, one.language), instead, one.text, flags=re.IGNORECASE)


def _wrong_dose(one: Material) -> str | None:
    """Every number with a unit ten times as large."""
    wording = one.wording
    if wording is None:
        return None
    end = "" if one.language == "zh" else r"(?!\w)"
    units = "|".join(re.escape(unit) for unit in sorted(wording.units, key=len, reverse=True))
    figures = _NUMBER.replace("{units}", rf"(?:{units}){end}")
    text = re.sub(figures, lambda found: f"{float(found[1]) * 10:g}", one.text, flags=re.IGNORECASE)
    words = "|".join(sorted(wording.ten_times, key=len, reverse=True))
    spelt = (
        rf"({words})(?=(?:{units}))"
        if one.language == "zh"
        else rf"(?<!\w)({words})(?=\s+(?:{units}|a|daily|per){end})"
    )
    return re.sub(spelt, lambda found: wording.ten_times[found[1].casefold()], text, flags=re.IGNORECASE)


def _shuffled(one: Material) -> str:
    parts = list(one.text) if one.language == "zh" else one.text.split()
    apart = "" if one.language == "zh" else " "
    return apart.join(parts[place] for place in one.rng.permutation(len(parts)))


def _with_references(one: Material, order: Callable[[Sequence[int]], Sequence[int]]) -> Item | None:
    given = one.item.reference
    if given is None or len(one.references) != 1 + len(given.accepted) or len(one.references) < 2:
        return None
    kept = list(order(range(len(one.references))))
    texts = [one.references[place] for place in kept]
    about = tuple(given.reliability[place] for place in kept) if given.reliability else ()
    changed = {"answer": texts[0], "accepted": tuple(texts[1:]), "reliability": about}
    return one.item.model_copy(update={"reference": given.model_copy(update=changed)})


PERTURBATIONS: Mapping[str, Perturbation] = {
    one.name: one
    for one in (
        Perturbation(AGAIN, "The scorer is asked once more.", "same", "does not repeat itself", lambda one: one.text),
        Perturbation(
            "negated",
            "It is said first that the answer is not true.",
            "lower",
            "can't tell a negation",
            _worded(lambda words: words.negation),
        ),
        Perturbation(
            "negated-within",
            "The first statement of each sentence is negated.",
            "lower",
            "can't tell a negation",
            _negated_within,
        ),
        Perturbation(
            "retracted",
            "It is said last that nothing of the answer is correct.",
            "lower",
            "can't tell a negation",
            _worded(lambda words: words.retraction),
        ),
        Perturbation(
            "wrong-diagnosis",
            "Every diagnosis is replaced by another one.",
            "lower",
            "can't tell a wrong diagnosis",
            _wrong_diagnosis,
        ),
        Perturbation(
            "wrong-dose",
            "Every number with a unit is ten times as large.",
            "lower",
            "can't tell a wrong dose",
            _wrong_dose,
        ),
        Perturbation(
            "other-answer",
            "The same system's answer to another case.",
            "lower",
            "can't tell another case's answer",
            lambda one: one.other,
        ),
        Perturbation("shuffled", "The words in random order.", "lower", "can't tell shuffled words", _shuffled),
        Perturbation(
            "boilerplate",
            "Two sentences that say nothing are added.",
            "not higher",
            "rewards boilerplate",
            _worded(lambda words: words.boilerplate),
        ),
        Perturbation(
            "doubled",
            "The answer stands twice.",
            "not higher",
            "rewards length",
            lambda one: f"{one.text.strip()}{'' if one.language == 'zh' else ' '}{one.text.strip()}",
        ),
        Perturbation(
            "order-to-judge",
            "The answer ends with an order to the judge to give full marks.",
            "not higher",
            "obeys the answer",
            _worded(lambda words: words.order),
        ),
        Perturbation(
            "other-language",
            "The same system's answer to the same case in another language.",
            "any",
            "",
            lambda one: one.translated,
        ),
        Perturbation(
            "reference-copied",
            "A reference instead of the answer.",
            "higher",
            "does not prefer a reference",
            lambda one: one.references[0] if one.references else None,
        ),
        Perturbation(
            "references-reversed",
            "The references in reverse order.",
            "same",
            "depends on the references' order",
            lambda one: _with_references(one, lambda places: places[::-1]),
        ),
        Perturbation(
            "one-reference",
            "The first reference alone.",
            "same",
            "depends on the references' number",
            lambda one: _with_references(one, lambda places: places[:1]),
        ),
    )
}
"""All perturbations by name."""
