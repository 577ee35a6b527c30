"""Where numbers come from: a store, or what one call of `proctor.run` left in it; where a benchmark's files lie; and
the way from plain code into the event loop."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import html
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from proctor.api.options import listed
from proctor.core import (
    BENCHMARKS,
    InputError,
    ProctorError,
    UsageError,
    benchmark_path,
    output_file,
    reader_of,
    reader_of_paths,
    when_gone,
)

if TYPE_CHECKING:
    from proctor.api.scores import Scored
    from proctor.api.tables import AnalysisTables, ComparisonTable, RankingTable, ResultsTable
    from proctor.core import Benchmark, Excerpt
    from proctor.media import Excerpts
    from proctor.reports import ReportSummary
    from proctor.runs import Outcome, Run, Store

P = ParamSpec("P")
T = TypeVar("T")

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
        from proctor.api.scores import score

        return score(self, **options)

    def report(self, out: str | Path = "report.html", **options: Any) -> ReportSummary:
        """See `proctor.report`."""
        from proctor.api.numbers import report

        return report(self, out, **options)

    def export(self, out: str | Path | None = None, **options: Any) -> Any:
        """See `proctor.export`."""
        from proctor.api.numbers import export

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


@dataclass(frozen=True)
class Stored:
    """A benchmark in a store, and the systems and conditions that are meant (all, where none are named)."""

    store: Store
    benchmark: str
    systems: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()

    def output(self, out: str | Path, kinds: Sequence[str] = (), read: Sequence[str | Path] = ()) -> Path:
        """The place of a file to write, which replaces neither the store, nor the questions, nor what else is `read`
        (see `output_file`)."""
        from proctor.runs import store_files

        data = self.store.card(self.benchmark).folders.get("data")
        known: Sequence[Path] = ()
        if data is not None:
            with suppress(ProctorError):  # they are gone, or can't be read any more
                named = self.benchmark in BENCHMARKS.names()
                known = (reader_of(self.benchmark) if named else reader_of_paths()).question_files(Path(data))
        return output_file(out, kinds, (*store_files(self.store.shown), *known, *read))


def open_store(store: Store | str | Path | None = None, *, create: bool = True) -> Store:
    """A store by path or URL; None is `DEFAULT_STORE`, `IN_MEMORY` one that nothing is kept of. Raises `InputError`
    where there is none, unless `create`."""
    from proctor.runs import Store

    if isinstance(store, Store):
        return store
    if store == IN_MEMORY:
        folder = tempfile.mkdtemp(prefix="proctor-")
        made = Store(Path(folder) / "memory.db")
        when_gone(made, shutil.rmtree, folder, ignore_errors=True)
        return made
    return Store(store or os.environ.get("PROCTOR_STORE") or DEFAULT_STORE, create=create)


def stored(
    source: Evaluation | Store | str | Path | None,
    benchmark: str = "",
    systems: str | Sequence[str] = (),
    conditions: str | Sequence[str] = (),
) -> Stored:
    """What a function on results speaks of. Raises `InputError` where the benchmark has to be named."""
    named, under = tuple(listed(systems)), tuple(listed(conditions))
    if isinstance(source, Evaluation):
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


def media_at(place: str | Path | None, cache: str | Path | None = None) -> Path | None:
    """The folder of media at a place: a path, or the URL of a folder in object storage, whose files are fetched into
    the cache when they are needed. None for None. Raises `InputError` for a URL that carries more than an address."""
    from proctor.media import cache_folder, media_folder

    return None if place is None else media_folder(place, cache_folder(cache))


def _still_there(place: str) -> bool:
    """Whether a folder of media that the store remembers can be named again."""
    return "://" in place or Path(place).is_dir()


def recalled(
    benchmark: str,
    store: Store | str | Path | None,
    data: str | Path | None = None,
    media: str | Path | None = None,
    track: str = "",
) -> tuple[str | Path, str | Path | None, str]:
    """A benchmark's own files, its media and its track: what is given, completed by what the store remembers of the
    last run or import.

    Raises `UsageError` where nobody knows the files, or where they are not there any more.
    """
    if data is not None:
        return data, media, track
    opened = existing_store(store)
    known = opened.card(benchmark).folders if opened is not None and benchmark in opened.benchmark_names() else {}
    found, expected = known.get("data"), f"the folder with the files of {benchmark}"
    if found is None:
        raise UsageError("--data", f"{expected}, such as --data {benchmark} (a store remembers it)")
    if not Path(found).exists():
        raise UsageError("--data", expected, found=f"nothing at {found} any more")
    remembered = known.get("media")
    if media is None and remembered is not None and _still_there(remembered):
        media = remembered
    return found, media, track or known.get("track", "")


def name_in(store: Store, benchmark: str) -> str:
    """A benchmark's name in a store: as it stands, or that of the questions at this path. Raises `InputError` for a
    path from which nothing in the store was read."""
    path = None if benchmark in {"", *store.benchmark_names()} else benchmark_path(benchmark)
    if path is None:
        return benchmark
    whole = str(path.resolve())
    for name in store.benchmark_names():
        if store.card(name).folders.get("data") == whole:
            return name
    expected = f"questions of which it has answers ({', '.join(store.benchmark_names()) or 'none'})"
    raise InputError(store.shown, found=str(path), expected=expected)


def remembered_at(store: Store | str | Path | None, path: Path) -> Mapping[str, str]:
    """What a store remembers of the files at a path: see `BenchmarkCard.folders`."""
    opened = existing_store(store)
    if opened is None:
        return {}
    cards = [opened.card(name).folders for name in opened.benchmark_names()]
    return next((card for card in cards if card.get("data") == str(path.resolve())), {})


def known_media(folders: Mapping[str, str], path: Path) -> str | None:
    """The folder of media that was named at the last run or import; one beside the questions is looked for each
    time."""
    known = folders.get("media")
    if known is None or not _still_there(known):
        return None
    beside = path if path.is_dir() else path.parent
    return None if Path(known).is_relative_to(beside.resolve()) else known


def known_columns(folders: Mapping[str, str]) -> dict[str, list[str]]:
    """The columns that were named for fields at the last run or import."""
    found: dict[str, list[str]] = json.loads(folders.get("columns", "{}"))
    return found


def remember(store: Store, benchmark: Benchmark) -> None:
    """Keeps where the files and the media lie, and how they are read, for the next command; what is not known now stays
    as it was."""
    card, origin = store.card(benchmark.name), benchmark.origin
    kept = dict(card.folders)
    if origin is not None:
        kept["data"] = str(origin.data.resolve())
        kept |= {"track": origin.track} if origin.track else {}
        kept |= {"columns": json.dumps(origin.columns)} if origin.columns else {}
    if benchmark.media_root is not None:
        from proctor.media import place_of

        kept["media"] = place_of(benchmark.media_root)
    if kept != card.folders:
        store.change_card(benchmark.name, lambda card: card.model_copy(update={"folders": kept}))


def existing_store(store: Store | str | Path | None) -> Store | None:
    """The store, or None where there is none yet: a run will make it."""
    try:
        return open_store(store, create=False)
    except InputError:
        return None


def excerpts_as(known: Mapping[str, Excerpt], media_as: str | None) -> Excerpts:
    """What a benchmark's video files are. Raises `UsageError` where nothing is known of them."""
    from proctor.media import Excerpts, MediaAs

    if media_as is not None and not known:
        raise UsageError("--media-as", "none: these videos are no parts of others", found=media_as)
    return Excerpts(known, None if media_as is None else MediaAs(media_as))


def sync_twin(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """The same function for plain code, under its name without `_async`, with its signature and docstring."""

    @functools.wraps(function)
    def twin(*args: P.args, **kwargs: P.kwargs) -> T:
        return wait_for(lambda: function(*args, **kwargs))

    twin.__name__ = twin.__qualname__ = function.__name__.removesuffix("_async")
    return twin


def wait_for(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Runs what `make` makes to its end and returns its result, or raises what it raised.

    Where an event loop runs in this thread, as in a notebook, another one is started in a thread of its own. Ctrl-C
    stops the work in both cases; what is on disk stays there.
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
