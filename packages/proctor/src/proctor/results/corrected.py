"""A judge's scores of all answers, corrected by what clinicians gave for the answers of a sealed sample of groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np

from proctor.core import InputError, count_of, p_value, signed
from proctor.results.label_samples import JudgedAnswers, LabelSample, refuse_other_store, sampled_runs
from proctor.runs import Store
from proctor.stats import (
    FEWEST_DRAWN,
    CorrectedMean,
    Resampling,
    corrected_mean,
    holm_known,
    paired_difference,
    planned_widths,
)

_CHANGED = 0.05
"""The level of the test whether a judge has changed on the anchor set."""


@dataclass(frozen=True)
class CorrectedScore:
    """The corrected mean of a dimension: of a system (`other` is ""), or `system` minus `other` on the answers to the same
    items, with p (of no difference) and `p_holm` over all pairs of the dimension. `mean` is None where it can't be given;
    `why` says why."""

    dimension: str
    system: str
    other: str
    mean: CorrectedMean | None
    p_holm: float | None = None
    why: str = ""

    def to_json(self) -> dict[str, Any]:
        """The fields as plain data, flat."""
        names = [name for name in CorrectedMean.__dataclass_fields__ if name != "p"]
        figures = dict.fromkeys(names) if self.mean is None else {name: getattr(self.mean, name) for name in names}
        p = self.mean.p if self.mean is not None and self.other else None
        return {
            "dimension": self.dimension,
            "system": self.system,
            "other": self.other,
            **figures,
            "p": p,
            "p_holm": self.p_holm,
            "why": self.why,
        }


@dataclass(frozen=True)
class CorrectedResults:
    """Corrected scores and differences of a sample. `raters` is the smallest and the largest number of people behind an
    answer's label, `unjudged` the number of answers without a score by the judge, which no mean includes."""

    sample: LabelSample
    scores: tuple[CorrectedScore, ...]
    raters: tuple[int, int]
    unjudged: int
    notes: tuple[str, ...]
    level: float

    def planned(self) -> list[dict[str, Any]]:
        """What more labels would give, by dimension and system: half the width of the interval by the number of drawn groups,
        that of the labels alone, and the share of labels that the judge saves."""
        rows = []
        for score in self.scores:
            if score.mean is not None:
                for width in planned_widths(score.mean, _numbers(score.mean), level=self.level):
                    per_group = score.mean.labelled / score.mean.drawn
                    more = round((width.drawn - score.mean.drawn) * per_group)
                    lead = {"dimension": score.dimension, "system": score.system, "other": score.other}
                    rows.append({**lead, "groups": score.mean.groups, "more_labels": more, **asdict(width)})
        return rows


def corrected_results(
    store: Store, sample: LabelSample, *, dimensions: Sequence[str] = (), level: float = 0.95
) -> CorrectedResults:
    """The corrected means of all systems of a sample, and all paired differences.

    The label of an answer is the mean of what people gave. `dimensions` are those to show (none named: all that people
    rated and the judge scored).

    Raises `InputError` for labels of groups that were not drawn, drawn answers without a label, a judge or runs with other
    settings or answers than when the sample was drawn, a judge whose scores of the anchor set have changed, an unknown
    dimension, and a sample of too few groups.
    """
    runs = sampled_runs(store, sample.benchmark, sample.systems, sample.condition)
    scored = JudgedAnswers(store, sample.benchmark, sample.judge, runs)
    notes = _drift(scored, sample)
    refuse_other_store(sample, scored)
    labels = scored.labels()
    given = _dimensions(scored, labels, dimensions)
    _refuse_labels(scored, sample, labels, given)
    if len(sample.drawn) < FEWEST_DRAWN:
        raise InputError(
            f"drawn groups of {sample.benchmark}", found=str(len(sample.drawn)), expected=f"{FEWEST_DRAWN}"
        )
    means = {key: float(np.mean(values)) for key, values in labels.items()}
    table = _Table(scored, sample, means, level)
    scores: list[CorrectedScore] = []
    systems = sorted({system for _, system, _ in scored.scores})
    for dimension in given:
        scores += [table.score(dimension, system) for system in systems]
        pairs = [table.score(dimension, first, second) for first, second in combinations(systems, 2)]
        adjusted = holm_known([None if pair.mean is None else pair.mean.p for pair in pairs])
        scores += [
            CorrectedScore(pair.dimension, pair.system, pair.other, pair.mean, p, pair.why)
            for pair, p in zip(pairs, adjusted, strict=True)
        ]
    counts = [len(values) for key, values in labels.items() if key[2] in given]
    texts = {key for key in scored.given.texts if key[1] in scored.names}
    unjudged = len(texts - {key[:2] for key in scored.scores})
    raters = (min(counts), max(counts))
    return CorrectedResults(sample, tuple(scores), raters, unjudged, tuple(notes), level)


def cannot_say(found: CorrectedResults) -> list[str]:
    """What corrected scores don't say, a line for each."""
    sample = found.sample
    return [
        f"Not for other systems, prompts or answers than the {len(sample.runs)} sampled runs: draw a sample of them.",
        f"Not for another judge or version than {sample.judge} ({sample.judge_sha256[:8]}): draw a sample with it.",
        "Not for a single answer or group: only the means are corrected. Read the answers instead.",
        "Not for other patients or sites than those the groups stand for: label groups from there.",
    ]


# -- refusals


def _dimensions(
    scored: JudgedAnswers, labels: Mapping[tuple[str, str, str], list[float]], named: Sequence[str]
) -> list[str]:
    judged = {key[2] for key in scored.scores}
    rated = dict.fromkeys(sorted(key[2] for key in labels))
    if not rated:
        expected = "some: proctor review export DIR STUDY --what scores"
        raise InputError(
            scored.store.shown, f"ratings of {scored.benchmark}", found="none by people", expected=expected
        )
    both = [name for name in rated if name in judged]
    for name in named or both[:1] or ["any dimension"]:
        if name not in both:
            found = f"{name!r}; people rated {', '.join(rated)}, the judge {', '.join(sorted(judged))}"
            raise InputError(scored.store.shown, "dimension", found=found, expected="one that both scored")
    return list(named) or both


def _refuse_labels(
    scored: JudgedAnswers,
    sample: LabelSample,
    labels: Mapping[tuple[str, str, str], list[float]],
    dimensions: Sequence[str],
) -> None:
    """Raises `InputError` for hand-picked labels and for drawn answers without one."""
    where, drawn = scored.store.shown, set(sample.drawn)
    outside = sorted(key for key in labels if scored.group(key[0]) not in drawn)
    if outside:
        groups = {scored.group(item) for item, _, _ in outside}
        found = f"{count_of(len(outside), 'label')} in {count_of(len(groups), 'group')} not drawn ({outside[0][0]!r})"
        expected = (
            "labels of the sealed sample only: hand-picked ones can turn a comparison round; keep them in another store"
        )
        raise InputError(where, f"labels of {scored.benchmark}", found=found, expected=expected)
    due = {key for key in scored.scores if key[2] in dimensions and scored.group(key[0]) in drawn}
    if lacking := sorted(due - labels.keys()):
        found = f"none for {count_of(len(lacking), 'drawn answer')} of {len(due)}, the first {', '.join(lacking[0])}"
        expected = "one for each: what nobody has labelled yet may differ (proctor review status DIR)"
        raise InputError(where, f"labels of {scored.benchmark}", found=found, expected=expected)


def _now(
    scored: JudgedAnswers, sample: LabelSample, anchor: Mapping[tuple[str, str, str], float]
) -> dict[tuple[str, str, str], float]:
    """The judge's present scores of the anchor set, under the names that the set has."""
    general = {name for _, _, name in scored.scores}
    known = scored.scores if {name for _, _, name in anchor} <= general else scored.given.scores(sample.judge)
    return {key: known[key] for key in anchor if key in known}


def _drift(scored: JudgedAnswers, sample: LabelSample) -> list[str]:
    """A note where the judge's scores of the anchor set differ from those of the sample by chance. Raises `InputError` where
    they differ by more than chance, and where some are missing."""
    anchor = {(item, system, name): value for item, system, name, value in sample.anchor}
    now = _now(scored, sample, anchor)
    where = scored.store.shown
    if gone := sorted(anchor.keys() - now.keys()):
        found = f"none for {count_of(len(gone), 'answer')} of {len(anchor)}, the first {', '.join(gone[0])}"
        expected = f"one for each: proctor score {sample.benchmark}"
        raise InputError(where, f"scores of the anchor set by {sample.judge}", found=found, expected=expected)
    changed = [key for key in anchor if now[key] != anchor[key]]
    if not changed:
        return []
    keys = sorted(anchor)
    groups = [scored.group(item) for item, _, _ in keys]
    test = paired_difference(
        [now[key] for key in keys], [anchor[key] for key in keys], groups, Resampling(seed=sample.seed)
    )
    shift = "" if test.value is None else f", by {signed(test.value)} on average"
    ends = "" if test.ci_low is None or test.ci_high is None else f" [{signed(test.ci_low)}, {signed(test.ci_high)}]"
    said = f"{len(changed)} of {len(anchor)} scores of the anchor set changed{shift}{ends}, p = {p_value(test.p)}"
    if test.p is None or test.p > _CHANGED:
        return [f"The judge was asked again: {said}; no more than chance."]
    expected = f"the scores of {sample.made[:10]}: the judge has changed; draw again, or score with the former version"
    raise InputError(where, f"judge {sample.judge}", found=said, expected=expected)


# -- estimates


class _Table:
    """Scores and labels as arrays, by dimension and system."""

    def __init__(
        self, scored: JudgedAnswers, sample: LabelSample, labels: Mapping[tuple[str, str, str], float], level: float
    ) -> None:
        self.scored, self.labels, self.level = scored, labels, level
        self.drawn = set(sample.drawn)
        self.stratum = {group: position for position, one in enumerate(sample.strata) for group in one.groups}
        self.chance = [one.probability for one in sample.strata]
        self.items: dict[tuple[str, str], set[str]] = {}
        for item, system, dimension in scored.scores:
            self.items.setdefault((system, dimension), set()).add(item)

    def bounds(self, dimension: str) -> tuple[float, float] | None:
        """The ends of a dimension's scale, where it has both."""
        metric = self.scored.given.card.metric(dimension)
        return (metric.low, metric.high) if np.isfinite([metric.low, metric.high]).all() else None

    def score(self, dimension: str, system: str, other: str = "") -> CorrectedScore:
        """The corrected mean of a system, or the corrected difference of two."""
        items = self.items.get((system, dimension), set())
        if other:
            items = items & self.items.get((other, dimension), set())
        own = [item for item in sorted(items) if self.scored.group(item) in self.stratum]
        groups = [self.scored.group(item) for item in own]
        strata = [self.stratum[group] for group in groups]
        inside = [group in self.drawn for group in groups]
        scores, labels = self.scored.scores, self.labels

        def values(source: Mapping[tuple[str, str, str], float], chosen: Sequence[bool]) -> list[float]:
            return [
                source[item, system, dimension] - (source[item, other, dimension] if other else 0.0) if take else 0.0
                for item, take in zip(own, chosen, strict=True)
            ]

        try:
            mean = corrected_mean(
                values(scores, [True] * len(own)),
                values(labels, inside),
                groups,
                [self.chance[stratum] for stratum in strata],
                inside,
                strata,
                level=self.level,
                bounds=None if other else self.bounds(dimension),
            )
        except InputError as error:
            return CorrectedScore(dimension, system, other, None, why=str(error))
        return CorrectedScore(dimension, system, other, mean)


def _numbers(mean: CorrectedMean) -> list[int]:
    """Numbers of drawn groups to plan for: as now, and up to all."""
    wanted = [mean.drawn, *(round(mean.drawn * factor) for factor in (1.5, 2, 3)), mean.groups]
    return sorted({min(one, mean.groups) for one in wanted})
