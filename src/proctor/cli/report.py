"""`proctor report`, `export`, `reproduce`, `verify` and `pool`: what leaves a store, and proofs of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from proctor.cli.output import (
    Output,
    OutputFormat,
    at_work,
    drawn_over,
    named_in,
    note,
    print_json,
    say,
    settings_of,
    show,
    show_steps,
)
from proctor.core import Option, count_of, number, number_interval, plain_table, shell_word, store_word, thousands
from proctor.shell import BenchmarkName, Draws, ExportOptions, ReportOptions, ReproduceOptions, Seed, StoreUrl

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
    say(f"{out}: {summary.bytes / 1e6:.1f} MB")
    tell(summary)
    note(*summary.left_out)
    for name, shown in sorted(names.items(), key=lambda pair: (len(pair[1]), pair[1])):
        note(f"{shown} is {name}")
    if not options["publish"]:
        terminal = f"proctor show {shell_word(benchmark)} ITEM --store {store_word(opened.shown)}"
        note(f"Next: open {out} in a browser; one item in the terminal: {terminal}")


def tell(summary: ReportSummary) -> None:
    """Print the first screen of a report as sentences."""
    for answer in summary.story.answers:
        note(f"{answer.question} {answer.answer}")


def export(
    benchmark: BenchmarkName,
    out: Annotated[Path, Option("The file to write.")],
    options: ExportOptions,
    store: StoreUrl = None,
) -> None:
    """Export answers and scores, or a submission.

    Writes one row per item, system, condition and metric, as JSON Lines, CSV or Parquet; a scorer's replies
    (judgements); answers that wait for a person (unresolved: fill in the columns value and reason, and read the file
    back with `proctor store decide`); a submission of one run, or of one scorer's scores; or another program's format
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
        note(*(f"dropped: {line}" for line in count.dropped), *count.notes)
        say(f"{count_of(count.count, count.what)} in {out}")
        return
    answers = form not in shell.PLAIN_FORMATS and not options["scorer"]
    what = {"judgements": "judgements", "sums": "metrics"}.get(form, "answers" if answers else "rows")
    say(f"{count} {what} in {out}")
    if answers and benchmark in VALIDATORS.names():
        note(f"Next: proctor validate {benchmark} {shell_word(out)} --store {store_word(opened.shown)}")


def reproduce(
    benchmark: BenchmarkName, options: ReproduceOptions, store: StoreUrl = None, output: Output = OutputFormat.TABLE
) -> None:
    """Reproduce what systems were shown.

    Reproduces every picture from the media files with the run's settings, and compares it with the record in the store:
    its time, and the SHA-256 of its bytes as the system got it. Cached frames are not used.

    Exit code 1 where something differs, or can't be compared. Example: proctor reproduce focus --media videos
    """
    from proctor import api

    opened = api.open_store(store, create=False)
    with show_steps("making again", 0) as progress:
        watched: ReproduceOptions = {**options, "on_change": progress}
        found = api.reproduce(opened, named_in(opened, benchmark), **watched)
    show(output, found.rows, *found.tables)
    note(*found.notes)
    if not found.ok:
        raise typer.Exit(1)


def verify(
    folder: Annotated[Path, Option("Holds recorded answers, or folders with them.", metavar="FOLDER", argument=True)],
    benchmarks: Annotated[list[str] | None, Option("Only this benchmark; may be repeated.", "--benchmark")] = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Compare published figures with ours.

    Recomputes the published figures of benchmarks from the recorded answers, and compares them at the published
    precision. Figures that differ are listed; --format json and csv list all.

    Exit code 1 where one differs, or none could be compared. Example: proctor verify data
    """
    from proctor import api

    with show_steps("verifying", 0) as progress:
        found = api.verify(folder, benchmarks or (), on_change=progress)
    show(output, found.rows, *found.tables)
    note(*found.notes)
    if not found.ok:
        raise typer.Exit(1)


def pool(
    files: Annotated[
        list[Path],
        Option("What `proctor export --format sums` wrote, one of each site.", metavar="FILE...", argument=True),
    ],
    draws: Draws = 2000,
    seed: Seed = 0,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Pool results of sites that keep their data.

    Each site sends sums by group. Means, intervals, differences and p-values equal those of all items together. Missing
    answers count as wrong. Metrics and systems that a site lacks are left out and named.

    Example: proctor pool berlin.json oxford.json
    """
    from proctor.reports import p_words
    from proctor.results import pool_sums
    from proctor.stats import Resampling

    with at_work("computing intervals"):
        benchmark, found = pool_sums(files, Resampling(draws=draws, seed=seed))
    if output is OutputFormat.JSON:
        print_json([pooled_metric.to_json() | settings_of({"draws": draws, "seed": seed}) for pooled_metric in found])
        return
    apart = [pooled_metric.title for pooled_metric in found if pooled_metric.institutions < len(files)]
    found = [pooled_metric for pooled_metric in found if pooled_metric.institutions == len(files)]
    rows = [
        (
            pooled_metric.condition,
            pooled_metric.metric,
            pooled_metric.scorer,
            system,
            thousands(mean.n),
            str(mean.groups),
            number(mean.value),
            number_interval(mean.ci_low, mean.ci_high),
            str(pooled_metric.lacking[system]),
        )
        for pooled_metric in found
        for system, mean in zip(pooled_metric.systems, pooled_metric.means, strict=True)
    ]
    heads = ("condition", "metric", "scorer", "system", ">n", ">groups", ">value", ">interval", ">lacking")
    title = f"{benchmark}: {count_of(len(files), 'site')}"
    pairs = [
        (
            pooled_metric.condition,
            pooled_metric.metric,
            pooled_metric.scorer,
            pooled_metric.systems[pair.first],
            pooled_metric.systems[pair.second],
            number(pair.difference.value),
            number_interval(pair.difference.ci_low, pair.difference.ci_high),
            p_words(pair.p_holm, pair.difference.groups),
        )
        for pooled_metric in found
        for pair in pooled_metric.pairs
    ]
    between = ("condition", "metric", "scorer", "first", "second", ">difference", ">interval", ">p (Holm)")
    records = [
        {"condition": pooled_metric.condition, "metric": pooled_metric.metric, "scorer": pooled_metric.scorer, **row}
        for pooled_metric in found
        for row in pooled_metric.rows()
    ]
    tables = [plain_table(title, heads, rows)]
    tables += (
        [plain_table("Differences; p (Holm) is adjusted for all pairs of systems under a condition", between, pairs)]
        if pairs
        else []
    )
    show(output, records, *tables)
    out = {f"{name} under {pooled_metric.condition}" for pooled_metric in found for name in pooled_metric.left_out}
    note(*([f"Not in every file, left out: {', '.join(apart)}"] if apart else []))
    note(*([f"Not at every site whole, left out: {', '.join(sorted(out))}"] if out else []))
    note(drawn_over(draws, seed, two_level=False))
