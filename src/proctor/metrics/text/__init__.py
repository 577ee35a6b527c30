"""How alike a text is to its references: ROUGE, BLEU, chrF, BERTScore, sentence embeddings; best and mean over several."""

from proctor.metrics.text.baselines import Baseline, packaged_baseline, read_baseline
from proctor.metrics.text.bertscore import (
    BertScore,
    BertScores,
    BertScoreSettings,
    BertSimilarity,
    load_bertscore,
)
from proctor.metrics.text.bleurt import Bleurt, load_bleurt
from proctor.metrics.text.catalogue import TEXT_METRICS, TextMetric, best, mean, text_metrics
from proctor.metrics.text.embedding import Encoder, Similarity, default_similarity
from proctor.metrics.text.encoders import (
    EMBEDDED_ENCODER,
    REFERENCE_ENCODER,
    Encoded,
    EncoderSettings,
    LongTexts,
    MissingExtraError,
    TextTokens,
    TokenEncoder,
    load_encoder,
)
from proctor.metrics.text.rationales import (
    NO_RATIONALE,
    RATIONALE_F1,
    RationaleScorer,
    gives_rationales,
    rationale_f1,
    rationale_of,
)
from proctor.metrics.text.rouge import rouge_l, rouge_n
from proctor.metrics.text.tokens import Units, tokens
from proctor.metrics.text.translation import bleu, chrf, reference_weight, weighted_bleu

__all__ = [
    "EMBEDDED_ENCODER",
    "NO_RATIONALE",
    "RATIONALE_F1",
    "REFERENCE_ENCODER",
    "TEXT_METRICS",
    "Baseline",
    "BertScore",
    "BertScoreSettings",
    "BertScores",
    "BertSimilarity",
    "Bleurt",
    "Encoded",
    "Encoder",
    "EncoderSettings",
    "LongTexts",
    "MissingExtraError",
    "RationaleScorer",
    "Similarity",
    "TextMetric",
    "TextTokens",
    "TokenEncoder",
    "Units",
    "best",
    "bleu",
    "chrf",
    "default_similarity",
    "gives_rationales",
    "load_bertscore",
    "load_bleurt",
    "load_encoder",
    "mean",
    "packaged_baseline",
    "rationale_f1",
    "rationale_of",
    "read_baseline",
    "reference_weight",
    "rouge_l",
    "rouge_n",
    "text_metrics",
    "tokens",
    "weighted_bleu",
]
