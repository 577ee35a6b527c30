"""`proctor report`, `export` and `reproduce`: what leaves a store, and proofs of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from proctor.cli.output import Output, OutputFormat, at_work, named_in, print_line, print_note, show, show_steps
from proctor.core import Option, UsageError, shell_word, store_word
from proctor.shell import BenchmarkName, ExportOptions, ReportOptions, ReproduceOptions, StoreUrl

if TYPE_CHECKING:
    from proctor.reports import ReportSummary
    from proctor.shell import ReproductionTable, VerificationTable


def report(
    benchmark: BenchmarkName,
    options: ReportOptions,
    out: Annotated[Path, Option("The HTML file to write.")] = Path("report.html"),
    store: StoreUrl = None,
) -> None:
    """Write one HTML report that opens offline.

    It holds tables, figures, and an item browser.

    With `--publish` it contains nothing that must stay secret; `--pseudonyms` prints the number of each system.

    Example: proctor report rexsonovqa --store runs.db --media videos --out report.html
    """
    from proctor import api
    from proctor.results import pseudonyms_of

    opened, names = api.open_store(store, create=False), dict[str, str]()
    benchmark = named_in(opened, benchmark)
    if options["publish"] and options["pseudonyms"]:
        names = pseudonyms_of(opened, benchmark, tuple(options["baselines"]), options["seed"])
        options["pseudonyms"] = names
    with at_work("writing the report"):
        summary = api.report(opened, out, benchmark, **options)
    print_line(f"{out}: {summary.bytes / 1e6:.1f} MB")
    tell(summary)
    print_note(*summary.left_out)
    for name, shown in sorted(names.items(), key=lambda pair: (len(pair[1]), pair[1])):
        print_note(f"{shown} is {name}")
    if not options["publish"]:
        terminal = f"proctor show {shell_word(benchmark)} ITEM --store {store_word(opened.shown)}"
        print_note(f"Next: open {out} in a browser; one item in the terminal: {terminal}")


def tell(summary: ReportSummary) -> None:
    """Print the first screen of a report as sentences."""
    for answer in summary.story.answers:
        print_note(f"{answer.question} {answer.answer}")


def export(
    benchmark: BenchmarkName,
    out: Annotated[Path, Option("The file to write.")],
    options: ExportOptions,
    store: StoreUrl = None,
) -> None:
    """Export answers and scores, or a submission.

    Writes one row per item, system, condition and metric, as JSON Lines, CSV or Parquet; a scorer's replies
    (judgements); answers that wait for a person (unresolved: fill in the columns value and reason, and read the file
    back with `proctor import --decided-by`); a submission of one run, or of one scorer's scores; or another program's format
    (every-eval-ever, croissant, inspect …: `proctor list formats`).

    Example: proctor export rexsonovqa --store runs.db --format parquet --out rexsonovqa.parquet
    """
    from proctor import api, shell
    from proctor.core import VALIDATORS, count_of
    from proctor.interchange import Written

    form = options["format"] or out.suffix.removeprefix(".")
    opened = api.open_store(store, create=False)
    benchmark = named_in(opened, benchmark)
    count = api.export(opened, out, benchmark, **options)
    if isinstance(count, Written):
        print_note(*(f"dropped: {line}" for line in count.dropped), *count.notes)
        print_line(f"{count_of(count.count, count.what)} in {out}")
        return
    answers = form not in shell.PLAIN_FORMATS and not options["scorer"]
    what = {"judgements": "judgements", "sums": "metrics"}.get(form, "answers" if answers else "rows")
    print_line(f"{count} {what} in {out}")
    if answers and benchmark in VALIDATORS.names():
        print_note(f"Next: proctor check {benchmark} {shell_word(out)} --store {store_word(opened.shown)}")


def reproduce(
    options: ReproduceOptions,
    benchmark: BenchmarkName = "",
    published: Annotated[
        Path | None, Option("Instead, the published figures, from recorded answers in this folder.", metavar="FOLDER")
    ] = None,
    benchmarks: Annotated[
        list[str] | None, Option("With --published: only this benchmark; may be repeated.", "--benchmark")
    ] = None,
    store: StoreUrl = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Reproduce what was shown, or published.

    Reproduces every picture from the media files with the run's settings, and compares it with the record in the store:
    its time, and the SHA-256 of its bytes as the system got it. Cached frames are not used.

    With --published, recomputes the published figures of benchmarks from recorded answers, and
    compares them at the published precision. Figures that differ are listed; --format json and csv list all.

    Exit code 1 where something differs, or can't be compared. Example: proctor reproduce focus --media videos
    """
    from proctor import api

    found: ReproductionTable | VerificationTable
    if published is not None and benchmark:
        raise UsageError(f"With --published, a benchmark has a name: --benchmark {shell_word(benchmark)}")
    if published is not None:
        with show_steps("verifying", 0) as progress:
            found = api.verify(published, benchmarks or (), on_change=progress)
    elif not benchmark:
        raise UsageError("BENCHMARK is missing. Example: proctor reproduce focus --media videos")
    else:
        opened = api.open_store(store, create=False)
        with show_steps("making again", 0) as progress:
            watched: ReproduceOptions = {**options, "on_change": progress}
            found = api.reproduce(opened, named_in(opened, benchmark), **watched)
    show(output, found.rows, *found.tables)
    print_note(*found.notes)
    if not found.ok:
        raise typer.Exit(1)
