"""The derived facet `guessable`: whether an item is answered without looking at its media."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proctor.runs.store import Store

if TYPE_CHECKING:
    from proctor.build.audit import ItemAudit

__all__ = ["GUESSABLE", "audit_stored", "derive_guessable", "flag_guessable"]

GUESSABLE = "guessable"


def audit_stored(
    store: Store, benchmark: str, *, all_items: bool = False, seed: int = 0, draws: int = 2000
) -> ItemAudit:
    """Audits the items of a benchmark that a store has answers to."""
    from proctor.build.audit import audit_items

    card = store.card(benchmark)
    items = [item for item in store.items(benchmark) if all_items or card.counts(item)]
    return audit_items(items, seed=seed, draws=draws)


def derive_guessable(store: Store, benchmark: str, audit: ItemAudit) -> None:
    """Gives the items an audit's flags as long as this store is open; nothing is written."""
    values = {item: "yes" if guessed else "no" for item, guessed in audit.guessable.items()}
    store.derived[benchmark, GUESSABLE] = values


def flag_guessable(store: Store, benchmark: str, audit: ItemAudit) -> int:
    """Keeps an audit's flags in the store, for `--by guessable`; returns how many items are flagged "yes"."""
    values = {item: "yes" if guessed else "no" for item, guessed in audit.guessable.items()}
    store.set_flags(benchmark, GUESSABLE, values)
    return sum(audit.guessable.values())
