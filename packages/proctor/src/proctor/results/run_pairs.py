"""Which runs are compared with which: named runs, conditions of one system, or systems under one condition."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from proctor.core import InputError, shell_word
from proctor.results.results import Options
from proctor.runs import BASELINES, ORACLE, BenchmarkCard, Run, Store, chosen_runs, run_name


def chosen_pairs(
    store: Store, card: BenchmarkCard, options: Options, against: tuple[str, str] | None
) -> list[tuple[Run, Run]]:
    """The pairs to compare (see `compare`). Raises `InputError` for none."""
    named = _named_runs(store, card.name, options.systems)
    runs = named or chosen_runs(store, card.name, options.systems, options.conditions)
    if named and against is None:
        pairs = list(combinations(named, 2))
    elif against is not None:
        other = _one_run(store, card.name, against)
        pairs = [(run, other) for run in runs if run != other]
    elif len(options.conditions) == 1 or len({run.condition for run in runs}) == 1:
        pairs = _system_pairs(runs, options.systems)
    elif (shared := _only_shared(runs, options)) is not None:
        pairs = _system_pairs([run for run in runs if run.condition == shared], options.systems)
    else:
        pairs = _condition_pairs(runs, options.conditions or card.conditions) or _unnamed_pairs(runs, options)
    if not pairs:
        raise InputError(_unpaired(runs, store.runs(card.name), options))
    return pairs


def _unnamed_pairs(runs: Sequence[Run], options: Options) -> list[tuple[Run, Run]]:
    """All pairs of systems that are no baselines, if they share one condition and nothing is named."""
    contestants = [run for run in runs if run.system not in BASELINES and not run.settings.get(ORACLE, False)]
    shared = {run.condition for run in contestants}
    return _system_pairs(contestants, ()) if len(shared) == 1 and not (options.systems or options.conditions) else []


def _unpaired(runs: Sequence[Run], every: Sequence[Run], options: Options) -> str:
    """Why there is nothing to compare, and what would make a pair."""
    if not runs:
        return "No run has this system and this condition: proctor list runs"
    if len(runs) > 1:
        shown = ", ".join(run_name(run, runs, short=False) for run in runs)
        lacking = "two of these conditions" if options.conditions else "two conditions"
        one = f"No system was run under {lacking} ({shown})."
        return f"{one} Give several --system and one --condition, or runs by --system SYSTEM/CONDITION."
    (run,) = runs
    others = [f"--condition {shell_word(one.condition)}" for one in every if one.system == run.system and one != run]
    others += [f"--system {shell_word(one.system)}" for one in every if one.condition == run.condition and one != run]
    more = f"Add {' or '.join(others[:3])}." if others else "Run another system, or another condition, first."
    return f"Only {run_name(run, every, short=False)} matches; compare needs two runs. {more}"


def _named_runs(store: Store, benchmark: str, names: Sequence[str]) -> list[Run]:
    """The runs, if all names have the form SYSTEM/CONDITION; else none."""
    runs = store.runs(benchmark)
    systems = {run.system for run in runs}
    of_name = {f"{run.system}/{run.condition}": run for run in runs}
    if not names or any(name in systems or name not in of_name for name in names):
        return []
    return [of_name[name] for name in names]


def _only_shared(runs: Sequence[Run], options: Options) -> str | None:
    """The only condition that all of several named systems share, if no condition is named."""
    named = set(options.systems)
    if options.conditions or len(named) < 2:
        return None
    shared = set.intersection(*({run.condition for run in runs if run.system == name} for name in named))
    return shared.pop() if len(shared) == 1 else None


def _one_run(store: Store, benchmark: str, names: tuple[str, str]) -> Run:
    found = chosen_runs(store, benchmark, names[:1], names[1:])
    if not found:
        raise InputError(store.shown, found=f"no run of {names[0]} under {names[1]}", expected="a run of both")
    return found[0]


def _system_pairs(runs: Sequence[Run], order: Sequence[str]) -> list[tuple[Run, Run]]:
    """All pairs of systems, in the given order."""
    rank = {system: position for position, system in enumerate(order)}
    ordered = sorted(runs, key=lambda run: (rank.get(run.system, len(rank)), run.system))
    return list(combinations(ordered, 2))


def _condition_pairs(runs: Sequence[Run], order: Sequence[str]) -> list[tuple[Run, Run]]:
    """All pairs of conditions of each system, conditions in the given order."""
    rank = {condition: position for position, condition in enumerate(order)}
    by_system: dict[str, list[Run]] = {}
    for run in sorted(runs, key=lambda run: (rank.get(run.condition, len(rank)), run.condition)):
        by_system.setdefault(run.system, []).append(run)
    return [pair for system in sorted(by_system) for pair in combinations(by_system[system], 2)]
