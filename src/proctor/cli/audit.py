"""`proctor items audit`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from proctor.cli.options import AllItems, BenchmarkName, Draws, Output, OutputFormat, Seed, TrackName
from proctor.cli.output import console, note, print_csv, print_json, print_table
from proctor.core import ACCURACY, interval, reader_of, value


def audit_items(
    benchmark: BenchmarkName,
    data: Annotated[
        Path | None, typer.Option("--data", help="The benchmark's own files; or else --store.", show_default=False)
    ] = None,
    store: Annotated[
        str, typer.Option("--store", help="A store with the benchmark: its items are flagged for --by guessable.")
    ] = "",
    track: TrackName = "",
    output: Output = OutputFormat.TABLE,
    show: Annotated[int, typer.Option("--top", min=1, help="How many text-only baselines to list.")] = 10,
    all_items: AllItems = False,
    draws: Draws = 2000,
    seed: Seed = 0,
) -> None:
    """Find items that the text alone gives away.

    Fixed rules and classifiers answer from the text without the media.

    Example: proctor items audit rexsonovqa --data rexsonovqa
    """
    from proctor.audits.items import audit_items as compute
    from proctor.audits.items import to_json
    from proctor.runs import Store, audit_stored, flag_guessable

    opened = Store(store, create=False) if store else None
    if data is not None:
        items = reader_of(benchmark, track).load(data).counted(all_items=all_items)
        audit = compute(items, seed=seed, draws=draws)
    elif opened is not None:
        audit = audit_stored(opened, benchmark, all_items=all_items, seed=seed, draws=draws)
    else:
        raise typer.BadParameter("name the benchmark's files with --data, or a store with --store")
    if opened is not None:
        flagged = flag_guessable(opened, benchmark, audit)
        note(f"{flagged} of {len(audit.guessable)} items flagged in {opened.shown}: results --by guessable")
    if output is OutputFormat.JSON:
        print_json(to_json(audit))
    elif output is OutputFormat.CSV:
        _print_baselines(audit)
    else:
        _print_audit(audit, show)


def _print_baselines(audit: Any) -> None:
    columns = [
        "format",
        "baseline",
        "kind",
        "label",
        "n",
        "groups",
        "accuracy",
        "ci_low",
        "ci_high",
        "chance",
        "p",
        "p_holm",
    ]
    rows = [
        [
            one.kind,
            each.name,
            each.kind,
            each.label,
            each.accuracy.n,
            each.accuracy.groups,
            each.accuracy.value,
            each.accuracy.ci_low,
            each.accuracy.ci_high,
            each.chance,
            each.p,
            each.p_holm,
        ]
        for one in audit.formats
        for each in one.baselines
    ]
    print_csv(columns, rows)


def _print_audit(audit: Any, show: int) -> None:
    for one in audit.formats:
        _print_format(one, show)
    for kind, reason in audit.left_out.items():
        console.print(f"Left out, {kind}: {reason}", markup=False, highlight=False)
    if audit.repeats:
        console.print(
            f"{len(audit.repeats)} items have an answer that occurs again in another item of their group "
            "(--format json lists them).",
            highlight=False,
        )


def _print_format(one: Any, show: int) -> None:
    chance = "unknown" if one.chance is None else value(ACCURACY, one.chance)
    console.print(
        f"{one.kind}: {one.n} items in {one.groups} groups; chance {chance}; best constant answer {value(ACCURACY, one.constant_share)}",
        style="bold",
        markup=False,
        highlight=False,
    )
    if one.selected is None:
        console.print(one.unselected, markup=False, highlight=False)
    else:
        found = one.selected.accuracy
        verdict = {
            True: "covers chance: nothing found",
            False: "is off chance",
            None: "no chance level is known: hold it against the best constant answer",
        }[one.selected.covers_chance]
        console.print(
            f"Best text-only accuracy, the baseline chosen on other groups: {value(ACCURACY, found.value)} "
            f"({interval(ACCURACY, found.ci_low, found.ci_high)}), {verdict}",
            markup=False,
            highlight=False,
        )
    print_table(
        "Ways to answer without looking",
        ["baseline", "kind", ">accuracy", ">interval", ">p (Holm)", "what it takes"],
        [
            [
                each.name,
                each.kind,
                value(ACCURACY, each.accuracy.value),
                interval(ACCURACY, each.accuracy.ci_low, each.accuracy.ci_high),
                "–" if each.p_holm is None else f"{each.p_holm:.2g}",
                each.label,
            ]
            for each in one.baselines[:show]
        ],
    )
    if one.options is not None:
        _print_options(one.options)
    console.print()


def _print_options(options: Any) -> None:
    for title, histograms in (
        ("Place of the key", options.key_positions),
        ("Length rank of the right option (1 = shortest)", options.length_ranks),
    ):
        for histogram in histograms:
            of = f", {len(histogram.counts)} options" if len(histograms) > 1 else ""
            places = "  ".join(f"{place}: {count}" for place, count in enumerate(histogram.counts, start=1))
            console.print(
                f"{title}{of}: {places}  (p {histogram.p:.2g}, {histogram.test})", markup=False, highlight=False
            )
    console.print(
        f"The right option is the shortest of all in {options.strictly_shortest} items, the longest in {options.strictly_longest}.",
        markup=False,
        highlight=False,
    )
