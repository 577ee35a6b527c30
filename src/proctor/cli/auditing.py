"""`proctor audit`: judges and metrics compared with ratings of the same answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from proctor.cli.audit_tables import print_audit, print_board
from proctor.cli.former import ReplacedError, replaced_command
from proctor.cli.options import AllItems, Seed, StoreUrl
from proctor.cli.output import note, print_csv, print_json
from proctor.cli.results import DEFAULT_STORE


class AuditFormat(StrEnum):
    """How an audit is printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


class Protocol(StrEnum):
    """Whose figures are printed."""

    PROCTOR = "proctor"
    OFFICIAL = "official"


@dataclass(frozen=True)
class _Wanted:
    """How it is drawn and printed, which boards are printed beside those over all dimensions, and where a report goes."""

    draws: int
    seed: int
    output: AuditFormat
    dimensions: tuple[str, ...] = ()
    report: Path | None = None
    official: Any = None


@dataclass(frozen=True)
class _Made:
    """What a report says of its matter: a title, who rated, the questions by item (asked for when it is written),
    and where their images are."""

    title: str
    raters: str = "the raters"
    questions: Callable[[], Mapping[str, Any]] = dict
    images: Path | None = None


def audit(
    benchmark: Annotated[
        str,
        typer.Argument(
            metavar="[BENCHMARK]", help="A benchmark whose answers in the store were scored.", show_default=False
        ),
    ] = "",
    old: Annotated[list[str] | None, typer.Argument(hidden=True, help="Of the former spelling.")] = None,
    scorers: Annotated[
        list[str] | None,
        typer.Option(
            "--scorer", "--judge", help="Only this judge or metric; may be repeated. [default: all]", show_default=False
        ),
    ] = None,
    against: Annotated[
        list[str] | None,
        typer.Option(
            "--against", help="The scorer that stands for the raters. [default: all people]", show_default=False
        ),
    ] = None,
    store: StoreUrl = DEFAULT_STORE,
    scores: Annotated[
        list[Path] | None,
        typer.Option(
            "--scores",
            help="Instead of a store: a table with columns item, system, dimension, value; may be repeated.",
            show_default=False,
        ),
    ] = None,
    ratings: Annotated[
        Path | None,
        typer.Option(
            "--ratings",
            help="With --scores: a table with columns item, candidate, system, dimension, rater, value.",
            show_default=False,
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report", help="Also write one HTML file: figures, tables, answers to browse.", show_default=False
        ),
    ] = None,
    media: Annotated[
        Path | None,
        typer.Option("--media", help="The folder of the questions' images, for the report.", show_default=False),
    ] = None,
    dimensions: Annotated[
        list[str] | None,
        typer.Option(
            "--dimension", help="Also compare several metrics on this dimension; may be repeated.", show_default=False
        ),
    ] = None,
    protocol: Annotated[
        Protocol, typer.Option("--protocol", help="official: the figures under the benchmark's own keys.")
    ] = Protocol.PROCTOR,
    output: Annotated[AuditFormat, typer.Option("--format", help="For people or for programs.")] = AuditFormat.TABLE,
    all_items: AllItems = False,
    allow_missing: Annotated[
        bool, typer.Option("--allow-missing", help="Leave out rated answers that a scorer has not scored.")
    ] = False,
    draws: Annotated[
        int, typer.Option("--draws", min=0, help="Bootstrap draws behind each interval; 0 for none.")
    ] = 2000,
    seed: Seed = 0,
) -> None:
    """Compare judges with people's ratings.

    All scorers of the same answers in a store are compared. With --scores and --ratings it reads two tables instead of a store. Optional columns of the ratings: group (what
    is resampled together), dataset, language.

    Example: proctor audit mediqa-eval --store runs.db
    """
    _refuse_old(benchmark, old or ())
    official = _official(benchmark) if protocol is Protocol.OFFICIAL else None
    wanted = _Wanted(draws, seed, output, tuple(dimensions or ()), report, official)
    if scores or ratings is not None:
        _audit_tables(scores or (), ratings, wanted)
    elif not benchmark:
        raise typer.BadParameter("name a benchmark, or two tables with --scores and --ratings")
    else:
        chosen = (tuple(scorers or ()), tuple(against or ()), all_items, allow_missing)
        _audit_store(store, benchmark, chosen, media, wanted)


def _refuse_old(benchmark: str, more: Sequence[str]) -> None:
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
    """The benchmark's reader, where it has figures of its own."""
    from proctor.core import reader_or_default

    reader = reader_or_default(benchmark)
    if not reader.audit_figures:
        raise typer.BadParameter("name a benchmark that has one", param_hint="--protocol official")
    return reader.official_audit


def _audit_tables(scores: Sequence[Path], ratings: Path | None, wanted: _Wanted) -> None:
    from proctor.audits import read_ratings, read_scores

    if ratings is None or not scores:
        raise typer.BadParameter("two tables go together: --scores and --ratings")
    rated = read_ratings(ratings)
    metrics = [read_scores(file, rated) for file in scores]
    _audited(rated, metrics, wanted, _Made(f"Metrics and the ratings of {ratings.name}"))


def _audit_store(
    store: str,
    benchmark: str,
    chosen: tuple[tuple[str, ...], tuple[str, ...], bool, bool],
    media: Path | None,
    wanted: _Wanted,
) -> None:
    from proctor.reports import asked
    from proctor.runs import Store, compared

    scorers, against, all_items, allow_missing = chosen
    opened = Store(store, create=False)
    rated, metrics = compared(opened, benchmark, scorers, against, all_items=all_items, allow_missing=allow_missing)
    raters = ", ".join(against) or "people"
    shown = ", ".join(one.name for one in metrics) if len(metrics) < 3 else f"{len(metrics)} scorers"
    title = f"{benchmark}: {shown} and {raters}"
    made = _Made(title, raters, lambda: asked(opened.items(benchmark)), media)
    _audited(rated, metrics, wanted, made)


def _audited(rated: Any, metrics: Sequence[Any], wanted: _Wanted, made: _Made) -> None:
    from proctor.audits import AuditReport, CorrelationSettings, agreement_rows, to_json
    from proctor.audits import audit as audit_of

    if wanted.official is not None and len(metrics) != 1:
        raise typer.BadParameter("it takes the scores of one metric: --scorer", param_hint="--protocol official")
    found = AuditReport(rated, metrics, CorrelationSettings(draws=wanted.draws, seed=wanted.seed))
    for one in metrics:
        for line in one.notes:
            note(f"{one.name}: {line}")
    if wanted.report is not None:
        _write_report(found, wanted.report, made)
    if wanted.official is not None:
        print_json(wanted.official(audit_of(rated, metrics[0], CorrelationSettings(draws=0))))
    elif wanted.output is AuditFormat.TABLE:
        _print(found, wanted.dimensions)
    elif wanted.output is AuditFormat.CSV:
        rows = [row for one in found.each for row in agreement_rows(one)]
        print_csv(list(rows[0]), [list(row.values()) for row in rows])
    else:
        print_json(to_json(found))


def _print(found: Any, dimensions: Sequence[str]) -> None:
    if len(found.metrics) == 1:
        print_audit(found.each[0])
        return
    for board in found.boards:
        if board.dimension in {"", *dimensions}:
            print_board(board)


def _write_report(found: Any, out: Path, made: _Made) -> None:
    from proctor.reports import AuditSource, write_audit_report

    source = AuditSource(made.title, found, made.questions(), made.images, made.raters)
    summary = write_audit_report(source, out)
    note(f"{out}: {summary.bytes / 1e6:.1f} MB")
    for line in summary.left_out:
        note(line)
