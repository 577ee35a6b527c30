"""The summary that a benchmark's own program gives: `proctor results --protocol`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from proctor.cli.options import OutputFormat
from proctor.cli.output import console, note, print_csv, print_json, print_table
from proctor.core import ACCURACY, FailedPolicy, InputError, interval, reader_of, value
from proctor.metrics.ordering import OVERALL
from proctor.metrics.text import RATIONALE_F1

if TYPE_CHECKING:
    from proctor.metrics import MetricEstimate
    from proctor.runs import Options, OrderedRun, Store

_KINDS = ("official", "corrected")


@dataclass(frozen=True)
class Asked:
    """Whose runs are summarized, and how (see `official_summaries`)."""

    store: Store
    benchmark: str
    options: Options


def show_summaries(asked: Asked, kind: str, output: OutputFormat) -> None:
    """Prints the summary of every chosen run."""
    from proctor.runs import official_summaries

    if kind not in _KINDS:
        raise InputError(None, "--protocol", found=repr(kind), expected=" or ".join(_KINDS))
    store, benchmark = asked.store, asked.benchmark
    reader = reader_of(benchmark)
    if reader.prediction_weights:
        if kind != "official":
            raise InputError(None, "--protocol", found=repr(kind), expected="official: there is nothing to correct")
        weights = reader.prediction_weights
        _show_orders(asked, (weights["alpha"], weights["beta"]), output)
        return
    if not reader.corrections:
        raise InputError(
            None, "--protocol", found=repr(kind), expected=f"no --protocol: {benchmark} has no summary of its own"
        )
    summaries = official_summaries(store, benchmark, reader, official=kind == "official", options=asked.options)
    rows = [row for one in summaries for row in one.to_json()]
    if output is OutputFormat.JSON:
        print_json(rows)
    elif output is OutputFormat.CSV:
        print_csv(list(rows[0]) if rows else [], [list(row.values()) for row in rows])
    else:
        _tables(summaries)
    if kind == "corrected":
        for line in reader.corrections:
            note(line)


def _tables(summaries: list[Any]) -> None:
    for one in summaries:
        cells = [
            [
                figure.level,
                figure.name,
                value(ACCURACY, figure.value),
                interval(ACCURACY, figure.ci_low, figure.ci_high),
                str(figure.n),
            ]
            for figure in one.figures
        ]
        print_table(_title(one, one), ["level", "name", ">accuracy", ">interval", ">n"], cells)
        if one.marked_by != "code":
            note(f"Free text is right or wrong by {one.marked_by}.")
        if one.left_out:
            note(f"{one.left_out} questions have no mark and are left out.")
        if one.lacking and one.policy == FailedPolicy.WRONG:
            note(f"{one.lacking} questions failed, were not asked or have no verdict, and count as wrong.")
        console.print()


def _title(run: Any, one: Any) -> str:
    """A run, with the policy where something is lacking."""
    counted = {"wrong": ", what it lacks counted as wrong", "exclude": ", what it lacks left out"}
    return f"{run.system} / {run.condition}{counted.get(one.policy, '')}"


def _show_orders(asked: Asked, weights: tuple[float, float], output: OutputFormat) -> None:
    """The task's own figures of every chosen run, the overall score where its rationales are scored."""
    from proctor.runs import chosen_runs, load_items, load_orders, policies

    store, card = asked.store, asked.store.card(asked.benchmark)
    table = load_items(store, card)
    items = {item.id: item for item in store.items(asked.benchmark)}
    options = asked.options
    runs = chosen_runs(store, asked.benchmark, options.systems, options.conditions)
    found = [one for policy in policies(options.failed, card) for one in load_orders(store, runs, table, items, policy)]
    found = list({(one.run.id, one.policy): one for one in found}.values())
    found.sort(key=lambda one: (one.run.system, one.run.condition))
    marks = [_order_marks(one, weights, (options.draws, options.seed)) for one in found]
    rows = [row for one, own in zip(found, marks, strict=True) for row in _order_rows(one, own)]
    if output is OutputFormat.JSON:
        print_json(rows)
    elif output is OutputFormat.CSV:
        print_csv(list(rows[0]) if rows else [], [list(row.values()) for row in rows])
    else:
        for one, own in zip(found, marks, strict=True):
            several = len(one.f1) > 1
            cells = [
                [
                    mark.metric.label,
                    *([scorer] if several else []),
                    value(mark.metric, mark.estimate.value),
                    interval(mark.metric, mark.estimate.ci_low, mark.estimate.ci_high),
                    str(mark.estimate.n),
                ]
                for scorer, mark in own
            ]
            if not one.f1:
                cells += [[metric.label, "–", "–", "–"] for metric in (RATIONALE_F1, OVERALL)]
            heads = ["metric", *(["rationales by"] if several else []), ">value", ">interval", ">n"]
            print_table(_title(one.run, one), heads, cells)
            if one.invalid:
                note(
                    f"{one.invalid} of {len(one.compared)} orders are invalid (a label is missing, repeated or "
                    "unknown) and wrong in every figure but that with partial credit."
                )
            if one.lacking:
                counted = "count as wrong" if one.policy == FailedPolicy.WRONG else "are left out"
                note(f"{one.lacking} items failed or were not asked, and {counted}.")
            if len(one.f1) == 1:
                note(f"Rationales by {next(iter(one.f1))}.")
            if not one.f1:
                note(f"No rationale F1 and no overall score: {_unscored(one)}.")
            console.print()
        for line in card.notes:
            note(line)


def _unscored(one: OrderedRun) -> str:
    """Why no rationale of a run has an F1."""
    if not one.has_rationales:
        return "no rationale was asked for or kept"
    return "no rationale is scored yet (proctor score --judge bertscore)"


def _order_marks(
    one: OrderedRun, weights: tuple[float, float], drawn: tuple[int, int]
) -> list[tuple[str, MetricEstimate]]:
    """Each with the scorer of the rationales that it stands on; task and pairwise accuracy stand on none."""
    draws, seed = drawn
    own = [("", mark) for mark in one.metrics(draws=draws, seed=seed)[:2]]
    if one.invalid:
        own.append(("", one.partial(draws=draws, seed=seed)))
    return own + [
        (scorer, mark)
        for scorer in sorted(one.f1)
        for mark in one.with_rationales(scorer, weights=weights, draws=draws, seed=seed)
    ]


def _order_rows(one: OrderedRun, marks: list[tuple[str, MetricEstimate]]) -> list[dict[str, Any]]:
    """As programs read them; `reason` says why a value is not there."""
    run: dict[str, Any] = {"system": one.run.system, "condition": one.run.condition, "left_out": one.left_out}
    run |= {"invalid": one.invalid, "policy": one.policy, "lacking": one.lacking}
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
