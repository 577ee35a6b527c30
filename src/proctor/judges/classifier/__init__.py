"""A judge that was trained: an encoder with one head for each dimension."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.judges.classifier.judge import (
        CaptionedCase,
        CaptionWriter,
        ClassifierLanguage,
        ClassifierManifest,
        ClassifierMember,
        Loss,
        build,
        read_levels,
        save_classifier,
        state_hash,
        write_captions,
    )
    from proctor.judges.classifier.network import (
        CUT_RULE,
        FrozenEncoder,
        LevelClassifier,
        TokenizedCase,
        batch,
        cut_counts,
        features_of,
        level_loss,
        level_shares,
        level_weights,
        probabilities,
        tokenized,
    )
else:
    export_lazily(__name__)

__all__ = [
    "CUT_RULE", "CaptionWriter", "CaptionedCase", "ClassifierLanguage", "ClassifierManifest", "ClassifierMember",
    "FrozenEncoder", "LevelClassifier", "Loss", "TokenizedCase", "batch", "build", "cut_counts", "features_of",
    "level_loss", "level_shares", "level_weights", "probabilities", "read_levels", "save_classifier", "state_hash",
    "tokenized", "write_captions",
]  # fmt: skip
