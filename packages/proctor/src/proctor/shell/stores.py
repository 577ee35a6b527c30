"""Stores and evaluations as sources of results, and running coroutines from plain code."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import html
import os
import shutil
import tempfile
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from proctor import core
from proctor.core import BENCHMARKS, InputError, ProctorError, benchmark_path, reader_of
from proctor.shell.options import listed

if TYPE_CHECKING:
    from proctor.runs import MergedRows, Outcome, Run, Store

P = ParamSpec("P")

T = TypeVar("T")

DEFAULT_STORE = "proctor.db"
"""The store if none is given and `PROCTOR_STORE` is not set: a file in the working folder."""

IN_MEMORY = ":memory:"
"""The name of a temporary store, which is deleted when nothing uses it any more."""


@dataclass(frozen=True)
class StoredRuns:
    """What one call of `run` or `import_answers` left in a store: `runs` of one benchmark, by system and condition.
    `outcome` says how the run ended (None for imported answers). `notes`, `done` and `costs` are sentences on what to know,
    on what was done, and on what it cost."""

    store: Store
    benchmark: str
    runs: tuple[Run, ...]
    outcome: Outcome | None = None
    notes: tuple[str, ...] = field(default=())
    done: tuple[str, ...] = field(default=())
    costs: tuple[str, ...] = field(default=())

    @property
    def systems(self) -> tuple[str, ...]:
        """The names of its systems."""
        return tuple(dict.fromkeys(run.system for run in self.runs))

    @property
    def conditions(self) -> tuple[str, ...]:
        """The names of its conditions."""
        return tuple(dict.fromkeys(run.condition for run in self.runs))

    def to_pandas(self) -> Any:
        """The number of answers by status: a row for each run, a column for each status."""
        import pandas as pd

        from proctor.results import load_items, status_counts

        items = load_items(self.store, self.store.card(self.benchmark), all_items=True)
        rows = [
            {"system": run.system, "condition": run.condition, **status_counts(self.store, run, items)}
            for run in self.runs
        ]
        return pd.DataFrame(rows)

    def __repr__(self) -> str:
        """The benchmark, the store and the runs."""
        runs = ", ".join(f"{run.system} / {run.condition}" for run in self.runs)
        return f"{type(self).__name__}({self.benchmark!r}, store={self.store.shown!r}, runs=[{runs}])"

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in (*self.done, *self.costs, *self.notes))
        title = html.escape(f"{self.benchmark} in {self.store.shown}")
        return f"<p><b>{title}</b></p>{self.to_pandas().to_html(index=False)}{notes}"


@dataclass(frozen=True)
class Stored:
    """A benchmark in a store, with the chosen systems and conditions (empty: all)."""

    store: Store
    benchmark: str
    systems: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()

    def output(self, out: str | Path, kinds: Sequence[str] = (), read: Sequence[str | Path] = ()) -> Path:
        """The path of a file to write. It may replace neither the store, nor the questions, nor a file in `read` (see
        `output_file`)."""
        from proctor.runs import store_files

        data = self.store.card(self.benchmark).folders.get("data")
        known: Sequence[Path] = ()
        if data is not None:
            with suppress(ProctorError):  # they are gone, or can't be read any more
                named = self.benchmark in BENCHMARKS.names()
                reader = reader_of(self.benchmark) if named else core.reader_at(Path(data))
                known = core.question_files(reader, Path(data))
        return core.output_file(out, kinds, (*store_files(self.store.shown), *known, *read))


def open_store(store: Store | str | Path | None = None, *, create: bool = True) -> Store:
    """Open a store by path or URL; None is `DEFAULT_STORE`, `IN_MEMORY` a temporary one. Raises `InputError` if it does
    not exist, unless `create`."""
    from proctor.runs import Store

    if isinstance(store, Store):
        return store
    if store == IN_MEMORY:
        folder = tempfile.mkdtemp(prefix="proctor-")
        made = Store(Path(folder) / "memory.db")
        core.when_gone(made, shutil.rmtree, folder, ignore_errors=True)
        return made
    named = store or os.environ.get("PROCTOR_STORE")
    if not (named or create or Path(DEFAULT_STORE).exists()):
        raise InputError(DEFAULT_STORE, found="no such file", expected="a store (name it with --store)")
    return Store(named or DEFAULT_STORE, create=create)


def join_stores(sources: Sequence[str], store: Store | str | Path | None = None) -> tuple[Store, list[MergedRows]]:
    """Merge stores into another one (see `proctor.runs.merge_stores`). If that raises an error, no new store is left."""
    from proctor.runs import Store, merge_stores, store_files

    opened = [open_store(source, create=False) for source in sources]
    named = store.shown if isinstance(store, Store) else store or os.environ.get("PROCTOR_STORE") or DEFAULT_STORE
    there = store_files(str(named))
    new = [file for file in there if not file.exists()] if there and not there[0].exists() else []
    target, done = open_store(store), False
    try:
        found = merge_stores(target, opened)
        done = True
    finally:
        if new and not done:
            target.close()
            for file in new:
                file.unlink(missing_ok=True)
    return target, found


def stored(
    source: StoredRuns | Store | str | Path | None,
    benchmark: str = "",
    systems: str | Sequence[str] = (),
    conditions: str | Sequence[str] = (),
) -> Stored:
    """The benchmark and runs that a function reads. Raises `InputError` if the benchmark has to be named."""
    named, under = tuple(listed(systems)), tuple(listed(conditions))
    if isinstance(source, StoredRuns):
        if benchmark not in {"", source.benchmark}:
            raise InputError("benchmark", found=repr(benchmark), expected=f"{source.benchmark!r}, or a store")
        return Stored(source.store, source.benchmark, named or source.systems, under or source.conditions)
    store = open_store(source, create=False)
    benchmark = name_in(store, benchmark)
    if not benchmark:
        known = store.benchmark_names()
        if len(known) != 1:
            found = f"{len(known)} benchmarks ({', '.join(known)})" if known else "no benchmark"
            raise InputError(store.shown, "benchmark", found=found, expected="the name of one")
        benchmark = known[0]
    return Stored(store, benchmark, named, under)


def name_in(store: Store, benchmark: str) -> str:
    """A benchmark's name in a store. Your own questions may be given by path, or by the name of their file or folder, if
    that is no other benchmark's. Raises `InputError` for a path from which nothing in the store was read."""
    if benchmark in {"", *store.benchmark_names()}:
        return benchmark
    path = benchmark_path(benchmark)
    data = {name: store.card(name).folders.get("data") for name in store.benchmark_names()}
    if path is not None and (
        same := [name for name, location in data.items() if location and Path(location) == path.resolve()]
    ):
        return same[0]
    known = {name: _locations(location) for name, location in data.items()}
    if path is None:
        called = [
            name
            for name, locations in known.items()
            if benchmark in {word for one in locations for word in _words(one)}
        ]
        return called[0] if len(called) == 1 and benchmark not in BENCHMARKS.names() else benchmark
    whole = path.resolve()
    found = next((name for name, locations in known.items() if whole in locations), None)
    if found is None:
        expected = f"questions of which it has answers ({', '.join(known) or 'none'})"
        raise InputError(store.shown, found=str(path), expected=expected)
    return found


def _locations(data: str | None) -> list[Path]:
    """The location that questions were read from, and their files."""
    if data is None:
        return []
    location = Path(data)
    with suppress(ProctorError, OSError):  # they are gone, or can't be read any more
        return [
            location,
            *(file.resolve() for file in core.reader_of_paths().question_files(location) if file.suffix != ".yaml"),
        ]
    return [location]


def _words(location: Path) -> tuple[str, str]:
    return location.name, location.stem


def existing_store(store: Store | str | Path | None) -> Store | None:
    """The store, or None if there is none yet."""
    try:
        return open_store(store, create=False)
    except InputError:
        return None


def sync_twin(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """The blocking version of an async function: the same signature and docstring, its name without `_async`."""

    @functools.wraps(function)
    def twin(*args: P.args, **kwargs: P.kwargs) -> T:
        return wait_for(lambda: function(*args, **kwargs))

    twin.__name__ = twin.__qualname__ = function.__name__.removesuffix("_async")
    return twin


def wait_for(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run the coroutine that `make` returns, and return its result.

    If an event loop runs in this thread, as in a notebook, the coroutine runs in a loop in another thread. Ctrl-C stops
    the work in both cases; what is on disk stays there.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(make())
    loops: list[asyncio.AbstractEventLoop] = []

    def beside() -> T:
        with asyncio.Runner() as runner:
            loops.append(runner.get_loop())
            return runner.run(make())

    def cancel() -> None:
        for task in asyncio.all_tasks(loops[0]):
            task.cancel()

    with ThreadPoolExecutor(1, "proctor-loop") as pool:
        working = pool.submit(contextvars.copy_context().run, beside)
        try:
            return working.result()
        except KeyboardInterrupt:
            if loops:
                loops[0].call_soon_threadsafe(cancel)
            wait([working])
            raise
