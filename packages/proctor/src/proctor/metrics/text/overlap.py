"""Text similarity by shared words and characters: ROUGE, BLEU, chrF, in any script."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from proctor.core import InputError, Units, count_of, tokens

if TYPE_CHECKING:
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF


def rouge_n(candidate: str, reference: str, n: int = 1, units: Units = "words") -> float:
    """ROUGE-n as F1, 0 to 1, higher is more alike (Lin 2004, Text Summarization Branches Out).

    Each n-gram counts as often as it stands in both texts; F1 is twice the shared number over the sum of
    both texts' numbers. No stemming, no stop words. 0 where either text has no n-gram. Raises
    `InputError` for n below 1.

    >>> rouge_n("the cat sat", "the cat ran")
    0.6666666666666666
    >>> rouge_n("the cat sat", "the cat ran", 2)
    0.5
    >>> rouge_n("湿疹", "慢性湿疹")
    0.6666666666666666
    """
    if n < 1:
        raise InputError("n", found=str(n), expected="1 or more")
    first, second = _ngrams(tokens(candidate, units), n), _ngrams(tokens(reference, units), n)
    total = first.total() + second.total()
    return 2 * (first & second).total() / total if first and second else 0.0


def rouge_l(candidate: str, reference: str, units: Units = "words") -> float:
    """ROUGE-L as F1, 0 to 1: twice the longest common subsequence over the sum of both lengths.

    The texts are taken whole, not by sentence. 0 where either text has no tokens.

    >>> rouge_l("the cat sat here", "the dog sat"), rouge_l("脾脏", "脾", units="characters")
    (0.5714285714285714, 0.6666666666666666)
    """
    first, second = tokens(candidate, units), tokens(reference, units)
    if not first or not second:
        return 0.0
    return 2 * _common(first, second) / (len(first) + len(second))


def _ngrams(words: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[k : k + n]) for k in range(len(words) - n + 1))


def _common(first: Sequence[str], second: Sequence[str]) -> int:
    """The length of the longest common subsequence, a whole row of the table as the bits of one number (Hyyrö 2004,
    Bit-parallel LCS-length computation revisited): a bit is cleared where the length grows."""
    positions: dict[str, int] = {}
    for k, one in enumerate(first):
        positions[one] = positions.get(one, 0) | 1 << k
    every = (1 << len(first)) - 1
    row = every
    for one in second:
        met = row & positions.get(one, 0)
        row = (row + met | row - met) & every
    return len(first) - row.bit_count()


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

    >>> round(chrf("the cat sat", ["the cat ran"]), 3), round(chrf("the cat sat", ["the cat ran"], word_order=2), 3)
    (0.521, 0.536)
    """
    if not candidate.strip():
        return 0.0
    return float(_chrf(word_order).sentence_score(candidate, references).score) / 100


def weighted_bleu(candidate: str, references: Sequence[str], weights: Sequence[float], language: str = "en") -> float:
    """BLEU of one text against references that count by weights, up to 1: ΔBLEU (Galley et al. 2015, ACL), by which
    the task's earlier rounds (MEDIQA-M3G 2024) ranked.

    An n-gram g of the candidate counts in the numerator as the greatest of w · min(times in the candidate, times
    in the reference) over the references that have it, and in the denominator as the greatest of w · times in the
    candidate over all references. Brevity penalty, exponential smoothing, effective order and tokenizers are those
    of `bleu`; case does not count, as in the task. Weights are taken as shares of the greatest, which changes the
    smoothing alone (that of the authors' program exceeds 1 with small weights). All weights equal: plain BLEU of
    texts in lower case. `reference_weight` has the task's
    weights. 0 where the candidate is empty, or an n-gram's weight is below 0 throughout.

    Raises `InputError` for other than one weight per reference, all from −1 to 1 and one above 0.

    >>> round(weighted_bleu("the cat sat on the mat", ["the cat sat on a mat", "a dog"], [1.0, 0.7]), 3)
    0.537
    >>> round(weighted_bleu("the cat sat on the mat", ["the cat sat on a mat", "a dog"], [0.7, 1.0]), 3)
    0.376
    """
    good = (
        len(weights) == len(references) and all(-1 <= weight <= 1 for weight in weights) and max(weights, default=0) > 0
    )
    if not good:
        texts = count_of(len(references), "reference")
        found = f"{texts} with the weights {', '.join(f'{weight:g}' for weight in weights) or 'none'}"
        raise InputError("weights", found=found, expected="one from −1 to 1 for each, one above 0")
    metric = _bleu(_TOKENIZERS.get(language, "13a"), lowercase=True)
    words, *others = (_words(metric, text) for text in (candidate, *references))
    if not words:
        return 0.0
    shares = [weight / max(weights) for weight in weights]
    hits, total = _weighted_hits(words, others, shares, metric.max_ngram_order)
    closest = min((len(other) for other in others), key=lambda length: (abs(length - len(words)), length))
    score = metric.compute_bleu(
        [max(0.0, hit) for hit in hits],  # type: ignore[misc] # counts with weights are no whole numbers,
        total,  # type: ignore[arg-type] # which it does not need
        len(words),
        closest,
        smooth_method="exp",
        effective_order=True,
    )
    return float(score.score) / 100


def _weighted_hits(
    words: Sequence[str], others: Sequence[Sequence[str]], weights: Sequence[float], orders: int
) -> tuple[list[float], list[float]]:
    """Numerators and denominators of `weighted_bleu` for n-grams of every order."""
    hits, total = [], []
    for order in range(1, orders + 1):
        theirs = [(weight, _ngrams(other, order)) for weight, other in zip(weights, others, strict=True)]
        own = _ngrams(words, order)
        best = (
            max((weight * min(count, grams[gram]) for weight, grams in theirs if grams[gram]), default=0.0)
            for gram, count in own.items()
        )
        hits.append(sum(best))
        total.append(max(weights) * own.total())
    return hits, total


def reference_weight(*, complete: bool, signs: int) -> float:
    """How much a clinician's answer counts in `weighted_bleu`, as in MEDIQA-M3G 2024: 0.6, and 0.1 more for a
    complete answer and for each of three signs (by a certified doctor; by an author of rank 4 or above; holds the
    most frequent answer). Raises `InputError` for other than 0 to 3 signs.

    >>> reference_weight(complete=True, signs=3), reference_weight(complete=False, signs=1)
    (1.0, 0.7)
    """
    if signs not in range(4):
        raise InputError("signs", found=str(signs), expected="0 to 3")
    return round(0.6 + 0.1 * (complete + signs), 1)


def _words(metric: BLEU, text: str) -> list[str]:
    return str(metric.tokenizer(text.lower().rstrip())).split()


@cache
def _bleu(tokenizer: str, *, lowercase: bool = False) -> BLEU:
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(tokenize=tokenizer, effective_order=True, lowercase=lowercase)


@cache
def _chrf(word_order: int) -> CHRF:
    from sacrebleu.metrics.chrf import CHRF

    return CHRF(word_order=word_order)
