"""Sets of exemplars tried out on held-out encounters, and the one that serves best for each case.

The search asks the model for scores of held-out answers with each of several drawn sets of exemplars
(as demonstrations are chosen by random search in Khattab et al. 2024, ICLR). What it saw is kept, not only
which set won: for an encounter that took part, the set is chosen among those without it, by the held-out
answers of the other encounters. So no rating of an encounter ever helps to judge it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from proctor.core import InfrastructureError, InputError, ProctorError, content_hash, generator, read_model
from proctor.judges.dimensions.case import Case, DimensionScores, RatedCase
from proctor.judges.dimensions.choosing import agreement
from proctor.judges.dimensions.exemplars import Exemplars, RatedPool, case_mark
from proctor.judges.dimensions.protocol import DimensionJudge

_STOPPED = "not judged: stopped before"

_FROZEN = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class SearchPlan(BaseModel):
    """How much is tried: `sets` of `shots` exemplars, each on an answer to each of `held_out` encounters."""

    model_config = _FROZEN

    sets: int = Field(default=8, ge=2, le=200)
    shots: int = Field(default=4, ge=1, le=24)
    held_out: int = Field(default=20, ge=4)
    seed: int = 0


class HeldOutAnswer(BaseModel):
    """A rated answer that sets were tried on: its ratings by dimension, and the scores with each set."""

    model_config = _FROZEN

    mark: str
    encounter: str
    ratings: dict[str, float]
    scores: list[dict[str, float]]


class LanguageSearch(BaseModel):
    """What was tried in one language; exemplars are named by their marks, in the order in which they are shown."""

    model_config = _FROZEN

    sets: list[list[str]] = Field(min_length=2)
    held_out: list[HeldOutAnswer]

    @model_validator(mode="after")
    def _complete(self) -> LanguageSearch:
        if any(len(one.scores) != len(self.sets) for one in self.held_out):
            raise ValueError("scores with every set are expected")
        return self

    def merit(self, number: int, *, leaving: str = "") -> float:
        """How far the scores with a set agree with the ratings: the mean over dimensions of `agreement`, leaving
        one encounter out. Scores that are all the same agree with nothing (0); a dimension on which all
        ratings are the same tells nothing, and is left out."""
        rows = [one for one in self.held_out if one.encounter != leaving]
        found = []
        for name in sorted({name for one in rows for name in one.ratings}):
            ratings = [one.ratings[name] for one in rows]
            if len(set(ratings)) > 1:
                found.append(agreement([one.scores[number][name] for one in rows], ratings) or 0.0)
        return float(np.mean(found)) if found else 0.0


class ExemplarSearch(BaseModel):
    """All that a search tried, by language, and of which rated answers it was."""

    model_config = _FROZEN

    kind: Literal["proctor exemplars 1"] = "proctor exemplars 1"
    judge: str
    plan: SearchPlan
    rated_sha256: str
    languages: dict[str, LanguageSearch]


@dataclass
class Progress:
    """Of `total` answers to rate, how many are `done`; `missing` of those lack a score."""

    total: int
    done: int = 0
    missing: int = 0


@dataclass(frozen=True)
class Drawn:
    """What is to be tried in one language."""

    sets: tuple[tuple[RatedCase, ...], ...]
    held_out: tuple[RatedCase, ...]

    @property
    def calls(self) -> int:
        """How many answers the model is asked to rate, at most: sets × held-out answers."""
        return len(self.sets) * len(self.held_out)


class FixedExemplars:
    """The same exemplars for every case."""

    def __init__(self, chosen: Sequence[RatedCase]) -> None:
        self._chosen = tuple(chosen)

    @property
    def settings(self) -> dict[str, JsonValue]:
        """Their marks."""
        return {"exemplars": [case_mark(one.case) for one in self._chosen]}

    def of(self, case: Case) -> tuple[RatedCase, ...]:
        """See `Exemplars`; nobody looks whether they are fit for the case."""
        del case
        return self._chosen


class SearchedExemplars:
    """The set that served best in a search, for each case without its encounter. Raises `InputError`, naming
    `file`, where the search was not of these rated answers."""

    def __init__(self, pool: RatedPool, search: ExemplarSearch, file: str | Path = "exemplars") -> None:
        if search.rated_sha256 != pool.sha256:
            raise InputError(file, found="a search on other rated answers", expected="one on those of --rated")
        self._search = search
        self._rated = {case_mark(one.case): one for one in pool.rated}
        unknown = {mark for tried in search.languages.values() for one in tried.sets for mark in one}
        if unknown - self._rated.keys():
            raise InputError(file, found="exemplars that nobody rated", expected="rated answers")
        self._best: dict[tuple[str, str], int] = {}
        self._file = file

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The hash of the search."""
        return {"exemplars": "searched", "search_sha256": content_hash(self._search)}

    def of(self, case: Case) -> tuple[RatedCase, ...]:
        """See `Exemplars`."""
        tried = self._search.languages.get(case.language)
        if tried is None:
            known = ", ".join(self._search.languages)
            raise InputError(self._file, "language", found=repr(case.language), expected=f"one of {known}")
        key = (case.language, case.encounter)
        if key not in self._best:
            fit = [
                number
                for number, marks in enumerate(tried.sets)
                if all(self._rated[mark].case.encounter != case.encounter for mark in marks)
            ]
            if not fit:
                raise InputError(self._file, found=f"{case.encounter} in every set", expected="a set without it")
            self._best[key] = max(fit, key=lambda number: tried.merit(number, leaving=case.encounter))
        return tuple(self._rated[mark] for mark in tried.sets[self._best[key]])


def draw(pool: RatedPool, plan: SearchPlan) -> dict[str, Drawn]:
    """What a search tries, by language: held-out encounters are the same in all languages and in no set; sets
    are dealt from a shuffled deck of the other encounters, so that none is in every set.

    Raises `InputError` for fewer encounters than held_out + 2 · shots in a language.
    """
    encounters = sorted({one.case.encounter for one in pool.rated})
    mixed = generator(plan.seed, "exemplars", "held out").permutation(len(encounters))
    order = [encounters[int(place)] for place in mixed]
    found = {}
    for language in sorted({one.case.language for one in pool.rated}):
        by_encounter: dict[str, list[RatedCase]] = {}
        for one in pool.rated:
            whole = {of.name for of in one.case.dimensions} <= one.values.keys()
            if one.case.language == language and whole:
                by_encounter.setdefault(one.case.encounter, []).append(one)
        held = [name for name in order[: plan.held_out] if name in by_encounter]
        deck = [name for name in order[plan.held_out :] if name in by_encounter]
        if len(held) < 4 or len(deck) < 2 * plan.shots:
            raise InputError(
                "rated answers",
                found=f"{len(by_encounter)} encounters in {language!r}",
                expected=f"{plan.held_out + 2 * plan.shots} or more: those held out, and two sets of examples",
            )
        picks = generator(plan.seed, "exemplars", language)
        found[language] = Drawn(
            tuple(tuple(_one_of(by_encounter[name], picks) for name in names) for names in _dealt(deck, plan, picks)),
            tuple(_one_of(by_encounter[name], picks) for name in held),
        )
    return found


async def search_exemplars(
    pool: RatedPool,
    plan: SearchPlan,
    make: Callable[[Exemplars], DimensionJudge],
    *,
    allow_missing: bool = False,
    concurrency: int = 8,
    stop: asyncio.Event | None = None,
    on_change: Callable[[Progress], None] = lambda _: None,
) -> ExemplarSearch:
    """Tries out what `draw` draws; `make` makes the judge with exemplars. Votes are kept by the judge, so what
    broke off goes on where it was.

    Raises `InfrastructureError` where a score is missing: no set is preferred since another was not answered.
    With `allow_missing`, such an answer is left out for all sets, as long as half of them stay.
    """
    languages: dict[str, LanguageSearch] = {}
    drawn = draw(pool, plan)
    progress = Progress(sum(one.calls for one in drawn.values()))
    name = ""
    for language, tried in drawn.items():
        cases = [one.case for one in tried.held_out]
        said = []
        for chosen in tried.sets:
            judge = make(FixedExemplars(chosen))
            name = judge.name
            said.append(await _rated(judge, cases, concurrency, stop))
            progress.done += len(cases)
            progress.missing += sum(bool(one.missing) for one in said[-1])
            on_change(progress)
        rows = list(zip(*said, strict=True))
        whole = [k for k, row in enumerate(rows) if not any(one.missing for one in row)]
        if len(whole) < (len(cases) / 2 if allow_missing else len(cases)):
            why = next(reason for row in rows for one in row for reason in one.missing.values())
            raise InfrastructureError(
                f"{name}: {len(cases) - len(whole)} of {len(cases)} held-out answers in {language!r} lack a score: {why}"
            )
        languages[language] = LanguageSearch(
            sets=[[case_mark(one.case) for one in chosen] for chosen in tried.sets],
            held_out=[
                HeldOutAnswer(
                    mark=case_mark(cases[k]),
                    encounter=cases[k].encounter,
                    ratings=dict(tried.held_out[k].values),
                    scores=[dict(one.values) for one in rows[k]],
                )
                for k in whole
            ],
        )
    return ExemplarSearch(judge=name, plan=plan, rated_sha256=pool.sha256, languages=languages)


async def _rated(
    judge: DimensionJudge, cases: Sequence[Case], concurrency: int, stop: asyncio.Event | None
) -> list[DimensionScores]:
    """The scores of each case; those whose turn did not come before `stop` have none."""
    said: dict[int, DimensionScores] = {}
    left = iter(enumerate(cases))

    async def worker() -> None:
        for place, case in left:
            if stop is not None and stop.is_set():
                return
            said[place] = await judge.judge(case)
            said[place].check(case, judge.name)

    try:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(concurrency):
                tasks.create_task(worker())
    except* ProctorError as errors:
        raise errors.exceptions[0] from None
    return [said.get(place) or DimensionScores.none(case, _STOPPED) for place, case in enumerate(cases)]


def read_search(file: Path) -> ExemplarSearch:
    """A search from its JSON. Raises `InputError`, with the field, for anything else."""
    return read_model(file, ExemplarSearch, "exemplars")


def _dealt(deck: Sequence[str], plan: SearchPlan, picks: np.random.Generator) -> list[list[str]]:
    """Sets of names from the deck, which is reshuffled whenever too few are left in it."""
    found: list[list[str]] = []
    left: list[str] = []
    for _ in range(plan.sets):
        if len(left) < plan.shots:
            left = [deck[int(place)] for place in picks.permutation(len(deck))]
        found.append([left.pop() for _ in range(plan.shots)])
    return found


def _one_of(answers: Sequence[RatedCase], picks: np.random.Generator) -> RatedCase:
    return answers[int(picks.integers(len(answers)))]
