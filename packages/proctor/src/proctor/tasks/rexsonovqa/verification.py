"""The paper's figures computed again from the recorded answers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from proctor import core
from proctor.judges import RUBRIC_LABELS
from proctor.tasks.rexsonovqa.native import read_recorded
from proctor.tasks.rexsonovqa.published import FIRST, LEVELS, known_figures, systems_in
from proctor.tasks.rexsonovqa.reader import READER

if TYPE_CHECKING:
    from proctor.results import Result


class SonoFigures:
    """The paper's tables and the subsets in its text (see `proctor.core.PublishedFigures`)."""

    files = ("benchmark_questions", "results")

    async def verify(self, data: Path) -> list[core.VerifiedFigure]:
        """For each system in the paper's tables the counts under `video`, and for the first one the subsets in the text,
        from the recorded answers in `results`. The answers of the blind run were not published."""
        from proctor.interchange import results_of_recorded

        folders = {_plain(path.name): path for path in sorted((data / "results").iterdir()) if path.is_dir()}
        benchmark, known = READER.load(data), known_figures()
        at_hand = {name: one for name in systems_in(known) if (one := folders.get(_plain(name))) is not None}
        recorded = {name: read_recorded(one, benchmark) for name, one in at_hand.items()}
        facets = dict.fromkeys(one["facet"] for one in known["parts"])
        found = await results_of_recorded(benchmark, recorded, [(), *((facet,) for facet in facets)])
        ours = {(row.system, row.metric, *row.facets.items()): row for row in found}
        figures = []
        for one in known["tables"]:
            metric = one.get("read", one["metric"])  # what the recorded verdicts give the table by
            row = ours.get((one["system"], metric))
            for level, *cells in zip(LEVELS[one["metric"]], *one["counts"], strict=True):
                name = f"{one['system']}, {metric}: {level}"
                figures.append(core.VerifiedFigure(name, f"table {one['table']}", sum(cells), _count(row, level)))
        for one in known["parts"]:
            row = ours.get((FIRST, one["metric"], (one["facet"], one["value"])))
            value = row.value if row is not None and one["condition"] == "video" else None
            name = f"{FIRST}, {one['condition']}, {one['metric']}: {one['value']}"
            rounding = 0.5 * 10.0 ** -len(str(one["number"]).partition(".")[2])
            figures.append(core.VerifiedFigure(name, "section 5", one["number"], value, rounding))
        return figures


PUBLISHED = SonoFigures()


def _plain(name: str) -> str:
    """A system's name without the characters that differ between a table and a folder."""
    return re.sub(r"[^a-z0-9.]", "", name.lower())


def _count(row: Result | None, level: str) -> float | None:
    """The number of answers with this level; for a metric without named levels, of those right or wrong. Failed calls
    count as the lowest level, as in the paper's tables."""
    if row is None or row.value is None:
        return None
    if row.levels:
        lacking = row.failed + row.missing if level == RUBRIC_LABELS[-1] else 0
        return float(row.levels.get(level, 0) + lacking)
    right = round(row.value * row.n)
    return float(right if level == "correct" else row.n - right)
