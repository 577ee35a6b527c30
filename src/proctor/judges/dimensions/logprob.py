"""The scale of `logprob-judge`: the score that a model expects, from the probabilities of what it could have said.

After MedAware (Hao and Liu 2026, in section 6.3 of the overview): all dimensions in one short reply, and of
each the mean of its levels under the model's own probabilities instead of the level that was drawn. Levels
are counted 0, 1, 2, so that each is one token. With a calibration, the mean is mapped to what clinicians
gave on rated data (isotonic; never on the encounter that is judged).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from proctor.core import ConfigurationError, Dimension, InfrastructureError, InputError, JudgementCache, read_model
from proctor.judges.cached_model import CachedModel, StoredReply, load_prompts, prompt_hashes
from proctor.judges.dimensions.case import TRAINED_ON, Case, DimensionScores, encounter_marks
from proctor.judges.dimensions.fitted import Calibration, read_calibration
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
                f"{_LOGPROB}: {model} gives no token probabilities: expected a server that lists them "
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
        raise InfrastructureError(f"{_LOGPROB}: the tokens of the reply do not show where it states {name!r}")
    place, end = start + stated[0].start(1), 0
    token = next(one for one in reply.tokens if (end := end + len(one.text)) > place)
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
_WHOLE = ("merged", "weights")  # weights that stand alone: with the adapter added, or trained as a whole

_TRAINED = "a judge that was trained (proctor train generative-judge)"

Readout = Literal["expected", "sampled"]


class GenerativeManifest(BaseModel):
    """What a trained judge is and came from.

    `base` is where the base weights stood; `base_sha256` is their hash with that of the tokenizer and the chat template
    (see `weights_hash`), `adapter_sha256` and `merged_sha256` those of what was trained. `prompts` are the hashes of
    the prompts by language, `dimensions` their levels by language and name. `trained_on` are the marks of all
    encounters that were seen in training, those included by which the checkpoint was chosen; `held_out` is how it
    agrees with people on encounters that were not, an entry for each language and dimension.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

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
    settings: dict[str, JsonValue] = {}
    versions: dict[str, JsonValue] = {}
    licence: str = ""

    def refuse_other(self, cases: Iterable[Case]) -> None:
        """Raises `InputError` for a language or dimension that was not learned, or has other levels."""
        for case in cases:
            known = self.dimensions.get(case.language, {})
            odd = next((one for one in case.dimensions if known.get(one.name) != one.levels), None)
            if odd is not None or not case.dimensions:
                found = f"{case.language}, {_told(odd)}" if odd else f"the language {case.language!r}"
                learned = "; ".join(f"{name}: {', '.join(levels)}" for name, levels in self.dimensions.items())
                raise InputError(f"{GENERATIVE}: case {case.id}", found=found, expected=f"what it learned: {learned}")


def generative_client(weights: str, likes: Mapping[str, JsonValue] | None = None) -> ModelSpec:
    """How a judge's weights (BASE, or BASE+ADAPTER) are asked: they fill in the form and say nothing else."""
    settings: dict[str, JsonValue] = {"temperature": 0.0, "fill_form": True, **(likes or {})}
    return ModelSpec(name=f"transformers:{weights}", settings=settings)


class GenerativeJudge(ModelJudge):
    """Fills in the levels of all dimensions in one reply. `readout` is the mean level under the probabilities of the
    levels' tokens, or the level that was drawn."""

    def __init__(
        self,
        client: ModelClient,
        votes: JudgementCache,
        manifest: GenerativeManifest,
        *,
        readout: Readout = "expected",
        calibration: Calibration | None = None,
        prompts: Path | None = None,
    ) -> None:
        scale = logprob_scale(client.name, calibration, readout)
        super().__init__(GENERATIVE, client, votes, scale=scale, prompts=prompts)
        variant = "".join(
            f"/{one}" for one in (readout if readout == "sampled" else "", "calibrated" if calibration else "") if one
        )
        self.name = f"{GENERATIVE}{variant}[{(manifest.adapter_sha256 or manifest.merged_sha256)[:8]}]"
        self._model = CachedModel(self.name, client, votes)
        self._manifest, self._learned_from = manifest, frozenset(manifest.trained_on)
        if prompt_hashes(self._prompts) != manifest.prompts:
            raise InputError(GENERATIVE, found="other prompts", expected="those that it was trained with")

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The model's, and what it was trained on."""
        known = self._manifest.model_dump(mode="json", include={"base_sha256", "adapter_sha256", "data_sha256"})
        return {**super().settings, **known}

    async def judge(self, case: Case) -> DimensionScores:
        """As `ModelJudge.judge`; an encounter that it was trained on is flagged, by whatever name it comes."""
        self._manifest.refuse_other([case])
        said = await super().judge(case)
        seen = (TRAINED_ON,) if encounter_marks(case) & self._learned_from else ()
        return replace(said, flags=(*said.flags, *seen))

    async def _look(self, case: Case) -> Pictures:
        return await look(case, self._manifest.pictures)


class _Options(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

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
    """Where the weights of a judge's folder are: `merged`, or BASE+`adapter`. Raises `InputError` for weights that are
    not those of the manifest, and where the base is not at hand."""
    if manifest.merged_sha256:
        whole = next((folder / name for name in _WHOLE if (folder / name).is_dir()), folder / _WHOLE[0])
        _check(whole, manifest.merged_sha256, "the weights that the manifest names")
        return str(whole)
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
        client, setup.votes, manifest, readout=options.readout, calibration=calibration, prompts=setup.prompts
    )


async def generative_query(case: Case, client: ModelClient, prompts: Path | None, *, shows_pictures: bool) -> Query:
    """What such a judge asks its weights about a case, for learning from."""
    scale = logprob_scale(client.name)
    pictures = await look(case, shows_pictures)
    request = rating_request(scale, load_prompts(scale.template, prompts), case, pictures)
    return client.query(request.parts, system=request.system, schema=scale.stored(request.asked, False).form)


def rubric_prompts(folder: Path | None) -> dict[str, JsonValue]:
    """The hashes of the prompts that such a judge is asked by, for its manifest."""
    return prompt_hashes(load_prompts("rubric", folder))


def _told(dimension: Dimension | None) -> str:
    return "" if dimension is None else f"{dimension.name} ({', '.join(f'{one:g}' for one in dimension.levels)})"
