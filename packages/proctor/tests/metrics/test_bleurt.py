"""BLEURT by tiny checkpoints with random weights: both forms of the port, and checkpoints that are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proctor.core import ConfigurationError, InputError
from proctor.metrics.text import text_metrics
from proctor.metrics.text.learned import load_bleurt

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "apply", "cream", "the", "wrist", "is", "broken", "湿", "疹"]
SIZES: dict[str, Any] = {
    "vocab_size": len(WORDS),
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 24,
    "initializer_range": 0.5,
}


def tokenizer_into(folder: Path) -> None:
    from transformers import BertTokenizer

    BertTokenizer(vocab={word: number for number, word in enumerate(WORDS)}, model_max_length=24).save_pretrained(
        folder
    )


def bert_checkpoint(folder: Path, labels: int = 1) -> Any:
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(0)
    model = BertForSequenceClassification(BertConfig(**SIZES, num_labels=labels)).eval()
    model.save_pretrained(folder)
    tokenizer_into(folder)
    return model


def port_checkpoint(folder: Path) -> Any:
    """As the port writes BLEURT-20: its own type, narrow embeddings, RemBERT's weights under other names."""
    import torch
    from transformers import RemBertConfig, RemBertForSequenceClassification

    torch.manual_seed(1)
    model = RemBertForSequenceClassification(RemBertConfig(**SIZES, input_embedding_size=8, num_labels=1)).eval()
    folder.mkdir(exist_ok=True)
    tokenizer_into(folder)
    config = {
        **SIZES,
        "model_type": "bleurt",
        "embedding_size": 8,
        "architectures": ["BleurtForSequenceClassification"],
    }
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    weights = {
        key.replace("rembert.", "bleurt.").replace("embedding_hidden_mapping_in", "embedding_projection"): value
        for key, value in model.state_dict().items()
    }
    torch.save(weights, folder / "pytorch_model.bin")
    return model


def by_hand(model: Any, reference: list[str], candidate: list[str]) -> float:
    """One forward pass over "[CLS] reference [SEP] candidate [SEP]"."""
    import torch

    ids = [WORDS.index(word) for word in ["[CLS]", *reference, "[SEP]", *candidate, "[SEP]"]]
    kinds = [0] * (len(reference) + 2) + [1] * (len(candidate) + 1)
    with torch.no_grad():
        return float(model(input_ids=torch.tensor([ids]), token_type_ids=torch.tensor([kinds])).logits)


@pytest.mark.parametrize("checkpoint", [bert_checkpoint, port_checkpoint])
def test_it_reads_reference_and_candidate_together(checkpoint: Any, tmp_path: Path) -> None:
    model = checkpoint(tmp_path / "b")
    bleurt = load_bleurt(tmp_path / "b")
    bleurt.prepare_pairs([("apply the cream", "the wrist is broken"), ("湿疹", "apply cream")])
    first = by_hand(model, ["the", "wrist", "is", "broken"], ["apply", "the", "cream"])
    assert bleurt("apply the cream", "the wrist is broken") == pytest.approx(first, abs=1e-5)
    assert bleurt("湿疹", "apply cream") == pytest.approx(by_hand(model, ["apply", "cream"], ["湿", "疹"]), abs=1e-5)
    other = by_hand(model, ["apply", "the", "cream"], ["the", "wrist", "is", "broken"])
    assert abs(first - other) > 1e-4  # which is which is not the same
    assert (bleurt("", "apply"), bleurt("apply", " "), bleurt.cut) == (0.0, 0.0, 0)


def test_what_is_too_long_is_cut_and_counted(tmp_path: Path) -> None:
    bert_checkpoint(tmp_path)
    bleurt = load_bleurt(tmp_path)
    assert isinstance(bleurt("apply " * 40, "the cream"), float)
    assert bleurt.cut == 1
    best, mean = text_metrics([f"bleurt:{tmp_path}"])
    assert best.name == f"bleurt:{tmp_path}-best"
    references = ["apply", "the wrist is broken"]
    best.prepare_pairs([("cream", one) for one in references])
    values = [bleurt("cream", one) for one in references]
    assert best.score("cream", references, "en") == pytest.approx(max(values))
    assert mean.score("cream", references, "en") == pytest.approx(sum(values) / 2)
    assert best.notes() == ()
    assert mean.score("cream " * 40, ["apply"], "en") != 0
    assert best.notes() == ("1 pair cut: longer than the checkpoint reads",)


def test_checkpoints_that_are_refused(tmp_path: Path) -> None:
    import torch

    with pytest.raises(
        InputError, match=r"config.json: found no such file, expected the folder of a BLEURT checkpoint$"
    ):
        load_bleurt(tmp_path / "none")
    bert_checkpoint(tmp_path / "two", labels=2)
    with pytest.raises(InputError, match=r"config.json: found 2 labels, expected 1: a regression$"):
        load_bleurt(tmp_path / "two")
    (tmp_path / "two" / "config.json").write_text(json.dumps({**SIZES, "model_type": "other"}))
    with pytest.raises(ConfigurationError, match=r"two can't be loaded: "):
        load_bleurt(tmp_path / "two")
    port_checkpoint(tmp_path / "port")
    file = tmp_path / "port" / "pytorch_model.bin"
    whole = torch.load(file, weights_only=True)
    torch.save({key: value for key, value in whole.items() if not key.startswith("classifier")}, file)
    with pytest.raises(InputError, match=r"found no weights 'classifier.bias', expected a whole BLEURT checkpoint$"):
        load_bleurt(tmp_path / "port")
    torch.save(whole | {"extra.weight": torch.zeros(1)}, file)
    with pytest.raises(InputError, match=r"found unknown weights 'extra.weight', expected a whole BLEURT checkpoint$"):
        load_bleurt(tmp_path / "port")
    file.write_bytes(b"no weights")
    with pytest.raises(InputError, match=r"pytorch_model.bin: found something else, expected a file of weights alone$"):
        load_bleurt(tmp_path / "port")
    file.unlink()
    with pytest.raises(InputError, match=r"port: found no weights, expected model.safetensors or pytorch_model.bin$"):
        load_bleurt(tmp_path / "port")
    (tmp_path / "port" / "config.json").write_text("{")
    with pytest.raises(InputError, match=r"config.json: line 1, column"):
        load_bleurt(tmp_path / "port")


def test_a_head_that_is_not_in_the_file_is_not_drawn_at_random(tmp_path: Path) -> None:
    from transformers import BertConfig, BertModel

    BertModel(BertConfig(**SIZES, num_labels=1)).save_pretrained(tmp_path)
    tokenizer_into(tmp_path)
    with pytest.raises(InputError, match=r"found no weights 'classifier.bias', expected a whole BLEURT checkpoint$"):
        load_bleurt(tmp_path)
