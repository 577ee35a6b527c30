"""`proctor report`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from proctor.cli.media import MediaAsOption
from proctor.cli.options import AllItems, BenchmarkName, Draws, FailedOption, Media, Seed, StoreUrl
from proctor.cli.output import console, note
from proctor.cli.ranking import Baselines
from proctor.cli.results import DEFAULT_STORE

if TYPE_CHECKING:
    from proctor.reports import ReportSummary


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
    pseudonyms: Annotated[bool, typer.Option("--pseudonyms", help="With --publish: number the systems.")] = False,
    all_items: AllItems = False,
    draws: Draws = 2000,
    seed: Seed = 0,
) -> None:
    """Write one HTML report that opens offline.

    It holds tables, figures, and an item browser.

    With `--publish` it holds nothing that must stay secret; `--pseudonyms` prints whose number is whose.

    Example: proctor report rexsonovqa --store runs.db --media videos --out report.html
    """
    from proctor import api
    from proctor.runs import Store, pseudonyms_of

    if pseudonyms and not publish:
        raise typer.BadParameter("needs --publish", param_hint="--pseudonyms")
    if media is not None and publish:
        raise typer.BadParameter("shows items, which --publish leaves out", param_hint="--media")
    opened = Store(store, create=False)
    names = pseudonyms_of(opened, benchmark, tuple(baselines or ()), seed) if pseudonyms else {}
    summary = api.report(
        opened,
        out,
        benchmark,
        media=media,
        media_as=None if media_as is None else media_as.value,
        baselines=baselines or (),
        publish=publish,
        pseudonyms=names,
        failed=failed,
        all_items=all_items,
        draws=draws,
        seed=seed,
    )
    console.print(f"{out}: {summary.bytes / 1e6:.1f} MB", markup=False, highlight=False)
    tell(summary)
    for line in summary.left_out:
        note(line)
    for name, shown in sorted(names.items(), key=lambda pair: (len(pair[1]), pair[1])):
        note(f"{shown} is {name}")
    if publish:
        return
    note(
        f"Next: open {out} in a browser; one item in the terminal: proctor show {benchmark} ITEM --store {opened.shown}"
    )


def tell(summary: ReportSummary) -> None:
    """The first screen of a report in sentences."""
    for one in summary.story.answers:
        note(f"{one.question} {one.answer}")
