"""A judge that was trained: an encoder with one head for each dimension."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor_train.mediqa_eval.classifier.epochs import ClassifierRecipe
    from proctor_train.mediqa_eval.classifier.judge import (
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
    from proctor_train.mediqa_eval.classifier.network import (
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
    from proctor_train.mediqa_eval.classifier.training import TrainedClassifier, classifier_settings, train_classifier
else:
    export_lazily(__name__)

__all__ = [
    "CUT_RULE", "CaptionWriter", "CaptionedCase", "ClassifierLanguage", "ClassifierManifest", "ClassifierMember",
    "ClassifierRecipe", "FrozenEncoder", "LevelClassifier", "Loss", "TokenizedCase", "TrainedClassifier", "batch",
    "build", "classifier_settings", "cut_counts", "features_of", "level_loss", "level_shares", "level_weights",
    "probabilities", "read_levels", "save_classifier", "state_hash", "tokenized", "train_classifier", "write_captions",
]  # fmt: skip
