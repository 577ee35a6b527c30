"""`proctor audit`: judges and metrics held against ratings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from proctor.cli.audit_tables import print_audit, print_board
from proctor.cli.options import AllItems, BenchmarkName, Seed, StoreUrl
from proctor.cli.output import note, print_csv, print_json
from proctor.cli.results import DEFAULT_STORE

__all__ = ["group"]


class AuditFormat(StrEnum):
    """How an audit is printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    OFFICIAL = "official"


Ratings = Annotated[Path, typer.Option("--ratings", help="The human ratings.", show_default=False)]
Printed = Annotated[
    AuditFormat, typer.Option("--format", help="For people, for programs, or in the shared task's keys.")
]
Dimensions = Annotated[
    list[str] | None,
    typer.Option(
        "--dimension",
        help="Compare several metrics on this dimension too; may be repeated.",
        show_default=False,
    ),
]
AuditDraws = Annotated[
    int, typer.Option("--draws", min=0, help="Bootstrap draws behind each interval; 0 for none.")
]
ReportFile = Annotated[
    Path | None,
    typer.Option(
        "--report",
        help="Write everything as one HTML file too: figures, tables, and the answers to browse.",
        show_default=False,
    ),
]
NO_TEXT_METRIC = "none"


@dataclass(frozen=True)
class _Wanted:
    """How it is drawn, which boards are printed beside those over all dimensions, and where a report goes."""

    draws: int
    seed: int
    dimensions: tuple[str, ...] = ()
    report: Path | None = None


@dataclass(frozen=True)
class _Made:
    """What a report says of its matter: a title, who rated, the questions by item (asked for when it is written),
    and where their images are."""

    title: str
    raters: str = "the raters"
    questions: Callable[[], Mapping[str, Any]] = dict
    images: Path | None = None


def group() -> typer.Typer:
    """The commands below `proctor audit`."""
    audits = typer.Typer(no_args_is_help=True, help="Holds judges and metrics against human ratings.")
    audits.callback()(_auditing)
    audits.command("mediqa-eval")(mediqa_eval)
    audits.command("table")(table)
    audits.command("judges")(judges)
    return audits


def _auditing() -> None:
    """Holds judges and metrics against human ratings."""


def mediqa_eval(
    ratings: Ratings,
    submissions: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[SUBMISSION.csv]…", help="Scores in the task's format; several are compared."
        ),
    ] = None,
    encounters: Annotated[
        Path | None,
        typer.Option(
            "--encounters",
            help="The queries and references: adds metrics on text to be compared, and texts to the report.",
            show_default=False,
        ),
    ] = None,
    text_metrics: Annotated[
        list[str] | None,
        typer.Option(
            "--text-metric",
            help="Only this metric on text; may be repeated. none: no metric on text.",
            show_default=False,
        ),
    ] = None,
    report: ReportFile = None,
    images: Annotated[
        Path | None,
        typer.Option(
            "--images", help="The folder of the encounters' images, for the report.", show_default=False
        ),
    ] = None,
    dimensions: Dimensions = None,
    output: Printed = AuditFormat.TABLE,
    draws: AuditDraws = 2000,
    seed: Seed = 0,
) -> None:
    """How far metrics agree with the clinicians of MEDIQA-EVAL 2026.

    Example: proctor audit mediqa-eval submission.csv --ratings ratings.csv --format official
    """
    from proctor.benchmarks.mediqa_eval import (
        read_encounters,
        read_native_ratings,
        read_submission,
        text_scores,
    )

    if text_metrics and encounters is None:
        raise typer.BadParameter("--text-metric compares with references: name them with --encounters")
    if images is not None and (report is None or encounters is None):
        raise typer.BadParameter("--images is for a report on encounters: name --report and --encounters")
    chosen = text_metrics or []
    on_text = encounters is not None and chosen != [NO_TEXT_METRIC]
    if not submissions and not on_text:
        raise typer.BadParameter("name a submission, or references with --encounters")
    rated = read_native_ratings(ratings)
    metrics = [read_submission(file, rated) for file in submissions or ()]
    known = () if encounters is None else read_encounters(encounters)
    if on_text:
        metrics += text_scores(rated, known, chosen, file=encounters or "")
    wanted = _Wanted(draws, seed, tuple(dimensions or ()), report)
    made = _Made("MEDIQA-EVAL: metrics and clinicians", "clinicians", lambda: _encountered(known), images)
    _audited(rated, metrics, output, wanted, made)


def table(
    scores: Annotated[
        list[Path],
        typer.Argument(
            metavar="SCORES.csv…", help="Columns item, system, dimension, value; several are compared."
        ),
    ],
    ratings: Ratings,
    report: ReportFile = None,
    dimensions: Dimensions = None,
    output: Printed = AuditFormat.TABLE,
    draws: AuditDraws = 2000,
    seed: Seed = 0,
) -> None:
    """How far metrics agree with any ratings: item, candidate, system, dimension, rater, value.

    Optional columns of the ratings: group (what is resampled together), dataset, language.

    Example: proctor audit table scores.csv --ratings ratings.csv
    """
    from proctor.audit import read_ratings, read_scores

    rated = read_ratings(ratings)
    metrics = [read_scores(file, rated) for file in scores]
    wanted = _Wanted(draws, seed, tuple(dimensions or ()), report)
    _audited(rated, metrics, output, wanted, _Made(f"Metrics and the ratings of {ratings.name}"))


def judges(
    benchmark: BenchmarkName,
    judge: Annotated[str, typer.Option("--judge", help="The judge that is audited.", show_default=False)],
    against: Annotated[
        str, typer.Option("--against", help="The judge that stands for the raters.", show_default=False)
    ],
    store: StoreUrl = DEFAULT_STORE,
    report: ReportFile = None,
    output: Printed = AuditFormat.TABLE,
    all_items: AllItems = False,
    draws: AuditDraws = 2000,
    seed: Seed = 0,
) -> None:
    """How far two judges of a store agree on the answers that both have marked.

    Example: proctor audit judges rexsonovqa --judge three-level[gpt-5.2] --against gemini-3-pro-preview
    """
    from proctor.runs import Store, judged_by

    opened = Store(store, create=False)
    rated, metric = judged_by(opened, benchmark, judge, against, all_items=all_items)
    made = _Made(f"{benchmark}: {judge} and {against}", against, lambda: _asked(opened.items(benchmark)))
    _audited(rated, [metric], output, _Wanted(draws, seed, report=report), made)


def _audited(rated: Any, metrics: Sequence[Any], output: AuditFormat, wanted: _Wanted, made: _Made) -> None:
    from proctor.audit import Audits, CorrelationSettings, agreement_rows, audit, official, whole_json

    if output is AuditFormat.OFFICIAL and len(metrics) != 1:
        raise typer.BadParameter("--format official takes the scores of one metric")
    found = Audits(rated, metrics, CorrelationSettings(draws=wanted.draws, seed=wanted.seed))
    for one in metrics:
        for line in one.notes:
            note(f"{one.name}: {line}")
    if wanted.report is not None:
        _write_report(found, wanted.report, made)
    if output is AuditFormat.TABLE:
        _print(found, wanted.dimensions)
    elif output is AuditFormat.OFFICIAL:
        print_json(official(audit(rated, metrics[0], CorrelationSettings(draws=0))))
    elif output is AuditFormat.CSV:
        rows = [row for one in found.each for row in agreement_rows(one)]
        print_csv(list(rows[0]), [list(row.values()) for row in rows])
    else:
        print_json(whole_json(found))


def _print(found: Any, dimensions: Sequence[str]) -> None:
    if len(found.metrics) == 1:
        print_audit(found.each[0])
        return
    for board in found.boards:
        if board.dimension in {"", *dimensions}:
            print_board(board)


def _encountered(encounters: Sequence[Any]) -> Mapping[str, Any]:
    from proctor.reports.audits import encountered

    return encountered(encounters)


def _asked(items: Sequence[Any]) -> Mapping[str, Any]:
    from proctor.reports.audits import asked

    return asked(items)


def _write_report(found: Any, out: Path, made: _Made) -> None:
    from proctor.reports.audits import AuditSource, write_audit_report

    source = AuditSource(made.title, found, made.questions(), made.images, made.raters)
    summary = write_audit_report(source, out)
    note(f"{out}: {summary.bytes / 1e6:.1f} MB")
    for line in summary.left_out:
        note(line)
