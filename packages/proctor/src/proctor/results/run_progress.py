"""How far runs are: what is answered, what failed and why, what is left, and what it took."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from sqlalchemy import case, func, select

from proctor.core import NO_ANSWER, Status
from proctor.results.answer_index import AnswerIndex, RunColumn
from proctor.results.answer_states import AnswerState
from proctor.results.arrays import cut_off_rows
from proctor.results.costs import RunCost, run_costs
from proctor.runs import Run, Store, driver_rows, in_parts, repeats_of, schema

_NUMBER = re.compile(r"\d+")
_QUOTED = re.compile(r"""(?<!\w)(['"]).*?\1(?!\w)""")
_MOST_CAUSES, _CAUSE = 6, 120


@dataclass(frozen=True)
class Cause:
    """Why answers of a run failed, are wrong by the system's own fault, or can't be read: the state, the reason with
    numbers and quotes left out, and how many."""

    state: AnswerState
    reason: str
    count: int


@dataclass(frozen=True)
class RunProgress:
    """One run. `expected` answers are those of all items that its system supports, times the repetitions asked for;
    `settled` are there and did not fail, `failed` are asked again by the next run. `seconds` is the model's mean time for
    an answer, `cost` what was spent (None: no price is known, or no request was made). `states` counts answers."""

    run: Run
    expected: int
    settled: int
    failed: int
    states: Mapping[AnswerState, int]
    seconds: float | None
    cost: RunCost | None
    causes: tuple[Cause, ...]

    @property
    def left(self) -> int:
        """The answers that are still to be asked, failed ones included."""
        return max(0, self.expected - self.settled)

    @property
    def complete(self) -> bool:
        """Whether every answer is there."""
        return self.left == 0


def run_progress(store: Store, index: AnswerIndex, runs: Sequence[Run]) -> list[RunProgress]:
    """How far these runs of an index are, in their order."""
    if not runs:
        return []
    with ThreadPoolExecutor(4) as pool:  # the database counts outside of Python's lock
        spent = pool.submit(run_costs, store, runs, index.items)
        causes = list(pool.map(lambda run: _causes(store, index, run), runs))
        costs = {(one.system, one.condition): one for one in spent.result()}
    asked = [(run, costs.get((run.system, run.condition))) for run in runs]
    seconds = {run.id: cost.consumption.mean_s for run, cost in asked if cost is not None}
    seconds |= _seconds(store, [run for run, cost in asked if cost is None])
    found = []
    for run, why in zip(runs, causes, strict=True):
        columns = [column for column in index.columns if column.run.id == run.id]
        states = _states(columns)
        never = columns[0].count(AnswerState.UNSUPPORTED) if columns else 0
        failed = states[AnswerState.FAILED]
        there = sum(states.values()) - states[AnswerState.NOT_ASKED] - states[AnswerState.UNSUPPORTED]
        repeats = max(repeats_of(run.settings), len(columns), 1)
        found.append(
            RunProgress(
                run=run,
                expected=(len(index.items) - never) * repeats,
                settled=there - failed,
                failed=failed,
                states={state: count for state, count in states.items() if count},
                seconds=seconds.get(run.id),
                cost=costs.get((run.system, run.condition)),
                causes=why,
            )
        )
    return found


def _states(columns: Iterable[RunColumn]) -> Counter[AnswerState]:
    return Counter({state: sum(column.count(state) for column in columns) for state in AnswerState})


def _seconds(store: Store, runs: Sequence[Run]) -> dict[int, float | None]:
    if not runs:
        return {}
    table = schema.answers
    timed = table.c.run.in_([run.id for run in runs]), table.c.status != Status.FAILED.value
    query = select(table.c.run, func.avg(table.c.model_s)).where(*timed).group_by(table.c.run)
    with store.reading() as connection:
        return dict(driver_rows(connection, query))


_ODD = (
    AnswerState.FAILED,
    AnswerState.REFUSED,
    AnswerState.TIMED_OUT,
    AnswerState.ERROR,
    AnswerState.CUT_OFF,
    AnswerState.UNREADABLE,
)
_MOST_LOOKED_UP = 5000  # with more, all answers of the run are looked at


def _causes(store: Store, index: AnswerIndex, run: Run) -> tuple[Cause, ...]:
    """Why answers of a run failed or are wrong by the system's own fault."""
    table, counts = schema.answers, Counter[tuple[AnswerState, str]]()
    odd = table.c.status.not_in((Status.ANSWERED.value, Status.ABSTAINED.value)) | (table.c.readable == 0)
    why = func.substr(case((table.c.reason != "", table.c.reason), else_=table.c.problem), 1, 4 * _CAUSE).label("why")
    cut_off = case((cut_off_rows(), 1), else_=0).label("cut_off")
    asked = select(table.c.status, cut_off, why, func.count()).where(odd, table.c.reason != NO_ANSWER)
    query = asked.group_by(table.c.status, cut_off, why)
    with store.reading() as connection:
        for column in index.columns:
            if column.run.id != run.id:
                continue
            numbers = index.items.number[column.where(_ODD)].tolist()
            own = schema.repetition_of(table, run.id, column.repetition)
            parts = in_parts(numbers) if len(numbers) <= _MOST_LOOKED_UP else [None]
            for part in parts:
                here = query.where(own) if part is None else query.where(own, table.c.item.in_(part))
                for status, cut, reason, count in driver_rows(connection, here):
                    unread = AnswerState.CUT_OFF if cut else AnswerState.UNREADABLE
                    state = unread if status == Status.ANSWERED.value else AnswerState(status)
                    counts[state, cause_of(reason)] += count
    return tuple(Cause(state, reason, count) for (state, reason), count in counts.most_common(_MOST_CAUSES))


def cause_of(reason: str) -> str:
    """A reason without what differs from answer to answer: numbers and quotes.

    >>> cause_of("HTTP 429: try again in 12 s, request 'a-71'")
    'HTTP 429: try again in … s, request …'
    >>> cause_of("expected one of the letters, found 'I can't tell.'")
    'expected one of the letters, found …'
    """
    line = reason.strip().partition("\n")[0]
    kept = _QUOTED.sub("…", line)
    head, found, rest = kept.partition(":") if kept.startswith("HTTP") else ("", "", kept)
    return f"{head}{found}{_NUMBER.sub('…', rest)}"[:_CAUSE] or "no reason was recorded"
