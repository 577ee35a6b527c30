"""The judge `generative-judge`: local weights that were fine-tuned on ratings, so that they reply with the level of each
dimension; after MedAware (Hao and Liu 2026, in section 6.3 of the overview).

Its folder holds `manifest.json` and `adapter/` (for the base it was trained on), or weights that stand alone.
Nothing in it is run; a folder whose weights, base or prompts are not those of the manifest is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from proctor.core import Dimension, InputError, JudgementCache, read_model
from proctor.judges.cached_model import CachedModel, load_prompts, prompt_hashes
from proctor.judges.dimensions.case import TRAINED_ON, Case, DimensionScores
from proctor.judges.dimensions.fitted import Calibration, read_calibration
from proctor.judges.dimensions.logprob import logprob_scale
from proctor.judges.dimensions.marks import encounter_marks
from proctor.judges.dimensions.model_judge import ModelJudge, Pictures, look, rating_request
from proctor.judges.dimensions.scorer import DimensionJudge, JudgeSetup, RatesDimensions, read_options
from proctor.models import ModelClient, ModelSpec, Query, weights_hash

NAME = "generative-judge"
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
                raise InputError(f"{NAME}: case {case.id}", found=found, expected=f"what it learned: {learned}")


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
        super().__init__(NAME, client, votes, scale=scale, prompts=prompts)
        variant = "".join(
            f"/{one}" for one in (readout if readout == "sampled" else "", "calibrated" if calibration else "") if one
        )
        self.name = f"{NAME}{variant}[{(manifest.adapter_sha256 or manifest.merged_sha256)[:8]}]"
        self._model = CachedModel(self.name, client, votes)
        self._manifest, self._learned_from = manifest, frozenset(manifest.trained_on)
        if prompt_hashes(self._prompts) != manifest.prompts:
            raise InputError(NAME, found="other prompts", expected="those that it was trained with")

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
def build(setup: JudgeSetup) -> DimensionJudge:
    """Local weights that were fine-tuned on ratings; options `folder`, `base`, `readout`, `calibration`.

    `folder` is what `proctor train generative-judge` made; `base` says where its base is, if not where it was. `readout`
    is expected (the mean level under the model's probabilities) or sampled (a level drawn at `temperature`, which is 0).
    """
    options = read_options(NAME, _Options, setup.options)
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
