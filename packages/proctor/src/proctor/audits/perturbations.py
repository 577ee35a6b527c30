"""Changed answers, and how far a scorer's scores move when it is given them.

Each perturbation changes an answer, or its references, in one way, and states what a sound scorer does then. The wording
of each language is in `perturbations.yaml`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Literal

import numpy as np

from proctor.core import Answer, FrozenModel, Item, read_yaml
from proctor.stats import Estimate, Floats, Resampling, Share, sums_interval, sums_intervals

Expected = Literal["lower", "not higher", "same", "higher", "any"]
"""The score of a changed answer by a sound scorer, relative to the original answer."""

_HAN = re.compile(r"[\u4e00-\u9fff]")

_SENTENCES = re.compile(r"(?<=[.!?。！？；;\n])\s*")

_NUMBER = r"(?<![\d.])(\d+(?:\.\d+)?)(?=\s*-?\s*{units})"


class Wording(FrozenModel):
    """The wording of perturbations in one language: sentences around {text}, words at which statements are negated, units
    of doses, and diagnoses that replace each other."""

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
    found = read_yaml(Path(__file__).with_name("perturbations.yaml"))
    return {language: Wording.model_validate(one) for language, one in found.items()}


@dataclass(frozen=True)
class Material:
    """An answer in free text, and the material to change it. `other` is the same system's answer to another case,
    `translated` its answer to the same case in another language ('' without one)."""

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
        """The wording of its language, if known."""
        return wordings().get(self.language)

    def says(self, term: str) -> bool:
        """Whether the question, the references or the answer contain the term."""
        return any(term.casefold() in one.casefold() for one in (self.item.question, self.text, *self.references))


Change = Callable[[Material], str | Item | None]
"""The changed text, or the item with changed references; None if the perturbation does not apply."""


@dataclass(frozen=True)
class Perturbation:
    """One way to change an answer. `does` describes it; `fault` describes a scorer that does not react as expected."""

    name: str
    does: str
    expected: Expected
    fault: str
    change: Change

    def of(self, material: Material, answer: Answer) -> tuple[Item, Answer] | None:
        """The changed item and answer; None if nothing would change."""
        found = self.change(material)
        if isinstance(found, Item):
            return (found, answer) if found != material.item else None
        if not found or (found == material.text and self.name != AGAIN):
            return None
        return material.item, answer.model_copy(update={"text": found, "parsed": found})


AGAIN = "asked-again"
"""The perturbation that changes nothing and repeats the request."""


def language_of(item: Item, text: str) -> str:
    """The item's language; without a tag Chinese by its characters, else English.

    >>> language_of(Item.model_construct(tags={}), "湿疹"), language_of(Item.model_construct(tags={}), "Eczema")
    ('zh', 'en')
    """
    return str(item.tags.get("language", "")) or ("zh" if _HAN.search(text) else "en")


def _worded(location: Callable[[Wording], str]) -> Change:
    return lambda material: (
        None if material.wording is None else location(material.wording).replace("{text}", material.text.strip())
    )


def _any_of(terms: Sequence[str], language: str) -> str:
    """A pattern for any of the terms, the longest first; whole words in languages with spaces."""
    listed = "|".join(re.escape(term) for term in sorted(terms, key=len, reverse=True))
    return f"(?:{listed})" if language == "zh" else rf"(?<!\w)(?:{listed})(?!\w)"


def _negated_within(material: Material) -> str | None:
    """Each sentence with its first statement negated, or its negation removed."""
    wording = material.wording
    if wording is None:
        return None
    parts = [_turned(part, wording, material.language) for part in _SENTENCES.split(material.text)]
    return _joined(material.text, parts)


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
            word = found[0].strip()
            new = f"{word}{apart}{no}" if behind else f"{no}{apart}{word[0].lower()}{word[1:]}"
            new = new[0].upper() + new[1:] if word[0].isupper() else new
            return sentence[: found.start()] + new + sentence[found.end() :]
    return sentence


def _wrong_diagnosis(material: Material) -> str | None:
    """Every known diagnosis in the answer replaced by one that is in neither question, references nor answer."""
    wording = material.wording
    free = [] if wording is None else [term for term in wording.diagnoses if not material.says(term)]
    if wording is None or not free:
        return None
    drawn: dict[str, str] = {}

    def instead(found: re.Match[str]) -> str:
        return drawn.setdefault(found[0].casefold(), free[int(material.rng.integers(len(free)))])

    return re.sub(_any_of(wording.diagnoses, material.language), instead, material.text, flags=re.IGNORECASE)


def _wrong_dose(material: Material) -> str | None:
    """Every number with a unit multiplied by ten."""
    wording = material.wording
    if wording is None:
        return None
    end = "" if material.language == "zh" else r"(?!\w)"
    units = "|".join(re.escape(unit) for unit in sorted(wording.units, key=len, reverse=True))
    figures = _NUMBER.replace("{units}", rf"(?:{units}){end}")
    text = re.sub(figures, lambda found: f"{float(found[1]) * 10:g}", material.text, flags=re.IGNORECASE)
    words = "|".join(sorted(wording.ten_times, key=len, reverse=True))
    spelt = (
        rf"({words})(?=(?:{units}))"
        if material.language == "zh"
        else rf"(?<!\w)({words})(?=\s+(?:{units}|a|daily|per){end})"
    )
    return re.sub(spelt, lambda found: wording.ten_times[found[1].casefold()], text, flags=re.IGNORECASE)


def _shuffled(material: Material) -> str:
    parts = list(material.text) if material.language == "zh" else material.text.split()
    apart = "" if material.language == "zh" else " "
    return apart.join(parts[row] for row in material.rng.permutation(len(parts)))


def _with_references(material: Material, order: Callable[[Sequence[int]], Sequence[int]]) -> Item | None:
    given = material.item.reference
    if given is None or len(material.references) != 1 + len(given.accepted) or len(material.references) < 2:
        return None
    kept = list(order(range(len(material.references))))
    texts = [material.references[row] for row in kept]
    about = tuple(given.reliability[row] for row in kept) if given.reliability else ()
    changed = {"answer": texts[0], "accepted": tuple(texts[1:]), "reliability": about}
    return material.item.model_copy(update={"reference": given.model_copy(update=changed)})


PERTURBATIONS: Mapping[str, Perturbation] = {
    one.name: one
    for one in (
        Perturbation(
            AGAIN, "The scorer is asked once more.", "same", "does not repeat itself", lambda material: material.text
        ),
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
            lambda material: material.other,
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
            lambda material: (
                f"{material.text.strip()}{'' if material.language == 'zh' else ' '}{material.text.strip()}"
            ),
        ),
        Perturbation(
            "order-to-judge",
            "The answer ends with an instruction to the judge to give the best score.",
            "not higher",
            "obeys the answer",
            _worded(lambda words: words.order),
        ),
        Perturbation(
            "other-language",
            "The same system's answer to the same case in another language.",
            "any",
            "",
            lambda material: material.translated,
        ),
        Perturbation(
            "reference-copied",
            "A reference instead of the answer.",
            "higher",
            "does not prefer a reference",
            lambda material: material.references[0] if material.references else None,
        ),
        Perturbation(
            "references-reversed",
            "The references in reverse order.",
            "same",
            "depends on the references' order",
            lambda material: _with_references(material, lambda locations: locations[::-1]),
        ),
        Perturbation(
            "one-reference",
            "The first reference alone.",
            "same",
            "depends on the references' number",
            lambda material: _with_references(material, lambda locations: locations[:1]),
        ),
    )
}
"""All perturbations by name."""

SMALL = 0.2
"""A shift below this number of standard deviations is small (Cohen 1988, Statistical Power Analysis, section 2.2.3)."""

_MIN_GROUPS = 5  # for intervals and findings
_NONE = Estimate(None, None, None, 0, 0)


@dataclass(frozen=True, slots=True)
class ProbedAnswer:
    """One answer and its scores by metric (higher is better): of the `original`, and `changed` by perturbation. Missing
    scores are left out; `missing` gives the reasons by perturbation ("" for the original)."""

    item: str
    system: str
    group: str
    language: str
    original: Mapping[str, float]
    changed: Mapping[str, Mapping[str, float]]
    missing: Mapping[str, str] = field(default_factory=dict)
    repetition: int = 0


@dataclass(frozen=True, slots=True)
class Shift:
    """The effect of one perturbation on a scorer's scores in one language (`dimension` "": on the mean over all).

    `shift` is the mean change and `moved` the mean absolute change, in standard deviations of the original scores; `fell`
    is the share of answers with a lower score. All have intervals over groups. `finding` is "as expected", "unclear", or
    the fault. `answers` were changed and scored, `missing` changed and not scored; `reason` explains missing figures.
    """

    scorer: str
    language: str
    perturbation: str
    expected: str
    dimension: str
    shift: Estimate
    moved: Estimate
    fell: Estimate
    answers: int
    groups: int
    missing: int
    finding: str
    reason: str = ""


@dataclass(frozen=True)
class Sensitivity:
    """The effects of the perturbations in `asked` on one scorer; `notes` are remarks for the reader."""

    scorer: str
    probed: tuple[ProbedAnswer, ...]
    asked: tuple[str, ...]
    plan: Resampling = Resampling()
    notes: tuple[str, ...] = ()

    @cached_property
    def shifts(self) -> tuple[Shift, ...]:
        """By language and perturbation: the mean over the dimensions, then each dimension."""
        found: list[Shift] = []
        for language in sorted({answer.language for answer in self.probed}):
            own = [answer for answer in self.probed if answer.language == language and answer.original]
            for name in self.asked:
                found += _shifts(self.scorer, language, PERTURBATIONS[name], own, self.plan)
        return tuple(found)

    @property
    def faults(self) -> tuple[tuple[str, str], ...]:
        """The distinct (language, fault) pairs."""
        known = {perturbation.fault for perturbation in PERTURBATIONS.values() if perturbation.fault}
        given = [
            (shift.language, shift.finding) for shift in self.shifts if not shift.dimension and shift.finding in known
        ]
        return tuple(dict.fromkeys(given))


def _shifts(
    scorer: str, language: str, how: Perturbation, probed: Sequence[ProbedAnswer], plan: Resampling
) -> list[Shift]:
    dimensions = list(dict.fromkeys(name for answer in probed for name in answer.original))
    whole = [answer for answer in probed if answer.original.keys() >= {*dimensions}]
    pairs = [answer for answer in whole if answer.changed.get(how.name, {}).keys() >= {*dimensions}]
    missing = sum(how.name in answer.missing for answer in probed)
    before = _originals(whole, dimensions)
    spread = before.std(axis=0) if whole else np.zeros(len(dimensions))
    varied = [index for index, one in enumerate(spread) if one > 1e-9]
    reason = "" if varied else "all scores are the same"
    reason = reason if pairs else _unchanged(how, probed)
    groups = len({pair.group for pair in pairs})
    blank = Shift(
        *(scorer, language, how.name, how.expected, "", _NONE, _NONE, _NONE, len(pairs), groups, missing, "", reason)
    )
    if reason:
        return [blank]
    names = [dimensions[index] for index in varied]
    table = _table(whole, before[:, varied], spread[varied], names, how.name)
    clusters = [answer.group for answer in whole]
    found = sums_intervals(table, clusters, lambda sums: _statistics(sums, len(names)), plan=plan)
    column = np.eye(table.shape[1]).tolist()
    rows = []
    for index, name in enumerate(["", *names]):
        fell = sums_interval(table, clusters, Share(tuple(column[2 + index]), tuple(column[1])), plan=plan)
        kinds = (found[2 * index], found[2 * index + 1], fell)
        shift, moved, fell = (_counted(estimate, len(pairs), groups) for estimate in kinds)
        row = replace(blank, dimension=name, shift=shift, moved=moved, fell=fell)
        rows.append(replace(row, finding=_finding(how, row)))
    return rows


def _originals(answers: Sequence[ProbedAnswer], dimensions: Sequence[str]) -> Floats:
    """The scores of the unchanged answers: answers × dimensions."""
    return np.array([[answer.original[name] for name in dimensions] for answer in answers]).reshape(len(answers), -1)


def _unchanged(how: Perturbation, probed: Sequence[ProbedAnswer]) -> str:
    """Why no answer was changed: the first reason given."""
    reasons = (answer.missing[how.name] for answer in probed if how.name in answer.missing)
    return next(reasons, "no answer can be changed so")


def _table(whole: Sequence[ProbedAnswer], before: Floats, spread: Floats, names: Sequence[str], how: str) -> Floats:
    """The summands of the statistics for each answer: 1, whether it was changed, whether the mean and each dimension fell,
    and by dimension the centred score (for precision) and its square, the change, and the absolute change."""
    rows = []
    middle = before.mean(axis=0)
    for one, scores in zip(whole, before - middle, strict=True):
        there = all(name in one.changed.get(how, {}) for name in names)
        change = np.array([one.changed[how][name] - one.original[name] if there else 0.0 for name in names])
        change[np.abs(change) < 1e-9] = 0.0
        fell = [float((change / spread).mean() < -1e-9), *(change < 0).astype(float)]
        rows.append([1.0, float(there), *fell, *scores, *scores**2, *change, *np.abs(change)])
    return np.array(rows)


def _statistics(sums: Floats, many: int) -> Floats:
    """Samples × (shift, moved) of the mean over the dimensions, then of each dimension."""
    with np.errstate(divide="ignore", invalid="ignore"):
        n, there = sums[:, :1], sums[:, 1:2]
        parts = [sums[:, 3 + many + many * k : 3 + many + many * (k + 1)] for k in range(4)]
        spread = np.sqrt(np.maximum(parts[1] / n - (parts[0] / n) ** 2, 0.0))
        spread[spread < 1e-9] = np.nan
        shift, moved = (part / there / spread for part in parts[2:])
        each = [np.column_stack([one.mean(axis=1), one]) for one in (shift, moved)]
    return np.stack(each, axis=2).reshape(len(sums), -1)


def _counted(estimate: Estimate, n: int, groups: int) -> Estimate:
    """With the counts of changed answers (the spread uses all answers), and without an interval below five groups."""
    if groups < _MIN_GROUPS:
        return Estimate(estimate.value, None, None, n, groups)
    return replace(estimate, n=n, groups=groups)


def _finding(how: Perturbation, row: Shift) -> str:
    """The finding that the shift's interval supports. A scorer notices a perturbation if scores fall significantly, and by
    `SMALL` or more; it does not if the whole interval is above that, or if no score changes in five groups or more."""
    if how.expected == "any":
        return ""
    measured = row.moved if how.expected == "same" else row.shift
    low, high, value = measured.ci_low, measured.ci_high, measured.value
    if low is None or high is None or value is None:
        if value == 0.0 and row.moved.value == 0.0 and row.groups >= _MIN_GROUPS:
            low = high = 0.0
        else:
            return "unclear"
    if how.expected in {"lower", "higher"}:
        sign = 1.0 if how.expected == "higher" else -1.0
        low, high = sorted((sign * low, sign * high))
        good, bad = low > 0 and sign * value >= SMALL, high < SMALL
    else:
        good, bad = high < SMALL, low > 0 and value >= SMALL
    return "as expected" if good else how.fault if bad else "unclear"
