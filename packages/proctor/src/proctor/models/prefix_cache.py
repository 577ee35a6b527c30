"""Prefix caching for local weights: what was computed of the pictures that questions begin with is reused.

Questions about one video show the same frames and differ in the text below them. The attention's keys and values up to
the last picture do not depend on what follows, so they are computed once, and the pictures are neither resized nor
encoded again.
"""

from __future__ import annotations

import inspect
import io
import math
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from proctor.core import ProctorError
from proctor.models.faults import one_line
from proctor.models.queries import Choices, Query

if TYPE_CHECKING:
    from proctor.models.weights import Weights

NOT_REUSED = "prefix_not_reused"
"""The key in an answer's `extra` for the reason why computations of its pictures can't be reused."""

_PER_TOKEN = ("input_ids", "attention_mask", "token_type_ids", "mm_token_type_ids")
_PLACING = ("image_grid_thw",)
"""The inputs by which model families with positions of several axes (Qwen-VL) give pictures' tokens their positions."""

_WITHIN = {"float32": 1e-4, "float64": 1e-4}
_WITHIN_SHORT = 5e-2
"""The largest difference of logits with and without reuse, as a share of their range: for 32 bits, and for 16."""

_BROKEN = (ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, OSError, RuntimeError, TypeError)

_TOO_MANY = "its pictures are more than prefix_cache_gb allows"

Key = tuple[object, ...]


class NotReusableError(Exception):
    """A one-line reason why a model's computations can't be reused."""


@dataclass(frozen=True)
class Asked:
    """The model inputs of a batch, the number of reused tokens of each question, and the reason if none could be."""

    inputs: Any
    cached: Sequence[int]
    reason: str = ""


@dataclass(frozen=True)
class Prefix:
    """A question up to its last picture: tokens, the text that stands for each picture, the inputs that give
    the pictures their positions, keys and values by layer, and the size in bytes."""

    ids: tuple[int, ...]
    pictures: tuple[str, ...]
    placing: dict[str, Any]
    layers: tuple[tuple[Any, Any], ...]
    size: int


@dataclass(frozen=True)
class _Row:
    """One question: its tokens, their positions (… × 1 × tokens), its prefix, and whether that was cached."""

    ids: tuple[int, ...]
    positions: Any
    prefix: Prefix
    found: bool


class KeptPrefixes:
    """A cache of prefixes, `most` bytes in all; the least recently used is dropped first.

    >>> kept = KeptPrefixes(10)
    >>> for name, size in (("a", 4), ("b", 4), ("c", 4), ("too large", 11)):
    ...     kept.put((name,), Prefix((), (), {}, (), size))
    >>> [kept.get((name,)) is not None for name in ("a", "b", "c", "too large")], kept.size
    ([False, True, True, False], 8)
    """

    def __init__(self, most: float) -> None:
        self.most = most
        self._kept: OrderedDict[Key, Prefix] = OrderedDict()

    @property
    def size(self) -> int:
        """Bytes in all."""
        return sum(prefix.size for prefix in self._kept.values())

    def get(self, key: Key) -> Prefix | None:
        """The prefix, which becomes the most recently used."""
        if key in self._kept:
            self._kept.move_to_end(key)
        return self._kept.get(key)

    def put(self, key: Key, prefix: Prefix) -> None:
        """Adds a prefix, unless it alone is too large."""
        self._kept.pop(key, None)
        if prefix.size > self.most:
            return
        self._kept[key] = prefix
        while self.size > self.most:
            self._kept.popitem(last=False)

    def clear(self) -> bool:
        """Drops all prefixes; returns whether there were any."""
        had = bool(self._kept)
        self._kept.clear()
        return had


class PrefixReuse:
    """Prefix reuse on loaded weights, within `most` bytes. `try_out` tests whether the model allows it; if not, `reason`
    says why. Not for several threads at once."""

    def __init__(self, weights: Weights, most: float) -> None:
        self.kept = KeptPrefixes(most)
        self.reason = ""
        self._weights = weights
        self._paused = False
        self._token_bytes = 0.0
        self._most_pictures = math.inf

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Disables reuse inside."""
        self._paused = True
        try:
            yield
        finally:
            self._paused = False

    def try_out(self) -> None:
        """Compares the logits of two questions about a synthetic picture with reuse and without: they must be equal
        within rounding. Sets `reason` where they are not, and where the model does not support reuse."""
        from jinja2 import TemplateError

        first, second = (
            Query("", (_slope(), text), Choices(max_tokens=2)) for text in ("What is shown?", "How many are there?")
        )
        try:
            self._check_model()
            self._compare(first, second)
        except NotReusableError as error:
            self.reason = str(error)
        except (*_BROKEN, ValueError, TemplateError, ProctorError) as error:
            self.reason = f"it can't be asked so ({type(error).__name__}: {one_line(str(error))})"
        self.kept.clear()

    def asked(self, queries: Sequence[Query]) -> Asked:
        """The model inputs of a batch; nothing is reused for texts alone, for clips, for more pictures than can be kept,
        or for `reason`."""
        reason = self.reason if queries[0].pictures else ""
        if queries[0].clips:
            reason = "clips are computed again for each question"
        if queries[0].pictures and not reason and not self._paused:
            try:
                rows = [self._row(query) for query in queries]
                return Asked(self._batch(rows), [len(row.prefix.ids) if row.found else 0 for row in rows])
            except NotReusableError as error:
                reason = str(error)
        return Asked(self._weights.prompts(queries), [0] * len(queries), reason)

    def _check_model(self) -> None:
        """Raises `NotReusableError` for a model whose configuration rules reuse out."""
        from transformers.cache_utils import DynamicLayer

        model = self._weights.model
        how, taken = model.generation_config, inspect.signature(model.forward).parameters
        if model.config.is_encoder_decoder or not {"past_key_values", "position_ids"} <= set(taken):
            raise NotReusableError("it does not take up keys and values at given positions")
        if how.cache_implementation is not None or how.use_cache is False or (how.num_beams or 1) > 1:
            raise NotReusableError("its generation settings ask for another cache, for none, or for beams")
        kinds = {type(layer).__name__ for layer in self._cache().layers if type(layer) is not DynamicLayer}
        if kinds or "mamba" in type(model).__name__.lower():  # a window that slides, a state instead of tokens
            raise NotReusableError(f"not all of its layers keep every token ({', '.join(sorted(kinds)) or 'Mamba'})")

    def _compare(self, first: Query, second: Query) -> None:
        import torch

        model = self._weights.model
        told: dict[str, Any] = {"do_sample": False, "temperature": None, "top_p": None, "top_k": None}
        told |= {"max_new_tokens": 2, "output_logits": True, "return_dict_in_generate": True}
        with torch.inference_mode():
            self._row(first)
            row = self._row(second)
            if not row.found:
                raise NotReusableError("two questions about one picture do not begin with the same tokens")
            reused = model.generate(**self._batch([row]), **told).logits
            fresh = model.generate(**self._weights.prompts([second]), **told).logits
        share = max(
            float((one.float() - other.float()).abs().max() / (other.float().max() - other.float().min()))
            for one, other in zip(reused, fresh, strict=False)  # either may end after a token
        )
        within = _WITHIN.get(str(model.dtype).removeprefix("torch."), _WITHIN_SHORT)
        if not share <= within:
            raise NotReusableError(f"its logits differ by {share:.2%} of their range, expected {within:.2%} at most")

    def _cache(self) -> Any:
        from transformers import DynamicCache

        return DynamicCache(config=self._weights.model.config.get_text_config(decoder=True))

    def _row(self, query: Query) -> _Row:
        """A question with its prefix, computed if necessary. Raises `NotReusableError` where that fails or is too large."""
        if len(query.pictures) > self._most_pictures:
            raise NotReusableError(_TOO_MANY)
        last = max(position for position, part in enumerate(query.parts) if not isinstance(part, str))
        key = (query.system, *query.parts[: last + 1])
        prefix = self.kept.get(key)
        if prefix is not None:
            ids = self._ids(query, prefix.pictures)[0]
            if ids[: len(prefix.ids)] == prefix.ids:
                return _Row(ids, self._positions(ids, prefix.placing), prefix, True)
        return self._computed(query, key)

    def _computed(self, query: Query, key: Key) -> _Row:
        given = self._weights.prompts([query], return_text_replacement_offsets=True)
        told = given.pop("text_replacement_offsets", None)
        if told is None:
            raise NotReusableError("its processor does not say what stands for a picture")
        pictures = tuple(one["replacement"] for one in told[0])
        ids, count = self._ids(query, pictures)
        if list(ids) != given["input_ids"][0].tolist():
            raise NotReusableError("its processor does not write its questions as its tokenizer does")
        if self._token_bytes * count > self.kept.most:
            self._most_pictures = len(query.pictures) - 1  # as many are not tried again
            raise NotReusableError(_TOO_MANY)
        placing = {name: given[name] for name in _PLACING if name in given}
        positions = self._positions(ids, placing)
        layers = self._run(given, positions, count)
        held = sum(keys.nbytes + values.nbytes for keys, values in layers)
        self._token_bytes = held / count
        size = held + sum(len(jpeg) for jpeg in query.pictures)
        prefix = Prefix(ids[:count], pictures, placing, layers, size)
        self.kept.put(key, prefix)
        return _Row(ids, positions, prefix, False)

    def _ids(self, query: Query, pictures: Sequence[str]) -> tuple[tuple[int, ...], int]:
        """The tokens of a question with these texts instead of its pictures, and their number up to the end of the last
        picture. Raises `NotReusableError` where no token ends there, or where the text holds a picture's token."""
        processor, tokenizer = self._weights.processor, self._weights.tokenizer
        plain = self._weights.written(query)
        if plain.count(processor.image_token) != len(pictures):
            raise NotReusableError("its words hold what stands for a picture")
        (whole,), positions = processor.get_text_with_replacements([plain], images_replacements=list(pictures))
        begins = tokenizer.bos_token is not None and whole.startswith(tokenizer.bos_token)
        end = positions[0][-1]["new_span"][1]
        ids, head = (
            tuple(tokenizer(text, add_special_tokens=not begins)["input_ids"]) for text in (whole, whole[:end])
        )
        if ids[: len(head)] != head or len(head) == len(ids):
            raise NotReusableError("its tokens do not end where a picture ends")
        return ids, len(head)

    def _run(self, given: Any, positions: Any, count: int) -> tuple[tuple[Any, Any], ...]:
        """Keys and values by layer, of the first `count` tokens."""
        model, cache = self._weights.model, self._cache()
        begun = {name: value[..., :count] if name in _PER_TOKEN else value for name, value in given.items()}
        kept = {"logits_to_keep": 1} if "logits_to_keep" in inspect.signature(model.forward).parameters else {}
        model(**begun, position_ids=positions[..., :count], past_key_values=cache, use_cache=True, **kept)
        if not cache.layers or any(layer.get_seq_length() != count for layer in cache.layers):
            raise NotReusableError("not all of its layers keep every token")
        return tuple((layer.keys, layer.values) for layer in cache.layers)

    def _positions(self, ids: Sequence[int], placing: dict[str, Any]) -> Any:
        """The positions of one question's tokens, as the model counts them when it generates."""
        import torch

        weights = self._weights
        row = torch.tensor([ids], device=weights.model.device)
        told = dict(placing)
        if placing:
            kinds = weights.processor.create_mm_token_type_ids([list(ids)])
            told["mm_token_type_ids"] = torch.tensor(kinds, device=row.device)
        told["attention_mask"] = torch.ones_like(row)
        return weights.model._prepare_position_ids_for_generation(row, told)  # noqa: SLF001 - as `generate` does

    def _batch(self, rows: Sequence[_Row]) -> dict[str, Any]:
        """The prefixes, padded on the left, then the rest of each question, padded on the left."""
        import torch
        from torch.nn.functional import pad

        tokens = [torch.tensor([row.ids], device=self._weights.model.device) for row in rows]
        heads = [len(row.prefix.ids) for row in rows]
        before = max(heads)
        behind = max(len(row.ids) - head for row, head in zip(rows, heads, strict=True))

        def laid_out(values: Sequence[Any], filling: int = 0) -> Any:
            lines = []
            for one, head in zip(values, heads, strict=True):
                first, rest = one[..., :head], one[..., head:]
                gaps = (before - head, 0), (behind - rest.shape[-1], 0)
                lines.append(torch.cat([pad(first, gaps[0], value=filling), pad(rest, gaps[1], value=filling)], -1))
            return torch.cat(lines, dim=-2)

        return {
            "input_ids": laid_out(tokens, self._weights.tokenizer.pad_token_id or 0),
            "attention_mask": laid_out([torch.ones_like(token) for token in tokens]),
            "position_ids": laid_out([row.positions for row in rows]),
            "past_key_values": self._stacked([row.prefix for row in rows], before),
        }

    def _stacked(self, prefixes: Sequence[Prefix], width: int) -> Any:
        """Keys and values of several questions; nothing is copied if all share one prefix."""
        import torch
        from torch.nn.functional import pad

        cache, same = self._cache(), all(prefix is prefixes[0] for prefix in prefixes)
        for number, layer in enumerate(cache.layers):
            both = []
            for which in (0, 1):
                held = [prefix.layers[number][which] for prefix in prefixes]
                padded = [pad(one, (0, 0, width - one.shape[-2], 0)) for one in held]
                both.append(held[0].expand(len(held), -1, -1, -1) if same else torch.cat(padded))
            layer.lazy_initialization(*both)
            layer.keys, layer.values = both
        return cache


def _slope() -> bytes:
    """A picture that is not square, darker above than below."""
    from PIL import Image

    out = io.BytesIO()
    Image.linear_gradient("L").resize((96, 64)).convert("RGB").save(out, "JPEG")
    return out.getvalue()
