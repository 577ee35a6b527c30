"""A benchmark's training and validation parts, the same for everything that needs them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from proctor.core import Benchmark, InputError, Item

if TYPE_CHECKING:
    from proctor.media import MediaLibrary

TRAINING, VALIDATION = "training", "validation"


def parts_of(benchmark: Benchmark, library: MediaLibrary, share: float, seed: int) -> tuple[Benchmark, Benchmark]:
    """The benchmark with its training items alone, and with its validation items alone: about `share` of them.

    What shares a group, an option pool or a medium is in one part, and so is all that others link. A medium is known
    by its content, so that a video under two names is one. Raises `InputError` for a share that is none, and where
    everything is linked.
    """
    from proctor.construction import split_items

    if not 0 < share < 1:
        raise InputError("share", found=f"{share:g}", expected="a share between 0 and 1")
    known = [_by_content(item, library) for item in benchmark.items]
    part = split_items(known, {TRAINING: 1 - share, VALIDATION: share}, seed=seed)
    training, validation = (
        replace(benchmark, items=tuple(item for item in benchmark.items if part[item.id] == name))
        for name in (TRAINING, VALIDATION)
    )
    return training, validation


def _by_content(item: Item, library: MediaLibrary) -> Item:
    """The item with its media under the hashes of their files, where these are at hand."""
    if not item.media or library.missing([item]):
        return item
    media = tuple(one.model_copy(update={"source": library.identity(one.source)}) for one in item.media)
    return item.model_copy(update={"media": media})
