"""`proctor results`, `compare` and `export`."""

from __future__ import annotations

import json
from pathlib import Path
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
    reader_of,
)
from proctor.cli.output import console, drawn_over, interval, note, print_csv, print_json, print_table, share
from proctor.core import FailedPolicy, InputError, Metric

__all__ = ["compare", "export", "results"]

DEFAULT_STORE = "proctor.db"
_TABLES = ("jsonl", "csv", "parquet")


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
            "--as",
            metavar="official|mended",
            help="The summary of the benchmark's own program: as it is, or with its weaknesses mended.",
            show_default=False,
        ),
    ] = "",
    flags: Annotated[
        bool,
        typer.Option(
            "--flags", help="The judges' votes that a person should look at, with the answers, instead."
        ),
    ] = False,
) -> None:
    """Numbers with their intervals, denominators and what is missing.

    Example: proctor results rexsonovqa --store runs.db --by question_type --format json
    """
    from proctor.cli.summaries import Asked, show_summaries
    from proctor.runs import Options, Store
    from proctor.runs import results as compute

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
            expected = "one of them: the figures of --as official have two levels as they are"
            raise InputError(None, "--two-level", found="with --as", expected=expected)
        show_summaries(Asked(Store(store, create=False), benchmark, options), summary, output)
        return
    found = compute(Store(store, create=False), benchmark, options)
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
    from proctor.reports.words import clean
    from proctor.runs import flagged_votes
    from proctor.runs.export import safe_cell

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
        f"{benchmark}: flagged votes",
        columns,
        [[" ".join(clean(cell).split()) for cell in row] for row in rows],
    )


def _results_csv(found: Any) -> None:
    names = list(found.options.by)
    rows = [row.to_json() for row in found.rows]
    plain = [key for key in (rows[0] if rows else {}) if key not in {"facets", "levels"}]
    print_csv(
        [*plain, *names],
        [[*(row[key] for key in plain), *(row["facets"][name] for name in names)] for row in rows],
    )


def _results_table(found: Any) -> None:
    card = found.card
    split = found.options.by or (
        found.options.all_items and card.only
    )  # the level by lot is that of all that count
    for name, scorer in dict.fromkeys((row.metric, row.scorer) for row in found.rows):
        metric = card.metric(name)
        rows = [row for row in found.rows if (row.metric, row.scorer) == (name, scorer)]
        by_judge = (
            "" if scorer == "code" else f", by {scorer}" if scorer else ", not marked yet (proctor score)"
        )
        title = f"{card.title}{' (simulated)' if card.simulated else ''}: {metric.label}{by_judge}"
        chance = None if split or scorer != "code" else card.chance.get(name)
        columns, cells = _result_cells(rows, metric, found.options.by)
        print_table(
            title if chance is None else f"{title} (by lot {share(metric, chance)})",
            columns,
            [*cells, *_published_cells(card, metric, columns, found.options.by)],
        )
        console.print()
    if card.published is not None:
        note(f"published: {card.published.source}. {card.published.note}")


def _published_cells(card: Any, metric: Any, columns: list[str], by: tuple[str, ...]) -> list[list[str]]:
    """Rows of the table for what others published of this metric; they have no interval and no denominator."""
    if card.published is None:
        return []
    rest = ["–"] * (len(columns) - 3 - len(by))
    return [
        [
            row.system,
            f"{row.condition}, published" if row.condition else "published",
            *(row.facets[name] for name in by),
            share(metric, row.values[metric.name]),
            *rest,
        ]
        for row in card.published.split(metric.name, by)
    ]


def _policy_note(found: Any) -> None:
    options = found.options
    if any(row.policy for row in found.rows):
        note(policy_line(options.failed, found.card))
    note(drawn_over(options.draws, options.seed, two_level=options.two_level))


def policy_line(failed: FailedPolicy | None, card: Any) -> str:
    """How the items are counted that a run lacks a score for, and how to decide it."""
    from proctor.runs import FAILED_POLICIES, policies

    chosen = policies(failed, card)
    if len(chosen) > 1:
        return (
            "A range is the score of an incomplete run: its failed, unasked and unresolved items counted as wrong … left "
            "out. Run the same command again to ask them, or choose --failed wrong or exclude."
        )
    whose = "" if failed else " (the benchmark's rule)"
    return f"--failed {chosen[0]}{whose}: {FAILED_POLICIES[chosen[0]]}."


def _result_cells(rows: list[Any], metric: Any, by: tuple[str, ...]) -> tuple[list[str], list[list[str]]]:
    beside = [
        name
        for name in (
            "timed_out",
            "refused",
            "error",
            "unreadable",
            "not_submitted",
            "unresolved",
            "unmarked",
            "missing",
        )
        if any(getattr(row, name) for row in rows)
    ]
    levels = list(dict.fromkeys([*metric.levels, *(level for row in rows for level in row.levels)]))
    numbers = ("n", "groups", "answered", "failed", *beside)
    columns = ["system", "condition", *by, ">value", ">interval"]
    columns += [f">{name.replace('_', ' ')}" for name in numbers] + [f">{level}" for level in levels]
    cells = [
        [
            row.system,
            row.condition,
            *(row.facets[name] for name in by),
            score(metric, row),
            interval(metric, row.ci_low, row.ci_high),
            *(str(getattr(row, name)) for name in numbers),
            *(str(row.levels.get(level, 0)) for level in levels),
        ]
        for row in rows
    ]
    return columns, cells


def score(metric: Metric, row: Any) -> str:
    """The value of a row, or its range where the run is incomplete and nothing is decided."""
    from proctor.runs import BOTH

    if row.policy != BOTH:
        return share(metric, row.value)
    return f"{share(metric, row.if_wrong)} … {share(metric, row.if_excluded)}"


def compare(
    benchmark: BenchmarkName,
    store: StoreUrl = DEFAULT_STORE,
    systems: Systems = None,
    conditions: Conditions = None,
    metrics: Annotated[
        list[str] | None,
        typer.Option("--metric", help="Only this metric; may be repeated.", show_default=False),
    ] = None,
    by: Annotated[
        str, typer.Option("--by", metavar="FACET[,FACET]", help="Split by these facets.", show_default=False)
    ] = "",
    against: Annotated[
        str,
        typer.Option(
            "--against",
            metavar="SYSTEM/CONDITION",
            help="Set every run against this one.",
            show_default=False,
        ),
    ] = "",
    failed: FailedOption = None,
    output: Output = OutputFormat.TABLE,
    all_items: AllItems = False,
    draws: Draws = 2000,
    seed: Seed = 0,
) -> None:
    """Two conditions (or two systems) side by side: cross-setting tables and the paired difference.

    With two or more --system and one --condition (or one that they share alone), systems are compared; else
    conditions of each system;
    with --against, each run is set against that one (is the lead over the floor real?).
    --system SYSTEM/CONDITION names a run; with --by, each part of the items is compared by itself.

    Example: proctor compare rexsonovqa --store runs.db --condition text-only --condition video
    """
    from proctor.runs import Options, Store
    from proctor.runs import compare as compute

    options = Options(
        by=tuple(name.strip() for name in by.split(",") if name.strip()),
        systems=tuple(systems or ()),
        conditions=tuple(conditions or ()),
        failed=failed,
        all_items=all_items,
        draws=draws,
        seed=seed,
    )
    other = _run_name(against) if against else None
    opened = Store(store, create=False)
    found = compute(opened, benchmark, options, against=other, metrics=tuple(metrics or ()))
    if output is OutputFormat.JSON:
        print_json([one.to_json() for one in found.comparisons])
        return
    flat = [_flat(one.to_json()) for one in found.comparisons]
    if output is OutputFormat.CSV:
        print_csv(list(flat[0]) if flat else [], [list(row.values()) for row in flat])
        return
    if options.by:
        _parts_tables(found, options.by)
        return
    for one in found.comparisons:
        _comparison_table(one, found.card.metric(one.metric))
    if any(one.policy for one in found.comparisons):
        note(policy_line(failed, found.card))


def _run_name(text: str) -> tuple[str, str]:
    system, slash, condition = text.rpartition("/")
    if not slash or not system or not condition:
        raise typer.BadParameter("expected SYSTEM/CONDITION", param_hint="--against")
    return system, condition


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    sides = {
        f"{side}_{what}": row[side][what] for side in ("first", "second") for what in ("system", "condition")
    }
    beside = {"first", "second", "facets", "levels", "table"}
    return {**sides, **row["facets"], **{key: value for key, value in row.items() if key not in beside}}


def _parts_tables(found: Any, by: tuple[str, ...]) -> None:
    """Of each pair, metric and scorer one table: a line for each part of the items."""
    from proctor.reports.words import difference as signed
    from proctor.reports.words import p_value

    tables: dict[tuple[str, ...], list[Any]] = {}
    for one in found.comparisons:
        tables.setdefault((one.metric, one.scorer, str(one.first), str(one.second)), []).append(one)
    for (name, scorer, first, second), parts in tables.items():
        metric = found.card.metric(name)
        rows = [
            [
                *(one.facets[facet] for facet in by),
                signed(metric, one.difference.value),
                interval(metric, one.difference.ci_low, one.difference.ci_high),
                p_value(one.difference.p),
                p_value(one.p_holm),
                str(one.difference.n),
                str(one.difference.groups),
            ]
            for one in parts
        ]
        columns = [*by, ">difference", ">interval", ">p", ">Holm", ">n", ">groups"]
        print_table(f"{metric.label} ({scorer}): {first} minus {second}", columns, rows)


def _comparison_table(one: Any, metric: Any) -> None:
    from proctor.reports.words import p_value
    from proctor.runs import BOTH

    difference = one.difference
    title = f"{metric.label} ({one.scorer}): {one.first} against {one.second}"
    if one.table is not None:
        rows = [
            [level, *(str(count) for count in counts), str(sum(counts))]
            for level, counts in zip(one.levels, one.table, strict=True)
        ]
        sums = [sum(column) for column in zip(*one.table, strict=True)]
        rows.append(["total", *(str(count) for count in sums), str(sum(sums))])
        print_table(title, [f"{one.first} ↓", *(f">{level}" for level in one.levels), ">total"], rows)
        if one.other_levels:
            note(f"{one.other_levels} items have an outcome outside these levels (contradictory verdicts).")
    else:
        console.print(title, style="bold", markup=False)
    p, holm = p_value(difference.p), p_value(one.p_holm)
    value = share(metric, difference.value)
    if one.policy == BOTH:
        value = f"{share(metric, one.if_wrong.value)} … {share(metric, one.if_excluded.value)}"
        holm += "" if difference.p is not None else ", undecided: the two readings point different ways"
    console.print(
        f"difference {value} ({interval(metric, difference.ci_low, difference.ci_high)}), "
        f"p {p}, Holm {holm}; {difference.n} items in {difference.groups} groups; only one side: {one.only_first} / {one.only_second}",
        markup=False,
        highlight=False,
    )
    if one.recovered is not None and one.recovered[1]:
        right, wrong = one.recovered
        console.print(
            f"recovery rate {right / wrong:.0%}: of {wrong} wrong without the media, {right} right with them",
            markup=False,
            highlight=False,
        )
    console.print()


def export(
    benchmark: BenchmarkName,
    out: Annotated[Path, typer.Option("--out", help="The file to write.", show_default=False)],
    form: Annotated[
        str,
        typer.Option(
            "--format",
            help="jsonl, csv or parquet; one run as a submission: answer or responses (focus), "
            "submission (clinicalskillqa).",
        ),
    ] = "jsonl",
    store: StoreUrl = DEFAULT_STORE,
    systems: Systems = None,
    conditions: Conditions = None,
    all_items: AllItems = False,
) -> None:
    """One row per item, system, condition and metric, as JSON Lines, CSV or Parquet; or a run as a submission.

    Example: proctor export rexsonovqa --store runs.db --format parquet --out rexsonovqa.parquet
    """
    from proctor.benchmarks.submissions import WritesSubmissions
    from proctor.runs import Store, chosen_runs
    from proctor.runs import export as write

    opened = Store(store, create=False)
    reader: object = reader_of(benchmark) if form not in _TABLES else None
    if isinstance(reader, WritesSubmissions) and form in reader.submission_formats:
        runs = chosen_runs(opened, benchmark, tuple(systems or ()), tuple(conditions or ()))
        if len(runs) != 1:
            found = ", ".join(f"{run.system} / {run.condition}" for run in runs) or "no run"
            raise InputError(None, "--system and --condition", found=found, expected="one run")
        count = reader.write_submission(form, list(opened.answers(runs[0]).values()), out)
        console.print(f"{count} answers in {out}", markup=False, highlight=False)
        return
    if form not in _TABLES:
        own = reader.submission_formats if isinstance(reader, WritesSubmissions) else ()
        raise typer.BadParameter(f"expected one of {', '.join((*_TABLES, *own))}", param_hint="--format")
    rows = write(
        opened,
        benchmark,
        out,
        form,  # type: ignore[arg-type]
        all_items=all_items,
        systems=tuple(systems or ()),
        conditions=tuple(conditions or ()),
    )
    console.print(f"{rows} rows in {out}", markup=False, highlight=False)
