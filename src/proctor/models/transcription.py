"""Recognisers of speech as models: one sound in, JSON of OpenAI's `verbose_json` out; here those behind a server."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

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

from proctor.models.spec import TRANSCRIPTION

if TYPE_CHECKING:
    import httpx2

_CATEGORIES = {401: ModelAuthenticationError, 403: ModelAuthenticationError, 404: ModelNotFoundError}


class TranscriptionModelSettings(ModelSettings, total=False):
    """Settings of recognisers of speech: the `language` that is spoken (`en`; "" leaves it to the model), and a
    `prompt`, words that will be said (a glossary), which some models also hear where nobody says them."""

    language: str
    prompt: str


HEARING = ModelProfile(supports_tools=False, supports_video_input=False, supports_audio_file_input=True)
"""What all recognisers of speech take."""
UNUSED = frozenset(ModelSettings.__annotations__) - {"temperature"}
"""The library's settings that no recogniser of speech has."""


class TranscriptionModel(Model):
    """A model behind a server that speaks OpenAI's transcription protocol."""

    unsupported_settings: ClassVar[frozenset[str]] = UNUSED  # type: ignore[assignment]  # names of fields

    def __init__(self, name: str, url: str, key: str | None, http: httpx2.AsyncClient) -> None:
        super().__init__(profile=HEARING)
        self._name = name.removeprefix(TRANSCRIPTION)
        self._url = f"{url}/audio/transcriptions"
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._http = http

    @property
    def model_name(self) -> str:
        return self._name

    @property
    def system(self) -> str:
        return "openai"

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """The words of one sound. Minutes, not tokens, are what it consumes, so that neither is counted."""
        import httpx2

        del model_request_parameters  # the form is the protocol's
        fields: dict[str, Any] = {
            "model": self._name,
            "response_format": "verbose_json",
            "timestamp_granularities[]": ["word", "segment"],
        }
        given: dict[str, Any] = {**(model_settings or {})}
        fields |= {
            name: str(given[name]) for name in ("language", "prompt", "temperature") if given.get(name, "") != ""
        }
        sound = {"file": ("speech.wav", sound_of(messages), "audio/wav")}
        try:
            reply = await self._http.post(self._url, data=fields, files=sound, headers=self._headers)
        except httpx2.TimeoutException as error:
            raise TimeoutError from error
        except httpx2.TransportError as error:
            raise ModelConnectionError(self._name, "Connection error") from error
        if reply.status_code != httpx2.codes.OK:
            raise self._refusal(reply)
        return ModelResponse(parts=[TextPart(reply.text)], provider_name=self.system, finish_reason="stop")

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
    """The one sound of a question; texts beside it count for nothing. Raises `UserError` where it holds something
    else."""
    parts = [part for one in messages if isinstance(one, ModelRequest) for part in one.parts]
    said = [part.content for part in parts if isinstance(part, UserPromptPart)]
    media = [one for content in said if not isinstance(content, str) for one in content if not isinstance(one, str)]
    if len(media) != 1 or not isinstance(media[0], BinaryContent) or not media[0].is_audio:
        raise UserError("it recognises speech: it takes one sound, and answers no questions")
    return media[0].data
