"""Scores: tables of results, what rows lack, warnings of few groups, and the report's sections with leaderboards and
published results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from proctor import core
from proctor.reports.blocks import RANK_INTERVAL_LINE, Block, Folded, Prose, Section
from proctor.results import BOTH, FAILED_POLICIES, Lacking, Results, policies
from proctor.runs import CODE
from proctor.stats import fewest_groups, least_p

if TYPE_CHECKING:
    from proctor.reports.report_numbers import Source
    from proctor.results import Leaderboard, LeaderboardRow, Result, Results
    from proctor.runs import BenchmarkCard

RANGE = "A … B: this run is incomplete. A counts missing items (failed, not asked, without a verdict) as wrong, B leaves them out."
"""What a range means."""

DECIDED_LINE = "Decided by a person: the judge left the answer unresolved, and a person gave the score instead."


def score(metric: core.Metric, row: Result | LeaderboardRow) -> str:
    """The value of a row, or its range if the run is incomplete and no policy is chosen."""
    if row.policy != BOTH:
        return core.value(metric, row.value)
    return f"{core.value(metric, row.if_wrong)} … {core.value(metric, row.if_excluded)}"


def condition_line(condition: str) -> str:
    """A condition with its meaning, if it is known.

    >>> condition_line("reversed")
    'reversed: the same pictures from last to first, while times and labels stay'
    >>> condition_line("of-a-package-that-is-not-installed")
    'of-a-package-that-is-not-installed'
    """
    from proctor.media import CONDITIONS

    meaning = CONDITIONS.get(condition).summary if condition in CONDITIONS.names() else ""
    return f"{condition}: {meaning}" if meaning else condition


def policy_line(failed: core.FailedPolicy | None, card: BenchmarkCard) -> str:
    """How items without a score are counted, and how to choose it."""
    chosen = policies(failed, card)
    if len(chosen) > 1:
        return f"{RANGE} Run the same command again to ask the missing items, or choose --failed wrong or exclude."
    whose = "" if failed else " (the benchmark's rule)"
    return f"--failed {chosen[0]}{whose}: {FAILED_POLICIES[chosen[0]]}."


def remarks(lacking: Lacking) -> list[str]:
    """What a run lacks, for a table cell.

    >>> remarks(Lacking(missing=54, untimed=3))
    ['54 missing', 'no latency 3']
    """
    counts = (
        (lacking.missing, "{} missing"),
        (lacking.not_asked, "{} not asked"),
        (lacking.failed, "{} failed"),
        (lacking.unresolved, "{} unresolved"),
        (lacking.unscored, "{} not scored"),
        (lacking.unsupported, "{} unsupported"),
        (lacking.untimed, "no latency {}"),
    )
    return [text.format(count) for count, text in counts if count]


_COUNTS = {
    "answered": "Answered",
    "failed": "Failed",
    "timed_out": "Timed out",
    "refused": "Refused",
    "error": "Error",
    "abstained": "Abstained",
    "unreadable": "Unreadable",
    "cut_off": "Of these cut off",
    "not_submitted": "Not submitted",
    "unresolved": "Unresolved",
    "decided": "Decided by a person",
    "unscored": "Unscored",
    "missing": "Not asked",
    "unsupported": "Unsupported",
}

_ALWAYS = {"answered", "failed"}


def _counts(rows: Sequence[Result]) -> list[str]:
    """The counts to show for these rows."""
    return [name for name in _COUNTS if name in _ALWAYS or any(getattr(row, name) for row in rows)]


def _tail(metric: core.Metric, counts: Sequence[str]) -> tuple[core.Column, ...]:
    """The columns with the numbers of items, groups and answers behind a score."""
    units = (
        core.Column(core.plain_name(metric.per).capitalize(), numeric=True, name="n") if metric.per else core.head("n")
    )
    named = (core.Column(_COUNTS[name], numeric=True, name=name) for name in counts)
    return (units, core.head("groups"), *named)


def results_tables(found: Results) -> list[core.Table]:
    """A table for each metric and scorer, with published results below. A metric with named levels has a second table
    with the number of answers at each level."""
    tables = []
    by = found.options.by
    for name, scorer in dict.fromkeys((row.metric, row.scorer) for row in found.rows):
        metric = found.card.metric(name)
        rows = [row for row in found.rows if (row.metric, row.scorer) == (name, scorer)]
        tables.append(_results_table(found, metric, scorer, rows))
        title = f"{metric.label}: answers at each level"
        lead = ("System", "Condition", *(core.plain_name(facet).capitalize() for facet in by))
        where: list[core.Row] = [
            (core.Cell(row.system), row.condition, *(row.facets[facet] for facet in by)) for row in rows
        ]
        levels = levels_table(f"{title}.", metric, rows, lead, where, title=title)
        tables += [levels] if levels else []
    if found.consistency or found.judged:
        from proctor.reports.consistency import consistency_tables, judgement_tables

        tables += [*consistency_tables(found), *judgement_tables(found)]
    return tables


def _results_table(found: Results, metric: core.Metric, scorer: str, rows: list[Result]) -> core.Table:
    card, by = found.card, found.options.by
    # The chance level is that of all items that count, not of a part of them.
    split = bool(by or (found.options.all_items and card.only))
    whose = "" if scorer == CODE else f", by {scorer}" if scorer else ", not scored yet (proctor score)"
    chance = None if split or scorer != CODE else card.chance.get(metric.name)
    title = f"{card.title}{' (simulated)' if card.simulated else ''}: {metric.label}{whose}"
    title += "" if chance is None else f" (chance {core.value(metric, chance)})"
    counts = _counts(rows)
    heads = (
        *core.heads("system", "condition"),
        *(core.Column(core.plain_name(facet).capitalize(), name=facet) for facet in by),
        *core.heads("value", "ci", level=found.options.level),
        *_tail(metric, counts),
    )
    cells: list[core.Row] = [
        (
            core.Cell(row.system),
            row.condition,
            *(row.facets[facet] for facet in by),
            core.Cell(score(metric, row), strong=True, raw=row.value),
            core.interval(metric, row.ci_low, row.ci_high),
            *(row.n, row.groups),
            *(int(getattr(row, name)) for name in counts),
        )
        for row in rows
    ]
    rest = [core.DASH] * (len(heads) - 3 - len(by))
    for published_row in card.published.split(metric.name, by) if card.published else ():
        where = f"{published_row.condition}, published" if published_row.condition else "published"
        shown = core.value(metric, published_row.values[metric.name])
        cells.append(
            (core.Cell(published_row.system), where, *(published_row.facets[facet] for facet in by), shown, *rest)
        )
    return core.Table(f"{title}.", heads, tuple(cells), title=title)


def levels_table(
    caption: str,
    metric: core.Metric,
    rows: Sequence[Result],
    lead: Sequence[str],
    where: Sequence[core.Row],
    *,
    title: str = "",
) -> core.Table | None:
    """The number of answers at each level: declared levels best first, then others. `where` are the first cells of each
    row. None if the metric has no levels."""
    if not any(row.levels for row in rows):
        return None
    levels = list(dict.fromkeys([*metric.levels, *(level for row in rows for level in row.levels)]))
    cells = [(*head, *(row.levels.get(level, 0) for level in levels)) for head, row in zip(where, rows, strict=True)]
    return core.Table(caption, core.columns(*lead, *(f">{level}" for level in levels)), tuple(cells), title=title)


RANGE_LINE = f"{RANGE} Such a run has a rank only if its missing items can't change any."

LACKING_LINE = "A system without a score for every item has no rank."

DOUBTFUL_LINE = (
    "Answers without a value (late, refused, unreadable) do this metric less harm than wrong ones: a system that has some "
    "has a rank only if reading them as wrong changes none."
)

UNDEFINED_LINE = (
    "The metric is not defined for a system that always says the same or never names the class, nor where all references "
    "are alike: such a system has no rank."
)


ORACLE_LINE = (
    "An oracle baseline knows the answers (it uses the references): it is shown, and enters neither ranks nor tests."
)


def row_badge(row: LeaderboardRow) -> str:
    return "disqualified" if row.disqualified else "oracle baseline" if row.oracle_baseline else ""


def leaderboard_table(board: Leaderboard, title: str) -> core.Table:
    """The systems of one condition with their ranks by one metric, for a terminal."""
    rows = tuple(
        (
            core.DASH if row.rank is None else str(row.rank),
            row.system,
            *(score(board.metric, row), core.interval(board.metric, row.ci_low, row.ci_high)),
            core.rank_range(row.rank_low, row.rank_high),
            core.percent(row.p_best),
            row_badge(row) or ("" if row.rank else ", ".join(_why_unranked(row))),
        )
        for row in board.rows
    )
    heads = (*core.heads("rank", "system", "value", "ci", "rank_ci", "p_best"), core.Column(""))
    return core.Table(title, heads, rows, title=title)


def leaderboard_notes(board: Leaderboard) -> list[str]:
    """Why systems of a `leaderboard_table` have no rank, and what the intervals of ranks promise."""
    unranked = [row for row in board.rows if row.rank is None and not (row.disqualified or row.oracle_baseline)]
    open_ones = [row for row in unranked if not (row.doubtful or row.undefined)]
    notes = (
        (any(row.policy == BOTH for row in board.rows), RANGE_LINE),
        (any(row.policy != BOTH for row in open_ones), LACKING_LINE),
        (any(row.doubtful for row in unranked), DOUBTFUL_LINE),
        (any(row.undefined for row in unranked), UNDEFINED_LINE),
        (any(row.oracle_baseline for row in board.rows), ORACLE_LINE),
        (any(row.rank_low for row in board.rows), RANK_INTERVAL_LINE),
    )
    return [note for there, note in notes if there]


def _why_unranked(row: LeaderboardRow) -> list[str]:
    """What a system lacks for a rank: never empty for one that could have one."""
    if row.undefined:
        return ["not defined"]
    counts = Lacking(
        not_asked=row.missing,
        failed=row.failed,
        unresolved=row.unresolved,
        unscored=row.unscored,
        unsupported=row.unsupported,
    )
    return [*remarks(counts), *([f"no value {row.doubtful}"] if row.doubtful else [])]


def section_notes(source: Source, board: Leaderboard, results: Mapping[str, Result]) -> list[str]:
    """What to know of a leaderboard of one condition, a sentence each."""
    unsupported = ", ".join(f"{row.system} skipped {row.unsupported}" for row in board.rows if row.unsupported)
    out = "; ".join(str(source.card.disqualified[row.system]) for row in board.rows if row.disqualified)
    notes = (
        (board.left_out, f"Left out: {core.count_of(board.left_out, 'item')} that no system has a score for."),
        (any(row.policy == BOTH for row in board.rows), RANGE_LINE),
        (unsupported, f"Unsupported items: {unsupported}. Such a system is shown on the others, and not ranked."),
        *_unranked_notes(board),
        (any(row.rank_low for row in board.rows), RANK_INTERVAL_LINE),
        (out, f"Disqualified, and not ranked: {out}."),
        (any(row.oracle_baseline for row in board.rows), ORACLE_LINE),
        (
            any(row.unresolved for row in results.values()),
            (
                "Unresolved answers have no verdict: the judge declined or gave none of the form asked for, or a panel came "
                "to no majority. They are asked again by another pass, and lacking until then."
            ),
        ),
        (any(row.decided for row in results.values()), DECIDED_LINE),
        (
            any(row.unscored for row in results.values()),
            "Unscored answers wait for their judge: they are in no average.",
        ),
    )
    return [*(note for there, note in notes if there), *(f"{note}." for note in source.served)]


def _unranked_notes(board: Leaderboard) -> list[tuple[bool, str]]:
    """Whether each reason leaves a system without a rank that could have one."""
    contestants = [row for row in board.rows if not (row.disqualified or row.oracle_baseline or row.unsupported)]
    open_ones = [row for row in contestants if row.rank is None and not (row.doubtful or row.undefined)]
    return [
        (any(row.policy != BOTH for row in open_ones), LACKING_LINE),
        (any(row.rank is None and row.doubtful for row in contestants), DOUBTFUL_LINE),
        (any(row.undefined for row in contestants), UNDEFINED_LINE),
    ]


def published_section(source: Source) -> Section | None:
    """The published results, those on parts of the items, and tables of two conditions. None if the benchmark has
    none."""
    known = source.card.published
    if known is None:
        return None
    parts = [row for row in known.rows if row.facets]
    blocks: list[Block | str] = [_published(known, [row for row in known.rows if not row.facets], f"{known.source}.")]
    if parts:
        blocks.append(_published(known, parts, "By kind of question, as far as the text gives numbers."))
    if known.crossings:
        tables = tuple(
            counts_table(
                f"{crossing.name}: {crossing.system}, {source.metric(crossing.metric).label}, as published.",
                *(crossing.conditions[0], crossing.conditions[1], crossing.levels, crossing.counts),
            )
            for crossing in known.crossings
        )
        blocks.append(Folded(f"Two conditions item by item: {core.count_of(len(tables), 'published table')}", tables))
    if known.note:
        blocks.append(Prose(known.note, quiet=True))
    return Section(
        key="published",
        title="Published results",
        lead="For orientation: these systems were not run here, so they have no interval and no rank.",
        blocks=blocks,
        finding=_best_published(known, source),
        count=core.count_of(len(known.rows), "row"),
    )


def _best_published(known: core.PublishedTable, source: Source) -> str:
    """The best published value of the headline metric on all items."""
    metric = source.metric(source.card.headline)
    values = [
        (row.values[metric.name], row.system)
        for row in known.rows
        if not row.facets and row.values.get(metric.name) is not None
    ]
    if not values:
        return ""
    best, system = (max if metric.higher_is_better else min)(values)
    return f"best {core.value(metric, best)} ({system})"


def _published(known: core.PublishedTable, shown: list[core.PublishedRow], caption: str) -> core.Table:
    """A row for each system and part, a column for each metric and condition that has a value."""
    facets = list(dict.fromkeys(name for row in shown for name in row.facets))
    metrics = {metric.name: metric for metric in known.metrics}
    values: dict[core.Row, dict[tuple[str, str], float]] = {}
    for row in shown:
        where = (row.system, *(row.facets.get(name, "") for name in facets))
        values.setdefault(where, {}).update({(name, row.condition): value for name, value in row.values.items()})
    conditions = list(dict.fromkeys(row.condition for row in shown))
    there = {key for own in values.values() for key in own}
    keys = [(name, condition) for name in metrics for condition in conditions if (name, condition) in there]
    heads = core.columns(
        *("System", *(core.plain_name(name).capitalize() for name in facets)),
        *(f">{metrics[name].label}{f', {condition}' if condition else ''}" for name, condition in keys),
    )
    rows: list[core.Row] = [
        (
            core.Cell(str(system), badge="published"),
            *parts,
            *(core.value(metrics[key[0]], own.get(key)) for key in keys),
        )
        for (system, *parts), own in values.items()
    ]
    return core.Table(caption, heads, tuple(rows))


def counts_table(
    caption: str, down: str, across: str, levels: Sequence[str], counts: Sequence[Sequence[int]], *, title: str = ""
) -> core.Table:
    """A contingency table with sums and a bold diagonal."""
    sums = [sum(column) for column in zip(*counts, strict=True)]
    rows: list[core.Row] = [
        (
            core.Cell(level),
            *(core.Cell(str(count), strong=row == column, raw=count) for column, count in enumerate(line)),
            sum(line),
        )
        for row, (level, line) in enumerate(zip(levels, counts, strict=True))
    ]
    heads = core.columns(f"{down} ↓  {across} →", *(f">{level}" for level in levels), ">Total")
    return core.Table(caption, heads, tuple(rows), ("Total", *sums, sum(sums)), title=title)


_FEW_ITEMS, _MANY_METRICS = 10, 3


def few_groups_line(groups: int, level: float = 0.95) -> str:
    """A warning that no difference can be significant with so few groups; empty if one can."""
    needed = fewest_groups(1 - level)
    if not groups or groups >= needed:
        return ""
    most = (
        f"the smallest possible p is {core.p_value(least_p(groups))}" if groups > 1 else "there is nothing to resample"
    )
    return (
        f"With {core.count_of(groups, 'group')} no difference between systems or conditions can be significant, whatever they "
        f"answer: {most}. It takes at least {needed} groups (other videos or patients; more questions on the same ones do "
        "not help)."
    )


def outside_line(items: int, facets: Sequence[str]) -> str:
    """That items without a value of the facets are in no row; empty if there are none."""
    return f"In no row: {core.count_of(items, 'item')} without a value of {' or '.join(facets)}." if items else ""


def scarce_metrics(counts: Iterable[tuple[str, int]], headline: str) -> list[str]:
    """Metrics that score fewer than ten items each, by their largest count. Tables name them instead of showing them,
    if there are three or more. Empty if the headline metric is not among the counts, since the metrics were then
    chosen.

    >>> scarce_metrics([("accuracy", 5), ("iou", 1), ("tau", 2), ("f1", 1), ("bleu", 40), ("bleu", 4)], "accuracy")
    ['iou', 'tau', 'f1']
    """
    most: dict[str, int] = {}
    for name, count in counts:
        most[name] = max(count, most.get(name, 0))
    found = [name for name, count in most.items() if count < _FEW_ITEMS and name != headline]
    return found if len(found) >= _MANY_METRICS and headline in most else []


def scarce_results(found: Results) -> list[str]:
    """`scarce_metrics` of results, with the items of each run summed over its parts."""
    items: Counter[tuple[str, str, str]] = Counter()
    for row in found.rows:
        items[row.metric, row.system, row.condition] += row.n
    return scarce_metrics([(key[0], count) for key, count in items.items()], found.card.headline)


def scarce_line(names: Sequence[str], option: str = "--metric NAME") -> str:
    """A note on `scarce_metrics`, with the option that shows them; empty for none."""
    return f"Of fewer than {_FEW_ITEMS} items, not shown ({option}): {', '.join(names)}" if names else ""
