"""The summary that a benchmark's own program gives: `proctor results --as`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from proctor.benchmarks.predictions import ScoresPredictions
from proctor.cli.options import OutputFormat, reader_of
from proctor.cli.output import console, interval, note, print_csv, print_json, print_table, share
from proctor.core import ACCURACY, HasOfficialFigures, InputError
from proctor.metrics.ordering import OVERALL
from proctor.metrics.text import RATIONALE_F1

if TYPE_CHECKING:
    from proctor.metrics.marks import Mark
    from proctor.runs import OrderedRun, Store

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
    if isinstance(reader, ScoresPredictions):
        if kind != "official":
            raise InputError(None, "--as", found=repr(kind), expected="official: there is nothing to mend")
        weights = reader.prediction_weights
        _show_orders(store, benchmark, (weights["alpha"], weights["beta"]), chosen, output, drawn)
        return
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


def _show_orders(
    store: Store,
    benchmark: str,
    weights: tuple[float, float],
    chosen: tuple[tuple[str, ...], tuple[str, ...]],
    output: OutputFormat,
    drawn: tuple[int, int],
) -> None:
    """The task's own figures of every chosen run, the overall score where its rationales are scored."""
    from proctor.runs import chosen_runs, load_orders
    from proctor.runs.table import load_items

    table = load_items(store, store.card(benchmark))
    items = {item.id: item for item in store.items(benchmark)}
    found = load_orders(store, chosen_runs(store, benchmark, *chosen), table, items)
    marks = {one.run.id: _order_marks(one, weights, drawn) for one in found}
    rows = [row for one in found for row in _order_rows(one, marks[one.run.id])]
    if output is OutputFormat.JSON:
        print_json(rows)
    elif output is OutputFormat.CSV:
        print_csv(list(rows[0]) if rows else [], [list(row.values()) for row in rows])
    else:
        for one in found:
            several = len(one.f1) > 1
            cells = [
                [
                    mark.metric.label,
                    *([scorer] if several else []),
                    share(mark.metric, mark.estimate.value),
                    interval(mark.metric, mark.estimate.ci_low, mark.estimate.ci_high),
                    str(mark.estimate.n),
                ]
                for scorer, mark in marks[one.run.id]
            ]
            if not one.f1:
                cells += [[metric.label, "–", "–", "–"] for metric in (RATIONALE_F1, OVERALL)]
            heads = ["metric", *(["rationales by"] if several else []), ">value", ">interval", ">n"]
            print_table(f"{one.run.system} / {one.run.condition}", heads, cells)
            if one.invalid:
                note(
                    f"{one.invalid} of {len(one.compared)} orders are invalid (a label is missing, repeated or "
                    "unknown) and wrong in every figure but that with partial credit."
                )
            if one.left_out:
                note(f"{one.left_out} items failed or were not asked, and are left out.")
            if len(one.f1) == 1:
                note(f"Rationales by {next(iter(one.f1))}.")
            if not one.f1:
                note(f"No rationale F1 and no overall score: {_unscored(one)}.")
            console.print()
        for line in store.card(benchmark).notes:
            note(line)


def _unscored(one: OrderedRun) -> str:
    """Why no rationale of a run has an F1."""
    if not one.has_rationales:
        return "no rationale was asked for or kept"
    return "no rationale is scored yet (proctor score --judge bertscore)"


def _order_marks(
    one: OrderedRun, weights: tuple[float, float], drawn: tuple[int, int]
) -> list[tuple[str, Mark]]:
    """Each with the scorer of the rationales that it stands on; task and pairwise accuracy stand on none."""
    draws, seed = drawn
    own = [("", mark) for mark in one.whole(draws=draws, seed=seed)[:2]]
    if one.invalid:
        own.append(("", one.partial(draws=draws, seed=seed)))
    return own + [
        (scorer, mark)
        for scorer in sorted(one.f1)
        for mark in one.with_rationales(scorer, weights=weights, draws=draws, seed=seed)
    ]


def _order_rows(one: OrderedRun, marks: list[tuple[str, Mark]]) -> list[dict[str, Any]]:
    """As programs read them; `reason` says why a value is not there."""
    run: dict[str, Any] = {"system": one.run.system, "condition": one.run.condition, "left_out": one.left_out}
    run["invalid"] = one.invalid
    missing: dict[str, Any] = {"value": None, "ci_low": None, "ci_high": None, "n": 0}
    unscored = [
        run | {"scorer": "", "name": metric.name} | missing | {"reason": _unscored(one)}
        for metric in (() if one.f1 else (RATIONALE_F1, OVERALL))
    ]
    return [
        run
        | {
            "scorer": scorer,
            "name": mark.metric.name,
            "value": mark.estimate.value,
            "ci_low": mark.estimate.ci_low,
            "ci_high": mark.estimate.ci_high,
            "n": mark.estimate.n,
            "reason": "",
        }
        for scorer, mark in marks
    ] + unscored
