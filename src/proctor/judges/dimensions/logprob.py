"""The scale of `logprob-judge`: the score that a model expects, from the probabilities of what it could have said.

After MedAware (Hao and Liu 2026, in section 6.3 of the overview): all dimensions in one short reply, and of
each the mean of its levels under the model's own probabilities instead of the level that was drawn. Levels
are counted 0, 1, 2, so that each is one token. With a calibration, the mean is mapped to what clinicians
gave on rated data (isotonic; never on the encounter that is judged).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, JsonValue

from proctor.core import ConfigurationError, Dimension, InfrastructureError
from proctor.judges.cached_model import StoredReply
from proctor.judges.dimensions.case import Case, DimensionScores
from proctor.judges.dimensions.fitted import Calibration
from proctor.judges.dimensions.model_judge import Rated, RatingScale, rating_form
from proctor.models import Reply

NAME = "logprob-judge"

_ENOUGH = 0.5  # with less of the probability on the levels, their mean says nothing of what the model means
_CERTAIN = 0.99  # what is as good as certain needs no alternative
_LEVEL = re.compile(rb'[\s":]*(\d)[\s,}]*')


class Chances(BaseModel):
    """The probability of each level (lowest first) by dimension, as far as the server lists it, and the
    level that was drawn."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    chances: dict[str, list[float]]
    drawn: dict[str, int]


def _stored(model: str, dimensions: tuple[Dimension, ...]) -> StoredReply[Chances]:
    """A reply kept as the chances of each level. Raises `ConfigurationError` where the model gives none."""
    counts = {one.name: len(one.levels) for one in dimensions}

    def dump(reply: Reply[Rated]) -> dict[str, JsonValue]:
        if not reply.tokens:
            raise ConfigurationError(
                f"{NAME}: {model} gives no token probabilities: expected a server that lists them "
                "(logprobs), and a reply that is no tool call (--structured native or prompted)"
            )
        drawn = {name: int(level) for name, level in reply.value.scores.items()}
        chances = {name: level_chances(reply, name, counts[name]) for name in drawn}
        return Chances(chances=chances, drawn=drawn).model_dump(mode="json")

    return StoredReply(rating_form(dimensions, whole=True, reason=False), dump, Chances.model_validate)


def mean_level(levels: Sequence[float], chances: Sequence[float]) -> float | None:
    """The mean of levels under their probabilities; None where less than half of the probability is on them.

    >>> mean_level((0.0, 0.5, 1.0), (0.25, 0.25, 0.25)), mean_level((0.0, 1.0), (0.2, 0.2))
    (0.5, None)
    """
    covered = sum(chances)
    if covered < _ENOUGH:
        return None
    mean = sum(level * chance for level, chance in zip(levels, chances, strict=True)) / covered
    return min(max(mean, levels[0]), levels[-1])


def logprob_scale(
    model: str, calibration: Calibration | None = None, readout: Literal["expected", "sampled"] = "expected"
) -> RatingScale:
    """The mean of the levels that the model could have given, mapped by a calibration where there is one.

    A dimension on whose levels the server lists less than half of the probability is missing. With the readout
    `sampled`, the level that was drawn stands for the mean.
    """

    def read(case: Case, said: Chances) -> DimensionScores:
        expected: dict[str, float] = {}
        missing: dict[str, str] = {}
        for one in case.dimensions:
            chances = said.chances[one.name]
            mean = one.levels[said.drawn[one.name]] if readout == "sampled" else mean_level(one.levels, chances)
            if mean is None:
                missing[one.name] = f"only {sum(chances):.2f} of the probability is on the levels"
            else:
                expected[one.name] = mean
        values = {name: mapped(case, name, value) for name, value in expected.items()}
        told: dict[str, JsonValue] = {**said.model_dump(mode="json"), "expected": dict(expected)}
        return DimensionScores(values, missing, breaks=case.breaks(expected), evidence=(told,))

    def mapped(case: Case, dimension: str, value: float) -> float:
        return calibration.mapped(case.encounter, case.language, dimension, value) if calibration else value

    return RatingScale(
        "rubric",
        {"low": "0", "middle": "1", "high": "2", "whole": True, "with_reason": False},
        lambda dimensions, _: _stored(model, dimensions),
        read,
        settings={"calibration_sha256": calibration.sha256 if calibration else None},
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
