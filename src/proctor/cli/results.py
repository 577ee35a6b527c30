"""`proctor results` and `compare`."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from proctor.cli.options import (
    AllItems,
    BenchmarkName,
    Conditions,
    Draws,
    FailedOption,
    Output,
    OutputFormat,
    Seed,
    StoreUrl,
    Systems,
    TwoLevel,
)
from proctor.cli.output import (
    console,
    drawn_over,
    note,
    print_blocks,
    print_csv,
    print_json,
    print_records,
    print_table,
)
from proctor.core import InputError

DEFAULT_STORE = "proctor.db"


def results(
    benchmark: BenchmarkName,
    store: StoreUrl = DEFAULT_STORE,
    by: Annotated[
        str, typer.Option("--by", metavar="FACET[,FACET]", help="Split by these facets.", show_default=False)
    ] = "",
    output: Output = OutputFormat.TABLE,
    failed: FailedOption = None,
    systems: Systems = None,
    conditions: Conditions = None,
    all_items: AllItems = False,
    draws: Draws = 2000,
    two_level: TwoLevel = False,
    seed: Seed = 0,
    summary: Annotated[
        str,
        typer.Option(
            "--protocol",
            metavar="official|corrected",
            help="The summary of the benchmark's own program, as it is or corrected.",
            show_default=False,
        ),
    ] = "",
    flags: Annotated[
        bool, typer.Option("--flags", help="The judges' votes that a person should look at, with the answers, instead.")
    ] = False,
) -> None:
    """Show scores with confidence intervals.

    Each score stands with its number of items and of missing answers.

    Example: proctor results rexsonovqa --store runs.db --by question_type --format json
    """
    from proctor import api
    from proctor.cli.summaries import Asked, show_summaries
    from proctor.runs import Options, Store

    chosen = (tuple(systems or ()), tuple(conditions or ()))
    if flags:
        _show_flags(Store(store, create=False), benchmark, chosen, output)
        return
    options = Options(
        by=tuple(name.strip() for name in by.split(",") if name.strip()),
        failed=failed,
        all_items=all_items,
        draws=draws,
        two_level=two_level,
        seed=seed,
        systems=chosen[0],
        conditions=chosen[1],
    )
    if summary:
        if two_level:
            expected = "one of them: the figures of --protocol official have two levels as they are"
            raise InputError(None, "--two-level", found="with --protocol", expected=expected)
        show_summaries(Asked(Store(store, create=False), benchmark, options), summary, output)
        return
    found = api.results(
        store,
        benchmark,
        by=options.by,
        systems=chosen[0],
        conditions=chosen[1],
        failed=failed,
        all_items=all_items,
        draws=draws,
        two_level=two_level,
        seed=seed,
    ).data
    if output is OutputFormat.JSON:
        print_json([row.to_json() for row in found.rows])
    elif output is OutputFormat.CSV:
        _results_csv(found)
    else:
        _results_table(found)
    shown = {row.system for row in found.rows}
    out = [str(one) for name, one in found.card.disqualified.items() if name in shown]
    if out:
        note(f"Disqualified: {'; '.join(out)}")
    _policy_note(found)


def _show_flags(
    store: Any, benchmark: str, chosen: tuple[tuple[str, ...], tuple[str, ...]], output: OutputFormat
) -> None:
    from proctor.core import clean
    from proctor.runs import flagged_votes, safe_cell

    found = flagged_votes(store, benchmark, *chosen)
    if output is OutputFormat.JSON:
        print_json([one.to_json() for one in found])
        return
    columns = ["system", "condition", "item", "judge", "flags", "reply", "text"]
    rows = [
        [
            one.system,
            one.condition,
            one.item,
            one.judge,
            ", ".join(one.flags),
            json.dumps(one.reply, ensure_ascii=False),
            one.text,
        ]
        for one in found
    ]
    if output is OutputFormat.CSV:
        print_csv(columns, [[safe_cell(cell) for cell in row] for row in rows])
        return
    print_table(
        f"{benchmark}: flagged votes", columns, [[" ".join(clean(cell).split()) for cell in row] for row in rows]
    )


def _results_csv(found: Any) -> None:
    names = list(found.options.by)
    rows = [row.to_json() for row in found.rows]
    plain = [key for key in (rows[0] if rows else {}) if key not in {"facets", "levels"}]
    print_records([{key: row[key] for key in plain} | {name: row["facets"][name] for name in names} for row in rows])


def _results_table(found: Any) -> None:
    from proctor.reports import results_tables

    for one in results_tables(found):
        print_blocks([one])
        console.print()
    if found.card.published is not None:
        note(f"published: {found.card.published.source}. {found.card.published.note}")


def _policy_note(found: Any) -> None:
    from proctor.reports import DECIDED_LINE, policy_line

    options = found.options
    if any(row.policy for row in found.rows):
        note(policy_line(options.failed, found.card))
    if any(row.decided for row in found.rows):
        note(DECIDED_LINE)
    note(drawn_over(options.draws, options.seed, two_level=options.two_level))


def compare(
    benchmark: BenchmarkName,
    store: StoreUrl = DEFAULT_STORE,
    systems: Systems = None,
    conditions: Conditions = None,
    metrics: Annotated[
        list[str] | None, typer.Option("--metric", help="Only this metric; may be repeated.", show_default=False)
    ] = None,
    by: Annotated[
        str, typer.Option("--by", metavar="FACET[,FACET]", help="Split by these facets.", show_default=False)
    ] = "",
    against: Annotated[
        str,
        typer.Option(
            "--against", metavar="SYSTEM/CONDITION", help="Set every run against this one.", show_default=False
        ),
    ] = "",
    failed: FailedOption = None,
    output: Output = OutputFormat.TABLE,
    all_items: AllItems = False,
    draws: Draws = 2000,
    seed: Seed = 0,
) -> None:
    """Compare two conditions or two systems.

    The result is a cross-table and the paired difference.

    With two or more --system and one --condition (or one that they share alone), systems are compared; else
    conditions of each system;
    with --against, each run is set against that one (is the lead over the baselines real?).
    --system SYSTEM/CONDITION names a run; with --by, each part of the items is compared by itself.

    Example: proctor compare rexsonovqa --store runs.db --condition text-only --condition video
    """
    from proctor import api
    from proctor.reports import comparison_blocks, policy_line
    from proctor.runs import Store

    facets = tuple(name.strip() for name in by.split(",") if name.strip())
    opened = Store(store, create=False)
    found = api.compare(
        opened,
        benchmark,
        against=_run_name(against) if against else "",
        metrics=metrics or (),
        by=facets,
        systems=systems or (),
        conditions=conditions or (),
        failed=failed,
        all_items=all_items,
        draws=draws,
        seed=seed,
    ).data
    if output is OutputFormat.JSON:
        print_json([one.to_json() for one in found.comparisons])
        return
    if output is OutputFormat.CSV:
        print_records([_flat(one.to_json()) for one in found.comparisons])
        return
    if facets:
        _parts_tables(found, facets)
        return
    for one in found.comparisons:
        print_blocks(comparison_blocks(one, found.card.metric(one.metric)))
        console.print()
    if any(one.policy for one in found.comparisons):
        note(policy_line(failed, found.card))
    note(f"Next: proctor report {benchmark} --store {opened.shown} --out report.html")


def _run_name(text: str) -> tuple[str, str]:
    system, slash, condition = text.rpartition("/")
    if not slash or not system or not condition:
        raise typer.BadParameter("expected SYSTEM/CONDITION", param_hint="--against")
    return system, condition


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    sides = {f"{side}_{what}": row[side][what] for side in ("first", "second") for what in ("system", "condition")}
    beside = {"first", "second", "facets", "levels", "table"}
    return {**sides, **row["facets"], **{key: value for key, value in row.items() if key not in beside}}


def _parts_tables(found: Any, by: tuple[str, ...]) -> None:
    """Of each pair, metric and scorer one table: a line for each part of the items."""
    from proctor.reports import differences_table

    tables: dict[tuple[str, ...], list[Any]] = {}
    for one in found.comparisons:
        tables.setdefault((one.metric, one.scorer, str(one.first), str(one.second)), []).append(one)
    for (name, scorer, first, second), parts in tables.items():
        metric = found.card.metric(name)
        lead = {facet: (lambda one, facet=facet: str(one.facets[facet])) for facet in by}
        title = f"{metric.label} ({scorer}): {first} minus {second}"
        print_blocks([differences_table(title, metric, parts, lead)])
