"""Where numbers come from: a store, or what one call of `proctor.run` left in it."""

from __future__ import annotations

import html
import os
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proctor.core import InputError

if TYPE_CHECKING:
    from proctor.api.scoring import Scored
    from proctor.api.tables import AnalysisTables, ComparisonTable, RankingTable, ResultsTable
    from proctor.reports import ReportSummary
    from proctor.runs import Outcome, Run, Store

DEFAULT_STORE = "proctor.db"
"""Where no store is named: this file in the working folder, or what `PROCTOR_STORE` names, as in the shell."""

IN_MEMORY = ":memory:"
"""The name of a store that is gone when nothing uses it any more."""


@dataclass(frozen=True)
class Evaluation:
    """What one call left in a store: `runs` of one benchmark, by system and condition. `outcome` says how asking ended
    (None for imported answers), `notes` what a person should know, `done` what was done, in a sentence each.

    Its methods are the functions of the same names, on these runs alone; `proctor.results(evaluation.store)` speaks of
    all runs in the store, the baselines among them.
    """

    store: Store
    benchmark: str
    runs: tuple[Run, ...]
    outcome: Outcome | None = None
    notes: tuple[str, ...] = field(default=())
    done: tuple[str, ...] = field(default=())

    @property
    def systems(self) -> tuple[str, ...]:
        """The names of its systems."""
        return tuple(dict.fromkeys(run.system for run in self.runs))

    @property
    def conditions(self) -> tuple[str, ...]:
        """The names of its conditions."""
        return tuple(dict.fromkeys(run.condition for run in self.runs))

    def results(self, **options: Any) -> ResultsTable:
        """See `proctor.results`."""
        from proctor.api.numbers import results

        return results(self, **options)

    def compare(self, **options: Any) -> ComparisonTable:
        """See `proctor.compare`."""
        from proctor.api.numbers import compare

        return compare(self, **options)

    def rank(self, **options: Any) -> RankingTable:
        """See `proctor.rank`."""
        from proctor.api.numbers import rank

        return rank(self, **options)

    def analyze(self, **options: Any) -> AnalysisTables:
        """See `proctor.analyze`."""
        from proctor.api.numbers import analyze

        return analyze(self, **options)

    def score(self, **options: Any) -> Scored:
        """See `proctor.score`."""
        from proctor.api.scoring import score

        return score(self, **options)

    def report(self, out: str | Path = "report.html", **options: Any) -> ReportSummary:
        """See `proctor.report`."""
        from proctor.api.output import report

        return report(self, out, **options)

    def export(self, out: str | Path | None = None, **options: Any) -> Any:
        """See `proctor.export`."""
        from proctor.api.output import export

        return export(self, out, **options)

    def to_pandas(self) -> Any:
        """How asking ended: a row a run, a column a status."""
        import pandas as pd

        from proctor.runs import load_items, status_counts

        items = load_items(self.store, self.store.card(self.benchmark), all_items=True)
        rows = [
            {"system": run.system, "condition": run.condition, **status_counts(self.store, run, items)}
            for run in self.runs
        ]
        return pd.DataFrame(rows)

    def __repr__(self) -> str:
        """Where it is and whose answers it holds."""
        runs = ", ".join(f"{run.system} / {run.condition}" for run in self.runs)
        return f"Evaluation({self.benchmark!r}, store={self.store.shown!r}, runs=[{runs}])"

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in (*self.done, *self.notes))
        title = html.escape(f"{self.benchmark} in {self.store.shown}")
        return f"<p><b>{title}</b></p>{self.to_pandas().to_html(index=False)}{notes}"


Source = "Evaluation | Store | str | Path | None"
"""What the functions on results take: an evaluation, a store, or its path or URL (None: the default store)."""


@dataclass(frozen=True)
class Stored:
    """A benchmark in a store, and the systems and conditions that are meant (all, where none are named)."""

    store: Store
    benchmark: str
    systems: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()


def open_store(store: Store | str | Path | None = None, *, create: bool = True) -> Store:
    """A store by path or URL; None is `DEFAULT_STORE`, `IN_MEMORY` one that nothing is kept of. Raises `InputError`
    where there is none, unless `create`."""
    from proctor.runs import Store

    if isinstance(store, Store):
        return store
    if store == IN_MEMORY:
        folder = tempfile.mkdtemp(prefix="proctor-")
        made = Store(Path(folder) / "memory.db")
        weakref.finalize(made, shutil.rmtree, folder, ignore_errors=True)
        return made
    return Store(store or os.environ.get("PROCTOR_STORE") or DEFAULT_STORE, create=create)


def stored(
    source: Evaluation | Store | str | Path | None,
    benchmark: str = "",
    systems: str | Sequence[str] = (),
    conditions: str | Sequence[str] = (),
) -> Stored:
    """What a function on results speaks of. Raises `InputError` where the benchmark has to be named."""
    from proctor.api.access import listed

    named, under = tuple(listed(systems)), tuple(listed(conditions))
    if isinstance(source, Evaluation):
        if benchmark not in {"", source.benchmark}:
            raise InputError(None, "benchmark", found=repr(benchmark), expected=f"{source.benchmark!r}, or a store")
        return Stored(source.store, source.benchmark, named or source.systems, under or source.conditions)
    store = open_store(source, create=False)
    if not benchmark:
        known = store.benchmark_names()
        if len(known) != 1:
            found = f"{len(known)} benchmarks ({', '.join(known)})" if known else "no benchmark"
            raise InputError(store.shown, "benchmark", found=found, expected="the name of one")
        benchmark = known[0]
    return Stored(store, benchmark, named, under)


def check_options(function: str, options: dict[str, Any], known: type) -> None:
    """Raises `TypeError` for an option that the function does not have, as Python does for a parameter."""
    from difflib import get_close_matches

    names = list(known.__annotations__)
    for name in options:
        if name not in names:
            near = get_close_matches(name, names, n=1)
            meant = f"; did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}{meant}")
