"""Where a benchmark's files lie: named once, then remembered by the store."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from proctor.api.sources import open_store
from proctor.core import InputError, MissingOptionError

if TYPE_CHECKING:
    from proctor.runs import Store


@dataclass(frozen=True)
class Folders:
    """A benchmark's own files, its media, and its track. Paths are those of this machine."""

    data: str | Path | None = None
    media: str | Path | None = None
    track: str = ""


def recalled(benchmark: str, given: Folders, store: Store | str | Path | None) -> Folders:
    """What is given, completed by what the store remembers of the last run or import.

    Raises `MissingOptionError` where nobody knows the files, or where they are not there any more.
    """
    if given.data is not None:
        return given
    known = _known(benchmark, store)
    data = known.get("data")
    expected = f"the folder with the files of {benchmark}"
    if data is None:
        raise MissingOptionError("--data", f"{expected} (a store remembers it)")
    if not Path(data).exists():
        raise MissingOptionError("--data", expected, found=f"nothing at {data} any more")
    media = given.media or known.get("media")
    if given.media is None and media is not None and not Path(media).is_dir():
        media = None
    return Folders(data, media, given.track or known.get("track", ""))


def remember(store: Store, benchmark: str, folders: Folders) -> None:
    """Keeps where the files lie, for the next run or import."""
    card = store.card(benchmark)
    named = {"data": folders.data, "media": folders.media}
    found = {name: str(Path(path).resolve()) for name, path in named.items() if path is not None}
    kept = {**card.folders, **found} | ({"track": folders.track} if folders.track else {})
    if kept != card.folders:
        store.change_card(benchmark, lambda card: card.model_copy(update={"folders": kept}))


def existing_store(store: Store | str | Path | None) -> Store | None:
    """The store, or None where there is none yet: a run will make it."""
    try:
        return open_store(store, create=False)
    except InputError:
        return None


def _known(benchmark: str, store: Store | str | Path | None) -> dict[str, str]:
    opened = existing_store(store)
    if opened is None or benchmark not in opened.benchmark_names():
        return {}
    return dict(opened.card(benchmark).folders)
