"""What a judge of dimensions is, what one is made from, and how it is used as a scorer: its metrics are the dimensions,
its scores lead to the judgement behind them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

from pydantic import BaseModel, JsonValue, ValidationError

from proctor.core import (
    Answer,
    ConfigurationError,
    InfrastructureError,
    InputError,
    Item,
    Judgement,
    JudgementCache,
    RatingScheme,
    Score,
    Status,
    content_hash,
    first_problem,
)
from proctor.core.formats import FreeTextFormat
from proctor.judges.dimensions.case import Case, DimensionScores, RatedCase, case_of
from proctor.judges.verdicts import RESOLVED_SHORT, UNRESOLVED, PartialScoresError
from proctor.models import ModelSpec

if TYPE_CHECKING:
    from proctor.models import ModelClient


class ClientPool:
    """Models by their specification, connected when they are asked for. To be closed with `aclose()`.

    What a person sets for a model goes before what a judge would like.
    """

    def __init__(self, specs: Sequence[ModelSpec]) -> None:
        self.specs = tuple(specs)
        self._open: dict[str, ModelClient] = {}

    @property
    def opened(self) -> tuple[ModelClient, ...]:
        """Those that were asked for."""
        return tuple(self._open.values())

    def only(self, judge: str) -> ModelSpec:
        """The one model. Raises `ConfigurationError` where there is none, or more."""
        if len(self.specs) != 1:
            several = f"{len(self.specs)} models" if self.specs else "no model"
            hint = " (model-ensemble asks several)" if self.specs else ""
            raise ConfigurationError(f"{judge}: expected one model, found {several}{hint}")
        return self.specs[0]

    def some(self, judge: str) -> tuple[ModelSpec, ...]:
        """All models. Raises `ConfigurationError` where there is none, and for one that is named twice."""
        names = [one.name for one in self.specs]
        if not names:
            raise ConfigurationError(f"{judge}: expected a model, found none")
        twice = next((one for one in names if names.count(one) > 1), None)
        if twice is not None:
            raise ConfigurationError(f"{judge}: the model {twice} is named twice")
        return self.specs

    def client(self, spec: ModelSpec, likes: Mapping[str, JsonValue] | None = None) -> ModelClient:
        """Access to a model; `likes` are settings that hold where the specification says nothing else."""
        from proctor.models import ModelClient

        settings = {**(likes or {}), **spec.settings}
        wanted = ModelSpec.model_validate(spec.model_dump() | {"settings": settings})
        key = content_hash(wanted)
        if key not in self._open:
            self._open[key] = ModelClient(wanted)
        return self._open[key]

    async def aclose(self) -> None:
        """Closes all connections."""
        for one in self._open.values():
            await one.aclose()
        self._open.clear()


T = TypeVar("T", bound=BaseModel)


class DimensionJudge(Protocol):
    """Scores answers on the dimensions of a task."""

    @property
    def name(self) -> str:
        """With its models, since another model is another judge."""

    @property
    def settings(self) -> dict[str, JsonValue]:
        """Everything that changes its scores."""

    async def judge(self, case: Case) -> DimensionScores:
        """The scores of one answer. No reply, none of the form, and a model that declines are missing
        scores, each with its reason, and are asked again by the next run. Raises `ConfigurationError`
        for what can't get better, and `InputError` for a case that this judge is not made for."""


@runtime_checkable
class JudgesAll(Protocol):
    """A judge that takes all answers at once, since it is faster so or compares them."""

    async def judge_all(self, cases: Sequence[Case]) -> list[DimensionScores]:
        """The scores of each answer, in the order of the cases."""


class RecordedBy(Protocol):
    """Reads the scores that a scorer gave before."""

    def __call__(self, scorer: str) -> Mapping[Case, Mapping[str, float]]:
        """The scores of each case by dimension; a dimension that it did not score is left out. Raises `InputError`
        for an unknown scorer."""


@dataclass(frozen=True)
class JudgeSetup:
    """What a judge of dimensions is made from: models to ask, a book for its votes, and its own options as typed by a
    person (read them with `read_options`). `prompts` is the folder of the benchmark's own prompts for judges, `own`
    the name of its own judge, `rated` are rated answers for few-shot examples, `recorded` reads the scores that
    other judges gave before."""

    clients: ClientPool
    votes: JudgementCache
    options: Mapping[str, str] = field(default_factory=dict)
    rated: Sequence[RatedCase] = ()
    recorded: RecordedBy | None = None
    prompts: Path | None = None
    own: str = "rating-judge"


class RatesDimensions:
    """A factory of judges that give a score for each dimension, as a decorator; what it builds is used through
    `DimensionScorer`. The first line of its docstring is its summary. Raises `ConfigurationError` or `InputError` for
    models or options that can't work."""

    def __init__(self, build: Callable[[JudgeSetup], DimensionJudge]) -> None:
        self._build = build
        self.__doc__ = build.__doc__

    def __call__(self, setup: JudgeSetup) -> DimensionJudge:
        """The judge."""
        return self._build(setup)


def read_options(judge: str, form: type[T], options: Mapping[str, str]) -> T:
    """The options of a judge as a value of `form`. Raises `InputError` for an unknown one (listing those
    that there are) and for one that can't be read.

    >>> class Options(BaseModel):
    ...     passages: int = 4
    >>> read_options("retrieval-judge", Options, {"passages": "6"}).passages
    6
    >>> read_options("retrieval-judge", Options, {"passage": "6"})
    Traceback (most recent call last):
    proctor.core.errors.InputError: retrieval-judge: option 'passage': expected one of passages
    """
    known = list(form.model_fields)
    for name in options:
        if name not in known:
            listed = f"one of {', '.join(known)}" if known else "none, it has no options"
            raise InputError(judge, f"option {name!r}", expected=listed)
    try:
        return form.model_validate(dict(options))
    except ValidationError as error:
        problem = first_problem(error)
    raise InputError(judge, f"option {problem.field!r}", found=problem.found, expected=problem.expected)


class DimensionScorer:
    """Scores answers in free text on the dimensions of `scheme`.

    What the judge says of an answer (values, what is missing and why, broken rules, flags, disagreement, evidence, the
    keys of its models' replies) is kept in `book` as one judgement, found by its content; every score leads there. An
    answer that its system never gave (refused, too late, an error of its own) has the worst level without a call.
    """

    def __init__(
        self, judge: DimensionJudge, scheme: RatingScheme, book: JudgementCache, images: Path | None = None
    ) -> None:
        self.name = judge.name
        self.metrics = scheme.metrics
        self._judge = judge
        self._scheme = scheme
        self._book = book
        self._images = images
        self._said: dict[Case, DimensionScores] = {}

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The judge's, and what is rated: each dimension by its name, and the rules between them."""
        scheme = self._scheme.model_dump(mode="json")
        scheme["dimensions"] = {one["name"]: one for one in scheme["dimensions"]}
        return {**self._judge.settings, "scheme": scheme}

    def applies(self, item: Item) -> bool:
        """To free text in a language that has dimensions."""
        return isinstance(item.answer, FreeTextFormat) and bool(self._scheme.of(str(item.tags.get("language", ""))))

    async def see(self, answers: Sequence[tuple[Item, Answer]]) -> None:
        """Shows a judge that takes all answers at once (`JudgesAll`) those that there are; others are asked one by
        one."""
        if isinstance(self._judge, JudgesAll):
            given = [one for one in answers if self.applies(one[0]) and one[1].status is Status.ANSWERED]
            cases = list(dict.fromkeys(self._case(item, answer) for item, answer in given))
            self._said |= dict(zip(cases, await self._judge.judge_all(cases), strict=True))

    async def score(self, item: Item, answer: Answer) -> list[Score]:
        """A score for each dimension of the item's language; where members of an ensemble are `awaiting`, also one of
        `unresolved` that says so.

        Raises `InfrastructureError` where there is none at all, `PartialScoresError` where some are missing,
        `ProctorError` for scores that are not of the scheme.
        """
        if answer.status is Status.FAILED:
            raise ValueError(f"item {item.id!r}: a failed answer is never scored")
        if answer.status is not Status.ANSWERED:
            return [
                self._score(item, one.name, one.metric.worst, label=answer.status.value)
                for one in self._scheme.of(str(item.tags.get("language", "")))
            ]
        case = self._case(item, answer)
        said = self._said.get(case) or await self._judge.judge(case)
        said.check(case, self.name)
        reasons = list(said.missing.values())
        if not said.values:
            raise InfrastructureError(reasons[0])
        vote = judgement(self.name, case, said)
        self._book.put(vote)
        scores = [self._score(item, name, value, vote_key=vote.key) for name, value in said.values.items()]
        if reasons:
            raise PartialScoresError(f"{next(iter(said.missing))}: {reasons[0]}", scores)
        if said.awaiting:
            scores.append(self._score(item, UNRESOLVED.name, 0.0, label=RESOLVED_SHORT))
        return scores

    def _case(self, item: Item, answer: Answer) -> Case:
        return case_of(item, candidate_of(answer), self._scheme, self._images)

    def _score(self, item: Item, metric: str, value: float, *, label: str = "", vote_key: str = "") -> Score:
        return Score(item_id=item.id, metric=metric, value=value, scorer=self.name, label=label, vote_key=vote_key)


def candidate_of(answer: Answer) -> str:
    """The text that is judged: what the answer's format read, or what there is where it read nothing."""
    return answer.parsed if isinstance(answer.parsed, str) else answer.text


def judgement(judge: str, case: Case, said: DimensionScores) -> Judgement:
    """Everything that a judge says of an answer, under the hash of just that."""
    reply: dict[str, JsonValue] = {
        "values": dict(said.values),
        "missing": dict(said.missing),
        "breaks": [*said.breaks],
        "disagreement": dict(said.disagreement),
        "evidence": [dict(one) for one in said.evidence],
        "votes": [*said.votes],
    }
    key = content_hash(
        {"judgement": judge, "item": case.id, "candidate": case.candidate, "flags": [*said.flags], **reply}
    )
    flags = tuple(dict.fromkeys((*said.breaks, *said.flags)))
    return Judgement(key=key, judge=judge, item_id=case.id, reply=reply, flags=flags)
