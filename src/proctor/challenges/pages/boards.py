"""The boards of a phase, for those who may see them: intervals are drawn, baselines stand where their mean puts
them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, HTTPException, Request, Response

from proctor.challenges.pages.access import KnownPhase, Somebody, challenge_of, viewer_of
from proctor.challenges.publishing import visible_boards
from proctor.web import page

router = APIRouter()

_WIDTH = 200  # of a drawing
_CELLS = ("low", "high", "rank_low", "rank_high", "place_low", "place_high", "p_first", "seconds", "below_line")
_MARGIN = 0.04


@dataclass(frozen=True)
class DrawingScale:
    """From values to places of a drawing, for all rows of one board."""

    low: float
    high: float

    def at(self, value: float) -> float:
        """The place of a value, in units of the drawing.

        >>> DrawingScale(0.0, 1.0).at(0.5)
        100.0
        """
        return round(_WIDTH * (value - self.low) / (self.high - self.low), 1)


@router.get("/board/{name}")
def board(request: Request, phase: KnownPhase, visitor: Somebody) -> Response:
    """All boards of a phase; 404 for who may not see them."""
    challenge, viewer = challenge_of(request), viewer_of(request, visitor)
    settings, now = challenge.settings, challenge.now()
    with challenge.reading() as connection:
        seen = visible_boards(connection, settings, phase.name, viewer.audience, now, team=viewer.team_id)
    if seen is None:
        raise HTTPException(404)
    shown = [one | {"rows": in_order(one), "scale": scale_of(one["rows"])} for one in seen["boards"]]
    return page(request, "board", phase=phase, seen=seen, boards=shown, width=_WIDTH)


def in_order(board: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows as they are listed: the ranked ones as they are, each baseline before the first whose mean is worse."""
    sign = 1.0 if board["facts"].get("higher_is_better", True) else -1.0
    whole = [dict.fromkeys(_CELLS) | one for one in board["rows"]]
    rows = [one for one in whole if not one["baseline"]]
    known = [one for one in whole if one["baseline"] and one["mean"] is not None]
    for baseline in sorted(known, key=lambda one: -sign * one["mean"]):
        worse = (
            place
            for place, one in enumerate(rows)
            if one["mean"] is None or (not one["baseline"] and sign * one["mean"] <= sign * baseline["mean"])
        )
        rows.insert(next(worse, len(rows)), baseline)
    return rows + [one for one in whole if one["baseline"] and one["mean"] is None]


def scale_of(rows: list[dict[str, Any]]) -> DrawingScale | None:
    """What all means and their intervals fit on; None where nobody has one."""
    values = [one[name] for one in rows for name in ("mean", "low", "high") if one.get(name) is not None]
    if not values:
        return None
    margin = _MARGIN * (max(values) - min(values)) or 0.01
    return DrawingScale(min(values) - margin, max(values) + margin)
