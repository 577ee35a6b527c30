"""What was evaluated: completion and failures, time and cost, provenance."""

from __future__ import annotations

import json

from proctor.core import dollars, plain_name, seconds, thousands
from proctor.reports.blocks import Cell, Column, Figure, Folded, Prose, Section, Table, columns
from proctor.reports.figures import Bars, draw_bars
from proctor.reports.source import Source
from proctor.runs import FAILED_POLICIES, Consumption, Run, policies

_NAMES = {
    "readable": "answered",
    "unreadable": "answered, unreadable",
    "not_submitted": "not submitted",
    "refused": "refused",
    "timed_out": "timed out",
    "error": "error",
    "failed": "failed",
    "not_asked": "not asked",
    "unsupported": "unsupported format",
}


def statuses_section(source: Source) -> Section | None:
    """One bar a run, with its numbers in a table."""
    rows: list[str] = []
    counts: list[list[int]] = []
    cells: list[tuple[Cell | str | int, ...]] = []
    for run in source.ordered_runs:
        found = list(source.statuses(run).values())
        rows.append(run.system if len(source.conditions) == 1 else f"{run.system} / {run.condition}")
        counts.append(found)
        cells.append((Cell(run.system), run.condition, *found, sum(found)))
    if not rows:
        return None
    parts = list(_NAMES.values())
    columns = (
        Column("System"),
        Column("Condition"),
        *(Column(name.capitalize(), numeric=True) for name in parts),
        Column("Items", numeric=True),
    )
    title = "Completion and failures"
    table = Table("Items by how the question ended.", columns, tuple(cells))
    return Section(
        key="statuses",
        title=title,
        lead="Unreadable, refused and timed-out answers, errors of the system, and answers that a submission lacks are the "
        "system's own failures and count as wrong. Failed ones are infrastructure errors: they are not answers, and are "
        "asked again when the run is resumed.",
        blocks=[Figure(draw_bars("statuses-0", title, Bars(rows, parts, counts)), "Items by run.", table)],
    )


_PARTS = (("model", "Model"), ("media", "Media"), ("queue", "Queue"), ("retry", "Retries"))


def consumption_section(source: Source) -> Section | None:
    """One table of times, one of tokens and cost; only what was recorded."""
    found = [(run.system, run.condition, source.consumption(run)) for run in source.ordered_runs]
    blocks = []
    if any(one.seconds for _, _, one in found):
        blocks.append(_times(found))
    if any(one.requests for _, _, one in found):
        blocks.append(_tokens(found))
    if not blocks:
        return None
    return Section(
        key="consumption",
        title="Time and cost",
        lead="Seconds for one answer: half of the answers took at most the median, nine in ten at most the 90 % value. "
        "Only the model's time counts against a time limit; media, queue and retries are Proctor's own.",
        blocks=blocks,
    )


def cost_words(one: Consumption) -> str:
    """The cost of a run; unknown is not free.

    >>> cost_words(Consumption({}, 3, 10, 10, 0, None, 3))
    'unknown'
    """
    if not one.requests:
        return "–"
    if one.cost_usd is None:
        return "unknown"
    if one.unpriced:
        return f"{dollars(one.cost_usd)} and unknown for {one.unpriced} answers"
    return dollars(one.cost_usd)


def _times(found: list[tuple[str, str, Consumption]]) -> Table:
    parts = [(name, label) for name, label in _PARTS if any(name in one.seconds for _, _, one in found)]
    rows: list[tuple[Cell | str | int, ...]] = []
    for system, condition, one in found:
        timed = next(iter(one.seconds.values()), None)
        row: list[Cell | str | int] = [Cell(system), condition, thousands(timed.n) if timed else "–"]
        for name, _ in parts:
            spent = one.seconds.get(name)
            row += [seconds(spent.median), seconds(spent.p90)] if spent else ["–", "–"]
        rows.append(tuple(row))
    columns = [Column("System"), Column("Condition"), Column("Answers timed", numeric=True)]
    for _, label in parts:
        columns += [Column(f"{label}: median s", numeric=True), Column("90 % s", numeric=True)]
    caption = "Seconds for one answer, failed ones left out; a dash where none was recorded."
    return Table(caption, tuple(columns), tuple(rows))


def _tokens(found: list[tuple[str, str, Consumption]]) -> Table:
    rows = tuple(
        (
            Cell(system),
            condition,
            thousands(one.requests or None),
            thousands(one.input_tokens),
            thousands(one.cached_tokens),
            thousands(one.output_tokens),
            cost_words(one),
        )
        for system, condition, one in found
    )
    columns = (
        Column("System"),
        Column("Condition"),
        Column("Requests", numeric=True),
        Column("Input tokens", numeric=True),
        Column("of them cached", numeric=True),
        Column("Output tokens", numeric=True),
        Column("Cost", numeric=True),
    )
    caption = "Requests to models with their tokens and cost over the whole run; a dash where no request was recorded."
    return Table(caption, columns, rows)


def _facts(source: Source) -> list[tuple[str, str]]:
    """Name and value."""
    card, options = source.card, source.options
    seeds = [f"{plain_name(name)} {seed}" for name, seed in sorted(card.seeds.items())]
    seeds.append(f"resampling {options.seed} ({thousands(options.draws)} draws)")
    kept = ", ".join(f"{name} = {json.dumps(wanted)}" for name, wanted in card.only.items())
    total = len(source.everything)
    counted = thousands(len(source.table.ids))
    if len(source.table.ids) < total:
        counted += f" of {thousands(total)} (those with {kept})"
    return [
        ("Items", counted),
        ("Groups", f"{thousands(len(source.table.groups))} (resampled together)"),
        ("Systems", thousands(len(source.systems))),
        ("Conditions", ", ".join(source.conditions) or "none"),
        ("Items without a score", _policy(source)),
        ("Newest run", source.newest),
        ("Seeds", "; ".join(seeds)),
        ("Fingerprint", source.fingerprint),
    ]


def _policy(source: Source) -> str:
    chosen = policies(source.options.failed, source.card)
    if len(chosen) == 1:
        return FAILED_POLICIES[chosen[0]]
    return "an incomplete run's score is a range: items without one counted as wrong … left out"


def provenance_section(source: Source) -> Section:
    """The benchmark's notes, and each run's notes and settings."""
    facts = Table(
        "What was evaluated, and how intervals were drawn.",
        columns("Fact", "Value"),
        tuple((Cell(name), shown) for name, shown in _facts(source)),
    )
    blocks: list[Prose | Folded | Table] = [facts]
    if source.card.notes:
        blocks.append(Prose("Of the benchmark:", source.card.notes))
    notes = [
        Prose(f"{run.system} / {run.condition}:", tuple(str(note) for note in said))
        for run in source.runs
        if isinstance(said := run.settings.get("notes"), list) and said
    ]
    if notes:
        blocks.append(Folded(f"Notes on {len(notes)} runs", tuple(notes)))
    if any(run.settings for run in source.runs):  # a public copy of a store has none
        rows = tuple((Cell(run.system), run.condition, _settings(run)) for run in source.runs)
        heads = columns("System", "Condition", "Settings")
        caption = "Everything that was recorded to change a run's answers."
        blocks.append(Folded(f"Settings of all {len(rows)} runs", (Table(caption, heads, rows),)))
    return Section(
        key="provenance",
        title="Where the numbers come from",
        lead="What a reader should know before quoting a number.",
        blocks=blocks,
    )


def _settings(run: Run) -> str:
    settings = {name: value for name, value in run.settings.items() if name != "notes"}
    return json.dumps(settings, ensure_ascii=False, sort_keys=True)
