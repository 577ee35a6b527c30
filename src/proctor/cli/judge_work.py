"""What the commands below `proctor judge` share: answers and models read, a judge run, files written whole."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from proctor.cli.output import note
from proctor.cli.progress import show_rating, stopping

if TYPE_CHECKING:
    from proctor.benchmarks.mediqa_eval import AnswerRow, Encounter, Judged
    from proctor.core import Vote
    from proctor.judges.dimensions import Case, DimensionScores, RatedCase
    from proctor.models import ModelSpec
    from proctor.runs import PaidVotes, Store

__all__ = [
    "DEFAULT",
    "Book",
    "Files",
    "Wanted",
    "Work",
    "read_rated",
    "read_work",
    "run_judge",
    "write_whole",
]

DEFAULT = "mediqa-judge"


@dataclass(frozen=True)
class Work:
    """The answers to be judged, as rows of the submission and as cases; and rated answers to learn from."""

    rows: Sequence[AnswerRow]
    cases: Mapping[tuple[str, str], Case]
    rated: Sequence[RatedCase] = ()


@dataclass(frozen=True)
class Files:
    """What a judge writes: the submission, its details beside it, and the votes."""

    out: Path
    details: Path
    votes: Path

    @classmethod
    def of(cls, out: Path, votes: Path | None, inputs: Sequence[Path]) -> Files:
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
class Wanted:
    """Which judge, with which models and options."""

    judge: str
    specs: Sequence[ModelSpec]
    options: Mapping[str, str]

    @classmethod
    def of(cls, judge: str, specs: Sequence[ModelSpec], pairs: Sequence[str]) -> Wanted:
        if not judge and not specs:
            raise typer.BadParameter(
                "name a judge with --model, or one that needs none: embedded:DIR", param_hint="--judge"
            )
        name, _, folder = (judge or DEFAULT).partition(":")
        options = {"folder": folder} if folder else {}
        for pair in pairs:
            key, found, value = pair.partition("=")
            if not found or not key or key in options:
                raise typer.BadParameter(
                    f"expected each KEY=VALUE once, found {pair!r}", param_hint="--option"
                )
            options[key] = value
        if not judge:
            note(f"no --judge was named: {DEFAULT}")
        return cls(name, specs, options)


class Book:
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


def read_work(
    ratings: Path, encounters: Path, images: Path | None, limit: int | None, rated: Sequence[RatedCase] = ()
) -> Work:
    """The answers of a ratings file, without looking at its ratings; the first `limit` of them."""
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
    return Work(rows, cases, rated)


def read_rated(ratings: Path, encounters: Path) -> list[RatedCase]:
    """Rated answers to learn from."""
    from proctor.benchmarks.mediqa_eval import rated_cases, read_encounters, read_native_ratings

    table = read_native_ratings(ratings)
    return list(rated_cases(table, read_encounters(encounters), file=encounters).values())


def run_judge(wanted: Wanted, work: Work, votes: Path, concurrency: int) -> tuple[Judged, PaidVotes]:
    """What the judge says of every answer, with the votes that were new. Ctrl-C lets what is under way come in."""
    from proctor.benchmarks.mediqa_eval import Judged, recorded_scores
    from proctor.judges.dimensions import DIMENSION_JUDGES, ClientPool, Materials, judge_cases
    from proctor.runs import PaidVotes

    pool, book = ClientPool(wanted.specs), Book(votes)
    paid = PaidVotes(book)
    materials = Materials(
        pool, paid, wanted.options, work.rated, lambda file: recorded_scores(file, work.cases)
    )
    judge = DIMENSION_JUDGES.get(wanted.judge)(materials)
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


def write_whole(file: Path, text: str) -> None:
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
