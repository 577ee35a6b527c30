"""How far runs are: what is answered, what failed and why, what is left, and what it took."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import case, func, select

from proctor.core import Status
from proctor.results.answer_index import AnswerIndex, AnswerState, RunColumn
from proctor.results.costs import RunCost, run_costs
from proctor.runs import Run, Store, driver_rows, repeats_of, schema

_NUMBER = re.compile(r"\d+")
_QUOTED = re.compile(r"""(?<!\w)(['"]).*?\1""")
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
    seconds, causes = _seconds(store, runs), _causes(store, runs)
    costs = {(one.system, one.condition): one for one in run_costs(store, runs, index.items)}
    found = []
    for run in runs:
        columns = [column for column in index.columns if column.run.id == run.id]
        states = _states(columns)
        never = columns[0].count(AnswerState.UNSUPPORTED) if columns else 0
        failed = states[AnswerState.FAILED]
        asked = sum(states.values()) - states[AnswerState.NOT_ASKED] - states[AnswerState.UNSUPPORTED]
        repeats = max(repeats_of(run.settings), len(columns), 1)
        found.append(
            RunProgress(
                run=run,
                expected=(len(index.items) - never) * repeats,
                settled=asked - failed,
                failed=failed,
                states={state: count for state, count in states.items() if count},
                seconds=seconds.get(run.id),
                cost=costs.get((run.system, run.condition)),
                causes=tuple(causes.get(run.id, ())),
            )
        )
    return found


def _states(columns: Iterable[RunColumn]) -> Counter[AnswerState]:
    return Counter({state: sum(column.count(state) for column in columns) for state in AnswerState})


def _seconds(store: Store, runs: Sequence[Run]) -> dict[int, float | None]:
    table = schema.answers
    timed = table.c.run.in_([run.id for run in runs]), table.c.status != Status.FAILED.value
    query = select(table.c.run, func.avg(table.c.model_s)).where(*timed).group_by(table.c.run)
    with store.reading() as connection:
        return dict(driver_rows(connection, query))


def _causes(store: Store, runs: Sequence[Run]) -> dict[int, list[Cause]]:
    table = schema.answers
    own = table.c.run.in_([run.id for run in runs])
    odd = (table.c.status != Status.ANSWERED.value) | (table.c.readable == 0)
    why = func.substr(case((table.c.reason != "", table.c.reason), else_=table.c.problem), 1, 4 * _CAUSE).label("why")
    query = (
        select(table.c.run, table.c.status, why, func.count())
        .where(own, odd)
        .group_by(table.c.run, table.c.status, why)
    )
    counts: dict[int, Counter[tuple[AnswerState, str]]] = {}
    with store.reading() as connection:
        for run, status, reason, count in driver_rows(connection, query):
            state = AnswerState.UNREADABLE if status == Status.ANSWERED.value else AnswerState(status)
            counts.setdefault(run, Counter())[state, cause_of(reason)] += count
    return {
        run: [Cause(state, reason, count) for (state, reason), count in found.most_common(_MOST_CAUSES)]
        for run, found in counts.items()
    }


def cause_of(reason: str) -> str:
    """A reason without what differs from answer to answer: numbers and quotes.

    >>> cause_of("HTTP 429: try again in 12 s, request 'a-71'")
    'HTTP 429: try again in … s, request …'
    """
    line = reason.strip().partition("\n")[0]
    kept = _QUOTED.sub("…", line)
    head, found, rest = kept.partition(":") if kept.startswith("HTTP") else ("", "", kept)
    return f"{head}{found}{_NUMBER.sub('…', rest)}"[:_CAUSE] or "no reason was recorded"
