"""Text similarity by learned models: BERTScore and BLEURT."""

from __future__ import annotations

import csv
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from math import log
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proctor.core import ConfigurationError, InputError, input_text, pip_install, read_json
from proctor.metrics.text.encoders import (
    Encoded,
    EncoderSettings,
    MissingExtraError,
    TextTokens,
    TokenEncoder,
    load_encoder,
)

Baseline = tuple[float, float, float]
"""The baselines of precision, recall and F1, each below 1."""

_COLUMNS = ["LAYER", "P", "R", "F"]


def read_baseline(file: Path, layer: int) -> Baseline:
    """The baseline of one layer from a file of comma-separated lines `LAYER,P,R,F`.

    Raises `InputError` for a file that can't be read, is not of this form, or has no line for the layer.
    """
    lines = list(csv.reader(input_text(file, "a baseline file").splitlines()))
    if not lines or lines[0] != _COLUMNS:
        found = ",".join(lines[0]) if lines else "nothing"
        raise InputError(file, "line 1", found=found, expected=",".join(_COLUMNS))
    for number, line in enumerate(lines[1:], 2):
        if line and line[0].strip() == str(layer):
            return _numbers(file, number, line)
    raise InputError(file, found=f"no line for layer {layer}", expected="one per layer")


def packaged_baseline(language: str, encoder: str) -> Path:
    """The file for a language and an encoder that comes with the package `bert-score`, where that is installed.

    Raises `InputError` where there is none.
    """
    package = find_spec("bert_score")
    locations = list(package.submodule_search_locations or ()) if package else []
    for location in locations:
        file = Path(location) / "rescale_baseline" / language / f"{encoder}.tsv"
        if language.isascii() and language.replace("-", "").isalnum() and file.is_file():
            return file
    where = "the package bert-score" if locations else "the package bert-score, which is not installed"
    raise InputError(
        "baseline",
        found=f"none for {encoder!r} and the language {language!r} in {where}",
        expected="a file with the columns LAYER,P,R,F",
    )


def _numbers(file: Path, number: int, line: list[str]) -> Baseline:
    try:
        precision, recall, f1 = (float(cell) for cell in line[1:])
    except ValueError:
        precision = recall = f1 = math.nan
    if not all(-1 <= value < 1 for value in (precision, recall, f1)):
        raise InputError(file, f"line {number}", found=",".join(line), expected="three numbers below 1")
    return precision, recall, f1


Floats = NDArray[np.float64]
Pair = tuple[str, str]

_VERSION = "0.3.12"  # as bert-score 0.3.13 prints
_MAX_UNKNOWN = 0.2  # with a larger share of unknown words, a score mostly compares "unknown" with itself


@dataclass(frozen=True, slots=True)
class BertScoreSettings:
    """Everything that changes a BERTScore.

    `idf`: tokens count by their inverse document frequency over the references of a call, as often as they are
    given. `rescale`: a baseline file, or a language ("en") for the file that the package `bert-score` has for
    this encoder; "" is none.
    """

    encoder: EncoderSettings = field(default_factory=EncoderSettings)
    idf: bool = False
    rescale: str = ""


@dataclass(frozen=True, slots=True)
class BertScores:
    """The scores of many pairs, in order. `notes` count texts that were empty, long or without weight, in sentences."""

    precision: Floats
    recall: Floats
    f1: Floats
    notes: tuple[str, ...]


class BertScore:
    """BERTScore (Zhang et al. 2020, ICLR) of candidates against references.

    With x over the candidate's and y over the reference's tokens, w their weights (1, or idf; 0 for the tokens
    that an encoder adds at the ends): P = Σ w(x) · max over y cos(x, y) / Σ w(x), R the same with x and y
    changed, F1 = 2 · P · R / (P + R). From −1 to 1, higher is more alike; most encoders stay above 0. With a
    baseline b each becomes (value − b) / (1 − b), which may be below 0. Equals the package `bert-score` to
    1e-5 on the same encoder and layer, but for long texts in windows, which that package cuts.

    A pair with an empty text (none of its characters is a token) scores 0 on all three, rescaled or not. Where the
    tokens of a text have no weight at all, F1 and what is a mean over them are 0. Both are counted in `notes`.

    >>> class Letters:
    ...     name, layer, long_texts, ends = "letters", 1, "windows", frozenset()
    ...     def __call__(self, texts):
    ...         return {text: TextTokens(np.array([ord(c) for c in text]), np.eye(128, dtype=np.float32)[
    ...                 [ord(c) for c in text]], empty=not text) for text in texts}
    >>> found = BertScore(Letters()).score([("abc", "ab"), ("", "ab")])
    >>> found.f1.round(3).tolist(), found.precision.round(3).tolist(), found.notes
    ([0.8, 0.0], [0.667, 0.0], ('1 text is empty and scores 0',))
    """

    def __init__(
        self, encoder: TokenEncoder, *, idf: bool = False, baseline: Baseline | None = None, packaged: bool = False
    ) -> None:
        self._encoder = encoder
        self._idf = idf
        self._baseline = baseline
        self._packaged = packaged

    @property
    def hash(self) -> str:
        """The settings in one word, as `bert-score` prints them for this version of `transformers`."""
        weights = "idf" if self._idf else "no-idf"
        name = (
            f"{self._encoder.name}_L{self._encoder.layer}_{weights}_version={_VERSION}(hug_trans="
            f"{version('transformers')})"
        )
        if self._baseline is None:
            return name
        return f"{name}-{'rescaled' if self._packaged else 'custom-rescaled'}"

    def encode(self, texts: Sequence[str]) -> Encoded:
        """Every distinct text with its tokens, for `score`."""
        return self._encoder(texts)

    def score(self, pairs: Sequence[Pair], encoded: Encoded | None = None) -> BertScores:
        """The scores of (candidate, reference) pairs; texts that `encoded` has are not encoded again."""
        known = dict(encoded or {})
        texts = list(dict.fromkeys(text for pair in pairs for text in pair))
        known |= self._encoder([text for text in texts if text not in known])
        weights = self._weights([known[reference] for _, reference in pairs])
        weighed = {text: weights(known[text]) for text in texts}
        found = _matched(pairs, known, weighed)
        if self._baseline is not None:
            base = np.array(self._baseline)
            found = (found - base) / (1 - base)
        light = {text for text in texts if not weighed[text].any()}
        sides = np.array([(a in light, b in light) for a, b in pairs], dtype=np.bool_).reshape(-1, 2)
        found[np.column_stack([sides, sides.any(axis=1)])] = 0.0  # what nothing with weight stands behind
        empty = np.array([known[a].empty or known[b].empty for a, b in pairs], dtype=np.bool_)
        found[empty] = 0.0
        told = self.notes({text: known[text] for text in texts}, light=len(light))
        return BertScores(found[:, 0], found[:, 1], found[:, 2], told)

    def _weights(self, references: Sequence[TextTokens]) -> Callable[[TextTokens], Floats]:
        ends = np.array(sorted(self._encoder.ends), dtype=np.int64)
        if not self._idf:
            return lambda text: np.where(text.empty | np.isin(text.ids, ends), 0.0, 1.0)
        seen = Counter(token for text in references for token in set(text.ids.tolist()))
        most = log(len(references) + 1)
        known = defaultdict(lambda: most, {token: most - log(count + 1) for token, count in seen.items()})
        return lambda text: (0.0 if text.empty else 1.0) * np.array([known[one] for one in text.ids.tolist()])

    def notes(self, encoded: Encoded, *, light: int = 0) -> tuple[str, ...]:
        """Sentences that count the texts of unknown words, empty texts and long ones; `light` is the number of texts
        without a token of weight, including empty ones."""
        empty = sum(text.empty for text in encoded.values())
        long = sum(text.long for text in encoded.values())
        beyond = f"longer than {self._encoder.name} reads at once"
        how = "cut there, as bert-score does"
        if self._encoder.long_texts == "windows":
            how = "read in overlapping windows, where bert-score cuts"
        unread = sum(text.unknown > _MAX_UNKNOWN * len(text.ids) for text in encoded.values())
        unknown = f"in words that {self._encoder.name} does not know: name an encoder of their language"
        told = (
            (unread, unknown, "", ""),
            (empty, "empty", " and scores 0", " and score 0"),
            (max(0, light - empty), "made of tokens without weight", " and scores 0", " and score 0"),
            (long, f"{beyond}: {how}", "", ""),
        )
        return tuple(
            f"1 text is {what}{one}" if count == 1 else f"{count} texts are {what}{many}"
            for count, what, one, many in told
            if count
        )


def load_bertscore(settings: BertScoreSettings = BertScoreSettings()) -> BertScore:
    """BERTScore with a real encoder; the default needs no download.

    Raises `MissingExtraError` without the extra `semantic`, `ConfigurationError` where the encoder can't be
    loaded, `InputError` for a layer or a baseline that is not there.
    """
    encoder = load_encoder(settings.encoder)
    if not settings.rescale:
        return BertScore(encoder, idf=settings.idf)
    file = Path(settings.rescale)
    packaged = not file.exists() and len(file.parts) == 1 and not file.suffix
    if packaged:
        file = packaged_baseline(settings.rescale, encoder.name)
    return BertScore(encoder, idf=settings.idf, baseline=read_baseline(file, encoder.layer), packaged=packaged)


class BertSimilarity:
    """The F1 of two texts as a text metric. `prepare` encodes many texts in one batch, and keeps them until the next
    call.

    `load` returns the BERTScore at its first use; `notes` are the hash of its settings, and remarks on the texts that
    were prepared last.
    """

    def __init__(self, load: Callable[[], BertScore]) -> None:
        self._load = cache(load)
        self._encoded: Encoded = {}
        self._known: dict[Pair, float] = {}
        self.notes: tuple[str, ...] = ()

    def prepare(self, texts: Sequence[str]) -> None:
        """Encodes the texts, where not all of them are known."""
        if not all(text in self._encoded for text in texts):
            score = self._load()
            self._encoded = score.encode(texts)
            self.notes = (score.hash, *score.notes(self._encoded))

    def prepare_pairs(self, pairs: Sequence[Pair]) -> None:
        """Scores the (candidate, reference) pairs that are not known yet."""
        new = [pair for pair in dict.fromkeys(pairs) if pair not in self._known]
        if new:
            found = self._load().score(new, self._encoded).f1.tolist()
            self._known |= dict(zip(new, found, strict=True))

    def __call__(self, candidate: str, reference: str) -> float:
        self.prepare_pairs([(candidate, reference)])
        return self._known[candidate, reference]


def _matched(pairs: Sequence[Pair], known: Encoded, weighed: Mapping[str, Floats]) -> Floats:
    """Precision, recall and F1 of every pair (pairs × 3). A candidate is compared with all its references in one
    product of matrices, without padding; a pair that comes again is not computed again."""
    partners: dict[str, list[str]] = {}
    for candidate, reference in dict.fromkeys(pairs):
        partners.setdefault(candidate, []).append(reference)
    found: dict[Pair, tuple[float, float]] = {}
    for candidate, references in partners.items():
        precision, recall = _one(candidate, references, known, weighed)
        for k, reference in enumerate(references):
            found[candidate, reference] = float(precision[k]), float(recall[k])
    both = np.array([found[pair] for pair in pairs], dtype=np.float64).reshape(-1, 2)
    total = both.sum(axis=1)
    f1 = np.divide(2 * both[:, 0] * both[:, 1], total, out=np.zeros(len(both)), where=total != 0)
    return np.column_stack([both, f1])


def _one(
    candidate: str, references: Sequence[str], known: Encoded, weighed: Mapping[str, Floats]
) -> tuple[Floats, Floats]:
    lengths = [len(known[reference].ids) for reference in references]
    starts = np.cumsum([0, *lengths[:-1]])
    if 0 in lengths or not len(known[candidate].ids):  # an encoder that adds nothing at the ends of nothing
        return _one_by_one(candidate, references, known, weighed)
    stacked = np.concatenate([known[reference].vectors for reference in references])
    alike = stacked @ known[candidate].vectors.T  # all references' tokens × the candidate's
    nearest = np.maximum.reduceat(alike, starts, axis=0)  # references × the candidate's tokens
    weight = weighed[candidate]
    precision = nearest @ (weight / (weight.sum() or 1.0))
    weights = np.concatenate([weighed[reference] for reference in references])
    totals = np.add.reduceat(weights, starts)
    recall = np.add.reduceat(alike.max(axis=1) * weights, starts) / np.where(totals > 0, totals, 1.0)
    return np.minimum(precision, 1.0), np.minimum(recall, 1.0)


def _one_by_one(
    candidate: str, references: Sequence[str], known: Encoded, weighed: Mapping[str, Floats]
) -> tuple[Floats, Floats]:
    found = np.zeros((len(references), 2))
    for k, reference in enumerate(references):
        if len(known[candidate].ids) and len(known[reference].ids):
            found[k] = np.ravel(_one(candidate, [reference], known, weighed))
    return found[:, 0], found[:, 1]


_BATCH = 32
_MAX_TOKENS = 512
_WEIGHT_FILES = ("model.safetensors", "pytorch_model.bin")


class Bleurt:
    """BLEURT (Sellam et al. 2020, ACL) by a checkpoint for PyTorch: about 0 for unlike, about 1 for alike texts, a
    little beyond at both ends; higher is more alike. 0 where either text is empty.

    The checkpoint reads reference and candidate together, so pairs are computed, and each pair once; `prepare_pairs`
    computes many at once. `cut` counts the pairs that are longer than the checkpoint can read: of those the longer
    text is cut, as the original does.
    """

    def __init__(self, model: Any, tokenizer: Any, limit: int) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._limit = limit
        self._known: dict[tuple[str, str], float] = {}
        self.cut = 0

    def prepare_pairs(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Computes the (candidate, reference) pairs that are not known yet."""
        new = [pair for pair in dict.fromkeys(pairs) if pair not in self._known and pair[0].strip() and pair[1].strip()]
        new.sort(key=lambda pair: len(pair[0]) + len(pair[1]), reverse=True)
        for start in range(0, len(new), _BATCH):
            batch = new[start : start + _BATCH]
            self._known |= dict(zip(batch, self._read(batch), strict=True))

    def __call__(self, candidate: str, reference: str) -> float:
        if not candidate.strip() or not reference.strip():
            return 0.0
        self.prepare_pairs([(candidate, reference)])
        return self._known[candidate, reference]

    def _read(self, batch: Sequence[tuple[str, str]]) -> list[float]:
        import torch

        candidates, references = (list(side) for side in zip(*batch, strict=True))
        whole = self._tokenizer(references, candidates, verbose=False).input_ids
        self.cut += sum(len(ids) > self._limit for ids in whole)
        given = self._tokenizer(
            references,
            candidates,
            padding=True,
            truncation="longest_first",
            max_length=self._limit,
            return_token_type_ids=getattr(self._model.config, "type_vocab_size", 1) > 1,
            return_tensors="pt",
        )
        names = ("input_ids", "attention_mask", "token_type_ids")
        with torch.inference_mode():
            logits = self._model(**{name: given[name] for name in names if name in given}).logits
        return [float(value) for value in logits.flatten().tolist()]


def load_bleurt(folder: Path) -> Bleurt:
    """Loads a checkpoint from a folder: one for sequence classification with one label, as `transformers` saves it
    (BLEURT-base and -large), or one of the port's own type `bleurt` (BLEURT-20 and its smaller versions), whose weights
    are those of RemBERT under other names.

    Raises `MissingExtraError` without the extra `semantic`, `InputError` for a folder that is no such checkpoint,
    and `ConfigurationError` where it can't be loaded.
    """
    try:
        import torch
        from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer
    except ImportError as error:
        raise MissingExtraError(f"BLEURT needs the extra 'semantic' ({pip_install('semantic')}): {error}") from error
    known = _bleurt_config(folder)
    try:
        if known.get("model_type") == "bleurt":
            model, tokenizer = _ported_model(folder, known)
        else:
            config = AutoConfig.from_pretrained(folder)
            if config.num_labels != 1:
                found = f"{config.num_labels} labels"
                raise InputError(folder / "config.json", found=found, expected="1: a regression")
            model, told = AutoModelForSequenceClassification.from_pretrained(
                folder, config=config, dtype=torch.float32, output_loading_info=True
            )
            _check_weights(folder, told["missing_keys"])
            tokenizer = AutoTokenizer.from_pretrained(folder)
    except (OSError, ValueError, RuntimeError, ImportError, TypeError) as error:
        raise ConfigurationError(f"the checkpoint {folder} can't be loaded: {error}") from error
    limit = min(_MAX_TOKENS, int(tokenizer.model_max_length), int(model.config.max_position_embeddings))
    return Bleurt(model.eval(), tokenizer, limit)


def _bleurt_config(folder: Path) -> dict[str, Any]:
    file = folder / "config.json"
    found = read_json(file, "the folder of a BLEURT checkpoint")
    if not isinstance(found, dict):
        raise InputError(file, found=type(found).__name__, expected="a checkpoint's configuration")
    return found


def _ported_model(folder: Path, known: dict[str, Any]) -> tuple[Any, Any]:
    """The type `bleurt`: BERT, or RemBERT where the embeddings are narrower than the layers."""
    from transformers import BertConfig, BertForSequenceClassification, RemBertConfig, RemBertForSequenceClassification

    own = {name: value for name, value in known.items() if name not in {"model_type", "architectures"}}
    narrow = own.pop("embedding_size", None)
    own["num_labels"] = 1
    if narrow is None or narrow == own.get("hidden_size"):
        model, name = BertForSequenceClassification(BertConfig(**own)), "bert"
    else:
        model = RemBertForSequenceClassification(RemBertConfig(**own, input_embedding_size=narrow))
        name = "rembert"
    weights = {
        key.replace("embedding_projection", "embedding_hidden_mapping_in").replace("bleurt.", f"{name}.", 1): value
        for key, value in _read_weights(folder).items()
        if not key.endswith("position_ids")
    }
    told = model.load_state_dict(weights, strict=False)
    _check_weights(folder, told.missing_keys, told.unexpected_keys)
    return model, _load_tokenizer(folder)


def _read_weights(folder: Path) -> dict[str, Any]:
    import torch
    from safetensors.torch import load_file

    for name in _WEIGHT_FILES:
        file = folder / name
        if file.is_file():
            if file.suffix == ".safetensors":
                return dict(load_file(file))
            try:
                return dict(torch.load(file, map_location="cpu", weights_only=True))
            except UnpicklingError as error:
                raise InputError(file, found="something else", expected="a file of weights alone") from error
    raise InputError(folder, found="no weights", expected=" or ".join(_WEIGHT_FILES))


def _load_tokenizer(folder: Path) -> Any:
    """The tokenizer by its files, since the library does not know the type."""
    from transformers import BertTokenizer, DebertaV2Tokenizer, PreTrainedTokenizerFast

    for name, kind in (
        ("tokenizer.json", PreTrainedTokenizerFast),
        ("vocab.txt", BertTokenizer),
        ("spm.model", DebertaV2Tokenizer),
    ):
        if (folder / name).is_file():
            return kind.from_pretrained(folder)
    raise InputError(folder, found="no tokenizer", expected="tokenizer.json, vocab.txt or spm.model")


def _check_weights(folder: Path, missing: Sequence[str], more: Sequence[str] = ()) -> None:
    """Raises `InputError` for missing weights, which would be random, and for unknown ones."""
    for what, names in (("no weights", missing), ("unknown weights", more)):
        if names:
            raise InputError(folder, found=f"{what} {min(names)!r}", expected="a whole BLEURT checkpoint")
