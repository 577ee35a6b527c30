"""The summary at the top of a report on systems or on an audit: the finding, what was evaluated, three answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean

from proctor.audits import ALL, Ceiling, LengthSlope, RankedMetric
from proctor.core import (
    DASH,
    AudioClip,
    VideoClip,
    count_of,
    difference,
    interval,
    number,
    number_interval,
    p_value,
    signed,
    value,
)
from proctor.reports.blocks import Answer, Story
from proctor.reports.comparisons import significance_words
from proctor.reports.leaderboard import few_groups_line, score
from proctor.reports.metric_agreement import dimension_name, spoken_language
from proctor.reports.metric_ranking import ALPHA
from proctor.reports.report_numbers import BASELINE, AuditSource, Key, Source
from proctor.results import Comparison, LeaderboardRow


def story_of(source: Source) -> Story:
    """The summary of a store's results under the first condition, by the headline metric."""
    key = _headline(source)
    if key is None:
        waiting = Answer("Which system is best?", "Nothing is scored yet.")
        return Story(_evaluated(source), (waiting,), "Nothing is scored yet")
    leader = _leader(source, key)
    if leader is None:
        said = f"No system has a score under {source.conditions[0]}."
        return Story(_evaluated(source), (Answer("Which system is best?", said),), said.rstrip("."))
    few = few_groups_line(leader.groups, source.options.level)
    answers = (
        *([Answer("Are there enough groups to tell?", f"No. {few}")] if few else []),
        Answer("Which system is best, and how certain is that?", _lead(source, key, leader)),
        Answer(f"Is {_media(source)} used?", _use(source, key, leader)),
        Answer("How far above guessing?", _above(source, key, leader)),
    )
    total, metric = len(source.table), source.metric(key.metric).label
    known = f" {metric} is known for {leader.n} of these items, in {count_of(leader.groups, 'group')}."
    evaluated = _evaluated(source) + (known if leader.n < total and not leader.lacking else "")
    return Story(evaluated, answers, _finding(source, key, leader, few=bool(few)))


def _finding(source: Source, key: Key, leader: LeaderboardRow, *, few: bool) -> str:
    """The finding of the report in one sentence: who leads and whether that is certain, whether it beats what sees only
    the text, and whether the media are used."""
    name = leader.system
    if few:
        best = "highest" if source.metric(key.metric).higher_is_better else "lowest"
        return f"{name} has the {best} score, but {count_of(leader.groups, 'group')} are too few to tell systems apart"
    clauses = [_lead_clause(source, key, leader)]
    blind = _best_blind(source, key, leader) if source.conditions[0] != BASELINE else None
    beaten = None if blind is None else _verdict(source, key, leader, blind[0])
    if blind is not None and beaten is not None:
        clauses.append(f"it {'beats' if beaten else 'does not beat'} {blind[0]}, which sees only the text")
    used = _own_gain(source, key, leader)
    if used is not None and beaten is not False:
        higher = _higher(source, key, used)
        clauses.append(f"it uses {_media(source)}" if higher else f"it is not shown to use {_media(source)}")
    return "; ".join(clauses)


def _lead_clause(source: Source, key: Key, leader: LeaderboardRow) -> str:
    rivals = [row for row in _contestants(source, key) if row.system != leader.system]
    shown = score(source.metric(key.metric), leader)
    if source.is_baseline(leader.system):
        return f"Only baselines were scored; {leader.system} is the best of them"
    if not rivals or leader.rank is None:
        return f"{leader.system} reaches {shown}"
    tied = any(row.rank is not None and row.rank == leader.rank for row in rivals)
    return f"{leader.system} leads, but not significantly" if tied else f"{leader.system} leads"


def _verdict(source: Source, key: Key, leader: LeaderboardRow, blind: str) -> bool | None:
    """Whether the leader is significantly better than a system on the text alone; None where they are not compared."""
    comparison = source.compared((leader.system, source.conditions[0]), (blind, BASELINE), key)
    return None if comparison is None else _higher(source, key, comparison) is True


def _own_gain(source: Source, key: Key, leader: LeaderboardRow) -> Comparison | None:
    """The leader under the first condition compared with itself on the text alone."""
    pairs, first = source.paired, source.conditions[0]
    if pairs is None or pairs.baseline != BASELINE or first == BASELINE:
        return None
    runs = ((one.first.system, one.first.condition, one) for one in pairs.of(key))
    return next((one for system, condition, one in runs if (system, condition) == (leader.system, first)), None)


def _headline(source: Source) -> Key | None:
    condition = source.conditions[0]
    there = {Key(row.metric, row.scorer) for row in source.overall if row.condition == condition}
    return next((key for key in source.keys if key in there), source.keys[0] if source.keys else None)


def _contestants(source: Source, key: Key) -> list[LeaderboardRow]:
    """The systems with a score under the first condition, best first; baselines only if there are no other systems."""
    rows = [row for row in source.board(key, source.conditions[0]).rows if row.drawn is not None and row.scored]
    better = -1.0 if source.metric(key.metric).higher_is_better else 1.0
    rows.sort(key=lambda row: (row.rank is None, row.rank or 0, better * (row.drawn or 0.0), row.system))
    rows = [row for row in rows if not row.disqualified] or rows
    return [row for row in rows if not source.is_baseline(row.system)] or rows


def _leader(source: Source, key: Key) -> LeaderboardRow | None:
    return next(iter(_contestants(source, key)), None)


def _media(source: Source) -> str:
    media = [medium for item in source.items for medium in item.media]
    clips = any(isinstance(medium, VideoClip) for medium in media)
    if clips or not media:
        return "the video"
    return "the recording" if all(isinstance(medium, AudioClip) for medium in media) else "the picture"


def _ci(source: Source) -> str:
    return f"{100 * source.options.level:g}\u00a0% CI"


def _evaluated(source: Source) -> str:
    systems = [name for name in source.systems if not source.is_baseline(name)]
    base = len(source.systems) - len(systems)
    beside = f" and {count_of(base, 'baseline')}" if base else ""
    conditions = ", ".join(source.conditions)
    return (
        f"{count_of(len(systems), 'system')}{beside} on {count_of(len(source.table), 'item')} in "
        f"{count_of(len(source.table.groups), 'group')}, under {conditions or 'no condition'}."
    )


def _lead(source: Source, key: Key, leader: LeaderboardRow) -> str:
    condition, label, metric = source.conditions[0], source.label(key), source.metric(key.metric)
    ends = f" ({_ci(source)} {interval(metric, leader.ci_low, leader.ci_high)})" if leader.ci_low is not None else ""
    shown, baseline = f"{score(metric, leader)}{ends}", source.is_baseline(leader.system)
    rivals = [row for row in _contestants(source, key) if row.system != leader.system]
    reached = f"{leader.system} reaches {shown} ({label}, {condition})"
    if not rivals and not baseline:
        return f"{reached}; no other system was scored."
    verdict = (
        f"{leader.system} has the best {label.lower() if label == 'Accuracy' else label} under {condition}: {shown}."
    )
    if baseline:
        verdict = f"No system but baselines was scored; {leader.system} is the best of them under {condition}: {shown}."
    if not rivals:
        return verdict
    if leader.rank is None:
        return f"Not known: no system has a rank (the leaderboard says why). {reached}."
    return _beside_rivals(source, key, leader, rivals, verdict=verdict, reached=reached)


def _beside_rivals(
    source: Source, key: Key, leader: LeaderboardRow, rivals: Sequence[LeaderboardRow], *, verdict: str, reached: str
) -> str:
    """How certain the rank of a ranked leader is. `verdict` says that it is best, `reached` only its score."""
    tied = [row.system for row in rivals if row.rank is not None and row.rank == leader.rank]
    ranked = [row.system for row in rivals if row.rank is not None]
    unranked = sum(row.rank is None for row in rivals)
    others = f"; {count_of(unranked, 'system')} can't be ranked" if unranked else ""
    lead, significant = _lead_words(source, key, leader, [*tied, *ranked][:1])
    if tied and significant:  # on other items than those of the board
        return f"{verdict} It shares rank 1 with {_first_names(tied)}: on the items that all have, nobody is better{others}."
    if tied:
        more = f"; nor over {_first_names(tied[1:])}" if len(tied) > 1 else ""
        return f"{verdict} Its lead over {tied[0]} is not significant{lead}{more}{others}."
    if unranked == len(rivals):
        return f"{reached}. No other system has a rank to compare it with (see the leaderboard)."
    if leader.rank_high == 1:
        rest = f"every other {'ranked ' if unranked else ''}system"
        over = f"; over {ranked[0]}{lead.replace(':', '', 1)}" if lead else ""
        return f"{verdict} It is significantly better than {rest}{over}{others}."
    high = f" to {leader.rank_high}" if leader.rank_high else ""
    return f"{verdict} It ranks first alone, but the 95 % CI of its rank is 1{high}{others}."


def _lead_words(source: Source, key: Key, leader: LeaderboardRow, names: Sequence[str]) -> tuple[str, bool]:
    """The difference of the leader and the first of these systems, with its interval and test, after a colon; empty if
    they were not compared. And whether it is significant."""
    condition = source.conditions[0]
    for name in names:
        comparison = source.compared((leader.system, condition), (name, condition), key)
        if comparison is not None:
            return f": {_words(source, key, comparison)}", _higher(source, key, comparison) is not None
    return "", False


def _first_names(names: Sequence[str]) -> str:
    """The first three names, and the number of the others."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _use(source: Source, key: Key, leader: LeaderboardRow) -> str:
    pairs, first = source.paired, source.conditions[0]
    if pairs is None or pairs.baseline == first or pairs.baseline != BASELINE:
        return f"Not known: no system was run both with {_media(source)} and on the text alone."
    compared = [comparison for comparison in pairs.of(key) if comparison.first.condition == first]
    contests = [comparison for comparison in compared if not source.is_baseline(comparison.first.system)] or compared
    if not contests:
        return f"Not known: no system was run both with {_media(source)} and on the text alone."
    own = next((comparison for comparison in contests if comparison.first.system == leader.system), None)
    gain = [comparison for comparison in contests if _higher(source, key, comparison)]
    several = len(contests) > 1 or own is None
    count = f" Systems that score significantly higher with {_media(source)}: {len(gain)} of {len(contests)}."
    many = count if several else ""
    if own is None:
        return f"{leader.system} was not run on the text alone.{many}"
    return f"{_gain(source, key, own)}{many}"


def _higher(source: Source, key: Key, comparison: Comparison) -> bool | None:
    """Whether the first run is better than the second, by the test adjusted for all comparisons; None if not
    significant."""
    if comparison.p_holm is None or comparison.p_holm > 1 - source.options.level:
        return None
    low, high = comparison.difference.ci_low, comparison.difference.ci_high
    return (
        (low is not None and low > 0) if source.metric(key.metric).higher_is_better else (high is not None and high < 0)
    )


def _words(source: Source, key: Key, comparison: Comparison) -> str:
    metric, each = source.metric(key.metric), comparison.difference
    ends = interval(metric, each.ci_low, each.ci_high)
    return f"{difference(metric, comparison.drawn)} ({_ci(source)} {ends}), {significance_words(comparison)}"


def _gain(source: Source, key: Key, comparison: Comparison) -> str:
    metric, each, name = source.metric(key.metric), comparison.difference, comparison.first.system
    higher, drawn = _higher(source, key, comparison), comparison.drawn or 0.0
    if higher is not None:
        begin, than = "Yes" if higher else "No", "higher" if drawn > 0 else "lower"
        shown = _words(source, key, comparison)
        return f"{begin}: with {_media(source)} {name} scores {than} than on the text alone, by {shown}."
    amount = difference(metric, abs(drawn)).removeprefix("+")
    than = f"{amount} {'lower' if drawn < 0 else 'higher'} than" if amount.strip("0. pts") else "the same as"
    seen = f"Not shown: with {_media(source)} {name} scores {than} on the text alone"
    seen += f" ({_ci(source)} {interval(metric, each.ci_low, each.ci_high)})"
    if each.p is not None and not comparison.decides:
        are = "is" if each.groups == 1 else "are"
        few = f"{count_of(each.groups, 'group')} {are} too few for any difference to be significant"
        return f"{seen}, but {few}."
    return f"{seen}, which is not significant: {significance_words(comparison)}."


def _best_blind(source: Source, key: Key, leader: LeaderboardRow) -> tuple[str, float] | None:
    """The best other system under the text-only condition, and its score."""
    higher = source.metric(key.metric).higher_is_better
    scores = [
        (row.system, row.drawn)
        for row in source.results_of(key, BASELINE).values()
        if row.drawn is not None and row.system != leader.system
    ]
    return max(scores, key=lambda pair: pair[1] if higher else -pair[1], default=None)


def _above(source: Source, key: Key, leader: LeaderboardRow) -> str:
    metric, chance = source.metric(key.metric), source.chance(key)
    sentences = []
    if chance is not None:
        above = leader.ci_low is not None and leader.ci_low > chance
        below = leader.ci_high is not None and leader.ci_high < chance
        where = "above it" if above else "below it" if below else "not clearly above it"
        sentences.append(f"Guessing at random reaches {value(metric, chance)}; {leader.system} is {where}.")
    blind = _best_blind(source, key, leader) if source.conditions[0] != BASELINE else None
    if blind is None:
        sentences.append("No other system was run on the text alone.")
        return " ".join(sentences)
    name, number = blind
    kind = ", a baseline" if source.is_baseline(name) else ""
    reached = f"The best text-only score is {value(metric, number)} ({name}{kind})"
    comparison = source.compared((leader.system, source.conditions[0]), (name, BASELINE), key)
    if comparison is None:
        sentences.append(f"{reached}.")
    else:
        shown = _words(source, key, comparison)
        verdict = {
            True: f"{leader.system} scores higher, by {shown}",
            False: f"{leader.system} scores lower, by {shown}",
            None: f"the difference of {leader.system} to it is not significant, {shown}",
        }[_higher(source, key, comparison)]
        sentences.append(f"{reached}: {verdict}.")
    return " ".join(sentences)


def audit_story(source: AuditSource) -> Story:
    """The summary of an audit by language."""
    answers = (
        Answer("Which metric agrees best, and how certain is that?", _by_language(source, _best_metric)),
        Answer("How far do the raters agree?", _ceiling(source)),
        Answer("Does the best metric favour long answers?", _by_language(source, _length)),
    )
    table = source.table
    groups = len({rating.cluster for rating in table.ratings})
    evaluated = (
        f"{count_of(len(source.found.metrics), 'metric')} compared with {count_of(len(table.ratings), 'rating')} by "
        f"{source.raters}, in {count_of(groups, 'group')}."
    )
    return Story(evaluated, answers, _audit_finding(source))


def _audit_finding(source: AuditSource) -> str:
    """Which metric agrees best, in one sentence."""
    best = {language: known[0] for language in source.languages if (known := _with_correlation(source, language))}
    if not best:
        return "No metric has a correlation with the ratings"
    names = {metric.metric for metric in best.values()}
    if len(names) == 1:
        every = " in every language" if len(best) > 1 else ""
        lead = f"{next(iter(names))} agrees best with {source.raters}{every}"
    else:
        each = [f"{metric.metric} in {spoken_language(language)}" for language, metric in best.items()]
        lead = f"Best agreement with {source.raters}: {', '.join(each)}"
    tied = any(
        sum(other.rank is not None and other.rank == metric.rank for other in _with_correlation(source, language)) > 1
        for language, metric in best.items()
    )
    return f"{lead}, but not significantly" if tied and len(source.found.metrics) > 1 else lead


def audit_sentences(source: AuditSource) -> tuple[str, str]:
    """Which metric agrees best, how certain that is, and how far the raters agree with each other: two texts, as the report of
    an audit begins."""
    return _by_language(source, _best_metric), _ceiling(source)


def _with_correlation(source: AuditSource, language: str) -> list[RankedMetric]:
    return [row for row in source.main_board(language).metrics if row.mean.value is not None]


def _by_language(source: AuditSource, say: Callable[[AuditSource, str], str]) -> str:
    several = len(source.languages) > 1
    parts = []
    for language in source.languages:
        text = say(source, language)
        parts.append(f"{spoken_language(language)}: {text}" if several else text)
    return " ".join(part[0].upper() + part[1:] if part else part for part in parts)


def _best_metric(source: AuditSource, language: str) -> str:
    known = _with_correlation(source, language)
    if not known:
        return "no metric has a correlation."
    best = known[0]
    spread = number_interval(best.mean.ci_low, best.mean.ci_high)
    ends = "" if spread == DASH else f" ({source.level} CI {spread})"
    if len(known) == 1:
        shown = f"{best.metric} with {source.raters}: mean correlation {number(best.mean.value)}{ends}"
        return f"agreement of {shown}; no other metric was compared."
    count = len(source.found.metrics)
    shown = f"of {count} metrics {best.metric} agrees best with {source.raters}: mean correlation"
    shown += f" {number(best.mean.value)}{ends}"
    return f"{shown}; {_metric_lead(source, language, known)}"


def _metric_lead(source: AuditSource, language: str, known: Sequence[RankedMetric]) -> str:
    """The best metric's lead over the second, with its test and the family that it is adjusted for."""
    best, second = known[0].metric, known[1].metric
    board = source.main_board(language)
    pair = next(pair for pair in board.comparisons if (pair.first, pair.second) == (best, second))
    lead = f"its lead over {second} is {signed(pair.difference.value)}"
    if pair.difference.p is None or pair.p_holm is None:
        return f"{lead}, and can't be tested ({known[1].note or known[0].note or 'no interval'})."
    ends = number_interval(pair.difference.ci_low, pair.difference.ci_high)
    lead += "" if ends == DASH else f" ({ends})"
    lead += f", p {p_value(pair.difference.p)}"
    if len(board.comparisons) > 1:
        lead += f", adjusted for all {len(board.comparisons)} pairs {p_value(pair.p_holm)} (Holm)"
    clear = pair.p_holm <= ALPHA
    tied = [one.metric for one in known[2:] if one.rank is not None and one.rank == known[0].rank]
    are = f"{_first_names(tied)} {'is' if len(tied) == 1 else 'are'}" if tied else ""
    more = f" {are} not significantly worse{'' if clear else ' either'}." if tied else ""
    return f"{lead}: {'' if clear else 'not '}significant.{more}"


_HARDLY = 0.2
"""The correlation of two raters below which agreement with them says little."""


def _ceiling(source: AuditSource) -> str:
    pairs: dict[tuple[str, str], list[Ceiling]] = {}
    for ceiling in source.found.each[0].ceilings:
        if ceiling.dataset == ALL and ceiling.mean.value is not None:
            pairs.setdefault((ceiling.language, ceiling.dimension), []).append(ceiling)
    if not pairs:
        why = "no answer was rated by two of them on the same dimension"
        return f"How far people agree with each other is not known: {why}."
    several = len(source.languages) > 1
    names = {where: dimension_name(where[1]) + (f", {spoken_language(where[0])}" if several else "") for where in pairs}
    values = {names[where]: fmean(one.mean.value or 0.0 for one in some) for where, some in pairs.items()}
    low, high = min(values, key=values.__getitem__), max(values, key=values.__getitem__)
    (first, *_), few = pairs.values(), f" Where raters hardly agree, as on {low}, agreement with them says little."
    weak = few if values[low] < _HARDLY else ""
    if len(values) > 1:
        ends = f"{number(values[low])} ({low}) to {number(values[high])} ({high})"
        return f"Two raters correlate by {ends} with each other.{weak}"
    ends = number_interval(first[0].mean.ci_low, first[0].mean.ci_high) if len(first) == 1 else DASH
    told = "" if ends == DASH else f" ({source.level} CI {ends})"
    return f"Two raters correlate by {number(values[low])}{told} with each other.{weak}"


def _slope(source: AuditSource, language: str) -> tuple[str, LengthSlope] | None:
    known = _with_correlation(source, language)
    if not known:
        return None
    dimensions = source.dimensions(language)
    alone = dimensions[0] if len(dimensions) == 1 else ""
    profile = next(
        metric_profile for metric_profile in source.found.profiles if metric_profile.metric == known[0].metric
    )
    return known[0].metric, next(
        slope for slope in profile.length_slopes if (slope.language, slope.dimension) == (language, alone)
    )


def _length(source: AuditSource, language: str) -> str:
    slope_of = _slope(source, language)
    if slope_of is None:
        return "not known."
    name, slope = slope_of[0], slope_of[1].slope
    if slope.value is None:
        return "not known."
    far = f"{number(abs(slope.value), 2)} SD {'higher' if slope.value >= 0 else 'lower'}"
    shown = f"an answer twice as long scores {far} at the same rating"
    if slope.ci_low is None or slope.ci_high is None:
        return f"{name}: {shown}, without an interval."
    shown = f"{shown} ({source.level} CI {signed(slope.ci_low, 2)} to {signed(slope.ci_high, 2)})"
    if slope.ci_low > 0:
        return f"yes, {name}: {shown}."
    if slope.ci_high < 0:
        return f"no, {name} favours short ones: {shown}."
    return f"not shown for {name}: {shown}."
