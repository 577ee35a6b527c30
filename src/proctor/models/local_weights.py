"""A vision-language model of the `transformers` library: loaded once, asked in batches."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from proctor.core import ConfigurationError, Frame, SystemFaultError
from proctor.models.faults import one_line
from proctor.models.prompts import template_ends

TICKS = 1000
"""A processor counts frames at a rate: at a number per second, every time has a number of its own."""


@dataclass(frozen=True)
class Footage:
    """Frames in ascending time, in seconds of the clip."""

    frames: tuple[Frame, ...]


def video_metadata(seconds: tuple[float, ...]) -> dict[str, object]:
    """What a processor must know of sampled frames, or it invents their times: it takes index over rate.

    >>> known = video_metadata((0.0, 1.5, 4.0))
    >>> [index / known["fps"] for index in known["frames_indices"]], known["total_num_frames"]
    ([0.0, 1.5, 4.0], 4001)
    """
    indices = [round(time * TICKS) for time in seconds]
    count = max(indices, default=0) + 1
    return {"fps": float(TICKS), "frames_indices": indices, "total_num_frames": count, "duration": count / TICKS}


Message = dict[str, Any]


@dataclass(frozen=True)
class Choices:
    """How words are chosen: the likeliest one at temperature 0, else drawn with a seed."""

    max_tokens: int
    temperature: float = 0.0
    top_p: float | None = None
    top_k: int | None = None
    seed: int = 0
    stop: tuple[str, ...] = ()


@dataclass(frozen=True)
class Clip:
    """A video as frames (JPEG), each at its time in seconds."""

    jpegs: tuple[bytes, ...]
    seconds: tuple[float, ...]


@dataclass(frozen=True)
class Query:
    """One question: what stands before it, and texts, pictures (JPEG) and clips in their order."""

    system: str
    parts: tuple[str | bytes | Clip, ...]
    choices: Choices

    @property
    def pictures(self) -> list[bytes]:
        """The pictures alone."""
        return [part for part in self.parts if isinstance(part, bytes)]

    @property
    def clips(self) -> list[Clip]:
        """The clips alone."""
        return [part for part in self.parts if isinstance(part, Clip)]


@dataclass(frozen=True)
class GeneratedText:
    """One reply; `cut_off` where the limit of tokens ended it."""

    text: str
    input_tokens: int
    output_tokens: int
    cut_off: bool


class Weights:
    """`where` is a folder or a model's id; an id is looked for in the library's cache, and fetched unless
    HF_HUB_OFFLINE=1. For one thread."""

    def __init__(self, name: str, where: str, device: str = "auto", dtype: str = "auto") -> None:
        self._name = name
        self._where = where
        self._device = device
        self._dtype = dtype
        self._model: Any = None
        self._processor: Any = None

    def load(self) -> None:
        """Loads it, the first time. Raises `ConfigurationError` that says what is missing."""
        if self._model is not None:
            return
        try:
            self._processor, self._model = self._loaded()
        except ConfigurationError:
            raise
        except Exception as error:
            raise ConfigurationError(f"{self._name}: {_advice(error)}") from error

    def generate(self, queries: Sequence[Query], given_up: Callable[[], bool]) -> list[GeneratedText]:
        """The replies to questions with as many pictures each and the same choices. A batch that is too large
        for the memory is halved. Raises `SystemFaultError` where one question alone is too large."""
        import torch

        try:
            return self._generated(queries, given_up)
        except torch.OutOfMemoryError:
            torch.cuda.empty_cache()
        if len(queries) == 1:
            raise SystemFaultError(f"{self._name}: out of memory with {len(queries[0].pictures)} pictures")
        half = len(queries) // 2
        return self.generate(queries[:half], given_up) + self.generate(queries[half:], given_up)

    def _loaded(self) -> tuple[Any, Any]:
        import torch
        from transformers import AutoModelForImageTextToText, AutoProcessor
        from transformers.utils import logging

        logging.disable_progress_bar()
        processor = AutoProcessor.from_pretrained(self._where)
        if getattr(processor, "chat_template", None) is None:
            raise ValueError("its processor has no chat template: it is no model that can be asked")
        templates = processor.chat_template
        for template in templates.values() if isinstance(templates, dict) else [templates]:
            if not template_ends(str(template)):
                raise ValueError("its chat template does not come to an end")
        processor.tokenizer.padding_side = "left"
        model = AutoModelForImageTextToText.from_pretrained(self._where, dtype=self._dtype, use_safetensors=True)
        device = self._device
        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        return processor, model.to(device).eval()

    def _generated(self, queries: Sequence[Query], given_up: Callable[[], bool]) -> list[GeneratedText]:
        import torch

        choices = queries[0].choices
        clips = [query.clips for query in queries]
        inputs = self._inputs([_messages(query) for query in queries], clips)
        inputs = inputs.to(self._model.device, dtype=self._model.dtype)
        drawn: dict[str, Any] = {"do_sample": False, "temperature": None, "top_p": None, "top_k": None}
        if choices.temperature > 0:
            torch.manual_seed(choices.seed)
            drawn = {"do_sample": True, "temperature": choices.temperature}
            drawn |= {"top_p": choices.top_p or 1.0, "top_k": choices.top_k or 0}
        if choices.stop:
            drawn |= {"stop_strings": list(choices.stop), "tokenizer": self._processor.tokenizer}
        with torch.inference_mode():
            tokens = self._model.generate(
                **inputs, max_new_tokens=choices.max_tokens, stopping_criteria=_ended_by(given_up), **drawn
            )
        asked = inputs["attention_mask"].sum(dim=1).tolist()
        rows = tokens[:, inputs["input_ids"].shape[1] :].tolist()
        return [self._said(row, int(count), choices) for row, count in zip(rows, asked, strict=True)]

    def _inputs(self, conversations: list[list[Message]], clips: Sequence[Sequence[Clip]] = ()) -> Any:
        from jinja2 import TemplateError

        given: dict[str, Any] = {"return_tensors": "pt", "padding": True}
        if any(clips):
            if getattr(self._processor, "video_processor", None) is None:
                raise ConfigurationError(f"{self._name}: its processor takes no video: use --video-as frames")
            known = [[video_metadata(clip.seconds) for clip in some] for some in clips]
            given |= {"do_sample_frames": False, "video_metadata": known}

        def lined_up(messages: list[list[Message]]) -> Any:
            return self._processor.apply_chat_template(
                messages, add_generation_prompt=True, tokenize=True, return_dict=True, processor_kwargs=dict(given)
            )

        try:
            return lined_up(conversations)
        except TemplateError:  # many templates know no system message
            return lined_up([_without_system(messages) for messages in conversations])

    def _said(self, row: list[int], asked: int, choices: Choices) -> GeneratedText:
        ends = self._model.generation_config.eos_token_id
        ends = set(ends) if isinstance(ends, list) else {ends}
        own = next((place for place, token in enumerate(row) if token in ends), len(row))
        text = self._processor.tokenizer.decode(row[:own], skip_special_tokens=True)
        stopped = next((word for word in choices.stop if text.endswith(word)), "")
        cut_off = own == len(row) and not stopped and len(row) >= choices.max_tokens
        return GeneratedText(text.removesuffix(stopped), asked, min(own + 1, len(row)), cut_off)


def _messages(query: Query) -> list[Message]:
    from PIL import Image

    content: list[Message] = []
    for part in query.parts:
        if isinstance(part, str):
            content.append({"type": "text", "text": part})
        elif isinstance(part, Clip):
            frames = [Image.open(io.BytesIO(jpeg)).convert("RGB") for jpeg in part.jpegs]
            content.append({"type": "video", "video": frames})
        else:
            content.append({"type": "image", "image": Image.open(io.BytesIO(part)).convert("RGB")})
    system = {"role": "system", "content": [{"type": "text", "text": query.system}]}
    return [*([system] if query.system else []), {"role": "user", "content": content}]


def _without_system(messages: list[Message]) -> list[Message]:
    """The system's words as the first of the user's."""
    if messages[0]["role"] != "system":
        return messages
    system, user = messages
    return [{"role": "user", "content": [*system["content"], *user["content"]]}]


def _ended_by(given_up: Callable[[], bool]) -> Any:
    import torch
    from transformers import StoppingCriteria, StoppingCriteriaList

    class NobodyWaits(StoppingCriteria):  # type: ignore[misc]  # the library has no types
        """Ends when the answers are not wanted any more."""

        def __call__(self, input_ids: Any, scores: Any, **kwargs: Any) -> Any:
            del scores, kwargs
            return torch.full((input_ids.shape[0],), given_up(), device=input_ids.device)

    return StoppingCriteriaList([NobodyWaits()])


def _advice(error: Exception) -> str:
    told = one_line(str(error))
    if "torchvision" in str(error).lower():
        return f"its processor needs torchvision, which is not installed: pip install torchvision ({told})"
    return told
