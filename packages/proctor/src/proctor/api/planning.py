"""Plan a study: `plan`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from proctor.core import UsageError
from proctor.reports import PlanTable, plans_of
from proctor.runs import Store
from proctor.shell import StoredRuns, StudyPlanOptions, filled, listed, stored
from proctor.stats import StudyPlan, VarianceParts

if TYPE_CHECKING:
    from proctor.results import Pilot


def plan(
    source: StoredRuns | Store | str | Path | None = None, benchmark: str = "", **options: Unpack[StudyPlanOptions]
) -> PlanTable:
    """How many groups (videos) × questions × repetitions a comparison of two systems needs.

    The variances of the difference come from a pilot, two `systems` in `source` (a store, its path, or what `run` returned), or are
    given in points (`sd_group`, `sd_item`, `sd_repetition`). Raises `InputError` for impossible numbers, and `UsageError` for both
    sources of variances or none, and without anything to show. The command is `proctor plan`.
    """
    given = filled("plan", StudyPlanOptions, options)
    typed = given["sd_group"] is not None or given["sd_item"] is not None
    if typed and source is not None:
        raise UsageError("--sd-group and --sd-item are for a study without a pilot. Leave them or --from out.")
    if not typed and source is None:
        raise UsageError("The variances are missing: --from STORE --system A --system B, or --sd-group and --sd-item.")
    if given["margin"] is None and not given["difference"]:
        raise UsageError(
            "Say what the study should show: a true difference (--difference POINTS), or that the first system is not worse by a "
            "margin (--margin POINTS)."
        )
    pilot_groups, said, unit = None, "", 100.0
    if typed:
        parts = VarianceParts(
            *((given[name] or 0.0) ** 2 / unit**2 for name in ("sd_group", "sd_item", "sd_repetition"))
        )
    else:
        from proctor.results import read_pilot

        where = stored(source, benchmark, given["systems"])
        found = read_pilot(
            where.store,
            where.benchmark,
            where.systems,
            condition=given["condition"],
            metric=given["metric"],
            scorer=given["scorer"],
            sd_repetition=given["sd_repetition"],
        )
        unit = 100.0 if found.metric.percent else 1.0
        parts, pilot_groups, said = found.parts, found.groups, _source(found)
    margin = given["margin"]
    wanted = StudyPlan(
        difference=given["difference"] / unit,
        margin=None if margin is None else margin / unit,
        equivalence=given["equivalence"],
        alpha=given["alpha"],
        power=given["power"],
        seed=given["seed"],
    )
    plans = plans_of(wanted, listed(given["questions"]), listed(given["repeats"]))
    return PlanTable(parts, plans, pilot_groups, said, unit)


def _source(pilot: Pilot) -> str:
    """Where the variances come from, in words."""
    first, second = pilot.repetitions
    times = f"{first} and {second}" if first != second else str(first)
    asked = f", {times} repetitions" if max(first, second) > 1 else ""
    return f"{pilot.first} minus {pilot.second}, {pilot.metric.label}, {pilot.condition}{asked}"
