"""An audit in tables for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from proctor.cli.output import console, print_table

__all__ = ["print_audit", "print_board"]


def print_audit(audit: Any) -> None:
    """One metric: agreement, raters, systems, lengths."""
    rows = [_row(one) for one in audit.agreements]
    for one in audit.aggregates:
        why = one.reason or one.note
        rows.append(
            ["ALL", one.language, "ALL", "", "", "", *_estimate(one.mean), "", str(one.mean.groups), "", why]
        )
    print_table(f"{audit.metric}: agreement with the raters", _COLUMNS, rows)
    if audit.by_rater:
        rows = [[*_row(one), one.rater] for one in audit.by_rater]
        print_table("By rater, and with the raters' mean", [*_COLUMNS, "rater"], rows)
    if audit.ceilings:
        print_table(
            "The raters compared with each other; a perfect metric has √Pearson with one rater",
            [
                "dataset",
                "language",
                "dimension",
                "raters",
                ">mean",
                ">interval",
                ">Pearson",
                ">perfect metric",
                ">alpha",
                ">answers",
                "why none",
            ],
            [
                [
                    *(one.dataset, one.language, one.dimension, f"{one.first}, {one.second}"),
                    *_estimate(one.mean),
                    *(_number(one.pearson.value), _number(one.perfect), _number(one.alpha.value)),
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
    return [
        one.dataset,
        one.language,
        one.dimension,
        *values,
        *_estimate(one.mean),
        *counts,
        one.reason or one.note,
    ]


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


def print_board(board: Any) -> None:
    """Several metrics on one board, and their pairs where these are few."""
    where = " ".join(part for part in (board.language, board.dimension or "all dimensions") if part)
    kinds = [] if not board.dimension else [">Kendall", ">Pearson", ">Spearman"]
    print_table(
        f"{where}: rank is 1 + the number of metrics that are significantly better, and never better than that of a higher mean; those that share a tie can't be told apart",
        [">rank", "ties", "metric", *kinds, ">mean", ">interval of the mean", "why none"],
        [
            [
                *("–" if one.rank is None else str(one.rank), " ".join(map(str, one.ties)), one.metric),
                *(_number(value) for value in (one.kendall, one.pearson, one.spearman)[: len(kinds)]),
                *(*_estimate(one.mean), one.reason or one.note),
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
