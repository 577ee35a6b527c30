"""Time, tokens and money."""

from __future__ import annotations

from proctor.reports.blocks import Cell, Column, Section, Table
from proctor.reports.source import Source
from proctor.reports.words import dollars, seconds, thousands
from proctor.runs.report_data import Consumption, load_consumption

__all__ = ["consumption_section", "cost_words"]

_PARTS = (("model", "Model"), ("media", "Media"), ("queue", "Queue"), ("retry", "Retries"))


def consumption_section(source: Source) -> Section | None:
    """One table of times, one of tokens and cost; only what was recorded."""
    found = [
        (system, condition, load_consumption(source.store, run, source.table))
        for system in source.systems
        for condition in source.conditions
        for run in source.runs
        if (run.system, run.condition) == (system, condition)
    ]
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
        "Only the model's time counts against a time limit; media, queue and retries are our own machinery.",
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
