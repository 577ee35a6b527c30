"""BLEU and chrF, computed by sacrebleu."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

__all__ = ["bleu", "chrf"]

_TOKENIZERS = {"zh": "zh"}


def bleu(candidate: str, references: Sequence[str], language: str = "en") -> float:
    """BLEU of one text against all references together, 0 to 1 (Papineni et al. 2002, ACL).

    sacrebleu's sentence BLEU: up to 4-grams, as many as the candidate has; exponential smoothing;
    tokenizer 13a, and "zh" (single characters) for Chinese. 0 where the candidate is empty.

    >>> round(bleu("the cat sat on the mat", ["the cat sat on a mat"]), 3)
    0.537
    >>> bleu("", ["the cat"])
    0.0
    """
    if not candidate.strip():
        return 0.0
    return float(_bleu(_TOKENIZERS.get(language, "13a")).sentence_score(candidate, references).score) / 100


def chrf(candidate: str, references: Sequence[str], word_order: int = 0) -> float:
    """chrF of one text against the best of the references, 0 to 1 (Popović 2015, WMT): the F score, β = 2, of
    character n-grams up to 6; `word_order` 2 gives chrF++. It needs no tokenizer, so it suits any script.

    >>> round(chrf("the cat sat", ["the cat ran"]), 3)
    0.521
    """
    if not candidate.strip():
        return 0.0
    return float(_chrf(word_order).sentence_score(candidate, references).score) / 100


@cache
def _bleu(tokenizer: str) -> BLEU:
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(tokenize=tokenizer, effective_order=True)


@cache
def _chrf(word_order: int) -> CHRF:
    from sacrebleu.metrics.chrf import CHRF

    return CHRF(word_order=word_order)
