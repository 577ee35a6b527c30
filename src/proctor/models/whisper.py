"""Whisper in this process, by faster-whisper: weights by path, and nothing is downloaded."""

from __future__ import annotations

import io
import json
import math
import wave
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.settings import ModelSettings

from proctor.core import ConfigurationError, SystemFaultError, pip_install
from proctor.models.faults import one_line
from proctor.models.local import Batches
from proctor.models.spec import WHISPER
from proctor.models.transcription import HEARING, UNUSED, TranscriptionModelSettings, sound_of

_FILES = ("model.bin", "config.json", "tokenizer.json")


class FasterWhisperModelSettings(TranscriptionModelSettings, total=False):
    """Further settings of faster-whisper: `device` ("cpu", or "cuda"), `compute_type` ("int8"; "float16" …), and
    whether silence is left out before words are looked for (`vad`, true)."""

    device: str
    compute_type: str
    vad: bool


class FasterWhisperModel(Model):
    """Raises `ConfigurationError` where the package or a file of the weights is missing; what only loading shows is one
    as well, with the first question."""

    unsupported_settings: ClassVar[frozenset[str]] = UNUSED  # type: ignore[assignment]  # names of fields

    def __init__(self, name: str, settings: FasterWhisperModelSettings, seed: int) -> None:
        super().__init__(profile=HEARING)
        self._name, self._own, self._seed = name, settings, seed
        self._folder = Path(name.removeprefix(WHISPER)).expanduser()
        if find_spec("faster_whisper") is None:
            raise ConfigurationError(f"{name}: faster-whisper is not installed: {pip_install('asr')}")
        lacking = [one for one in _FILES if not (self._folder / one).is_file()]
        if lacking:
            found = f"found no {' and no '.join(lacking)} there"
            raise ConfigurationError(f"{name}: {found}, expected a folder with weights that CTranslate2 converted")
        self._whisper: Any = None
        self._batches: Batches[bytes, str] = Batches(self._load, self._heard, 1, lambda _: None)

    @property
    def model_name(self) -> str:
        return self._name.removeprefix(WHISPER)

    @property
    def system(self) -> str:
        return "faster-whisper"

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """The words of one sound; one after the other."""
        del model_settings, model_request_parameters  # the specification's, and the protocol's form
        said = await self._batches.ask(sound_of(messages))
        return ModelResponse(parts=[TextPart(said)], provider_name=self.system, finish_reason="stop")

    def _load(self) -> None:
        if self._whisper is not None:
            return
        import ctranslate2
        from faster_whisper import WhisperModel

        settings = self._own
        try:
            ctranslate2.set_random_seed(self._seed)
            whisper = WhisperModel(
                str(self._folder),
                device=settings.get("device", "cpu"),
                compute_type=settings.get("compute_type", "int8"),
                local_files_only=True,
            )
        except Exception as error:
            raise ConfigurationError(f"{self._name}: {one_line(str(error))}") from error
        language = settings.get("language", "")
        if language and language not in whisper.supported_languages:
            known = "en" if len(whisper.supported_languages) == 1 else "a code such as en, de, zh"
            raise ConfigurationError(f"{self._name}: language: found {language!r}, expected {known}")
        self._whisper = whisper

    def _heard(self, sounds: Sequence[bytes], given_up: Callable[[], bool]) -> list[str]:
        (sound,) = sounds
        with wave.open(io.BytesIO(sound)) as file:
            samples = np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / np.float32(32768)
        settings, found = self._own, []
        try:
            segments, _ = self._whisper.transcribe(
                samples,
                language=settings.get("language") or None,
                initial_prompt=settings.get("prompt") or None,
                **({"temperature": settings["temperature"]} if "temperature" in settings else {}),
                word_timestamps=True,
                vad_filter=settings.get("vad", True),
                condition_on_previous_text=False,  # else one loop leads to the next
            )
            for one in segments:
                found.append(_segment(one))
                if given_up():
                    break
        except (RuntimeError, ValueError) as error:
            raise SystemFaultError(f"{self._name}: {one_line(str(error))}") from error
        return [json.dumps({"segments": found}, ensure_ascii=False)]


def _segment(one: Any) -> dict[str, Any]:
    """A segment as the transcription protocol has it."""
    words = [
        {
            "word": word.word,
            "start": _number(word.start),
            "end": _number(word.end),
            "probability": _number(word.probability),
        }
        for word in one.words or ()
    ]
    told = {name: _number(getattr(one, name)) for name in ("avg_logprob", "compression_ratio", "no_speech_prob")}
    return {"start": _number(one.start), "end": _number(one.end), "text": one.text, "words": words, **told}


def _number(value: Any) -> float | None:
    return round(float(value), 6) if value is not None and math.isfinite(value) else None
