"""What a judge of dimensions is, how one is made, and those that can be named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar, runtime_checkable

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from proctor.core import InputError, Registry, VoteBook
from proctor.judges.dimensions.case import Case, RatedCase
from proctor.judges.dimensions.clients import ClientPool
from proctor.judges.dimensions.scores import DimensionScores

__all__ = [
    "DIMENSION_JUDGES",
    "BuildDimensionJudge",
    "DimensionJudge",
    "JudgesAll",
    "Materials",
    "NoOptions",
    "ReadsScores",
    "read_options",
]

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


class ReadsScores(Protocol):
    """Reads scores that were given before, from a file in the task's form."""

    def __call__(self, file: Path) -> Mapping[Case, Mapping[str, float]]:
        """The scores of each case by dimension; a dimension that the file opts out of is left out. Raises
        `InputError`, with the row, for a file that is not in the form or lacks a case."""


@dataclass(frozen=True)
class Materials:
    """What a judge is made from: models to ask, a book for its votes, its own options as typed by a person
    (read them with `read_options`), rated answers to learn from, and a reader of recorded scores."""

    clients: ClientPool
    votes: VoteBook
    options: Mapping[str, str] = field(default_factory=dict)
    rated: Sequence[RatedCase] = ()
    recorded: ReadsScores | None = None


class BuildDimensionJudge(Protocol):
    """Makes a judge. Raises `ConfigurationError` or `InputError` for models or options that can't work."""

    def __call__(self, materials: Materials) -> DimensionJudge: ...


DIMENSION_JUDGES: Registry[BuildDimensionJudge] = Registry(
    "judge of dimensions", group="proctor.dimension_judges"
)
"""Factories by name; built-in ones are entry points like everybody's."""


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
        first = error.errors(include_url=False)[0]
    place = str(first["loc"][0]) if first["loc"] else ""
    found = "nothing" if first["type"] == "missing" else repr(options.get(place, ""))
    raise InputError(judge, f"option {place!r}", found=found, expected=first["msg"])
