"""Analyze a store: `results`, `compare`, `rank`, `leaderboard`, `analyze`, `audit` and `report`."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from proctor import shell
from proctor.core import PAGES, InputError, UsageError, count_of
from proctor.reports import AnalysisTables, AuditTable, ComparisonTable, LeaderboardTable, RankingTable, ResultsTable
from proctor.shell import (
    AnalyzeOptions,
    AuditOptions,
    CompareOptions,
    LeaderboardOptions,
    RankOptions,
    ReportOptions,
    ResultOptions,
    Stored,
    StoredRuns,
    filled,
    listed,
    metric_names,
    options_of,
    policy_of,
    stored,
    wait_for,
)

if TYPE_CHECKING:
    from proctor.audits import MetricScores, RatingsTable
    from proctor.core import Item
    from proctor.media import MediaLibrary
    from proctor.metrics import FunctionOverItems
    from proctor.reports import ConfidenceTable, CorrectedTable, ReportSummary
    from proctor.results import CriticalErrors, MarginRecord
    from proctor.runs import Store

Thumbnails = Callable[["Item"], list[tuple[str, bytes]]]

_FRAMES = 4


def results(
    source: StoredRuns | Store | str | Path | None = None, benchmark: str = "", **options: Unpack[ResultOptions]
) -> ResultsTable:
    """Every metric of every run, with its confidence interval, the number of items, and what is missing.

    `source` is what `run` returned, a store, or its path (None: the default store). `benchmark` is required if the
    store has several. Raises `InputError` for an unknown facet, system, condition or metric. The command is
    `proctor results`.
    """
    from proctor.results import results as compute

    given = filled("results", ResultOptions, options)
    where = stored(source, benchmark, given["systems"], given["conditions"])
    found = compute(where.store, where.benchmark, options_of(where, given))
    if found.has_both_occlusions:
        from proctor.results import with_reliance

        found = with_reliance(where.store, where.benchmark, found)
    return ResultsTable(found)


def critical(
    source: StoredRuns | Store | str | Path | None = None,
    benchmark: str = "",
    *,
    facet: str,
    **options: Unpack[ResultOptions],
) -> list[CriticalErrors]:
    """The errors of every run on the items of a facet ("FACET" or "FACET=VALUE"), with a one-sided 95 % upper limit of their share
    that respects groups. Missing answers are errors, unless `failed` is "exclude". The command is `proctor results --critical`.
    """
    from proctor.results import critical_errors

    given = filled("critical", ResultOptions, options)
    where = stored(source, benchmark, given["systems"], given["conditions"])
    return critical_errors(where.store, where.benchmark, facet, options_of(where, given))


def confidence(
    source: StoredRuns | Store | str | Path | None = None, benchmark: str = "", **options: Unpack[ResultOptions]
) -> ConfidenceTable:
    """What confidences and abstentions are worth, for each run that has some: risk–coverage curves with the area under
    them, calibration error and Brier score, errors of answers that are at least 90 % sure, and the share of answers that
    are made up where nothing can be seen. Missing answers are wrong, unless `failed` is "exclude".

    Raises `InputError` where no run has a confidence or was allowed to abstain, and for `by`, `metrics` and `two_level`. The
    command is `proctor results --confidence`.
    """
    from proctor.reports import ConfidenceTable
    from proctor.results import confidence_results

    given = filled("confidence", ResultOptions, options)
    for name in ("by", "metrics", "two_level"):
        if given[name]:
            shown = {"metrics": "metric"}.get(name, name).replace("_", "-")
            raise UsageError(f"--confidence is of right and wrong answers, over all items. Leave --{shown} out.")
    where = stored(source, benchmark, given["systems"], given["conditions"])
    return ConfidenceTable(confidence_results(where.store, where.benchmark, options_of(where, given)))


def corrected(
    source: StoredRuns | Store | str | Path | None = None,
    sample: str | Path = "sample.json",
    *,
    dimensions: Sequence[str] = (),
    level: float = 0.95,
    plan: bool = False,
) -> CorrectedTable:
    """A judge's scores of all answers, corrected by the clinicians' of a sealed `sample` (see `proctor review sample`):
    means, and paired differences of systems, with intervals over groups.

    With `plan`, how wide intervals would be with more labels, and how many labels the judge saves. Raises `InputError` for
    hand-picked labels, drawn answers without a label, and another judge, prompt or answers than when the sample was drawn. The
    command is `proctor results --corrected`.
    """
    from proctor.reports import CorrectedTable
    from proctor.results import corrected_results, read_sample

    drawn = read_sample(Path(sample))
    where = stored(source, drawn.benchmark, (), ())
    return CorrectedTable(corrected_results(where.store, drawn, dimensions=dimensions, level=level), plan)


def compare(
    source: StoredRuns | Store | str | Path | None = None,
    benchmark: str = "",
    *,
    on_margin: Callable[[MarginRecord], None] | None = None,
    **options: Unpack[CompareOptions],
) -> ComparisonTable:
    """Paired differences between runs, on the items that both have a score for. Compared are the conditions of each
    system; or the systems, if there is one condition; or all runs with the run `against` ("SYSTEM/CONDITION").

    `systems` may name runs as "SYSTEM/CONDITION". A margin is recorded, and `on_margin` is called with the record, before anything is
    computed. With a `gate`, `data.gate` says whether it holds. Raises `InputError` if nothing can be compared. The command is `proctor compare`.
    """
    from proctor.results import CompareExtras
    from proctor.results import compare as compute

    given = filled("compare", CompareOptions, options)
    where = stored(source, benchmark, given["systems"], given["conditions"])
    against = given["against"]
    other = _run_name(against) if isinstance(against, str) else against
    metrics = metric_names(given["metrics"])
    asked = CompareExtras(given["margin"], given["equivalence"], given["interaction"], on_margin, given["gate"])
    return ComparisonTable(
        compute(where.store, where.benchmark, options_of(where, given), against=other, metrics=metrics, asked=asked)
    )


def rank(
    source: StoredRuns | Store | str | Path | None = None, benchmark: str = "", **options: Unpack[RankOptions]
) -> RankingTable:
    """Rank systems over buckets of questions. Systems that do not differ significantly share a rank.

    Raises `InputError` if nothing can be ranked. The command is `proctor rank`.
    """
    from proctor.results import Contest, rank_runs
    from proctor.stats import RankingPlan

    given = filled("rank", RankOptions, options)
    where = stored(source, benchmark, given["systems"])
    contest = Contest(**_contest(where, given), all_items=given["all_items"])
    names = ("rule", "alpha", "correction", "ties", "stability", "draws", "seed")
    drawn: dict[str, Any] = {name: value for name, value in given.items() if name in names}
    by, plan = tuple(listed(given["by"])), RankingPlan(**drawn, leave_out=True)
    return RankingTable(tuple(rank_runs(where.store, where.benchmark, contest, by=by, plan=plan)))


def leaderboard(
    source: StoredRuns | Store | str | Path | None = None,
    benchmark: str = "",
    metric: str | FunctionOverItems = "",
    **options: Unpack[LeaderboardOptions],
) -> LeaderboardTable:
    """Rank systems by one metric over all questions (by default the benchmark's headline metric). Systems that do not
    differ significantly share a rank.

    The metric may be one over many items, such as "balanced_accuracy" or "class_f1:clip". Raises `InputError` for an
    unknown metric, and if several scorers gave it and `scorer` names none. The command is `proctor rank --metric`.
    """
    from proctor.results import leaderboard as compute

    given = filled("leaderboard", LeaderboardOptions, options)
    where = stored(source, benchmark, given["systems"])
    under = given["condition"] or next(iter(where.conditions), "video")
    drawn = options_of(where, given)
    board = compute(
        *(where.store, where.benchmark),
        condition=under,
        metric=next(iter(metric_names(metric or None)), None),
        scorer=given["scorer"] or None,
        options=replace(drawn, conditions=()),
    )
    return LeaderboardTable(board, where.store.card(where.benchmark).title)


def analyze(
    source: StoredRuns | Store | str | Path | None = None, benchmark: str = "", **options: Unpack[AnalyzeOptions]
) -> AnalysisTables:
    """Analyze the systems that `rank` ranks: accuracy by capability, regression, gaps, variation between videos, paired
    tests, ensembles and causes of failure. The command is `proctor analyze`."""
    from proctor.results import Contest, analyse
    from proctor.stats import Resampling

    given = filled("analyze", AnalyzeOptions, options)
    where = stored(source, benchmark, given["systems"])
    contest = Contest(**_contest(where, given), all_items=given["all_items"])
    plan = Resampling(draws=given["draws"], seed=given["seed"], two_level=given["two_level"])
    found = analyse(where.store, where.benchmark, contest, stability=given["stability"], plan=plan)
    return AnalysisTables(found, where.store, where.benchmark)


def audit(
    scores: Any = None, ratings: Any = None, *, benchmark: str = "", **options: Unpack[AuditOptions]
) -> AuditTable:
    """Measure how far metrics or judges agree with people's ratings.

    `scores` is a table (a file or a frame) with the columns item, system, value (or, instead of value, one column for
    each metric) and optionally dimension, metric, scorer, as `proctor export` writes it; or a list of these; or a dict
    of them by metric name. A score without a dimension is one of quality: its sign is reversed on a dimension where
    lower is better. `ratings` is a table with the columns item, system, rater, value (or, instead of value, one column
    for each dimension), and optionally candidate, dimension, lower_is_better, group, dataset, language; `columns`
    names other columns. Without `ratings`, `scores` is a store or an evaluation whose answers were scored. Raises `InputError`
    that names the row. The command is `proctor audit`.
    """
    from proctor.audits import AuditReport, CorrelationSettings, PowerPlan
    from proctor.results import compared

    given = filled("audit", AuditOptions, options)
    settings = CorrelationSettings(draws=given["draws"], level=given["level"], seed=given["seed"])
    plan = PowerPlan(agreement=given["rater_agreement"], seed=given["seed"]) if given["power"] else None
    asked: Any = {"over": tuple(listed(given["lead_over"])), "plan": plan}
    both = tuple(listed(given["scorer"])), tuple(listed(given["against"]))
    every, missing = given["all_items"], given["allow_missing"]
    if ratings is None:
        if given["columns"]:
            raise UsageError("--map names columns of tables, and a store has none. Leave it out.")
        where = stored(scores, benchmark)
        found = compared(where.store, where.benchmark, *both, all_items=every, allow_missing=missing)
    elif every:
        raise UsageError("--all-items is for a store: of tables every answer counts. Leave it out.")
    elif benchmark:
        raise UsageError(f"Tables name no benchmark. Leave {benchmark!r} out, or give a store with it.")
    else:
        found = tables_of(scores, ratings, *both, allow_missing=missing, columns=shell.as_lists(given["columns"]))
    if plan is not None and len(found[1]) != 2:
        names = ", ".join(metric.name for metric in found[1])
        raise UsageError(f"--power compares two scorers, and here are {len(found[1])} ({names}). Name two by --scorer.")
    return AuditTable(AuditReport(*found, settings, **asked))


def report(
    source: StoredRuns | Store | str | Path | None = None,
    out: str | Path = "report.html",
    benchmark: str = "",
    **options: Unpack[ReportOptions],
) -> ReportSummary:
    """Write one HTML file that opens offline, with tables, figures and an item browser. It covers all runs of the
    benchmark in the store, with the baselines.

    Returns what was written: the path, the size, and what was left out. Raises `InputError` if there is no run, or if
    `out` can't be written or would replace anything but an earlier page. The command is `proctor report`.
    """
    from proctor.reports import write_public_report, write_report
    from proctor.results import audit_stored, derive_guessable, pseudonyms_of

    given = filled("report", ReportOptions, options)
    where = stored(source, benchmark)
    out = where.output(out, PAGES)
    drawn = replace(options_of(where, given), systems=(), conditions=())
    baselines, media, names = tuple(listed(given["baselines"])), given["media"], given["pseudonyms"]
    if given["publish"]:
        if media is not None:
            raise UsageError(f"--publish leaves out items, so that --media {media} has no use. Leave one of them out.")
        if names is True:
            names = pseudonyms_of(where.store, where.benchmark, baselines, drawn.seed)
        shown = dict(names) if names else {}
        return write_public_report(
            where.store, where.benchmark, out, options=drawn, baselines=baselines, pseudonyms=shown
        )
    if names:
        raise UsageError("--pseudonyms works with --publish only: add --publish.")
    audit = audit_stored(where.store, where.benchmark, all_items=drawn.all_items, seed=drawn.seed, draws=drawn.draws)
    derive_guessable(where.store, where.benchmark, audit)
    library: MediaLibrary | None = None
    notes: list[str] = []
    if media is not None:
        library, notes = _library(where, media, given["media_as"])
    summary = write_report(
        where.store,
        where.benchmark,
        out,
        options=drawn,
        thumbnails=None if library is None else thumbnails_of(library, given["max_side"]),
        audit=audit,
        baselines=baselines,
    )
    return replace(summary, left_out=(*notes, *summary.left_out))


def thumbnails_of(library: MediaLibrary, side: int) -> Thumbnails:
    """A function that returns small pictures of an item: a few frames of its clip, or its images. None if a file is
    missing or broken."""
    from proctor.media import MediaLibrary, MediaSettings, view

    settings = MediaSettings(max_side=side, quality=70, max_frames=_FRAMES)
    small = MediaLibrary(library.root, settings, library.cache_dir, excerpts=library.excerpts)

    def thumbnails(item: Item) -> list[tuple[str, bytes]]:
        if small.problems([item]):
            return []
        # Of stills all are shown: the count is for what is sampled.
        frames = wait_for(lambda: _frames(view(item, "video", small)))
        return [(frame.label, frame.jpeg) for frame in frames]

    return thumbnails


async def _frames(shown: Any) -> list[Any]:
    frames: list[Any] = await shown.frames(count=_FRAMES)
    return frames


def _library(where: Stored, media: str | Path, media_as: str | None) -> tuple[MediaLibrary, list[str]]:
    """The media of a folder, with a note on missing files. Raises `InputError` if the folder is missing, or holds none
    of the files."""
    from proctor.media import MediaLibrary

    folder = shell.media_at(media)
    if folder is None or not folder.is_dir():
        raise InputError(str(media), found="no such folder", expected="the folder of the benchmark's media")
    library = MediaLibrary(folder, excerpts=shell.excerpts_as(where.store.card(where.benchmark).excerpts, media_as))
    items = where.store.items(where.benchmark)
    needed = {medium.source for item in items for medium in item.media}
    missing = library.missing(items)
    found = f"{len(needed) - len(missing)} of {count_of(len(needed), 'media file')}, missing {', '.join(missing[:3])}"
    found += " …" if len(missing) > 3 else ""
    if missing and len(missing) == len(needed):
        raise InputError(str(media), found=found, expected="the folder of the benchmark's media")
    library.check_excerpts(items)
    return library, [f"{media}: found {found}: their items have no pictures"] if missing else []


def _contest(where: Stored, given: Any) -> dict[str, Any]:
    """Who is ranked, and how items count. The condition is the given one, else the first of an evaluation, else
    `video`."""
    return {
        "condition": given["condition"] or next(iter(where.conditions), "video"),
        "systems": where.systems,
        "baselines": tuple(listed(given["baselines"])),
        "failed": policy_of(given["failed"]),
        "latency": given["latency"],
    }


def _run_name(text: str) -> tuple[str, str] | None:
    if not text:
        return None
    system, slash, condition = text.rpartition("/")
    if not slash or not system or not condition:
        raise InputError(f"--against {text!r} names no run. Write SYSTEM/CONDITION.")
    return system, condition


def tables_of(
    scores: Any,
    ratings: Any,
    scorers: Sequence[str],
    against: Sequence[str],
    *,
    allow_missing: bool,
    columns: Mapping[str, Sequence[str]] | None = None,
) -> tuple[RatingsTable, list[MetricScores]]:
    """Read and match scores and ratings as `proctor.audit` takes them (see `compared_tables`)."""
    from proctor.audits import compared_tables

    table = _rated(ratings, columns)
    return compared_tables(table, _scored(scores, table, columns), scorers, against, allow_missing=allow_missing)


def _rated(ratings: Any, columns: Mapping[str, Sequence[str]] | None) -> RatingsTable:
    from proctor.audits import RatingsTable, read_ratings

    if isinstance(ratings, RatingsTable):
        return ratings
    with _as_file(ratings, "ratings") as file:
        return read_ratings(file, columns)


def _scored(scores: Any, table: RatingsTable, columns: Mapping[str, Sequence[str]] | None) -> list[MetricScores]:
    from proctor.audits import MetricScores, read_metrics

    named = list(scores.items()) if isinstance(scores, Mapping) else [("", one) for one in listed(scores)]
    found = []
    for name, one in named:
        if isinstance(one, MetricScores):
            found.append(one)
            continue
        with _as_file(one, name or "scores") as file:
            read = read_metrics(file, table, allow_missing=True, columns=columns)
        if name and len(read) > 1:
            raise InputError(name, found=f"{len(read)} metrics", expected="one of each name, or a list of tables")
        found += [replace(read[0], name=name)] if name else read
    return found


@contextmanager
def _as_file(given: Any, name: str) -> Iterator[Path]:
    """A path itself; a frame or rows as a temporary CSV file, so that one reader checks all of them. Errors show `name`
    instead of the file."""
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
            told = InputError(str(error).replace(f"{folder}{os.sep}", ""))
            for note in getattr(error, "__notes__", ()):
                told.add_note(note.replace(f"{folder}{os.sep}", ""))
            raise told from None
