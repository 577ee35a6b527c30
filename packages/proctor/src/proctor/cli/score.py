"""`proctor score`: score answers by judges and metrics. `proctor audit`: compare judges with people's ratings."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from proctor.cli.output import (
    Output,
    OutputFormat,
    at_work,
    print_blocks,
    print_json,
    print_line,
    print_note,
    show,
    show_judging,
    spent,
    watched,
)
from proctor.cli.tree import show_plugin_report
from proctor.core import (
    PAGES,
    Option,
    PluginReport,
    UsageError,
    count_of,
    number,
    one_of,
    output_file,
    shell_word,
    store_word,
)
from proctor.shell import (
    AuditOptions,
    BenchmarkName,
    Draws,
    PerturbOptions,
    PreparedScorer,
    Scored,
    ScoreOptions,
    Seed,
    StoreUrl,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from proctor.audits import AuditReport, MetricRanking, PowerTable

UNSCORED_EXIT = 3


def score(
    benchmark: BenchmarkName,
    options: ScoreOptions,
    predictions: Annotated[
        Path | None, Option("A file of predictions to score, instead of a store.", metavar="PREDICTIONS", argument=True)
    ] = None,
    references: Annotated[Path | None, Option("With PREDICTIONS: the right answers.")] = None,
    store: StoreUrl = None,
    draws: Draws = 2000,
    seed: Seed = 0,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Score stored answers by judges or metrics.

    A judge's replies are cached, so no call is repeated. A judge of dimensions rates those that the benchmark, or a
    file, declares. Baselines (text-similarity answers free text) are judged only if --system names them.

    With PREDICTIONS, scores that file against --references instead, without a store or a model. Its --option are
    strict=true, invalid=partial, the weights alpha and beta, and those of bertscore.

    Example: proctor score rexsonovqa --store runs.db --model openai:gpt-5.2
    """
    from proctor import api

    if predictions is not None:
        if options["model"] or options["judge"]:
            raise UsageError("A file of predictions is scored by code. Leave --model and --judge out.")
        how = options["options"]
        show_plugin_report(
            api.score_predictions(benchmark, predictions, references, options=how, draws=draws, seed=seed), output
        )
        return
    asyncio.run(_score(store, benchmark, options, (draws, seed), output))


async def _score(
    store: Any, benchmark: str, options: ScoreOptions, drawn: tuple[int, int], output: OutputFormat
) -> None:
    from proctor import api, shell

    told, there = dict[str, int](), dict[str, int]()
    for scorer in await shell.prepare_scorers(store, benchmark, options):
        if isinstance(scorer, Scored):
            told |= scorer.by
            continue
        print_note(*scorer.notes)
        scored = await watched(scorer.ask, show_judging(0, scorer.paid))
        if not options["metrics"]:
            _tell(scorer, scored, drawn, output)
            return
        told |= scored.by
        there |= scored.there if scored.by else {}
        print_note(*(() if scored.by else scored.notes))
        print_note(*(f"{scorer.scorer.name}: {line}" for line in scorer.scorer.notes()))  # type: ignore[attr-defined]
    _print(shell.metrics_report(api.open_store(store).shown, told, there), output)


def _print(report: PluginReport, output: OutputFormat) -> None:
    """Print a report as JSON, or for people (as CSV, too: it is no single table)."""
    if output is OutputFormat.JSON:
        print_json(report.json)
        return
    for block in report.shown:
        print_line(block) if isinstance(block, str) else print_blocks(block)
    print_note(*report.notes)


def _tell(scorer: PreparedScorer, scored: Scored, drawn: tuple[int, int], output: OutputFormat) -> None:
    """Print the result; exit with `UNSCORED_EXIT` if answers have no score yet."""
    from proctor import shell

    tally, paid = scored.tally, scorer.paid
    if tally is None:
        raise ValueError("a judge without a tally")
    draws, seed = drawn
    _print(shell.judge_report(scorer, scored, draws=draws, seed=seed), output)
    for line in spent(paid) if output is not OutputFormat.JSON else ():
        print_line(line)
    left = tally.left if scorer.options["limit"] is None else tally.unscored + tally.awaiting
    if left:
        lack = "judgement" if tally.awaiting == left else "verdict"
        if scorer.dimensions:  # an ensemble's score may stand without one of its members
            lack = "member's score" if tally.awaiting == left else "score"
        reason = tally.last_reason or ("no reply came" if tally.awaiting else "stopped")
        lasting = 0 < tally.unscored == tally.rejected and not tally.awaiting
        way = "the server rejects the same requests again: change the judge or its settings" if lasting else ""
        print_note(f"{count_of(left, 'answer')} without a {lack} ({reason}): {way or 'run the same command again'}.")
        raise typer.Exit(UNSCORED_EXIT)
    if output is not OutputFormat.JSON:
        command = "audit" if scorer.dimensions else "results"
        print_note(
            f"Next: proctor {command} {shell_word(scorer.where.benchmark)} --store {store_word(scorer.where.store.shown)}"
        )


_FEW_PAIRS = 10  # more are in --format json


def audit(
    comparing: AuditOptions,
    benchmark: Annotated[
        str, Option("A benchmark whose answers in the store were scored.", metavar="BENCHMARK", argument=True)
    ] = "",
    store: StoreUrl = None,
    scores: Annotated[
        list[Path] | None,
        Option("Instead of a store: a table with columns item, system, and value or one a metric; may be repeated."),
    ] = None,
    ratings: Annotated[
        Path | None, Option("With --scores: a table with columns item, system, rater, value (or one a dimension).")
    ] = None,
    report: Annotated[Path | None, Option("Also write one HTML file: figures, tables, answers to browse.")] = None,
    media: Annotated[Path | None, Option("The folder of the questions' images, for the report.")] = None,
    dimensions: Annotated[
        list[str] | None, Option("Also compare several metrics on this dimension; may be repeated.", "--dimension")
    ] = None,
    protocol: Annotated[
        Literal["official"] | None, Option("official: the figures under the benchmark's own keys.")
    ] = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Compare judges with people's ratings.

    Compares all scorers of the same answers in a store, and says first which agrees best, how certain that is, and how far
    people agree with each other.

    With --scores and --ratings, reads two tables instead of a store. Optional columns: dimension; of the scores metric
    and scorer, as proctor export writes them; of the ratings candidate (the text), lower_is_better (yes or no), group
    (resampled together), dataset, language. --map names other columns.

    Example: proctor audit mediqa-eval --store runs.db
    """
    from proctor import api

    _refuse_report(report, [*(scores or ()), *([] if ratings is None else [ratings])])
    official = _official(benchmark) if protocol else None
    tables = bool(scores) or ratings is not None
    if tables:
        _check_tables(scores, ratings, "" if official else benchmark)
    elif not benchmark:
        raise UsageError(
            "Nothing to audit. Give the name of a benchmark in a store, or two tables: --scores FILE --ratings FILE"
        )
    source = scores if tables else api.open_store(store, create=False)
    found = api.audit(source, ratings, benchmark="" if tables else benchmark, **comparing).data
    _check_rated(found, dimensions or ())
    print_note(*found.table.notes, *(f"{metric.name}: {line}" for metric in found.metrics for line in metric.notes))
    if report is not None:
        _write_report(found, report, media, ratings or (source, benchmark, comparing["against"]))
    if official is not None:
        print_json(official(found))
    else:
        _show_audit(found, dimensions or (), output)


def perturb(
    benchmark: BenchmarkName, options: PerturbOptions, store: StoreUrl = None, output: Output = OutputFormat.TABLE
) -> None:
    """Test judges on answers that were changed.

    --scorer scores changed answers (negated, padded, with a wrong diagnosis …), and the table shows how far its scores
    shift. No ratings are used.

    Example: proctor judge perturb mediqa-eval --scorer rouge-1-mean --store runs.db
    """
    asyncio.run(_perturb(store, benchmark, options, output))


async def _perturb(store: StoreUrl, benchmark: str, given: PerturbOptions, output: OutputFormat) -> None:
    from proctor import shell

    prepared = await shell.prepare_probes(store, benchmark, given)
    paid = [prepared_scorer.paid for pair in prepared.scorers for prepared_scorer in pair]
    if given["model"]:
        print_note(
            f"{count_of(prepared.asked, 'text')} to score by each; judgements that the store has are not asked for again"
        )
    found = await watched(prepared.ask, show_judging(0, paid[0]))
    if output is OutputFormat.TABLE:
        print_blocks(*found.tables, apart=True)
        print_note(*found.notes)
    else:
        show(output, found.rows)
    print_note(
        *(
            line
            for paid_judgements in {id(paid_judgements): paid_judgements for paid_judgements in paid}.values()
            for line in spent(paid_judgements)
        )
    )


def _official(benchmark: str) -> Any:
    """A function that computes the benchmark's own audit figures: of one metric, or by name of several."""
    from proctor.audits import OFFICIAL_AUDITS, CorrelationSettings
    from proctor.audits import audit as audit_of

    official = OFFICIAL_AUDITS.of(benchmark)
    if official is None:
        raise UsageError(f"{benchmark!r} has no protocol of its own. Leave --protocol official out.")
    settings = CorrelationSettings(draws=0)

    def figures(found: AuditReport) -> Any:
        of = {metric.name: official(audit_of(found.table, metric, settings)) for metric in found.metrics}
        return of if len(of) > 1 else of[found.metrics[0].name]

    return figures


def _check_tables(scores: Sequence[Path] | None, ratings: Path | None, benchmark: str) -> None:
    """Raises `UsageError` unless scores and ratings are given, and no benchmark."""
    if not (scores and ratings):
        raise UsageError("--scores also needs --ratings FILE." if scores else "--ratings also needs --scores FILE.")
    if benchmark:
        raise UsageError(f"Tables name no benchmark. Leave {benchmark!r} out, or add --protocol official.")


def _check_rated(found: AuditReport, dimensions: Sequence[str]) -> None:
    """Raises `UsageError` for a dimension that nobody rated."""
    rated = dict.fromkeys(dimension for _, dimension in found.table.dimensions)
    for name in dimensions:
        if name not in rated:
            raise UsageError(f"--dimension {name!r} was not rated: choose {one_of(list(rated), name)}")


def _show_audit(found: AuditReport, dimensions: Sequence[str], output: OutputFormat) -> None:
    from proctor.audits import agreement_rows, to_json

    if output is OutputFormat.TABLE:
        with at_work("comparing with the ratings"):
            _ = found.each, found.boards, found.leads, found.power
        _print_audit(found, dimensions)
        return
    rows: Any = to_json(found)
    if output is not OutputFormat.JSON:
        rows = [row for one in found.each for row in agreement_rows(one)]
    show(output, rows)


def _print_audit(found: AuditReport, dimensions: Any) -> None:
    from proctor.reports import AuditSource, audit_sentences, audit_tables, lead_tables, power_tables

    for sentence in audit_sentences(AuditSource("", found)):
        print_line(sentence)
    print_blocks("")
    if len(found.metrics) == 1:
        print_blocks(*audit_tables(found.each[0]), apart=True)
    for board in found.boards if len(found.metrics) > 1 else ():
        if board.dimension in {"", *dimensions}:
            _print_board(board)
    print_blocks(*lead_tables(found.leads), apart=True)
    if found.power is not None:
        print_blocks(*power_tables(found.power), apart=True)
        print_note(_of_second_ratings(found.power))


def _of_second_ratings(found: PowerTable) -> str:
    if found.agreement is None:
        return "Second ratings: not simulated, since nothing says how far raters agree: --rater-agreement R."
    by = "as measured here" if found.measured else "as given"
    return f"Second ratings are simulated for raters that agree by r = {number(found.agreement)} ({by})."


def _print_board(board: MetricRanking) -> None:
    """Print the ranking of several metrics, and their pairs if there are few."""
    from proctor.reports import metric_board_table, metric_pairs_table

    print_blocks(metric_board_table(board))
    print_note(
        "Rank 1 means that no metric is significantly better. Metrics that share a number under Ties do not differ "
        "significantly."
    )
    if board.comparisons and len(board.comparisons) <= _FEW_PAIRS:
        print_blocks(metric_pairs_table(board))
    print_blocks("")


def _refuse_report(out: Path | None, read: Sequence[Path]) -> None:
    """Raises `InputError` if the report can't be written, before anything is computed."""
    if out is not None:
        output_file(out, PAGES, read)


def _write_report(found: AuditReport, out: Path, images: Path | None, of: Any) -> None:
    from proctor.reports import AuditSource, asked, write_audit_report
    from proctor.results import judgements_behind

    if isinstance(of, Path):
        source = AuditSource(f"Metrics and the ratings of {of.name}", found)
    else:
        store, benchmark, against = of
        raters, names = ", ".join(against) or "people", [metric.name for metric in found.metrics]
        shown = ", ".join(names) if len(names) < 3 else f"{len(names)} scorers"
        title = f"{benchmark}: {shown} and {raters}"
        said = judgements_behind(store, benchmark, names, against)
        source = AuditSource(title, found, asked(store.items(benchmark)), images, raters, said)
    with at_work("writing the report"):
        summary = write_audit_report(source, out)
    print_note(f"{out}: {summary.bytes / 1e6:.1f} MB", *summary.left_out)
