"""The judges by name: built-in ones, and those that other packages add."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from proctor import judges, models
from proctor.core import (
    Briefing,
    ConfigurationError,
    Frame,
    InputError,
    Item,
    JudgementCache,
    ProctorError,
    RatingScheme,
    Registry,
    Scorer,
    admit_scorer,
    object_in_file,
    unloadable,
)
from proctor.judges import dimensions

if TYPE_CHECKING:
    from proctor.judges.dimensions import DimensionJudge, DimensionScorer, JudgeSetup, RatesDimensions
    from proctor.judges.function import JudgeFunction
    from proctor.models import ModelClient

FramesOf = Callable[[Item], Awaitable[Sequence[Frame]]]
"""Gives an item's frames with their labels, in the item's order; none where they are not available."""


@runtime_checkable
class SeesFrames(Protocol):
    """A judge that can be shown the frames; without them it reads text alone."""

    def with_frames(self, frames: FramesOf) -> Scorer:
        """The same judge with the frames, under a name of its own."""


class BuildJudge(Protocol):
    """Makes a judge that asks `client` and stores its judgements in `judgements`; `prompt` is a template file of the
    user's."""

    def __call__(self, client: ModelClient, judgements: JudgementCache, *, prompt: Path | None = None) -> Scorer: ...


class OfSeveral:
    """Marks the factory of a judge that asks several models: a function of the models, the judgement cache, a prompt
    file (or None) and the benchmark's briefing. The first line of its docstring is the judge's summary."""

    def __init__(self, build: Callable[[Sequence[ModelClient], JudgementCache, Path | None, Briefing], Scorer]) -> None:
        self.build = build
        self.__doc__ = build.__doc__


JUDGES: Registry[BuildJudge | OfSeveral | RatesDimensions] = Registry(
    "judge",
    group="proctor.judges",
    fits=lambda thing: callable(thing) or isinstance(thing, OfSeveral | dimensions.RatesDimensions),
    expected="a function with @proctor.judge, or a factory of judges",
    elsewhere=". A model that judges goes by --model",
)
"""Factories by name. Built-in judges are entry points, like those of other packages."""


def build_judge(
    name: str,
    clients: Sequence[ModelClient],
    judgements: JudgementCache,
    *,
    prompt: Path | None = None,
    briefing: Briefing | None = None,
    frames: FramesOf | None = None,
) -> Scorer:
    """The judge of that name, asking these models, and shown `frames` where they are given.

    Raises `UnknownNameError` for a name that is not registered, and `InputError` for a number of models that it does
    not take, and for frames that it can't be shown.
    """
    built = _built(name, clients, judgements, prompt, briefing or Briefing())
    if frames is None:
        return built
    if isinstance(built, SeesFrames):
        return built.with_frames(frames)
    raise InputError(f"judge {name}", found="frames to see", expected="none: it reads text alone")


def _built(
    name: str, clients: Sequence[ModelClient], judgements: JudgementCache, prompt: Path | None, briefing: Briefing
) -> Scorer:
    factory = JUDGES.get(name)
    if isinstance(factory, dimensions.RatesDimensions):
        raise InputError(f"judge {name}", found="no dimensions to rate", expected="a scheme of them")
    if isinstance(factory, OfSeveral):
        return factory.build(clients, judgements, prompt, briefing)
    if len(clients) != 1:
        found = ", ".join(client.name for client in clients) or "no model"
        raise InputError(f"judge {name}", found=found, expected="one model")
    made = JUDGES.make(
        name, lambda: factory(clients[0], judgements, prompt=prompt), "name", "metrics", "applies", "score"
    )
    JUDGES.check_name(name, made.name, longer=True)
    admit_scorer(made)
    return made


def judge_in_file(address: str) -> JudgeFunction | RatesDimensions:
    """The judge at `path/to/file.py:name`: a function (see `JudgeFunction`), decorated or not, or a factory decorated by
    `RatesDimensions`.

    Raises what `proctor.core.object_in_file` raises, and `ConfigurationError` for another kind of object.
    """
    found = object_in_file(address)
    if isinstance(found, dimensions.RatesDimensions):
        return dimensions.RatesDimensions(_guarded(address, found))
    if isinstance(found, judges.JudgeFunction):
        made = found
    elif callable(found) and not isinstance(found, type):
        try:
            made = judges.JudgeFunction(found)
        except ConfigurationError as error:
            raise ConfigurationError(f"{address}: {error}") from error
    else:
        what = "a class" if isinstance(found, type) else type(found).__name__
        raise ConfigurationError(f"{address}: found {what}, expected a function, or a factory with @RatesDimensions")
    made.address = address
    return made


def _guarded(address: str, factory: RatesDimensions) -> Callable[[JudgeSetup], DimensionJudge]:
    """The factory, whose exceptions name its file."""

    def build(setup: JudgeSetup) -> DimensionJudge:
        try:
            return factory(setup)
        except ProctorError:
            raise
        except (Exception, SystemExit) as error:
            raise unloadable(Path(address.rpartition(":")[0]), error) from error

    build.__doc__ = factory.__doc__
    return build


def rates_dimensions(name: str) -> bool:
    """Whether the judge of that name gives a score for each dimension. Raises `UnknownNameError`."""
    return isinstance(JUDGES.get(name), dimensions.RatesDimensions)


def build_dimension_judge(
    judge: str | RatesDimensions,
    setup: JudgeSetup,
    scheme: RatingScheme | None,
    book: JudgementCache,
    images: Path | None = None,
) -> DimensionScorer:
    """A judge of dimensions, by its name or its factory; its judgements are stored in `book`. Raises `InputError` where there are no
    dimensions to rate, and for a judge that rates none."""
    factory = JUDGES.get(judge) if isinstance(judge, str) else judge
    name = judge if isinstance(judge, str) else "of a file"
    if not isinstance(factory, dimensions.RatesDimensions):
        raise InputError(f"judge {name}", expected="a judge of dimensions")
    if scheme is None:
        raise InputError(f"judge {name}", found="a benchmark without dimensions", expected="dimensions to rate")
    return dimensions.DimensionScorer(factory(setup), scheme, book, images)


def judge_prompt(judge: str | JudgeFunction, choice: str) -> Path:
    """Another prompt for a judge: the name of one beside its own or its module (`paper` is JUDGE.paper.txt.j2 there), or a
    file. Raises `InputError` for anything else."""
    factory: object = judge if isinstance(judge, judges.JudgeFunction) else JUDGES.get(judge)
    if isinstance(factory, judges.JudgeFunction) and factory.prompt is not None:
        return models.prompt_file(factory.prompt.parent, factory.prompt.name.removesuffix(".txt.j2"), choice)
    if isinstance(judge, judges.JudgeFunction):
        return models.prompt_file(Path(__file__).parent, judge.name, choice)
    folder, usual = Path(__file__).parent, judge.replace("-", "_")
    if not JUDGES.is_own(judge):
        module = sys.modules.get(str(getattr(getattr(factory, "made_of", factory), "__module__", "")))
        folder = Path(getattr(module, "__file__", None) or folder).parent
        usual = judge if any(folder.glob(f"{judge}.*.txt.j2")) else usual
    return models.prompt_file(folder, usual, choice)
