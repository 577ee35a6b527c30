"""Where the keys of choices stand: options shuffled by a seed, and what is said where one letter is right too often."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from math import sqrt

from pydantic import JsonValue

from proctor.core import Item, Reference, count_of, generator
from proctor.core.formats import option_letters

_KINDS = ("choice", "choices")
_LEAST = 8  # choices from which on their keys can stand unevenly
_SPREADS = 3  # standard deviations above what keys spread evenly would give
_POINTING = re.compile(
    r"\b(?:above|below|both|neither|none|all of|oben|genannten|beides?|keine[sr]?|ci-dessus|aucune?|toutes)\b"
    r"|\b[A-H]\s?(?:and|or|und|oder|et|ou|&|,|/)\s?[A-H]\b|以上|均|都",
    re.IGNORECASE,
)


def shuffle_options(items: Sequence[Item], seed: int) -> tuple[list[Item], str]:
    """The items with the options of choices in an order of each one's own, and what was done in a sentence.

    Sorted by their texts first, so that the order in which they were written plays no part, then shuffled by the seed
    and the item's id; every system gets the same order. A question with an option that points to others ("none of the
    above", "A and B") keeps its order.
    """
    found, moved, kept = [], 0, 0
    for item in items:
        if item.answer.kind not in _KINDS or not item.options:
            found.append(item)
        elif any(_POINTING.search(option) for option in item.options):
            found.append(item)
            kept += 1
        else:
            found.append(_shuffled(item, seed))
            moved += 1
    left = f"; {kept} kept as written, since an option points to others" if kept else ""
    return found, f"Options: those of {count_of(moved, 'question')} shuffled by seed {seed}{left}"


def _shuffled(item: Item, seed: int) -> Item:
    by_text = sorted(item.options)
    options = tuple(by_text[place] for place in generator(seed, "options", item.id).permutation(len(by_text)))
    letters = option_letters(len(options))
    new = {old: letters[options.index(text)] for old, text in zip(letters, item.options, strict=True)}

    def said(value: JsonValue) -> JsonValue:
        return [*sorted(new[str(one)] for one in value)] if isinstance(value, list) else new[str(value)]

    reference: Reference | None = item.reference
    if reference is not None:
        accepted = tuple(said(one) for one in reference.accepted)
        reference = reference.model_copy(update={"answer": said(reference.answer), "accepted": accepted})
    return item.model_copy(update={"options": options, "reference": reference})


def keys_line(items: Sequence[Item]) -> str:
    """That one letter is right far more often than keys spread evenly would be; empty where none is."""
    keys = [
        (str(item.reference.answer), 1 / len(item.options))
        for item in items
        if item.answer.kind == "choice" and item.reference is not None and item.options
    ]
    if len(keys) < _LEAST:
        return ""
    letter, count = Counter(key for key, _ in keys).most_common(1)[0]
    share = sum(chance for _, chance in keys) / len(keys)
    if count <= len(keys) * share + _SPREADS * sqrt(len(keys) * share * (1 - share)):
        return ""
    return (
        f"Keys: {letter} is right in {count} of {len(keys)} choices, so that always {letter} scores "
        f"{100 * count / len(keys):.0f} % on them; `shuffle_options: true` in benchmark.yaml shuffles options by the seed"
    )
