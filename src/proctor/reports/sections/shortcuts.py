"""The item audit: text-only shortcuts to someone who does not look."""

from __future__ import annotations

from proctor.audits.items import FormatAudit, Histogram, ItemAudit, OptionAudit
from proctor.core import ACCURACY, interval, p_value, percent, plain_name
from proctor.core.formats import option_letters
from proctor.reports.blocks import Block, Cell, Column, Figure, Folded, Prose, Section, Span, Table
from proctor.reports.figures import Columns, draw_columns
from proctor.reports.tables import span_of
from proctor.stats import Estimate

_MOST_BASELINES = 8


def audit_section(audit: ItemAudit | None) -> Section | None:
    """For each answer format the best text-only accuracy against chance, and what gives it away."""
    if audit is None:
        return None
    blocks: list[Block | str] = []
    for place, one in enumerate(audit.formats):
        blocks.append(f"{plain_name(one.kind).capitalize()} ({one.n} items, {one.groups} groups)")
        blocks += _format_blocks(one, f"audit-{place}")
    if audit.repeats:
        blocks.append(
            Prose(
                f"Right answers that occur again in another question of the same group: {len(audit.repeats)}. Who has "
                "read all questions may know them."
            )
        )
    if audit.left_out:
        blocks.append(
            Prose("Not audited:", tuple(f"{plain_name(kind)}: {why}" for kind, why in audit.left_out.items()))
        )
    return Section(
        key="audit",
        title="Text-only shortcuts",
        lead="Rules and classifiers that read the question and the options, and never see the media, try to answer. "
        "Where they do better than chance, a score says less about looking.",
        blocks=blocks,
    )


def _format_blocks(one: FormatAudit, anchor: str) -> list[Block]:
    blocks: list[Block] = [Prose(_verdict(one))]
    if one.baselines:
        blocks.append(_baselines(one))
    if one.options is not None:
        blocks += _options(one.options, anchor)
    if one.selected is not None and one.selected.facets:
        blocks.append(Folded("Best text-only accuracy by facet", (_facets(one),)))
    return blocks


def _verdict(one: FormatAudit) -> str:
    if one.selected is None:
        return f"No best text-only accuracy: {one.unselected}."
    found = one.selected
    said = f"The best text-only accuracy is {_with_interval(found.accuracy)}"
    if found.chance is None:
        return f"{said}; the best constant answer scores {percent(one.constant_share)}."
    against = f"chance is {percent(found.chance)}"
    if found.covers_chance:
        return f"{said}; {against}: the interval covers it, so the audit has found nothing."
    return f"{said}; {against}. Each baseline was chosen on other groups than it was tried on."


def _baselines(one: FormatAudit) -> Table:
    rows = tuple(
        (
            Cell(each.name, below=each.label),
            "fixed rule" if each.kind == "rule" else "learned",
            Cell(percent(each.accuracy.value), strong=each.p_holm is not None and each.p_holm <= 0.05),
            interval(ACCURACY, each.accuracy.ci_low, each.accuracy.ci_high),
            Cell("", span=_span(each.accuracy, each.chance)),
            p_value(each.p_holm),
        )
        for each in one.baselines[:_MOST_BASELINES]
    )
    more = len(one.baselines) - len(rows)
    columns = (
        Column("TextBaseline"),
        Column("Kind"),
        Column("Accuracy", numeric=True),
        Column("95 % interval", numeric=True),
        Column("0 to 100 %"),
        Column("p above chance (Holm)", numeric=True),
    )
    caption = "Ways to answer without looking, best first; bold where significantly above chance."
    return Table(f"{caption} {more} weaker ones are left out." if more > 0 else caption, columns, rows)


def _options(options: OptionAudit, anchor: str) -> list[Block]:
    blocks: list[Block] = []
    for place, found in enumerate(options.key_positions):
        names = option_letters(found.options)
        title = f"Where the right option stands, of {found.options}"
        blocks.append(_histogram(found, names, title, f"{anchor}-key-{place}"))
    for place, found in enumerate(options.length_ranks):
        names = [_rank(rank, found.options) for rank in range(1, found.options + 1)]
        title = f"Length of the right option among {found.options}, shortest first"
        blocks.append(_histogram(found, names, title, f"{anchor}-length-{place}"))
    blocks.append(
        Prose(
            f"The right option is shorter than every other in {options.strictly_shortest} items, and longer than "
            f"every other in {options.strictly_longest}."
        )
    )
    telling = [one for one in options.contrasts if one.p_holm is not None and one.p_holm <= 0.05]
    if telling:
        rows = tuple((Cell(one.label), f"{one.right:.2f}", f"{one.wrong:.2f}", p_value(one.p_holm)) for one in telling)
        columns = (
            Column("Feature"),
            Column("Right options", numeric=True),
            Column("Wrong options", numeric=True),
            Column("p (Holm)", numeric=True),
        )
        table = Table("What significantly separates right options from wrong ones: means of each.", columns, rows)
        blocks.append(Folded(f"Features that tell ({len(telling)})", (table,)))
    return blocks


def _histogram(found: Histogram, names: list[str], title: str, anchor: str) -> Figure:
    even = sum(found.counts) / found.options
    drawn = draw_columns(anchor, title, Columns(names, found.counts, even))
    return Figure(
        drawn, f"{title}. If all places were alike, a spread as uneven as this had p {p_value(found.p)} ({found.test})."
    )


def _facets(one: FormatAudit) -> Table:
    selected = one.selected
    rows = tuple(
        (
            Cell(f"{plain_name(each.facet)}: {each.value}"),
            percent(each.accuracy.value),
            interval(ACCURACY, each.accuracy.ci_low, each.accuracy.ci_high),
            percent(each.chance),
            each.accuracy.n,
        )
        for each in (selected.facets if selected else ())
    )
    columns = (
        Column("Items with"),
        Column("Accuracy", numeric=True),
        Column("95 % interval", numeric=True),
        Column("Chance", numeric=True),
        Column("Items", numeric=True),
    )
    return Table("The selected baselines, facet by facet.", columns, rows)


def _rank(rank: int, options: int) -> str:
    return "shortest" if rank == 1 else "longest" if rank == options else f"{rank}."


def _with_interval(one: Estimate) -> str:
    if one.ci_low is None:
        return percent(one.value)
    return f"{percent(one.value)} (95 % interval {interval(ACCURACY, one.ci_low, one.ci_high)})"


def _span(one: Estimate, chance: float | None) -> Span | None:
    return span_of((0.0, 1.0), one.ci_low, one.value, one.ci_high, chance)
