"""The report's sections on completion and failures, time and cost, and provenance."""

from __future__ import annotations

import json
from collections.abc import Sequence

from proctor.core import (
    DASH,
    Cell,
    FailedPolicy,
    Row,
    Table,
    columns,
    count_of,
    dollars,
    plain_name,
    seconds,
    thousands,
)
from proctor.reports.blocks import Block, Folded, Prose, Section
from proctor.reports.costs import cost_words
from proctor.reports.figures import RIGHT, Axis, ChartSeries, Panel, Stack
from proctor.reports.report_numbers import Source
from proctor.reports.subgroups import rows_figure
from proctor.results import BOTH, FAILED_POLICIES, Consumption, Result, policies
from proctor.runs import Run, repeats_of

_STATUSES = (
    ChartSeries("answered", RIGHT),
    *(
        ChartSeries(name, -1 - number)
        for number, name in enumerate(
            (
                "unreadable",
                "not submitted",
                "refused",
                "timed out",
                "error",
                "failed",
                "not asked",
                "abstained",
                "unsupported",
            )
        )
    ),
)
"""The statuses of `status_counts`: answers in blue, everything that is missing in hatched greys."""


def statuses_section(source: Source) -> Section | None:
    """A bar for each run, with a table of the numbers."""
    runs = source.ordered_runs
    if not runs:
        return None
    counts = [list(source.statuses(run).values()) for run in runs]
    what = "Answers" if any(repeats_of(run.settings) > 1 for run in runs) else "Items"
    there = [number for number, column in enumerate(zip(*counts, strict=True)) if any(column)]
    failures = sum(sum(found[1:-1]) for found in counts)  # without what a system does not support
    blocks: list[Block | str]
    if there == [0] and len({sum(found) for found in counts}) == 1:
        blocks = [Prose(_all_answered(sum(counts[0]), what))]
    else:
        blocks = [_statuses_figure(source, counts, there, what)]
    if flags := _flags(source):
        blocks += ["Flags of the judges' replies", flags]
    return Section(
        key="statuses",
        title=_COMPLETION,
        lead="Unreadable, refused and timed-out answers, errors of the system, and answers that a submission lacks "
        "are the system's own failures and count as wrong. So do abstentions, except on questions that can't be answered. Failed ones are infrastructure errors: they are not "
        "answers, and are asked again when the run is resumed.",
        blocks=blocks,
        finding=_lacking(counts) or "all answered",
        count=thousands(failures) if failures else "",
    )


_COMPLETION = "Completion"


def _all_answered(count: int, what: str) -> str:
    items = f"Every run answered all {count_of(count, 'item')}."
    return items if what == "Items" else f"Every run gave all {count_of(count, 'answer')}."


def _statuses_figure(source: Source, counts: Sequence[Sequence[int]], there: Sequence[int], what: str) -> Block:
    """A bar for each run with the statuses that are `there`, and its numbers."""
    runs, one_condition = source.ordered_runs, len(source.conditions) == 1
    names = [run.system if one_condition else f"{run.system} / {run.condition}" for run in runs]
    shown = [_STATUSES[number] for number in there]
    of_shown = [[found[number] for number in there] for found in counts]
    rows: list[Row] = [
        (Cell(run.system), run.condition, *own, sum(found))
        for run, own, found in zip(runs, of_shown, counts, strict=True)
    ]
    heads = columns("System", "Condition", *(f">{status.name.capitalize()}" for status in shown), f">{what}")
    bars = [Stack(own) for own in of_shown]
    return rows_figure(
        "statuses-0",
        _COMPLETION,
        names,
        [Panel("", bars)],
        Axis((0.0, max(1.0, *map(sum, counts)))),
        series=shown,
        caption=f"{what} by how the question ended, for each run.",
        numbers=Table(f"{what} by how the question ended, for each run.", heads, tuple(rows)),
    )


def _lacking(counts: Sequence[Sequence[int]]) -> str:
    """How many items of all runs ended otherwise than with an answer."""
    sums = [sum(column) for column in zip(*counts, strict=True)]
    named = [f"{thousands(count)} {status.name}" for status, count in zip(_STATUSES, sums, strict=True)][1:]
    return ", ".join(text for text, count in zip(named, sums[1:], strict=True) if count)


def _flags(source: Source) -> Table | None:
    """How many replies of judges are flagged: this says something of the judge, so that it ranks no system. Answers
    without a reply are not counted, whatever the policy."""
    rows: list[Row] = [
        (Cell(row.system), row.condition, source.label(key), f"{thousands(flagged)} of {thousands(judged)}")
        for key in source.flags
        for row in source.overall
        if (row.metric, row.scorer) == (key.metric, key.scorer)
        for flagged, judged in [_flagged(row)]
        if flagged
    ]
    heads = columns("System", "Condition", "Flag", ">Answers")
    return Table("Answers whose judge's reply is flagged.", heads, tuple(rows)) if rows else None


def _flagged(row: Result) -> tuple[int, int]:
    """The numbers of flagged replies and of all replies. Of items with fewer replies than others in several repetitions
    each counts alike, so that the first number is then about right."""
    lacking = row.failed + row.missing + row.unresolved if row.policy in {BOTH, FailedPolicy.WRONG} else 0
    replies = row.n * row.repetitions - lacking
    return round((row.if_excluded or 0.0) * replies), replies


_PARTS = (("model", "Model"), ("media", "Media"), ("queue", "Queue"), ("retry", "Retries"))


def consumption_section(source: Source) -> Section | None:
    """Tables of times, and of tokens and cost, as far as recorded."""
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
        finding=spent_words([one for _, _, one in found]),
    )


def spent_words(found: Sequence[Consumption]) -> str:
    """What all runs cost together, at least where a price is unknown, and the range of their median times."""
    costs = [one.cost_usd for one in found if one.cost_usd is not None]
    least = "at least " if any(one.unpriced for one in found) else ""
    cost = f"{least}{dollars(sum(costs))} in all" if costs else ""
    medians = sorted(one.seconds["model"].median for one in found if "model" in one.seconds)
    times = f"median {seconds(medians[0])} to {seconds(medians[-1])} s an answer" if medians else ""
    return ", ".join(text for text in (cost, times) if text)


def _times(found: list[tuple[str, str, Consumption]]) -> Table:
    parts = [(name, label) for name, label in _PARTS if any(name in one.seconds for _, _, one in found)]
    rows: list[Row] = []
    for system, condition, one in found:
        timed = next(iter(one.seconds.values()), None)
        spent = [one.seconds.get(name) for name, _ in parts]
        each = (
            pair for time in spent for pair in ((seconds(time.median), seconds(time.p90)) if time else (DASH, DASH))
        )
        rows.append((Cell(system), condition, thousands(timed.n) if timed else DASH, *each))
    heads = [head for _, label in parts for head in (f">{label}: median s", ">90 % s")]
    caption = "Seconds for one answer, failed ones left out; a dash where none was recorded."
    return Table(caption, columns("System", "Condition", ">Answers timed", *heads), tuple(rows))


def _tokens(found: list[tuple[str, str, Consumption]]) -> Table:
    rows: list[Row] = [
        (
            Cell(system),
            condition,
            *map(thousands, (one.requests or None, one.input_tokens, one.cached_tokens, one.output_tokens)),
            cost_words(one),
        )
        for system, condition, one in found
    ]
    heads = columns("System", "Condition", ">Requests", ">Input tokens", ">of them cached", ">Output tokens", ">Cost")
    caption = "Requests to models with their tokens and cost over the whole run; a dash where no request was recorded."
    return Table(caption, heads, tuple(rows))


def provenance_section(source: Source) -> Section:
    """The benchmark's notes, and each run's notes and settings."""
    facts = tuple((Cell(name), shown) for name, shown in _facts(source))
    blocks: list[Prose | Folded | Table] = [
        Table("What was evaluated, and how intervals were drawn.", columns("Fact", "Value"), facts)
    ]
    if source.card.notes:
        blocks.append(Prose("Of the benchmark:", source.card.notes))
    notes = [
        Prose(f"{run.system} / {run.condition}:", tuple(str(note) for note in said))
        for run in source.runs
        if isinstance(said := run.settings.get("notes"), list) and said
    ]
    if notes:
        blocks.append(Folded(f"Notes on {count_of(len(notes), 'run')}", tuple(notes)))
    if any(run.settings for run in source.runs):  # absent in public copies of a store
        rows = tuple((Cell(run.system), run.condition, _settings(run)) for run in source.runs)
        heads = columns("System", "Condition", "Settings")
        caption = "Everything that was recorded to change a run's answers."
        blocks.append(Folded(f"Settings of {count_of(len(rows), 'run')}", (Table(caption, heads, rows),)))
    return Section(
        key="provenance",
        title="Where the numbers come from",
        lead="What a reader should know before quoting a number.",
        blocks=blocks,
        finding=f"{count_of(len(source.table), 'item')}, {count_of(len(source.runs), 'run')}, newest {source.newest[:10]}",
    )


def _facts(source: Source) -> list[tuple[str, str]]:
    """Name and value."""
    card, options = source.card, source.options
    seeds = [f"{plain_name(name)} {seed}" for name, seed in sorted(card.seeds.items())]
    seeds.append(f"resampling {options.seed} ({thousands(options.draws)} draws)")
    kept = ", ".join(f"{name} = {json.dumps(wanted)}" for name, wanted in card.only.items())
    total, counted = len(source.everything), thousands(len(source.table))
    if len(source.table) < total:
        counted += f" of {thousands(total)} (those with {kept})"
    chosen = policies(options.failed, card)
    policy = FAILED_POLICIES[chosen[0]]
    if len(chosen) > 1:
        policy = "an incomplete run's score is a range: items without one counted as wrong … left out"
    return [
        ("Items", counted),
        ("Groups", f"{thousands(len(source.table.groups))} (resampled together)"),
        ("Systems", thousands(len(source.systems))),
        ("Conditions", ", ".join(source.conditions) or "none"),
        ("Items without a score", policy),
        ("Newest run", source.newest),
        ("Seeds", "; ".join(seeds)),
        ("Fingerprint", source.fingerprint),
        *([("Study", "; ".join(source.studies))] if source.studies else []),
    ]


def _settings(run: Run) -> str:
    settings = {name: value for name, value in run.settings.items() if name != "notes"}
    return json.dumps(settings, ensure_ascii=False, sort_keys=True)
