"""Judges of dimensions: their protocol, what they are built from, and their use as a scorer whose metrics are the
dimensions."""

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
from proctor.judges.verdict_metrics import RESOLVED_SHORT, UNRESOLVED, PartialScoresError
from proctor.models import ModelSpec

if TYPE_CHECKING:
    from proctor.models import ModelClient


class ClientPool:
    """Models by their specification, connected on first use. Close it with `aclose()`.

    Settings of the user take precedence over those that a judge prefers (`likes`).
    """

    def __init__(self, specs: Sequence[ModelSpec]) -> None:
        self.specs = tuple(specs)
        self._open: dict[str, ModelClient] = {}

    @property
    def opened(self) -> tuple[ModelClient, ...]:
        """The models in use."""
        return tuple(self._open.values())

    def only(self, judge: str) -> ModelSpec:
        """The one model. Raises `ConfigurationError` for none and for several."""
        if len(self.specs) != 1:
            several = f"{len(self.specs)} models" if self.specs else "no model"
            hint = " (model-ensemble asks several)" if self.specs else ""
            raise ConfigurationError(f"{judge}: expected one model, found {several}{hint}")
        return self.specs[0]

    def some(self, judge: str) -> tuple[ModelSpec, ...]:
        """All models. Raises `ConfigurationError` for none, and for a model that is named twice."""
        names = [spec.name for spec in self.specs]
        if not names:
            raise ConfigurationError(f"{judge}: expected a model, found none")
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ConfigurationError(f"{judge}: the model {twice} is named twice")
        return self.specs

    def client(self, spec: ModelSpec, likes: Mapping[str, JsonValue] | None = None) -> ModelClient:
        """Access to a model; `likes` are defaults for its settings."""
        from proctor.models import ModelClient

        key = content_hash([spec.model_dump(mode="json"), {**(likes or {})}])
        if key not in self._open:
            self._open[key] = ModelClient(spec, likes=likes)
        return self._open[key]

    async def aclose(self) -> None:
        """Closes all connections."""
        for model_client in self._open.values():
            await model_client.aclose()
        self._open.clear()


T = TypeVar("T", bound=BaseModel)


class DimensionJudge(Protocol):
    """Scores answers on the dimensions of a task."""

    @property
    def name(self) -> str:
        """The name, which contains the models: another model is another judge."""

    @property
    def settings(self) -> dict[str, JsonValue]:
        """Everything that changes its scores."""

    async def judge(self, case: Case) -> DimensionScores:
        """The scores of one answer. No reply, a reply of another form, and a refusal are missing scores with a reason;
        the next run asks again. Raises `ConfigurationError` for errors that no retry can fix, and `InputError` for a
        case that this judge is not made for."""


@runtime_checkable
class JudgesAll(Protocol):
    """A judge that takes all answers at once, because that is faster or because it compares them."""

    async def judge_all(self, cases: Sequence[Case]) -> list[DimensionScores]:
        """The scores of each answer, in the order of the cases."""


class RecordedBy(Protocol):
    """Reads the scores that a scorer gave before."""

    def __call__(self, scorer: str) -> Mapping[Case, Mapping[str, float]]:
        """The scores of each case by dimension, without dimensions that it did not score. Raises `InputError` for an
        unknown scorer."""


@dataclass(frozen=True)
class JudgeSetup:
    """What a judge of dimensions is built from: models, a cache for its judgements, and its options as the user typed
    them (see `read_options`). `prompts` is the folder of the benchmark's own prompts for judges, `own` the name of its
    own judge, `rated` are rated answers for few-shot examples, `recorded` reads scores that other judges gave before."""

    clients: ClientPool
    judgements: JudgementCache
    options: Mapping[str, str] = field(default_factory=dict)
    rated: Sequence[RatedCase] = ()
    recorded: RecordedBy | None = None
    prompts: Path | None = None
    own: str = "rating-judge"


class RatesDimensions:
    """Decorator that scores the factory of a judge with a score for each dimension; `DimensionScorer` uses the judge. The
    first line of the factory's docstring is its summary. The factory raises `ConfigurationError` or `InputError` for
    models or options that can't work."""

    def __init__(self, build: Callable[[JudgeSetup], DimensionJudge]) -> None:
        self._build = build
        self.__doc__ = build.__doc__

    def __call__(self, setup: JudgeSetup) -> DimensionJudge:
        """The judge."""
        return self._build(setup)


def read_options(judge: str, form: type[T], options: Mapping[str, str]) -> T:
    """The options of a judge as a value of `form`. Raises `InputError` for an unknown option (listing the known ones)
    and for a value that can't be read.

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

    Everything that the judge says of an answer (values, reasons for missing ones, broken rules, flags, disagreement,
    evidence, the keys of its models' replies) is stored in `book` as one judgement with its content's hash as key; every
    score refers to it. An answer that the system did not give (refused, too late, its own error) gets the worst level
    without a call.
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
        """The settings of the judge, and the scheme: each dimension by its name, and the rules between them."""
        scheme = self._scheme.model_dump(mode="json")
        scheme["dimensions"] = {one["name"]: one for one in scheme["dimensions"]}
        return {**self._judge.settings, "scheme": scheme}

    def applies(self, item: Item) -> bool:
        """To free text in a language that has dimensions."""
        return isinstance(item.answer, FreeTextFormat) and bool(self._scheme.of(str(item.tags.get("language", ""))))

    async def see(self, answers: Sequence[tuple[Item, Answer]]) -> None:
        """Gives all answers to a judge that takes them at once (`JudgesAll`); other judges are asked one by one."""
        if isinstance(self._judge, JudgesAll):
            given = [answer for answer in answers if self.applies(answer[0]) and answer[1].status is Status.ANSWERED]
            cases = list(dict.fromkeys(self._case(item, answer) for item, answer in given))
            self._said |= dict(zip(cases, await self._judge.judge_all(cases), strict=True))

    async def score(self, item: Item, answer: Answer) -> list[Score]:
        """A score for each dimension of the item's language, and one of `unresolved` where members of an ensemble are
        `awaiting`.

        Raises `InfrastructureError` if all are missing, `PartialScoresError` if some are, and `ProctorError` for scores
        that do not fit the scheme.
        """
        if answer.status is Status.FAILED:
            raise ValueError(f"item {item.id!r}: a failed answer is never scored")
        if answer.status is not Status.ANSWERED:
            return [
                self._score(item, dimension.name, dimension.metric.worst, label=answer.status.value)
                for dimension in self._scheme.of(str(item.tags.get("language", "")))
            ]
        case = self._case(item, answer)
        said = self._said.get(case) or await self._judge.judge(case)
        said.check(case, self.name)
        reasons = list(said.missing.values())
        if not said.values:
            raise InfrastructureError(reasons[0])
        made = judgement(self.name, case, said)
        self._book.put(made)
        scores = [self._score(item, name, value, judgement_key=made.key) for name, value in said.values.items()]
        if reasons:
            raise PartialScoresError(f"{next(iter(said.missing))}: {reasons[0]}", scores)
        if said.awaiting:
            scores.append(self._score(item, UNRESOLVED.name, 0.0, label=RESOLVED_SHORT))
        return scores

    def _case(self, item: Item, answer: Answer) -> Case:
        return case_of(item, candidate_of(answer), self._scheme, self._images)

    def _score(self, item: Item, metric: str, value: float, *, label: str = "", judgement_key: str = "") -> Score:
        return Score(
            item_id=item.id, metric=metric, value=value, scorer=self.name, label=label, judgement_key=judgement_key
        )


def candidate_of(answer: Answer) -> str:
    """The text that is judged."""
    return answer.wording


def judgement(judge: str, case: Case, said: DimensionScores) -> Judgement:
    """Everything that a judge says of an answer, with its hash as the key."""
    reply: dict[str, JsonValue] = {
        "values": dict(said.values),
        "missing": dict(said.missing),
        "breaks": [*said.breaks],
        "disagreement": dict(said.disagreement),
        "evidence": [dict(one) for one in said.evidence],
        "judgements": [*said.judgements],
    }
    key = content_hash(
        {"judgement": judge, "item": case.id, "candidate": case.candidate, "flags": [*said.flags], **reply}
    )
    flags = tuple(dict.fromkeys((*said.breaks, *said.flags)))
    return Judgement(key=key, judge=judge, item_id=case.id, reply=reply, flags=flags)
