"""The network: an encoder of the `transformers` library whose lower layers stay as they are, its top layers and the heads
that are trained."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from proctor.core import ConfigurationError, InputError
from proctor.judges.classifier.inputs import PartName, TokenizedCase
from proctor.judges.classifier.levels import LINKS
from proctor.metrics.text import encoder_folder, encoder_limit

_DROPOUT = 0.1
_QUESTION, _ANSWER, _REFERENCES, _PADDING = 0, 1, 2, -1
_PART: dict[PartName, int] = {"caption": _QUESTION, "question": _QUESTION, "answer": _ANSWER, "references": _REFERENCES}


class _GivenStates(nn.Module):  # type: ignore[misc]  # the library has no types
    """Stands where an encoder's embeddings were: what the lower layers made is given."""

    def forward(self, *_: Any, inputs_embeds: Any = None, **__: Any) -> Any:
        return inputs_embeds


class FrozenEncoder:
    """An encoder's tokenizer, embeddings and lower layers, which no training changes, and its top `layers` to train.

    Nothing is fetched, and nothing but safetensors is read. Raises `ConfigurationError` for a folder without such an
    encoder, and `InputError` for more layers than it has.
    """

    def __init__(self, name: str, layers: int) -> None:
        from transformers import AutoModel, AutoTokenizer
        from transformers.utils import logging

        logging.disable_progress_bar()
        self.name, self.layers = name, layers
        where = encoder_folder(name)
        if not Path(where).is_dir():
            raise ConfigurationError(f"the encoder {name!r}: no such folder")
        try:
            self.tokenizer = AutoTokenizer.from_pretrained(where, local_files_only=True)
            whole, told = AutoModel.from_pretrained(
                where, dtype=torch.float32, use_safetensors=True, local_files_only=True, output_loading_info=True
            )
        except (OSError, ValueError, KeyError, RuntimeError, ImportError) as error:
            raise ConfigurationError(f"the encoder {name!r} can't be loaded: {error}") from error
        lacking = sorted(one for one in told["missing_keys"] if not one.startswith("pooler."))
        if lacking:
            raise ConfigurationError(f"the encoder {name!r}: no weights for {lacking[0]} ({len(lacking)} are missing)")
        if hasattr(whole, "pooler"):
            whole.pooler = None  # not used, and drawn at random where a folder has none
        whole.eval()
        self.width, depth = int(whole.config.hidden_size), int(whole.config.num_hidden_layers)
        if not 0 <= layers <= depth:
            raise InputError("--layers", found=str(layers), expected=f"0 to {depth}, the layers of {name}")
        self.limit = encoder_limit(self.tokenizer, whole.config)
        self.sha256 = _weights_hash(whole)
        self._top = copy.deepcopy(whole)
        own, top = _layers(whole, depth), _layers(self._top, depth)
        if own is None or top is None or not hasattr(whole, "embeddings"):
            raise ConfigurationError(f"the encoder {name!r}: {whole.config.model_type} is no encoder in layers")
        del own[depth - layers :]
        del top[: depth - layers]
        self._top.embeddings = _GivenStates()
        self._lower = whole.requires_grad_(False)

    def top(self) -> Any:
        """A copy of the top layers, to be trained."""
        return copy.deepcopy(self._top)

    def states(self, cases: Sequence[TokenizedCase]) -> list[Any]:
        """What the lower layers make of each input: tokens × width. They read every text alone (MacAvaney et al. 2020,
        SIGIR: precomputed term representations), each distinct one once; the top layers read them together."""
        known: dict[tuple[int, ...], Any] = {}
        with torch.no_grad():
            for ids in dict.fromkeys(ids for one in cases for _, ids in one.texts):
                known[ids] = self._lower(torch.tensor([ids])).last_hidden_state[0]
        return [torch.cat([known[ids] for _, ids in one.texts]) for one in cases]


def _layers(model: Any, depth: int) -> Any:
    """The list of an encoder's layers."""
    lists = [one for one in model.modules() if isinstance(one, nn.ModuleList) and len(one) == depth]
    return lists[0] if lists else None


def _weights_hash(model: Any) -> str:
    digest = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        digest.update(f"{name} {tuple(value.shape)}\n".encode())
        digest.update(value.contiguous().numpy().tobytes())
    return digest.hexdigest()


class LevelClassifier(nn.Module):  # type: ignore[misc]
    """The top layers of an encoder, and for each dimension a head that gives the probabilities of its levels.

    A head sees the mean state of the answer and that of the question, their product, distance and cosine, and the same
    with the references where these are part of the input; each feature is standardised (see `standardise`). `shares` are
    those of each dimension's levels to begin with.
    """

    def __init__(
        self, encoder: FrozenEncoder, loss: str, shares: Mapping[str, Sequence[float]], *, references: bool
    ) -> None:
        super().__init__()
        self._compared = (_QUESTION, _REFERENCES) if references else (_QUESTION,)
        self.top = encoder.top() if encoder.layers else nn.Identity()
        width = encoder.width + (3 * encoder.width + 1) * len(self._compared)
        self.register_buffer("centre", torch.zeros(width))
        self.register_buffer("spread", torch.ones(width))
        self.dropout = nn.Dropout(_DROPOUT)
        self.names = tuple(shares)
        self.links = nn.ModuleList([LINKS[loss](one) for one in shares.values()])
        self.heads = nn.ModuleList([nn.Linear(width, link.outputs, bias=False) for link in self.links])
        for head in self.heads:
            nn.init.zeros_(head.weight)

    def features(self, states: Any, parts: Any) -> Any:
        """States (rows × tokens × width) and the part of each token (rows × tokens) to features, not yet standardised."""
        if not isinstance(self.top, nn.Identity):
            mask = (parts != _PADDING).long()
            states = self.top(inputs_embeds=states, attention_mask=mask).last_hidden_state
        answer = _mean(states, parts == _ANSWER)
        seen = [answer]
        for part in self._compared:
            other = _mean(states, parts == part)
            alike = functional.cosine_similarity(answer, other, dim=1).unsqueeze(1)
            seen += [other, answer * other, (answer - other).abs(), alike]
        return torch.cat(seen, dim=1)

    def standardise(self, features: Any) -> None:
        """Takes the mean and the standard deviation of each feature from these rows."""
        self.centre.copy_(features.mean(dim=0))
        spread = features.std(dim=0, correction=0)
        self.spread.copy_(torch.where(spread > 1e-6, spread, torch.ones_like(spread)))

    def forward(self, features: Any) -> list[Any]:
        """Features to the log-probabilities of each dimension's levels."""
        given = self.dropout((features - self.centre) / self.spread)
        return [link(head(given)) for head, link in zip(self.heads, self.links, strict=True)]


def _mean(states: Any, inside: Any) -> Any:
    """The mean state of some tokens; 0 where there are none."""
    weight = inside.to(states.dtype).unsqueeze(2)
    return (states * weight).sum(dim=1) / weight.sum(dim=1).clamp(min=1)


def batch(states: Sequence[Any], cases: Sequence[TokenizedCase]) -> tuple[Any, Any]:
    """Inputs padded to the longest: states and parts as `LevelClassifier` takes them."""
    longest = max(len(one) for one in states)
    parts = torch.full((len(cases), longest), _PADDING)
    padded = torch.zeros(len(cases), longest, states[0].shape[1])
    for row, (one, state) in enumerate(zip(cases, states, strict=True)):
        parts[row, : len(state)] = torch.tensor([_PART[name] for name, ids in one.texts for _ in ids])
        padded[row, : len(state)] = state
    return padded, parts


def features_of(classifier: LevelClassifier, states: Sequence[Any], cases: Sequence[TokenizedCase]) -> Any:
    """The features of inputs (rows × width), each read alone, so that they do not depend on others."""
    classifier.eval()
    with torch.no_grad():
        rows = [classifier.features(*batch([state], [one])) for state, one in zip(states, cases, strict=True)]
    return torch.cat(rows)


def probabilities(classifier: LevelClassifier, features: Any) -> list[Any]:
    """The probabilities of the levels of each dimension (rows × levels)."""
    classifier.eval()
    with torch.no_grad():
        return [one.exp() for one in classifier(features)]
