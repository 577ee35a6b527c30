"""Speech recognisers as models: one sound in, JSON like verbose_json of the OpenAI protocol out."""

from __future__ import annotations

import io
import json
import math
import wave
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from pydantic_ai.exceptions import (
    ModelAuthenticationError,
    ModelConnectionError,
    ModelHTTPError,
    ModelNotFoundError,
    UserError,
)
from pydantic_ai.messages import BinaryContent, ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.settings import ModelSettings

from proctor.core import ConfigurationError, SystemFaultError, pip_install
from proctor.models.faults import one_line
from proctor.models.local import Batches
from proctor.models.spec import TRANSCRIPTION, WHISPER

if TYPE_CHECKING:
    import httpx2

_CATEGORIES = {401: ModelAuthenticationError, 403: ModelAuthenticationError, 404: ModelNotFoundError}


class TranscriptionModelSettings(ModelSettings, total=False):
    """Settings of speech recognisers: the spoken `language` (`en`; "" leaves it to the model), and a `prompt` of expected
    words (a glossary), which some models also hear where nobody says them."""

    language: str
    prompt: str


class SpeechRecogniser(Model, ABC):
    """A model that takes one sound, and answers no questions. Its usage is in minutes, not tokens, and is not counted."""

    settings_type = TranscriptionModelSettings
    unsupported_settings: ClassVar[frozenset[str]] = frozenset(  # type: ignore[assignment]  # names of fields
        set(ModelSettings.__annotations__) - {"temperature"}
    )

    def __init__(self, name: str, system: str) -> None:
        super().__init__(
            profile=ModelProfile(supports_tools=False, supports_video_input=False, supports_audio_file_input=True)
        )
        self._name, self._system = name, system

    @property
    def model_name(self) -> str:
        return self._name

    @property
    def system(self) -> str:
        return self._system

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """The words of one sound."""
        del model_request_parameters  # the form is the protocol's
        words = await self.hear(sound_of(messages), {**(model_settings or {})})
        return ModelResponse(parts=[TextPart(words)], provider_name=self.system, finish_reason="stop")

    @abstractmethod
    async def hear(self, sound: bytes, settings: dict[str, Any]) -> str:
        """The words of a WAV file, as JSON."""


class TranscriptionModel(SpeechRecogniser):
    """A model behind a server that speaks OpenAI's transcription protocol."""

    def __init__(self, name: str, url: str, key: str | None, http: httpx2.AsyncClient) -> None:
        super().__init__(name.removeprefix(TRANSCRIPTION), "openai")
        self._url = f"{url}/audio/transcriptions"
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._http = http

    async def hear(self, sound: bytes, settings: dict[str, Any]) -> str:
        import httpx2

        fields: dict[str, Any] = {
            "model": self._name,
            "response_format": "verbose_json",
            "timestamp_granularities[]": ["word", "segment"],
        }
        fields |= {
            name: str(settings[name]) for name in ("language", "prompt", "temperature") if settings.get(name, "") != ""
        }
        files = {"file": ("speech.wav", sound, "audio/wav")}
        try:
            reply = await self._http.post(self._url, data=fields, files=files, headers=self._headers)
        except httpx2.TimeoutException as error:
            raise TimeoutError from error
        except httpx2.TransportError as error:
            raise ModelConnectionError(self._name, "Connection error") from error
        if reply.status_code != httpx2.codes.OK:
            raise self._refusal(reply)
        return str(reply.text)

    def _refusal(self, reply: httpx2.Response) -> ModelHTTPError:
        body: object = reply.text
        with suppress(ValueError, RecursionError):
            body = json.loads(reply.text)
        return ModelHTTPError.for_category(
            _CATEGORIES.get(reply.status_code),
            status_code=reply.status_code,
            model_name=self._name,
            body=body,
            headers=dict(reply.headers),
        )


def sound_of(messages: Sequence[ModelMessage]) -> bytes:
    """The one sound of a request; texts beside it are ignored. Raises `UserError` for any other content."""
    parts = [part for message in messages if isinstance(message, ModelRequest) for part in message.parts]
    said = [part.content for part in parts if isinstance(part, UserPromptPart)]
    media = [one for content in said if not isinstance(content, str) for one in content if not isinstance(one, str)]
    if len(media) != 1 or not isinstance(media[0], BinaryContent) or not media[0].is_audio:
        raise UserError("it recognises speech: it takes one sound, and answers no questions")
    return media[0].data


_FILES = ("model.bin", "config.json", "tokenizer.json")


class FasterWhisperModelSettings(TranscriptionModelSettings, total=False):
    """Further settings of faster-whisper: `device` ("cpu" or "cuda"), `compute_type` ("int8"; "float16" …), and `vad`
    (true): whether silence is removed first."""

    device: str
    compute_type: str
    vad: bool


class FasterWhisperModel(SpeechRecogniser):
    """Whisper in this process, by faster-whisper, from a folder of weights; nothing is downloaded. Raises
    `ConfigurationError` where the package or a file is missing, and with the first request where loading fails."""

    settings_type = FasterWhisperModelSettings

    def __init__(self, name: str, settings: FasterWhisperModelSettings, seed: int) -> None:
        super().__init__(name.removeprefix(WHISPER), "faster-whisper")
        self._spec, self._own, self._seed = name, settings, seed
        self._folder = Path(self._name).expanduser()
        if find_spec("faster_whisper") is None:
            raise ConfigurationError(f"{name}: faster-whisper is not installed: {pip_install('asr')}")
        lacking = [file for file in _FILES if not (self._folder / file).is_file()]
        if lacking:
            found = f"found no {' and no '.join(lacking)} there"
            raise ConfigurationError(f"{name}: {found}, expected a folder with weights that CTranslate2 converted")
        self._whisper: Any = None
        self._batches: Batches[bytes, str] = Batches(self._load, self._heard, 1, lambda _: None)

    async def hear(self, sound: bytes, settings: dict[str, Any]) -> str:
        del settings  # those of the specification apply
        return await self._batches.ask(sound)

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
            raise ConfigurationError(f"{self._spec}: {one_line(str(error))}") from error
        language = settings.get("language", "")
        if language and language not in whisper.supported_languages:
            known = "en" if len(whisper.supported_languages) == 1 else "a code such as en, de, zh"
            raise ConfigurationError(f"{self._spec}: language: found {language!r}, expected {known}")
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
            for segment in segments:
                found.append(_segment(segment))
                if given_up():
                    break
        except (RuntimeError, ValueError) as error:
            raise SystemFaultError(f"{self._spec}: {one_line(str(error))}") from error
        return [json.dumps({"segments": found}, ensure_ascii=False)]


def _segment(one: Any) -> dict[str, Any]:
    """A segment in the form of the transcription protocol."""
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
