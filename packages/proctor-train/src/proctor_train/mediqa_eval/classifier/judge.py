"""The judge `classifier-judge`: encoders with a head for each dimension, trained on rated answers, and the captions by which
it knows the pictures.

Its folder contains `manifest.json`, which people can read, and weights that execute no code.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from proctor.core import (
    ConfigurationError,
    Dimension,
    FrozenModel,
    InfrastructureError,
    InputError,
    JudgementCache,
    content_hash,
    pip_install,
    read_model,
    whole_folder,
    write_whole,
)
from proctor.judges import PromptedModel, as_said, load_prompts, several
from proctor.judges.dimensions import (
    IMAGES_UNSEEN,
    TRAINED_ON,
    Case,
    DimensionJudge,
    DimensionScores,
    JudgeSetup,
    RatesDimensions,
    encounter_scores,
    injection_flags,
    look,
    read_options,
    refuse_unlearned,
)
from proctor.models import ModelClient
from proctor.stats import Floats
from proctor_train.mediqa_eval import PROMPTS
from proctor_train.mediqa_eval.embedded.judge import hash_of

if TYPE_CHECKING:
    from proctor_train.mediqa_eval.classifier.network import FrozenEncoder, LevelClassifier


class Caption(FrozenModel):
    """What the pictures show."""

    model_config = ConfigDict(strict=True)

    caption: str = Field(max_length=4000)


@dataclass(frozen=True)
class CaptionedCase:
    """The caption of a case's pictures ('' if none is available), flags for people, and the key of its judgement."""

    text: str = ""
    flags: tuple[str, ...] = ()
    judgements: tuple[str, ...] = ()


class CaptionWriter:
    """Asks a model for captions. It sees only the pictures, so that the answers to one question share one call."""

    def __init__(self, client: ModelClient, judgements: JudgementCache, prompts: Path | None = None) -> None:
        name = f"caption[{client.name}]"
        self._model = PromptedModel(name, client, judgements, "caption", load_prompts("caption", prompts, PROMPTS))

    async def caption(self, case: Case) -> CaptionedCase:
        """The caption. Raises `InfrastructureError` if the model gives none."""
        pictures = await look(case)
        if not pictures.frames:
            return CaptionedCase(flags=pictures.flags)
        reply, judgement = await self._model.ask(
            as_said(Caption),
            case.id,
            {"images": pictures.hashes},
            language=case.language,
            shown={"images_shown": len(pictures.frames)},
            frames=pictures.frames,
        )
        return CaptionedCase(" ".join(reply.caption.split()), pictures.flags, (judgement.key,))


async def write_captions(
    cases: Sequence[Case], client: ModelClient, judgements: JudgementCache, prompts: Path | None, at_once: int
) -> list[str]:
    """The caption of each case, with `at_once` concurrent calls. Raises `InfrastructureError` if the model gives none."""
    writer = CaptionWriter(client, judgements, prompts)
    return [captioned_case.text for captioned_case in await several(writer.caption, cases, at_once)]


_NAME = "classifier-judge"
_MANIFEST = "manifest.json"
_DIGITS = 6
_LEVELS = Annotated[tuple[float, ...], Field(min_length=2, max_length=100)]

INPUT_CUT = "input-cut"
"""Flag: the input was longer than the encoder's limit, and its parts were cut at their ends."""

Loss = Literal["ordinal", "classes"]
Readout = Literal["expected", "level"]


class ClassifierMember(FrozenModel):
    """One of the networks whose scores are averaged: its seed, the best epoch on the training answers that were set aside
    for this choice, and its agreement there (`chosen_by`), which is biased upwards."""

    seed: int
    epoch: int
    chosen_by: float | None
    weights_sha256: str


class ClassifierLanguage(FrozenModel):
    """A trained classifier of one language: `layers` top layers of an encoder, and heads. `cut` counts the answers whose
    input was too long, by the part that was cut."""

    encoder: str
    encoder_sha256: str
    layers: int = Field(ge=0)
    levels: Annotated[dict[str, _LEVELS], Field(min_length=1, max_length=100)]
    answers: int
    encounters: int
    cut: dict[str, int]
    members: Annotated[tuple[ClassifierMember, ...], Field(min_length=1, max_length=100)]


class ClassifierManifest(FrozenModel):
    """The identity and origin of a trained classifier. `captions` names the model whose captions of pictures it reads (''
    if it knows nothing of pictures), `trained_on` are the scores of its training encounters."""

    format: Literal[1]
    judge: Literal["classifier-judge"]
    loss: Loss
    references: bool
    captions: str
    max_tokens: int = Field(ge=16)
    recipe: dict[str, JsonValue]
    languages: Annotated[dict[str, ClassifierLanguage], Field(min_length=1, max_length=100)]
    data_sha256: str
    trained_on: tuple[str, ...]
    versions: dict[str, str | None]

    @property
    def sha256(self) -> str:
        """The hash of all weights, and of the settings of their input."""
        weights: list[JsonValue] = [
            member.weights_sha256 for language in self.languages.values() for member in language.members
        ]
        return content_hash([weights, self.loss, self.references, self.captions, self.max_tokens])


@dataclass(frozen=True)
class TrainedLanguage:
    """The networks of one language, and the encoder below them."""

    encoder: FrozenEncoder
    members: tuple[LevelClassifier, ...]

    def probabilities(self, case: Case, caption: str, manifest: ClassifierManifest) -> tuple[list[Floats], bool]:
        """For each dimension (in the order of the members' names) the probabilities of its levels (members × levels), and
        whether the input was cut."""
        from proctor_train.mediqa_eval.classifier.network import features_of, probabilities, tokenized

        limit = min(manifest.max_tokens, self.encoder.limit)
        one = tokenized(case, caption, self.encoder.tokenizer, limit, references=manifest.references)
        states = self.encoder.states([one])
        found = [probabilities(member, features_of(member, states, [one])) for member in self.members]
        return [
            np.concatenate([np.asarray(each[k], dtype=np.float64) for each in found]) for k in range(len(found[0]))
        ], bool(one.cut)


class ClassifierJudge:
    """Scores answers by encoders that were trained on rated answers: a `DimensionJudge`.

    A score is the expected rating: the mean level under the probabilities, averaged over the members; with `readout`
    "level" it is the most probable level. The disagreement is the range of the members' expected ratings. A case gets
    the same scores whatever else is judged.
    """

    def __init__(
        self,
        trained: Mapping[str, TrainedLanguage],
        manifest: ClassifierManifest,
        *,
        captions: CaptionWriter | None = None,
        readout: Readout = "expected",
    ) -> None:
        self._trained = dict(trained)
        self._captions = captions
        self._readout = readout
        self._lock = asyncio.Lock()
        self._trained_on = frozenset(manifest.trained_on)
        self.manifest = manifest
        self.name = f"{_NAME}{'' if readout == 'expected' else f'/{readout}'}[{manifest.sha256[:8]}]"

    @property
    def settings(self) -> dict[str, JsonValue]:
        """Everything that changes the scores."""
        return {
            "judge": _NAME,
            "weights_sha256": self.manifest.sha256,
            "data_sha256": self.manifest.data_sha256,
            "encoders": {name: one.encoder_sha256 for name, one in self.manifest.languages.items()},
            "captions": self.manifest.captions,
            "readout": self._readout,
        }

    async def judge(self, case: Case) -> DimensionScores:
        """The scores of one answer (see `DimensionJudge`). Raises as `refuse_unlearned`."""
        refuse_unlearned(_NAME, case, {name: one.levels for name, one in self.manifest.languages.items()})
        flags = list(injection_flags(case))
        caption = CaptionedCase()
        try:
            if self._captions is not None:
                caption = await self._captions.caption(case)
            elif case.images:
                flags.append(IMAGES_UNSEEN)
        except InfrastructureError as error:
            return DimensionScores.none(case, str(error), flags=flags)
        async with self._lock:  # tokenizers are not thread-safe
            found, cut = await asyncio.to_thread(
                self._trained[case.language].probabilities, case, caption.text, self.manifest
            )
        flags += [*caption.flags, *([INPUT_CUT] if cut else [])]
        flags += [TRAINED_ON] if encounter_scores(case) & self._trained_on else []
        scores = self._read(case, dict(zip(self._trained[case.language].members[0].names, found, strict=True)))
        shown: dict[str, JsonValue] = {"caption": caption.text} if caption.text else {}
        return replace(
            scores, flags=tuple(flags), evidence=({**shown, **scores.evidence[0]},), judgements=caption.judgements
        )

    def _read(self, case: Case, found: Mapping[str, Floats]) -> DimensionScores:
        values: dict[str, float] = {}
        apart: dict[str, float] = {}
        shares: dict[str, JsonValue] = {}
        for dimension in case.dimensions:
            levels, each = np.array(dimension.levels), found[dimension.name]
            mean, expected = each.mean(axis=0), each @ levels
            values[dimension.name] = read_levels(each, dimension, self._readout)
            apart[dimension.name] = round(float(np.ptp(expected)), _DIGITS)
            shares[dimension.name] = {
                f"{level:g}": round(float(share), 4) for level, share in zip(levels, mean, strict=True)
            }
        return DimensionScores(values, disagreement=apart, evidence=({"probabilities": shares},))


def read_levels(probabilities: Floats, dimension: Dimension, readout: Readout = "expected") -> float:
    """A score from the probabilities of a dimension's levels (members × levels): the expected level, or the most probable
    one, the lower of a tie.

    >>> from proctor.judges.dimensions import Dimension
    >>> shares = np.array([[0.5, 0.25, 0.25], [0.75, 0.25, 0.0]])
    >>> overall = Dimension("overall", (0.0, 0.5, 1.0))
    >>> read_levels(shares, overall), read_levels(shares, overall, "level")
    (0.25, 0.0)
    """
    mean, levels = probabilities.mean(axis=0), dimension.levels
    if readout == "level":
        return levels[int(np.argmax(mean))]
    value = round(float(mean @ np.array(levels)), _DIGITS)
    return min(max(value, levels[0]), levels[-1])


def _file(folder: Path, language: int, member: int) -> Path:
    """The file of a member's weights. It contains the number of the language, since a name may not suit a file name."""
    return folder / f"weights-{language + 1}-{member + 1}.safetensors"


def state_hash(state: Mapping[str, Any]) -> str:
    """The hash of a network's tensors by name."""
    return hash_of({name: value.detach().cpu().numpy() for name, value in state.items()})


def save_classifier(
    folder: Path, states: Mapping[str, Sequence[Mapping[str, Any]]], manifest: ClassifierManifest
) -> None:
    """Writes a trained classifier with the tensors of each member, by language. The folder appears complete or not at all.
    Raises `InputError` if it is not empty or can't be written."""
    from safetensors.torch import save_file

    with whole_folder(folder) as draft:
        for row, own in enumerate(states.values()):
            for number, state in enumerate(own):
                save_file({name: value.contiguous() for name, value in state.items()}, _file(draft, row, number))
        text = json.dumps(manifest.model_dump(mode="json"), indent=1, ensure_ascii=False)
        write_whole(draft / _MANIFEST, text + "\n")


def load_classifier(folder: Path, encoder: str = "") -> tuple[dict[str, TrainedLanguage], ClassifierManifest]:
    """The networks by language, and the manifest; `encoder` is another path of their encoder.

    Nothing in the files is executed. Raises `InputError` for a folder without a valid manifest, weights that do not match
    it, and another encoder than in training; `ConfigurationError` for a missing library or encoder.
    """
    manifest = read_model(
        folder / _MANIFEST, ClassifierManifest, "a trained classifier (proctor train classifier-judge)"
    )
    try:
        from proctor_train.mediqa_eval.classifier.network import FrozenEncoder
    except ImportError as error:
        raise ConfigurationError(f"{_NAME} needs PyTorch and transformers ({pip_install('train')}): {error}") from error
    encoders: dict[tuple[str, int], FrozenEncoder] = {}
    found: dict[str, TrainedLanguage] = {}
    for row, (language, one) in enumerate(manifest.languages.items()):
        name = encoder or one.encoder
        if (name, one.layers) not in encoders:
            encoders[name, one.layers] = FrozenEncoder(name, one.layers)
        below = encoders[name, one.layers]
        if below.sha256 != one.encoder_sha256:
            raise InputError(folder, f"language {language!r}", found=f"another encoder at {name}", expected=one.encoder)
        members = tuple(
            _member(_file(folder, row, number), below, one, known, manifest) for number, known in enumerate(one.members)
        )
        found[language] = TrainedLanguage(below, members)
    return found, manifest


def _member(
    file: Path,
    below: FrozenEncoder,
    language: ClassifierLanguage,
    known: ClassifierMember,
    manifest: ClassifierManifest,
) -> LevelClassifier:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    from proctor_train.mediqa_eval.classifier.network import LevelClassifier

    expected = f"the weights that {_MANIFEST} names"
    try:
        state = load_file(file)
    except (OSError, SafetensorError) as error:
        raise InputError(file, found=str(error), expected=expected) from error
    if state_hash(state) != known.weights_sha256:
        raise InputError(file, found="other weights", expected=expected)
    shares = {name: [1.0] * len(levels) for name, levels in language.levels.items()}
    member = LevelClassifier(below, manifest.loss, shares, references=manifest.references)
    try:
        member.load_state_dict(state)
    except RuntimeError as error:
        found = f"tensors of another form ({str(error).splitlines()[-1].strip()[:120]})"
        raise InputError(file, found=found, expected=expected) from error
    if not all(bool(value.isfinite().all()) for value in state.values()):
        raise InputError(file, found="numbers that are not finite", expected=expected)
    return member.eval()  # type: ignore[no-any-return]  # the library has no types


class _Options(BaseModel):
    folder: Path
    encoder: str = ""
    readout: Readout = "expected"


@RatesDimensions
def build(setup: JudgeSetup) -> DimensionJudge:
    """Asks no model: classifiers trained on rated answers (`proctor train classifier-judge`); option `folder`.

    Options: folder; encoder=DIR where the encoder lies elsewhere now; readout=level for the most probable level. One that
    was trained with captions needs the model that wrote them. Raises `InputError` for a folder without such a judge, and
    `ConfigurationError` for another model.
    """
    options = read_options(_NAME, _Options, setup.options)
    trained, manifest = load_classifier(options.folder, options.encoder)
    captions = None
    if manifest.captions:
        client = setup.clients.client(setup.clients.only(_NAME), {"temperature": 0.0})
        if client.name != manifest.captions:
            raise ConfigurationError(
                f"{_NAME}: expected captions by {manifest.captions}, found the model {client.name}"
            )
        captions = CaptionWriter(client, setup.judgements, setup.prompts)
    elif setup.clients.specs:
        raise ConfigurationError(f"{_NAME}: expected no model (it was trained without captions), found one")
    return ClassifierJudge(trained, manifest, captions=captions, readout=options.readout)
