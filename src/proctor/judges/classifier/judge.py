"""Captions: what a question's pictures show, in a model's words, kept like every judgement so that it is paid once."""

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
    InfrastructureError,
    InputError,
    JudgementCache,
    content_hash,
    pip_install,
    read_model,
    whole_folder,
    write_whole,
)
from proctor.judges.cached_model import CachedModel, as_said, load_prompts, prompt_for, together
from proctor.judges.classifier.network import tokenized
from proctor.judges.dimensions import (
    Case,
    DimensionJudge,
    DimensionScores,
    JudgeSetup,
    RatesDimensions,
    encounter_marks,
    read_options,
)
from proctor.judges.dimensions.case import IMAGES_UNSEEN, TRAINED_ON, injection_flags
from proctor.judges.dimensions.model_judge import look
from proctor.judges.embedded.judge import hash_of
from proctor.models import ModelClient
from proctor.stats import Floats

if TYPE_CHECKING:
    from proctor.judges.classifier.network import FrozenEncoder, LevelClassifier


class Caption(BaseModel):
    """What the pictures show."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    caption: str = Field(max_length=4000)


@dataclass(frozen=True)
class CaptionedCase:
    """The caption of a case's pictures ('' where none is at hand), what a person should know, and its judgement."""

    text: str = ""
    flags: tuple[str, ...] = ()
    votes: tuple[str, ...] = ()


class CaptionWriter:
    """Asks a model for captions. It is shown the pictures alone, so that the answers to one question share one call."""

    def __init__(self, client: ModelClient, votes: JudgementCache, prompts: Path | None = None) -> None:
        self.name = client.name
        self._model = CachedModel(f"caption[{client.name}]", client, votes)
        self._prompts = load_prompts("caption", prompts)

    async def caption(self, case: Case) -> CaptionedCase:
        """The caption. Raises `InfrastructureError` where the model gives none."""
        pictures = await look(case)
        if not pictures.frames:
            return CaptionedCase(flags=pictures.flags)
        prompt = prompt_for(self._prompts, case.id, case.language)
        system, user = prompt.render(images_shown=len(pictures.frames))
        said, vote = await self._model.ask(
            as_said(Caption),
            [*pictures.frames, user],
            system=system,
            item_id=case.id,
            content={"judge": "caption", "prompt_sha256": prompt.sha256, "images": pictures.hashes},
        )
        return CaptionedCase(" ".join(said.caption.split()), pictures.flags, (vote.key,))


async def write_captions(
    cases: Sequence[Case], client: ModelClient, votes: JudgementCache, prompts: Path | None, at_once: int
) -> list[str]:
    """The caption of each case, `at_once` of them at a time. Raises `InfrastructureError` where the model gives none."""
    writer, gate = CaptionWriter(client, votes, prompts), asyncio.Semaphore(at_once)

    async def one(case: Case) -> str:
        async with gate:
            return (await writer.caption(case)).text

    return await together(one(case) for case in cases)


_NAME = "classifier-judge"
_MANIFEST = "manifest.json"
_DIGITS = 6
_LEVELS = Annotated[tuple[float, ...], Field(min_length=2, max_length=100)]

INPUT_CUT = "input-cut"
"""Flag: the input was longer than the encoder reads, and lost something at the ends of its parts."""

Loss = Literal["ordinal", "classes"]
Readout = Literal["expected", "level"]


class ClassifierMember(BaseModel):
    """One of the networks whose scores are averaged: the seed that it was trained from, the epoch that did best on the
    answers that were set aside for the choice (of the training answers), and its agreement there, which flatters it."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    seed: int
    epoch: int
    chosen_by: float | None
    weights_sha256: str


class ClassifierLanguage(BaseModel):
    """What was learned in one language: `layers` top layers of an encoder and the heads. `cut` counts the answers whose
    input was too long, by the part that was cut."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    encoder: str
    encoder_sha256: str
    layers: int = Field(ge=0)
    levels: Annotated[dict[str, _LEVELS], Field(min_length=1, max_length=100)]
    answers: int
    encounters: int
    cut: dict[str, int]
    members: Annotated[tuple[ClassifierMember, ...], Field(min_length=1, max_length=100)]


class ClassifierManifest(BaseModel):
    """What a trained classifier is and came from. `captions` names the model whose captions of the pictures it has read
    ('' where it has seen nothing of pictures), `trained_on` marks the encounters that it learned from, by content."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

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
        """Of all weights, and of how they are read."""
        weights: list[JsonValue] = [one.weights_sha256 for each in self.languages.values() for one in each.members]
        return content_hash([weights, self.loss, self.references, self.captions, self.max_tokens])


@dataclass(frozen=True)
class TrainedLanguage:
    """The networks of one language, and the encoder below them."""

    encoder: FrozenEncoder
    members: tuple[LevelClassifier, ...]

    def probabilities(self, case: Case, caption: str, manifest: ClassifierManifest) -> tuple[list[Floats], bool]:
        """Of each dimension (in the order of the members' names) the levels' probabilities by each member (members ×
        levels), and whether the input was cut."""
        from proctor.judges.classifier.network import features_of, probabilities

        limit = min(manifest.max_tokens, self.encoder.limit)
        one = tokenized(case, caption, self.encoder.tokenizer, limit, references=manifest.references)
        states = self.encoder.states([one])
        found = [probabilities(member, features_of(member, states, [one])) for member in self.members]
        return [
            np.concatenate([np.asarray(each[k], dtype=np.float64) for each in found]) for k in range(len(found[0]))
        ], bool(one.cut)


class ClassifierJudge:
    """Scores answers by encoders that were trained on rated ones: a `DimensionJudge`.

    A score is the rating that is expected: the mean of the levels, weighted by their probabilities, and averaged over
    the members; with `readout` "level" it is the most probable level. How far the members are apart (highest less lowest
    expected rating) is the disagreement. The same case gets the same scores, whatever else is judged.
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
        """Where the scores come from."""
        return {
            "judge": _NAME,
            "weights_sha256": self.manifest.sha256,
            "data_sha256": self.manifest.data_sha256,
            "encoders": {name: one.encoder_sha256 for name, one in self.manifest.languages.items()},
            "captions": self.manifest.captions,
            "readout": self._readout,
        }

    async def judge(self, case: Case) -> DimensionScores:
        """The scores of one answer (see `DimensionJudge`). Raises `InputError` for a language, dimension or scale that it
        has not learned."""
        self._refuse(case)
        flags = list(injection_flags(case))
        caption = CaptionedCase()
        try:
            if self._captions is not None:
                caption = await self._captions.caption(case)
            elif case.images:
                flags.append(IMAGES_UNSEEN)
        except InfrastructureError as error:
            return DimensionScores.none(case, str(error), flags=flags)
        async with self._lock:  # tokenizers are not made for threads
            found, cut = await asyncio.to_thread(
                self._trained[case.language].probabilities, case, caption.text, self.manifest
            )
        flags += [*caption.flags, *([INPUT_CUT] if cut else [])]
        flags += [TRAINED_ON] if encounter_marks(case) & self._trained_on else []
        scores = self._read(case, dict(zip(self._trained[case.language].members[0].names, found, strict=True)))
        told: dict[str, JsonValue] = {"caption": caption.text} if caption.text else {}
        return replace(scores, flags=tuple(flags), evidence=({**told, **scores.evidence[0]},), votes=caption.votes)

    def _read(self, case: Case, found: Mapping[str, Floats]) -> DimensionScores:
        values: dict[str, float] = {}
        apart: dict[str, float] = {}
        told: dict[str, JsonValue] = {}
        for one in case.dimensions:
            levels, each = np.array(one.levels), found[one.name]
            mean, expected = each.mean(axis=0), each @ levels
            values[one.name] = read_levels(each, one, self._readout)
            apart[one.name] = round(float(np.ptp(expected)), _DIGITS)
            told[one.name] = {f"{level:g}": round(float(share), 4) for level, share in zip(levels, mean, strict=True)}
        return DimensionScores(values, disagreement=apart, evidence=({"probabilities": told},))

    def _refuse(self, case: Case) -> None:
        place = f"{_NAME}: case {case.id}"
        if case.language not in self._trained:
            listed = ", ".join(self._trained)
            expected = f"one that it has learned: {listed}"
            raise InputError(place, found=f"the language {case.language!r}", expected=expected)
        levels = self.manifest.languages[case.language].levels
        for one in case.dimensions:
            if levels.get(one.name) != one.levels:
                listed = ", ".join(f"{name} {_scale(own)}" for name, own in levels.items())
                found = f"the dimension {one.name!r} {_scale(one.levels)}"
                raise InputError(place, found=found, expected=f"what it has learned: {listed}")


def read_levels(probabilities: Floats, dimension: Dimension, readout: Readout = "expected") -> float:
    """A score from the probabilities of a dimension's levels (members × levels): the expected level, or the most
    probable one, the lower of two alike.

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


def _scale(levels: Sequence[float]) -> str:
    return f"({', '.join(f'{one:g}' for one in levels)})"


def _file(folder: Path, language: int, member: int) -> Path:
    """The weights of a member; languages are counted, since a manifest may name them as it likes."""
    return folder / f"weights-{language + 1}-{member + 1}.safetensors"


def state_hash(state: Mapping[str, Any]) -> str:
    """A hash of a network's tensors by name."""
    return hash_of({name: value.detach().cpu().numpy() for name, value in state.items()})


def save_classifier(
    folder: Path, states: Mapping[str, Sequence[Mapping[str, Any]]], manifest: ClassifierManifest
) -> None:
    """Writes a trained classifier: of each language the tensors of each member. The folder appears whole or not at all.
    Raises `InputError` where it holds something or can't be written."""
    from safetensors.torch import save_file

    with whole_folder(folder) as draft:
        for place, own in enumerate(states.values()):
            for number, state in enumerate(own):
                save_file({name: value.contiguous() for name, value in state.items()}, _file(draft, place, number))
        text = json.dumps(manifest.model_dump(mode="json"), indent=1, ensure_ascii=False)
        write_whole(draft / _MANIFEST, text + "\n")


def load_classifier(folder: Path, encoder: str = "") -> tuple[dict[str, TrainedLanguage], ClassifierManifest]:
    """The networks by language, and the manifest; `encoder` is another place of the encoder below them.

    Nothing in the files is run. Raises `InputError` for a folder without a manifest of this form, weights of another
    shape or other ones than it names, and an encoder that is not the one that was trained with; `ConfigurationError`
    where a library or the encoder is missing.
    """
    manifest = read_model(
        folder / _MANIFEST, ClassifierManifest, "a trained classifier (proctor train classifier-judge)"
    )
    try:
        from proctor.judges.classifier.network import FrozenEncoder
    except ImportError as error:
        raise ConfigurationError(f"{_NAME} needs the extra 'train' ({pip_install('train')}): {error}") from error
    encoders: dict[tuple[str, int], FrozenEncoder] = {}
    found: dict[str, TrainedLanguage] = {}
    for place, (language, one) in enumerate(manifest.languages.items()):
        name = encoder or one.encoder
        if (name, one.layers) not in encoders:
            encoders[name, one.layers] = FrozenEncoder(name, one.layers)
        below = encoders[name, one.layers]
        if below.sha256 != one.encoder_sha256:
            raise InputError(folder, f"language {language!r}", found=f"another encoder at {name}", expected=one.encoder)
        members = tuple(
            _member(_file(folder, place, number), below, one, known, manifest)
            for number, known in enumerate(one.members)
        )
        found[language] = TrainedLanguage(below, members)
    return found, manifest


def _member(
    file: Path, below: FrozenEncoder, one: ClassifierLanguage, known: ClassifierMember, manifest: ClassifierManifest
) -> LevelClassifier:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    from proctor.judges.classifier.network import LevelClassifier

    expected = f"the weights that {_MANIFEST} names"
    try:
        state = load_file(file)
    except (OSError, SafetensorError) as error:
        raise InputError(file, found=str(error), expected=expected) from error
    if state_hash(state) != known.weights_sha256:
        raise InputError(file, found="other weights", expected=expected)
    shares = {name: [1.0] * len(levels) for name, levels in one.levels.items()}
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
        captions = CaptionWriter(client, setup.votes, setup.prompts)
    elif setup.clients.specs:
        raise ConfigurationError(f"{_NAME}: expected no model (it was trained without captions), found one")
    return ClassifierJudge(trained, manifest, captions=captions, readout=options.readout)
