"""The judges by name: built-in ones, and those that other packages add."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from proctor.core import Briefing, Frame, InputError, Item, JudgementCache, RatingScheme, Registry, Scorer, admit_scorer
from proctor.judges.dimensions.scorer import DimensionScorer, JudgeSetup, RatesDimensions
from proctor.models import prompt_file

if TYPE_CHECKING:
    from proctor.models import ModelClient

FramesOf = Callable[[Item], Awaitable[Sequence[Frame]]]
"""Gives an item's frames with their labels, in the item's order; none where they are not available."""


@runtime_checkable
class SeesFrames(Protocol):
    """A judge that can be shown the frames; without them it reads text alone."""

    def with_frames(self, frames: FramesOf) -> Scorer:
        """The same judge with the frames, under a name of its own."""


class BuildJudge(Protocol):
    """Makes a judge that asks `client` and stores its judgements in `votes`; `prompt` is a template file of the
    user's."""

    def __call__(self, client: ModelClient, votes: JudgementCache, *, prompt: Path | None = None) -> Scorer: ...


class OfSeveral:
    """Marks the factory of a judge that asks several models: a function of the models, the judgement cache, a prompt
    file (or None) and the benchmark's briefing. The first line of its docstring is the judge's summary."""

    def __init__(self, build: Callable[[Sequence[ModelClient], JudgementCache, Path | None, Briefing], Scorer]) -> None:
        self.build = build
        self.__doc__ = build.__doc__


JUDGES: Registry[BuildJudge | OfSeveral | RatesDimensions] = Registry(
    "judge",
    group="proctor.judges",
    fits=lambda thing: callable(thing) or isinstance(thing, OfSeveral | RatesDimensions),
    expected="a function with @proctor.judge, or a factory of judges",
    elsewhere=". A model that judges goes by --model",
)
"""Factories by name. Built-in judges are entry points, like those of other packages."""


def build_judge(
    name: str,
    clients: Sequence[ModelClient],
    votes: JudgementCache,
    *,
    prompt: Path | None = None,
    briefing: Briefing | None = None,
    frames: FramesOf | None = None,
) -> Scorer:
    """The judge of that name, asking these models, and shown `frames` where they are given.

    Raises `UnknownNameError` for a name that is not registered, and `InputError` for a number of models that it does
    not take, and for frames that it can't be shown.
    """
    built = _built(name, clients, votes, prompt, briefing or Briefing())
    if frames is None:
        return built
    if isinstance(built, SeesFrames):
        return built.with_frames(frames)
    raise InputError(f"judge {name}", found="frames to see", expected="none: it reads text alone")


def _built(
    name: str, clients: Sequence[ModelClient], votes: JudgementCache, prompt: Path | None, briefing: Briefing
) -> Scorer:
    factory = JUDGES.get(name)
    if isinstance(factory, RatesDimensions):
        raise InputError(f"judge {name}", found="no dimensions to rate", expected="a scheme of them")
    if isinstance(factory, OfSeveral):
        return factory.build(clients, votes, prompt, briefing)
    if len(clients) != 1:
        found = ", ".join(client.name for client in clients) or "no model"
        raise InputError(f"judge {name}", found=found, expected="one model")
    made = JUDGES.make(name, lambda: factory(clients[0], votes, prompt=prompt), "name", "metrics", "applies", "score")
    JUDGES.check_name(name, made.name, longer=True)
    admit_scorer(made)
    return made


def rates_dimensions(name: str) -> bool:
    """Whether the judge of that name gives a score for each dimension. Raises `UnknownNameError`."""
    return isinstance(JUDGES.get(name), RatesDimensions)


def build_dimension_judge(
    name: str, setup: JudgeSetup, scheme: RatingScheme | None, book: JudgementCache, images: Path | None = None
) -> DimensionScorer:
    """The judge of dimensions of that name; its judgements are stored in `book`. Raises `InputError` where there are no
    dimensions to rate, and for a judge that rates none."""
    factory = JUDGES.get(name)
    if not isinstance(factory, RatesDimensions):
        raise InputError(f"judge {name}", expected="a judge of dimensions")
    if scheme is None:
        raise InputError(f"judge {name}", found="a benchmark without dimensions", expected="dimensions to rate")
    return DimensionScorer(factory(setup), scheme, book, images)


def judge_prompt(judge: str, choice: str) -> Path:
    """Another prompt for a judge: the name of a built-in one (`paper`), or a file. Raises `InputError` for anything
    else."""
    return prompt_file(Path(__file__).parent, judge.replace("-", "_"), choice)
