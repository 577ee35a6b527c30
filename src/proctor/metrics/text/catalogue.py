"""The text metrics by name, each over several references; BLEURT among them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

from proctor.core import ConfigurationError, InputError, count_of, pip_install, read_json
from proctor.metrics.text.bertscore import BertScoreSettings, BertSimilarity, load_bertscore
from proctor.metrics.text.encoders import EncoderSettings, MissingExtraError, default_similarity
from proctor.metrics.text.overlap import bleu, chrf, rouge_l, rouge_n

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
        raise MissingExtraError(f"BLEURT needs the extra 'semantic' ({pip_install('semantic')}): {error}") from error
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


Pairwise = Callable[[str, str, str], float]
"""From candidate, reference and language to a number from 0 to 1."""


@dataclass(frozen=True)
class TextMetric:
    """How alike a text is to its references, 0 to 1 (embeddings: from −1); more is better.

    `prepare` may be told all texts beforehand, and then `prepare_pairs` all (candidate, reference) pairs, which some
    metrics read faster at once; `notes` says afterwards what a reader of the scores should know; `extra` names the
    optional dependencies that it needs.

    >>> TEXT_METRICS["rouge-1-best"].score("chronic eczema", ["Eczema.", "Chronic eczema"], "en")
    1.0
    """

    name: str
    label: str
    score: Callable[[str, Sequence[str], str], float]
    prepare: Callable[[Sequence[str]], None] = lambda _: None
    extra: str = ""
    prepare_pairs: Callable[[Sequence[tuple[str, str]]], None] = lambda _: None
    notes: Callable[[], tuple[str, ...]] = lambda: ()


def best(pairwise: Pairwise, candidate: str, references: Sequence[str], language: str) -> float:
    """The greatest value over the references. Raises `InputError` where there is none.

    >>> best(lambda text, reference, language: float(text == reference), "a", ["b", "a"], "en")
    1.0
    """
    return max(_each(pairwise, candidate, references, language))


def mean(pairwise: Pairwise, candidate: str, references: Sequence[str], language: str) -> float:
    """The mean value over the references. Raises `InputError` where there is none.

    >>> mean(lambda text, reference, language: float(text == reference), "a", ["b", "a"], "en")
    0.5
    """
    values = _each(pairwise, candidate, references, language)
    return sum(values) / len(values)


def _each(pairwise: Pairwise, candidate: str, references: Sequence[str], language: str) -> list[float]:
    if not references:
        raise InputError("references", found="none", expected="one or more")
    return [pairwise(candidate, reference, language) for reference in references]


def _rouge_1(candidate: str, reference: str, _language: str) -> float:
    return rouge_n(candidate, reference, 1)


def _rouge_1_characters(candidate: str, reference: str, _language: str) -> float:
    return rouge_n(candidate, reference, 1, "characters")


def _rouge_2(candidate: str, reference: str, _language: str) -> float:
    return rouge_n(candidate, reference, 2)


def _rouge_l(candidate: str, reference: str, _language: str) -> float:
    return rouge_l(candidate, reference)


def _bleu(candidate: str, reference: str, language: str) -> float:
    return bleu(candidate, [reference], language)


def _chrf(candidate: str, reference: str, _language: str) -> float:
    return chrf(candidate, [reference])


def _embedding(candidate: str, reference: str, _language: str) -> float:
    return default_similarity()(candidate, reference)


def _prepare_embeddings(texts: Sequence[str]) -> None:
    default_similarity().prepare(texts)


@cache
def _bert(name: str = "", layer: int | None = None) -> BertSimilarity:
    """BERTScore by an encoder; none is the embedded one. Loaded when it is first asked."""
    encoder = EncoderSettings(name=name, layer=layer) if name else EncoderSettings()
    return BertSimilarity(lambda: load_bertscore(BertScoreSettings(encoder)))


@cache
def _bleurt(folder: str) -> Bleurt:
    return load_bleurt(Path(folder))


def _without_language(alike: Callable[[str, str], float]) -> Pairwise:
    return lambda candidate, reference, _language: alike(candidate, reference)


def _bertscores(name: str = "bertscore", encoder: str = "", layer: int | None = None) -> list[TextMetric]:
    bert = _bert(encoder, layer)
    label = f"BERTScore F1 ({encoder})" if encoder else "BERTScore F1"
    return [
        TextMetric(
            f"{name}-{over.__name__}",
            f"{label}, {over.__name__}",
            partial(over, _without_language(bert)),
            bert.prepare,
            "semantic",
            bert.prepare_pairs,
            lambda: bert.notes,
        )
        for over in (best, mean)
    ]


def _bleurts(folder: str) -> list[TextMetric]:
    bleurt = _bleurt(folder)

    def notes() -> tuple[str, ...]:
        return (f"{count_of(bleurt.cut, 'pair')} cut: longer than the checkpoint reads",) if bleurt.cut else ()

    return [
        TextMetric(
            f"bleurt:{folder}-{over.__name__}",
            f"BLEURT, {over.__name__}",
            partial(over, _without_language(bleurt)),
            extra="semantic",
            prepare_pairs=bleurt.prepare_pairs,
            notes=notes,
        )
        for over in (best, mean)
    ]


def _declared() -> dict[str, TextMetric]:
    pairs: dict[str, tuple[str, Pairwise]] = {
        "rouge-1": ("ROUGE-1", _rouge_1),
        "rouge-1-characters": ("ROUGE-1 of characters", _rouge_1_characters),
        "rouge-2": ("ROUGE-2", _rouge_2),
        "rouge-l": ("ROUGE-L", _rouge_l),
        "bleu": ("BLEU", _bleu),
        "chrf": ("chrF", _chrf),
    }
    found = {
        f"{name}-{over.__name__}": TextMetric(
            f"{name}-{over.__name__}", f"{label}, {over.__name__}", partial(over, one)
        )
        for name, (label, one) in pairs.items()
        for over in (best, mean)
    }
    found["bleu-all"] = TextMetric("bleu-all", "BLEU, all references together", bleu)
    for over in (best, mean):
        name = f"embedding-{over.__name__}"
        label = f"Sentence embeddings, {over.__name__}"
        found[name] = TextMetric(name, label, partial(over, _embedding), _prepare_embeddings, "semantic")
    return found | {one.name: one for one in _bertscores()}


TEXT_METRICS = _declared()
"""All text metrics by name: `-best` and `-mean` over the references."""


def text_metrics(names: Sequence[str] = ()) -> list[TextMetric]:
    """The metrics of these names, each once; none named: all that need no extra.

    Beside the names in `TEXT_METRICS`: "all" is all of them; "bertscore:ENCODER" and "bertscore:ENCODER@LAYER" are
    BERTScore, best and mean, by another encoder (a folder or a model's id); "bleurt:FOLDER" is BLEURT by the
    checkpoint in a folder, best and mean. Raises `InputError` for an unknown name, and what `load_bleurt` raises.

    >>> [metric.name for metric in text_metrics(["bleu-all", "bertscore:roberta-large@17", "bleu-all"])]
    ['bleu-all', 'bertscore:roberta-large@17-best', 'bertscore:roberta-large@17-mean']
    """
    if not names:
        return [metric for metric in TEXT_METRICS.values() if not metric.extra]
    found = [metric for name in names for metric in _named(name)]
    return list({metric.name: metric for metric in found}.values())


def _named(name: str) -> list[TextMetric]:
    if name == "all":
        return list(TEXT_METRICS.values())
    if name in TEXT_METRICS:
        return [TEXT_METRICS[name]]
    kind, _, rest = name.partition(":")
    if kind == "bleurt" and rest:
        return _bleurts(rest)
    if kind == "bertscore" and rest:
        encoder, at, layer = rest.rpartition("@")
        numbered = bool(at) and layer.isdecimal()
        return _bertscores(name, encoder if numbered else rest, int(layer) if numbered else None)
    expected = f"one of {', '.join(TEXT_METRICS)}, all, bertscore:ENCODER[@LAYER], bleurt:FOLDER"
    raise InputError("text metric", found=repr(name), expected=expected)
