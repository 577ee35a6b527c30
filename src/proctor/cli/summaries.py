"""The summary that a benchmark's own program gives: `proctor results --as`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from proctor.cli.options import OutputFormat, reader_of
from proctor.cli.output import console, interval, note, print_csv, print_json, print_table, share
from proctor.core import ACCURACY, HasOfficialFigures, InputError

if TYPE_CHECKING:
    from proctor.runs import Store

__all__ = ["show_summaries"]

_KINDS = ("official", "mended")


def show_summaries(
    store: Store,
    benchmark: str,
    kind: str,
    chosen: tuple[tuple[str, ...], tuple[str, ...]],
    output: OutputFormat,
    drawn: tuple[int, int],
) -> None:
    """Prints the summary of every chosen run (systems, conditions); `drawn` is draws and seed."""
    from proctor.runs import official_summaries

    if kind not in _KINDS:
        raise InputError(None, "--as", found=repr(kind), expected=" or ".join(_KINDS))
    reader = reader_of(benchmark)
    if not isinstance(reader, HasOfficialFigures):
        raise InputError(
            None, "--as", found=repr(kind), expected=f"no --as: {benchmark} has no summary of its own"
        )
    summaries = official_summaries(
        store,
        benchmark,
        reader,
        official=kind == "official",
        systems=chosen[0],
        conditions=chosen[1],
        draws=drawn[0],
        seed=drawn[1],
    )
    rows = [row for one in summaries for row in one.to_json()]
    if output is OutputFormat.JSON:
        print_json(rows)
    elif output is OutputFormat.CSV:
        print_csv(list(rows[0]) if rows else [], [list(row.values()) for row in rows])
    else:
        _tables(summaries)
    if kind == "mended":
        for line in reader.mended():
            note(line)


def _tables(summaries: list[Any]) -> None:
    for one in summaries:
        cells = [
            [
                figure.level,
                figure.name,
                share(ACCURACY, figure.value),
                interval(ACCURACY, figure.ci_low, figure.ci_high),
                str(figure.n),
            ]
            for figure in one.figures
        ]
        print_table(
            f"{one.system} / {one.condition}", ["level", "name", ">accuracy", ">interval", ">n"], cells
        )
        if one.marked_by != "code":
            note(f"Free text is right or wrong by {one.marked_by}.")
        if one.left_out:
            note(f"{one.left_out} questions have no mark and are left out.")
        console.print()
