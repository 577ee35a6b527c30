"""Between a store and the files of other programs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from proctor.api.exchange_options import ExportOptions
from proctor.api.sources import Stored

if TYPE_CHECKING:
    from proctor.interchange import Written


def write_foreign(where: Stored, out: Path, form: str, given: ExportOptions) -> Written:
    """The chosen runs, or the benchmark, in the format of another program."""
    from proctor.api.numbers import options_of
    from proctor.interchange import FORMATS, ExportSource

    card = where.store.card(where.benchmark)
    media = given["media"] or card.folders.get("media")
    options = replace(options_of(where, {"failed": None}), all_items=given["all_items"])
    source = ExportSource(
        where.store,
        card,
        options,
        origin=given["origin"],
        media=None if media is None else Path(media),
        copy_media=given["copy_media"],
        references=not given["no_references"],
    )
    return FORMATS.get(form).write(source, out)
