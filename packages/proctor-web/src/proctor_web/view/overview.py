"""The overview of a benchmark: its runs as they are now, what needs somebody, the leaderboard, where the leader loses most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from proctor.core import ACCURACY, count_of, dollars, interval, seconds, thousands, value
from proctor.results import AnswerExcerpt, AnswerState, Flips, Options, load_excerpts, reading_once, repetition_flips
from proctor.runs import BASELINES
from proctor_web.view.answers import Row, excerpt_data, row_lines
from proctor_web.view.query import path_of
from proctor_web.view.site import Asked, Page, View
from proctor_web.view.watch import BenchmarkState, RunState
from proctor_web.view.words import duration, kind_of, seconds_or_dash

if TYPE_CHECKING:
    from proctor.reports import Section, Story
    from proctor.stats import Estimate

_PATIENCE_S = 0.25
_FEWEST, _MOST_LOSSES = 5, 6


@dataclass(frozen=True)
class Loss:
    """A part of the items on which the leader is weak: the facet and its value, the score as text, and how many items."""

    facet: str
    value: str
    score: str
    items: int
    drawn: float


@dataclass(frozen=True)
class FlipRow:
    """How often the repetitions of a run differ, as text: the share of items whose answers, and whose results, differ, each
    with its interval, and of how many items and groups."""

    system: str
    condition: str
    repetitions: int
    answers: tuple[str, str, int, int]
    results: tuple[str, str, int, int]


@dataclass(frozen=True)
class Board:
    """What is computed of a benchmark: the story, the leaderboard, where the leader loses most, and how often repetitions
    differ. `leader` is its system and condition."""

    story: Story
    section: Section
    leader: tuple[str, str]
    losses: tuple[Loss, ...]
    marks: tuple[tuple[str, int], ...]
    flips: tuple[FlipRow, ...] = ()

    @property
    def html(self) -> str:
        """The leaderboard as HTML, as it stands in a report."""
        from proctor.reports import blocks_html

        return blocks_html(self.section.blocks)


def overview(asked: Asked) -> Page:
    """The overview of a benchmark."""
    state = asked.state
    board = board_of(asked.view, state, _PATIENCE_S if asked.view.first_sent.is_set() else 0.0)
    positions = {name: position for position, name in enumerate(state.index.conditions)}
    ordered = sorted(state.runs, key=lambda one: (one.progress.run.system, positions[one.progress.run.condition]))
    rows = [run_row(asked, one) for one in ordered]
    newest = newest_rows(asked)
    context = {
        "newest": newest,
        "runs": rows,
        "spent": spent(state),
        "needs": needs(asked),
        "board": board,
        "complete": sum(one.progress.complete for one in state.runs),
        "facets": state.index.facets,
    }
    data = {
        "benchmark": state.name,
        "headline": board.value.story.headline if board and board.value else None,
        "repetitions": [asdict(one) for one in board.value.flips] if board and board.value else [],
        "as_of": board.as_of.isoformat(timespec="seconds") if board else None,
        "runs": [run_data(one) for one in state.runs],
        "newest": [excerpt_data(one.found) | {"seen": one.seen.isoformat(timespec="seconds")} for one in newest],
    }
    return Page("overview", context, data, data["runs"], "overview")  # type: ignore[arg-type]


@dataclass(frozen=True)
class NewRow:
    """An answer that came in: when it was seen, its line as in a list, and what is known of it."""

    seen: datetime
    line: Row
    found: AnswerExcerpt


def newest_rows(asked: Asked) -> list[NewRow]:
    """The answers that came in last, the newest first."""
    index = asked.state.index
    numbers = {(column.run.id, column.repetition): number for number, column in enumerate(index.columns)}
    newest = asked.state.newest
    rows = [index.row(one.position, numbers[one.run, one.repetition]) for one in newest]
    excerpts = load_excerpts(asked.view.store, index, rows)
    lines = row_lines(asked, excerpts)
    return [NewRow(one.seen, line, found) for one, line, found in zip(newest, lines, excerpts, strict=True)]


def board_of(view: View, state: BenchmarkState, patience_s: float = 0.0) -> Any:
    """The figures of a benchmark's leaderboard (`Figures` of a `Board`), or None while the first ones are computed."""
    settled = any(one.progress.settled for one in state.runs)
    if not settled:
        return None
    return view.desk.get(
        ("board", state.name), state.settled_stamp, lambda: compute_board(view, state.name), patience_s
    )


@reading_once()
def compute_board(view: View, benchmark: str) -> Board:
    """The leaderboard of a benchmark, from the store as it is now. Raises `InputError` where there is none."""
    from proctor.reports import Source, headline_section, story_of

    source = Source(view.store, benchmark, Options())
    source.check()
    section, story = headline_section(source), story_of(source)
    leader, losses = ("", ""), list[Loss]()
    if source.leading:
        key, condition = source.leading[0], source.conditions[0]
        metric = source.metric(key.metric)
        ranked = [row.system for row in source.board(key, condition).rows if row.rank is not None]
        if ranked:
            leader = ranked[0], condition
            own = Source(view.store, benchmark, replace(source.options, systems=(ranked[0],), conditions=(condition,)))
            for facet in source.facets:
                found = [
                    Loss(facet, row.facets[facet], value(metric, row.drawn), row.n, row.drawn)
                    for row in own.by(facet)
                    if (row.metric, row.scorer) == (key.metric, key.scorer)
                    and row.drawn is not None
                    and row.n >= _FEWEST
                ]
                sign = 1.0 if metric.higher_is_better else -1.0
                losses += sorted(found, key=lambda one: sign * one.drawn)[:1] if len(found) > 1 else []
            losses.sort(key=lambda one: one.drawn, reverse=not metric.higher_is_better)
    marks = tuple(source.numbers.items())
    flips = tuple(_flip_row(one) for one in repetition_flips(view.store, view.state(benchmark).index))
    return Board(story, section, leader, tuple(losses[:_MOST_LOSSES]), marks, flips)


def _flip_row(one: Flips) -> FlipRow:
    def shown(found: Estimate) -> tuple[str, str, int, int]:
        return value(ACCURACY, found.value), interval(ACCURACY, found.ci_low, found.ci_high), found.n, found.groups

    return FlipRow(one.run.system, one.run.condition, one.repetitions, shown(one.answers), shown(one.results))


@dataclass(frozen=True)
class RunRow:
    """A run as a line: shares of the bar (answered, failed) in per cent, and words."""

    state: RunState
    href: str
    answers: str
    done: float
    failed: float
    answered: int
    words: str
    kind: str
    seconds: str
    cost: str
    rate: str
    is_folded: bool = False


def run_row(asked: Asked, one: RunState) -> RunRow:
    """A run as a line of the overview."""
    progress = one.progress
    run, whole = progress.run, max(1, progress.expected)
    query = asked.query.narrowed(systems=(run.system,), conditions=(run.condition,))
    kind = "run" if one.working else "done" if progress.complete else "stop" if progress.settled else "new"
    left = f"{thousands(progress.left)} to do" if progress.left else ""
    words = {
        "run": ", ".join(filter(None, ["running", duration(one.left_s)])),
        "done": "done",
        "stop": f"stopped, {left}",
        "new": f"not begun, {left}",
    }[kind]
    cost = progress.cost.consumption.cost_usd if progress.cost is not None else None
    return RunRow(
        one,
        path_of("r", run.id),
        path_of("b", run.benchmark, "answers") + query.text(),
        100 * progress.settled / whole,
        100 * progress.failed / whole,
        progress.settled,
        words,
        kind,
        seconds_or_dash(progress.seconds),
        "–" if cost is None else dollars(cost),
        f"{seconds(one.rate)}/s" if one.working and one.rate is not None else "",
        run.system in BASELINES and kind == "done" and any(name not in BASELINES for name in asked.state.index.systems),
    )


def run_data(one: RunState) -> dict[str, Any]:
    """A run as data."""
    progress = one.progress
    cost = progress.cost
    return {
        "system": progress.run.system,
        "condition": progress.run.condition,
        "expected": progress.expected,
        "settled": progress.settled,
        "failed": progress.failed,
        "left": progress.left,
        "working": one.working,
        "answers_per_s": one.rate,
        "left_s": one.left_s,
        "model_s": progress.seconds,
        "cost_usd": None if cost is None else cost.consumption.cost_usd,
        "whole_usd": None if cost is None else cost.whole_usd,
        **{f"state_{state.value}": progress.states.get(state, 0) for state in AnswerState},
    }


def spent(state: BenchmarkState) -> str:
    """What all runs cost so far, and would when all is done; empty where no price is known."""
    costs = [one.progress.cost for one in state.runs if one.progress.cost is not None]
    known = [one.consumption.cost_usd for one in costs if one.consumption.cost_usd is not None]
    if not known:
        return ""
    said = f"{dollars(sum(known))} so far"
    whole = [one.whole_usd for one in costs]
    if any(not one.progress.complete for one in state.runs) and all(one is not None for one in whole):
        said += f", about {dollars(sum(one for one in whole if one is not None))} when all is done"
    return said


@dataclass(frozen=True)
class Need:
    """What needs somebody: a run's answers that failed, or that count as wrong by the system's own fault."""

    title: str
    causes: str
    follows: str
    href: str
    label: str
    kind: str


_FOLLOWS = {
    AnswerState.FAILED: "Not counted as wrong. The same proctor run command, given again, asks them again.",
    AnswerState.CUT_OFF: "They count as wrong: the model's token limit ended the reply before its answer (--settings max_tokens=…).",
    AnswerState.UNREADABLE: "They count as wrong: the reply has no answer of the form asked for.",
    AnswerState.REFUSED: "They count as wrong: the system declined.",
    AnswerState.TIMED_OUT: "They count as wrong: the system took longer than it may.",
    AnswerState.ERROR: "They count as wrong: the system's own error.",
}
_VERBS = {
    AnswerState.FAILED: "failed",
    AnswerState.CUT_OFF: "were cut off",
    AnswerState.UNREADABLE: "can't be read",
    AnswerState.REFUSED: "were refused",
    AnswerState.TIMED_OUT: "timed out",
    AnswerState.ERROR: "ended with an error",
}


def needs(asked: Asked) -> list[Need]:
    """One entry for each system and state: what failed first, then the most frequent."""
    counts: Counter[tuple[str, AnswerState]] = Counter()
    conditions: dict[tuple[str, AnswerState], dict[str, None]] = {}
    reasons: dict[tuple[str, AnswerState], Counter[str]] = {}
    for one in asked.state.runs:
        progress = one.progress
        for cause in progress.causes:
            if cause.state in _FOLLOWS:
                key = progress.run.system, cause.state
                reasons.setdefault(key, Counter())[cause.reason] += cause.count
                conditions.setdefault(key, {})[progress.run.condition] = None
        for state in _FOLLOWS:
            counts[progress.run.system, state] += progress.states.get(state, 0)
    order = sorted(reasons, key=lambda key: (key[1] is not AnswerState.FAILED, -counts[key]))
    return [_need(asked, *key, counts[key], list(conditions[key]), reasons[key]) for key in order if counts[key]]


def _need(
    asked: Asked, system: str, state: AnswerState, count: int, conditions: Sequence[str], reasons: Counter[str]
) -> Need:
    under = f" under {', '.join(conditions)}" if len(asked.state.index.conditions) > 1 else ""
    query = asked.query.narrowed(systems=(system,), results=(state.value,))
    return Need(
        f"{count_of(count, 'answer')} of {system}{under} {_VERBS[state]}",
        "; ".join(f"{thousands(many)} × {reason}" for reason, many in reasons.most_common()),
        _FOLLOWS[state],
        path_of("b", asked.state.name, "answers") + query.text(),
        f"See {thousands(count)}" if count > 1 else "See it",
        kind_of(state),
    )


def stores(view: View) -> Page:
    """The benchmarks of a store."""
    rows = [
        {
            "benchmark": name,
            "title": state.index.card.title,
            "items": len(state.index.items),
            "runs": len(state.runs),
            "running": len(state.working),
            "answers": sum(one.progress.settled for one in state.runs),
        }
        for name, state in view.watch.states.items()
    ]
    return Page("stores", {"rows": rows}, rows, rows)


def run_page(view: View, number: str) -> tuple[str, Page]:
    """A run by its number in the store: the benchmark, and the page. Raises `LookupError` for an unknown one."""
    for name, state in view.watch.states.items():
        for one in state.runs:
            if str(one.progress.run.id) == number:
                asked = Asked(view, state)
                settings = _flat(one.progress.run.settings)
                context = {"row": run_row(asked, one), "settings": settings, "state": one, "states": _counted(one)}
                data = {**run_data(one), "settings": one.progress.run.settings}
                return name, Page("run", context, data, [run_data(one)], "overview")
    raise LookupError(number)


def _counted(one: RunState) -> list[tuple[AnswerState, int]]:
    return [(state, one.progress.states[state]) for state in AnswerState if state in one.progress.states]


def _flat(settings: Any, prefix: str = "") -> Sequence[tuple[str, str]]:
    """Settings by dotted names, each as a text."""
    if isinstance(settings, dict) and settings:
        return [pair for name, one in settings.items() for pair in _flat(one, f"{prefix}{name}.")]
    text = settings if isinstance(settings, str) else "" if settings in ({}, [], None) else str(settings)
    return [(prefix.rstrip("."), text)]
