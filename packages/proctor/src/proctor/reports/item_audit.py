"""The section of the item audit: how well the text alone predicts the answers."""

from __future__ import annotations

from proctor.audits.items import FormatAudit, Histogram, ItemAudit, OptionAudit, Together
from proctor.core import (
    ACCURACY,
    Cell,
    Column,
    Row,
    Table,
    columns,
    count_of,
    interval,
    number,
    number_interval,
    p_value,
    percent,
    plain_name,
)
from proctor.core.formats import option_letters
from proctor.reports.blocks import Block, Figure, Folded, Prose, Section, span_of
from proctor.reports.figures import draw_columns
from proctor.results import StoredItemAnalysis
from proctor.stats import Estimate

_MAX_BASELINES = 8
_KINDS = {"rule": "fixed rule", "learned": "learned", "model": "model"}


def audit_section(audit: ItemAudit | None, *, most: int = _MAX_BASELINES) -> Section | None:
    """For each answer format the best text-only accuracy compared with chance, and its sources; at most `most`
    baselines are shown, and every model's row."""
    if audit is None:
        return None
    blocks: list[Block | str] = []
    for row, one in enumerate(audit.formats):
        size = f"{count_of(one.n, 'item')}, {count_of(one.groups, 'group')}"
        blocks.append(f"{plain_name(one.kind).capitalize()} ({size})")
        blocks += _format_blocks(one, f"audit-{row}", most)
    if audit.repeats:
        blocks.append(
            Prose(
                f"Right answers that occur again in another question of the same group: {len(audit.repeats)}. Who has "
                "read all questions may know them."
            )
        )
    if audit.left_out:
        points = tuple(f"{plain_name(kind)}: {why}" for kind, why in audit.left_out.items())
        blocks.append(Prose("Not audited:", points))
    return Section(
        key="audit",
        title="Text-only shortcuts",
        lead="Rules and classifiers that read the question and the options, and never see the media, try to answer. "
        "Where they do better than chance, a score says less about looking.",
        blocks=blocks,
        finding="; ".join(map(_short_verdict, audit.formats)),
    )


def _short_verdict(one: FormatAudit) -> str:
    """The best text-only accuracy of a format, and chance."""
    if one.selected is None:
        return f"{plain_name(one.kind)}: none"
    chance = "" if one.selected.chance is None else f", chance {percent(one.selected.chance)}"
    return f"{plain_name(one.kind)}: {percent(one.selected.accuracy.value)}{chance}"


def _format_blocks(format_audit: FormatAudit, anchor: str, most: int) -> list[Block]:
    blocks: list[Block] = [Prose(_verdict(format_audit)), *_pools(format_audit)]
    if format_audit.baselines:
        blocks.append(_baselines(format_audit, most))
    if format_audit.options is not None:
        blocks += _options(format_audit.options, anchor)
    if format_audit.selected is not None and format_audit.selected.facets:
        rows: list[Row] = [
            (
                Cell(f"{plain_name(facet.facet)}: {facet.value}"),
                *_accuracy(facet.accuracy),
                percent(facet.chance),
                facet.accuracy.n,
            )
            for facet in format_audit.selected.facets
        ]
        heads = columns("Items with", ">Accuracy", ">95 % CI", ">Chance", ">Items")
        table = Table("The selected baselines, facet by facet.", heads, tuple(rows))
        blocks.append(Folded("Best text-only accuracy by facet", (table,)))
    return blocks


def _accuracy(estimate: Estimate) -> tuple[str, str]:
    return percent(estimate.value), interval(ACCURACY, estimate.ci_low, estimate.ci_high)


def _verdict(format_audit: FormatAudit) -> str:
    if format_audit.selected is None:
        return f"No best text-only accuracy: {format_audit.unselected}."
    found = format_audit.selected
    shown, ends = _accuracy(found.accuracy)
    said = f"The best text-only accuracy is {shown}"
    said += "" if found.accuracy.ci_low is None else f" (95 % CI {ends})"
    if found.chance is None:
        return f"{said}; the best constant answer scores {percent(format_audit.constant_share)}."
    against = f"chance is {percent(found.chance)}"
    if found.covers_chance:
        return f"{said}; {against}: the interval covers it, so the audit has found nothing."
    return f"{said}; {against}. Each baseline was chosen on other groups than it was tried on."


def _pools(format_audit: FormatAudit) -> list[Block]:
    if format_audit.pools is None:
        return []
    shown, ends = _accuracy(format_audit.pools.known)
    return [
        Prose(
            "Wrong options are right answers of other items, exchanged within "
            f"{count_of(format_audit.pools.pools, 'pool')} of groups. Who knows the right answers of all other groups reaches "
            f"{shown} (95 % CI {ends}) by elimination; so folds keep a pool together, as training and test parts must."
            f"{_together(format_audit.pools.together)}"
        )
    ]


def _together(found: Together | None) -> str:
    if found is None:
        return ""
    return (
        f" No option is right twice: a system that is right in {percent(found.alone)} alone reaches "
        f"{percent(found.together)} (simulated) if it sees all questions at once and uses each option once."
    )


def _baselines(format_audit: FormatAudit, most: int) -> Table:
    rows: list[Row] = []
    listed = [one for row, one in enumerate(format_audit.baselines) if row < most or one.kind == "model"]
    for baseline in listed:
        shown, ends = _accuracy(baseline.accuracy)
        span = span_of(
            (0.0, 1.0), baseline.accuracy.ci_low, baseline.accuracy.value, baseline.accuracy.ci_high, baseline.chance
        )
        kind = _KINDS[baseline.kind]
        missing = f"; it said nothing of {count_of(baseline.missing, 'item')}" if baseline.missing else ""
        strong = baseline.p_holm is not None and baseline.p_holm <= 0.05
        score = Cell(shown, strong=strong)
        rows.append(
            (
                Cell(baseline.name, below=f"{baseline.label}{missing}"),
                kind,
                score,
                ends,
                Cell("", span=span),
                p_value(baseline.p_holm),
            )
        )
    more = len(format_audit.baselines) - len(rows)
    heads = (
        *columns("Text-only baseline", "Kind", ">Accuracy", ">95 % CI"),
        Column("0 to 100 %", drawn=True),
        *columns(">p above chance (Holm)"),
    )
    caption = "Ways to answer without looking, best first; bold where significantly above chance. p is adjusted for all of them."
    return Table(f"{caption} {count_of(more, 'weaker one')} left out." if more > 0 else caption, heads, tuple(rows))


def _options(options: OptionAudit, anchor: str) -> list[Block]:
    blocks: list[Block] = []
    for row, found in enumerate(options.key_positions):
        title = f"Where the right option stands, of {found.options}"
        blocks.append(_histogram(found, option_letters(found.options), title, f"{anchor}-key-{row}"))
    for row, found in enumerate(options.length_ranks):
        names = ["shortest", *(f"{rank}." for rank in range(2, found.options)), "longest"]
        title = f"Length of the right option among {found.options}, shortest first"
        blocks.append(_histogram(found, names, title, f"{anchor}-length-{row}"))
    blocks.append(
        Prose(
            f"The right option is shorter than every other in {count_of(options.strictly_shortest, 'item')}, and longer "
            f"than every other in {options.strictly_longest}."
        )
    )
    telling = [contrast for contrast in options.contrasts if contrast.p_holm is not None and contrast.p_holm <= 0.05]
    if telling:
        rows = tuple(
            (
                Cell(option_contrast.label),
                number(option_contrast.right),
                number(option_contrast.wrong),
                p_value(option_contrast.p_holm),
            )
            for option_contrast in telling
        )
        heads = columns("Feature", ">Right options", ">Wrong options", ">p (Holm)")
        table = Table(
            "What significantly separates right options from wrong ones: means of each. p is adjusted for all features.",
            heads,
            rows,
        )
        blocks.append(Folded(f"Features that tell ({len(telling)})", (table,)))
    return blocks


def _histogram(found: Histogram, names: list[str], title: str, anchor: str) -> Figure:
    drawn = draw_columns(anchor, title, names, found.counts, sum(found.counts) / found.options)
    said = (
        f"If all positions were alike, a spread as uneven as this had p {p_value(found.p)} ({found.test}; items are taken as "
        "independent, p is not adjusted)."
    )
    caption, rows = (
        f"{title}. {said}",
        tuple((Cell(name), count) for name, count in zip(names, found.counts, strict=True)),
    )
    return Figure(drawn, caption, Table(caption, columns("Slot", ">Items"), rows))


_MOST_SUSPECTS = 20


def item_analysis_blocks(found: StoredItemAnalysis) -> list[Block]:
    """Mean discrimination, and the items that good systems miss and poor ones do not: keys to look at again."""
    mean, negative = found.found.mean_discrimination, found.found.negative
    said = (
        f"{count_of(len(found.items), 'item')} by {count_of(len(found.systems), 'system')} under {found.condition}: mean "
        f"discrimination (corrected item-total correlation) {number(mean.value)} ({number_interval(mean.ci_low, mean.ci_high)}), "
        f"negative in {percent(negative.value or 0.0)} ({interval(ACCURACY, negative.ci_low, negative.ci_high)}) of {negative.n}."
    )
    suspects = [row for row in found.rows() if row["suspect"]]
    if not suspects:
        return [
            Prose(f"{said} No item is missed by the better half of the systems more often than by the poorer half.")
        ]
    heads = columns("Item", ">Difficulty", ">Discrimination", ">Missed by the better half", ">Right in the poorer half")
    rows: list[Row] = [
        (
            row["item"],
            percent(row["difficulty"]),
            number(row["discrimination"]),
            percent(row["missed_by_better_half"]),
            percent(row["right_in_poorer_half"]),
        )
        for row in suspects[:_MOST_SUSPECTS]
    ]
    title = f"Keys to check: {len(suspects)} items that better systems miss more often than poorer ones"
    return [Prose(said), Table(title, heads, tuple(rows), title=title)]
