"""The items of a page's browser: few as plain JSON, which anybody can search; many in blocks of gzip and base64, which the
page's script opens with DecompressionStream.

Files beside the page get lost, blocks that are opened on demand can't be searched, and no script opens Brotli or zstd.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

PLAIN = 1_000_000
"""Characters of items up to which they are plain, and after which a block ends: a web browser reads as many in 10 ms."""


@dataclass(frozen=True)
class BrowserData:
    """What the browser shows: the `head` (runs, facets, statuses, and more), the items as JSON texts, and the judgements of
    judges by number. Of many items `blocks` hold both, and `items` is empty. `kept` items of those given are in it."""

    head: Mapping[str, Any]
    items: Sequence[str] = ()
    judgements: Mapping[int, Any] = field(default_factory=dict)
    blocks: Sequence[str] = ()
    kept: int = 0


def compact(value: Any) -> str:
    """JSON without spaces."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def pack(
    head: Mapping[str, Any],
    items: Sequence[str],
    judgements: Mapping[int, Any],
    judgements_by_key: Sequence[Iterable[int]] = (),
    *,
    limit: int,
) -> BrowserData:
    """The items, with the judgements that each refers to (`judgements_by_key`), up to this many bytes of blocks; whole blocks beyond
    are left out."""
    own = [tuple(one) for one in judgements_by_key] or [()] * len(items)
    if sum(map(len, items)) + len(compact(list(judgements.values()))) <= min(PLAIN, limit):
        return BrowserData(head, items, judgements, kept=len(items))
    blocks, spent, kept, told = list[str](), 0, 0, set[int]()
    for start, end in _parts(items):
        there = {number for one in own[start:end] for number in one} - told
        block = _block(items[start:end], {number: judgements[number] for number in sorted(there)})
        spent += len(block)
        if spent > limit:
            break
        blocks.append(block)
        told |= there
        kept = end
    return BrowserData(head, blocks=blocks, kept=kept)


def _parts(items: Sequence[str]) -> Iterable[tuple[int, int]]:
    start, room = 0, PLAIN
    for row, item in enumerate(items):
        if row > start and len(item) > room:
            yield start, row
            start, room = row, PLAIN
        room -= len(item)
    if items:
        yield start, len(items)


def _block(items: Sequence[str], judgements: Mapping[int, Any]) -> str:
    text = f'{{"items":[{",".join(items)}],"judgements":{compact(judgements)}}}'
    # Characters that are no text (half of a pair) would end the writing of the page.
    packed = gzip.compress(text.encode("utf-8", "replace"), compresslevel=6, mtime=0)
    return base64.b64encode(packed).decode("ascii")
