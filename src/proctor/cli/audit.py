"""`proctor audit`: judges and metrics compared with ratings of the same answers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from proctor.api import AuditOptions, ProbeOptions, StoreUrl
from proctor.cli.former import ReplacedError, replaced_command
from proctor.cli.output import Output, OutputFormat, note, print_blocks, print_json, show
from proctor.cli.progress import at_work, cost_of, show_judging
from proctor.cli.run import watched
from proctor.core import Option, UsageError, count_of

if TYPE_CHECKING:
    from proctor.audits import AuditReport, MetricRanking, PowerTable

_FEW_PAIRS = 10  # more are in --format json


def audit(
    comparing: AuditOptions,
    probing: ProbeOptions,
    benchmark: Annotated[
        str, Option("A benchmark whose answers in the store were scored.", metavar="[BENCHMARK]", argument=True)
    ] = "",
    old: Annotated[list[str] | None, Option("Of the former spelling.", argument=True, hidden=True)] = None,
    store: StoreUrl = None,
    scores: Annotated[
        list[Path] | None,
        Option("Instead of a store: a table with columns item, system, and value or one a metric; may be repeated."),
    ] = None,
    ratings: Annotated[Path | None, Option("With --scores: a table with columns item, system, rater, value.")] = None,
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

    All scorers of the same answers in a store are compared. With --scores and --ratings it reads two tables instead of
    a store. Optional columns: dimension; of the ratings also candidate (the text), lower_is_better (yes or no), group
    (what is resampled together), dataset, language.

    With --perturb nothing is compared with ratings: --scorer scores answers that were changed (negated, padded, with
    a wrong diagnosis …), and the table says how far its scores move.

    Example: proctor audit mediqa-eval --store runs.db
    """
    from proctor import api
    from proctor.audits import agreement_rows, to_json

    _refuse_old(benchmark, old or [])
    if probing["perturb"]:
        asyncio.run(_perturb(store, benchmark, {**probing, **_probed(comparing), "media": media}, output))
        return
    official = _official(benchmark) if protocol else None
    tables = bool(scores) or ratings is not None
    if tables and not (scores and ratings):
        raise UsageError("--scores and --ratings", "both: two tables go together", found="one")
    if not tables and not benchmark:
        raise UsageError("BENCHMARK", "the name of one, or two tables with --scores and --ratings")
    source = scores if tables else api.open_store(store, create=False)
    found = api.audit(source, ratings, benchmark=benchmark, **comparing).data
    note(*(f"{one.name}: {line}" for one in found.metrics for line in one.notes))
    if report is not None:
        _write_report(found, report, media, ratings or (source, benchmark, comparing["against"]))
    if official is not None:
        print_json(official(found))
    elif output is OutputFormat.TABLE:
        with at_work("comparing with the ratings"):
            _ = found.each, found.boards, found.leads, found.power
        _print(found, dimensions or ())
    else:
        rows: Any = to_json(found)
        show(
            output, rows if output is OutputFormat.JSON else [row for one in found.each for row in agreement_rows(one)]
        )


def _probed(options: AuditOptions) -> dict[str, Any]:
    """What the perturbations take of the options of an audit. Raises `UsageError` for what they have no use for."""
    for name in ("against", "allow_missing", "lead_over", "power", "rater_agreement"):
        if options[name]:
            raise UsageError(f"--{name.replace('_', '-')}", "none: --perturb compares with no rating", found="it")
    return {name: options[name] for name in ("scorer", "all_items", "draws", "seed")}


async def _perturb(store: Any, benchmark: str, given: dict[str, Any], output: OutputFormat) -> None:
    from proctor import api

    prepared = await api.prepare_probes(store, benchmark, api.filled_probes(given))
    paid = [one.paid for pair in prepared.scorers for one in pair]
    if given["model"]:
        note(
            f"{count_of(prepared.asked, 'text')} to score by each; judgements that the store has are not asked for again"
        )
    found = await watched(prepared.ask, show_judging(0, paid[0]))
    if output is OutputFormat.TABLE:
        print_blocks(*found.tables, apart=True)
        note(*found.notes)
    else:
        show(output, found.rows)
    spent = {id(one): one for one in paid if one.count}
    note(*(f"{count_of(one.count, 'new judgement')}, {cost_of(one.usage)}" for one in spent.values()))


def _refuse_old(benchmark: str, more: list[str]) -> None:
    """Raises `ReplacedError` for the former commands below `audit`."""
    former = replaced_command(["audit", benchmark], more)
    if former is not None:
        raise former
    if more:
        raise ReplacedError(
            f"a file of scores is imported first: proctor import {benchmark} RATINGS.csv --data FOLDER; "
            f"proctor import {benchmark} {more[0]} --data FOLDER --scorer NAME; proctor audit {benchmark}"
        )


def _official(benchmark: str) -> Any:
    """The figures by the benchmark's reader, where it has figures of its own: of one metric, or of several by name."""
    from proctor.audits import CorrelationSettings
    from proctor.audits import audit as audit_of
    from proctor.core import reader_or_default

    reader = reader_or_default(benchmark)
    if not reader.audit_figures:
        raise UsageError("--protocol official", "a benchmark that has one", found=repr(benchmark))
    settings = CorrelationSettings(draws=0)

    def figures(found: AuditReport) -> Any:
        of = {one.name: reader.official_audit(audit_of(found.table, one, settings)) for one in found.metrics}
        return of if len(of) > 1 else of[found.metrics[0].name]

    return figures


def _print(found: AuditReport, dimensions: Any) -> None:
    from proctor.reports import audit_tables, lead_tables, power_tables

    if len(found.metrics) == 1:
        print_blocks(*audit_tables(found.each[0]), apart=True)
    for board in found.boards if len(found.metrics) > 1 else ():
        if board.dimension in {"", *dimensions}:
            _print_board(board)
    print_blocks(*lead_tables(found.leads), apart=True)
    if found.power is not None:
        print_blocks(*power_tables(found.power), apart=True)
        note(_of_second_ratings(found.power))
    if not any(one.twice for one in found.coverage):
        note("No answer was rated by two raters on the same dimension: how far raters agree is not known.")


def _of_second_ratings(found: PowerTable) -> str:
    if found.agreement is None:
        return "Second ratings: not simulated, since nothing says how far raters agree: --rater-agreement R."
    by = "as measured here" if found.measured else "as given"
    return f"Second ratings are simulated for raters that agree by r = {found.agreement:.2f} ({by})."


def _print_board(board: MetricRanking) -> None:
    """Several metrics on one board, and their pairs where these are few."""
    from proctor.reports import metric_board_table, metric_pairs_table

    print_blocks(metric_board_table(board))
    note(
        "Rank: 1 + the number of metrics that are significantly better, and never better than that of a higher mean. "
        "Metrics that share a tie can't be told apart."
    )
    if board.comparisons and len(board.comparisons) <= _FEW_PAIRS:
        print_blocks(metric_pairs_table(board))
    print_blocks("")


def _write_report(found: AuditReport, out: Path, images: Path | None, of: Any) -> None:
    from proctor.reports import AuditSource, asked, write_audit_report
    from proctor.runs import judgements_behind

    if isinstance(of, Path):
        source = AuditSource(f"Metrics and the ratings of {of.name}", found)
    else:
        store, benchmark, against = of
        raters, names = ", ".join(against) or "people", [one.name for one in found.metrics]
        shown = ", ".join(names) if len(names) < 3 else f"{len(names)} scorers"
        title = f"{benchmark}: {shown} and {raters}"
        said = judgements_behind(store, benchmark, names, against)
        source = AuditSource(title, found, asked(store.items(benchmark)), images, raters, said)
    with at_work("writing the report"):
        summary = write_audit_report(source, out)
    note(f"{out}: {summary.bytes / 1e6:.1f} MB", *summary.left_out)
