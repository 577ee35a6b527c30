"""From names to jobs: which items a run still has to ask, after everything is checked that can be
checked before the first call is paid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from pydantic import JsonValue

from proctor.core import Benchmark, InputError, Item, NeedsReferences, Scorer, System, View
from proctor.media import CONDITIONS, MediaLibrary, view
from proctor.runs.engine import Job
from proctor.runs.store import Run, Store

__all__ = ["Plan", "PlanOptions", "chosen_items", "plan", "run_settings"]


@dataclass(frozen=True)
class PlanOptions:
    """`limit` takes the first items only; `all_items` also those that do not count."""

    seed: int = 0
    all_items: bool = False
    limit: int | None = None
    budget_s: float | None = None


@dataclass(frozen=True)
class Plan:
    """What is to be asked, and what was found on the way."""

    jobs: list[Job]
    runs: list[Run]
    settled: int
    unsupported: dict[str, int]

    @property
    def to_ask(self) -> int:
        """Items to be asked over all jobs."""
        return sum(len(job.items) for job in self.jobs)


def plan(
    store: Store,
    benchmark: Benchmark,
    systems: Sequence[System],
    conditions: Sequence[str],
    library: MediaLibrary,
    *,
    scorers: Sequence[Scorer],
    options: PlanOptions | None = None,
) -> Plan:
    """The jobs of every system under every condition.

    Items go out group by group, so that a video is decoded once and servers can reuse a common
    prefix. Raises `InputError` before anything is written: unknown
    conditions, missing or broken media, other settings or items under a name that the store knows.
    """
    options = options or PlanOptions()
    items = chosen_items(benchmark, options)
    if any(CONDITIONS.get(condition).sees for condition in conditions):
        library.check(items)
    store.add_benchmark(benchmark)
    jobs: list[Job] = []
    settled = 0
    unsupported: dict[str, int] = {}
    for system in systems:
        if isinstance(system, NeedsReferences):
            system.learn(items)
        mine = [item for item in items if system.supports(item)]
        if len(mine) < len(items):
            unsupported[system.name] = len(items) - len(mine)
        for condition in conditions:
            settings = run_settings(system, library, condition, seed=options.seed, budget_s=options.budget_s)
            run = store.start_run(benchmark.name, system.name, condition, settings)
            known = store.settled(run)
            open_items = [item for item in mine if item.id not in known]
            settled += len(mine) - len(open_items)
            make_view = partial(
                _view, condition=condition, library=library, seed=options.seed, others=benchmark.items
            )
            jobs.append(Job(run, system, open_items, make_view, scorers))
    return Plan(jobs, [job.run for job in jobs], settled, unsupported)


def chosen_items(benchmark: Benchmark, options: PlanOptions) -> list[Item]:
    """The items that a run asks, in the order of their media."""
    items = sorted(benchmark.counted(all_items=options.all_items), key=_by_media)[: options.limit]
    if not items:
        raise InputError(benchmark.name, found="no items", expected="at least one item that counts")
    return items


def _view(item: Item, *, condition: str, library: MediaLibrary, seed: int, others: Sequence[Item]) -> View:
    return view(item, condition, library, seed=seed, others=others)


def _by_media(item: Item) -> tuple[str, ...]:
    return tuple(media.source for media in item.media)


def run_settings(
    system: System, library: MediaLibrary, condition: str, *, seed: int, budget_s: float | None = None
) -> dict[str, JsonValue]:
    """Everything that changes a run's answers, as it is recorded with the run."""
    media: dict[str, JsonValue] = (
        library.settings.model_dump(mode="json") if CONDITIONS.get(condition).sees else {}
    )
    return {
        "system": system.settings,
        "media": media,
        "seed": seed,
        "budget_s": budget_s,
        "told_the_key": isinstance(system, NeedsReferences),
    }
