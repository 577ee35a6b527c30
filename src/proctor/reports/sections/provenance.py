"""Where the numbers come from: the head of the report, and every run's settings at its end."""

from __future__ import annotations

import json

from proctor.reports.blocks import Cell, Column, Folded, Prose, Section, Table
from proctor.reports.source import Source
from proctor.reports.words import plain_name, thousands
from proctor.runs import FAILED_POLICIES, Run, policies
from proctor.runs.report_data import newest_run

__all__ = ["facts", "provenance_section"]


def facts(source: Source) -> list[tuple[str, str]]:
    """What stands under the title: name and value."""
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
        ("Groups", f"{thousands(len(source.table.groups))} (what shares one is drawn together)"),
        ("Systems", thousands(len(source.systems))),
        ("Conditions", ", ".join(source.conditions) or "none"),
        ("Items without a score", _policy(source)),
        (
            "Newest run",
            (newest_run(source.store, source.benchmark) or "none")
            .replace("T", " ")
            .replace("+00:00", " UTC"),
        ),
        ("Seeds", "; ".join(seeds)),
        ("Fingerprint", source.store.fingerprint(source.benchmark)),
    ]


def _policy(source: Source) -> str:
    chosen = policies(source.options.failed, source.card)
    if len(chosen) == 1:
        return FAILED_POLICIES[chosen[0]]
    return "an incomplete run's score is a range: items without one counted as wrong … left out"


def provenance_section(source: Source) -> Section:
    """The benchmark's notes, and each run's notes and settings."""
    blocks: list[Prose | Folded | Table] = []
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
        columns = (Column("System"), Column("Condition"), Column("Settings"))
        caption = "Everything that was recorded to change a run's answers."
        blocks.append(Folded(f"Settings of all {len(rows)} runs", (Table(caption, columns, rows),)))
    return Section(
        key="provenance",
        title="Where the numbers come from",
        lead="What a reader should know before quoting a number.",
        blocks=blocks,
    )


def _settings(run: Run) -> str:
    settings = {name: value for name, value in run.settings.items() if name != "notes"}
    return json.dumps(settings, ensure_ascii=False, sort_keys=True)
