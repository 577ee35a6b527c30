"""How alike a text is to its references: ROUGE, BLEU, chrF, BERTScore, sentence embeddings; best and mean over
several."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.core import tokens
    from proctor.metrics.text.encoders import (
        EMBEDDED_ENCODER,
        Encoder,
        EncoderSettings,
        MissingExtraError,
        TokenEncoder,
        default_encoder,
        encoder_folder,
        encoder_limit,
        load_encoder,
    )
    from proctor.metrics.text.learned import BertScore, BertScoreSettings, load_bertscore
    from proctor.metrics.text.overlap import bleu, chrf, reference_weight, rouge_l, weighted_bleu
    from proctor.metrics.text.scorers import (
        NO_RATIONALE,
        RATIONALE_F1,
        RationaleScorer,
        SimilarityScorer,
        best,
        gives_rationales,
        mean,
        rationale_f1,
        rationale_of,
        similarity_values,
        text_metrics,
    )
else:
    export_lazily(__name__)

__all__ = [
    "EMBEDDED_ENCODER", "NO_RATIONALE", "RATIONALE_F1", "BertScore", "BertScoreSettings", "Encoder", "EncoderSettings",
    "MissingExtraError", "RationaleScorer", "SimilarityScorer", "TokenEncoder", "best", "bleu", "chrf",
    "default_encoder", "encoder_folder", "encoder_limit", "gives_rationales", "load_bertscore", "load_encoder", "mean",
    "rationale_f1", "rationale_of", "reference_weight", "rouge_l", "similarity_values", "text_metrics", "tokens",
    "weighted_bleu",
]  # fmt: skip
