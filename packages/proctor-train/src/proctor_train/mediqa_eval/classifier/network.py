"""The network of a classifier: its input as tokens, an encoder of the `transformers` library of which only the top layers
are trained, and for each dimension a head with the probabilities of its levels."""

from __future__ import annotations

import copy
import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn
from torch.nn import functional

from proctor.core import ConfigurationError, InputError
from proctor.judges.dimensions import Case
from proctor.metrics.text import encoder_folder, encoder_limit

CUT_RULE = (
    "An input that is longer than the limit loses tokens at the end of its parts: of the references first, then of the "
    "caption, of the question and last of the answer; no part is cut below an equal share of the room."
)

PartName = Literal["caption", "question", "answer", "references"]
_CUT_ORDER: tuple[PartName, ...] = ("references", "caption", "question", "answer")
_READ_ORDER: tuple[PartName, ...] = ("caption", "question", "answer", "references")


@dataclass(frozen=True, slots=True)
class TokenizedCase:
    """The texts of a case as tokens, each with the name of its part, and the names of the parts that were cut."""

    texts: tuple[tuple[PartName, tuple[int, ...]], ...]
    cut: tuple[PartName, ...] = ()


def kept_lengths(lengths: dict[PartName, int], room: int) -> dict[PartName, int]:
    """The number of tokens of each part that are read, by `CUT_RULE`.

    >>> kept_lengths({"question": 50, "answer": 30, "references": 90}, 120)
    {'question': 50, 'answer': 30, 'references': 40}
    >>> kept_lengths({"question": 100, "answer": 90, "references": 5}, 60)
    {'question': 20, 'answer': 35, 'references': 5}
    """
    kept, share = dict(lengths), room // max(1, len(lengths))
    for name in _CUT_ORDER:
        excess = sum(kept.values()) - room
        if name in kept and excess > 0:
            kept[name] -= min(excess, max(0, kept[name] - share))
    return kept


def tokenized(case: Case, caption: str, tokenizer: Any, limit: int, *, references: bool) -> TokenizedCase:
    """A case as at most `limit` tokens, including the encoder's special tokens around each text. References are in the
    order of `Case.sorted_references`. An empty answer is kept; other empty parts are left out."""
    texts: dict[PartName, list[str]] = {"caption": [caption], "question": [case.query], "answer": [case.candidate]}
    texts["references"] = [reference.text for reference in case.sorted_references] if references else []
    found: dict[PartName, list[list[int]]] = {}
    for name, some in texts.items():
        ids = [list(tokenizer(text, verbose=False).input_ids) for text in some if text.strip() or name == "answer"]
        if ids:
            found[name] = ids
    lengths: dict[PartName, int] = {name: sum(map(len, ids)) for name, ids in found.items()}
    kept = kept_lengths(lengths, limit)
    read: list[tuple[PartName, tuple[int, ...]]] = []
    for name in _READ_ORDER:
        room = kept.get(name, 0)
        for text in found.get(name, ()):
            if room:
                read.append((name, tuple(text[:room])))
                room -= len(read[-1][1])
    return TokenizedCase(tuple(read), tuple(name for name in _READ_ORDER if kept.get(name, 0) < lengths.get(name, 0)))


def cut_counts(cases: Iterable[TokenizedCase]) -> dict[str, int]:
    """The number of inputs in which each part was cut.

    >>> cut_counts([TokenizedCase((), ("references",)), TokenizedCase(())])
    {'references': 1}
    """
    return dict(Counter(name for case in cases for name in case.cut))


_MIN_GAP = 1e-4  # between two thresholds, so that no level is impossible


class CumulativeLink(nn.Module):  # type: ignore[misc]  # the library has no types
    """Proportional odds (McCullagh 1980, JRSS B 42:109): P(level ≤ k) = σ(θₖ − score), with learned thresholds
    θ₀ < θ₁ < …. One score orders the answers; adjacent levels are confused more easily than distant ones.

    `shares` are the probabilities of the levels at score 0, each above 0.

    >>> link = CumulativeLink([0.25, 0.5, 0.25])
    >>> link(torch.tensor([[0.0]])).exp().round(decimals=3).tolist()
    [[0.25, 0.5, 0.25]]
    """

    outputs = 1

    def __init__(self, shares: Sequence[float]) -> None:
        super().__init__()
        sums = [sum(shares[: k + 1]) / sum(shares) for k in range(len(shares) - 1)]
        logits = [math.log(sum_ / (1 - sum_)) for sum_ in sums]
        gaps = [after - before for before, after in pairwise(logits)]
        self.lowest = nn.Parameter(torch.tensor(logits[:1]))
        self.gaps = nn.Parameter(torch.tensor([math.log(math.expm1(max(gap - _MIN_GAP, _MIN_GAP))) for gap in gaps]))

    def forward(self, scores: Any) -> Any:
        """Scores (rows × 1) to log-probabilities (rows × levels)."""
        gaps = functional.softplus(self.gaps) + _MIN_GAP
        apart = torch.cat([self.lowest, self.lowest + torch.cumsum(gaps, 0)]) - scores  # rows × thresholds
        below, above = functional.logsigmoid(apart), functional.logsigmoid(-apart)
        # σ(b) − σ(a) = σ(b) σ(−a) (1 − exp(a − b)), which does not cancel
        between = below[:, 1:] + above[:, :-1] + torch.log(-torch.expm1(-gaps))
        return torch.cat([below[:, :1], between, above[:, -1:]], dim=1)


class SeparateClasses(nn.Module):  # type: ignore[misc]
    """A softmax over the levels, which have no order (SUAT-BMI's three-way classification)."""

    def __init__(self, shares: Sequence[float]) -> None:
        super().__init__()
        self.outputs = len(shares)
        self.bias = nn.Parameter(torch.tensor([math.log(share / sum(shares)) for share in shares]))

    def forward(self, scores: Any) -> Any:
        """Scores (rows × levels) to log-probabilities (rows × levels)."""
        return functional.log_softmax(scores + self.bias, dim=1)


LINKS = {"ordinal": CumulativeLink, "classes": SeparateClasses}
"""By the name of the loss."""


def level_shares(values: Sequence[float | None], levels: Sequence[float]) -> Any:
    """Ratings as shares of levels (rows × levels). A mean over raters between two levels is divided between them by
    distance; a missing rating has no shares.

    >>> level_shares([0.25, 1.0, None], (0.0, 0.5, 1.0)).tolist()
    [[0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]
    """
    rows = torch.zeros(len(values), len(levels))
    for row, value in enumerate(values):
        if value is None:
            continue
        above = next(k for k, level in enumerate(levels) if level >= value - 1e-9)
        if above == 0 or abs(levels[above] - value) < 1e-9:
            rows[row, above] = 1.0
        else:
            upper = (value - levels[above - 1]) / (levels[above] - levels[above - 1])
            rows[row, above - 1], rows[row, above] = 1 - upper, upper
    return rows


def level_weights(shares: Any, *, balanced: bool) -> Any:
    """A weight for each level: 1, or if `balanced` n / (levels · nₖ), where each level counts one answer more, so that no
    weight is infinite.

    >>> level_weights(torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]), balanced=True).tolist()
    [0.75, 1.5]
    """
    if not balanced:
        return torch.ones(shares.shape[1])
    counts = shares.sum(dim=0) + 1
    return counts.sum() / (len(counts) * counts)


def level_loss(log_probabilities: Any, shares: Any, weights: Any) -> Any:
    """The weighted mean of −log P of the rated levels; 0 without ratings."""
    weighted = shares * weights
    return -(weighted * log_probabilities).sum() / weighted.sum().clamp(min=1e-9)


_DROPOUT = 0.1
_QUESTION, _ANSWER, _REFERENCES, _PADDING = 0, 1, 2, -1
_PART: dict[PartName, int] = {"caption": _QUESTION, "question": _QUESTION, "answer": _ANSWER, "references": _REFERENCES}


class _GivenStates(nn.Module):  # type: ignore[misc]  # the library has no types
    """Replaces an encoder's embeddings: passes on the states of the lower layers."""

    def forward(self, *_: Any, inputs_embeds: Any = None, **__: Any) -> Any:
        return inputs_embeds


class FrozenEncoder:
    """An encoder's tokenizer, embeddings and lower layers, which are never trained, and its top `layers` to train.

    Nothing is downloaded, and weights are read from safetensors only. Raises `ConfigurationError` for a folder without
    such an encoder, and `InputError` for more layers than it has.
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
            model, loading = AutoModel.from_pretrained(
                where, dtype=torch.float32, use_safetensors=True, local_files_only=True, output_loading_info=True
            )
        except (OSError, ValueError, KeyError, RuntimeError, ImportError) as error:
            raise ConfigurationError(f"the encoder {name!r} can't be loaded: {error}") from error
        lacking = sorted(one for one in loading["missing_keys"] if not one.startswith("pooler."))
        if lacking:
            raise ConfigurationError(f"the encoder {name!r}: no weights for {lacking[0]} ({len(lacking)} are missing)")
        if hasattr(model, "pooler"):
            model.pooler = None  # not used, and initialised at random if the folder has none
        model.eval()
        self.width, depth = int(model.config.hidden_size), int(model.config.num_hidden_layers)
        if not 0 <= layers <= depth:
            raise InputError("--layers", found=str(layers), expected=f"0 to {depth}, the layers of {name}")
        self.limit = encoder_limit(self.tokenizer, model.config)
        self.sha256 = _weights_hash(model)
        self._top = copy.deepcopy(model)
        own, top = _layers(model, depth), _layers(self._top, depth)
        if own is None or top is None or not hasattr(model, "embeddings"):
            raise ConfigurationError(f"the encoder {name!r}: {model.config.model_type} is no encoder in layers")
        del own[depth - layers :]
        del top[: depth - layers]
        self._top.embeddings = _GivenStates()
        self._lower = model.requires_grad_(False)

    def top(self) -> Any:
        """A copy of the top layers, to be trained."""
        return copy.deepcopy(self._top)

    def states(self, cases: Sequence[TokenizedCase]) -> list[Any]:
        """The states of the lower layers for each input: tokens × width. They encode every distinct text once and by itself
        (MacAvaney et al. 2020, SIGIR: precomputed term representations); only the top layers see the texts together."""
        known: dict[tuple[int, ...], Any] = {}
        with torch.no_grad():
            for ids in dict.fromkeys(ids for case in cases for _, ids in case.texts):
                known[ids] = self._lower(torch.tensor([ids])).last_hidden_state[0]
        return [torch.cat([known[ids] for _, ids in case.texts]) for case in cases]


def _layers(model: Any, depth: int) -> Any:
    """The list of an encoder's layers."""
    lists = [module for module in model.modules() if isinstance(module, nn.ModuleList) and len(module) == depth]
    return lists[0] if lists else None


def _weights_hash(model: Any) -> str:
    digest = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        digest.update(f"{name} {tuple(value.shape)}\n".encode())
        digest.update(value.contiguous().numpy().tobytes())
    return digest.hexdigest()


class LevelClassifier(nn.Module):  # type: ignore[misc]
    """The top layers of an encoder, and for each dimension a head with the probabilities of its levels.

    The features of a head are the mean states of answer and question, their product, distance and cosine, and the same
    with the references if these are part of the input; all are standardised (see `standardise`). `shares` are the initial
    shares of each dimension's levels.
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
        self.links = nn.ModuleList([LINKS[loss](share) for share in shares.values()])
        self.heads = nn.ModuleList([nn.Linear(width, link.outputs, bias=False) for link in self.links])
        for head in self.heads:
            nn.init.zeros_(head.weight)

    def features(self, states: Any, parts: Any) -> Any:
        """Features, not yet standardised, of states (rows × tokens × width) and the part of each token (rows × tokens)."""
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
        """Sets the mean and standard deviation of each feature to those of these rows."""
        self.centre.copy_(features.mean(dim=0))
        spread = features.std(dim=0, correction=0)
        self.spread.copy_(torch.where(spread > 1e-6, spread, torch.ones_like(spread)))

    def forward(self, features: Any) -> list[Any]:
        """The log-probabilities of each dimension's levels."""
        given = self.dropout((features - self.centre) / self.spread)
        return [link(head(given)) for head, link in zip(self.heads, self.links, strict=True)]


def _mean(states: Any, inside: Any) -> Any:
    """The mean state of some tokens; 0 without any."""
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
    """The features of inputs (rows × width), each computed by itself, so that it does not depend on the others."""
    classifier.eval()
    with torch.no_grad():
        rows = [classifier.features(*batch([state], [one])) for state, one in zip(states, cases, strict=True)]
    return torch.cat(rows)


def probabilities(classifier: LevelClassifier, features: Any) -> list[Any]:
    """The probabilities of the levels of each dimension (rows × levels)."""
    classifier.eval()
    with torch.no_grad():
        return [one.exp() for one in classifier(features)]
