"""The judge `logprob-judge`: the score that a model expects, from the probabilities of what it could have said.

After MedAware (Hao and Liu 2026, in section 6.3 of the overview): all dimensions in one short reply, and of
each the mean of its levels under the model's own probabilities instead of the level that was drawn. Levels
are counted 0, 1, 2, so that each is one token. With a calibration, the mean is mapped to what clinicians
gave on rated data (isotonic; never on the encounter that is judged).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, JsonValue

from proctor.core import ConfigurationError, Dimension, InfrastructureError, VoteBook
from proctor.judges.dimensions.asking import CaseAsker, Rated, load_prompts, rating_form
from proctor.judges.dimensions.calibration import Calibration, read_calibration
from proctor.judges.dimensions.case import Case, DimensionScores
from proctor.judges.dimensions.protocol import DimensionJudge, JudgeSetup, RatesDimensions, read_options
from proctor.models import ModelClient, Part, Reply

NAME = "logprob-judge"

T = TypeVar("T", bound=BaseModel)

_SCALE: dict[str, JsonValue] = {"low": "0", "middle": "1", "high": "2", "whole": True, "with_reason": False}
_LIKES: dict[str, JsonValue] = {"temperature": 0.0, "openai_logprobs": True, "openai_top_logprobs": 20}
_ENOUGH = 0.5  # with less of the probability on the levels, their mean says nothing of what the model means
_CERTAIN = 0.99  # what is as good as certain needs no alternative
_LEVEL = re.compile(rb'[\s":]*(\d)[\s,}]*')


class Chances(BaseModel):
    """The probability of each level (lowest first) by dimension, as far as the server lists it, and the
    level that was drawn."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    asked: ClassVar[type[Rated]]
    counts: ClassVar[Mapping[str, int]]
    chances: dict[str, list[float]]
    drawn: dict[str, int]


@lru_cache(maxsize=64)
def _chances_form(dimensions: tuple[Dimension, ...]) -> type[Chances]:
    class OfDimensions(Chances):
        asked = rating_form(dimensions, whole=True, reason=False)
        counts = MappingProxyType({one.name: len(one.levels) for one in dimensions})

    return OfDimensions


class LogprobJudge:
    """Asks one model for a level on each dimension, and takes the mean of the levels it could have given."""

    def __init__(
        self, client: ModelClient, votes: VoteBook, calibration: Calibration | None = None, folder: Path | None = None
    ) -> None:
        self._client = client
        self._calibration = calibration
        asks = _AsksForChances(client)
        self._asker = CaseAsker(NAME, self.name, asks, votes, load_prompts("rubric", folder), _SCALE)

    @property
    def name(self) -> str:
        """With the model, and whether it is calibrated."""
        return f"{NAME}{'/calibrated' if self._calibration else ''}[{self._client.name}]"

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The model's, the prompts, and the calibration's hash."""
        calibration = self._calibration.sha256 if self._calibration else None
        return {**self._client.settings, **self._asker.settings, "calibration_sha256": calibration}

    async def judge(self, case: Case) -> DimensionScores:
        """The scores of one answer (see `DimensionJudge`). A dimension on whose levels the server lists less
        than half of the probability is missing. Raises `ConfigurationError` where it lists none at all."""
        heard = await self._asker.ask(case, _chances_form(case.dimensions))
        if heard.value is None or heard.vote is None:
            return DimensionScores.none(case, heard.reason, flags=heard.flags)
        expected: dict[str, float] = {}
        missing: dict[str, str] = {}
        for one in case.dimensions:
            chances = heard.value.chances[one.name]
            covered = sum(chances)
            if covered < _ENOUGH:
                missing[one.name] = f"only {covered:.2f} of the probability is on the levels"
            else:
                mean = sum(level * chance for level, chance in zip(one.levels, chances, strict=True)) / covered
                expected[one.name] = min(max(mean, one.levels[0]), one.levels[-1])
        values = {name: self._mapped(case, name, value) for name, value in expected.items()}
        told: dict[str, JsonValue] = {"judge": self.name, **heard.value.model_dump(mode="json")}
        return DimensionScores(
            values=values,
            missing=missing,
            breaks=case.breaks(expected),
            flags=heard.flags,
            evidence=({**told, "expected": dict(expected), **heard.pictures.evidence},),
            votes=(heard.vote.key,),
        )

    def _mapped(self, case: Case, dimension: str, value: float) -> float:
        if self._calibration is None:
            return value
        return self._calibration.mapped(case.encounter, case.language, dimension, value)


class _AsksForChances:
    """Puts the question to the model, and makes of its reply the chances of each level."""

    def __init__(self, client: ModelClient) -> None:
        self._client = client
        self.name = client.name

    @property
    def settings(self) -> dict[str, JsonValue]:
        return self._client.settings

    async def ask(self, parts: Sequence[Part], *, system: str = "", schema: type[T]) -> Reply[T]:
        if not issubclass(schema, Chances):
            raise TypeError(f"{schema.__name__} is no form of chances")
        reply = await self._client.ask(parts, system=system, schema=schema.asked)
        if not reply.tokens:
            raise ConfigurationError(
                f"{NAME}: {self.name} gives no token probabilities: expected a server that lists them "
                "(logprobs), and a reply that is no tool call (--structured native or prompted)"
            )
        drawn = {name: int(level) for name, level in reply.value.scores.items()}
        chances = {name: level_chances(reply, name, schema.counts[name]) for name in drawn}
        return Reply(
            reply.text,
            schema(chances=chances, drawn=drawn),
            reply.usage,
            reply.finish_reason,
            reply.model,
            reply.tokens,
        )


def level_chances(reply: Reply[Rated], name: str, count: int) -> list[float]:
    """The probabilities of the levels 0 to `count` − 1 where the reply states that of `name`, lowest first.

    Raises `InfrastructureError` where its tokens do not make up its text, the level shares its token with
    more than punctuation, or the server lists nothing that could have stood in its place: the level that was
    drawn is no probability.
    """
    text = reply.text.encode()
    start = b"".join(one.text for one in reply.tokens).rfind(text)
    stated = list(re.finditer(rb'"' + re.escape(name.encode()) + rb'"\s*:\s*(\d)', text))
    if start < 0 or len(stated) != 1:
        raise InfrastructureError(f"{NAME}: the tokens of the reply do not show where it states {name!r}")
    place, end = start + stated[0].start(1), 0
    token = next(one for one in reply.tokens if (end := end + len(one.text)) > place)
    if not _LEVEL.fullmatch(token.text):
        raise InfrastructureError(f"{NAME}: the level of {name!r} shares its token with other text")
    if len(token.chances) < 2 and max(token.chances.values()) < _CERTAIN:
        raise InfrastructureError(f"{NAME}: {reply.model}: the server lists no alternatives to the level of {name!r}")
    chances = [0.0] * count
    for other, chance in token.chances.items():
        found = _LEVEL.fullmatch(other)
        if found and int(found[1]) < count:
            chances[int(found[1])] += chance
    return chances


class _Options(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    calibration: Path | None = None


@RatesDimensions
def build(setup: JudgeSetup) -> DimensionJudge:
    """The score that the model expects, from the probabilities of its tokens; calibrated where a file says how.

    The option `calibration` is a file made by `proctor judge calibrate`. Raises `ConfigurationError` unless
    there is exactly one model, and it is asked by OpenAI's protocol.
    """
    options = read_options(NAME, _Options, setup.options)
    spec = setup.clients.only(NAME)
    calibration = read_calibration(options.calibration) if options.calibration else None
    try:
        client = setup.clients.client(spec, _LIKES)
    except ConfigurationError as error:
        if "unknown model setting 'openai_" not in str(error):
            raise
    else:
        return LogprobJudge(client, setup.votes, calibration, setup.prompts)
    raise ConfigurationError(
        f"{NAME}: {spec.name} gives no token probabilities: expected a model asked by OpenAI's protocol"
    )
