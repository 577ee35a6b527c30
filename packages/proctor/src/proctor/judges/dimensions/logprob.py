"""Scores from token probabilities: `logprob-judge` asks any model, `generative-judge` local weights fine-tuned on ratings.

After MedAware (Hao and Liu 2026, in section 6.3 of the overview): all dimensions in one short reply, and for each the
mean of its levels under the model's probabilities instead of the sampled level. Levels are numbered 0, 1, 2, so that
each is one token. A calibration maps the mean to clinicians' ratings (isotonic; never fitted on the encounter that is
judged).

The folder of a `generative-judge` contains `manifest.json` and `adapter/` (for the base it was trained on), or weights
that stand alone. Nothing in it is executed; a folder whose weights, base or prompts do not match the manifest is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from pydantic import Field, JsonValue

from proctor.core import (
    ConfigurationError,
    Dimension,
    FrozenModel,
    InfrastructureError,
    InputError,
    JudgementCache,
    read_model,
)
from proctor.judges.cached_model import CachedModel, StoredReply, load_prompts, prompt_hashes
from proctor.judges.dimensions.calibration import Calibration, read_calibration
from proctor.judges.dimensions.case import TRAINED_ON, Case, DimensionScores, encounter_scores, refuse_unlearned
from proctor.judges.dimensions.model_judge import (
    ModelJudge,
    Pictures,
    Rated,
    RatingScale,
    look,
    rating_form,
    rating_request,
)
from proctor.judges.dimensions.scorer import DimensionJudge, JudgeSetup, RatesDimensions, read_options
from proctor.models import ModelClient, ModelSpec, Query, Reply, weights_hash

_LOGPROB = "logprob-judge"

_MIN_COVERED = 0.5  # with less probability on the levels, their mean says nothing about the model's rating
_CERTAIN = 0.99  # a token of this probability needs no listed alternatives
_LEVEL = re.compile(rb'[\s":]*(\d)[\s,}]*')


class Chances(FrozenModel):
    """The probability of each level (lowest first) by dimension, as far as the server lists it, and the index of the
    sampled level."""

    chances: dict[str, list[float]]
    drawn: dict[str, int]


def _stored(model: str, dimensions: tuple[Dimension, ...]) -> StoredReply[Chances]:
    """A reply that is stored as level probabilities. Storing raises `ConfigurationError` if the model gives none."""
    counts = {dimension.name: len(dimension.levels) for dimension in dimensions}

    def dump(reply: Reply[Rated]) -> dict[str, JsonValue]:
        if not reply.tokens:
            raise ConfigurationError(
                f"{_LOGPROB}: {model} gives no token probabilities: expected a server that lists them "
                "(logprobs), and a reply that is no tool call (--structured native or prompted)"
            )
        drawn = {name: int(level) for name, level in reply.value.scores.items()}
        chances = {name: level_chances(reply, name, counts[name]) for name in drawn}
        return Chances(chances=chances, drawn=drawn).model_dump(mode="json")

    return StoredReply(rating_form(dimensions, whole=True, reason=False), dump, Chances.model_validate)


def mean_level(levels: Sequence[float], chances: Sequence[float]) -> float | None:
    """The mean of levels under their probabilities; None if the levels have less than half of the probability.

    >>> mean_level((0.0, 0.5, 1.0), (0.25, 0.25, 0.25)), mean_level((0.0, 1.0), (0.2, 0.2))
    (0.5, None)
    """
    covered = sum(chances)
    if covered < _MIN_COVERED:
        return None
    mean = sum(level * chance for level, chance in zip(levels, chances, strict=True)) / covered
    return min(max(mean, levels[0]), levels[-1])


def logprob_scale(
    model: str, calibration: Calibration | None = None, readout: Literal["expected", "sampled"] = "expected"
) -> RatingScale:
    """The mean of the levels under the model's probabilities, mapped by a calibration if there is one.

    A dimension whose levels have less than half of the probability is missing. With the readout `sampled`, the sampled
    level replaces the mean.
    """

    def read(case: Case, said: Chances) -> DimensionScores:
        expected: dict[str, float] = {}
        missing: dict[str, str] = {}
        for dimension in case.dimensions:
            chances = said.chances[dimension.name]
            mean = (
                dimension.levels[said.drawn[dimension.name]]
                if readout == "sampled"
                else mean_level(dimension.levels, chances)
            )
            if mean is None:
                missing[dimension.name] = f"only {sum(chances):.2f} of the probability is on the levels"
            else:
                expected[dimension.name] = mean
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
    """The probabilities of the levels 0 to `count` − 1 at the token where the reply gives the level of `name`.

    Raises `InfrastructureError` if the tokens do not make up the text, if the level shares its token with more than
    punctuation, or if the server lists no alternatives: the sampled level alone is not a probability.
    """
    text = reply.text.encode()
    start = b"".join(one.text for one in reply.tokens).rfind(text)
    stated = list(re.finditer(rb'"' + re.escape(name.encode()) + rb'"\s*:\s*(\d)', text))
    if start < 0 or len(stated) != 1:
        raise InfrastructureError(f"{_LOGPROB}: the tokens of the reply do not show where it states {name!r}")
    location, end = start + stated[0].start(1), 0
    token = next(one for one in reply.tokens if (end := end + len(one.text)) > location)
    if not _LEVEL.fullmatch(token.text):
        raise InfrastructureError(f"{_LOGPROB}: the level of {name!r} shares its token with other text")
    if len(token.chances) < 2 and max(token.chances.values()) < _CERTAIN:
        raise InfrastructureError(
            f"{_LOGPROB}: {reply.model}: the server lists no alternatives to the level of {name!r}"
        )
    chances = [0.0] * count
    for other, chance in token.chances.items():
        found = _LEVEL.fullmatch(other)
        if found and int(found[1]) < count:
            chances[int(found[1])] += chance
    return chances


GENERATIVE = "generative-judge"
MANIFEST, ADAPTER = "manifest.json", "adapter"
_STANDALONE = ("merged", "weights")  # with the adapter merged, or trained as a whole

_TRAINED = "a judge that was trained (proctor train generative-judge)"

Readout = Literal["expected", "sampled"]


class GenerativeManifest(FrozenModel):
    """The identity and origin of a trained judge.

    `base` is the path of the base weights; `base_sha256` is the hash of weights, tokenizer and chat template (see
    `weights_hash`), `adapter_sha256` and `merged_sha256` are those of the trained weights. `prompts` are the hashes of
    the prompts by language, `dimensions` the levels by language and name. `trained_on` has the scores of all encounters
    seen in training or in the choice of the checkpoint; `held_out` is the agreement with people on other encounters, an
    entry for each language and dimension.
    """

    format: Literal[1] = 1
    judge: Literal["generative-judge"] = "generative-judge"
    base: str
    base_sha256: str
    template_sha256: str
    adapter_sha256: str = ""
    merged_sha256: str = ""
    pictures: bool
    prompts: dict[str, JsonValue]
    dimensions: dict[str, dict[str, tuple[float, ...]]] = Field(min_length=1)
    data_sha256: str
    answers: int
    encounters: int
    trained_on: tuple[str, ...]
    held_out: tuple[dict[str, JsonValue], ...] = ()
    settings: dict[str, JsonValue] = Field(default_factory=dict)
    versions: dict[str, JsonValue] = Field(default_factory=dict)
    licence: str = ""


def generative_client(weights: str, likes: Mapping[str, JsonValue] | None = None) -> ModelSpec:
    """The specification of a judge's weights (BASE, or BASE+ADAPTER), which only fill in the form."""
    settings: dict[str, JsonValue] = {"temperature": 0.0, "fill_form": True, **(likes or {})}
    return ModelSpec(name=f"transformers:{weights}", settings=settings)


class GenerativeJudge(ModelJudge):
    """Fills in the levels of all dimensions in one reply. The score is the mean level under the probabilities of the
    levels' tokens, or with `readout` "sampled" the sampled level."""

    def __init__(
        self,
        client: ModelClient,
        judgements: JudgementCache,
        manifest: GenerativeManifest,
        *,
        readout: Readout = "expected",
        calibration: Calibration | None = None,
        prompts: Path | None = None,
    ) -> None:
        scale = logprob_scale(client.name, calibration, readout)
        super().__init__(GENERATIVE, client, judgements, scale=scale, prompts=prompts)
        variant = f"{'/sampled' if readout == 'sampled' else ''}{'/calibrated' if calibration else ''}"
        self.name = f"{GENERATIVE}{variant}[{(manifest.adapter_sha256 or manifest.merged_sha256)[:8]}]"
        self._model = CachedModel(self.name, client, judgements)
        self._manifest, self._learned_from = manifest, frozenset(manifest.trained_on)
        if prompt_hashes(self._prompts) != manifest.prompts:
            raise InputError(GENERATIVE, found="other prompts", expected="those that it was trained with")

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The settings of the model, and the hashes of its origin."""
        known = self._manifest.model_dump(mode="json", include={"base_sha256", "adapter_sha256", "data_sha256"})
        return {**super().settings, **known}

    async def judge(self, case: Case) -> DimensionScores:
        """As `ModelJudge.judge`; encounters that it was trained on are flagged, under any name."""
        refuse_unlearned(GENERATIVE, case, self._manifest.dimensions)
        said = await super().judge(case)
        seen = (TRAINED_ON,) if encounter_scores(case) & self._learned_from else ()
        return replace(said, flags=(*said.flags, *seen))

    async def _look(self, case: Case) -> Pictures:
        return await look(case, self._manifest.pictures)


class _Options(FrozenModel):
    folder: Path
    base: str = ""
    readout: Readout = "expected"
    temperature: float = Field(default=0.0, ge=0)
    seed: int = 0
    calibration: Path | None = None
    device: str = "auto"


def read_generative(folder: Path) -> GenerativeManifest:
    """The manifest of a trained judge. Raises `InputError` for anything else."""
    return read_model(folder / MANIFEST, GenerativeManifest, _TRAINED)


def trained_weights(folder: Path, manifest: GenerativeManifest, base: str = "") -> str:
    """The weights of a judge's folder: standalone weights, or BASE+`adapter`. Raises `InputError` for weights that do not
    match the manifest, and if the base is missing."""
    if manifest.merged_sha256:
        weights = next((folder / name for name in _STANDALONE if (folder / name).is_dir()), folder / _STANDALONE[0])
        _check(weights, manifest.merged_sha256, "the weights that the manifest names")
        return str(weights)
    where = Path(base or manifest.base).expanduser()
    _check(where, manifest.base_sha256, "the base that it was trained on (option base)")
    _check(folder / ADAPTER, manifest.adapter_sha256, "the adapter that the manifest names")
    return f"{where}+{folder / ADAPTER}"


def _check(folder: Path, known: str, what: str) -> None:
    if not folder.is_dir():
        raise InputError(folder, found="no such folder", expected=what)
    if weights_hash(folder) != known:
        raise InputError(folder, found="other weights", expected=what)


@RatesDimensions
def generative(setup: JudgeSetup) -> DimensionJudge:
    """Local weights that were fine-tuned on ratings; options `folder`, `base`, `readout`, `calibration`.

    `folder` is what `proctor train generative-judge` made; `base` says where its base is, if not where it was. `readout`
    is expected (the mean level under the model's probabilities) or sampled (a level drawn at `temperature`, which is 0).
    """
    options = read_options(GENERATIVE, _Options, setup.options)
    manifest = read_generative(options.folder)
    where = trained_weights(options.folder, manifest, options.base)
    likes: dict[str, JsonValue] = {"temperature": options.temperature, "seed": options.seed, "device": options.device}
    client = setup.clients.client(generative_client(where, likes))
    calibration = read_calibration(options.calibration) if options.calibration else None
    return GenerativeJudge(
        client, setup.judgements, manifest, readout=options.readout, calibration=calibration, prompts=setup.prompts
    )


async def generative_query(case: Case, client: ModelClient, prompts: Path | None, *, shows_pictures: bool) -> Query:
    """The query by which such a judge asks its weights about a case, for training."""
    scale = logprob_scale(client.name)
    pictures = await look(case, shows_pictures)
    request = rating_request(scale, load_prompts(scale.template, prompts), case, pictures)
    return client.query(request.parts, system=request.system, schema=scale.stored(request.asked, False).form)


def rubric_prompts(folder: Path | None) -> dict[str, JsonValue]:
    """The hashes of such a judge's prompts, for its manifest."""
    return prompt_hashes(load_prompts("rubric", folder))
