"""The figures of an analysis (performance by subgroup, regression, ensembles), as a report section and as files."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

from proctor.core import (
    ACCURACY,
    count_of,
    difference,
    number,
    number_interval,
    p_value,
    percent,
    plain_name,
    points,
    shorten,
)
from proctor.reports.analysis_tables import GAPS, pairs_families
from proctor.reports.blocks import Block, Figure, Prose, Section, Units, recorded_figure
from proctor.reports.figures import (
    MAX_ON_PODIUM,
    RIGHT,
    SHARES,
    WRONG,
    Axis,
    Box,
    ChartSeries,
    Dot,
    Matrix,
    Panel,
    Stack,
    condition_numbers,
    draw_list,
    draw_matrix,
    draw_podium,
    ratio_axis,
    signed_axis,
    value_axis,
    write_picture,
)
from proctor.reports.ranking import board_figures, tau_figure
from proctor.reports.report_numbers import Source
from proctor.reports.subgroups import both_widths
from proctor.results import Analysis, AnalysisRow

_AXIS = value_axis(ACCURACY, 0.0, 1.0, lines=2)
_LENGTHS = ("context", "duration")
_MAX_PAIRS = 45  # all pairs of ten systems; with more, only neighbours and pairs with the first
_TOP = 10
_SHORT = 18  # characters of a name in a pair

Chance = Callable[[str, str], float | None]
"""The chance level on the questions with a value of a facet ("", "": on all questions)."""


def all_figures(analysis: Analysis, chance: Chance | None = None) -> list[Figure]:
    """All figures: of each board, of the performance (with the chance level, if known), and of ensembles and
    failures."""
    figures = [figure for board in analysis.boards for figure in board_figures(analysis, board)]
    figures += [figure for figure in (tau_figure(analysis), podium_figure(analysis)) if figure is not None]
    return [*figures, *performance_figures(analysis, chance), *together_figures(analysis)]


def write_pictures(
    analysis: Analysis, folder: Path, chance: Chance | None = None, form: Literal["svg", "png", "pdf"] = "svg"
) -> list[Path]:
    """Write one file per figure. Raises `InputError` if the folder can't be written."""
    return [write_picture(figure.svg, folder / f"{figure.name}.{form}") for figure in all_figures(analysis, chance)]


def analysis_section(source: Source) -> Section | None:
    """All figures except those of the ranking, with their numbers."""
    analysis = source.analysis
    if analysis is None:
        return None
    blocks: list[Block | str] = []
    if isinstance(analysis, str):
        blocks.append(Prose(analysis))
    else:
        podium = podium_figure(analysis) if source.card.buckets else None
        figures = [*performance_figures(analysis, source.accuracy_chance), *([podium] if podium else [])]
        for figure in [*figures, *together_figures(analysis)]:
            if figure.facet not in source.facets:  # otherwise shown in the results by subgroup
                blocks += [figure.title, figure]
    return Section(
        key="analysis",
        title="Analysis",
        lead=f"Right or wrong under {source.conditions[0]}, looked at from several sides. Intervals are 95 %, over "
        "samples of whole groups (videos). Systems stand in the order of the ranking. The numbers of a drawing are "
        "folded under it, a broken line is the chance level; proctor analyze --out writes all of them as files.",
        blocks=tuple(blocks),
        finding="" if isinstance(analysis, str) else _from_group_to_group(analysis),
        count=count_of(sum(isinstance(block, Figure) for block in blocks), "figure"),
    )


def _from_group_to_group(analysis: Analysis) -> str:
    """How far the accuracy of the first system varies between groups."""
    first = next(iter(analysis.boards[0].names), "")
    values = [row["value"] for row in analysis.tables["groups"] if row["system"] == first and row["value"] is not None]
    if len(values) < 2:
        return ""
    return f"{first}: {percent(min(values))} to {percent(max(values))} from group to group"


def performance_figures(analysis: Analysis, chance: Chance | None = None) -> list[Figure]:
    """The figures of performance that have numbers, in reading order. The chance level, if known, is a dashed line."""
    guessing: Chance = chance or (lambda _facet, _value: None)
    order = analysis.boards[0].names
    figures = [
        _capabilities(analysis, order, guessing),
        _strata(analysis, order),
        _length(analysis, order, guessing),
        *_gaps(analysis, order),
        _spread(analysis, order, guessing("", "")),
        _spread_by_label(analysis, order, guessing),
        _regression(analysis),
        _pairs(analysis, order),
    ]
    return [figure for figure in figures if figure is not None]


def _dot(row: AnalysisRow | None, middle: str = "value") -> Dot:
    return Dot() if row is None else Dot(row[middle], row["ci_low"], row["ci_high"])


def _chance_line(chance: float | None) -> tuple[float, str] | None:
    return None if chance is None else (chance, "chance")


def _panels(
    name: str,
    title: str,
    order: Sequence[str],
    panels: Sequence[Panel],
    caption: str,
    rows: Sequence[AnalysisRow],
    facet: str = "",
    condition: str = "",
) -> Figure:
    """Panels of accuracies; dots under a `condition` have its colour and shape."""
    series = [ChartSeries(name, number) for name, number in condition_numbers([condition]).items()] if condition else ()
    drawn, narrow = both_widths(name, title, order, panels, _AXIS, series)
    return recorded_figure(name, title, drawn, caption, rows, facet=facet, narrow=narrow)


def _by_value(
    rows: Sequence[AnalysisRow],
    column: str,
    names: Sequence[str],
    order: Sequence[str],
    chance: Callable[[str], float | None],
) -> list[Panel]:
    by = {(row["system"], row[column]): row for row in rows}
    panels = []
    for name in names:
        counts = sorted({by[system, name]["n"] for system in order if (system, name) in by})
        shown = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
        dots = [_dot(by.get((system, name))) for system in order]
        panels.append(Panel(f"{plain_name(name)} (n = {shown})", dots, _chance_line(chance(name))))
    return panels


def _capabilities(analysis: Analysis, order: Sequence[str], chance: Chance) -> Figure | None:
    rows = [row for row in analysis.tables["capabilities"] if row["stratum"] == "all"]
    names = list(dict.fromkeys(row["label"] for row in rows))
    if len(names) < 2:
        return None
    title = f"Accuracy by {plain_name(analysis.labels)}"
    panels = _by_value(rows, "label", names, order, partial(chance, analysis.labels))
    caption = f"{title}: on all questions that carry the label, with 95 % intervals over groups."
    return _panels("capabilities", title, order, panels, caption, rows, analysis.labels, analysis.condition)


def _strata(analysis: Analysis, order: Sequence[str]) -> Figure | None:
    """Accuracy by single labels and pairs of labels; None if no question has two labels."""
    index: dict[str, int] = {}
    for row in analysis.tables["capabilities"]:
        index.setdefault(row["label"], len(index))
    rows = [
        row
        for row in analysis.tables["capabilities"]
        if row["n"] and row["stratum"] != "all" and _once(row["label"], row["stratum"], index)
    ]
    if not any(row["stratum"].startswith("with ") for row in rows):
        return None
    strata = list(dict.fromkeys((row["label"], row["stratum"]) for row in rows))
    by = {(row["system"], row["label"], row["stratum"]): row for row in rows}
    matrix = Matrix(
        order,
        [_stratum(label, stratum) for label, stratum in strata],
        [[by[name, *one]["value"] if (name, *one) in by else None for one in strata] for name in order],
        lambda share: f"{100 * share:.0f}",
        starts=[k for k, (label, _) in enumerate(strata) if k and strata[k - 1][0] != label],
        counts=[str(max(row["n"] for row in rows if (row["label"], row["stratum"]) == one)) for one in strata],
    )
    caption = (
        f"Accuracy in percent on questions that carry one of the {plain_name(analysis.labels)} alone, and on those "
        "that carry another beside it (+). The darker, the higher. Intervals stand in the numbers."
    )
    title = "Labels alone and together"
    return recorded_figure("strata", title, draw_matrix("strata", title, matrix), caption, rows)


def _once(label: str, stratum: str, location: dict[str, int]) -> bool:
    """The strata with each pair of labels once."""
    other = stratum.removeprefix("with ")
    return stratum == "alone" or location[label] < location[other]


def _stratum(label: str, stratum: str) -> str:
    if stratum == "alone":
        return f"{shorten(plain_name(label), 26)} alone"
    return f"{shorten(plain_name(label), 20)} + {shorten(plain_name(stratum.removeprefix('with ')), 20)}"


def _length(analysis: Analysis, order: Sequence[str], chance: Chance) -> Figure | None:
    for factor in _LENGTHS:
        rows = [row for row in analysis.tables["factors"] if row["factor"] == factor]
        names = list(dict.fromkeys(row["value_of"] for row in rows))
        if len(names) > 1 and analysis.labels != factor:
            break
    else:
        return None
    panels = _by_value(rows, "value_of", names, order, partial(chance, factor))
    caption = (
        f"Accuracy by length of the context ({plain_name(factor)}), from short to long, with 95 % intervals over "
        f"groups."
    )
    return _panels("length", "Length of the context", order, panels, caption, rows, factor, analysis.condition)


def _signed(rows: Sequence[AnalysisRow], *columns: str) -> Axis:
    ends = [row[name] for row in rows for name in columns if row[name] is not None]
    return signed_axis(ACCURACY, min([-0.01, *ends]), max([0.01, *ends]), lines=5)


def _gaps(analysis: Analysis, order: Sequence[str]) -> list[Figure]:
    figures: list[Figure] = []
    table = analysis.tables["gaps"]
    for factor in dict.fromkeys(row["factor"] for row in table):
        by = {row["system"]: row for row in table if row["factor"] == factor and row["value"] is not None}
        names = [name for name in order if name in by]
        if not names:
            continue
        rows, name = [by[system] for system in names], f"gap-{len(figures)}"
        first, second = rows[0]["first"], rows[0]["second"]
        title = f"{plain_name(factor).capitalize()}: “{second}” minus “{first}”"
        shown = [
            (row["system"], _dot(row), points(ACCURACY, row["value"], row["ci_low"], row["ci_high"])) for row in rows
        ]
        axis = _signed(rows, "value", "ci_low", "ci_high")
        drawn = draw_list(name, title, shown, axis, head="gap (95 % CI)", line=(0.0, "no gap"))
        caption = (
            f"Accuracy where {plain_name(factor)} is “{second}” less that where it is “{first}”, in points, on "
            f"{count_of(rows[0]['n'], 'question')} in {count_of(rows[0]['groups'], 'group')}. Filled dot: the 95 % CI "
            "excludes 0."
        )
        figures.append(recorded_figure(name, title, drawn, caption, rows, units=GAPS))
    return figures


def _box(row: AnalysisRow, values: Sequence[float] = ()) -> Box | None:
    """A box with the values outside the whiskers, apart from rounding errors."""
    if row["median"] is None:
        return None
    low, high = row["whisker_low"], row["whisker_high"]
    beyond = [value for value in values if not low - 1e-9 <= value <= high + 1e-9]
    return Box(low, row["q1"], row["median"], row["q3"], high, beyond)


def _spread(analysis: Analysis, order: Sequence[str], chance: float | None) -> Figure:
    rows = {row["system"]: row for row in analysis.tables["videos"] if row["part"] == "all"}
    names = [name for name in order if name in rows]
    values: dict[str, list[float]] = {name: [] for name in names}
    for row in analysis.tables["groups"]:
        values[row["system"]].append(row["value"])
    shown = []
    for name in names:
        sd = "" if rows[name]["sd"] is None else f", SD {difference(ACCURACY, rows[name]['sd']).removeprefix('+')}"
        shown.append((name, _box(rows[name], values[name]), f"median {percent(rows[name]['median'])}{sd}"))
    count = count_of(max(row["groups"] for row in rows.values()), "group")
    title, axis = "Variation between groups", value_axis(ACCURACY, 0.0, 1.0)
    head = f"accuracy in each of {count}"
    drawn = draw_list("videos", title, shown, axis, head=head, line=_chance_line(chance))
    caption = (
        f"How differently a system does from group to group (video to video; {count}): the thick line is the "
        f"median, the box "
        "holds the middle half, whiskers end at the last group within 1.5 widths of the box, rings are groups beyond."
    )
    return recorded_figure("videos", title, drawn, caption, [rows[name] for name in names])


def _spread_by_label(analysis: Analysis, order: Sequence[str], chance: Chance) -> Figure | None:
    rows = [row for row in analysis.tables["videos"] if row["part"] != "all"]
    parts = list(dict.fromkeys(row["part"] for row in rows))
    if len(parts) < 2:
        return None
    by = {(row["part"], row["system"]): row for row in rows}
    panels = [
        Panel(
            f"{plain_name(part)} ({count_of(max(by[part, name]['groups'] for name in order), 'group')})",
            [_box(by[part, name]) for name in order],
            _chance_line(chance(analysis.labels, part)),
        )
        for part in parts
    ]
    caption = (
        f"The same for each value of {plain_name(analysis.labels)}, on the questions that carry it; groups beyond the "
        "whiskers are not drawn."
    )
    return _panels("videos-labels", "Variation between groups by label", order, panels, caption, rows)


def _regression(analysis: Analysis) -> Figure | None:
    rows = [row for row in analysis.tables["regression"] if row["odds_ratio"] is not None]
    shown = [row for row in rows if row["term"] != "intercept"]
    if not shown:
        return None
    axis = ratio_axis(min(row["ci_low"] for row in shown), max(row["ci_high"] for row in shown))
    terms = []
    for row in shown:
        ratio, low, high = (row[name] for name in ("odds_ratio", "ci_low", "ci_high"))
        text = f"{number(ratio)} ({number_interval(low, high)}), p {p_value(row['p'])}"
        terms.append((plain_name(row["term"]), Dot(_log(ratio), _log(low), _log(high)), text))
    head = "odds ratio (95 % CI)"
    drawn = draw_list("regression", "Odds ratios", terms, axis, head=head, line=(0.0, "no effect"))
    base = ", ".join(f"{plain_name(name)} {shorten(value, 40)}" for name, value in analysis.reference.items())
    caption = (
        "Adjusted odds ratios for a correct answer: from a logistic regression over the answers of all systems "
        f"but baselines, errors clustered by group, on a logarithmic scale. Reference category: {base}. Filled dot: the "
        "95 % CI excludes 1. p is not adjusted for the number of terms: of 100 that mean nothing, about 5 have p below 0.05."
    )
    title = "Adjusted odds ratios for a correct answer"
    return recorded_figure("regression", title, drawn, caption, rows, units=Units())


def _log(ratio: float) -> float:
    return math.log10(min(max(ratio, 1e-9), 1e9))


def _pairs(analysis: Analysis, order: Sequence[str]) -> Figure | None:
    index = {name: number for number, name in enumerate(order)}
    rows = [
        row if row["family"] == "baselines" else _turned(row, index)
        for row in analysis.tables["pairs"]
        if row["difference"] is not None
    ]
    rows.sort(key=lambda row: (index[row["first"]], index[row["second"]]))
    if not rows:
        return None
    shown, limit = rows, ""
    if len(rows) > _MAX_PAIRS:
        shown = [row for row in rows if _is_near(index[row["first"]], index[row["second"]])]
        limit = (
            f" Drawn are neighbours on the board and the first against the next {_TOP - 1}; all {len(rows)} pairs "
            "stand in the numbers."
        )
    drawn = draw_list(
        "pairs",
        "Paired differences",
        [
            (
                f"{shorten(row['first'], _SHORT)} − {shorten(row['second'], _SHORT)}",
                _dot(row, "difference"),
                points(ACCURACY, row["difference"], row["ci_low"], row["ci_high"]),
            )
            for row in shown
        ],
        _signed(shown, "difference", "ci_low", "ci_high"),
        head="difference (95 % CI)",
        line=(0.0, "equal"),
    )
    counts = sorted({row["n"] for row in rows})
    sizes = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    families = pairs_families(rows)  # empty for one pair
    adjusted = f" (not adjusted for many pairs; p (Holm) is: {families})" if families else ""
    caption = (
        f"Accuracy of the first less that of the second on the questions that both have a score for ({sizes}), in "
        f"points; the better ranked stands first. A filled dot: the 95 % CI excludes 0{adjusted}.{limit}"
    )
    return recorded_figure("pairs", "Paired differences", drawn, caption, rows)


def _is_near(first: int, second: int) -> bool:
    return second == first + 1 or (first == 0 and second < _TOP)


def _turned(row: AnalysisRow, location: dict[str, int]) -> AnalysisRow:
    """The pair with the better ranked system first."""
    if location[row["first"]] < location[row["second"]]:
        return row
    return row | {
        "first": row["second"],
        "second": row["first"],
        "difference": -row["difference"],
        "ci_low": None if row["ci_high"] is None else -row["ci_high"],
        "ci_high": None if row["ci_low"] is None else -row["ci_low"],
        "only_first_right": row["only_second_right"],
        "only_second_right": row["only_first_right"],
    }


def podium_figure(analysis: Analysis) -> Figure | None:
    """The ranks and values of the first six systems in each group; None with one system."""
    ranked = [run.standing.name for run in analysis.boards[0].runs]
    names = ranked[:MAX_ON_PODIUM]
    rows = [row for row in analysis.tables["groups"] if row["system"] in names]
    value = {(row["group"], row["system"]): row["value"] for row in rows}
    every = dict.fromkeys(row["group"] for row in rows)
    groups = [group for group in every if all((group, name) in value for name in names)]
    if len(names) < 2 or not groups:
        return None
    values = [[value[group, name] for name in names] for group in groups]
    ranks = [[1 + sum(other > one for other in line) for one in line] for line in values]
    axis = value_axis(ACCURACY, min(map(min, values)), max(map(max, values)), lines=5)
    drawn = draw_podium("podium", "Podium", names, values, ranks, axis)
    few = len(names) < len(ranked)
    limit = f" Ranks are among the first {len(names)} of {len(ranked)} on the board." if few else ""
    caption = (
        f"Every mark is one of {count_of(len(groups), 'group')} (videos), at the system's accuracy there, in the field of "
        f"the rank it has there; equal ones share a rank. Lines join the marks of a group.{limit}"
    )
    return recorded_figure("podium", "Podium", drawn, caption, rows)


_CAUSES = {
    "right": ("R", RIGHT),
    "wrong": ("W", WRONG),
    **{
        cause: (letter, -1 - index)
        for index, (cause, letter) in enumerate(
            (
                *(("unreadable", "U"), ("missing", "M"), ("timed out", "T"), ("refused", "X"), ("error", "E")),
                *(("failed", "F"), ("unresolved", "V"), ("not scored", "N"), ("unsupported", "S"), ("abstained", "A")),
            )
        )
    },
}
"""The letter and number of each cause: right blue, wrong orange, everything that is missing a hatched grey."""


def together_figures(analysis: Analysis) -> list[Figure]:
    """The ensembles compared with the best system, and the causes of failure by format."""
    figures = [_ensembles(analysis), _failures(analysis, analysis.boards[0].names)]
    return [figure for figure in figures if figure is not None]


def _ensembles(analysis: Analysis) -> Figure | None:
    rows = analysis.tables["ensembles"]
    shown = [row for row in rows if row["format"] == "all" and row["value"] is not None]
    if not shown or shown[0]["systems"] == shown[-1]["systems"]:
        return None  # a single system
    best, gain = shown[0], ("gain", "gain_low", "gain_high")
    lines = []
    for row in shown:
        ends = [row[name] for name in gain]
        dot, said = (Dot(0.0, None, None), "") if row is best else (Dot(*ends), points(ACCURACY, *ends))
        lines.append((f"{row['ensemble']}: {percent(row['value'])}", dot, said))
    head = "gain over the best alone (95 % CI)"
    drawn = draw_list("ensembles", "Ensembles", lines, _signed(shown, *gain[1:]), head=head, line=(0.0, "best alone"))
    left_out = best["left_out"]
    out = f" Not voted on: {count_of(left_out, 'question')} (free text, or a score is missing)." if left_out else ""
    caption = (
        f"Accuracy, and its paired difference to the best system's, on {count_of(best['n'], 'question')} in "
        f"{count_of(best['groups'], 'group')}: {best['systems']} alone, votes of several systems, and the share that "
        "any of them has right, which no vote can pass. Votes: the median of counts, percentages and times, each "
        f"class that most name, else the most frequent answer. Who is best was chosen on the same questions.{out}"
    )
    return recorded_figure("ensembles", "Ensembles", drawn, caption, rows)


def _has_accuracy(rows: Sequence[AnalysisRow], form: str) -> bool:
    """Whether any answer of this format is right or wrong, or could have been."""
    return any(row["format"] == form and row["cause"] != "not scored" for row in rows)


def _failure_panels(rows: Sequence[AnalysisRow], order: Sequence[str], causes: Sequence[str]) -> list[Panel]:
    """A panel for each format: a bar for each system, stacked by cause."""
    counts = {(row["format"], row["system"], row["cause"]): row["count"] for row in rows}
    panels = []
    for form in dict.fromkeys(row["format"] for row in rows):
        lines = [[counts.get((form, name, cause), 0) for cause in causes] for name in order]
        size = max(map(sum, lines))
        bars = [Stack(line, shares=True) for line in lines]
        panels.append(Panel(f"{plain_name(form) or 'no format'} ({count_of(size, 'question')})", bars))
    return panels


def _failures(analysis: Analysis, order: Sequence[str]) -> Figure | None:
    every = analysis.tables["failures"]
    scored = [form for form in dict.fromkeys(row["format"] for row in every) if _has_accuracy(every, form)]
    rows = [row for row in every if row["format"] in scored]
    if not rows:
        return None
    there = {row["cause"] for row in rows}
    causes = [cause for cause in _CAUSES if cause in there]
    panels = _failure_panels(rows, order, causes)
    series = [ChartSeries(cause, number, letter) for cause in causes for letter, number in [_CAUSES[cause]]]
    title = "Failures by answer format (accuracy)"
    drawn, narrow = both_widths("failures", title, order, panels, SHARES, series)
    caption = (
        "How answers end, by format and cause: the share of a format's questions. Failed, unresolved and unscored ones "
        "are not scored."
    )
    others = [plain_name(form) for form in dict.fromkeys(row["format"] for row in every) if form not in scored]
    caption += f" Not here, since accuracy does not score it: {', '.join(others)}." if others else ""
    return recorded_figure("failures", title, drawn, caption, rows, narrow=narrow)
