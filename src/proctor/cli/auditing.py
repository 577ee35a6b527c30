"""`proctor audit`: judges and metrics held against ratings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from proctor.cli.options import AllItems, BenchmarkName, Seed, StoreUrl
from proctor.cli.output import console, note, print_csv, print_json, print_table
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


@dataclass(frozen=True)
class _Wanted:
    """How it is drawn, and which boards are printed beside those over all dimensions."""

    draws: int
    seed: int
    dimensions: tuple[str, ...]


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
            "--encounters", help="The references: adds metrics on text to be compared.", show_default=False
        ),
    ] = None,
    text_metrics: Annotated[
        list[str] | None,
        typer.Option("--text-metric", help="Only this metric on text; may be repeated.", show_default=False),
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

    if not submissions and encounters is None:
        raise typer.BadParameter("name a submission, or references with --encounters")
    if text_metrics and encounters is None:
        raise typer.BadParameter("--text-metric compares with references: name them with --encounters")
    rated = read_native_ratings(ratings)
    metrics = [read_submission(file, rated) for file in submissions or ()]
    if encounters is not None:
        known = read_encounters(encounters)
        metrics += text_scores(rated, known, text_metrics or (), file=encounters)
    _audited(rated, metrics, output, _Wanted(draws, seed, tuple(dimensions or ())))


def table(
    scores: Annotated[
        list[Path],
        typer.Argument(
            metavar="SCORES.csv…", help="Columns item, system, dimension, value; several are compared."
        ),
    ],
    ratings: Ratings,
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
    _audited(rated, metrics, output, _Wanted(draws, seed, tuple(dimensions or ())))


def judges(
    benchmark: BenchmarkName,
    judge: Annotated[str, typer.Option("--judge", help="The judge that is audited.", show_default=False)],
    against: Annotated[
        str, typer.Option("--against", help="The judge that stands for the raters.", show_default=False)
    ],
    store: StoreUrl = DEFAULT_STORE,
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
    _audited(rated, [metric], output, _Wanted(draws, seed, ()))


def _audited(rated: Any, metrics: Sequence[Any], output: AuditFormat, wanted: _Wanted) -> None:
    from proctor.audit import CorrelationSettings, agreement_rows, audit, compare, official, to_json

    settings = CorrelationSettings(draws=wanted.draws, seed=wanted.seed)
    for one in metrics:
        for line in one.notes:
            note(f"{one.name}: {line}")
    if output is AuditFormat.OFFICIAL:
        if len(metrics) != 1:
            raise typer.BadParameter("--format official takes the scores of one metric")
        print_json(official(audit(rated, metrics[0], CorrelationSettings(draws=0))))
    elif output is AuditFormat.CSV:
        rows = [row for one in metrics for row in agreement_rows(audit(rated, one, settings))]
        print_csv(list(rows[0]), [list(row.values()) for row in rows])
    elif output is AuditFormat.JSON:
        boards = compare(rated, metrics, settings) if len(metrics) > 1 else ()
        print_json(to_json([audit(rated, one, settings) for one in metrics], boards))
    elif len(metrics) == 1:
        _print_audit(audit(rated, metrics[0], settings))
    else:
        for board in compare(rated, metrics, settings):
            if board.dimension in {"", *wanted.dimensions}:
                _print_board(board)


def _print_audit(audit: Any) -> None:
    rows = [_row(one) for one in audit.agreements]
    for one in audit.aggregates:
        why = one.reason
        rows.append(
            ["ALL", one.language, "ALL", "", "", "", *_estimate(one.mean), "", str(one.mean.groups), "", why]
        )
    print_table(f"{audit.metric}: agreement with the raters", _COLUMNS, rows)
    if audit.by_rater:
        rows = [[*_row(one), one.rater] for one in audit.by_rater]
        print_table("By rater, and with the raters' mean", [*_COLUMNS, "rater"], rows)
    if audit.ceilings:
        print_table(
            "The raters beside each other: what a metric could reach",
            [
                "dataset",
                "language",
                "dimension",
                "raters",
                ">mean",
                ">interval",
                ">alpha",
                ">answers",
                "why none",
            ],
            [
                [
                    *(one.dataset, one.language, one.dimension, f"{one.first}, {one.second}"),
                    *_estimate(one.mean),
                    _number(one.alpha.value),
                    str(one.mean.n),
                    one.reason,
                ]
                for one in audit.ceilings
            ],
        )
    _print_systems(audit.by_system)
    _print_lengths([one for one in audit.by_length if one.dataset == "ALL"])


_FEW_PAIRS = 10  # more are in --format json

_COLUMNS = [
    *(
        "dataset",
        "language",
        "dimension",
        ">Kendall",
        ">Pearson",
        ">Spearman",
        ">mean",
        ">interval of the mean",
    ),
    *(">ratings", ">groups", ">raters", "why none"),
]


def _row(one: Any) -> list[str]:
    values = [_number(kind.value) for kind in (one.kendall, one.pearson, one.spearman)]
    counts = [str(one.mean.n), str(one.mean.groups), str(one.raters)]
    return [one.dataset, one.language, one.dimension, *values, *_estimate(one.mean), *counts, one.reason]


def _print_systems(rows: Sequence[Any]) -> None:
    named = sorted({name for one in rows for name, *_ in one.systems})
    if not named:
        return
    print_table(
        "Systems: mean score / mean rating, and how far these rank the systems alike",
        [
            "dataset",
            "language",
            "dimension",
            *(f">{name}" for name in named),
            ">Kendall",
            ">Pearson",
            ">Spearman",
        ],
        [
            [
                *(one.dataset, one.language, one.dimension),
                *_means(one.systems, named),
                *(_number(value) for value in (one.kendall, one.pearson, one.spearman)),
            ]
            for one in rows
        ],
    )


def _print_lengths(rows: Sequence[Any]) -> None:
    print_table(
        "Answer length (Spearman): does the metric like long answers more than the raters do?",
        [
            *("language", "dimension", ">with scores", ">with ratings", ">excess", ">interval of the excess"),
            *(">agreement, length fixed", "why none"),
        ],
        [
            [
                *(one.language, one.dimension, _number(one.scores.value), _number(one.ratings.value)),
                *(_number(one.excess.value), _span(one.excess.ci_low, one.excess.ci_high)),
                *(_number(one.partial), one.reason),
            ]
            for one in rows
        ],
    )


def _means(systems: Sequence[Any], named: Sequence[str]) -> list[str]:
    found = {name: f"{score:.3f} / {rating:.3f}" for name, score, rating, _ in systems}
    return [found.get(name, "–") for name in named]


def _print_board(board: Any) -> None:
    where = " ".join(part for part in (board.language, board.dimension or "all dimensions") if part)
    kinds = [] if not board.dimension else [">Kendall", ">Pearson", ">Spearman"]
    print_table(
        f"{where}: rank is 1 + the number of metrics that are significantly better; those that share a tie can't be told apart",
        [">rank", "ties", "metric", *kinds, ">mean", ">interval of the mean", "why none"],
        [
            [
                *("–" if one.rank is None else str(one.rank), " ".join(map(str, one.ties)), one.metric),
                *(_number(value) for value in (one.kendall, one.pearson, one.spearman)[: len(kinds)]),
                *(*_estimate(one.mean), one.reason),
            ]
            for one in board.places
        ],
    )
    if len(board.comparisons) <= _FEW_PAIRS:
        _print_pairs(board.comparisons)
    console.print()


def _print_pairs(pairs: Sequence[Any]) -> None:
    print_table(
        "Differences of the mean correlation",
        ["metric", "less", ">difference", ">interval", ">p", ">p (Holm)", ">Williams p", ">Steiger p"],
        [
            [
                *(one.first, one.second, _number(one.difference.value)),
                _span(one.difference.ci_low, one.difference.ci_high),
                *(_p(one.difference.p), _p(one.p_holm)),
                *(_p(None if test is None else test.p) for test in (one.williams, one.steiger)),
            ]
            for one in pairs
        ],
    )


def _estimate(one: Any) -> list[str]:
    return [_number(one.value), _span(one.ci_low, one.ci_high)]


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _span(low: float | None, high: float | None) -> str:
    return "–" if low is None or high is None else f"{low:.3f} to {high:.3f}"


def _p(value: float | None) -> str:
    return "–" if value is None else f"{value:.2g}"
