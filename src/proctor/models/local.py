"""`transformers:PATH_OR_ID`: weights that run in this process, behind the model library's own interface.

Nothing is imported from here before such a model is asked for, since the library and torch are large.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import ClassVar, cast

from pydantic_ai.messages import (
    BinaryContent,
    InstructionPart,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage

from proctor.core import ConfigurationError
from proctor.models.local_batches import Batches
from proctor.models.local_weights import Choices, Clip, Query, Said, Weights

__all__ = ["PREFIX", "LocalModel", "LocalModelSettings"]

PREFIX = "transformers:"
_NEEDED = ("torch", "transformers")
_MAX_TOKENS = 512
_BATCH_SIZE = 4


class LocalModelSettings(ModelSettings, total=False):
    """Settings of local weights alone: `device` is "auto" (a GPU where there is one), "cpu", "cuda" or
    "cuda:1"; `dtype` is "auto" (the weights' own), "float32", "bfloat16" or "float16"; `batch_size` is how
    many questions run together at most, of those that are under way at once."""

    device: str
    dtype: str
    batch_size: int


class LocalModel(Model):
    """Raises `ConfigurationError` where a package is missing or a path holds no weights; what only loading
    shows (unknown model, a processor that needs more) is one as well, with the first question."""

    unsupported_settings: ClassVar[frozenset[str]] = frozenset(  # type: ignore[assignment]  # names of fields
        set(ModelSettings.__annotations__)
        - {"max_tokens", "temperature", "top_p", "top_k", "seed", "stop_sequences"}
    )

    def __init__(self, name: str, settings: LocalModelSettings, seed: int) -> None:
        super().__init__(profile=ModelProfile(supports_tools=False, supports_video_input=False))
        where = name.removeprefix(PREFIX)
        missing = [package for package in _NEEDED if find_spec(package) is None]
        if missing:
            raise ConfigurationError(
                f"{name}: {' and '.join(missing)} missing: pip install 'proctor-eval[local]'"
            )
        if where.startswith((".", "/", "~")) and not (Path(where).expanduser() / "config.json").is_file():
            raise ConfigurationError(f"{name}: found no config.json there, expected a folder with weights")
        self._name = where
        self._seed = seed
        weights = Weights(
            name, str(Path(where).expanduser()), settings.get("device", "auto"), settings.get("dtype", "auto")
        )
        self._batches: Batches[Query, Said] = Batches(
            weights.load, weights.generate, settings.get("batch_size", _BATCH_SIZE), _kind
        )

    @property
    def model_name(self) -> str:
        return self._name

    @property
    def system(self) -> str:
        return "transformers"

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """One reply. Waiting for the weights to be loaded, and for a place in a batch, is not the model's
        time."""
        prepared, parameters = self.prepare_request(model_settings, model_request_parameters)
        query = _query(messages, parameters, self._choices(prepared or {}))
        said = await self._batches.ask(query)
        return ModelResponse(
            parts=[TextPart(said.text)],
            usage=RequestUsage(input_tokens=said.input_tokens, output_tokens=said.output_tokens),
            model_name=self._name,
            provider_name=self.system,
            finish_reason="length" if said.cut_off else "stop",
        )

    def _choices(self, settings: ModelSettings) -> Choices:
        return Choices(
            max_tokens=settings.get("max_tokens", _MAX_TOKENS),
            temperature=settings.get("temperature", 0.0),
            top_p=settings.get("top_p"),
            top_k=settings.get("top_k"),
            seed=settings.get("seed", self._seed),
            stop=tuple(settings.get("stop_sequences", ())),
        )


def _kind(query: Query) -> tuple[int, ...]:
    """Questions with as many pictures, and clips as long, run together: every processor can line those up."""
    return len(query.pictures), *(len(clip.jpegs) for clip in query.clips)


def _query(messages: Sequence[ModelMessage], parameters: ModelRequestParameters, choices: Choices) -> Query:
    instructions = InstructionPart.join(parameters.instruction_parts) if parameters.instruction_parts else ""
    system = [instructions] if instructions else []
    parts: list[str | bytes | Clip] = []
    for message in messages:
        for part in cast("ModelRequest", message).parts:
            if isinstance(part, SystemPromptPart):
                system.insert(0, part.content)
            elif isinstance(part, UserPromptPart):
                content = [part.content] if isinstance(part.content, str) else part.content
                parts += _in_clips(content)
    return Query("\n\n".join(system), tuple(parts), choices)


def _in_clips(content: Sequence[object]) -> list[str | bytes | Clip]:
    """Texts and pictures as they come; the frames of one footage as one clip."""
    parts: list[str | bytes | Clip] = []
    for footage, group in groupby(content, key=_footage):
        some = list(group)
        if footage is None:
            parts += [one.data if isinstance(one, BinaryContent) else str(one) for one in some]
            continue
        frames = [one for one in some if isinstance(one, BinaryContent)]
        seconds = tuple(float((one.vendor_metadata or {})["seconds"]) for one in frames)
        parts.append(Clip(tuple(one.data for one in frames), seconds))
    return parts


def _footage(one: object) -> object:
    return (one.vendor_metadata or {}).get("footage") if isinstance(one, BinaryContent) else None
