"""What a metric is called, where it lies and which way is better: said once, used everywhere."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ACCURACY", "Metric"]


@dataclass(frozen=True)
class Metric:
    """The declaration of a metric from which the CLI, tables, docs and figures are made.

    `low` and `high` bound the value of one item; `percent` says that means are shown in per cent;
    `chance` is the mean that blind guessing reaches where that is one number for all items; `formats`
    are the kinds of answer that it marks (none named: all), so that a failed answer, which has no
    score, is still known to be missing from it; `levels` are the labels of its scores, best first, where
    it has a few named ones. Where the value of an item is a share of several units (pairs of neighbours in an
    order), `per` is the tag that says of how many: a mean over items is then the share of all their units.
    """

    name: str
    label: str
    low: float = 0.0
    high: float = 1.0
    higher_is_better: bool = True
    percent: bool = False
    chance: float | None = None
    formats: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    per: str = ""

    @property
    def worst(self) -> float:
        """The value of a wrong answer."""
        return self.low if self.higher_is_better else self.high

    def marks(self, kind: str) -> bool:
        """Whether answers of this format kind are marked by it."""
        return not self.formats or kind in self.formats

    def show(self, value: float) -> str:
        """The value as people read it.

        >>> ACCURACY.show(0.6626)
        '66.3 %'
        """
        return f"{100 * value:.1f} %" if self.percent else f"{value:.2f}"


ACCURACY = Metric(
    "accuracy",
    "Accuracy",
    percent=True,
    formats=("choice", "ordering", "binary", "count", "percentage", "classes", "timestamps", "pattern"),
)
