"""`proctor rank`."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from proctor.cli.options import AllItems, BenchmarkName, FailedOption, Seed, StoreUrl, Systems, TwoLevel
from proctor.cli.output import console, drawn_over, note, print_csv, print_json, print_table, print_tsv
from proctor.cli.results import DEFAULT_STORE

if TYPE_CHECKING:
    from proctor.runs import Board, Lacking, RankedRun

__all__ = ["Baselines", "LatencyOption", "board_rows", "print_board", "rank"]


_LEAD_DRAWS = 2000


class RuleName(StrEnum):
    """The rules that make one order of the buckets' ranks."""

    COPELAND = "copeland"
    BORDA = "borda"
    MINIMAX = "minimax"
    DOWDALL = "dowdall"
    MEAN = "mean"
    WIN_RATE = "win-rate"


class CorrectionName(StrEnum):
    """What is done about many tests: within a bucket, over all buckets of the board, or nothing."""

    HOLM = "holm"
    BOARD = "holm-board"
    NONE = "none"


class LatencyName(StrEnum):
    """What an answer without a latency is where answers have a time limit."""

    REQUIRED = "required"
    OPTIONAL = "optional"


class RankFormat(StrEnum):
    """How boards are printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    TSV = "tsv"


Baselines = Annotated[
    list[str] | None,
    typer.Option(
        "--baseline",
        help="A reference system, or none; repeatable. [default: random, majority]",
        show_default=False,
    ),
]


LatencyOption = Annotated[
    LatencyName | None,
    typer.Option(
        "--latency",
        help="Answers without a latency: late, or in time. [default: late, where others have one]",
        show_default=False,
    ),
]


def rank(
    benchmark: BenchmarkName,
    store: StoreUrl = DEFAULT_STORE,
    condition: Annotated[str, typer.Option("--condition", help="Rank what was answered under it.")] = "video",
    systems: Systems = None,
    baselines: Baselines = None,
    by: Annotated[
        str,
        typer.Option(
            "--by",
            metavar="FACET[,FACET]",
            help="Other buckets than the benchmark's own.",
            show_default=False,
        ),
    ] = "",
    rule: Annotated[
        RuleName, typer.Option("--rule", help="What makes one order of the ranks in the buckets.")
    ] = RuleName.COPELAND,
    alpha: Annotated[float, typer.Option("--alpha", help="The level of the tests in the buckets.")] = 0.05,
    correction: Annotated[
        CorrectionName, typer.Option("--correction", help="For many tests: per bucket or board.")
    ] = CorrectionName.HOLM,
    failed: FailedOption = None,
    latency: LatencyOption = None,
    stability: Annotated[
        int, typer.Option("--stability", min=0, help="Samples of videos on which all is done again.")
    ] = 1000,
    draws: Annotated[int, typer.Option("--draws", min=100, help="Samples behind the win rates.")] = 10_000,
    detail: Annotated[
        bool,
        typer.Option(
            "--detail", help="Also the buckets one by one, the duels of all pairs, and all other rules."
        ),
    ] = False,
    mine: Annotated[
        str,
        typer.Option(
            "--mine",
            metavar="SYSTEM",
            help="Also bucket by bucket: is the lead of this system over the baselines real?",
            show_default=False,
        ),
    ] = "",
    two_level: TwoLevel = False,
    all_items: AllItems = False,
    publish: Annotated[bool, typer.Option("--publish", help="Leave out the names of judges.")] = False,
    output: Annotated[
        RankFormat, typer.Option("--format", help="For people or for programs.")
    ] = RankFormat.TABLE,
    seed: Seed = 0,
) -> None:
    """Ranks systems over buckets of questions, so that differences which are not real share a rank.

    With `--mine` and a format for programs other than JSON, the leads are printed and not the boards; `--two-level`
    is about their intervals, places and tests draw whole groups.

    Example: proctor rank focus --store runs.db --baseline frontier --baseline open-weights --mine my-model
    """
    from proctor.reports.board_words import who_advances
    from proctor.runs import Contest, Store, public_copy, rank_runs
    from proctor.runs.analysis import lead_rows

    opened = Store(store, create=False)
    contest = Contest(
        condition=condition,
        systems=tuple(systems or ()),
        baselines=tuple(baselines or ()),
        all_items=all_items,
        failed=failed,
        latency=latency.value if latency else None,
    )
    boards = rank_runs(
        public_copy(opened, benchmark) if publish else opened,
        benchmark,
        contest,
        by=tuple(name.strip() for name in by.split(",") if name.strip()),
        rule=rule.value,
        alpha=alpha,
        correction=correction.value,
        stability=stability,
        draws=draws,
        seed=seed,
    )
    leads = {
        board.name: lead_rows(board, mine, draws=_LEAD_DRAWS, seed=seed, two_level=two_level) if mine else []
        for board in boards
    }
    if output is RankFormat.JSON:
        made = {
            "alpha": alpha,
            "correction": correction.value,
            "draws": draws,
            "stability": stability,
            "seed": seed,
        }
        print_json(
            [
                _json(board) | {"settings": made} | ({"leads": leads[board.name]} if mine else {})
                for board in boards
            ]
        )
    elif output is RankFormat.TABLE:
        for board in boards:
            print_board(board, detail=detail)
            _print_leads(leads[board.name])
        if said := who_advances(boards):
            note(said)
        note(
            f"Tests at {alpha:g}, adjustment {correction.value}; {draws} draws for win rates, {stability} samples for places, "
            f"seed {seed}. “In samples” is the spread of places over samples, not a confidence interval."
        )
        if mine:
            note(drawn_over(_LEAD_DRAWS, seed, two_level=two_level))
    else:
        rows = [row for board in boards for row in (leads[board.name] if mine else board_rows(board))]
        write = print_csv if output is RankFormat.CSV else print_tsv
        write(list(rows[0]), [list(row.values()) for row in rows])


def board_rows(board: Board) -> list[dict[str, Any]]:
    """One flat row a system, as programs read it: `mean` is the pre-evaluation score with its rank and that rank's
    confidence interval, `won`, `lost` and `tied` are duels with the others, `place_low` to `place_high` the spread of the
    place over samples. Baselines and runs that can't be ranked have no place; those have `mean_if_wrong` and
    `mean_if_excluded` for a mean."""
    from proctor.runs.analysis import duels_of

    rows = []
    for one in board.runs:
        standing = one.standing
        won, lost, tied = duels_of(standing)
        stability = standing.stability
        rows.append(
            _flat(board, standing.name, one.lacking)
            | {
                "place": standing.place,
                "score": standing.score,
                "won": won,
                "lost": lost,
                "tied": tied,
                "mean": standing.mean,
                "rank_by_mean": standing.mean_rank,
                "rank_low": standing.rank_low,
                "rank_high": standing.rank_high,
                "win_rate": standing.win_rate,
                "tie_broken": standing.tie_broken,
                "duel_rate": standing.duel_rate,
                "place_low": None if stability is None else stability.place_low,
                "place_high": None if stability is None else stability.place_high,
                "p_first": None if stability is None else stability.chances[0],
                "below_line": one.below,
                "advances": one.advances,
            }
        )
    rows += [
        _flat(board, one.name, one.lacking) | {"mean_if_wrong": one.low, "mean_if_excluded": one.high}
        for one in board.unranked
    ]
    rows += [
        _flat(board, base.name, base.lacking) | {"mean": base.mean, "baseline": True}
        for base in board.baselines
    ]
    return rows


_COLUMNS = (
    *(
        "board",
        "place",
        "system",
        "score",
        "won",
        "lost",
        "tied",
        "mean",
        "rank_by_mean",
        "rank_low",
        "rank_high",
    ),
    *("win_rate", "tie_broken", "duel_rate", "place_low", "place_high", "p_first", "baseline", "below_line"),
    *("advances", "mean_if_wrong", "mean_if_excluded"),
)


def _flat(board: Board, system: str, lacking: Lacking) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(_COLUMNS)
    return row | {"board": board.name, "system": system, "baseline": False} | asdict(lacking)


def _json(board: Board) -> dict[str, Any]:
    from proctor.runs.analysis import rule_rows

    standings = board.standings
    details: list[dict[str, Any]] = [
        {
            "ranks": dict(zip(standings.buckets, one.standing.ranks, strict=True)),
            "scores": dict(zip(standings.buckets, one.standing.scores, strict=True)),
            "buckets_ahead": one.standing.ahead,
            "buckets_behind": one.standing.behind,
            "buckets_tied": one.standing.tied,
            "chances": None if one.standing.stability is None else list(one.standing.stability.chances),
        }
        for one in board.runs
    ]
    details += [{} for _ in board.unranked]
    details += [{"scores": dict(zip(standings.buckets, one.scores, strict=True))} for one in board.baselines]
    return {
        "board": board.name,
        "rule": standings.rule,
        "questions": board.items,
        "marked_by": board.judge,
        "failed": [policy.value for policy in board.policies],
        "latency": "required" if board.timed else "optional",
        "left_out": board.left_out,
        "unbucketed": board.unbucketed,
        "groups": standings.groups,
        "empty_buckets": list(standings.empty),
        "bucket_groups": dict(zip(standings.buckets, standings.bucket_groups, strict=True)),
        "smallest_p": dict(zip(standings.buckets, standings.reach, strict=True)),
        "too_few_groups": list(board.powerless),
        "disqualified": [one.model_dump(include={"system", "reason", "since"}) for one in board.disqualified],
        "tau": standings.tau,
        "tau_low": standings.tau_low,
        "tau_if_equal": standings.tau_equal,
        "rules": [
            {name: row[name] for name in ("rule", "system", "place", "score")} for row in rule_rows([board])
        ],
        "systems": [row | more for row, more in zip(board_rows(board), details, strict=True)],
        "p_values": {
            name: table.tolist() for name, table in zip(standings.buckets, standings.p_values, strict=True)
        },
    }


def print_board(board: Board, *, detail: bool = False) -> None:
    """One board as tables: ranked systems, what stands below the line, baselines, and runs that can't be ranked."""
    from proctor.reports.board_words import board_notes, remarks

    standings = board.standings
    columns = [
        ">place",
        "system",
        f">{standings.rule}",
        ">won–lost–tied",
        ">pre-eval",
        ">its rank (95 %)",
        ">win rate",
        ">in samples",
        ">first",
        "",
    ]
    above = [one for one in board.runs if not one.below]
    below = [one for one in board.runs if one.below]
    title = f"{board.title} ({board.items} in {standings.groups} groups)"
    print_table(title, columns, [_cells(one) for one in above])
    if below:
        print_table(
            "Below the line: not better than every baseline by the mean over the buckets",
            columns,
            [_cells(one) for one in below],
        )
    if board.unranked:
        print_table(
            "Not ranked: incomplete",
            ["system", ">pre-eval, lacking as wrong … left out", ""],
            [
                [one.name, f"{_percent(one.low)} … {_percent(one.high)}", ", ".join(remarks(one.lacking))]
                for one in board.unranked
            ],
        )
    if board.baselines:
        print_table(
            "Baselines: in no test and no duel",
            ["system", ">pre-eval", ""],
            [[one.name, _percent(one.mean), ", ".join(remarks(one.lacking))] for one in board.baselines],
        )
    if detail and board.runs:
        _print_rules(board)
        _print_buckets(board)
        _print_duels(board)
    for line in board_notes(board):
        note(line)
    console.print()


def _cells(one: RankedRun) -> list[str]:
    from proctor.reports.board_words import mean_rank, remarks
    from proctor.runs.analysis import duels_of

    standing, stability = one.standing, one.standing.stability
    said = (["tie broken"] if standing.tie_broken else []) + remarks(one.lacking)
    return [
        str(standing.place),
        standing.name,
        f"{standing.score:g}" if float(standing.score).is_integer() else f"{standing.score:.3f}",
        "–".join(str(count) for count in duels_of(standing)),
        _percent(standing.mean),
        mean_rank(standing.mean_rank, standing.rank_low, standing.rank_high),
        _percent(standing.win_rate),
        "–" if stability is None else f"{stability.place_low} to {stability.place_high}",
        "–" if stability is None else _percent(stability.chances[0]),
        ", ".join(said),
    ]


def _print_rules(board: Board) -> None:
    from proctor.runs.analysis import rule_rows

    rows = rule_rows([board])
    rules = list(dict.fromkeys(row["rule"] for row in rows))
    cells = {(row["system"], row["rule"]): f"{row['place']}  {row['score']:.4g}" for row in rows}
    names = [one.standing.name for one in board.runs]
    print_table(
        "Place and score under every rule (ties not broken)",
        ["system", *(f">{rule}" for rule in rules)],
        [[name, *(cells[name, rule] for rule in rules)] for name in names],
    )


def _print_leads(rows: list[dict[str, Any]]) -> None:
    """Whether one system's lead is real, bucket by bucket; a table for each that it is compared with."""
    from proctor.reports.words import p_value

    for other in dict.fromkeys(row["against"] for row in rows):
        here = [row for row in rows if row["against"] == other]
        print_table(
            f"{here[0]['system']} against {other}",
            ["bucket", ">questions", ">groups", ">lead", ">95 % interval", ">p", ">p adjusted", "verdict"],
            [
                [
                    row["bucket"],
                    str(row["n"]),
                    str(row["groups"]),
                    _points(row["lead"]),
                    "–"
                    if row["ci_low"] is None
                    else f"{100 * row['ci_low']:.1f} to {100 * row['ci_high']:.1f}",
                    p_value(row["p"]),
                    p_value(row["p_adjusted"]),
                    row["verdict"],
                ]
                for row in here
            ],
        )
        console.print()


def _points(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:+.1f} pts"


def _print_buckets(board: Board) -> None:
    names = [*(one.standing.name for one in board.runs), *(one.name for one in board.baselines)]
    cells = []
    for number, bucket in enumerate(board.standings.buckets):
        pairs = [(one.standing.ranks[number], one.standing.scores[number]) for one in board.runs]
        shown = ["–" if rank is None else f"{rank}  {_percent(score)}" for rank, score in pairs]
        cells.append([bucket, *shown, *(_percent(one.scores[number]) for one in board.baselines)])
    print_table("Rank and accuracy in each bucket", ["bucket", *(f">{name}" for name in names)], cells)


def _print_duels(board: Board) -> None:
    names = [one.standing.name for one in board.runs]
    cells = []
    for one in board.runs:
        standing = one.standing
        duels = [
            f"{standing.ahead[name]}–{standing.behind[name]}–{standing.tied[name]}"
            if name in standing.ahead
            else ""
            for name in names
        ]
        cells.append([standing.name, *duels])
    print_table("Buckets won, lost and tied against each other", ["", *(f">{name}" for name in names)], cells)


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"
