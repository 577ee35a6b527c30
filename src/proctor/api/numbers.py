"""Reading a store: `results`, `compare`, `rank`, `analyze` and `audit`."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from proctor.api.access import listed
from proctor.api.sources import Evaluation, Stored, check_options, stored
from proctor.api.tables import AnalysisTables, AuditTable, ComparisonTable, RankingTable, ResultsTable
from proctor.core import FailedPolicy, InputError
from proctor.runs import Contest
from proctor.stats import Resampling

if TYPE_CHECKING:
    from proctor.audits import MetricScores, RatingsTable
    from proctor.runs import Latency, Options, Store


class Drawing(TypedDict, total=False):
    """How numbers are computed. `failed` says how items count that a run lacks a score for: "wrong", "exclude", or the
    benchmark's own rule (a range, where it has none); `all_items` takes also those that the benchmark does not count.
    `draws` (2000), `level` (0.95), `seed` (0) and `two_level` are those of the bootstrap."""

    failed: FailedPolicy | str | None
    all_items: bool
    draws: int
    level: float
    seed: int
    two_level: bool


class RankOptions(TypedDict, total=False):
    """How systems are ranked. `by` are the facets that make the buckets (the benchmark's own, where none are named),
    `rule` makes one order of the ranks in them; `alpha`, `correction`, `draws`, `stability` and `seed` are those of
    `proctor.stats.rank_buckets`; `latency` "required" counts an answer without one as late."""

    by: str | Sequence[str]
    failed: FailedPolicy | str | None
    all_items: bool
    latency: Latency | None
    rule: str
    alpha: float
    correction: str
    draws: int
    stability: int
    seed: int


def results(
    source: Evaluation | Store | str | Path | None = None,
    benchmark: str = "",
    *,
    by: str | Sequence[str] = (),
    systems: str | Sequence[str] = (),
    conditions: str | Sequence[str] = (),
    **drawing: Unpack[Drawing],
) -> ResultsTable:
    """Every metric of every run, with its interval, its denominator and what is missing.

    `source` is what `run` returned, a store, or its path (None: the default store); `benchmark` is needed where a store
    has several. `by` splits by facets. Raises `InputError` for an unknown facet, system or condition. The command is
    `proctor results`.
    """
    from proctor.runs import results as compute

    check_options("results", dict(drawing), Drawing)
    where = stored(source, benchmark, systems, conditions)
    return ResultsTable(compute(where.store, where.benchmark, _options(where, by, drawing)))


def compare(
    source: Evaluation | Store | str | Path | None = None,
    benchmark: str = "",
    *,
    against: str | tuple[str, str] = "",
    metrics: str | Sequence[str] = (),
    by: str | Sequence[str] = (),
    systems: str | Sequence[str] = (),
    conditions: str | Sequence[str] = (),
    **drawing: Unpack[Drawing],
) -> ComparisonTable:
    """Paired differences on the items that both runs have a score for: conditions of each system, or, under one
    condition, systems; or all runs with one ("SYSTEM/CONDITION", `against`).

    `systems` may name runs as "SYSTEM/CONDITION". Raises `InputError` where nothing can be compared. The command is
    `proctor compare`.
    """
    from proctor.runs import compare as compute

    check_options("compare", dict(drawing), Drawing)
    where = stored(source, benchmark, systems, conditions)
    other = _run_name(against) if isinstance(against, str) else against
    found = compute(
        where.store, where.benchmark, _options(where, by, drawing), against=other, metrics=tuple(listed(metrics))
    )
    return ComparisonTable(found)


def rank(
    source: Evaluation | Store | str | Path | None = None,
    benchmark: str = "",
    *,
    condition: str = "",
    systems: str | Sequence[str] = (),
    baselines: str | Sequence[str] = (),
    **options: Unpack[RankOptions],
) -> RankingTable:
    """Systems ranked over buckets of questions, so that those that do not differ significantly share a rank.

    `condition` is `video`, or the first one of an evaluation. `baselines` are shown and not ranked ("none": there is
    none; by default `random` and `majority`). Raises `InputError` where nothing can be ranked. The command is
    `proctor rank`.
    """
    from proctor.runs import Contest, rank_runs
    from proctor.stats import RankingPlan

    check_options("rank", dict(options), RankOptions)
    chosen: dict[str, Any] = dict(options)
    where = stored(source, benchmark, systems)
    contest = Contest(
        condition=_condition(where, condition),
        systems=where.systems,
        baselines=tuple(listed(baselines)),
        all_items=chosen.pop("all_items", False),
        failed=policy_of(chosen.pop("failed", None)),
        latency=chosen.pop("latency", None),
    )
    by = tuple(listed(chosen.pop("by", ())))
    return RankingTable(tuple(rank_runs(where.store, where.benchmark, contest, by=by, plan=RankingPlan(**chosen))))


def analyze(
    source: Evaluation | Store | str | Path | None = None,
    benchmark: str = "",
    *,
    condition: str = "",
    systems: str | Sequence[str] = (),
    baselines: str | Sequence[str] = (),
    latency: Latency | None = None,
    stability: int = 1000,
    **drawing: Unpack[Drawing],
) -> AnalysisTables:
    """Accuracy by capability, regression, gaps, spread between videos, pairs, ensembles and causes of failure, for the
    systems that `rank` ranks. The command is `proctor analyze`."""
    from proctor.runs import analyse

    check_options("analyze", dict(drawing), Drawing)
    where = stored(source, benchmark, systems)
    found = analyse(
        where.store,
        where.benchmark,
        Contest(
            condition=_condition(where, condition),
            systems=where.systems,
            baselines=tuple(listed(baselines)),
            all_items=drawing.get("all_items", False),
            failed=policy_of(drawing.get("failed")),
            latency=latency,
        ),
        stability=stability,
        plan=Resampling(
            draws=drawing.get("draws", 2000), seed=drawing.get("seed", 0), two_level=drawing.get("two_level", False)
        ),
    )
    return AnalysisTables(found)


def audit(
    scores: Any,
    ratings: Any = None,
    *,
    judge: str = "",
    against: str = "",
    benchmark: str = "",
    draws: int = 2000,
    level: float = 0.95,
    seed: int = 0,
) -> AuditTable:
    """How far metrics or judges agree with ratings.

    `scores` are one metric's or several: a path of a CSV file or a frame with the columns item, system, dimension,
    value, or a dict of these by the metrics' names. `ratings` is a path or a frame with the columns item, candidate,
    system, dimension, rater, value, and where they are wanted group, dataset, language. Without `ratings`, `scores` is
    a store or an evaluation in which the scorers `judge` (none named: all) and `against` (none named: all people) have
    scored the same answers. Raises `InputError` that names the row. The commands are those of `proctor audit`.
    """
    from proctor.audits import AuditReport, CorrelationSettings
    from proctor.runs import compared

    settings = CorrelationSettings(draws=draws, level=level, seed=seed)
    if ratings is None:
        where = stored(scores, benchmark)
        scorers, raters = ((judge,) if judge else ()), ((against,) if against else ())
        table, metrics = compared(where.store, where.benchmark, scorers, raters)
        return AuditTable(AuditReport(table, metrics, settings))
    table = _rated(ratings)
    return AuditTable(AuditReport(table, _scored(scores, table), settings))


def _options(where: Stored, by: str | Sequence[str], drawing: Drawing) -> Options:
    from proctor.runs import Options

    return Options(
        by=tuple(listed(by)),
        failed=policy_of(drawing.get("failed")),
        all_items=drawing.get("all_items", False),
        draws=drawing.get("draws", 2000),
        level=drawing.get("level", 0.95),
        seed=drawing.get("seed", 0),
        two_level=drawing.get("two_level", False),
        systems=where.systems,
        conditions=where.conditions,
    )


def policy_of(named: FailedPolicy | str | None) -> FailedPolicy | None:
    """The policy for what runs lack, also by its name; None is the benchmark's own."""
    if named is None or isinstance(named, FailedPolicy):
        return named
    known = [policy.value for policy in FailedPolicy]
    if named not in known:
        raise InputError(None, "failed", found=repr(named), expected=f"one of {', '.join(known)}")
    return FailedPolicy(named)


def _condition(where: Stored, named: str) -> str:
    """The one named, else the first one of an evaluation, else `video`."""
    return named or next(iter(where.conditions), "video")


def _run_name(text: str) -> tuple[str, str] | None:
    if not text:
        return None
    system, slash, condition = text.rpartition("/")
    if not slash or not system or not condition:
        raise InputError(None, "against", found=repr(text), expected="SYSTEM/CONDITION")
    return system, condition


def _rated(ratings: Any) -> RatingsTable:
    from proctor.audits import RatingsTable, read_ratings

    if isinstance(ratings, RatingsTable):
        return ratings
    with _as_file(ratings, "ratings") as file:
        return read_ratings(file)


def _scored(scores: Any, table: RatingsTable) -> list[MetricScores]:
    from dataclasses import replace

    from proctor.audits import MetricScores, read_scores

    named = list(scores.items()) if isinstance(scores, Mapping) else [("", one) for one in listed(scores)]
    found = []
    for name, one in named:
        if isinstance(one, MetricScores):
            found.append(one)
            continue
        with _as_file(one, name or "scores") as file:
            read = read_scores(file, table)
        found.append(replace(read, name=name) if name else read)
    return found


@contextmanager
def _as_file(given: Any, name: str) -> Iterator[Path]:
    """A path as it is; a frame, or rows, as a file, since one reader checks them all. Errors name it as it is called."""
    if isinstance(given, str | Path):
        yield Path(given)
        return
    import pandas as pd

    with tempfile.TemporaryDirectory(prefix="proctor-") as folder:
        file = Path(folder) / name
        pd.DataFrame(given).to_csv(file, index=False)
        try:
            yield file
        except InputError as error:
            raise InputError(str(error).replace(f"{folder}{os.sep}", "")) from None
