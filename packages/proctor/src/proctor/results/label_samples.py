"""Which groups people are to label, so that a judge's scores can be corrected: drawn with known probabilities, and sealed.

A sample is a JSON file. It records the strata of all groups, the seed, the probability of each stratum, the drawn groups,
the judge's settings and its scores of the drawn groups. The drawn groups follow from the rest, so a hand-picked group is noticed
also where somebody computed the hash again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

import numpy as np
from pydantic import Field, JsonValue, ValidationError

from proctor.core import (
    HUMAN,
    FrozenModel,
    InputError,
    ProblemsError,
    content_hash,
    count_of,
    generator,
    one_of,
    problem_texts,
    read_json,
    store_word,
    write_whole,
)
from proctor.results.facets import facets_meant
from proctor.results.ratings import GivenScores, judges_of
from proctor.runs import BASELINES, SIGHT, Run, Store, chosen_runs
from proctor.stats import FEWEST_DRAWN

_LEAST = 2
"""Drawn groups of a stratum, so that its variance is known."""

Anchor = tuple[str, str, str, float]
"""An item, a system, a dimension and the judge's score."""


class SampledStratum(FrozenModel):
    """Groups that were drawn together: the judge's scores below or above the median, within these facets."""

    name: str
    groups: tuple[str, ...]
    drawn: int

    @property
    def probability(self) -> float:
        """The probability with which each of its groups was drawn."""
        return self.drawn / len(self.groups)


class LabelSample(FrozenModel):
    """A sealed sample of groups (`sha256` over all other fields). `judge_sha256` is the hash of the judge's settings, its
    prompt among them; `runs` has, by system, the hash of the run's settings and answers. `anchor` are the judge's scores of
    the drawn groups, by which a judge that changed is noticed later."""

    benchmark: str
    judge: str
    judge_sha256: str
    judge_settings: dict[str, JsonValue]
    systems: tuple[str, ...]
    condition: str
    by: tuple[str, ...]
    seed: int
    strata: tuple[SampledStratum, ...] = Field(min_length=1)
    drawn: tuple[str, ...]
    runs: dict[str, str]
    anchor: tuple[Anchor, ...]
    made: str
    sha256: str = ""

    @property
    def content(self) -> str:
        """The hash of all fields but the seal."""
        return content_hash(self.model_dump(mode="json", exclude={"sha256"}))

    def sealed(self) -> Self:
        """The sample with its hash."""
        return self.model_copy(update={"sha256": self.content})

    def redrawn(self) -> tuple[str, ...]:
        """The groups that follow from strata, numbers and seed."""
        return tuple(sorted(group for stratum in self.strata for group in _draw(stratum, self.seed)))


def draw_sample(
    store: Store,
    benchmark: str,
    judge: str,
    groups: int,
    *,
    by: Sequence[str] = (),
    systems: Sequence[str] = (),
    condition: str = "",
    seed: int = 0,
) -> LabelSample:
    """Draw whole groups of the answers that a judge scored, stratified by facets and by the judge's mean score of the
    group (below or above the median). The number of a stratum is proportional to its size, and at least two: strata too
    small for that are joined. Baselines are sampled where they are named.

    Raises `InputError` for an unknown judge, system, condition or facet, for runs under several conditions, for answers that
    people rated already, and if fewer than `FEWEST_DRAWN` groups or more than there are would be drawn.
    """
    runs = sampled_runs(store, benchmark, systems, condition)
    scored = JudgedAnswers(store, benchmark, judge, runs)
    every = sorted({scored.group(item) for item, _, _ in scored.scores})
    if not FEWEST_DRAWN <= groups <= len(every):
        found = f"{groups} of {count_of(len(every), 'group')} with scores by {judge}"
        expected = f"{FEWEST_DRAWN} to {len(every)}; with fewer, intervals no longer cover as they say"
        raise InputError(store.shown, "groups to draw", found=found, expected=expected)
    if labelled := scored.labels():
        found = f"{count_of(len(labelled), 'rating')} of answers by people"
        expected = "none: a sample is drawn before anybody labels (take a --store without ratings)"
        raise InputError(store.shown, f"ratings of {benchmark}", found=found, expected=expected)
    strata = _strata(scored, every, groups, _facets(scored, by))
    drawn = tuple(sorted(group for stratum in strata for group in _draw(stratum, seed)))
    chosen = set(drawn)
    return LabelSample(
        benchmark=benchmark,
        judge=judge,
        judge_settings=scored.judge_settings,
        judge_sha256=content_hash(scored.judge_settings),
        systems=tuple(systems),
        condition=condition,
        by=tuple(by),
        seed=seed,
        strata=tuple(strata),
        drawn=drawn,
        runs=scored.run_hashes,
        anchor=tuple((*key, value) for key, value in sorted(scored.scores.items()) if scored.group(key[0]) in chosen),
        made=datetime.now(UTC).isoformat(timespec="seconds"),
    ).sealed()


def write_sample(sample: LabelSample, file: Path) -> None:
    """Write a sample as JSON. Raises `InputError` where a file is already: a sample is drawn once."""
    if file.exists():
        raise InputError(
            file, found="a file", expected="none: a sample is drawn once, and not drawn again until it suits"
        )
    write_whole(file, sample.model_dump_json(indent=1) + "\n")


def read_sample(file: Path) -> LabelSample:
    """Read a sample. Raises `ProblemsError` for other files, and `InputError` for a changed one and for groups that were
    not drawn by its seed."""
    try:
        sample = LabelSample.model_validate(read_json(file, "a sample (proctor review sample)"))
    except ValidationError as error:
        raise ProblemsError(file, problem_texts(error, LabelSample)) from error
    if sample.content != sample.sha256:
        expected = f"{sample.content[:12]}…, that of its fields: the file was changed after it was sealed"
        raise InputError(file, "field 'sha256'", found=f"{sample.sha256[:12]}…", expected=expected)
    if sample.redrawn() != sample.drawn:
        other = sorted(set(sample.drawn) ^ set(sample.redrawn()))
        found = f"{count_of(len(other), 'group')} that seed {sample.seed} does not draw, or leaves out ({other[0]!r})"
        raise InputError(
            file, "field 'drawn'", found=found, expected="the drawn groups: hand-picked ones prove nothing"
        )
    return sample


def sampled_runs(store: Store, benchmark: str, systems: Sequence[str], condition: str) -> list[Run]:
    """The runs of a sample. Raises `InputError` for unknown names, for several conditions, and where there is none."""
    runs = chosen_runs(store, benchmark, systems, [condition] if condition else [])
    runs = [run for run in runs if systems or run.system not in BASELINES]
    conditions = sorted({run.condition for run in runs})
    if len(conditions) != 1:
        found = f"runs under {', '.join(conditions)}" if conditions else "no run but baselines"
        raise InputError(
            store.shown, f"runs of {benchmark}", found=found, expected="runs under one condition: --condition"
        )
    return runs


class JudgedAnswers:
    """The answers of runs that a judge scored, by item, system and dimension. Answers without a text are left out, as in a
    study."""

    def __init__(self, store: Store, benchmark: str, judge: str, runs: Sequence[Run]) -> None:
        known = [name for name in judges_of(store, benchmark) if not name.startswith(HUMAN)]
        if judge not in known:
            listed = f"one of {', '.join(known)}" if known else f"one that has scored (proctor score {benchmark})"
            raise InputError(store.shown, f"judge of {benchmark}", found=repr(judge), expected=listed)
        self.store, self.benchmark = store, benchmark
        self.given = GivenScores(store, benchmark, all_items=False, short_names=True)
        self.names = {self.given.named[run.id] for run in runs}
        self.people = [name for name in judges_of(store, benchmark) if name.startswith(HUMAN)]
        self.by_person = {name: self._of(name) for name in self.people}
        rated = {key for own in self.by_person.values() for key in own}
        own = self._of(judge)
        self.scores = self.given.on_dimensions(judge, own, rated) if rated else own
        self.judge_settings: dict[str, JsonValue] = dict(store.card(benchmark).scorers.get(judge, {}))
        self.run_hashes = {self.given.named[run.id]: self._run_hash(run) for run in runs}

    def _of(self, scorer: str) -> dict[tuple[str, str, str], float]:
        return {
            key: value
            for key, value in self.given.scores(scorer).items()
            if key[1] in self.names and self.given.texts.get(key[:2], "").strip()
        }

    def _run_hash(self, run: Run) -> str:
        name = self.given.named[run.id]
        texts: list[JsonValue] = [
            [item, text] for (item, system), text in sorted(self.given.texts.items()) if system == name
        ]
        settings = {name: value for name, value in run.settings.items() if name != SIGHT}  # it may come later
        return content_hash({"settings": settings, "answers": texts})

    def group(self, item: str) -> str:
        """The group of an item."""
        return self.given.items[item].group

    def labels(self) -> dict[tuple[str, str, str], list[float]]:
        """What people gave, by item, system and dimension: one number from each."""
        found: dict[tuple[str, str, str], list[float]] = {}
        for own in self.by_person.values():
            for key, value in own.items():
                found.setdefault(key, []).append(value)
        return found


# -- strata


def _facets(scored: JudgedAnswers, by: Sequence[str]) -> dict[str, str]:
    """The values of the facets of each group; several values of one group are joined."""
    table = scored.given.table
    names = facets_meant(table.facet_names(), by)
    values: dict[str, set[str]] = {}
    if unknown := [name for name in names if name not in table.facet_names()]:
        expected = one_of(sorted(table.facet_names()), unknown[0])
        raise InputError(scored.store.shown, "facet", found=repr(unknown[0]), expected=expected)
    columns = [table.facet(name) for name in names]
    for row, item in enumerate(table.ids):
        own = ", ".join("/".join(column[row]) for column in columns)
        values.setdefault(scored.group(item), set()).add(own)
    return {group: " and ".join(sorted(own)) for group, own in values.items()}


def _strata(
    scored: JudgedAnswers, groups: Sequence[str], wanted: int, facets: Mapping[str, str]
) -> list[SampledStratum]:
    means = _group_means(scored)
    parts: list[tuple[str, list[str]]] = []
    for value in sorted({facets[group] for group in groups}):
        own = sorted((group for group in groups if facets[group] == value), key=lambda group: (means[group], group))
        half = len(own) // 2
        for name, some in (("low scores", own[:half]), ("high scores", own[half:])):
            if some:
                parts.append((f"{value}: {name}" if value else name, some))
    while len(parts) > 1 and min(len(some) for _, some in parts) * wanted < _LEAST * len(groups):
        parts.sort(key=lambda part: (len(part[1]), part[0]))
        (first, one), (second, other) = parts[:2]
        parts = [(f"{first} + {second}", one + other), *parts[2:]]
    shares = [wanted * len(some) / len(groups) for _, some in parts]
    numbers = [int(share) for share in shares]
    for position in sorted(range(len(parts)), key=lambda one: (numbers[one] - shares[one], one))[
        : wanted - sum(numbers)
    ]:
        numbers[position] += 1
    return [
        SampledStratum(name=name, groups=tuple(sorted(some)), drawn=number)
        for (name, some), number in zip(parts, numbers, strict=True)
    ]


def _group_means(scored: JudgedAnswers) -> dict[str, float]:
    """The judge's mean score of each group, each dimension on the range of its scores."""
    ranges: dict[str, tuple[float, float]] = {}
    for (_, _, dimension), value in scored.scores.items():
        low, high = ranges.get(dimension, (value, value))
        ranges[dimension] = (min(low, value), max(high, value))
    found: dict[str, list[float]] = {}
    for (item, _, dimension), value in scored.scores.items():
        low, high = ranges[dimension]
        found.setdefault(scored.group(item), []).append((value - low) / (high - low) if high > low else 0.5)
    return {group: float(np.mean(sorted(values))) for group, values in found.items()}


def _draw(stratum: SampledStratum, seed: int) -> list[str]:
    if not 0 < stratum.drawn <= len(stratum.groups):
        return []
    own = sorted(stratum.groups)
    chosen = generator(seed, "label sample", stratum.name).choice(len(own), stratum.drawn, replace=False)
    return [own[position] for position in chosen.tolist()]


def refuse_other_store(sample: LabelSample, scored: JudgedAnswers) -> None:
    """Raises `InputError` where the judge has other settings than when the sample was drawn, or a run other answers or
    settings."""
    store, where = scored.store, store_word(scored.store.shown)
    if content_hash(scored.judge_settings) != sample.judge_sha256:
        before = sample.judge_settings
        now = scored.judge_settings
        names = sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
        found = f"another version ({', '.join(names)})"
        expected = f"that of the sample of {sample.made[:10]}: labels of one judge don't correct another; draw again"
        raise InputError(where, f"judge {sample.judge}", found=found, expected=expected)
    for name, sha256 in sample.runs.items():
        if scored.run_hashes.get(name) != sha256:
            found = "no such run" if name not in scored.run_hashes else "other answers, or another prompt or setting"
            expected = f"those of the sample of {sample.made[:10]}; draw again for new answers"
            raise InputError(store.shown, f"run {name}", found=found, expected=expected)
