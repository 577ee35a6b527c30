"""Few-shot examples: rated answers that a judge is shown before it rates, never from the encounter that it judges.

After SUAT-BMI (Peng et al. 2026, in section 6.1 of the overview). The examples are the most similar to the case, spread
over the scale, or the best set in a search on held-out encounters. The search draws several sets of examples and asks
the model for scores of held-out answers with each (random search of demonstrations; Khattab et al. 2024, ICLR). It
stores all scores, not only the best set: for an encounter that took part in the search, the set is chosen among those
without it, by the held-out answers of the other encounters. So no rating of an encounter helps to judge it.
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
from pydantic import Field, JsonValue, model_validator

from proctor.core import (
    FrozenModel,
    InfrastructureError,
    InputError,
    JudgementCache,
    ProctorError,
    content_hash,
    count_of,
    generator,
    read_model,
)
from proctor.judges.cached_model import several
from proctor.judges.dimensions.calibration import agreement
from proctor.judges.dimensions.case import Case, DimensionScores, RatedCase, encounter_scores
from proctor.judges.dimensions.model_judge import Context, ModelJudge
from proctor.judges.dimensions.scorer import DimensionJudge
from proctor.judges.prompt_injection import sanitize
from proctor.metrics.text import Encoder, tokens
from proctor.models import ModelClient
from proctor.stats import Floats

_MAX_QUERY, _MAX_REFERENCE, _MAX_CANDIDATE = 600, 200, 800  # characters of each text in an example
_MAX_REFERENCES = 3


class FewShotExamples(ABC):
    """Chooses rated answers to show before a case is judged: a `ContextProvider`."""

    cites = False
    settings: dict[str, JsonValue]

    @abstractmethod
    def of(self, case: Case) -> tuple[RatedCase, ...]:
        """The examples of a case, in the order in which they are shown: in its language, rated on its dimensions, and of
        other encounters. Raises `InputError` if there are too few."""

    async def context(self, case: Case) -> Context:
        """See `ContextProvider`."""
        chosen = self.of(case)
        refuse_own(chosen, case)
        names: JsonValue = [{"item": rated_case.case.id, "score": case_score(rated_case.case)} for rated_case in chosen]
        return Context({"exemplars": [shown(rated_case) for rated_case in chosen]}, {"exemplars": names})


def refuse_own(chosen: Sequence[RatedCase], case: Case) -> None:
    """Raises `ProctorError` for an example of the encounter that is judged, by its name or its content (see
    `encounter_scores`): its ratings would reveal the score."""
    scores = encounter_scores(case)
    for rated_case in chosen:
        if rated_case.case.encounter == case.encounter or scores & encounter_scores(rated_case.case):
            raise ProctorError(f"{case.id}: a few-shot example of its own encounter ({rated_case.case.id})")


def few_shot_judge(
    client: ModelClient, judgements: JudgementCache, examples: FewShotExamples, prompts: Path | None = None
) -> ModelJudge:
    """The judge that is shown these examples."""
    return ModelJudge("few-shot-judge", client, judgements, contexts=[examples], prompts=prompts)


class RatedPool:
    """Rated answers without duplicates, in an order that does not depend on the file's."""

    def __init__(self, rated: Sequence[RatedCase]) -> None:
        once = {case_score(rated_case.case): rated_case for rated_case in rated}
        self._scores = {id(one): score for score, one in once.items()}
        self._content: dict[tuple[str, str], frozenset[str]] = {}
        self.rated = tuple(
            sorted(once.values(), key=lambda rated_case: (rated_case.case.id, rated_case.case.candidate))
        )

    @property
    def sha256(self) -> str:
        """The hash of the answers and their ratings."""
        rows: list[JsonValue] = [[self._scores[id(rated_case)], dict(rated_case.values)] for rated_case in self.rated]
        return content_hash(rows)

    def others(self, case: Case) -> list[RatedCase]:
        """The rated answers that may serve a case: in its language, rated on all its dimensions, and of other encounters by
        name and by content."""
        wanted, scores = {dimension.name for dimension in case.dimensions}, encounter_scores(case)
        return [
            rated_case
            for rated_case in self.rated
            if rated_case.case.encounter != case.encounter
            and rated_case.case.language == case.language
            and wanted <= rated_case.values.keys()
            and not scores & self._scores_of(rated_case.case)
        ]

    def _scores_of(self, case: Case) -> frozenset[str]:
        key = (case.id, case.query)
        if key not in self._content:
            self._content[key] = encounter_scores(case)
        return self._content[key]


def case_score(case: Case) -> str:
    """The hash of question and answer by which files name a rated answer."""
    return content_hash([case.id, case.candidate])[:16]


def shown(rated_case: RatedCase) -> dict[str, JsonValue]:
    """A rated answer as the prompt shows it: texts shortened and sanitized, ratings by dimension."""
    case = rated_case.case
    rating = {dimension.name: _number(rated_case.values[dimension.name]) for dimension in case.dimensions}
    references: list[JsonValue] = [
        _short(reference.text, _MAX_REFERENCE) for reference in case.sorted_references[:_MAX_REFERENCES]
    ]
    return {
        "query": _short(case.query, _MAX_QUERY),
        "references": references,
        "candidate": _short(case.candidate, _MAX_CANDIDATE),
        "rating": json.dumps(rating, ensure_ascii=False),
    }


class SimilarExamples(FewShotExamples):
    """The rated answers whose question and answer are most similar to the case's, the most similar last; at most one for
    each encounter.

    Similarity is the cosine of tf-idf vectors of words (characters in Chinese), fitted on the rated set, or with an
    encoder that of embeddings.
    """

    def __init__(self, pool: RatedPool, shots: int, encoder: Encoder | None = None) -> None:
        self._pool, self._shots = pool, shots
        self._position = {id(one): k for k, one in enumerate(pool.rated)}
        texts = [_text(rated_case.case) for rated_case in pool.rated]
        self._similarity = _by_words(texts) if encoder is None else _by_meaning(texts, encoder)
        how = f"similar by {'words' if encoder is None else 'meaning'}"
        self.settings = {"exemplars": how, "shots": shots, "rated_sha256": pool.sha256}

    def of(self, case: Case) -> tuple[RatedCase, ...]:
        return tuple(reversed(_enough(self.ranked(case), self._shots, case)))

    def ranked(self, case: Case) -> list[RatedCase]:
        """All rated answers that may serve a case, one for each encounter, the most similar first."""
        similarity = self._similarity(_text(case))
        ordered = sorted(self._pool.others(case), key=lambda rated_case: -similarity[self._position[id(rated_case)]])
        best: dict[str, RatedCase] = {}
        for rated_case in ordered:
            best.setdefault(rated_case.case.encounter, rated_case)
        return list(best.values())


def _by_words(texts: Sequence[str]) -> Callable[[str], Floats]:
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(analyzer=tokens)
    table = vectorizer.fit_transform(texts)
    return lambda text: np.asarray((table @ vectorizer.transform([text]).T).toarray()[:, 0], dtype=np.float64)


def _by_meaning(texts: Sequence[str], encoder: Encoder) -> Callable[[str], Floats]:
    table = np.asarray(encoder(texts), dtype=np.float64)
    return lambda text: np.round(table @ encoder([text])[0], 6)  # more digits depend on the other texts of the batch


class CoveringExamples(FewShotExamples):
    """Rated answers that cover the scale: a greedy choice of ratings that are least like those already chosen, at most
    one for each encounter.

    The value of an answer is the sum over its dimensions of 1 / (1 + number of chosen answers at the same level); a
    random order breaks ties. The choice is the same for all cases, except for their own encounters.
    """

    def __init__(self, pool: RatedPool, shots: int, seed: int) -> None:
        self._pool, self._shots = pool, shots
        self.settings = {"exemplars": "coverage", "shots": shots, "seed": seed, "rated_sha256": pool.sha256}
        order = generator(seed, "exemplars", "coverage").permutation(len(pool.rated))
        self._turn = {id(one): int(order[k]) for k, one in enumerate(pool.rated)}
        self._levels = {id(rated_case): _levels(rated_case) for rated_case in pool.rated}

    def of(self, case: Case) -> tuple[RatedCase, ...]:
        left = sorted(self._pool.others(case), key=lambda rated_case: self._turn[id(rated_case)])
        seen: Counter[tuple[str, float]] = Counter()
        found: list[RatedCase] = []
        while left and len(found) < self._shots:
            best = max(left, key=lambda rated_case: sum(1 / (1 + seen[pair]) for pair in self._levels[id(rated_case)]))
            found.append(best)
            seen.update(self._levels[id(best)])
            left = [rated_case for rated_case in left if rated_case.case.encounter != best.case.encounter]
        return tuple(_enough(found, self._shots, case))


def _levels(rated_case: RatedCase) -> list[tuple[str, float]]:
    """The level nearest to each rating (a mean over raters may lie between two levels)."""
    return [
        (dimension.name, min(dimension.levels, key=lambda level: abs(level - rated_case.values[dimension.name])))
        for dimension in rated_case.case.dimensions
        if dimension.name in rated_case.values
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
    """Integers without a decimal point, as the form of the reply requires for a flag."""
    return int(value) if value == int(value) else round(value, 2)


def _text(case: Case) -> str:
    return f"{case.query}\n{case.candidate}"


def _short(text: str, most: int) -> str:
    plain = sanitize(text)
    return plain if len(plain) <= most else plain[: most - 4].rstrip() + " […]"


_STOPPED = "not judged: stopped before"


class SearchPlan(FrozenModel):
    """The size of a search: `sets` of `shots` examples, each tried on one answer of each of `held_out` encounters."""

    sets: int = Field(default=8, ge=2, le=200)
    shots: int = Field(default=4, ge=1, le=24)
    held_out: int = Field(default=20, ge=4)
    seed: int = 0


class HeldOutAnswer(FrozenModel):
    """A held-out answer: its ratings by dimension, and its scores with each set of examples."""

    score: str
    encounter: str
    ratings: dict[str, float]
    scores: list[dict[str, float]]


class LanguageSearch(FrozenModel):
    """The search in one language. Examples are named by their scores, in the order in which they are shown."""

    sets: list[list[str]] = Field(min_length=2)
    held_out: list[HeldOutAnswer]

    @model_validator(mode="after")
    def _complete(self) -> LanguageSearch:
        if any(len(held_out_answer.scores) != len(self.sets) for held_out_answer in self.held_out):
            raise ValueError("scores with every set are expected")
        return self

    def merit(self, number: int, *, leaving: str = "") -> float:
        """The agreement of the scores with a set and the ratings: the mean of `agreement` over dimensions, without the
        encounter `leaving`. Constant scores count as 0; a dimension with constant ratings is left out."""
        rows = [held_out_answer for held_out_answer in self.held_out if held_out_answer.encounter != leaving]
        found = []
        for name in sorted({name for row in rows for name in row.ratings}):
            ratings = [row.ratings[name] for row in rows]
            if len(set(ratings)) > 1:
                found.append(agreement([row.scores[number][name] for row in rows], ratings) or 0.0)
        return float(np.mean(found)) if found else 0.0


class ExampleSearch(FrozenModel):
    """All scores of a search, by language, and the hash of its rated answers."""

    kind: Literal["proctor exemplars 1"] = "proctor exemplars 1"
    judge: str
    plan: SearchPlan
    rated_sha256: str
    languages: dict[str, LanguageSearch]


@dataclass
class SearchProgress:
    """How many of `total` answers are `done`, and how many of those lack a score (`missing`)."""

    total: int
    done: int = 0
    missing: int = 0


@dataclass(frozen=True)
class Drawn:
    """The sets of examples and the held-out answers of a search in one language."""

    sets: tuple[tuple[RatedCase, ...], ...]
    held_out: tuple[RatedCase, ...]

    @property
    def calls(self) -> int:
        """The largest number of calls: sets × held-out answers."""
        return len(self.sets) * len(self.held_out)


class FixedExamples(FewShotExamples):
    """The same examples for every case."""

    def __init__(self, chosen: Sequence[RatedCase]) -> None:
        self._chosen = tuple(chosen)
        self.settings = {"exemplars": [case_score(rated_case.case) for rated_case in chosen]}

    def of(self, case: Case) -> tuple[RatedCase, ...]:
        del case
        return self._chosen


class SearchedExamples(FewShotExamples):
    """The best set of a search, chosen for each case without its encounter. Raises `InputError`, naming `file`, if the
    search used other rated answers."""

    def __init__(self, pool: RatedPool, search: ExampleSearch, file: str | Path = "examples") -> None:
        if search.rated_sha256 != pool.sha256:
            raise InputError(file, found="a search on other rated answers", expected="one on those of --rated")
        self._search = search
        self._rated = {case_score(rated_case.case): rated_case for rated_case in pool.rated}
        unknown = {score for tried in search.languages.values() for one in tried.sets for score in one}
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
                for number, scores in enumerate(tried.sets)
                if all(self._rated[score].case.encounter != case.encounter for score in scores)
            ]
            if not fit:
                raise InputError(self._file, found=f"{case.encounter} in every set", expected="a set without it")
            self._best[key] = max(fit, key=lambda number: tried.merit(number, leaving=case.encounter))
        return tuple(self._rated[score] for score in tried.sets[self._best[key]])


def draw_examples(pool: RatedPool, plan: SearchPlan) -> dict[str, Drawn]:
    """Draws the sets and held-out answers of a search, by language. Held-out encounters are the same in all languages and
    in no set; sets are dealt from a shuffled deck of the other encounters, so that none is in every set.

    Raises `InputError` for fewer encounters than held_out + 2 · shots in a language.
    """
    encounters = sorted({rated_case.case.encounter for rated_case in pool.rated})
    mixed = generator(plan.seed, "exemplars", "held out").permutation(len(encounters))
    order = [encounters[int(slot)] for slot in mixed]
    found = {}
    for language in sorted({rated_case.case.language for rated_case in pool.rated}):
        by_encounter: dict[str, list[RatedCase]] = {}
        for rated_case in pool.rated:
            complete = {dimension.name for dimension in rated_case.case.dimensions} <= rated_case.values.keys()
            if rated_case.case.language == language and complete:
                by_encounter.setdefault(rated_case.case.encounter, []).append(rated_case)
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
    """Scores the held-out answers with each set of `draw_examples`; `make` makes the judge with examples. The judge caches
    its judgements, so an interrupted search continues where it stopped.

    Raises `InfrastructureError` for a missing score, which would bias the choice of a set. With `allow_missing`, such an
    answer is left out for all sets, as long as half of the answers remain.
    """
    languages: dict[str, LanguageSearch] = {}
    drawn = draw_examples(pool, plan)
    progress = SearchProgress(sum(one.calls for one in drawn.values()))
    name = ""
    for language, tried in drawn.items():
        cases = [rated_case.case for rated_case in tried.held_out]
        said = []
        for chosen in tried.sets:
            judge = make(FixedExamples(chosen))
            name = judge.name
            said.append(await _rated(judge, cases, concurrency, stop))
            progress.done += len(cases)
            progress.missing += sum(bool(dimension_scores.missing) for dimension_scores in said[-1])
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
            sets=[[case_score(rated_case.case) for rated_case in chosen] for chosen in tried.sets],
            held_out=[
                HeldOutAnswer(
                    score=case_score(cases[k]),
                    encounter=cases[k].encounter,
                    ratings=dict(tried.held_out[k].values),
                    scores=[dict(row.values) for row in rows[k]],
                )
                for k in whole
            ],
        )
    return ExampleSearch(judge=name, plan=plan, rated_sha256=pool.sha256, languages=languages)


async def _rated(
    judge: DimensionJudge, cases: Sequence[Case], concurrency: int, stop: asyncio.Event | None
) -> list[DimensionScores]:
    """The scores of each case; cases that had not started before `stop` have none."""

    async def rated(case: Case) -> DimensionScores:
        if stop is not None and stop.is_set():
            return DimensionScores.none(case, _STOPPED)
        said = await judge.judge(case)
        said.check(case, judge.name)
        return said

    return await several(rated, cases, concurrency)


def read_search(file: Path) -> ExampleSearch:
    """A search from its JSON file. Raises `InputError`, with the field, for other content."""
    return read_model(file, ExampleSearch, "examples")


def _dealt(deck: Sequence[str], plan: SearchPlan, picks: np.random.Generator) -> list[list[str]]:
    """Sets of names from the deck, which is reshuffled when too few are left."""
    found: list[list[str]] = []
    left: list[str] = []
    for _ in range(plan.sets):
        if len(left) < plan.shots:
            left = [deck[int(slot)] for slot in picks.permutation(len(deck))]
        found.append([left.pop() for _ in range(plan.shots)])
    return found


def _one_of(answers: Sequence[RatedCase], picks: np.random.Generator) -> RatedCase:
    return answers[int(picks.integers(len(answers)))]
