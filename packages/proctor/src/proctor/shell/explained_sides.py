"""The two sides of an explained gap, found by their names: runs of a store, and other programs' logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from proctor.core import FailedPolicy, InputError, UsageError, admit_recorded, near_path, one_of
from proctor.shell.options import ExplainOptions, listed
from proctor.shell.stores import Stored, open_store, stored
from proctor.shell.workers import benchmark_in

if TYPE_CHECKING:
    from proctor.core import Metric
    from proctor.results import ExplainedItems, ExplainedRun
    from proctor.runs import BenchmarkCard, Run, Store


@dataclass(frozen=True)
class ExplainedSides:
    """The two sides, with the notes on how their files were read."""

    where: Stored
    first: ExplainedRun
    second: ExplainedRun
    notes: tuple[str, ...]


def explained_sides(first: str | Path, second: str | Path, given: ExplainOptions) -> ExplainedSides:
    """Find and read both sides; nothing is stored, and nobody is asked.

    A side is a run of the store, SYSTEM/CONDITION (or SYSTEM, if it has one run), else the path of a log of another
    program. Without a name the benchmark is the one that has these runs. Raises `InputError` for a name that is neither, a log without an item of the benchmark, and one side given
    twice; `UsageError` for options that don't fit.
    """
    from proctor.results import ExplainedItems, load_items

    where = stored(given["store"], given["benchmark"] or _only_benchmark(given["store"], (str(first), str(second))))
    card = where.store.card(where.benchmark)
    metric = _metric(card, given["metric"])
    table = load_items(where.store, card, all_items=given["all_items"])
    shared = ExplainedItems(where.store, card, table, metric)
    scorers, policies = _each("--scorer", listed(given["scorer"])), _each("--failed", listed(given["failed"]))
    notes: list[str] = []
    one, two = (
        _side(where, shared, name, given, (scorer, policy), notes)
        for name, scorer, policy in zip((first, second), scorers, policies, strict=True)
    )
    same = one.run == two.run if one.run is not None else _same_file(first, second)
    if same and scorers[0] == scorers[1] and policies[0] == policies[1]:
        raise InputError(one.name, found="the same side twice", expected="two sides")
    if one.name == two.name and not same:  # two files of one name
        one, two = replace(one, name=str(first)), replace(two, name=str(second))
    return ExplainedSides(where, one, two, tuple(notes))


def _only_benchmark(source: Store | str | Path | None, sides: Sequence[str]) -> str:
    """The one benchmark of a store that has a run for each side that is no file. Raises `InputError` if several have."""
    store = open_store(source, create=False)
    runs = {name: {word for run in store.runs(name) for word in _names(run)} for name in store.benchmark_names()}
    known = [name for name, named in runs.items() if all(one in named or Path(one).exists() for one in sides)]
    if len(known) == 1 or len(runs) == 1:
        return next(iter(known), "")
    having = ", ".join(known or runs)
    found = f"both sides in {having}" if known else f"no benchmark with a run of both sides among {having}"
    raise InputError(store.shown, "benchmark", found=found, expected="the name of one (--benchmark)")


def _names(run: Run) -> tuple[str, str]:
    return run.system, f"{run.system}/{run.condition}"


def _same_file(first: str | Path, second: str | Path) -> bool:
    return Path(first).resolve() == Path(second).resolve()


def _metric(card: BenchmarkCard, name: str) -> Metric:
    """The metric to explain. Raises `InputError` for an unknown one."""
    known = {metric.name: metric for metric in card.metrics}
    if name and name not in known:
        raise InputError("--metric", found=repr(name), expected=one_of(sorted(known), name))
    return known.get(name or card.headline) or card.metric(card.headline)


def _each(option: str, given: Sequence[str]) -> list[str]:
    """What is given once for both sides, or once for each. Raises `UsageError` for more."""
    if len(given) > 2:
        raise UsageError(f"{option} is given {len(given)} times: give it once for both sides, or once for each (2).")
    return [*given] if len(given) == 2 else [*(given or [""])] * 2


def _side(
    where: Stored,
    shared: ExplainedItems,
    name: str | Path,
    given: ExplainOptions,
    chosen: tuple[str, str],
    notes: list[str],
) -> ExplainedRun:
    """One side by its name. `chosen` are its scorer and its policy ("": by default)."""
    from proctor.results import run_to_explain

    scorer, named = chosen
    run = _run(where.store, where.benchmark, str(name))
    if run is not None:
        policy = FailedPolicy(named or shared.card.failed or FailedPolicy.WRONG)
        return run_to_explain(shared, run, scorer=scorer, policy=policy)
    path = Path(name)
    if not path.exists():
        runs = [f"{one.system}/{one.condition}" for one in where.store.runs(where.benchmark)]
        near = f", {near_path(path)}" if near_path(path) else ""
        raise InputError(
            where.store.shown,
            found=f"no run and no file {str(name)!r}{near}",
            expected=f"{one_of(runs, str(name))}, or the path of a log",
        )
    return _log(where, shared, path, given, chosen, notes)


def _run(store: Store, benchmark: str, name: str) -> Run | None:
    """The run of a name. Raises `UsageError` for a system with several runs."""
    runs = store.runs(benchmark)
    own = [run for run in runs if name in _names(run)]
    exact = [run for run in own if run.system != name]
    if not exact and len(own) > 1:
        raise UsageError(f"{name} has several runs: choose {one_of([f'{name}/{run.condition}' for run in own])}")
    return next(iter([*exact, *own]), None)


def _log(
    where: Stored, shared: ExplainedItems, path: Path, given: ExplainOptions, chosen: tuple[str, str], notes: list[str]
) -> ExplainedRun:
    from proctor.interchange import FORMATS, recognised
    from proctor.results import log_to_explain

    form = given["form"] or recognised(path)
    if not form:
        expected = "a log of another program (--from); the benchmark's own format: proctor import"
        raise InputError(path, found="an unknown format", expected=expected)
    benchmark = benchmark_in(where.store, where.benchmark)
    reader = FORMATS.get(form, FORMATS.read())
    log = reader.read(path, benchmark, given["id_column"], given["answer_column"], given["name"], given["epoch"])
    admit_recorded(log, benchmark, path)
    notes += [f"{path.name}: {note}" if not note.startswith(path.name) else note for note in log.notes]
    scorer, named = chosen
    policy = FailedPolicy(named or (FailedPolicy.EXCLUDE if reader.leaves_out else FailedPolicy.WRONG))
    return log_to_explain(shared, log, name=path.name, form=form, scorer=scorer, policy=policy)
