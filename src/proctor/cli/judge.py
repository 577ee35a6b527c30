"""`proctor judge`: answers scored on a task's dimensions, as a submission that the task takes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from proctor.cli.judge_choose import choose
from proctor.cli.judge_exemplars import exemplars
from proctor.cli.judge_index import index
from proctor.cli.judge_work import Files, Wanted, read_rated, read_work, run_judge, write_whole
from proctor.cli.models import BaseUrls, ModelOptions, Retries, Settings, Structured, Timeout
from proctor.cli.options import Seed
from proctor.cli.output import console, note, print_table
from proctor.cli.progress import cost_of

if TYPE_CHECKING:
    from proctor.benchmarks.mediqa_eval import Judged
    from proctor.runs import PaidVotes

__all__ = ["group"]

MISSING_EXIT = 3

_DEFAULT = "mediqa-judge"

Ratings = Annotated[
    Path,
    typer.Option(
        "--ratings",
        help="The answers, in the task's columns; value and rater_id are not looked at.",
        show_default=False,
    ),
]
Encounters = Annotated[
    Path, typer.Option("--encounters", help="Questions and reference answers (JSONL).", show_default=False)
]
Out = Annotated[Path, typer.Option("--out", help="The submission to be written (CSV).", show_default=False)]
Judge = Annotated[
    str,
    typer.Option(
        "--judge",
        help="A judge of dimensions (proctor list dimension-judges), or embedded:DIR. "
        "[default: mediqa-judge, where a model is named]",
        show_default=False,
    ),
]
Models = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        help="The model that judges, provider:name; several where the judge asks several.",
        show_default=False,
    ),
]
Images = Annotated[
    Path | None,
    typer.Option("--images", help="The folder of the patients' pictures; without it, by texts alone."),
]
Votes = Annotated[
    Path | None,
    typer.Option("--votes", help="Where votes are kept. [default: beside --out]", show_default=False),
]
JudgeOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="KEY=VALUE",
        help="The judge's own: quorum=2, documents=FOLDER, calibration=FILE.",
        show_default=False,
    ),
]
Rated = Annotated[
    Path | None,
    typer.Option(
        "--rated",
        help="Rated answers for judges that learn from examples, never from the encounter judged.",
        show_default=False,
    ),
]
RatedEncounters = Annotated[
    Path | None,
    typer.Option(
        "--rated-encounters", help="The encounters of --rated. [default: --encounters]", show_default=False
    ),
]
Limit = Annotated[
    int | None, typer.Option("--limit", min=1, help="Only the first so many answers, for a trial.")
]
AllowMissing = Annotated[
    bool,
    typer.Option(
        "--allow-missing", help="Write the submission even where scores are missing, without those rows."
    ),
]
Concurrency = Annotated[int, typer.Option("--concurrency", min=1, help="Answers judged at once.")]


def group() -> typer.Typer:
    """The commands below `proctor judge`."""
    judges = typer.Typer(no_args_is_help=True, help="Scores answers on a task's dimensions.")
    judges.callback()(_judging)
    judges.command("mediqa-eval")(mediqa_eval)
    judges.command("calibrate")(calibrate)
    judges.command("exemplars")(exemplars)
    judges.command("choose")(choose)
    judges.command("index")(index)
    return judges


def _judging() -> None:
    """Scores answers on a task's dimensions, by a model or without one."""


def mediqa_eval(
    ratings: Ratings,
    encounters: Encounters,
    out: Out,
    judge: Judge = "",
    models: Models = None,
    images: Images = None,
    votes: Votes = None,
    option: JudgeOptions = None,
    rated: Rated = None,
    rated_encounters: RatedEncounters = None,
    limit: Limit = None,
    allow_missing: AllowMissing = False,
    base_urls: BaseUrls = None,
    settings: Settings = None,
    timeout: Timeout = 180.0,
    retries: Retries = 6,
    structured: Structured = "auto",
    concurrency: Concurrency = 8,
) -> None:
    """A judge scores every answer on the task's dimensions; votes are kept, so none is ever paid twice.

    Beside the submission stands OUT.details.json: reasons, flags, rule breaks, and what is missing and why.
    A submission needs a score for every answer: where one is missing, none is written (exit code 3), and the
    same command asks for the missing ones again.

    Example: proctor judge mediqa-eval --model openai:gpt-5.2 --ratings ratings.csv --encounters encounters.jsonl
    --out submission.csv
    """
    options = ModelOptions(None, tuple(settings or ()), timeout, retries, structured)
    if rated_encounters is not None and rated is None:
        raise typer.BadParameter("it goes with --rated", param_hint="--rated-encounters")
    examples = read_rated(rated, rated_encounters or encounters) if rated is not None else ()
    work = read_work(ratings, encounters, images, limit, examples)
    files = Files.of(out, votes, (ratings, encounters))
    wanted = Wanted.of(judge, options.specs(models or (), base_urls or ()), option or ())
    judged, paid = run_judge(wanted, work, files.votes, concurrency)
    _write(judged, files, allow_missing=allow_missing)
    _tell(judged, paid, files, allow_missing=allow_missing)
    if judged.missing:
        raise typer.Exit(MISSING_EXIT)


def calibrate(
    scores: Annotated[
        Path,
        typer.Argument(metavar="SCORES.csv", help="A judge's scores of rated answers.", show_default=False),
    ],
    ratings: Annotated[
        Path, typer.Option("--ratings", help="The human ratings of them.", show_default=False)
    ],
    out: Annotated[
        Path, typer.Option("--out", help="The calibration to be written (JSON).", show_default=False)
    ],
    folds: Annotated[
        int, typer.Option("--folds", min=2, help="Parts of the encounters that are left out in turn.")
    ] = 5,
    seed: Seed = 0,
) -> None:
    """Learns how a judge's scores go with clinicians' ratings, so that logprob-judge can be calibrated.

    An encounter that it was learned from is later judged by a curve that was learned without it.

    Example: proctor judge calibrate raw.csv --ratings ratings.csv --out calibration.json
    """
    from proctor.benchmarks.mediqa_eval import rated_scores, read_native_ratings, read_submission
    from proctor.judges.dimensions.calibration import fit_calibration

    table = read_native_ratings(ratings)
    given = read_submission(scores, table)
    learned = fit_calibration(rated_scores(given, table), judge=given.name, folds=folds, seed=seed)
    write_whole(out, learned.model_dump_json(indent=1) + "\n")
    console.print(
        f"{len(learned.curves)} curves from {len(learned.folds)} encounters in {folds} folds: {out}",
        markup=False,
        highlight=False,
    )


def _write(judged: Judged, files: Files, *, allow_missing: bool) -> None:
    write_whole(files.details, judged.details())
    if allow_missing or not judged.missing:
        write_whole(files.out, judged.submission())


def _tell(judged: Judged, paid: PaidVotes, files: Files, *, allow_missing: bool) -> None:
    def shown(value: float | None) -> str:
        return "–" if value is None else f"{value:.2f}"

    print_table(
        f"{len(judged.cases)} answers judged by {judged.judge}",
        ["language", "dimension", ">scores", ">missing", ">mean", ">members apart"],
        [
            [
                one.language,
                one.dimension,
                str(one.scores),
                str(one.missing),
                shown(one.mean),
                shown(one.disagreement),
            ]
            for one in judged.summary()
        ],
    )
    for what, counts in (("broken rules", judged.rule_breaks), ("flags", judged.flags)):
        listed = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
        if listed:
            note(f"{what}: {listed}")
    if paid.count:
        note(f"{paid.count} new votes, {cost_of(paid.usage)}, kept in {files.votes}")
    if judged.missing:
        row, reason = judged.missing[0]
        note(
            f"{len(judged.missing)} scores are missing, the first that of {row.item}, {row.system}, {row.dimension}: "
            f"{reason}; all with their reasons in {files.details}"
        )
    if judged.missing and not allow_missing:
        note(
            f"{files.out} is not written: run the same command again, or add --allow-missing to leave rows out"
        )
        return
    lacks = f" without {len(judged.missing)} rows, which the task expects" if judged.missing else ""
    console.print(f"{files.out}{lacks}", markup=False, highlight=False)
