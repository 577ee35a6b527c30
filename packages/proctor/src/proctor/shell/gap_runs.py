"""Runs between the two sides of a gap: planned, priced, asked, and read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from proctor.core import InputError, ProctorError, reader_or_default
from proctor.shell.explained_sides import ExplainedSides
from proctor.shell.options import ExplainOptions, listed
from proctor.shell.run_preparation import Arranged, arrange
from proctor.shell.workers import benchmark_in

if TYPE_CHECKING:
    from proctor.results import ExplainedRun, RunBetween, SwapPlan
    from proctor.runs import Run, Tally


@dataclass(frozen=True)
class GapRuns:
    """The runs that tell apart what was asked (`rows`). `between` are those that are complete, if all are: by the steps that
    each takes from the second side."""

    sides: ExplainedSides
    plan: SwapPlan
    given: ExplainOptions

    @property
    def rows(self) -> list[RunBetween]:
        """What is there of each run, and what is left to ask."""
        from proctor.results import name_between

        rows = []
        for steps in self.plan.subsets:
            options = self.plan.options(steps)
            name = name_between(self.sides.first, self.sides.second, steps)
            rows.append(self._row(steps, name, str(options["conditions"])))
        return rows

    def _row(self, steps: tuple[str, ...], name: str, condition: str) -> RunBetween:
        from proctor.results import RunBetween

        run, wanted, repeats = self._stored(name, condition), set(self._common()), self._repeats()
        there = 0
        for number in range(repeats if run is not None else 0):
            there += len(wanted & self.sides.where.store.settled(run, number)) if run is not None else 0
        return RunBetween(steps, name, condition, there, len(wanted) * repeats - there)

    def _stored(self, name: str, condition: str) -> Run | None:
        runs = self.sides.where.store.runs(self.sides.where.benchmark)
        return next((run for run in runs if (run.system, run.condition) == (name, condition)), None)

    def _common(self) -> list[str]:
        """The items that both sides have an answer of: what is asked."""
        first, second = self.sides.first, self.sides.second
        rows = np.flatnonzero(first.items & second.items)
        return [first.shared.listed[row].id for row in rows.tolist()]

    def _repeats(self) -> int:
        return max(1, len(self.sides.first.answers))

    def priced(self) -> list[RunBetween]:
        """The rows with what their requests would send, or why that is not known. Asks nobody."""
        return [self._priced(row) if row.left else row for row in self.rows]

    def _priced(self, row: RunBetween) -> RunBetween:
        from proctor.shell.stores import wait_for

        try:
            arranged = self._arranged(row)
            (estimate,) = wait_for(arranged.estimate)
        except ProctorError as error:
            return replace(row, why=str(error))
        return replace(row, pictures=estimate.pictures, tokens=estimate.tokens, input_usd=estimate.input_usd)

    def _arranged(self, row: RunBetween) -> Arranged:
        """The run as `proctor run` would take it, of the common items alone."""
        where, given = self.sides.where, self.given
        options: dict[str, Any] = self.plan.options(row.steps)
        media = given["media"] or where.store.card(where.benchmark).folders.get("media")
        options |= {"name": row.name, "store": where.store, "media": media, "repeats": self._repeats()}
        options |= {name: given[name] for name in ("price", "concurrency", "all_items")}
        options |= {"base_url": given["base_url"]} if listed(given["base_url"]) else {}
        options |= {"baselines": False}
        arranged = arrange(benchmark_in(where.store, where.benchmark), None, **options)
        asked = set(self._common())
        others = frozenset(item.id for item in arranged.benchmark.items if item.id not in asked)
        return replace(arranged, plan=replace(arranged.plan, left_out=others))

    async def ask(self, on_change: Callable[[Tally], None]) -> list[str]:
        """Ask what is left of each run, one after the other; what is on disk stays, and the next call goes on. Returns what
        was done, in sentences. Raises `InputError` where no run can tell anything apart."""
        rows = self.rows
        if not rows:
            raise InputError("--ask", found="no difference that a run can swap", expected="one (see the table)")
        told = []
        for row in rows:
            if row.left:
                made = await (await self._arranged(row).prepare()).ask(self.given["stop"], on_change)
                told += [f"{row.name}: {line}" for line in made.done]
        return told

    @property
    def between(self) -> dict[frozenset[str], ExplainedRun]:
        """The runs, by their steps; empty unless all are complete and scored."""
        from proctor.results import run_to_explain

        rows, first = self.rows, self.sides.first
        if not rows or any(row.left for row in rows):
            return {}
        found = {}
        for row in rows:
            run = self._stored(row.name, row.condition)
            if run is None:
                return {}
            found[frozenset(row.steps)] = run_to_explain(
                first.shared, run, scorer=first.scorer if _scored_by(self.sides, run) else "", policy=first.policy
            )
        return found


def _scored_by(sides: ExplainedSides, run: Run) -> bool:
    """Whether the first side's scorer has scored a run."""
    return sides.where.store.count_scored(run, sides.first.scorer) > 0


def gap_runs(sides: ExplainedSides, given: ExplainOptions) -> GapRuns:
    """The runs between two sides, as far as any can tell apart what was asked."""
    from proctor.results import GapGame, differences_of, swap_plan

    differences = differences_of(GapGame(sides.first, sides.second))
    templates = _templates(sides.where.benchmark, listed(given["prompts"]))
    return GapRuns(sides, swap_plan(sides.first, sides.second, differences, templates), given)


def _templates(benchmark: str, files: Sequence[str | Path]) -> dict[str, str]:
    """The choice of each prompt template that is here, by its hash: the usual one, the benchmark's variants, and the given
    files. Raises `InputError` for a file that is no template."""
    from proctor.systems import prompt_for_benchmark

    found: dict[str, str] = {}
    for choice in (*map(str, files), *_variants(benchmark), ""):
        found[prompt_for_benchmark(benchmark, choice).sha256] = choice
    return found


def _variants(benchmark: str) -> Iterator[str]:
    folder = reader_or_default(benchmark).prompts
    names: Mapping[str, None] = {}
    if folder is not None:
        with suppress(OSError):
            names = dict.fromkeys(file.name for file in sorted(folder.glob(f"{benchmark}.*.txt.j2")))
    yield from (name.removeprefix(f"{benchmark}.").removesuffix(".txt.j2") for name in names)
