"""`proctor report`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from proctor.cli.media import MediaAsOption, excerpts_of
from proctor.cli.options import AllItems, BenchmarkName, Draws, FailedOption, Media, Seed, StoreUrl
from proctor.cli.output import console, note
from proctor.cli.ranking import Baselines
from proctor.cli.results import DEFAULT_STORE
from proctor.core import InputError

if TYPE_CHECKING:
    from proctor.core import Item
    from proctor.media import MediaLibrary
    from proctor.runs import Options, Store

__all__ = ["report", "thumbnails_of"]

Thumbnails = Callable[["Item"], list[tuple[str, bytes]]]

_FRAMES = 4
_SIDE = 160


def report(
    benchmark: BenchmarkName,
    out: Annotated[Path, typer.Option("--out", help="The HTML file to write.")] = Path("report.html"),
    store: StoreUrl = DEFAULT_STORE,
    media: Media = None,
    media_as: MediaAsOption = None,
    baselines: Baselines = None,
    failed: FailedOption = None,
    publish: Annotated[
        bool, typer.Option("--publish", help="Leave out items, references, answers, judge names.")
    ] = False,
    pseudonyms: Annotated[
        bool, typer.Option("--pseudonyms", help="With --publish: number the systems.")
    ] = False,
    all_items: AllItems = False,
    draws: Draws = 2000,
    seed: Seed = 0,
) -> None:
    """One self-contained HTML file: tables, figures, and an item browser; opens offline.

    With `--publish` it holds nothing that must stay secret; `--pseudonyms` prints whose number is whose.

    Example: proctor report rexsonovqa --store runs.db --media videos --out report.html
    """
    from proctor.media import MediaLibrary
    from proctor.reports import write_report
    from proctor.runs import Options, Store, audit_stored, derive_guessable

    if pseudonyms and not publish:
        raise typer.BadParameter("needs --publish", param_hint="--pseudonyms")
    if media is not None and publish:
        raise typer.BadParameter("shows items, which --publish leaves out", param_hint="--media")
    if media is not None and not media.is_dir():
        raise InputError(media, found="no such folder", expected="the folder of the benchmark's media")
    opened = Store(store, create=False)
    options = Options(failed=failed, all_items=all_items, draws=draws, seed=seed)
    if publish:
        _publish(opened, benchmark, out, options, tuple(baselines or ()), pseudonyms=pseudonyms)
        return
    audit = audit_stored(opened, benchmark, all_items=all_items, seed=seed, draws=draws)
    derive_guessable(opened, benchmark, audit)
    thumbnails = None
    if media is not None:
        library = MediaLibrary(media, excerpts=excerpts_of(opened.card(benchmark).excerpts, media_as))
        _need_some(library, opened.items(benchmark))
        library.check_excerpts(opened.items(benchmark))
        thumbnails = thumbnails_of(library)
    summary = write_report(
        opened,
        benchmark,
        out,
        options=options,
        thumbnails=thumbnails,
        audit=audit,
        baselines=tuple(baselines or ()),
    )
    console.print(f"{out}: {summary.bytes / 1e6:.1f} MB", markup=False, highlight=False)
    for line in summary.left_out:
        note(line)


def _need_some(library: MediaLibrary, items: Sequence[Item]) -> None:
    """Says which media files are missing; a folder that has none of them is an error."""
    needed = {medium.source for item in items for medium in item.media}
    missing = library.missing(items)
    if not missing:
        return
    found = f"{len(needed) - len(missing)} of {len(needed)} media files, missing {', '.join(missing[:3])}"
    found += " …" if len(missing) > 3 else ""
    if len(missing) == len(needed):
        raise InputError(library.root, found=found, expected="the folder of the benchmark's media")
    note(f"{library.root}: found {found}: their items have no pictures")


def _publish(
    store: Store, benchmark: str, out: Path, options: Options, baselines: tuple[str, ...], *, pseudonyms: bool
) -> None:
    from proctor.reports import write_public_report
    from proctor.runs import pseudonyms_of

    names = pseudonyms_of(store, benchmark, baselines, options.seed) if pseudonyms else {}
    summary = write_public_report(
        store, benchmark, out, options=options, baselines=baselines, pseudonyms=names
    )
    console.print(f"{out}: {summary.bytes / 1e6:.1f} MB", markup=False, highlight=False)
    for name, shown in sorted(names.items(), key=lambda pair: (len(pair[1]), pair[1])):
        note(f"{shown} is {name}")


def thumbnails_of(library: MediaLibrary) -> Thumbnails:
    """Small pictures of an item, from the frame store: a few frames of its clip, or its images; none where a
    file is missing or broken."""
    from proctor.media import MediaLibrary, MediaSettings, view

    settings = MediaSettings(max_side=_SIDE, quality=70, max_frames=_FRAMES)
    small = MediaLibrary(library.root, settings, library.cache_dir, excerpts=library.excerpts)

    def thumbnails(item: Item) -> list[tuple[str, bytes]]:
        import asyncio

        if small.problems([item]):
            return []
        # Of stills all are shown: the count is for what is sampled.
        frames = asyncio.run(view(item, "video", small).frames(count=_FRAMES))
        return [(frame.label, frame.jpeg) for frame in frames]

    return thumbnails
