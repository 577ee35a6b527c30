"""What a phase has given away: how many results there are on the same hidden questions, and how far above its true
accuracy the best of them may stand because of that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, select

from proctor.challenges.marking import BoardFigure, Counted
from proctor.challenges.schema import results, submissions
from proctor.challenges.settings import Phase
from proctor.stats import HiddenSet, Optimism, boosting, luck

_MOST = 500  # results that are simulated; more change little
_DRAWS, _ATTACK_DRAWS = 400, 60
_MOST_ICC = 0.9


def attempts(connection: Connection, phase: str, version: int) -> dict[int, int]:
    """By team how many results it has been given in a phase."""
    query = select(submissions.c.team).join(results, results.c.submission == submissions.c.id)
    found = connection.scalars(query.where(submissions.c.phase == phase, results.c.scorer == version))
    return dict(Counter(found))


def given_away(phase: Phase, counted: Sequence[Counted], tried: dict[int, int], *, seed: int = 0) -> dict[str, Any]:
    """For the team with the most results, and for all teams together: how many results there are, and the optimism that
    this many allow, by `luck` alone (systems as good as the best one) and by the `attack` that needs no system
    (`proctor.stats.boosting`), each with its Monte Carlo error, by the phase's rule and by the other one."""
    hidden = hidden_set(max((one.figures.boards[0] for one in counted), key=lambda board: board.mean or 0.0))
    rows = []
    for who, results_seen in (("one team", max(tried.values())), ("all teams", sum(tried.values()))):
        row: dict[str, Any] = {"who": who, "results": results_seen}
        for rule in ("all", "ladder"):
            count = min(results_seen, _MOST)
            row[rule] = {
                "luck": _said(luck(hidden, count, rule, draws=_DRAWS, seed=seed)),
                "attack": _said(boosting(hidden, count, rule=rule, draws=_ATTACK_DRAWS, seed=seed)),
            }
        rows.append(row)
    return {
        "rule": phase.results.rule,
        "questions": hidden.size,
        "groups": hidden.groups,
        "icc": hidden.icc,
        "rows": rows,
    }


def hidden_set(board: BoardFigure) -> HiddenSet:
    """The hidden questions as they are simulated: groups of equal size, whose answers are as much alike as the width of
    a result's interval says (design effect = 1 + (m − 1) · icc for m questions a group: Kish 1965)."""
    groups = max(2, board.groups or board.questions)
    each = max(1, round(board.questions / groups))
    accuracy = min(0.99, max(0.01, board.mean or 0.5))
    if board.low is None or board.high is None or each == 1:
        return HiddenSet(groups, each, accuracy)
    error = (board.high - board.low) / (2 * 1.96)
    design = error**2 * board.questions / (accuracy * (1 - accuracy))
    return HiddenSet(groups, each, accuracy, icc=round(min(_MOST_ICC, max(0.0, (design - 1) / (each - 1))), 3))


def _said(found: Optimism) -> dict[str, float]:
    return {"optimism": round(found.value, 4), "error": round(found.error, 4)}
