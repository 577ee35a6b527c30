"""The options of results as the rooms below take them, and the summary by a benchmark's own program."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from proctor import core
from proctor.core import FailedPolicy, InputError, PluginReport
from proctor.shell.options import ResultOptions, filled, listed
from proctor.shell.stores import Stored, StoredRuns, stored

if TYPE_CHECKING:
    from proctor.results import Options
    from proctor.runs import Store


def official_summary(
    source: StoredRuns | Store | str | Path | None = None,
    benchmark: str = "",
    protocol: str = "official",
    **options: Unpack[ResultOptions],
) -> PluginReport:
    """The summary of every run as the benchmark's own program computes it ("official"), or "corrected". Raises
    `InputError` for a benchmark without one. The command is `proctor results --protocol`."""
    from proctor.results import OFFICIAL_SUMMARIES

    given = filled("official_summary", ResultOptions, options)
    if given["two_level"]:
        raise InputError("The figures of --protocol official have two levels as they are. Leave --two-level out.")
    if given["metrics"]:
        raise InputError("--protocol prints one summary as a whole. Leave --metric out.")
    where = stored(source, benchmark, given["systems"], given["conditions"])
    program = OFFICIAL_SUMMARIES.of(where.store.card(where.benchmark).read_by)
    known = () if program is None else tuple(program.protocols)
    if program is None or protocol not in known:
        own = f"{where.benchmark} has no summary of its own, so leave it out"
        advice = {0: own, 1: "give official, there is nothing to correct", 2: "give official or corrected"}[len(known)]
        raise InputError(f"--protocol {protocol!r} does not fit: {advice}.")
    chosen = options_of(where, given)
    return program.official_summary(where.store, where.benchmark, chosen, corrected=protocol == "corrected")


def metric_names(given: Any) -> tuple[str, ...]:
    """The names of metrics. One over items may be given as itself, or as `path/to/file.py:name`."""
    named = listed(given)
    if all(isinstance(one, str) and not core.is_file_address(one) for one in named):
        return tuple(map(str, named))
    from proctor.metrics import put_over_items

    return tuple(
        one if isinstance(one, str) and not core.is_file_address(one) else put_over_items(one) for one in named
    )


def options_of(where: Stored, given: Any) -> Options:
    """The options of `proctor.runs` for these arguments."""
    from proctor.results import Options

    names = ("all_items", "draws", "level", "seed", "two_level")
    return Options(
        by=tuple(listed(given.get("by"))),
        failed=policy_of(given["failed"]),
        systems=where.systems,
        conditions=where.conditions,
        metrics=metric_names(given.get("metrics")),
        **{name: given[name] for name in names if name in given},
    )


def policy_of(named: FailedPolicy | str | None) -> FailedPolicy | None:
    """The policy for items without a score, also by its name. None is the benchmark's own."""
    if named is None or isinstance(named, FailedPolicy):
        return named
    known = [policy.value for policy in FailedPolicy]
    if named not in known:
        raise InputError("failed", found=repr(named), expected=f"one of {', '.join(known)}")
    return FailedPolicy(named)
