"""`proctor report` and `proctor export`: what leaves a store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from proctor.api import BenchmarkName, ExportOptions, ReportOptions, StoreUrl
from proctor.cli.output import note, say
from proctor.cli.progress import at_work
from proctor.core import Option

if TYPE_CHECKING:
    from proctor.reports import ReportSummary


def report(
    benchmark: BenchmarkName,
    options: ReportOptions,
    out: Annotated[Path, Option("The HTML file to write.")] = Path("report.html"),
    store: StoreUrl = None,
) -> None:
    """Write one HTML report that opens offline.

    It holds tables, figures, and an item browser.

    With `--publish` it holds nothing that must stay secret; `--pseudonyms` prints whose number is whose.

    Example: proctor report rexsonovqa --store runs.db --media videos --out report.html
    """
    from proctor import api
    from proctor.runs import pseudonyms_of

    opened, names = api.open_store(store, create=False), dict[str, str]()
    benchmark = api.name_in(opened, benchmark)
    if options["publish"] and options["pseudonyms"]:
        names = pseudonyms_of(opened, benchmark, tuple(options["baselines"]), options["seed"])
        options["pseudonyms"] = names
    with at_work("writing the report"):
        summary = api.report(opened, out, benchmark, **options)
    say(f"{out}: {summary.bytes / 1e6:.1f} MB")
    tell(summary)
    note(*summary.left_out)
    for name, shown in sorted(names.items(), key=lambda pair: (len(pair[1]), pair[1])):
        note(f"{shown} is {name}")
    if not options["publish"]:
        terminal = f"proctor show {benchmark} ITEM --store {opened.shown}"
        note(f"Next: open {out} in a browser; one item in the terminal: {terminal}")


def tell(summary: ReportSummary) -> None:
    """The first screen of a report in sentences."""
    for one in summary.story.answers:
        note(f"{one.question} {one.answer}")


def export(
    benchmark: BenchmarkName,
    out: Annotated[Path, Option("The file to write.")],
    options: ExportOptions,
    store: StoreUrl = None,
) -> None:
    """Export answers and scores, or a submission.

    One row per item, system, condition and metric, as JSON Lines, CSV or Parquet; what a scorer said of each answer
    (judgements); what waits for a person (unresolved: fill in the columns value and reason, and read the file back with
    `proctor store decide`); or a submission of one run, or of one scorer's scores; or another program's format
    (every-eval-ever, croissant, inspect …: `proctor list formats`).

    Example: proctor export rexsonovqa --store runs.db --format parquet --out rexsonovqa.parquet
    """
    from proctor import api
    from proctor.core import VALIDATORS, count_of
    from proctor.interchange import Written

    form = options["format"] or out.suffix.removeprefix(".")
    count = api.export(api.open_store(store, create=False), out, benchmark, **options)
    if isinstance(count, Written):
        note(*(f"dropped: {line}" for line in count.dropped), *count.notes)
        say(f"{count_of(count.count, count.what)} in {out}")
        return
    answers = form not in api.PLAIN_FORMATS and not options["scorer"]
    what = {"judgements": "judgements", "sums": "metrics"}.get(form, "answers" if answers else "rows")
    say(f"{count} {what} in {out}")
    if answers and benchmark in VALIDATORS.names():
        note(f"Next: proctor validate {benchmark} {out}")
