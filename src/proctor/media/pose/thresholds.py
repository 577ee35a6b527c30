"""When a measure of a body is a yes, when a no: one table, with the reason of each line.

Lengths are in trunks: the distance from shoulders to hips of the person measured, about 0.29 of the body's height.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SEGMENTS", "THRESHOLDS", "Threshold"]


@dataclass(frozen=True, slots=True)
class Threshold:
    """A measure at `yes` or beyond is a yes, at `no` or beyond on the other side a no; between them it can't be
    decided. Which side is which follows from the two numbers."""

    yes: float
    no: float
    unit: str
    why: str

    def decide(self, value: float | None) -> bool | None:
        """None where there is no value, or where it lies between.

        >>> THRESHOLDS["leaning"].decide(40.0), THRESHOLDS["leaning"].decide(25.0), THRESHOLDS["leaning"].decide(5.0)
        (True, None, False)
        >>> THRESHOLDS["hand_at"].decide(0.05), THRESHOLDS["hand_at"].decide(0.9)
        (True, False)
        """
        if value is None:
            return None
        sign = 1 if self.yes > self.no else -1
        if sign * value >= sign * self.yes:
            return True
        return False if sign * value <= sign * self.no else None


THRESHOLDS: dict[str, Threshold] = {
    "kneeling": Threshold(
        0.35,
        0.55,
        "trunks from knee down to ankle",
        "Standing or sitting on a chair, the shank hangs down: about 0.85 of a trunk. On the knees it lies on the "
        "ground or behind them.",
    ),
    "leaning": Threshold(
        30.0,
        20.0,
        "degrees of the trunk from the vertical",
        "An upright trunk sways less than 20° in the picture; over a manikin it is bent by 30° and more.",
    ),
    "shortened": Threshold(
        0.7,
        0.85,
        "height of the trunk, in trunks by the longest segments",
        "A trunk that leans towards or away from the camera looks short; 0.7 is a bend of 45°.",
    ),
    "straight": Threshold(
        155.0,
        140.0,
        "degrees at the elbow",
        "Compressions are taught with locked elbows; what is seen of 180° loses some to perspective and jitter.",
    ),
    "vertical": Threshold(
        25.0,
        40.0,
        "degrees of the line from shoulder to wrist from the vertical",
        "The shoulders are to stand above the hands; cameras look from the side and from above.",
    ),
    "stretched": Threshold(
        55.0,
        40.0,
        "degrees of the line from shoulder to wrist from the vertical",
        "An arm that reaches out is neither hanging nor pressing down.",
    ),
    "hand_at": Threshold(
        0.10,
        0.35,
        "trunks from the hand to the place",
        "A hand is about 0.37 trunks long: its middle within a quarter of that touches, a whole hand away does not.",
    ),
    "reach": Threshold(
        0.35,
        0.8,
        "trunks from the hand to the device",
        "Who is about to take a thing has a hand within a hand's length of it; an upper arm away, it is not meant.",
    ),
    "lying": Threshold(
        65.0,
        50.0,
        "degrees of the trunk from the vertical",
        "The manikin lies on its back; a rescuer bends by less.",
    ),
    "flat": Threshold(
        0.5,
        0.65,
        "height over width of head, trunk and legs",
        "A lying body is at least twice as wide as high; one that kneels and leans has its thighs upright.",
    ),
    "nearer": Threshold(
        0.3,
        0.3,
        "trunks by which the nearest is nearer than the next",
        "Less than a hand's breadth of difference is within what a joint jitters.",
    ),
}
"""By measure. The numbers follow from the proportions of the body and from how resuscitation is taught (arms straight,
shoulders above the hands); they were set on drawn figures, not fitted to any benchmark's recordings."""

SEGMENTS: dict[tuple[str, str], float] = {
    ("shoulder", "elbow"): 0.186,
    ("elbow", "wrist"): 0.146,
    ("hip", "knee"): 0.245,
    ("knee", "ankle"): 0.246,
    ("shoulder", "hip"): 0.288,
}
"""Lengths of segments as shares of the body's height (Drillis and Contini 1966, Technical Report 1166.03, New York
University). They tell a person's scale from whatever segments are seen."""
