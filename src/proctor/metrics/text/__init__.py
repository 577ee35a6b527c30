"""How alike a text is to its references: ROUGE, BLEU, chrF; best and mean over several."""

from proctor.metrics.text.catalogue import TEXT_METRICS, TextMetric, best, mean
from proctor.metrics.text.rouge import rouge_l, rouge_n
from proctor.metrics.text.tokens import Units, tokens
from proctor.metrics.text.translation import bleu, chrf

__all__ = [
    "TEXT_METRICS",
    "TextMetric",
    "Units",
    "best",
    "bleu",
    "chrf",
    "mean",
    "rouge_l",
    "rouge_n",
    "tokens",
]
