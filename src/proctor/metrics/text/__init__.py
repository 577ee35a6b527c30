"""How alike a text is to its references: ROUGE, BLEU, chrF, sentence embeddings; best and mean over several."""

from proctor.metrics.text.catalogue import TEXT_METRICS, TextMetric, best, mean
from proctor.metrics.text.embedding import Encoder, Similarity, default_similarity
from proctor.metrics.text.rouge import rouge_l, rouge_n
from proctor.metrics.text.tokens import Units, tokens
from proctor.metrics.text.translation import bleu, chrf

__all__ = [
    "TEXT_METRICS",
    "Encoder",
    "Similarity",
    "TextMetric",
    "Units",
    "best",
    "bleu",
    "chrf",
    "default_similarity",
    "mean",
    "rouge_l",
    "rouge_n",
    "tokens",
]
