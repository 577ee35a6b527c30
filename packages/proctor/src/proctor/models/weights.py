"""Local weights of the `transformers` library, loaded on a device with a precision, and queried in batches."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from proctor.core import ConfigurationError, InputError, SystemFaultError, count_of
from proctor.media import open_picture
from proctor.models.adapters import apply_adapter, base_and_adapter
from proctor.models.faults import one_line
from proctor.models.prefix_cache import Asked, PrefixReuse
from proctor.models.prompts import template_ends
from proctor.models.queries import Choices, Clip, FixedForm, GeneratedText, Query

TICKS = 1000
"""Frames per second that a processor is given: at this rate every time in milliseconds has its own frame index."""


def video_metadata(seconds: tuple[float, ...]) -> dict[str, object]:
    """Metadata of sampled frames, from which a processor computes their times (index over rate).

    >>> known = video_metadata((0.0, 1.5, 4.0))
    >>> [index / known["fps"] for index in known["frames_indices"]], known["total_num_frames"]
    ([0.0, 1.5, 4.0], 4001)
    """
    indices = [round(time * TICKS) for time in seconds]
    count = max(indices, default=0) + 1
    return {"fps": float(TICKS), "frames_indices": indices, "total_num_frames": count, "duration": count / TICKS}


Message = dict[str, Any]


class Weights:
    """A model of pictures and texts, or of texts alone. Not for several threads at once.

    `where` is a folder or a model's id, which is searched in the library's cache, and fetched unless HF_HUB_OFFLINE=1;
    BASE+FOLDER adds an adapter. Computations of pictures are kept for other questions about them, at most `kept_bytes`,
    unless the model is in training.
    """

    def __init__(self, name: str, where: str, device: str = "auto", dtype: str = "auto", kept_bytes: float = 0) -> None:
        self._name = name
        base, self._adapter = base_and_adapter(where)
        self._where = str(Path(base).expanduser())
        self._device = device
        self._dtype = dtype
        self._model: Any = None
        self._processor: Any = None
        self._kept_bytes = kept_bytes
        self._reuse: PrefixReuse | None = None

    @classmethod
    def around(cls, name: str, model: Any, processor: Any) -> Weights:
        """A model that is in memory already, such as one in training."""
        made = cls(name, name)
        made._model, made._processor = model, processor
        made.tokenizer.padding_side = "left"
        return made

    def load(self, *, empty: bool = False) -> None:
        """Loads the model, once; with `empty` without its numbers, to measure it. Raises `ConfigurationError` that says
        what is missing."""
        if self._model is not None:
            return
        try:
            self._processor, self._model = self._loaded(empty)
            if self._adapter is not None and not empty:
                apply_adapter(self._name, self._model, self._adapter, self._probe)
        except ConfigurationError:
            self._model = None
            raise
        except Exception as error:
            self._model = None
            raise ConfigurationError(f"{self._name}: {_advice(error)}") from error
        if self._kept_bytes > 0 and not empty:
            self.reuse_prefixes(self._kept_bytes)

    def reuse_prefixes(self, most_bytes: float) -> None:
        """Keeps computations of pictures from now on; the weights must not change."""
        if self.takes_pictures:
            self._reuse = PrefixReuse(self, most_bytes)
            self._reuse.try_out()

    @property
    def model(self) -> Any:
        """The library's model, once loaded."""
        return self._model

    @property
    def processor(self) -> Any:
        """The library's processor, or the tokenizer of a text-only model."""
        return self._processor

    @property
    def tokenizer(self) -> Any:
        """The library's tokenizer."""
        return getattr(self._processor, "tokenizer", self._processor)

    @property
    def takes_pictures(self) -> bool:
        """Whether the model takes pictures, or texts alone."""
        return self.tokenizer is not self._processor

    @property
    def ends(self) -> frozenset[int]:
        """The tokens that end a reply."""
        ends = self._model.generation_config.eos_token_id
        own = self.tokenizer.eos_token_id
        return frozenset(ends if isinstance(ends, list) else [own if ends is None else ends])

    def generate(self, queries: Sequence[Query], given_up: Callable[[], bool]) -> list[GeneratedText]:
        """The replies to questions with equal numbers of pictures, equal choices and the same form. A batch that is too
        large for the memory is halved. Raises `SystemFaultError` where a single question is too large."""
        import torch

        try:
            return self._filled(queries) if queries[0].form else self._generated(queries, given_up)
        except torch.OutOfMemoryError:
            kept = self._reuse is not None and self._reuse.kept.clear()
            torch.cuda.empty_cache()
        if len(queries) == 1 and self._reuse is not None and kept:  # the kept computations may have filled the memory
            with self._reuse.paused():
                return self.generate(queries, given_up)
        if len(queries) == 1:
            raise SystemFaultError(f"{self._name}: out of memory with {count_of(len(queries[0].pictures), 'picture')}")
        half = len(queries) // 2
        return self.generate(queries[:half], given_up) + self.generate(queries[half:], given_up)

    def encoded(self, queries: Sequence[Query], **wanted: Any) -> Any:
        """Questions as model inputs, up to the beginning of the reply, padded on the left. `wanted` are options of the
        processor."""
        return self._inputs([_messages(query) for query in queries], [query.clips for query in queries], wanted)

    def prompts(self, queries: Sequence[Query], **wanted: Any) -> Any:
        """As `encoded`, on the model's device."""
        given = self.encoded(queries, **wanted)
        if self.takes_pictures:
            return given.to(self._model.device, dtype=self._model.dtype)
        return given.to(self._model.device)

    def messages(self, query: Query) -> list[Message]:
        """A question as messages for the chat template."""
        from jinja2 import TemplateError

        found = self._worded(_messages(query))
        try:
            self._processor.apply_chat_template(found, add_generation_prompt=True, tokenize=False)
        except TemplateError:  # many templates know no system message
            return self._worded(_without_system(_messages(query)))
        return found

    def written(self, query: Query) -> str:
        """A question as text by the chat template, with a placeholder for each picture."""
        from jinja2 import TemplateError

        messages = _messages(query, opened=False)
        try:
            return self._rendered(messages, True)
        except TemplateError:  # many templates know no system message
            return self._rendered(_without_system(messages), True)

    def _worded(self, messages: list[Message]) -> list[Message]:
        return messages if self.takes_pictures else [_in_words(message) for message in messages]

    def reply_tokens(self, reply: str) -> list[int]:
        """The tokens of exactly this reply and its end, by the model's own chat template: the target of training. Raises
        `InputError` for a reply with special tokens."""
        special = set(self.tokenizer.all_special_ids) & set(self._ids(reply))
        if special:
            found = f"the special token {self.tokenizer.decode([min(special)])!r}"
            raise InputError("reply", found=found, expected="text without special tokens")
        asked = [_said("user", "?")]
        before = self._rendered(asked, True)
        whole = self._rendered([*asked, _said("assistant", reply)], False)
        said = whole.removeprefix(before) if whole.startswith(before) and reply in whole[len(before) :] else reply
        ids = self._ids(said)
        end = next((position for position, one in enumerate(ids) if one in self.ends), None)
        if end is not None:
            return ids[: end + 1]
        known = self.tokenizer.eos_token_id
        return [*self._ids(said[: said.rindex(reply) + len(reply)]), known if known in self.ends else min(self.ends)]

    def _ids(self, text: str) -> list[int]:
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def _rendered(self, messages: list[Message], asks: bool) -> str:
        shown = self._worded(messages)
        return str(self._processor.apply_chat_template(shown, tokenize=False, add_generation_prompt=asks))

    def _loaded(self, empty: bool) -> tuple[Any, Any]:
        import torch
        from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText, AutoProcessor
        from transformers.utils import logging

        logging.disable_progress_bar()
        config = AutoConfig.from_pretrained(self._where)
        processor = AutoProcessor.from_pretrained(self._where)
        if getattr(processor, "chat_template", None) is None:
            raise ValueError("its processor has no chat template: it is no model that can be asked")
        templates = processor.chat_template
        for template in templates.values() if isinstance(templates, dict) else [templates]:
            if not template_ends(str(template)):
                raise ValueError("its chat template does not come to an end")
        getattr(processor, "tokenizer", processor).padding_side = "left"
        kind = AutoModelForCausalLM if config.get_text_config() is config else AutoModelForImageTextToText
        if empty:
            with torch.device("meta"):
                return processor, kind.from_config(config)
        model = kind.from_pretrained(self._where, dtype=self._dtype, use_safetensors=True)
        device = self._device
        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        return processor, model.to(device).eval()

    def _probe(self) -> Any:
        """The logits of a question, with a picture if the model takes any."""
        import torch

        parts: tuple[str | bytes, ...] = (_grey(), "?") if self.takes_pictures else ("?",)
        with torch.inference_mode():
            return self._model(**self.prompts([Query("", parts, Choices(max_tokens=1))])).logits

    def _generated(self, queries: Sequence[Query], given_up: Callable[[], bool]) -> list[GeneratedText]:
        import torch

        choices, asked = queries[0].choices, self._asked(queries)
        drawn = _drawn(choices)
        if choices.stop:
            drawn |= {"stop_strings": list(choices.stop), "tokenizer": self.tokenizer}
        with torch.inference_mode():
            tokens = self._model.generate(
                **asked.inputs, max_new_tokens=choices.max_tokens, stopping_criteria=_ended_by(given_up), **drawn
            )
        counts = asked.inputs["attention_mask"].sum(dim=1).tolist()
        rows = tokens[:, asked.inputs["input_ids"].shape[1] :].tolist()
        return [
            replace(self._said(row, int(count), choices), cached_tokens=cached, not_reused=asked.reason)
            for row, count, cached in zip(rows, counts, asked.cached, strict=True)
        ]

    def _asked(self, queries: Sequence[Query]) -> Asked:
        """Questions as model inputs, with earlier computations of their pictures."""
        import torch

        if self._reuse is None:
            return Asked(self.prompts(queries), [0] * len(queries))
        with torch.inference_mode():
            return self._reuse.asked(queries)

    def _filled(self, queries: Sequence[Query]) -> list[GeneratedText]:
        """Fills forms: their fixed text is forced, and only the places are sampled."""
        import torch

        form = queries[0].form or FixedForm((), ())
        ids, positions = self._skeleton(form)
        known = self._asked(queries)
        inputs = known.inputs
        start = inputs["input_ids"].shape[1]

        def allowed(_row: int, so_far: Any) -> list[int]:
            position = len(so_far) - start
            return positions.get(position) or [ids[position]]

        with torch.inference_mode():
            made = self._model.generate(
                **inputs,
                max_new_tokens=len(ids),
                prefix_allowed_tokens_fn=allowed,
                output_logits=True,
                return_dict_in_generate=True,
                **(_drawn(queries[0].choices) | {"repetition_penalty": 1.0}),
            )
        chances = [
            made.logits[position].float().softmax(dim=-1)[:, some].tolist() for position, some in positions.items()
        ]
        asked = inputs["attention_mask"].sum(dim=1).tolist()
        replies = []
        for row, (count, cached) in enumerate(zip(asked, known.cached, strict=True)):
            picked = [some.index(int(made.sequences[row, start + position])) for position, some in positions.items()]
            said = tuple(
                dict(zip(options, found[row], strict=True))
                for options, found in zip(form.options, chances, strict=True)
            )
            text = form.filled([options[at] for options, at in zip(form.options, picked, strict=True)])
            replies.append(GeneratedText(text, int(count), len(ids), False, said, cached, known.reason))
        return replies

    def _skeleton(self, form: FixedForm) -> tuple[list[int], dict[int, list[int]]]:
        """The tokens of a form up to its last place, and by place the tokens of its options. Raises
        `ConfigurationError` where an option is not a single token of its own."""
        usual = [options[0] for options in form.options]
        ids = self.reply_tokens(form.filled(usual))
        positions: dict[int, list[int]] = {}
        for number, options in enumerate(form.options):
            others = [
                self.reply_tokens(form.filled([*usual[:number], option, *usual[number + 1 :]]))
                for option in options[1:]
            ]
            differing = {k for one in others for k in range(len(ids)) if one[k : k + 1] != ids[k : k + 1]}
            if len(differing) != 1 or any(len(one) != len(ids) for one in others):
                raise ConfigurationError(
                    f"{self._name}: its tokenizer has no token of its own for each of {', '.join(options)}"
                )
            (position,) = differing
            positions[position] = [ids[position], *(one[position] for one in others)]
        return ids[: max(positions) + 1], positions

    def _inputs(
        self, conversations: list[list[Message]], clips: Sequence[Sequence[Clip]], wanted: dict[str, Any]
    ) -> Any:
        from jinja2 import TemplateError

        given: dict[str, Any] = {"return_tensors": "pt", "padding": True} | wanted
        shown: dict[str, Any] = {"processor_kwargs": dict(given)}
        if any(clips):
            if getattr(self._processor, "video_processor", None) is None:
                raise ConfigurationError(f"{self._name}: its processor takes no video: use --video-as frames")
            known = [[video_metadata(clip.seconds) for clip in some] for some in clips]
            shown = {"processor_kwargs": given | {"do_sample_frames": False, "video_metadata": known}}
        if not self.takes_pictures:
            if any(
                part["type"] != "text"
                for conversation in conversations
                for message in conversation
                for part in message["content"]
            ):
                raise ConfigurationError(f"{self._name}: a model of texts: it takes no pictures")
            shown = given

        def lined_up(messages: list[list[Message]]) -> Any:
            return self._processor.apply_chat_template(
                [self._worded(message) for message in messages],
                add_generation_prompt=True,
                tokenize=True,
                return_dict=True,
                **shown,
            )

        try:
            return lined_up(conversations)
        except TemplateError:  # many templates know no system message
            return lined_up([_without_system(messages) for messages in conversations])

    def _said(self, row: list[int], asked: int, choices: Choices) -> GeneratedText:
        own = next((position for position, token in enumerate(row) if token in self.ends), len(row))
        text = self.tokenizer.decode(row[:own], skip_special_tokens=True)
        stopped = next((word for word in choices.stop if text.endswith(word)), "")
        cut_off = own == len(row) and not stopped and len(row) >= choices.max_tokens
        return GeneratedText(text.removesuffix(stopped), asked, min(own + 1, len(row)), cut_off)


def _drawn(choices: Choices) -> dict[str, Any]:
    import torch

    if choices.temperature <= 0:
        return {"do_sample": False, "temperature": None, "top_p": None, "top_k": None}
    torch.manual_seed(choices.seed)
    return {
        "do_sample": True,
        "temperature": choices.temperature,
        "top_p": choices.top_p or 1.0,
        "top_k": choices.top_k or 0,
    }


def _said(role: str, text: str) -> Message:
    return {"role": role, "content": [{"type": "text", "text": text}]}


def _in_words(message: Message) -> Message:
    """A message for a text-only model."""
    return {"role": message["role"], "content": "\n".join(part["text"] for part in message["content"])}


def _grey() -> bytes:
    from PIL import Image

    out = io.BytesIO()
    Image.new("RGB", (64, 64), (128, 128, 128)).save(out, "JPEG")
    return out.getvalue()


def _messages(query: Query, *, opened: bool = True) -> list[Message]:

    content: list[Message] = []
    for part in query.parts:
        if isinstance(part, str):
            content.append({"type": "text", "text": part})
        elif not opened:
            content.append({"type": "video" if isinstance(part, Clip) else "image"})
        elif isinstance(part, Clip):
            frames = [open_picture(jpeg) for jpeg in part.jpegs]
            content.append({"type": "video", "video": frames})
        else:
            content.append({"type": "image", "image": open_picture(part)})
    system = {"role": "system", "content": [{"type": "text", "text": query.system}]}
    return [*([system] if query.system else []), {"role": "user", "content": content}]


def _without_system(messages: list[Message]) -> list[Message]:
    """The system message as the beginning of the user's."""
    if messages[0]["role"] != "system":
        return messages
    system, user = messages
    return [{"role": "user", "content": [*system["content"], *user["content"]]}]


def _ended_by(given_up: Callable[[], bool]) -> Any:
    import torch
    from transformers import StoppingCriteria, StoppingCriteriaList

    class NobodyWaits(StoppingCriteria):  # type: ignore[misc]  # the library has no types
        """Stops when all answers are given up."""

        def __call__(self, input_ids: Any, scores: Any, **kwargs: Any) -> Any:
            del scores, kwargs
            return torch.full((input_ids.shape[0],), given_up(), device=input_ids.device)

    return StoppingCriteriaList([NobodyWaits()])


def _advice(error: Exception) -> str:
    told = one_line(str(error))
    if "torchvision" in str(error).lower():
        return f"its processor needs torchvision, which is not installed: pip install torchvision ({told})"
    return told
