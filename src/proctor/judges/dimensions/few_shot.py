"""Rated answers that a judge is shown before it rates (few-shot examples): chosen from a rated set, never from the
encounter judged.

After SUAT-BMI (Peng et al. 2026, in section 6.1 of the overview): those most like the case, those that spread over the
scale, or those that a search on held-out encounters found to serve best. The search asks the model for scores of
held-out answers with each of several drawn sets of examples (as demonstrations are chosen by random search in Khattab
et al. 2024, ICLR). What it saw is kept, not only which set won: for an encounter that took part, the set is chosen
among those without it, by the held-out answers of the other encounters. So no rating of an encounter ever helps to
judge it.
"""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from proctor.core import (
    InfrastructureError,
    InputError,
    JudgementCache,
    ProctorError,
    content_hash,
    count_of,
    generator,
    read_model,
)
from proctor.judges.cached_model import together
from proctor.judges.dimensions.case import Case, DimensionScores, RatedCase, encounter_marks
from proctor.judges.dimensions.fitted import agreement
from proctor.judges.dimensions.model_judge import Context, ModelJudge
from proctor.judges.dimensions.scorer import DimensionJudge
from proctor.judges.prompt_injection import sanitize
from proctor.metrics.text import Encoder, tokens
from proctor.models import ModelClient
from proctor.stats import Floats

_QUERY, _REFERENCE, _CANDIDATE = 600, 200, 800  # characters of each that an example shows
_REFERENCES = 3


class FewShotExamples(ABC):
    """Chooses rated answers to show before a case is judged; a context of a judge."""

    cites = False
    settings: dict[str, JsonValue]

    @abstractmethod
    def of(self, case: Case) -> tuple[RatedCase, ...]:
        """The examples of a case, in the order in which they are shown: in its language, rated on its
        dimensions, none to a question of its encounter. Raises `InputError` where there are too few."""

    async def context(self, case: Case, judge: str) -> Context:
        """See `ContextProvider`."""
        chosen = without_own(self.of(case), case, judge)
        told: JsonValue = [{"item": one.case.id, "mark": case_mark(one.case)} for one in chosen]
        return Context({"exemplars": [shown(one) for one in chosen]}, {"exemplars": told})


def without_own(chosen: tuple[RatedCase, ...], case: Case, judge: str) -> tuple[RatedCase, ...]:
    """The examples as they are. Raises `ProctorError` for one of the encounter that is judged, no matter who chose
    it: its ratings would give the answer away. Encounters are known by their content, too (see `encounter_marks`)."""
    marks = encounter_marks(case)
    own = next(
        (one for one in chosen if one.case.encounter == case.encounter or marks & encounter_marks(one.case)), None
    )
    if own is not None:
        raise ProctorError(f"{judge}: {case.id}: an example of its own encounter ({own.case.id})")
    return chosen


def few_shot_judge(
    client: ModelClient, votes: JudgementCache, examples: FewShotExamples, prompts: Path | None = None
) -> ModelJudge:
    """The judge that rates after these examples."""
    return ModelJudge("few-shot-judge", client, votes, contexts=[examples], prompts=prompts)


class RatedPool:
    """Rated answers, each once, in an order that does not depend on that of the file."""

    def __init__(self, rated: Sequence[RatedCase]) -> None:
        once = {case_mark(one.case): one for one in rated}
        self._marks = {id(one): mark for mark, one in once.items()}
        self._content: dict[tuple[str, str], frozenset[str]] = {}
        self.rated = tuple(sorted(once.values(), key=lambda one: (one.case.id, one.case.candidate)))

    @property
    def sha256(self) -> str:
        """Of the answers and their ratings, for the record."""
        told: list[JsonValue] = [[self._marks[id(one)], dict(one.values)] for one in self.rated]
        return content_hash(told)

    def others(self, case: Case) -> list[RatedCase]:
        """The rated answers that a case may be judged by: in its language, rated on all its dimensions, and
        to questions of other encounters, by their names and by their content."""
        wanted, marks = {one.name for one in case.dimensions}, encounter_marks(case)
        return [
            one
            for one in self.rated
            if one.case.encounter != case.encounter
            and one.case.language == case.language
            and wanted <= one.values.keys()
            and not marks & self._marks_of(one.case)
        ]

    def _marks_of(self, case: Case) -> frozenset[str]:
        key = (case.id, case.query)
        if key not in self._content:
            self._content[key] = encounter_marks(case)
        return self._content[key]


def case_mark(case: Case) -> str:
    """What a rated answer is known by in files: question and answer, not who gave it."""
    return content_hash([case.id, case.candidate])[:16]


def shown(one: RatedCase) -> dict[str, JsonValue]:
    """A rated answer as the prompt shows it: texts cut short and harmless, ratings by dimension."""
    case = one.case
    rating = {of.name: _number(one.values[of.name]) for of in case.dimensions}
    references: list[JsonValue] = [_short(of.text, _REFERENCE) for of in case.sorted_references[:_REFERENCES]]
    return {
        "query": _short(case.query, _QUERY),
        "references": references,
        "candidate": _short(case.candidate, _CANDIDATE),
        "rating": json.dumps(rating, ensure_ascii=False),
    }


class SimilarExamples(FewShotExamples):
    """The rated answers whose question and answer are most like the case's, the most similar last; at most
    one to each encounter.

    Alike is the cosine of word counts, in Chinese of characters, rare ones weighing more (tf-idf, learned on
    the texts of the rated set), or, with an encoder, of embeddings.
    """

    def __init__(self, pool: RatedPool, shots: int, encoder: Encoder | None = None) -> None:
        self._pool = pool
        self._shots = shots
        self._place = {id(one): k for k, one in enumerate(pool.rated)}
        texts = [_text(one.case) for one in pool.rated]
        self._likeness = _by_words(texts) if encoder is None else _by_meaning(texts, encoder)
        how = f"similar by {'words' if encoder is None else 'meaning'}"
        self.settings = {"exemplars": how, "shots": shots, "rated_sha256": pool.sha256}

    def of(self, case: Case) -> tuple[RatedCase, ...]:
        return tuple(reversed(_enough(self.ranked(case), self._shots, case)))

    def ranked(self, case: Case) -> list[RatedCase]:
        """All that a case may be judged by, one to each encounter, the most similar first."""
        likeness = self._likeness(_text(case))
        ordered = sorted(self._pool.others(case), key=lambda one: -likeness[self._place[id(one)]])
        best: dict[str, RatedCase] = {}
        for one in ordered:
            best.setdefault(one.case.encounter, one)
        return list(best.values())


def _by_words(texts: Sequence[str]) -> Callable[[str], Floats]:
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(analyzer=tokens)
    table = vectorizer.fit_transform(texts)
    return lambda text: np.asarray((table @ vectorizer.transform([text]).T).toarray()[:, 0], dtype=np.float64)


def _by_meaning(texts: Sequence[str], encoder: Encoder) -> Callable[[str], Floats]:
    table = np.asarray(encoder(texts), dtype=np.float64)
    return lambda text: np.round(table @ encoder([text])[0], 6)  # beyond, a text's company changes it


class CoveringExamples(FewShotExamples):
    """Rated answers that spread over the scale: one after the other the one whose ratings are least like those
    already chosen, at most one to each encounter.

    The worth of an answer is the sum over its dimensions of 1 / (1 + how many chosen ones are rated at the
    same level); among equals a drawn order decides. The same for all cases, but for their own encounters.
    """

    def __init__(self, pool: RatedPool, shots: int, seed: int) -> None:
        self._pool = pool
        self._shots = shots
        self.settings = {"exemplars": "coverage", "shots": shots, "seed": seed, "rated_sha256": pool.sha256}
        order = generator(seed, "exemplars", "coverage").permutation(len(pool.rated))
        self._turn = {id(one): int(order[k]) for k, one in enumerate(pool.rated)}
        self._levels = {id(one): _levels(one) for one in pool.rated}

    def of(self, case: Case) -> tuple[RatedCase, ...]:
        left = sorted(self._pool.others(case), key=lambda one: self._turn[id(one)])
        seen: Counter[tuple[str, float]] = Counter()
        found: list[RatedCase] = []
        while left and len(found) < self._shots:
            best = max(left, key=lambda one: sum(1 / (1 + seen[pair]) for pair in self._levels[id(one)]))
            found.append(best)
            seen.update(self._levels[id(best)])
            left = [one for one in left if one.case.encounter != best.case.encounter]
        return tuple(_enough(found, self._shots, case))


def _levels(one: RatedCase) -> list[tuple[str, float]]:
    """The level nearest to each rating (a mean of raters may lie between two)."""
    return [
        (of.name, min(of.levels, key=lambda level: abs(level - one.values[of.name])))
        for of in one.case.dimensions
        if of.name in one.values
    ]


def _enough(found: list[RatedCase], shots: int, case: Case) -> list[RatedCase]:
    if len(found) < shots:
        raise InputError(
            "rated answers",
            found=f"{count_of(len(found), 'other encounter')} in {case.language!r} that {case.id} may be judged by",
            expected=f"{shots}, one for each example",
        )
    return found[:shots]


def _number(value: float) -> float | int:
    """Whole numbers without a point, as the form of the reply wants a flag to be."""
    return int(value) if value == int(value) else round(value, 2)


def _text(case: Case) -> str:
    return f"{case.query}\n{case.candidate}"


def _short(text: str, most: int) -> str:
    plain = sanitize(text)
    return plain if len(plain) <= most else plain[: most - 4].rstrip() + " […]"


_STOPPED = "not judged: stopped before"

_FROZEN = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class SearchPlan(BaseModel):
    """How much is tried: `sets` of `shots` examples, each on an answer to each of `held_out` encounters."""

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
    """What was tried in one language; examples are named by their marks, in the order in which they are shown."""

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


class ExampleSearch(BaseModel):
    """All that a search tried, by language, and of which rated answers it was."""

    model_config = _FROZEN

    kind: Literal["proctor exemplars 1"] = "proctor exemplars 1"
    judge: str
    plan: SearchPlan
    rated_sha256: str
    languages: dict[str, LanguageSearch]


@dataclass
class SearchProgress:
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


class FixedExamples(FewShotExamples):
    """The same examples for every case."""

    def __init__(self, chosen: Sequence[RatedCase]) -> None:
        self._chosen = tuple(chosen)
        self.settings = {"exemplars": [case_mark(one.case) for one in chosen]}

    def of(self, case: Case) -> tuple[RatedCase, ...]:
        del case
        return self._chosen


class SearchedExamples(FewShotExamples):
    """The set that served best in a search, for each case without its encounter. Raises `InputError`, naming
    `file`, where the search was not of these rated answers."""

    def __init__(self, pool: RatedPool, search: ExampleSearch, file: str | Path = "examples") -> None:
        if search.rated_sha256 != pool.sha256:
            raise InputError(file, found="a search on other rated answers", expected="one on those of --rated")
        self._search = search
        self._rated = {case_mark(one.case): one for one in pool.rated}
        unknown = {mark for tried in search.languages.values() for one in tried.sets for mark in one}
        if unknown - self._rated.keys():
            raise InputError(file, found="examples that nobody rated", expected="rated answers")
        self._best: dict[tuple[str, str], int] = {}
        self._file = file
        self.settings = {"exemplars": "searched", "search_sha256": content_hash(search)}

    def of(self, case: Case) -> tuple[RatedCase, ...]:
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


def draw_examples(pool: RatedPool, plan: SearchPlan) -> dict[str, Drawn]:
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
                found=f"{count_of(len(by_encounter), 'encounter')} in {language!r}",
                expected=f"{plan.held_out + 2 * plan.shots} or more: those held out, and two sets of examples",
            )
        picks = generator(plan.seed, "exemplars", language)
        found[language] = Drawn(
            tuple(tuple(_one_of(by_encounter[name], picks) for name in names) for names in _dealt(deck, plan, picks)),
            tuple(_one_of(by_encounter[name], picks) for name in held),
        )
    return found


async def search_examples(
    pool: RatedPool,
    plan: SearchPlan,
    make: Callable[[FewShotExamples], DimensionJudge],
    *,
    allow_missing: bool = False,
    concurrency: int = 8,
    stop: asyncio.Event | None = None,
    on_change: Callable[[SearchProgress], None] = lambda _: None,
) -> ExampleSearch:
    """Tries out what `draw_examples` draws; `make` makes the judge with examples. Judgements are kept by the judge, so
    what broke off goes on where it was.

    Raises `InfrastructureError` where a score is missing: no set is preferred since another was not answered.
    With `allow_missing`, such an answer is left out for all sets, as long as half of them stay.
    """
    languages: dict[str, LanguageSearch] = {}
    drawn = draw_examples(pool, plan)
    progress = SearchProgress(sum(one.calls for one in drawn.values()))
    name = ""
    for language, tried in drawn.items():
        cases = [one.case for one in tried.held_out]
        said = []
        for chosen in tried.sets:
            judge = make(FixedExamples(chosen))
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
                f"{name}: no score for {len(cases) - len(whole)} of {count_of(len(cases), 'held-out answer')} in "
                f"{language!r}: {why}"
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
    return ExampleSearch(judge=name, plan=plan, rated_sha256=pool.sha256, languages=languages)


async def _rated(
    judge: DimensionJudge, cases: Sequence[Case], concurrency: int, stop: asyncio.Event | None
) -> list[DimensionScores]:
    """The scores of each case; those whose turn did not come before `stop` have none."""
    turns = asyncio.Semaphore(concurrency)

    async def rated(case: Case) -> DimensionScores:
        async with turns:
            if stop is not None and stop.is_set():
                return DimensionScores.none(case, _STOPPED)
            said = await judge.judge(case)
            said.check(case, judge.name)
            return said

    return await together(rated(case) for case in cases)


def read_search(file: Path) -> ExampleSearch:
    """A search from its JSON. Raises `InputError`, with the field, for anything else."""
    return read_model(file, ExampleSearch, "examples")


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
