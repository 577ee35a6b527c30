"""Runs between the two sides of a gap: planned, priced, asked, and read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from proctor.core import InputError, ProctorError, count_of, reader_or_default
from proctor.shell.explained_sides import ExplainedSides
from proctor.shell.options import ExplainOptions, listed
from proctor.shell.run_preparation import Arranged, arrange
from proctor.shell.workers import benchmark_in
from proctor.stats import Resampling

if TYPE_CHECKING:
    from proctor.results import ExplainedRun, Explanation, RunBetween, RunDifference, SwapPlan
    from proctor.runs import Run, Tally


@dataclass(frozen=True)
class GapRuns:
    """The runs that tell apart what was asked (`rows`). `between` are those that are complete, if all are: by the steps that
    each takes from the second side. `differences` are all differences of the two sides."""

    sides: ExplainedSides
    plan: SwapPlan
    given: ExplainOptions
    differences: tuple[RunDifference, ...]
    _read: dict[int, ExplainedRun | None] = field(default_factory=dict)  # complete runs, by number: each is read once

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
        if run is None:
            return RunBetween(steps, name, condition, 0, len(wanted) * repeats)
        there = sum(len(wanted & self.sides.where.store.settled(run, number)) for number in range(repeats))
        left = len(wanted) * repeats - there
        return RunBetween(steps, name, condition, there, left, why="" if left else self._unscored(run))

    def _unscored(self, run: Run) -> str:
        """What a complete run lacks: scores by the first side's scorer."""
        side = self._side(run)
        lacking = int((self._mask & ~side.items).sum()) if side is not None else int(self._mask.sum())
        scorer = self.sides.first.scorer
        return f"{count_of(lacking, 'answer')} without a score by {scorer}: proctor score" if lacking else ""

    def _side(self, run: Run) -> ExplainedRun | None:
        """A run between, scored by the first side's scorer as far as it is; None without any score."""
        from proctor.results import run_to_explain
        from proctor.runs import CODE

        if run.id not in self._read:
            first, found = self.sides.first, None
            scored = self.sides.where.store.count_scored(run, first.scorer) > 0
            with suppress(ProctorError):
                found = run_to_explain(first.shared, run, scorer=first.scorer if scored else CODE, policy=first.policy)
            self._read[run.id] = found
        return self._read[run.id]

    def _stored(self, name: str, condition: str) -> Run | None:
        runs = self.sides.where.store.runs(self.sides.where.benchmark)
        return next((run for run in runs if (run.system, run.condition) == (name, condition)), None)

    @property
    def _mask(self) -> NDArray[np.bool_]:
        """The items that both sides have an answer of: what is asked."""
        found: NDArray[np.bool_] = self.sides.first.items & self.sides.second.items
        return found

    def _common(self) -> list[str]:
        listed = self.sides.first.shared.listed
        return [listed[row].id for row in np.flatnonzero(self._mask).tolist()]

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
        if not self.plan.steps:
            raise InputError("--ask", found="no difference that a run can swap", expected="one (see the table)")
        told = []
        for row in rows:
            if row.left:
                made = await (await self._arranged(row).prepare()).ask(self.given["stop"], on_change)
                told += [f"{row.name}: {line}" for line in made.done]
        return told

    @property
    def between(self) -> dict[frozenset[str], ExplainedRun] | None:
        """The runs, by their steps; None unless all are complete and scored. None are needed where the two sides differ in
        one step alone."""
        rows = self.rows
        if any(row.left or row.why for row in rows):
            return None
        runs = {frozenset(row.steps): self._stored(row.name, row.condition) for row in rows}
        sides = {steps: self._side(run) for steps, run in runs.items() if run is not None}
        return {steps: side for steps, side in sides.items() if side is not None}


def gap_runs(sides: ExplainedSides, given: ExplainOptions) -> GapRuns:
    """The runs between two sides, as far as any can tell apart what was asked."""
    from proctor.results import GapGame, differences_of, swap_plan

    found = differences_of(GapGame(sides.first, sides.second))
    sounding = any(item.sounding for item in sides.first.shared.listed)
    templates = _templates(sides.where.benchmark, listed(given["prompts"]), sounding=sounding)
    return GapRuns(sides, swap_plan(sides.first, sides.second, found, templates), given, found)


def explained_gap(runs: GapRuns, *, priced: bool = True) -> Explanation:
    """The explanation of a gap, with its runs between where all are there. With `priced` those that are to be asked have an
    estimate of what they would send, for which the media are read; without it no file is opened but the store's and prompts."""
    from proctor.results import GapGame, explain_gap

    sides, given, between = runs.sides, runs.given, runs.between
    steps = tuple(runs.plan.steps) if between is not None else ()
    return explain_gap(
        GapGame(sides.first, sides.second, steps, between or {}),
        Resampling(draws=given["draws"], seed=given["seed"]),
        differences=runs.differences,
        runs=runs.priced() if priced else runs.rows,
        fixed=runs.plan.fixed,
    )


def _templates(benchmark: str, files: Sequence[str | Path], *, sounding: bool) -> dict[str, str]:
    """The choice of each prompt template that is here, by its hash: the usual one, the benchmark's variants, and the given
    files. Raises `InputError` for a file that is no template."""
    from proctor.systems import prompt_for_benchmark

    found: dict[str, str] = {}
    for choice in (*map(str, files), *_variants(benchmark), ""):
        found[prompt_for_benchmark(benchmark, choice, sounding=sounding).sha256] = choice
    return found


def _variants(benchmark: str) -> Iterator[str]:
    folder = reader_or_default(benchmark).prompts
    names: Mapping[str, None] = {}
    if folder is not None:
        with suppress(OSError):
            names = dict.fromkeys(file.name for file in sorted(folder.glob(f"{benchmark}.*.txt.j2")))
    yield from (name.removeprefix(f"{benchmark}.").removesuffix(".txt.j2") for name in names)
