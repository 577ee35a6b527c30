"""Calibration and bias of metrics, and their sensitivity to changed answers: sections and tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from proctor.audits import (
    ALL,
    SMALL,
    Bias,
    LengthBias,
    LengthSlope,
    MetricProfile,
    ScoreCalibration,
    Sensitivity,
    Shift,
)
from proctor.core import (
    Cell,
    Row,
    Table,
    columns,
    count_of,
    number,
    number_interval,
    p_value,
    percent,
    plain_name,
    signed,
)
from proctor.reports.blocks import Block, Figure, Folded, Prose, Section
from proctor.reports.figures import Box, ChartSeries, Curve, Dot, Panel, draw_curves, plain_axis
from proctor.reports.metric_agreement import (
    REASON,
    contrast_cells,
    dimension_name,
    ends_of,
    lengths_table,
    spoken_language,
    with_reasons,
)
from proctor.reports.metric_ranking import contrast_axis, contrasts_chart, dot_of
from proctor.reports.report_numbers import AuditSource
from proctor.reports.subgroups import rows_figure
from proctor.stats import Contrast

_MAX_CURVES = 9

_MAX_MARKS = 4  # besides the ratings; more names do not fit above the figure

_MAX_IN_FIGURE = 6

_MAX_SLOPES = 40

_MAX_NAMED = 3  # metrics of a finding

_FACETS = {"dataset": "By dataset", "system": "By answering system"}

_AS_RATED = "as the ratings"


def calibration_section(source: AuditSource) -> Section:
    """For each language curves and boxes of the best metric, and folded those of the others."""
    blocks: list[Block | str] = []
    order = [profile.metric for profile in source.found.profiles]
    for number_, language in enumerate(source.languages):
        blocks.append(spoken_language(language))
        first, *others = [
            _of_metric(source, profile, language, f"meaning-{number_}-{order.index(profile.metric)}")
            for profile in source.profiles(language)
        ]
        blocks += first
        names = source.ranked(language)[1:]
        blocks += [Folded(name, tuple(shown)) for name, shown in zip(names, others, strict=True)]
    return Section(
        key="calibration",
        title="Calibration",
        lead="Answers in bins of about as many, by their score: each dot is the mean rating of a bin, at its mean "
        f"score, with the {source.level} interval. A line that rises steadily says that the score can be read; a flat "
        "one that it says nothing there. Below, the other way round: the scores that answers of each rating got.",
        blocks=blocks,
    )


def _of_metric(source: AuditSource, profile: MetricProfile, language: str, key: str) -> list[Block]:
    own = [calibration for calibration in profile.calibration if calibration.language == language]
    name = f"{profile.metric}, {spoken_language(language)}"
    blocks: list[Block] = [_curves(own, name, f"{key}-bins")]
    # Scores on dimensions where lower is better have another range, so they get their own axis.
    turned = source.table.lower_is_better
    for row, part in enumerate(
        [calibration for calibration in own if (calibration.dimension in turned) == apart] for apart in (False, True)
    ):
        if any(calibration.levels for calibration in part):
            blocks.append(_boxes(part, name, f"{key}-levels-{row}"))
    return blocks


def _curves(own: Sequence[ScoreCalibration], name: str, key: str) -> Figure:
    ratings = [level for calibration in own for level in calibration.levels]
    low, high = min((level.low for level in ratings), default=0.0), max((level.high for level in ratings), default=1.0)
    curves = [
        Curve(
            plain_name(calibration.dimension),
            [part.score for part in calibration.bins],
            [dot_of(part.rating) for part in calibration.bins],
            empty=calibration.reason,
        )
        for calibration in own
    ]
    axis = plain_axis(low, max(high, low + 1e-9))
    title = f"{name}: mean rating by score"
    rows: list[Row] = [
        (
            *(Cell(plain_name(calibration.dimension)), number_interval(part.low, part.high), number(part.score)),
            *(number(part.rating.value), ends_of(part.rating), part.rating.n, part.rating.groups),
        )
        for calibration in own
        for part in calibration.bins
    ]
    heads = columns("Dimension", ">Scores", ">Mean score", ">Mean rating", ">95 % CI", ">Ratings", ">Groups")
    drawn = draw_curves(key, title, curves, axis, ("score", "mean rating"))
    return Figure(drawn, f"{title}.", Table("Bins of scores.", heads, tuple(rows)))


def _boxes(own: Sequence[ScoreCalibration], name: str, key: str) -> Figure:
    known = [calibration for calibration in own if calibration.levels]
    names = [
        _level(*ends)
        for ends in sorted({(level.low, level.high) for calibration in known for level in calibration.levels})
    ]
    panels, rows = [], list[Row]()
    for calibration in known:
        by_name: dict[str, Box] = {}
        for level in calibration.levels:
            shown, quartiles = (
                _level(level.low, level.high),
                (level.least, level.q1, level.median, level.q3, level.most),
            )
            by_name[shown] = Box(*quartiles)
            rows.append(
                (Cell(plain_name(calibration.dimension)), shown, *map(number, (level.mean, *quartiles)), level.n)
            )
        panels.append(Panel(plain_name(calibration.dimension), [by_name.get(row) for row in names]))
    ends = [end for calibration in known for level in calibration.levels for end in (level.least, level.most)]
    axis = plain_axis(min(ends), max(*ends, min(ends) + 1e-9))
    title = f"{name}: scores by rating"
    caption = f"{title}. Boxes are quartiles, a thick line the median, whiskers the middle 90 %."
    heads = columns(
        *("Dimension", "Rating", ">Mean score", ">5 %", ">Quartile", ">Median", ">Quartile", ">95 %", ">Ratings")
    )
    table = Table("Scores by rating.", heads, tuple(rows))
    return rows_figure(key, title, [f"rated {row}" for row in names], panels, axis, caption=caption, numbers=table)


def _level(low: float, high: float) -> str:
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def bias_section(source: AuditSource) -> Section:
    """For each language the bias by answer length (slopes, bins, correlations), dataset and system; then by
    language."""
    blocks: list[Block | str] = []
    for number_, language in enumerate(source.languages):
        blocks += [spoken_language(language), *_of_language(source, language, f"bias-{number_}")]
    blocks += _by_language(source)
    reversed_ = sorted(source.table.lower_is_better)
    turned = (
        f" On {', '.join(map(plain_name, reversed_))}, where a lower rating is the better one, signs are turned, so "
        "that above 0 always means over-scored."
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
        f"over-scored. With {source.level} intervals over whole groups; p is not adjusted for their number.{turned}",
        blocks=blocks,
        finding=_favoured(source),
    )


def _favoured(source: AuditSource) -> str:
    """Which metrics favour long answers beyond their ratings in any language."""
    names = {
        profile.metric: None
        for language in source.languages
        for profile in source.profiles(language)
        for slope in profile.length_slopes
        if slope.language == language and slope.slope.ci_low is not None and slope.slope.ci_low > 0
    }
    shown = ", ".join([*names][:_MAX_NAMED]) + (
        f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    )
    return f"favour long answers: {shown}" if names else "no metric is shown to favour long answers"


def _of_language(source: AuditSource, language: str, key: str) -> list[Block]:
    profiles = source.profiles(language)
    alone = source.dimensions(language)[0] if len(source.dimensions(language)) == 1 else ""
    slopes = [
        (profile.metric, slope)
        for profile in profiles
        for slope in profile.length_slopes
        if (slope.language, slope.dimension) == (language, alone)
    ]
    blocks: list[Block] = [_verdict(slopes), _slopes(profiles, slopes, language)]
    blocks += _by_length(profiles, language, alone, key)
    blocks += _correlations(source, language, key)
    for facet, title in _FACETS.items():
        biases = [(profile.metric, bias) for profile in profiles for bias in _of(profile, language, facet, alone)]
        if biases:
            heading = f"{spoken_language(language)}: residual of the score {title[0].lower()}{title[1:]}"
            table = _biases(profiles, language, facet, facet.capitalize())
            shown = [(f"{bias.value}, {name}", name, bias) for name, bias in biases]
            blocks.append(_residuals(heading, shown, table, title))
    return blocks


def _best(shown: int, of: int) -> str:
    """A note on a figure that shows only the best metrics; empty if it shows all."""
    return f" Drawn are the best {shown} of {of} metrics; all stand in the table." if shown < of else ""


def _verdict(slopes: Sequence[tuple[str, LengthSlope]]) -> Prose:
    by_sign: dict[int, list[str]] = {1: [], -1: [], 0: []}
    for name, length_slope in slopes:
        slope = length_slope.slope
        if slope.value is None:
            continue
        known = slope.ci_low is not None and slope.ci_high is not None
        sign = 0 if not known else 1 if (slope.ci_low or 0.0) > 0 else -1 if (slope.ci_high or 0.0) < 0 else 0
        by_sign[sign].append(f"{name} ({contrast_cells(slope)[0].text}, {ends_of(slope)})")
    words = {
        1: "Favours long answers beyond their ratings",
        -1: "Favours short answers beyond their ratings",
        0: "Neither is shown",
    }
    points = tuple(f"{words[sign]}: {'; '.join(by_sign[sign])}." for sign in (1, -1, 0) if by_sign[sign])
    return Prose(
        "Length: standard deviations of the score that an answer gains by being twice as long, at the same rating.",
        points or ("Nothing can be said: no metric has scores that vary.",),
    )


def _slopes(profiles: Sequence[MetricProfile], slopes: Sequence[tuple[str, LengthSlope]], language: str) -> Block:
    rows: list[Row] = [
        (
            *(Cell(profile.metric), dimension_name(slope.dimension), *contrast_cells(slope.slope)),
            *(p_value(slope.slope.p), slope.n, slope.groups, slope.reason),
        )
        for profile in profiles
        for slope in profile.length_slopes
        if slope.language == language
    ]
    heads = columns("Metric", "Dimension", ">Slope", ">95 % CI", ">p", ">Ratings", ">Groups", REASON)
    table = with_reasons("Slope over length, in standard deviations of the score per doubling.", heads, rows)
    known = [(name, slope.slope) for name, slope in slopes if slope.slope.value is not None]
    drawn = known[:_MAX_SLOPES]
    if not drawn:
        return Folded("Slopes over length", (table,))
    title = f"{spoken_language(language)}: what length adds to the score"
    names = ("standard deviations per doubling", _AS_RATED)
    return contrasts_chart(title, drawn, names, f".{_best(len(drawn), len(known))}", table)


def _of(profile: MetricProfile, language: str, facet: str, dimension: str) -> list[Bias]:
    return [
        bias for bias in profile.bias if (bias.language, bias.facet, bias.dimension) == (language, facet, dimension)
    ]


def _by_length(profiles: Sequence[MetricProfile], language: str, alone: str, key: str) -> list[Block]:
    curves: list[Curve] = []
    residuals: list[Contrast] = []
    for profile in profiles[:_MAX_CURVES]:
        own = _of(profile, language, "length", alone)
        known = [bias for bias in own if bias.residual.value is not None]
        residuals += [bias.residual for bias in known]
        why = "" if known else (own[0].reason if own else "lengths differ too little")
        rows = [float(row) for row in range(len(known))]
        names = [bias.value.replace(" to ", "–") for bias in known]
        curves.append(Curve(profile.metric, rows, [dot_of(bias.residual) for bias in known], names, why))
    if not residuals:
        return []
    title = f"{spoken_language(language)}: residual of the score by answer length"
    axes = ("answer length in words (in characters where a script has no spaces)", "residual")
    drawn = draw_curves(f"{key}-length", title, curves, contrast_axis(residuals), axes, mark=0.0)
    caption = f"{title}. The broken line is no bias.{_best(len(curves), len(profiles))}"
    return [Figure(drawn, caption, _biases(profiles, language, "length", "Length"))]


def _correlations(source: AuditSource, language: str, key: str) -> list[Block]:
    by_name = _length_biases(source, language)
    known = [name for name, own in by_name.items() if any(bias.scores.value is not None for bias in own)]
    if not known:
        return []
    drawn, dimensions = known[:_MAX_MARKS], source.dimensions(language)
    dots = [_length_dots([by_name[name] for name in drawn], dimension) for dimension in dimensions]
    ends = [end for row in dots for dot in row for end in dot.ends]
    title = f"{spoken_language(language)}: correlation with the length of the answer"
    caption = (
        f"{title} (Spearman's ρ), of the ratings and of each metric's scores. A mark to the right of the ratings' "
        "likes length more than the raters do"
    )
    turned = [plain_name(one) for one in dimensions if one in source.table.lower_is_better]
    caption += f"; on {', '.join(turned)}, where lower is better, one to the left." if turned else "."
    return [
        rows_figure(
            f"{key}-ranks",
            title,
            [plain_name(one) for one in dimensions],
            [Panel("", dots, (0.0, "no correlation"))],
            plain_axis(min([0.0, *ends]), max([0.0, *ends])),
            series=[ChartSeries(name, number_) for number_, name in enumerate(["the ratings", *drawn])],
            caption=caption + _best(len(drawn), len(known)),
            numbers=lengths_table([(name, bias) for name, own in by_name.items() for bias in own]),
        )
    ]


def _length_biases(source: AuditSource, language: str) -> dict[str, list[LengthBias]]:
    """How the scores of each metric go with the length of the answer, over all datasets, by dimension."""
    audits = {audit.metric: audit for audit in source.found.each}
    return {
        name: [bias for bias in audits[name].by_length if (bias.dataset, bias.language) == (ALL, language)]
        for name in source.ranked(language)
    }


def _length_dots(metrics: Sequence[Sequence[LengthBias]], dimension: str) -> list[Dot]:
    """The correlations on one dimension: of the ratings, and of the scores of each metric."""
    own = [next((bias for bias in biases if bias.dimension == dimension), None) for biases in metrics]
    rated = next((dot_of(bias.ratings) for bias in own if bias is not None), Dot())
    return [rated, *(Dot() if bias is None else dot_of(bias.scores) for bias in own)]


def _residuals(title: str, biases: Sequence[tuple[str, str, Bias]], table: Table, folded: str) -> Block:
    """A figure of the residuals (label, metric, bias) of the best metrics; only the table if no metric has
    residuals."""
    known = [(name, metric, one.residual) for name, metric, one in biases if one.residual.value is not None]
    metrics = list(dict.fromkeys(metric for _, metric, _ in known))
    kept = metrics[:_MAX_IN_FIGURE]
    drawn = [(name, one) for name, metric, one in known if metric in kept]
    if not drawn:
        return Folded(folded, (table,))
    more = f".{_best(len(kept), len(metrics))}"
    return contrasts_chart(title, drawn, ("residual in standard deviations", _AS_RATED), more, table)


def _biases(profiles: Sequence[MetricProfile], language: str, facet: str, head: str) -> Table:
    rows: list[Row] = [
        (
            *(Cell(profile.metric), dimension_name(bias.dimension), bias.value, *contrast_cells(bias.residual)),
            *(p_value(bias.residual.p), bias.n, bias.groups, bias.reason),
        )
        for profile in profiles
        for bias in profile.bias
        if (bias.language, bias.facet) == (language, facet)
    ]
    heads = columns("Metric", "Dimension", head, ">Residual", ">95 % CI", ">p", ">Ratings", ">Groups", REASON)
    return with_reasons("Residual of the score, in standard deviations.", heads, rows)


def _by_language(source: AuditSource) -> list[Block | str]:
    if len(source.languages) < 2:
        return []
    profiles = source.profiles(source.languages[0])
    biases = [(profile.metric, bias) for profile in profiles for bias in profile.bias if bias.facet == "language"]
    if not biases:
        return [Prose("No dimension was rated in more than one language, so these can't be compared.")]
    table = _biases(profiles, "", "language", "Language")
    shared = ", ".join(plain_name(dimension) for dimension in dict.fromkeys(one.dimension for _, one in biases))
    lead = Prose(f"Only a dimension that was rated in several languages tells them apart: {shared}.")
    shown = [(f"{spoken_language(one.value)}, {plain_name(one.dimension)}, {name}", name, one) for name, one in biases]
    title = "Residual of the score by language"
    return ["By language", lead, _residuals(title, shown, table, "The numbers")]


_DIGITS = 2


def perturbation_tables(sensitivity: Sensitivity) -> Iterator[Table]:
    """For each language the shifts of the mean over dimensions, and by dimension if these differ."""
    for language in dict.fromkeys(shift.language for shift in sensitivity.shifts):
        own = [shift for shift in sensitivity.shifts if shift.language == language]
        yield _shift_means(sensitivity.scorer, language, [shift for shift in own if not shift.dimension])
        dimensions = list(dict.fromkeys(shift.dimension for shift in own if shift.dimension))
        if len({tuple(shift.shift for shift in own if shift.dimension == dimension) for dimension in dimensions}) > 1:
            yield _shifts_by_dimension(sensitivity.scorer, language, dimensions, own)


def _shift_means(scorer: str, language: str, shifts: list[Shift]) -> Table:
    heads = columns(
        *("Change", "Expected", ">Shift in SD", ">95 % CI", ">Mean |shift|", ">Fell", ">Answers", ">Groups"),
        *(">Missing", "Finding"),
    )
    rows: list[Row] = [
        (
            *(
                Cell(shift.perturbation),
                shift.expected,
                Cell(signed(shift.shift.value, _DIGITS), raw=shift.shift.value),
            ),
            number_interval(shift.shift.ci_low, shift.shift.ci_high, _DIGITS),
            *(signed(shift.moved.value, _DIGITS).lstrip("+"), percent(shift.fell.value), shift.answers, shift.groups),
            *(
                shift.missing,
                Cell(shift.finding or shift.reason, strong=shift.finding not in {"", "unclear", "as expected"}),
            ),
        )
        for shift in shifts
    ]
    title = f"{scorer}, {spoken_language(language)}: what changed answers score"
    return Table(
        f"{title}: the mean change over the dimensions, in standard deviations of the scores; above 0 is better.",
        heads,
        tuple(rows),
        title=title,
    )


def _shifts_by_dimension(scorer: str, language: str, dimensions: list[str], shifts: list[Shift]) -> Table:
    at = {(shift.perturbation, shift.dimension): shift for shift in shifts}
    rows: list[Row] = []
    for name in dict.fromkeys(shift.perturbation for shift in shifts):
        cells = [at.get((name, dimension)) for dimension in dimensions]
        if any(cells):
            rows.append((Cell(name), *(_shift_cell(cell) for cell in cells)))
    title = f"{scorer}, {spoken_language(language)}: shift in SD by dimension"
    caption = f"{title}; in bold where the interval leaves 0 out."
    return Table(
        caption, columns("Change", *(f">{plain_name(dimension)}" for dimension in dimensions)), tuple(rows), title=title
    )


def _shift_cell(shift: Shift | None) -> Cell | str:
    if shift is None:
        return ""
    low, high = shift.shift.ci_low, shift.shift.ci_high
    apart = low is not None and high is not None and not low <= 0 <= high
    return Cell(signed(shift.shift.value, _DIGITS), strong=apart, raw=shift.shift.value)


def perturbation_notes(sensitivity: Sensitivity) -> tuple[str, ...]:
    """Notes on what a scorer fails at in each language, on the changes, and on missing scores."""
    notes = []
    for language in dict.fromkeys(language for language, _ in sensitivity.faults):
        faults = [fault for where, fault in sensitivity.faults if where == language]
        notes.append(f"{sensitivity.scorer}, {spoken_language(language)}: {', '.join(faults)}.")
    reasons = {reason for probed in sensitivity.probed for reason in probed.missing.values()}
    lacking = sum(len(probed.missing) for probed in sensitivity.probed)
    if lacking:
        notes.append(f"{sensitivity.scorer}: no score for {count_of(lacking, 'text')} ({min(reasons)}).")
    notes.append(
        f"A finding is said only where the interval allows it: a shift of {SMALL:g} SD or more counts; of what should "
        "change nothing, the mean |shift|."
    )
    return tuple(notes)
