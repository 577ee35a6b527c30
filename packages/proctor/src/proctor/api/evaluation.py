"""What a run or an import gives, `Evaluation`, and the functions that give one: `run` and `import_answers`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from proctor.api import analysis, import_export
from proctor.core import Benchmark
from proctor.shell import ImportOptions, RunOptions, Scored, StoredRuns, SystemLike, arrange, filled, score, sync_twin

if TYPE_CHECKING:
    from proctor.reports import (
        AnalysisTables,
        ComparisonTable,
        LeaderboardTable,
        RankingTable,
        ReportSummary,
        ResultsTable,
    )


@dataclass(frozen=True)
class Evaluation(StoredRuns):
    """The result of one call of `run` or `import_answers`: `runs` of one benchmark in a store, by system and condition.
    `outcome` says how the run ended (None for imported answers). `notes`, `done` and `costs` are sentences on what to know,
    on what was done, and on what it cost.

    Its methods are the functions of the same names, restricted to these runs. `proctor.results(evaluation.store)`
    covers all runs in the store, with the baselines.
    """

    @classmethod
    def of(cls, found: StoredRuns) -> Evaluation:
        """These runs, with the functions that read them as methods."""
        return cls(**{field.name: getattr(found, field.name) for field in fields(found)})

    def results(self, **options: Any) -> ResultsTable:
        """See `proctor.results`."""
        return analysis.results(self, **options)

    def compare(self, **options: Any) -> ComparisonTable:
        """See `proctor.compare`."""
        return analysis.compare(self, **options)

    def rank(self, **options: Any) -> RankingTable:
        """See `proctor.rank`."""
        return analysis.rank(self, **options)

    def leaderboard(self, metric: str = "", **options: Any) -> LeaderboardTable:
        """See `proctor.leaderboard`."""
        return analysis.leaderboard(self, metric=metric, **options)

    def analyze(self, **options: Any) -> AnalysisTables:
        """See `proctor.analyze`."""
        return analysis.analyze(self, **options)

    def score(self, **options: Any) -> Scored:
        """See `proctor.score`."""
        return score(self, **options)

    def report(self, out: str | Path = "report.html", **options: Any) -> ReportSummary:
        """See `proctor.report`."""
        return analysis.report(self, out, **options)

    def export(self, out: str | Path | None = None, **options: Any) -> Any:
        """See `proctor.export`."""
        return import_export.export(self, out, **options)


async def run_async(
    benchmark: str | Path | Benchmark,
    system: SystemLike | Sequence[SystemLike] | None = None,
    **options: Unpack[RunOptions],
) -> Evaluation:
    """Run systems and models on a benchmark's items under conditions. Call it again to continue where it stopped.

    `benchmark` is what `load` returned, a name with its `data` and `media` folders, or the path of your own questions.
    `system` is one or several of: a function (see `proctor.system`), `path/to/file.py:function`, the name of a built-in
    system or a method, a `System`. `model` is one or several models, `conditions` are what they may see. Baselines that
    need no media are run as well.

    Raises `InputError` before anything is asked if input is missing or does not fit, and `ConfigurationError` for a
    model that can't be asked. The command is `proctor run`. `run` works in a notebook; in async code await `run_async`.
    """
    prepared = await arrange(benchmark, system, **options).prepare()
    given = prepared.arranged.options
    return Evaluation.of(await prepared.ask(given["stop"], given["on_change"]))


run = sync_twin(run_async)


async def import_answers_async(
    benchmark: str | Path | Benchmark, path: str | Path, **options: Unpack[ImportOptions]
) -> Evaluation:
    """Import answers that were recorded elsewhere, in the benchmark's own format or another program's (`form`). They
    are stored under the system `name`.

    A table of people's ratings (a column of items, of systems, of raters, and of values or one for each dimension)
    brings all its systems, and the ratings as scores by `human:RATER`; also the answers, if it has a column of them.
    `columns` names columns of such a table (item, system, rater, dimension, value, candidate, lower_is_better) beside
    those of the questions. With `scorer`, the file holds scores by an automatic scorer of answers in the store.
    Importing the same file again changes nothing. Raises `InputError` with file and location for a file that can't be
    read. The command is `proctor import`.
    """
    given = filled("import_answers", ImportOptions, options)
    return Evaluation.of(await import_export.import_recorded(benchmark, path, given))


import_answers = sync_twin(import_answers_async)
