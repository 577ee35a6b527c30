"""`proctor audit`: judges and metrics held against ratings."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from proctor.cli.options import Seed
from proctor.cli.output import console, note, print_csv, print_json, print_table

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
AuditDraws = Annotated[
    int, typer.Option("--draws", min=0, help="Bootstrap draws behind each interval; 0 for none.")
]


def group() -> typer.Typer:
    """The commands below `proctor audit`."""
    audits = typer.Typer(no_args_is_help=True, help="Holds judges and metrics against human ratings.")
    audits.callback()(_auditing)
    audits.command("mediqa-eval")(mediqa_eval)
    audits.command("table")(table)
    return audits


def _auditing() -> None:
    """Holds judges and metrics against human ratings."""


def mediqa_eval(
    submissions: Annotated[
        list[Path],
        typer.Argument(metavar="SUBMISSION.csv…", help="Scores in the task's format; several are compared."),
    ],
    ratings: Ratings,
    output: Printed = AuditFormat.TABLE,
    draws: AuditDraws = 2000,
    seed: Seed = 0,
) -> None:
    """How far metrics agree with the clinicians of MEDIQA-EVAL 2026.

    Example: proctor audit mediqa-eval submission.csv --ratings ratings.csv --format official
    """
    from proctor.benchmarks.mediqa_eval import read_native_ratings, read_submission

    rated = read_native_ratings(ratings)
    _audited(rated, [read_submission(file, rated) for file in submissions], output, draws, seed)


def table(
    scores: Annotated[
        list[Path],
        typer.Argument(
            metavar="SCORES.csv…", help="Columns item, system, dimension, value; several are compared."
        ),
    ],
    ratings: Ratings,
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
    _audited(rated, [read_scores(file, rated) for file in scores], output, draws, seed)


def _audited(rated: Any, metrics: Sequence[Any], output: AuditFormat, draws: int, seed: int) -> None:
    from proctor.audit import CorrelationSettings, agreement_rows, audit, compare, official, to_json

    if output is AuditFormat.OFFICIAL:
        if len(metrics) != 1:
            raise typer.BadParameter("--format official takes one file of scores")
        draws = 0
    settings = CorrelationSettings(draws=draws, seed=seed)
    audits = [audit(rated, metric, settings) for metric in metrics]
    for one in audits:
        for line in one.notes:
            note(f"{one.metric}: {line}")
    if output is AuditFormat.OFFICIAL:
        print_json(official(audits[0]))
        return
    if output is AuditFormat.CSV:
        rows = [row for one in audits for row in agreement_rows(one)]
        print_csv(list(rows[0]), [list(row.values()) for row in rows])
        return
    boards = compare(rated, metrics, settings) if len(metrics) > 1 else ()
    if output is AuditFormat.JSON:
        print_json(to_json(audits, boards))
        return
    for one in audits:
        _print_audit(one)
    for board in boards:
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


def _means(systems: Sequence[Any], named: Sequence[str]) -> list[str]:
    found = {name: f"{score:.3f} / {rating:.3f}" for name, score, rating, _ in systems}
    return [found.get(name, "–") for name in named]


def _print_board(board: Any) -> None:
    where = " ".join(part for part in (board.language, board.dimension or "all dimensions") if part)
    print_table(
        f"Leaderboard, {where}: a rank is shared by what can't be told apart from the best below it",
        [">rank", "metric", ">mean", ">interval", "why none"],
        [
            ["–" if one.rank is None else str(one.rank), one.metric, *_estimate(one.mean), one.reason]
            for one in board.places
        ],
    )
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
            for one in board.comparisons
        ],
    )
    console.print()


def _estimate(one: Any) -> list[str]:
    return [_number(one.value), _span(one.ci_low, one.ci_high)]


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _span(low: float | None, high: float | None) -> str:
    return "–" if low is None or high is None else f"{low:.3f} to {high:.3f}"


def _p(value: float | None) -> str:
    return "–" if value is None else f"{value:.2g}"
