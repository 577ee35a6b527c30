"""`proctor judge choose`: which judge does best on each dimension, and how good it is to choose so."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from proctor.cli.judge_work import Files, Wanted, Work, read_rated, read_work, run_judge, write_whole
from proctor.cli.models import BaseUrls, ModelOptions, Retries, Settings, Structured, Timeout
from proctor.cli.options import Seed
from proctor.cli.output import console, note, print_table
from proctor.cli.progress import cost_of

if TYPE_CHECKING:
    from proctor.audit import MetricScores
    from proctor.judges.dimensions.choosing import HonestRow

__all__ = ["choose"]

Submissions = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[SUBMISSION.csv …]",
        help="Judges' scores of the rated answers; a judge is called after its file.",
        show_default=False,
    ),
]


def choose(
    ratings: Annotated[
        Path, typer.Option("--ratings", help="The human ratings of the answers.", show_default=False)
    ],
    out: Annotated[Path, typer.Option("--out", help="The choice to be written (JSON).", show_default=False)],
    submissions: Submissions = None,
    judges: Annotated[
        list[str] | None,
        typer.Option("--judge", help="A judge that is run now beside the submissions.", show_default=False),
    ] = None,
    models: Annotated[
        list[str] | None, typer.Option("--model", help="The model that judges.", show_default=False)
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            metavar="JUDGE.KEY=VALUE",
            help="An option of a judge that is run.",
            show_default=False,
        ),
    ] = None,
    encounters: Annotated[
        Path | None,
        typer.Option(
            "--encounters", help="Questions and references, for judges that are run.", show_default=False
        ),
    ] = None,
    votes: Annotated[
        Path | None,
        typer.Option("--votes", help="Where votes are kept. [default: beside --out]", show_default=False),
    ] = None,
    folds: Annotated[int, typer.Option("--folds", min=2, help="Parts of the encounters.")] = 5,
    draws: Annotated[
        int, typer.Option("--draws", min=100, help="Bootstrap draws behind each interval.")
    ] = 2000,
    seed: Seed = 0,
    base_urls: BaseUrls = None,
    settings: Settings = None,
    timeout: Timeout = 180.0,
    retries: Retries = 6,
    structured: Structured = "auto",
    concurrency: Annotated[int, typer.Option("--concurrency", min=1, help="Answers judged at once.")] = 8,
) -> None:
    """Chooses a judge for each dimension on rated answers, for per-dimension with choice=FILE.

    How good that is, is stated for encounters that the choice was not made on (folds that part no encounter):
    on the ratings that it was chosen by, the best of several looks better than it is.

    Example: proctor judge choose few-shot.csv retrieval.csv embedded.csv --ratings ratings.csv --out choice.json
    """
    from proctor.audit import CorrelationSettings
    from proctor.benchmarks.mediqa_eval import read_native_ratings, read_submission
    from proctor.judges.dimensions.choosing import choose_judges

    table = read_native_ratings(ratings)
    files = Files.of(out, votes, (ratings, *(submissions or ())))
    given = [read_submission(one, table) for one in submissions or ()]
    _refuse_strange(option or (), judges or ())
    if judges:
        if encounters is None:
            raise typer.BadParameter("judges that are run need it", param_hint="--encounters")
        options = ModelOptions(None, tuple(settings or ()), timeout, retries, structured)
        specs = options.specs(models or (), base_urls or ())
        work = read_work(ratings, encounters, None, None, read_rated(ratings, encounters))
        for name in judges:
            pairs = [one.removeprefix(f"{name}.") for one in option or () if one.startswith(f"{name}.")]
            given.append(_run(Wanted.of(name, specs, pairs), work, files.votes, concurrency))
    found = choose_judges(
        table, given, folds=folds, seed=seed, settings=CorrelationSettings(draws=draws, seed=seed)
    )
    write_whole(out, found.model_dump_json(indent=1) + "\n")
    _tell(found.honest, folds)
    console.print(f"{out}", markup=False, highlight=False)


def _refuse_strange(options: Sequence[str], judges: Sequence[str]) -> None:
    for one in options:
        if not any(one.startswith(f"{name}.") for name in judges):
            raise typer.BadParameter(
                f"expected JUDGE.KEY=VALUE of a judge that is run, found {one!r}", param_hint="--option"
            )


def _run(wanted: Wanted, work: Work, votes: Path, concurrency: int) -> MetricScores:
    """A judge's scores of the rated answers, under the judge's name. Raises `MachineryError` where one is missing:
    the same command asks again for those alone."""
    from proctor.audit import MetricScores
    from proctor.core import MachineryError

    judged, paid = run_judge(wanted, work, votes, concurrency)
    if paid.count:
        note(f"{wanted.judge}: {paid.count} new votes, {cost_of(paid.usage)}, kept in {votes}")
    if judged.missing:
        row, reason = judged.missing[0]
        raise MachineryError(
            f"{wanted.judge}: {len(judged.missing)} scores are missing, the first that of {row.item}, {row.system}, "
            f"{row.dimension}: {reason}"
        )
    scores: dict[tuple[str, str, str], float | None] = {
        one.key: judged.scores[one.key[:2]].values[one.dimension] for one in judged.rows
    }
    return MetricScores(wanted.judge, scores)


def _tell(rows: Sequence[HonestRow], folds: int) -> None:
    def number(value: float | None) -> str:
        return "–" if value is None else f"{value:.3f}"

    print_table(
        f"Agreement on encounters that the choice was not made on ({folds} folds), and on those it was made on",
        ["language", "dimension", "chosen", ">in folds", ">agreement", ">interval", ">looks like"],
        [
            [
                *(one.language, one.dimension or "ALL", one.chosen or "–"),
                f"{one.same_in_folds} of {folds}" if one.dimension else "–",
                number(one.value),
                f"{number(one.ci_low)} to {number(one.ci_high)}",
                number(one.apparent),
            ]
            for one in rows
        ],
    )
    for one in rows:
        if one.dimension and one.reason:
            note(f"{one.language}, {one.dimension}: no agreement: {one.reason}")
        elif one.dimension and one.folds < folds:
            note(
                f"{one.language}, {one.dimension}: in {folds - one.folds} of {folds} folds all ratings are the same: left out"
            )
