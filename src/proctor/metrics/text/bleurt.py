"""BLEURT: a regression on a transformer that has learned how people rate a text against a reference."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from pickle import UnpicklingError  # the error alone: nothing is unpickled but weights
from typing import Any

from proctor.core import ConfigurationError, InputError, read_json
from proctor.metrics.text.encoders import MissingExtraError

_BATCH = 32
_MOST = 512
_WEIGHTS = ("model.safetensors", "pytorch_model.bin")


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
    (BLEURT-base and -large), or one of the port's own type `bleurt` (BLEURT-20 and its smaller kin), whose weights
    are those of RemBERT under other names.

    Raises `MissingExtraError` without the extra `semantic`, `InputError` for a folder that is no such checkpoint,
    and `ConfigurationError` where it can't be loaded.
    """
    try:
        import torch
        from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer
    except ImportError as error:
        raise MissingExtraError(
            f"BLEURT needs the extra 'semantic' (pip install 'proctor-eval[semantic]'): {error}"
        ) from error
    known = _config(folder)
    try:
        if known.get("model_type") == "bleurt":
            model, tokenizer = _of_the_port(folder, known)
        else:
            config = AutoConfig.from_pretrained(folder)
            if config.num_labels != 1:
                found = f"{config.num_labels} labels"
                raise InputError(folder / "config.json", found=found, expected="1: a regression")
            model, told = AutoModelForSequenceClassification.from_pretrained(
                folder, config=config, dtype=torch.float32, output_loading_info=True
            )
            _check(folder, told["missing_keys"])
            tokenizer = AutoTokenizer.from_pretrained(folder)
    except (OSError, ValueError, RuntimeError, ImportError, TypeError) as error:
        raise ConfigurationError(f"the checkpoint {folder} can't be loaded: {error}") from error
    limit = min(_MOST, int(tokenizer.model_max_length), int(model.config.max_position_embeddings))
    return Bleurt(model.eval(), tokenizer, limit)


def _config(folder: Path) -> dict[str, Any]:
    file = folder / "config.json"
    found = read_json(file, "the folder of a BLEURT checkpoint")
    if not isinstance(found, dict):
        raise InputError(file, found=type(found).__name__, expected="a checkpoint's configuration")
    return found


def _of_the_port(folder: Path, known: dict[str, Any]) -> tuple[Any, Any]:
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
        for key, value in _weights(folder).items()
        if not key.endswith("position_ids")
    }
    told = model.load_state_dict(weights, strict=False)
    _check(folder, told.missing_keys, told.unexpected_keys)
    return model, _tokenizer(folder)


def _weights(folder: Path) -> dict[str, Any]:
    import torch
    from safetensors.torch import load_file

    for name in _WEIGHTS:
        file = folder / name
        if file.is_file():
            if file.suffix == ".safetensors":
                return dict(load_file(file))
            try:
                return dict(torch.load(file, map_location="cpu", weights_only=True))
            except UnpicklingError as error:
                raise InputError(file, found="something else", expected="a file of weights alone") from error
    raise InputError(folder, found="no weights", expected=" or ".join(_WEIGHTS))


def _tokenizer(folder: Path) -> Any:
    """By its files, since the type is not known to the library."""
    from transformers import BertTokenizer, DebertaV2Tokenizer, PreTrainedTokenizerFast

    for name, kind in (
        ("tokenizer.json", PreTrainedTokenizerFast),
        ("vocab.txt", BertTokenizer),
        ("spm.model", DebertaV2Tokenizer),
    ):
        if (folder / name).is_file():
            return kind.from_pretrained(folder)
    raise InputError(folder, found="no tokenizer", expected="tokenizer.json, vocab.txt or spm.model")


def _check(folder: Path, missing: Sequence[str], more: Sequence[str] = ()) -> None:
    """A head that was not in the file would be drawn at random."""
    for what, names in (("no weights", missing), ("unknown weights", more)):
        if names:
            raise InputError(folder, found=f"{what} {min(names)!r}", expected="a whole BLEURT checkpoint")
