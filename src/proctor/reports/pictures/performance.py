"""Pictures of where systems are good: capabilities, length, the gap, the spread over groups, the model, the pairs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from proctor.core import ACCURACY, p_value, percent, plain_name, shorten
from proctor.reports.figures import (
    Axis,
    Box,
    BoxPanel,
    Dot,
    Forest,
    Heat,
    Panel,
    draw_box_rows,
    draw_boxes,
    draw_dots,
    draw_forest,
    draw_heat,
    ratio_axis,
    signed_axis,
    value_axis,
)
from proctor.reports.pictures.picture import Picture, gap_text, picture
from proctor.runs import Analysis, AnalysisRow

_AXIS = value_axis(ACCURACY, 0.0, 1.0, lines=2)
_FINE_AXIS = value_axis(ACCURACY, 0.0, 1.0)
_LENGTHS = ("context", "duration")
_SHORT_FIRST = ("short", "medium", "long")
_MOST_PAIRS = 45  # ten systems; of more, neighbours on the board and the first against those next to it
_TOP = 10
_SHORT = 18  # characters of a name in a pair


Chance = Callable[[str, str], float | None]
"""What random guessing reaches on the questions with a value of a facet ("", "": on all)."""


def performance_pictures(analysis: Analysis, chance: Chance | None = None) -> list[Picture]:
    """In the order in which they are read; a picture without numbers is left out. Where the accuracy of random guessing is known,
    it is a broken line."""
    lot: Chance = chance or (lambda _facet, _value: None)
    order = analysis.boards[0].names
    found = [
        _capabilities(analysis, order, lot),
        _strata(analysis, order),
        _length(analysis, order, lot),
        *_gaps(analysis, order),
        _spread(analysis, order, lot("", "")),
        _spread_by_label(analysis, order, lot),
        _regression(analysis),
        _pairs(analysis, order),
    ]
    return [one for one in found if one is not None]


def _dot(row: AnalysisRow | None) -> Dot:
    return Dot() if row is None else Dot(row["value"], row["ci_low"], row["ci_high"])


def _panels(
    rows: Sequence[AnalysisRow],
    column: str,
    names: Sequence[str],
    order: Sequence[str],
    lot: Callable[[str], float | None],
) -> list[Panel]:
    by = {(row["system"], row[column]): row for row in rows}
    panels = []
    for name in names:
        counts = sorted({by[system, name]["n"] for system in order if (system, name) in by})
        shown = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
        dots = [_dot(by.get((system, name))) for system in order]
        panels.append(Panel(f"{plain_name(name)} (n = {shown})", dots, lot(name)))
    return panels


def _capabilities(analysis: Analysis, order: Sequence[str], lot: Chance) -> Picture | None:
    rows = [row for row in analysis.tables["capabilities"] if row["stratum"] == "all"]
    names = list(dict.fromkeys(row["label"] for row in rows))
    if len(names) < 2:
        return None
    title = f"Accuracy by {plain_name(analysis.labels)}"
    panels = _panels(rows, "label", names, order, partial(lot, analysis.labels))
    drawn = draw_dots("capabilities", title, order, panels, _AXIS, ACCURACY)
    caption = f"{title}: on all questions that carry the label, with 95 % intervals over groups."
    return picture("capabilities", title, "capabilities", drawn, caption=caption, rows=rows, facet=analysis.labels)


def _strata(analysis: Analysis, order: Sequence[str]) -> Picture | None:
    """Labels alone and beside each other; None where no question carries two."""
    place: dict[str, int] = {}
    for row in analysis.tables["capabilities"]:
        place.setdefault(row["label"], len(place))
    rows = [
        row
        for row in analysis.tables["capabilities"]
        if row["n"] and row["stratum"] != "all" and _once(row["label"], row["stratum"], place)
    ]
    if not any(row["stratum"].startswith("with ") for row in rows):
        return None
    strata = list(dict.fromkeys((row["label"], row["stratum"]) for row in rows))
    by = {(row["system"], row["label"], row["stratum"]): row for row in rows}
    starts = [place for place, (label, _) in enumerate(strata) if place and strata[place - 1][0] != label]
    counts = [max(row["n"] for row in rows if (row["label"], row["stratum"]) == one) for one in strata]
    shares = [[by[name, *one]["value"] if (name, *one) in by else None for one in strata] for name in order]
    heads = [_stratum(label, stratum) for label, stratum in strata]
    drawn = draw_heat(
        "strata", "Labels alone and together", Heat(order, heads, shares, starts, [str(count) for count in counts])
    )
    caption = (
        f"Accuracy in percent on questions that carry one of the {plain_name(analysis.labels)} alone, and on those that carry "
        "another beside it (+). The darker, the higher. Intervals stand in the numbers."
    )
    return picture("strata", "Labels alone and together", "capabilities", drawn, caption=caption, rows=rows)


def _once(label: str, stratum: str, place: dict[str, int]) -> bool:
    """Two labels together are one column, that of the first."""
    other = stratum.removeprefix("with ")
    return stratum == "alone" or place[label] < place[other]


def _stratum(label: str, stratum: str) -> str:
    if stratum == "alone":
        return f"{shorten(plain_name(label), 26)} alone"
    return f"{shorten(plain_name(label), 20)} + {shorten(plain_name(stratum.removeprefix('with ')), 20)}"


def _length(analysis: Analysis, order: Sequence[str], lot: Chance) -> Picture | None:
    for factor in _LENGTHS:
        rows = [row for row in analysis.tables["factors"] if row["factor"] == factor]
        names = list(dict.fromkeys(row["value_of"] for row in rows))
        if len(names) > 1 and analysis.labels != factor:
            break
    else:
        return None
    if set(names) <= set(_SHORT_FIRST):
        names.sort(key=_SHORT_FIRST.index)
    title = "Accuracy by length of the context"
    panels = _panels(rows, "value_of", names, order, partial(lot, factor))
    drawn = draw_dots("length", title, order, panels, _AXIS, ACCURACY)
    caption = f"{title} ({plain_name(factor)}), from short to long, with 95 % intervals over groups."
    return picture("length", "Length of the context", "factors", drawn, caption=caption, rows=rows, facet=factor)


def _gaps(analysis: Analysis, order: Sequence[str]) -> list[Picture]:
    found: list[Picture] = []
    table = analysis.tables["gaps"]
    for factor in dict.fromkeys(row["factor"] for row in table):
        by = {row["system"]: row for row in table if row["factor"] == factor and row["value"] is not None}
        names = [name for name in order if name in by]
        if not names:
            continue
        rows = [by[name] for name in names]
        first, second = rows[0]["first"], rows[0]["second"]
        title = f"{plain_name(factor).capitalize()}: “{second}” minus “{first}”"
        forest = Forest(
            names,
            [_dot(row) for row in rows],
            [gap_text(row["value"], row["ci_low"], row["ci_high"]) for row in rows],
            "gap (95 % interval)",
            (0.0, "no gap"),
        )
        drawn = draw_forest(f"gap-{len(found)}", title, forest, _signed(rows, "value"))
        caption = (
            f"Accuracy where {plain_name(factor)} is “{second}” less that where it is “{first}”, in points, on {rows[0]['n']} "
            f"questions in {rows[0]['groups']} groups. Filled dot: the 95 % CI excludes 0."
        )
        found.append(picture(f"gap-{len(found)}", title, "gaps", drawn, caption=caption, rows=rows))
    return found


def _signed(rows: Sequence[AnalysisRow], middle: str) -> Axis:
    ends = [row[name] for row in rows for name in (middle, "ci_low", "ci_high") if row[name] is not None]
    return signed_axis(ACCURACY, min([-0.01, *ends]), max([0.01, *ends]), lines=5)


def _box(row: AnalysisRow, beyond: Sequence[float]) -> Box | None:
    if row["median"] is None:
        return None
    return Box(row["whisker_low"], row["q1"], row["median"], row["q3"], row["whisker_high"], beyond)


def _beyond(row: AnalysisRow, values: Sequence[float]) -> list[float]:
    """The values outside the whiskers, which may differ from their ends by a crumb of rounding."""
    if row["median"] is None:
        return []
    low, high = row["whisker_low"] - 1e-9, row["whisker_high"] + 1e-9
    return [value for value in values if not low <= value <= high]


def _spread(analysis: Analysis, order: Sequence[str], by_lot: float | None) -> Picture:
    rows = {row["system"]: row for row in analysis.tables["videos"] if row["part"] == "all"}
    order = [name for name in order if name in rows]
    values: dict[str, list[float]] = {name: [] for name in order}
    for row in analysis.tables["groups"]:
        values[row["system"]].append(row["value"])
    boxes = [_box(rows[name], _beyond(rows[name], values[name])) for name in order]
    count = max(row["groups"] for row in rows.values())
    texts = [_box_text(rows[name]) for name in order]
    head = f"accuracy in each of {count} groups"
    drawn = draw_box_rows("videos", "Variation between groups", order, boxes, texts, _FINE_AXIS, head, by_lot)
    caption = (
        f"How differently a system does from group to group (video to video; {count} groups): the thick line is the median, the box "
        "holds the middle half, whiskers end at the last group within 1.5 widths of the box, rings are groups beyond."
    )
    numbers = [rows[name] for name in order]
    return picture("videos", "Variation between groups", "videos", drawn, caption=caption, rows=numbers)


def _box_text(row: AnalysisRow) -> str:
    spread = "" if row["sd"] is None else f", sd {100 * row['sd']:.1f} pts"
    return f"median {percent(row['median'])}{spread}"


def _spread_by_label(analysis: Analysis, order: Sequence[str], lot: Chance) -> Picture | None:
    rows = [row for row in analysis.tables["videos"] if row["part"] != "all"]
    parts = list(dict.fromkeys(row["part"] for row in rows))
    if len(parts) < 2:
        return None
    by = {(row["part"], row["system"]): row for row in rows}
    panels = []
    for part in parts:
        count = max(by[part, name]["groups"] for name in order)
        boxes = [_box(by[part, name], ()) for name in order]
        name = f"{plain_name(part)} ({count} groups)"
        panels.append(BoxPanel(name, boxes, lot(analysis.labels, part)))
    drawn = draw_boxes("videos-labels", "Variation between groups by label", order, panels, _AXIS)
    caption = (
        f"The same for each value of {plain_name(analysis.labels)}, on the questions that carry it; groups beyond the whiskers "
        "are not drawn."
    )
    title = "Variation between groups by label"
    return picture("videos-labels", title, "videos", drawn, caption=caption, rows=rows)


def _regression(analysis: Analysis) -> Picture | None:
    rows = [row for row in analysis.tables["regression"] if row["odds_ratio"] is not None]
    shown = [row for row in rows if row["term"] != "intercept"]
    if not shown:
        return None
    axis = ratio_axis(min(row["ci_low"] for row in shown), max(row["ci_high"] for row in shown))
    dots = [Dot(*(_log(row[name]) for name in ("odds_ratio", "ci_low", "ci_high"))) for row in shown]
    texts = [
        f"{_odds(row['odds_ratio'])} ({_odds(row['ci_low'])} to {_odds(row['ci_high'])}), p {p_value(row['p'])}"
        for row in shown
    ]
    forest = Forest(
        [plain_name(row["term"]) for row in shown], dots, texts, "odds ratio (95 % interval)", (0.0, "no effect")
    )
    drawn = draw_forest("regression", "Odds ratios", forest, axis)
    base = ", ".join(f"{plain_name(name)} {shorten(value, 40)}" for name, value in analysis.reference.items())
    caption = (
        "Adjusted odds ratios for a correct answer: from a logistic regression over all systems' answers, "
        f"errors clustered by group, on a logarithmic scale. Reference category: {base}. "
        "Filled dot: the 95 % CI excludes 1. p is not adjusted for the number of terms: of 100 that mean nothing, "
        "about 5 have p below 0.05."
    )
    return picture(
        "regression", "Adjusted odds ratios for a correct answer", "regression", drawn, caption=caption, rows=rows
    )


def _odds(ratio: float) -> str:
    """Two digits behind the point, or two that tell something."""
    return f"{ratio:.2f}" if 0.095 <= ratio < 1000 else f"{ratio:.2g}"


def _log(ratio: float) -> float:
    return math.log10(min(max(ratio, 1e-9), 1e9))


def _pairs(analysis: Analysis, order: Sequence[str]) -> Picture | None:
    place = {name: number for number, name in enumerate(order)}
    rows = [
        row if row["family"] == "baselines" else _turned(row, place)
        for row in analysis.tables["pairs"]
        if row["difference"] is not None
    ]
    rows.sort(key=lambda row: (place[row["first"]], place[row["second"]]))
    if not rows:
        return None
    shown = rows
    limit = ""
    if len(rows) > _MOST_PAIRS:
        shown = [row for row in rows if _is_near(place[row["first"]], place[row["second"]])]
        limit = (
            f" Drawn are neighbours on the board and the first against the next {_TOP - 1}; all {len(rows)} pairs stand in "
            "the numbers."
        )
    forest = Forest(
        [f"{shorten(row['first'], _SHORT)} − {shorten(row['second'], _SHORT)}" for row in shown],
        [Dot(row["difference"], row["ci_low"], row["ci_high"]) for row in shown],
        [gap_text(row["difference"], row["ci_low"], row["ci_high"]) for row in shown],
        "difference (95 % interval)",
        (0.0, "equal"),
    )
    drawn = draw_forest("pairs", "Paired differences", forest, _signed(shown, "difference"))
    caption = (
        f"Accuracy of the first less that of the second on the questions that both have a mark for ({_sizes(rows)}), in points; "
        f"the better placed stands first. A filled dot: the interval leaves 0 out (not adjusted for many pairs; p_holm is, over "
        f"the pairs of systems and, apart from them, over those with baselines).{limit}"
    )
    return picture("pairs", "Paired differences", "pairs", drawn, caption=caption, rows=rows)


def _sizes(rows: Sequence[AnalysisRow]) -> str:
    counts = sorted({row["n"] for row in rows})
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def _is_near(first: int, second: int) -> bool:
    return second == first + 1 or (first == 0 and second < _TOP)


def _turned(row: AnalysisRow, place: dict[str, int]) -> AnalysisRow:
    """The better placed first."""
    if place[row["first"]] < place[row["second"]]:
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
