"""How alike a text is to its references: ROUGE, BLEU, chrF, BERTScore, sentence embeddings; best and mean over several."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.metrics.text.bertscore import (
        Baseline,
        BertScore,
        BertScores,
        BertScoreSettings,
        BertSimilarity,
        load_bertscore,
        packaged_baseline,
        read_baseline,
    )
    from proctor.metrics.text.catalogue import TEXT_METRICS, Bleurt, TextMetric, best, load_bleurt, mean, text_metrics
    from proctor.metrics.text.encoders import (
        EMBEDDED_ENCODER,
        REFERENCE_ENCODER,
        Encoded,
        Encoder,
        EncoderSettings,
        LongTexts,
        MissingExtraError,
        Similarity,
        TextTokens,
        TokenEncoder,
        default_encoder,
        default_similarity,
        load_encoder,
    )
    from proctor.metrics.text.overlap import (
        Units,
        bleu,
        chrf,
        reference_weight,
        rouge_l,
        rouge_n,
        tokens,
        weighted_bleu,
    )
    from proctor.metrics.text.scorers import (
        NO_RATIONALE,
        RATIONALE_F1,
        RationaleScorer,
        SimilarityScorer,
        gives_rationales,
        rationale_f1,
        rationale_of,
        similarity_values,
    )
else:
    export_lazily(__name__)

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
    "SimilarityScorer",
    "TextMetric",
    "TextTokens",
    "TokenEncoder",
    "Units",
    "best",
    "bleu",
    "chrf",
    "default_encoder",
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
    "similarity_values",
    "text_metrics",
    "tokens",
    "weighted_bleu",
]
