"""What a score means, and which answers a metric favours."""

from __future__ import annotations

from collections.abc import Sequence

from proctor.audits import ALL, Bias, LengthBias, LengthSlope, MetricProfile, ScoreCalibration
from proctor.core import number, number_interval, p_value, plain_name
from proctor.reports.audits.source import AuditSource
from proctor.reports.blocks import Block, Cell, Figure, Folded, Prose, Row, Section, Table, columns
from proctor.reports.figures import (
    Axis,
    Box,
    BoxPanel,
    Curve,
    Dot,
    Forest,
    Slopes,
    draw_boxes,
    draw_curves,
    draw_forest,
    draw_slopes,
    plain_axis,
    signed_axis,
)
from proctor.reports.tables.agreement import (
    PLAIN,
    contrast_cells,
    estimate_cells,
    lengths_table,
    spoken_language,
    with_reasons,
)
from proctor.stats import Contrast


def calibration_section(source: AuditSource) -> Section:
    """Per language the best metric's curves and boxes; those of the others are folded."""
    blocks: list[Block | str] = []
    portraits = {one.metric: one for one in source.found.profiles}
    order = {name: place for place, name in enumerate(portraits)}
    for number_, language in enumerate(source.languages):
        blocks.append(spoken_language(language))
        first, *others = source.ranked(language)
        shown = {
            name: _of_metric(source, portraits[name], language, f"meaning-{number_}-{order[name]}")
            for name in (first, *others)
        }
        blocks += shown[first]
        blocks += [Folded(name, tuple(shown[name])) for name in others]
    return Section(
        key="calibration",
        title="Calibration",
        lead="Answers in bins of about as many, by their score: each dot is the mean rating of a bin, at its mean score, "
        f"with the {source.level} interval. A line that rises steadily says that the score can be read; a flat one "
        "that it says nothing there. Below, the other way round: the scores that answers of each rating got.",
        blocks=blocks,
    )


def _of_metric(source: AuditSource, portrait: MetricProfile, language: str, key: str) -> list[Block]:
    own = [one for one in portrait.calibration if one.language == language]
    name = f"{portrait.metric}, {spoken_language(language)}"
    found: list[Block] = [_curves(own, name, f"{key}-bins")]
    # Scores of what is better when it is lower lie elsewhere: on one axis with the others they would squeeze them.
    turned = source.table.lower_is_better
    for place, part in enumerate([one for one in own if (one.dimension in turned) == apart] for apart in (False, True)):
        if any(one.levels for one in part):
            found.append(_boxes(part, name, f"{key}-levels-{place}"))
    return found


def _curves(own: Sequence[ScoreCalibration], name: str, key: str) -> Figure:
    ratings = [level for one in own for level in one.levels]
    low = min((level.low for level in ratings), default=0.0)
    high = max((level.high for level in ratings), default=1.0)
    curves = [
        Curve(
            plain_name(one.dimension),
            [part.score for part in one.bins],
            [Dot(part.rating.value, part.rating.ci_low, part.rating.ci_high) for part in one.bins],
            empty=one.reason,
        )
        for one in own
    ]
    axis = plain_axis(low, max(high, low + 1e-9), lines=4)
    title = f"{name}: mean rating by score"
    drawn = draw_curves(key, title, curves, axis, ("score", "mean rating"))
    rows: list[Row] = [
        (
            Cell(plain_name(one.dimension)),
            number_interval(part.low, part.high),
            number(part.score),
            *estimate_cells(part.rating),
            part.rating.n,
            part.rating.groups,
        )
        for one in own
        for part in one.bins
    ]
    heads = columns(*("Dimension", ">Scores", ">Mean score", ">Mean rating", ">95 % CI", ">Ratings", ">Groups"))
    return Figure(drawn, f"{title}.", Table("Bins of scores.", heads, tuple(rows)))


def _boxes(own: Sequence[ScoreCalibration], name: str, key: str) -> Figure:
    known = [one for one in own if one.levels]
    levels = sorted({(level.low, level.high) for one in known for level in one.levels})
    names = [_level(low, high) for low, high in levels]
    panels = []
    for one in known:
        by_name = {
            _level(level.low, level.high): Box(level.least, level.q1, level.median, level.q3, level.most)
            for level in one.levels
        }
        panels.append(BoxPanel(plain_name(one.dimension), [by_name.get(row) for row in names]))
    ends = [end for panel in panels for box in panel.boxes if box is not None for end in (box.low, box.high)]
    axis = plain_axis(min(ends), max(*ends, min(ends) + 1e-9))
    title = f"{name}: scores by rating"
    drawn = draw_boxes(key, title, [f"rated {row}" for row in names], panels, axis)
    caption = f"{title}. Boxes are quartiles, a thick line the median, whiskers the middle 90 %."
    rows: list[Row] = [
        (
            Cell(plain_name(one.dimension)),
            _level(level.low, level.high),
            *(number(value) for value in (level.mean, level.least, level.q1, level.median, level.q3)),
            number(level.most),
            level.n,
        )
        for one in known
        for level in one.levels
    ]
    heads = columns(
        *("Dimension", "Rating", ">Mean score", ">5 %", ">Quartile", ">Median", ">Quartile", ">95 %"), ">Ratings"
    )
    return Figure(drawn, caption, Table("Scores by rating.", heads, tuple(rows)))


def _level(low: float, high: float) -> str:
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


_MOST_CURVES = 9
_MOST_MARKS = 4  # beside the ratings' own: more names don't fit above the drawing
_MOST_IN_FOREST = 6
_MOST_SLOPES = 40
_FACETS = {"dataset": "By dataset", "system": "By answering system"}


def favour_section(source: AuditSource) -> Section:
    """Per language: length (slopes, bins, correlations beside those of the ratings), datasets and systems; then
    languages against each other."""
    blocks: list[Block | str] = []
    for number_, language in enumerate(source.languages):
        blocks.append(spoken_language(language))
        blocks += _of_language(source, language, f"favour-{number_}")
    blocks += _by_language(source)
    reversed_ = sorted(source.table.lower_is_better)
    turned = (
        f" On {', '.join(map(plain_name, reversed_))}, where a lower rating is the better one, signs are turned, so "
        "that above 0 always means favoured."
        if reversed_
        else ""
    )
    blocks.append(
        Prose(
            "A rating is not an answer's true quality. Where long answers are better and ratings are coarse, a metric "
            "that sees quality finer than the raters' levels has a slope above 0 too; the correlations with length "
            "tell the other half, since they do not hold the rating fixed.",
            quiet=True,
        )
    )
    return Section(
        key="bias",
        title="Bias of the metrics",
        lead="A metric that only follows the ratings gives answers with the same rating the same score, whatever kind "
        "of answer they are. Shown is what the rating does not say of the score (the residual of the score on the "
        "rating, in standard deviations of the score), averaged over each kind of answer; above 0 that kind is "
        f"favoured. With {source.level} intervals over whole groups; p is not adjusted for their number.{turned}",
        blocks=blocks,
    )


def _of_language(source: AuditSource, language: str, key: str) -> list[Block | str]:
    portraits = _ranked(source, language)
    alone = source.dimensions(language)[0] if len(source.dimensions(language)) == 1 else ""
    found: list[Block | str] = [_verdict(portraits, language, alone)]
    found += _slopes(portraits, language, alone, key)
    found += _by_length(portraits, language, alone, key)
    found += _correlations(source, language, key)
    for facet, title in _FACETS.items():
        found += _facet(portraits, language, alone, facet, title, f"{key}-{facet}")
    return found


def _ranked(source: AuditSource, language: str) -> list[MetricProfile]:
    by_name = {one.metric: one for one in source.found.profiles}
    return [by_name[name] for name in source.ranked(language)]


def _slope(portrait: MetricProfile, language: str, dimension: str) -> LengthSlope:
    return next(one for one in portrait.length_slopes if (one.language, one.dimension) == (language, dimension))


def _best(shown: int, of: int) -> str:
    """What a drawing says that shows the best metrics alone."""
    return f" Drawn are the best {shown} of {of} metrics; all stand in the table." if shown < of else ""


def _sign(one: Contrast) -> int:
    """1 where the interval is above 0, −1 where it is below, 0 where it has 0 or there is none."""
    if one.ci_low is None or one.ci_high is None:
        return 0
    return 1 if one.ci_low > 0 else -1 if one.ci_high < 0 else 0


def _verdict(portraits: Sequence[MetricProfile], language: str, alone: str) -> Prose:
    said: dict[int, list[str]] = {1: [], -1: [], 0: []}
    for portrait in portraits:
        found = _slope(portrait, language, alone)
        if found.slope.value is None:
            continue
        shown = (
            f"{portrait.metric} ({_signed(found.slope)}, {number_interval(found.slope.ci_low, found.slope.ci_high)})"
        )
        said[_sign(found.slope)].append(shown)
    words = {
        1: "Favours long answers beyond their ratings",
        -1: "Favours short answers beyond their ratings",
        0: "Neither is shown",
    }
    points = tuple(f"{words[sign]}: {'; '.join(said[sign])}." for sign in (1, -1, 0) if said[sign])
    return Prose(
        "Length: standard deviations of the score that an answer gains by being twice as long, at the same rating.",
        points or ("Nothing can be said: no metric has scores that vary.",),
    )


def _signed(one: Contrast) -> str:
    return contrast_cells(one)[0].text


def _dot(one: Contrast) -> Dot:
    return Dot(one.value, one.ci_low, one.ci_high)


def _axis(found: Sequence[Contrast]) -> Axis:
    ends = [end for one in found for end in (one.value, one.ci_low, one.ci_high) if end is not None]
    return signed_axis(PLAIN, min(0.0, *ends), max(0.0, *ends), lines=4)


def _slopes(portraits: Sequence[MetricProfile], language: str, alone: str, key: str) -> list[Block]:
    told = [(one.metric, _slope(one, language, alone).slope) for one in portraits]
    drawn = [(name, one) for name, one in told if one.value is not None][:_MOST_SLOPES]
    rows: list[Row] = [
        (
            Cell(portrait.metric),
            plain_name(one.dimension) or "mean over the dimensions",
            *contrast_cells(one.slope),
            p_value(one.slope.p),
            one.n,
            one.groups,
            one.reason,
        )
        for portrait in portraits
        for one in portrait.length_slopes
        if one.language == language
    ]
    heads = columns("Metric", "Dimension", ">Slope", ">95 % CI", ">p", ">Ratings", ">Groups", "Reason missing")
    table = with_reasons("Slope over length, in standard deviations of the score per doubling.", heads, rows)
    if not drawn:
        return [Folded("Slopes over length", (table,))]
    forest = Forest(
        rows=[name for name, _ in drawn],
        dots=[_dot(one) for _, one in drawn],
        texts=[_signed(one) for _, one in drawn],
        head="standard deviations per doubling",
        mark=(0.0, "as the ratings"),
    )
    title = f"{spoken_language(language)}: what length adds to the score"
    figure = draw_forest(f"{key}-slopes", title, forest, _axis([one for _, one in drawn]))
    more = _best(len(drawn), sum(one.value is not None for _, one in told))
    return [Figure(figure, f"{title}. Filled dot: the interval excludes 0.{more}", table)]


def _of(portrait: MetricProfile, language: str, facet: str, dimension: str) -> list[Bias]:
    return [one for one in portrait.bias if (one.language, one.facet, one.dimension) == (language, facet, dimension)]


def _by_length(portraits: Sequence[MetricProfile], language: str, alone: str, key: str) -> list[Block]:
    curves, found = [], []
    for portrait in portraits[:_MOST_CURVES]:
        own = _of(portrait, language, "length", alone)
        known = [one for one in own if one.residual.value is not None]
        found += [one.residual for one in known]
        why = "" if known else (own[0].reason if own else "lengths differ too little")
        curves.append(
            Curve(
                portrait.metric,
                [float(place) for place in range(len(known))],
                [_dot(one.residual) for one in known],
                [one.value.replace(" to ", "–") for one in known],
                why,
            )
        )
    if not found:
        return []
    title = f"{spoken_language(language)}: residual of the score by answer length"
    axes = ("answer length in words (in characters where a script has no spaces)", "residual")
    drawn = draw_curves(f"{key}-length", title, curves, _axis(found), axes, mark=0.0)
    table = _biases(portraits, language, "length", "Length")
    more = _best(len(curves), len(portraits))
    return [Figure(drawn, f"{title}. The broken line is no bias.{more}", table)]


def _correlations(source: AuditSource, language: str, key: str) -> list[Block]:
    audits = {audit.metric: audit for audit in source.found.each}
    names = source.ranked(language)
    by_name: dict[str, list[LengthBias]] = {
        name: [one for one in audits[name].by_length if (one.dataset, one.language) == (ALL, language)]
        for name in names
    }
    table = lengths_table([(name, one) for name in names for one in by_name[name]])
    drawn = [name for name in names if any(one.scores.value is not None for one in by_name[name])]
    if not drawn:
        return []
    known, drawn = len(drawn), drawn[:_MOST_MARKS]
    dots = []
    for dimension in source.dimensions(language):
        own = [next((one for one in by_name[name] if one.dimension == dimension), None) for name in drawn]
        rated = next((one.ratings for one in own if one is not None), None)
        estimates = [rated, *(None if one is None else one.scores for one in own)]
        dots.append([Dot() if e is None else Dot(e.value, e.ci_low, e.ci_high) for e in estimates])
    ends = [end for row in dots for dot in row for end in (dot.value, dot.low, dot.high) if end is not None]
    dimensions = [plain_name(one) for one in source.dimensions(language)]
    slopes = Slopes(dimensions, ["the ratings", *drawn], dots, range(len(drawn) + 1), (0.0, "no correlation"))
    title = f"{spoken_language(language)}: correlation with the length of the answer"
    figure = draw_slopes(f"{key}-ranks", title, slopes, plain_axis(min(0.0, *ends), max(0.0, *ends)), PLAIN)
    caption = (
        f"{title} (Spearman's ρ), of the ratings and of each metric's scores. A mark to the right of the ratings' "
        "likes length more than the raters do"
    )
    turned = [plain_name(one) for one in source.dimensions(language) if one in source.table.lower_is_better]
    caption += f"; on {', '.join(turned)}, where lower is better, one to the left." if turned else "."
    caption += _best(len(drawn), known)
    return [Figure(figure, caption, table)]


def _facet(
    portraits: Sequence[MetricProfile], language: str, alone: str, facet: str, title: str, key: str
) -> list[Block]:
    told = [(portrait.metric, one) for portrait in portraits for one in _of(portrait, language, facet, alone)]
    drawn, more = _few(told)
    if not told:
        return []
    table = _biases(portraits, language, facet, facet.capitalize())
    if not drawn:
        return [Folded(title, (table,))]
    forest = Forest(
        rows=[f"{one.value}, {name}" for name, one in drawn],
        dots=[_dot(one.residual) for _, one in drawn],
        texts=[_signed(one.residual) for _, one in drawn],
        head="residual in standard deviations",
        mark=(0.0, "as the ratings"),
    )
    said = f"{spoken_language(language)}: residual of the score {title[0].lower()}{title[1:]}"
    figure = draw_forest(key, said, forest, _axis([one.residual for _, one in drawn]))
    return [Figure(figure, f"{said}. Filled dot: the interval excludes 0.{more}", table)]


def _few(told: Sequence[tuple[str, Bias]]) -> tuple[list[tuple[str, Bias]], str]:
    """The biases of the best metrics that have any, and what is said of the others."""
    known = [(name, one) for name, one in told if one.residual.value is not None]
    names = list(dict.fromkeys(name for name, _ in known))
    kept = set(names[:_MOST_IN_FOREST])
    return [(name, one) for name, one in known if name in kept], _best(len(kept), len(names))


def _biases(portraits: Sequence[MetricProfile], language: str, facet: str, head: str) -> Table:
    rows: list[Row] = [
        (
            Cell(portrait.metric),
            plain_name(one.dimension) or "mean over the dimensions",
            one.value,
            *contrast_cells(one.residual),
            p_value(one.residual.p),
            one.n,
            one.groups,
            one.reason,
        )
        for portrait in portraits
        for one in portrait.bias
        if (one.language, one.facet) == (language, facet)
    ]
    heads = columns(
        *("Metric", "Dimension", head, ">Residual", ">95 % CI", ">p", ">Ratings", ">Groups", "Reason missing")
    )
    return with_reasons("Residual of the score, in standard deviations.", heads, rows)


def _by_language(source: AuditSource) -> list[Block | str]:
    if len(source.languages) < 2:
        return []
    portraits = _ranked(source, source.languages[0])
    told = [(portrait.metric, one) for portrait in portraits for one in portrait.bias if one.facet == "language"]
    if not told:
        return [Prose("No dimension was rated in more than one language, so these can't be compared.")]
    table = _biases(portraits, "", "language", "Language")
    shared = ", ".join(plain_name(one) for one in dict.fromkeys(one.dimension for _, one in told))
    lead = Prose(f"Only a dimension that was rated in several languages tells them apart: {shared}.")
    drawn, more = _few(told)
    if not drawn:
        return ["By language", lead, Folded("The numbers", (table,))]
    forest = Forest(
        rows=[f"{spoken_language(one.value)}, {plain_name(one.dimension)}, {name}" for name, one in drawn],
        dots=[_dot(one.residual) for _, one in drawn],
        texts=[_signed(one.residual) for _, one in drawn],
        head="residual in standard deviations",
        mark=(0.0, "as the ratings"),
    )
    title = "Residual of the score by language"
    figure = draw_forest("favour-language", title, forest, _axis([one.residual for _, one in drawn]))
    caption = f"{title}. Filled dot: the interval excludes 0.{more}"
    return ["By language", lead, Figure(figure, caption, table)]
