"""Judges made of judges: the median of their scores, the majority of their flags, and how far they are apart.

`temperature-ensemble` and `persona-ensemble` are the organisers' (Ben Abacha and Yim 2026, section 4.3);
`model-ensemble` asks several models. Each member's votes are its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from statistics import median

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from proctor.core import ConfigurationError, Dimension, ProctorError
from proctor.judges.dimensions.case import Case, DimensionScores
from proctor.judges.dimensions.protocol import DimensionJudge, JudgeSetup, RatesDimensions, read_options
from proctor.judges.dimensions.rating import PERSONAS, RatingJudge
from proctor.models import ModelSpec

TEMPERATURES = (0.0, 0.3, 0.7)


class Ensemble:
    """Asks every member about every case. A member without a score has no vote on that dimension; with
    fewer than `quorum` votes (by default more than half of the members) the score is missing.

    Raises `ConfigurationError` for an even number of members, which can be split over a flag, and for a
    quorum that they can't reach or that half of them would make.
    """

    def __init__(self, name: str, members: Sequence[DimensionJudge], *, quorum: int | None = None) -> None:
        count = len(members)
        if count % 2 == 0:
            raise ConfigurationError(f"{name}: expected an odd number of members, found {count}")
        self.name = name
        self._members = tuple(members)
        self._quorum = count // 2 + 1 if quorum is None else quorum
        if not count // 2 < self._quorum <= count:
            expected = f"expected a quorum of {count // 2 + 1} to {count}"
            raise ConfigurationError(f"{name}: {expected}, found {self._quorum}")

    @property
    def settings(self) -> dict[str, JsonValue]:
        """Those of all members, by their names."""
        return {"quorum": self._quorum, "members": {one.name: one.settings for one in self._members}}

    async def judge(self, case: Case) -> DimensionScores:
        """The scores of one answer (see `DimensionJudge`); each member's own are in the evidence."""
        try:
            async with asyncio.TaskGroup() as tasks:
                asked = [tasks.create_task(one.judge(case)) for one in self._members]
        except* ProctorError as errors:
            raise errors.exceptions[0] from None
        said = {one.name: task.result() for one, task in zip(self._members, asked, strict=True)}
        return pooled(case, said, self._quorum)


def pooled(case: Case, said: Mapping[str, DimensionScores], quorum: int) -> DimensionScores:
    """The members' scores as one: per dimension the median, of a flag the majority, and as disagreement
    the distance from the lowest to the highest score, of a flag the share of the minority.

    Missing where fewer than `quorum` members gave a score, and where a flag is split evenly (which takes a
    member without a vote). Rules are checked on the result.
    """
    values: dict[str, float] = {}
    missing: dict[str, str] = {}
    apart: dict[str, float] = {}
    for one in case.dimensions:
        votes = [scores.values[one.name] for scores in said.values() if one.name in scores.values]
        if len(votes) < quorum:
            why = next(scores.missing[one.name] for scores in said.values() if one.name in scores.missing)
            missing[one.name] = f"{len(votes)} of {len(said)} members gave a score, {quorum} are needed: {why}"
            continue
        apart[one.name] = _apart(one, votes)
        if one.is_flag and apart[one.name] == 0.5:
            missing[one.name] = f"the {len(votes)} members that gave a score are split evenly"
        else:
            values[one.name] = float(median(votes))  # of 0 and 1 without a tie: the majority
    return DimensionScores(
        values=values,
        missing=missing,
        breaks=case.breaks(values),
        flags=tuple(dict.fromkeys(flag for scores in said.values() for flag in scores.flags)),
        disagreement=apart,
        evidence=tuple(_told(name, scores) for name, scores in said.items()),
        votes=tuple(key for scores in said.values() for key in scores.votes),
    )


def _apart(one: Dimension, votes: Sequence[float]) -> float:
    if not one.is_flag:
        return max(votes) - min(votes)
    yes = sum(vote > 0.5 for vote in votes) / len(votes)
    return min(yes, 1 - yes)


def _told(name: str, scores: DimensionScores) -> Mapping[str, JsonValue]:
    own: list[JsonValue] = [dict(one) for one in scores.evidence]
    breaks: list[JsonValue] = [*scores.breaks]
    return {
        "member": name,
        "values": dict(scores.values),
        "missing": dict(scores.missing),
        "breaks": breaks,
        "evidence": own,
    }


class _Options(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    quorum: int | None = Field(default=None, ge=1)


@RatesDimensions
def build_temperatures(setup: JudgeSetup) -> DimensionJudge:
    """Three temperatures (0.0, 0.3, 0.7) of each model: the median of the scores, the majority of the flag.

    Raises `ConfigurationError` where the settings name a temperature.
    """
    name = "temperature-ensemble"
    specs = setup.clients.some(name)
    if any("temperature" in one.settings for one in specs):
        raise ConfigurationError(f"{name}: the temperatures are its own: leave temperature out of the settings")
    members = [_member(setup, spec, one, variant=f"temperature-{one:g}") for spec in specs for one in TEMPERATURES]
    return _built(name, setup, members)


@RatesDimensions
def build_personas(setup: JudgeSetup) -> DimensionJudge:
    """Three readers of each model (diagnostic consistency, clinical safety, professional communication)."""
    name = "persona-ensemble"
    members = [_member(setup, spec, 0.0, persona=one) for spec in setup.clients.some(name) for one in PERSONAS]
    return _built(name, setup, members)


@RatesDimensions
def build_models(setup: JudgeSetup) -> DimensionJudge:
    """Several models, an odd number of them, each as in rating-judge."""
    name = "model-ensemble"
    members = [_member(setup, spec, 0.0) for spec in setup.clients.some(name)]
    return _built(name, setup, members)


def _member(
    setup: JudgeSetup, spec: ModelSpec, temperature: float, *, persona: str = "", variant: str = ""
) -> RatingJudge:
    """One reader of an ensemble: the benchmark's own judge by one model."""
    client = setup.clients.client(spec, {"temperature": temperature})
    return RatingJudge(client, setup.votes, kind=setup.own, persona=persona, variant=variant, folder=setup.prompts)


def _built(name: str, setup: JudgeSetup, members: Sequence[DimensionJudge]) -> DimensionJudge:
    options = read_options(name, _Options, setup.options)
    models = "+".join(one.name for one in setup.clients.specs)
    return Ensemble(f"{name}[{models}]", members, quorum=options.quorum)
