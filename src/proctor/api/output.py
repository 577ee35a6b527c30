"""Writing what a store holds: `report` and `export`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from proctor.api.access import listed
from proctor.api.loop import wait_for
from proctor.api.sources import Evaluation, Stored, check_options, stored
from proctor.core import InputError, Item, reader_or_default

if TYPE_CHECKING:
    from proctor.core import FailedPolicy
    from proctor.media import MediaLibrary
    from proctor.reports import ReportSummary
    from proctor.runs import Store

TABLE_FORMATS = ("jsonl", "csv", "parquet")
"""The formats of `export` for one row per item, system, condition and metric."""

Thumbnails = Callable[[Item], list[tuple[str, bytes]]]

_FRAMES = 4
_SIDE = 160


class ReportOptions(TypedDict, total=False):
    """What `report` takes beside where it is written. `media` is the folder of the benchmark's videos or images, for
    the item browser, `media_as` what these files are; `publish` leaves out all that must stay secret, `pseudonyms`
    (system to shown name) replaces names in it; the others are those of `results`."""

    media: str | Path | None
    media_as: Literal["full", "trimmed", "cropped"] | None
    baselines: str | Sequence[str]
    publish: bool
    pseudonyms: dict[str, str]
    failed: FailedPolicy | str | None
    all_items: bool
    draws: int
    seed: int


def report(
    source: Evaluation | Store | str | Path | None = None,
    out: str | Path = "report.html",
    benchmark: str = "",
    **options: Unpack[ReportOptions],
) -> ReportSummary:
    """One HTML file that opens offline: tables, figures, and an item browser. It speaks of all runs of the benchmark
    in the store, the baselines among them.

    Returns what was written: the path, the size, and what was left out. Raises `InputError` where there is no run, and
    where `out` can't be written. The command is `proctor report`.
    """
    from proctor.api.numbers import policy_of
    from proctor.reports import write_public_report, write_report
    from proctor.runs import Options, audit_stored, derive_guessable

    check_options("report", dict(options), ReportOptions)
    where = stored(source, benchmark)
    drawn = Options(
        failed=policy_of(options.get("failed")),
        all_items=options.get("all_items", False),
        draws=options.get("draws", 2000),
        seed=options.get("seed", 0),
    )
    baselines, media = tuple(listed(options.get("baselines"))), options.get("media")
    if options.get("publish", False):
        if media is not None:
            raise InputError(None, "media", found=str(media), expected="none: publish leaves out items")
        return write_public_report(
            where.store,
            where.benchmark,
            Path(out),
            options=drawn,
            baselines=baselines,
            pseudonyms=options.get("pseudonyms"),
        )
    audit = audit_stored(where.store, where.benchmark, all_items=drawn.all_items, seed=drawn.seed, draws=drawn.draws)
    derive_guessable(where.store, where.benchmark, audit)
    library: MediaLibrary | None = None
    notes: list[str] = []
    if media is not None:
        library, notes = _library(where, Path(media), options.get("media_as"))
    summary = write_report(
        where.store,
        where.benchmark,
        Path(out),
        options=drawn,
        thumbnails=None if library is None else thumbnails_of(library),
        audit=audit,
        baselines=baselines,
    )
    return replace(summary, left_out=(*notes, *summary.left_out))


def export(
    source: Evaluation | Store | str | Path | None = None,
    out: str | Path | None = None,
    benchmark: str = "",
    *,
    format: str = "",  # noqa: A002 - as the option is called
    systems: str | Sequence[str] = (),
    conditions: str | Sequence[str] = (),
    all_items: bool = False,
) -> Any:
    """One row per item, system, condition and metric: as a `pandas.DataFrame`, or written to `out` (then returns how
    many), as `format` or the name's ending says: jsonl, csv or parquet.

    A benchmark's own formats of submissions write one run. In CSV a text that a spreadsheet would take for a formula
    gets a leading apostrophe. Raises `InputError` for an unknown system, condition or format. The command is
    `proctor export`.
    """
    from proctor.runs import chosen_runs, export_rows
    from proctor.runs import export as write

    where = stored(source, benchmark, systems, conditions)
    if out is None:
        import pandas as pd

        runs = chosen_runs(where.store, where.benchmark, where.systems, where.conditions)
        card = where.store.card(where.benchmark)
        _, rows = export_rows(where.store, where.benchmark, card, all_items=all_items, runs=runs)
        return pd.DataFrame(list(rows))
    path = Path(out)
    form = format or path.suffix.removeprefix(".")
    if form not in TABLE_FORMATS:
        return _submission(where, path, form)
    return write(
        where.store,
        where.benchmark,
        path,
        form,  # type: ignore[arg-type]
        all_items=all_items,
        systems=where.systems,
        conditions=where.conditions,
    )


def thumbnails_of(library: MediaLibrary) -> Thumbnails:
    """Small pictures of an item, from the frame store: a few frames of its clip, or its images; none where a
    file is missing or broken."""
    from proctor.media import MediaLibrary, MediaSettings, view

    settings = MediaSettings(max_side=_SIDE, quality=70, max_frames=_FRAMES)
    small = MediaLibrary(library.root, settings, library.cache_dir, excerpts=library.excerpts)

    def thumbnails(item: Item) -> list[tuple[str, bytes]]:
        if small.problems([item]):
            return []
        # Of stills all are shown: the count is for what is sampled.
        frames = wait_for(lambda: _frames(view(item, "video", small)))
        return [(frame.label, frame.jpeg) for frame in frames]

    return thumbnails


async def _frames(shown: Any) -> list[Any]:
    frames: list[Any] = await shown.frames(count=_FRAMES)
    return frames


def _library(where: Stored, media: Path, media_as: str | None) -> tuple[MediaLibrary, list[str]]:
    """The folder's files, and which are missing. Raises `InputError` where it is not there, or has none of them."""
    from proctor.media import Excerpts, MediaAs, MediaLibrary

    if not media.is_dir():
        raise InputError(media, found="no such folder", expected="the folder of the benchmark's media")
    known = where.store.card(where.benchmark).excerpts
    if media_as is not None and not known:
        raise InputError(None, "media_as", found=media_as, expected="none: these videos are no parts of others")
    library = MediaLibrary(media, excerpts=Excerpts(known, None if media_as is None else MediaAs(media_as)))
    items = where.store.items(where.benchmark)
    needed = {medium.source for item in items for medium in item.media}
    missing = library.missing(items)
    found = f"{len(needed) - len(missing)} of {len(needed)} media files, missing {', '.join(missing[:3])}"
    found += " …" if len(missing) > 3 else ""
    if missing and len(missing) == len(needed):
        raise InputError(library.root, found=found, expected="the folder of the benchmark's media")
    library.check_excerpts(items)
    return library, [f"{library.root}: found {found}: their items have no pictures"] if missing else []


def _submission(where: Stored, out: Path, form: str) -> int:
    from proctor.runs import chosen_runs

    reader = reader_or_default(where.benchmark)
    own = reader.submission_formats
    if form not in own:
        raise InputError(None, "format", found=repr(form), expected=f"one of {', '.join((*TABLE_FORMATS, *own))}")
    runs = chosen_runs(where.store, where.benchmark, where.systems, where.conditions)
    if len(runs) != 1:
        found = ", ".join(f"{run.system} / {run.condition}" for run in runs) or "no run"
        raise InputError(None, "--system and --condition", found=found, expected="one run")
    return reader.write_submission(form, list(where.store.answers(runs[0]).values()), out)
