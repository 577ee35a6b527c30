"""`proctor judge`: answers scored on a task's dimensions, as a submission that the task takes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from proctor.cli.models import BaseUrls, ModelOptions, Retries, Settings, Structured, Timeout
from proctor.cli.options import Seed
from proctor.cli.output import console, note, print_table
from proctor.cli.progress import cost_of, show_rating, stopping

if TYPE_CHECKING:
    from proctor.benchmarks.mediqa_eval import AnswerRow, Encounter, Judged
    from proctor.core import Vote
    from proctor.judges.dimensions import Case, DimensionScores
    from proctor.models import ModelSpec
    from proctor.runs import PaidVotes, Store

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
        help="The judge's own: quorum=2, calibration=FILE.",
        show_default=False,
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
    work = _read(ratings, encounters, images, limit)
    files = _Files.of(out, votes, (ratings, encounters))
    wanted = _Wanted.of(judge, options.specs(models or (), base_urls or ()), option or ())
    judged, paid = _judge(wanted, work, files.votes, concurrency)
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
    _write_whole(out, learned.model_dump_json(indent=1) + "\n")
    console.print(
        f"{len(learned.curves)} curves from {len(learned.folds)} encounters in {folds} folds: {out}",
        markup=False,
        highlight=False,
    )


@dataclass(frozen=True)
class _Work:
    rows: Sequence[AnswerRow]
    cases: Mapping[tuple[str, str], Case]


@dataclass(frozen=True)
class _Files:
    out: Path
    details: Path
    votes: Path

    @classmethod
    def of(cls, out: Path, votes: Path | None, inputs: Sequence[Path]) -> _Files:
        """Raises where a file could not be written, before anything is paid for."""
        from proctor.core import InputError

        if out.is_dir():
            raise InputError(out, found="a folder", expected="a file to write")
        if any(out.resolve() == one.resolve() for one in inputs):
            raise InputError(out, found="a file that is read", expected="another one to write")
        if not out.parent.is_dir():
            raise InputError(out.parent, found="no such folder", expected="a folder to write to")
        return cls(out, out.with_suffix(".details.json"), votes or out.with_suffix(".votes.db"))


@dataclass(frozen=True)
class _Wanted:
    judge: str
    specs: Sequence[ModelSpec]
    options: Mapping[str, str]

    @classmethod
    def of(cls, judge: str, specs: Sequence[ModelSpec], pairs: Sequence[str]) -> _Wanted:
        if not judge and not specs:
            raise typer.BadParameter(
                "name a judge with --model, or one that needs none: embedded:DIR", param_hint="--judge"
            )
        name, _, folder = (judge or _DEFAULT).partition(":")
        options = {"folder": folder} if folder else {}
        for pair in pairs:
            key, found, value = pair.partition("=")
            if not found or not key or key in options:
                raise typer.BadParameter(
                    f"expected each KEY=VALUE once, found {pair!r}", param_hint="--option"
                )
            options[key] = value
        if not judge:
            note(f"no --judge was named: {_DEFAULT}")
        return cls(name, specs, options)


class _Book:
    """The file of votes, which is made when the first judge looks into it: one that asks no model has none."""

    def __init__(self, file: Path) -> None:
        self._file = file

    @cached_property
    def _store(self) -> Store:
        from proctor.runs import Store

        return Store(self._file)

    def close(self) -> None:
        if "_store" in vars(self):
            self._store.close()

    def get(self, key: str) -> Vote | None:
        return self._store.get(key)

    def put(self, vote: Vote) -> None:
        self._store.put(vote)


def _read(ratings: Path, encounters: Path, images: Path | None, limit: int | None) -> _Work:
    from proctor.benchmarks.mediqa_eval import answers_to_judge, cases_of, read_encounters
    from proctor.core import InputError

    if images is not None and not images.is_dir():
        raise InputError(images, found="no such folder", expected="the folder of images")
    known: Sequence[Encounter] = read_encounters(encounters)
    rows = answers_to_judge(ratings)
    cases = cases_of(rows, known, image_root=images, file=encounters)
    if limit is not None:
        cases = dict(list(cases.items())[:limit])
        rows = tuple(one for one in rows if one.key[:2] in cases)
    return _Work(rows, cases)


def _judge(wanted: _Wanted, work: _Work, votes: Path, concurrency: int) -> tuple[Judged, PaidVotes]:
    from proctor.benchmarks.mediqa_eval import Judged
    from proctor.judges.dimensions import DIMENSION_JUDGES, ClientPool, Materials, judge_cases
    from proctor.runs import PaidVotes

    pool, book = ClientPool(wanted.specs), _Book(votes)
    paid = PaidVotes(book)
    judge = DIMENSION_JUDGES.get(wanted.judge)(Materials(pool, paid, wanted.options))
    cases = list(work.cases.values())

    async def judging() -> list[DimensionScores]:
        try:
            with stopping() as stop, show_rating(len(cases), paid) as update:
                return await judge_cases(judge, cases, concurrency=concurrency, stop=stop, on_change=update)
        finally:
            await pool.aclose()
            book.close()

    said = dict(zip(work.cases, asyncio.run(judging()), strict=True))
    return Judged(judge.name, judge.settings, work.rows, work.cases, said), paid


def _write(judged: Judged, files: _Files, *, allow_missing: bool) -> None:
    _write_whole(files.details, judged.details())
    if allow_missing or not judged.missing:
        _write_whole(files.out, judged.submission())


def _tell(judged: Judged, paid: PaidVotes, files: _Files, *, allow_missing: bool) -> None:
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


def _write_whole(file: Path, text: str) -> None:
    """Writes a file so that nobody ever sees half of it."""
    from proctor.core import InputError

    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        part.write_text(text, encoding="utf-8", newline="")
        part.replace(file)
    except OSError as error:
        raise InputError(file, found=error.strerror or str(error), expected="a place to write to") from error
    finally:
        with suppress(OSError):
            part.unlink()
