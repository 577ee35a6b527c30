"""The item audit: what a benchmark's questions give away to someone who does not look."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.audits.items.assignment import Together
    from proctor.audits.items.audit import (
        FormatAudit,
        ItemAudit,
        OptionPools,
        RuleCue,
        TextCues,
        audit_items,
        text_cues,
        to_json,
    )
    from proctor.audits.items.baselines import ModelReplies
    from proctor.audits.items.options import CHARACTERS, Histogram, OptionAudit, tfidf, words
else:
    export_lazily(__name__)

__all__ = [
    "CHARACTERS",
    "FormatAudit", "Histogram", "ItemAudit", "ModelReplies", "OptionAudit", "OptionPools", "RuleCue", "TextCues", "Together", "audit_items",
    "text_cues", "tfidf", "to_json", "words",
]  # fmt: skip
