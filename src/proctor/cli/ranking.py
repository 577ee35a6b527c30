"""`proctor rank`."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from proctor.cli.options import AllItems, BenchmarkName, FailedOption, Seed, StoreUrl, Systems, TwoLevel
from proctor.cli.output import console, drawn_over, note, print_blocks, print_json, print_records
from proctor.cli.results import DEFAULT_STORE

if TYPE_CHECKING:
    from proctor.runs import Board

_LEAD_DRAWS = 2000


class RuleName(StrEnum):
    """The rules that make one order of the buckets' ranks."""

    COPELAND = "copeland"
    BORDA = "borda"
    MEAN = "mean"


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
        "--baseline", help="A reference system, or none; repeatable. [default: random, majority]", show_default=False
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
            "--by", metavar="FACET[,FACET]", help="Other buckets than the benchmark's own.", show_default=False
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
        bool, typer.Option("--detail", help="Also the buckets one by one, the duels of all pairs, and all other rules.")
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
    output: Annotated[RankFormat, typer.Option("--format", help="For people or for programs.")] = RankFormat.TABLE,
    seed: Seed = 0,
) -> None:
    """Rank systems per bucket of questions.

    Systems that do not differ significantly share a rank.

    With `--mine` and a format for programs other than JSON, the leads are printed and not the boards; `--two-level`
    is about their intervals, places and tests draw whole groups.

    Example: proctor rank focus --store runs.db --baseline frontier --baseline open-weights --mine my-model
    """
    from proctor import api
    from proctor.reports import leads_tables, who_advances
    from proctor.runs import Store, board_json, board_rows, lead_rows, public_copy
    from proctor.stats import Resampling

    opened = Store(store, create=False)
    found = api.rank(
        public_copy(opened, benchmark) if publish else opened,
        benchmark,
        condition=condition,
        systems=systems or (),
        baselines=baselines or (),
        all_items=all_items,
        failed=failed,
        latency=latency.value if latency else None,
        by=tuple(name.strip() for name in by.split(",") if name.strip()),
        rule=rule.value,
        alpha=alpha,
        correction=correction.value,
        stability=stability,
        draws=draws,
        seed=seed,
    )
    boards = list(found.boards)
    plan = Resampling(draws=_LEAD_DRAWS, seed=seed, two_level=two_level)
    leads = {board.name: lead_rows(board, mine, plan=plan) if mine else [] for board in boards}
    if output is RankFormat.JSON:
        made = {"alpha": alpha, "correction": correction.value, "draws": draws, "stability": stability, "seed": seed}
        print_json(
            [
                board_json(board) | {"settings": made} | ({"leads": leads[board.name]} if mine else {})
                for board in boards
            ]
        )
    elif output is RankFormat.TABLE:
        for board in boards:
            print_board(board, detail=detail)
            print_blocks(leads_tables(leads[board.name]))
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
        print_records(rows, tabs=output is RankFormat.TSV)


def print_board(board: Board, *, detail: bool = False) -> None:
    """One board as tables: ranked systems, runs that can't be ranked, baselines."""
    from proctor.reports import board_notes, board_tables, detail_tables

    print_blocks([*board_tables(board), *(detail_tables(board) if detail else [])])
    for line in board_notes(board):
        note(line)
    console.print()
