"""The item audit: what a benchmark's questions give away to someone who does not look."""

from proctor.build.audit.audit import audit_items
from proctor.build.audit.records import (
    Contrast,
    FacetAccuracy,
    FormatAudit,
    GuesserResult,
    Histogram,
    ItemAudit,
    OptionAudit,
    Repeats,
    SelectedGuesser,
    to_json,
)

__all__ = [
    "Contrast",
    "FacetAccuracy",
    "FormatAudit",
    "GuesserResult",
    "Histogram",
    "ItemAudit",
    "OptionAudit",
    "Repeats",
    "SelectedGuesser",
    "audit_items",
    "to_json",
]
