"""What a judge of dimensions is, how one is made, and those that can be named."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar, runtime_checkable

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from proctor.core import ConfigurationError, InputError, VoteBook, content_hash, first_problem
from proctor.judges.dimensions.case import Case, DimensionScores, RatedCase
from proctor.models import ModelClient, ModelSpec


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
    votes: VoteBook
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


class NoOptions(BaseModel):
    """The form of the options of a judge that has none."""

    model_config = ConfigDict(frozen=True, extra="forbid")


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
