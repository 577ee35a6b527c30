"""The item audit: what a benchmark's questions give away to someone who does not look."""

from proctor.audits.items.audit import audit_items
from proctor.audits.items.records import (
    FacetAccuracy,
    FormatAudit,
    GuesserResult,
    Histogram,
    ItemAudit,
    OptionAudit,
    OptionContrast,
    Repeats,
    SelectedGuesser,
    to_json,
)

__all__ = [
    "FacetAccuracy",
    "FormatAudit",
    "GuesserResult",
    "Histogram",
    "ItemAudit",
    "OptionAudit",
    "OptionContrast",
    "Repeats",
    "SelectedGuesser",
    "audit_items",
    "to_json",
]
