"""The first screen of a report: what was evaluated, the answer in three sentences, one picture."""

from __future__ import annotations

from proctor.core import VideoClip, count_of, difference, interval, p_value, value
from proctor.reports.blocks import Answer, Figure, Story
from proctor.reports.figures import Dot, Overview, draw_overview, value_axis
from proctor.reports.source import BASELINE, Key, Source
from proctor.reports.wording import score
from proctor.runs import BOTH, Comparison, LeaderboardRow

_MOST_LINES = 24  # of the picture
_MOST_SYSTEMS, _MOST_CONDITIONS = 6, 4


def story_of(source: Source) -> Story:
    """The story of a store's results under the first condition, by the headline metric."""
    key = _headline(source)
    if key is None:
        waiting = Answer("Which system is best?", "Nothing is scored yet.")
        return Story(_evaluated(source), (waiting,))
    leader = _leader(source, key)
    if leader is None:
        nobody = Answer("Which system is best?", f"No system has a score under {source.conditions[0]}.")
        return Story(_evaluated(source), (nobody,), _figure(source, key))
    answers = (
        Answer("Which system is best, and how certain is that?", _lead(source, key, leader)),
        Answer(f"Is {_media(source)} used?", _use(source, key, leader)),
        Answer("How far above guessing?", _above(source, key, leader)),
    )
    return Story(_evaluated(source), answers, _figure(source, key))


def _headline(source: Source) -> Key | None:
    condition = source.conditions[0]
    there = {Key(row.metric, row.scorer) for row in source.overall if row.condition == condition}
    scored = [key for key in source.keys if key.scorer]
    return next((key for key in scored if key in there), scored[0] if scored else None)


def _contestants(source: Source, key: Key) -> list[LeaderboardRow]:
    """The systems with a score under the first condition, best first: baselines only where there is nobody else."""
    rows = [row for row in source.board(key, source.conditions[0]).rows if row.drawn is not None]
    better = -1.0 if source.metric(key.metric).higher_is_better else 1.0
    rows.sort(key=lambda row: (row.rank is None, row.rank or 0, better * (row.drawn or 0.0), row.system))
    rows = [row for row in rows if not row.disqualified] or rows
    return [row for row in rows if not source.is_baseline(row.system)] or rows


def _leader(source: Source, key: Key) -> LeaderboardRow | None:
    return next(iter(_contestants(source, key)), None)


def _media(source: Source) -> str:
    media = [medium for item in source.items for medium in item.media]
    clips = any(isinstance(one, VideoClip) for one in media)
    return "the video" if clips or not media else "the picture"


def _ci(source: Source) -> str:
    return f"{100 * source.options.level:g}\u00a0% CI"


def _evaluated(source: Source) -> str:
    systems = [name for name in source.systems if not source.is_baseline(name)]
    base = len(source.systems) - len(systems)
    beside = f" and {count_of(base, 'baseline')}" if base else ""
    conditions = ", ".join(source.conditions)
    return (
        f"{count_of(len(systems), 'system')}{beside} on {count_of(len(source.table.ids), 'item')} in "
        f"{count_of(len(source.table.groups), 'group')}, under {conditions or 'no condition'}."
    )


def _scored(source: Source, key: Key, row: LeaderboardRow) -> str:
    metric = source.metric(key.metric)
    known = row.ci_low is not None
    level = _ci(source)
    ends = f" ({level} {interval(metric, row.ci_low, row.ci_high)})" if known else ""
    return f"{score(metric, row)}{ends}"


def _lead(source: Source, key: Key, leader: LeaderboardRow) -> str:
    condition = source.conditions[0]
    label, shown = source.label(key), _scored(source, key, leader)
    rivals = [row for row in _contestants(source, key) if row.system != leader.system]
    said = f"{leader.system} has the best {label.lower() if label == 'Accuracy' else label} under {condition}: {shown}."
    if source.is_baseline(leader.system):
        said = f"No system but baselines was scored; {leader.system} is the best of them under {condition}: {shown}."
    if not rivals:
        return (
            said
            if source.is_baseline(leader.system)
            else f"{leader.system} reaches {shown} ({label}, {condition}); no other system was scored."
        )
    if leader.rank is None:
        return f"{said} It has no rank, because its run is incomplete."
    tied = [row.system for row in rivals if row.rank is not None and row.rank == leader.rank]
    if tied:
        names = ", ".join(tied[:3]) + (f" and {len(tied) - 3} more" if len(tied) > 3 else "")
        return (
            f"{said} The lead is not sure: {names} {'does' if len(tied) == 1 else 'do'} not score significantly less."
        )
    if leader.rank_high == 1:
        return f"{said} It is significantly better than every other system."
    high = f" to {leader.rank_high}" if leader.rank_high else ""
    return f"{said} It ranks first alone, but the 95 % CI of its rank is 1{high}."


def _use(source: Source, key: Key, leader: LeaderboardRow) -> str:
    pairs, first = source.paired, source.conditions[0]
    if pairs is None or pairs.baseline == first or pairs.baseline != BASELINE:
        return f"Not known: no system was run both with {_media(source)} and on the text alone."
    found = [one for one in pairs.of(key) if one.first.condition == first]
    contests = [one for one in found if not source.is_baseline(one.first.system)] or found
    if not contests:
        return f"Not known: no system was run both with {_media(source)} and on the text alone."
    own = next((one for one in contests if one.first.system == leader.system), None)
    gain = [one for one in contests if _better(source, key, one)]
    many = (
        f" {len(gain)} of {len(contests)} systems score significantly higher with {_media(source)}."
        if len(contests) > 1 or own is None
        else ""
    )
    if own is None:
        return f"{leader.system} was not run on the text alone.{many}"
    return f"{_gain(source, key, own)}{many}"


def _better(source: Source, key: Key, one: Comparison) -> bool:
    """Whether the first run is significantly better than the second, all comparisons counted."""
    sure = one.p_holm is not None and one.p_holm <= 1 - source.options.level
    higher = source.metric(key.metric).higher_is_better
    low, high = one.difference.ci_low, one.difference.ci_high
    return sure and ((low is not None and low > 0) if higher else (high is not None and high < 0))


def _words(source: Source, key: Key, one: Comparison) -> str:
    metric = source.metric(key.metric)
    each = one.difference
    level = _ci(source)
    return (
        f"{difference(metric, one.drawn)} ({level} {interval(metric, each.ci_low, each.ci_high)}, "
        f"p {p_value(one.p_holm)})"
    )


def _gain(source: Source, key: Key, one: Comparison) -> str:
    media, shown = _media(source), _words(source, key, one)
    if _better(source, key, one):
        return f"Yes: with {media} {one.first.system} scores higher than on the text alone, by {shown}."
    sure = one.p_holm is not None and one.p_holm <= 1 - source.options.level
    if sure:
        return f"No: with {media} {one.first.system} scores lower than on the text alone, by {shown}."
    return f"Not shown: with {media} {one.first.system} does not score significantly higher than on the text alone, by {shown}."


def _best_blind(source: Source, key: Key, leader: LeaderboardRow) -> tuple[str, float] | None:
    """The best other system on the text alone, with its score."""
    higher = source.metric(key.metric).higher_is_better
    found = [
        (row.system, row.drawn)
        for row in source.results_of(key, BASELINE).values()
        if row.drawn is not None and row.system != leader.system
    ]
    return max(found, key=lambda pair: pair[1] if higher else -pair[1], default=None)


def _above(source: Source, key: Key, leader: LeaderboardRow) -> str:
    metric, chance = source.metric(key.metric), source.chance(key)
    said = []
    if chance is not None:
        above = leader.ci_low is not None and leader.ci_low > chance
        below = leader.ci_high is not None and leader.ci_high < chance
        where = "above it" if above else "below it" if below else "not clearly above it"
        said.append(f"Guessing at random reaches {value(metric, chance)}; {leader.system} is {where}.")
    blind = _best_blind(source, key, leader) if source.conditions[0] != BASELINE else None
    if blind is None:
        said.append("No other system was run on the text alone.")
        return " ".join(said)
    name, number = blind
    kind = ", a baseline," if source.is_baseline(name) else ""
    found = source.compared((leader.system, source.conditions[0]), (name, BASELINE), key)
    reached = f"The best text-only score is {value(metric, number)} ({name}{kind.rstrip(',')})"
    if found is None:
        said.append(f"{reached}.")
    elif _better(source, key, found):
        said.append(f"{reached}: {leader.system} scores higher, by {_words(source, key, found)}.")
    else:
        sure = found.p_holm is not None and found.p_holm <= 1 - source.options.level
        shown = _words(source, key, found)
        if sure:
            said.append(f"{reached}: {leader.system} scores lower, by {shown}.")
        else:
            said.append(f"{reached}: the difference of {leader.system} to it is not significant, {shown}.")
    return " ".join(said)


def _figure(source: Source, key: Key) -> Figure | None:
    metric = source.metric(key.metric)
    order = [BASELINE, *source.conditions] if BASELINE in source.conditions else [*source.conditions]
    chosen = set(dict.fromkeys([source.conditions[0], *order])) if order else set()
    conditions = [name for name in source.conditions if name in chosen][:_MOST_CONDITIONS]
    if BASELINE in source.conditions and BASELINE not in conditions:
        conditions[-1] = BASELINE
    results = {name: source.results_of(key, name) for name in conditions}
    systems = [row.system for row in _contestants(source, key)]
    systems = systems[: min(_MOST_SYSTEMS, max(2, _MOST_LINES // len(conditions)))]
    leader = _leader(source, key)
    blind = None if leader is None else _best_blind(source, key, leader)
    names = [*systems, *([blind[0]] if blind and blind[0] not in systems else [])]
    rows = [[results[condition].get(name) for condition in conditions] for name in names]
    if not any(row is not None and row.drawn is not None for line in rows for row in line):
        return None
    chance = source.chance(key)
    axis = value_axis(metric, *source.axis(key))
    overview = Overview(
        systems=[f"{name} (baseline)" if source.is_baseline(name) else name for name in names],
        conditions=conditions,
        dots=[[Dot() if row is None else Dot(row.drawn, row.ci_low, row.ci_high) for row in line] for line in rows],
        texts=[["" if row is None else score(metric, row) for row in line] for line in rows],
        mark=None if chance is None else (chance, f"chance {value(metric, chance)}"),
    )
    title = f"{source.label(key)} by system and condition"
    more = len(source.systems) - len(names)
    caption = f"{title}, with {100 * source.options.level:g} % confidence intervals."
    if any(row is not None and row.policy == BOTH for line in rows for row in line):
        caption += " A range is the score of an incomplete run."
    caption += f" {count_of(more, 'more system')} in the leaderboard." if more > 0 else ""
    return Figure(draw_overview("overview", title, overview, axis), caption)
