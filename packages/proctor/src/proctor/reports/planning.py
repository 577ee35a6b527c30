"""The plan of a study as a table, in words, and as a power curve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from proctor.core import DASH, Table, count_of, plain_table, thousands
from proctor.reports.blocks import Figure
from proctor.reports.figures import SHARES, Curve, Dot, draw_curves, write_picture
from proctor.reports.frames import FrameLike, Record
from proctor.stats import Needed, StudyPlan, VarianceParts, needed_groups, plan_power

_POINTS = 9  # of a curve
_BAR = 30


@dataclass(frozen=True, repr=False)
class PlanTable(FrameLike):
    """A row for each number of items per group and of repetitions: how many groups are needed, with the interval from the pilot's
    uncertainty, and how many answers of each system that makes. `parts` are in squares of the scores' unit, differences and
    margins in that unit; `pilot_groups` is None if the variances are given."""

    parts: VarianceParts
    plans: tuple[StudyPlan, ...]
    pilot_groups: int | None = None
    source: str = ""
    unit: float = 100.0  # points of one unit of the scores

    @cached_property
    def needed(self) -> list[Needed]:
        """The needed number of groups for each plan."""
        return [needed_groups(self.parts, plan, self.pilot_groups) for plan in self.plans]

    @cached_property
    def rows(self) -> list[Record]:
        """The plan's numbers, and what it needs."""
        return [
            {
                "items_per_group": plan.items,
                "repetitions": plan.repetitions,
                "groups": one.groups,
                "groups_low": one.low,
                "groups_high": one.high,
                "answers": None if one.groups is None else one.groups * plan.items * plan.repetitions,
                "power": plan.power,
                "alpha": plan.alpha,
                "difference": plan.difference,
                "margin": plan.margin,
                "equivalence": plan.equivalence,
                "variance_group": self.parts.group,
                "variance_item": self.parts.item,
                "variance_repetition": self.parts.repetition,
                "pilot_groups": self.pilot_groups,
            }
            for plan, one in zip(self.plans, self.needed, strict=True)
        ]

    @property
    def title(self) -> str:
        """What the study should show."""
        plan = self.plans[0]
        power = f"power {100 * plan.power:g} %"
        if plan.margin is None:
            return (
                f"Detect a difference of {plan.difference * self.unit:g} points ({power}, two-sided at {plan.alpha:g})"
            )
        kind = "equivalence within" if plan.equivalence else "non-inferiority within"
        true = f"true difference {plan.difference * self.unit:g}"
        return f"Show {kind} {plan.margin * self.unit:g} points ({true}, {power}, one-sided at {plan.alpha / 2:g})"

    @property
    def tables(self) -> Sequence[Table]:
        """One row for each plan."""
        heads = (">Questions per group", ">Repetitions", ">Groups", ">95 % of the pilot", ">Answers per system")
        rows = [
            (
                str(plan.items),
                str(plan.repetitions),
                _many(one.groups),
                DASH if self.pilot_groups is None else f"{_many(one.low)} to {_many(one.high)}",
                DASH if one.groups is None else thousands(one.groups * plan.items * plan.repetitions),
            )
            for plan, one in zip(self.plans, self.needed, strict=True)
        ]
        return [plain_table(self.title, heads, rows)]

    @property
    def notes(self) -> tuple[str, ...]:
        """Where the variances come from, and what the interval says."""
        unit = self.unit**2
        parts = (
            f"Variances of a difference (points²): {self.parts.group * unit:.4g} between groups, {self.parts.item * unit:.4g} "
            f"between items, {self.parts.repetition * unit:.4g} between repetitions"
        )
        if self.pilot_groups is None:
            return (f"{parts}, as given.",)
        said = f"{parts}, from {self.source} ({count_of(self.pilot_groups, 'group')})."
        more = "The needed number is as uncertain as these variances; the pilot's own difference is not used."
        return (said, more)

    def curve(self, plan: StudyPlan, needed: Needed) -> list[tuple[int, float, float | None, float | None]]:
        """Points of the power curve: groups, power, and its ends from the pilot's uncertainty."""
        last = max(12, 2 * (needed.groups or 50))
        step = max(1, last // _POINTS)
        found = []
        for groups in range(max(2, step), last + 1, step):
            own = plan_power(self.parts, plan, groups)
            found.append((groups, own, *self._ends(plan, needed, groups)))
        return found

    def _ends(self, plan: StudyPlan, needed: Needed, groups: int) -> tuple[float | None, float | None]:
        if self.pilot_groups is None or not needed.variance_low or not needed.variance_high:
            return None, None
        low, high = (
            plan_power(self.parts.times(factor), plan, groups) for factor in (needed.variance_high, needed.variance_low)
        )
        return low, high

    def figure(self) -> Figure:
        """The power by the number of groups, a panel for each plan."""
        curves = []
        for plan, one in zip(self.plans, self.needed, strict=True):
            points = self.curve(plan, one)
            name = f"{count_of(plan.items, 'question')} × {count_of(plan.repetitions, 'repetition')}"
            curves.append(
                Curve(name, [at for at, *_ in points], [Dot(value, low, high) for _, value, low, high in points])
            )
        svg = draw_curves("plan", self.title, curves, SHARES, ("groups", "power"), mark=self.plans[0].power)
        return Figure(svg, f"{self.title}. Power by the number of groups.", self.tables[0])

    def write_figure(self, file: str | Path) -> Path:
        """Write the power curves as a .png, .pdf or .svg file. Raises `InputError` for another ending."""
        return write_picture(self.figure().svg, Path(file))

    def curve_text(self) -> list[str]:
        """The power curve of the first plan for a terminal."""
        plan, one = self.plans[0], self.needed[0]
        lines = [f"Power by groups, {count_of(plan.items, 'question')} × {count_of(plan.repetitions, 'repetition')}:"]
        for groups, value, *_ in self.curve(plan, one):
            lines.append(f"{groups:>9,} {'#' * round(_BAR * value):<{_BAR}} {100 * value:5.1f} %".replace(",", " "))
        return lines


def plans_of(plan: StudyPlan, items: Sequence[int], repetitions: Sequence[int]) -> tuple[StudyPlan, ...]:
    """The same plan for each number of items in a group and of repetitions."""
    return tuple(replace(plan, items=many, repetitions=again) for many in items for again in repetitions)


def _many(groups: int | None) -> str:
    return "> 1 000 000" if groups is None else thousands(groups)
