"""Split items into disjoint training, validation and test parts by seed, and check splits for leakage."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from proctor.core import OPTION_POOL, InputError, Item, count_of, generator
from proctor.core.formats import ChoiceFormat, FreeTextFormat, option_letters
from proctor.stats import linked

SHARES = {"train": 0.6, "validation": 0.2, "test": 0.2}
"""The usual shares of the items."""

_LONG = 4  # words; shorter answers ("red", "yes", "the liver") recur by nature


@dataclass(frozen=True)
class SplitLeak:
    """Something that two or more parts share: a "group", a "medium", an "option pool" or another tag, a "question" (the
    same words and options), or an "answer" of four or more words that is right in one part and an option, or right, in
    another. Near-duplicates of texts and media are not detected."""

    kind: str
    what: str
    parts: tuple[str, ...]
    items: tuple[str, ...]


def split_items(
    items: Sequence[Item], shares: Mapping[str, float] = SHARES, *, seed: int = 0, together: Sequence[str] = ()
) -> dict[str, str]:
    """The part of each item, by its id.

    Items that share a group, a medium, an option pool or a value of the tags `together` (a patient, a site), directly
    or through others, form a cluster and are in one part. Clusters are assigned in a random order by `seed`, large ones
    first, each to the part that lacks most of its share of the items. Every part gets at least one cluster.

    Raises `InputError` for shares that are not positive or do not sum to 1, and for fewer clusters than parts.
    """
    if not shares or min(shares.values()) <= 0 or abs(sum(shares.values()) - 1) > 1e-6:
        found = ", ".join(f"{name} {share:g}" for name, share in shares.items()) or "none"
        raise InputError("shares", found=found, expected="positive shares that make 1")
    clusters = defaultdict[int, list[str]](list)
    codes = linked([list(_labels(item, together)) for item in items])
    for item, code in zip(items, codes, strict=True):
        clusters[int(code)].append(item.id)
    if len(clusters) < len(shares):
        found = f"{count_of(len(clusters), 'cluster')} of items that belong together"
        raise InputError("items", found=found, expected=f"{len(shares)} at least, one for each part")
    rng = generator(seed, "split")
    named = sorted(clusters, key=lambda code: min(clusters[code]))  # independent of the order of items
    order = sorted((named[int(row)] for row in rng.permutation(len(named))), key=lambda code: -len(clusters[code]))
    filled = Counter[str]()
    part: dict[str, str] = {}
    for row, code in enumerate(order):
        empty = [name for name in shares if not filled[name]]
        left = len(order) - row
        among = empty if len(empty) >= left else list(shares)
        name = max(among, key=lambda one: shares[one] * len(items) - filled[one])
        filled[name] += len(clusters[code])
        part |= dict.fromkeys(clusters[code], name)
    return {item.id: part[item.id] for item in items}


def split_leaks(items: Sequence[Item], part: Mapping[str, str], *, together: Sequence[str] = ()) -> list[SplitLeak]:
    """What the parts of a split share, in a fixed order. `part` is from `split_items` or any other source. Raises
    `InputError` for an item without a part."""
    missing = [item.id for item in items if item.id not in part]
    if missing:
        raise InputError("split", found=f"no part for {missing[0]!r}", expected="a part for each item")
    seen = defaultdict[tuple[str, str], list[str]](list)
    right = defaultdict[str, list[str]](list)
    offered = defaultdict[str, list[str]](list)
    for item in items:
        for label in _labels(item, together):
            seen[str(label[0]), str(label[1])].append(item.id)
        text = " | ".join([_plain(item.question), *sorted(map(_plain, item.options)), *map(str, item.media)])
        seen["question", text].append(item.id)
        answer = _answer(item)
        if answer:
            right[answer].append(item.id)
        for option in {_plain(one) for one in item.options} - {answer}:
            offered[option].append(item.id)
    for answer, ids in right.items():
        seen["answer", answer] += [*ids, *offered.get(answer, [])]
    found = []
    for (kind, what), ids in seen.items():
        parts = sorted({part[one] for one in ids})
        if len(parts) > 1:
            found.append(SplitLeak(kind, what, tuple(parts), tuple(ids)))
    return sorted(found, key=lambda leak: (leak.kind, leak.what))


def _labels(item: Item, together: Sequence[str]) -> Iterator[tuple[str, Hashable]]:
    yield "group", item.group
    for medium in item.media:
        yield "medium", medium.source
    for tag in (OPTION_POOL, *together):
        value = item.tags.get(tag, ())
        for one in value if isinstance(value, tuple) else (value,):
            yield tag.replace("_", " "), one


def _answer(item: Item) -> str:
    """The right answer as text, if it is long enough to be specific to this item."""
    if item.reference is None or item.reference.answer is None:
        return ""
    if not isinstance(item.answer, ChoiceFormat | FreeTextFormat):
        return ""
    answer = str(item.reference.answer)
    if isinstance(item.answer, ChoiceFormat):
        answer = item.options[option_letters(len(item.options)).index(answer)]
    return _plain(answer) if len(answer.split()) >= _LONG else ""


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
