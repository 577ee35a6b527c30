"""Answers that could not be written to their store: kept in a file beside it, until the next run adds them.

The file has one JSON object a line: the run (benchmark with fingerprint, system, condition, settings), the answer, and
its scores, without the secrets of the process. It lies beside an SQLite store, as NAME-unwritten.jsonl; for a server,
which keeps no files, in the working folder, as proctor-unwritten-HASH.jsonl with the hash of the store's address
(without its password).
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from pydantic import JsonValue, ValidationError

from proctor.core import Answer, FrozenModel, InputError, Score, environment_scrubber, first_problem, replacing
from proctor.runs import schema
from proctor.runs.database import store_files
from proctor.runs.run_identity import same_run
from proctor.runs.run_leases import RunTakenError
from proctor.runs.store import Run, Store

Row = tuple[Run, Answer, Sequence[Score]]


class UnwrittenAnswer(FrozenModel):
    """A line of the file."""

    benchmark: str
    fingerprint: str
    system: str
    condition: str
    settings: dict[str, JsonValue]
    answer: Answer
    scores: tuple[Score, ...] = ()

    def belongs_to(self, run: Run, fingerprint: str) -> bool:
        """Whether it is an answer of this run, under the same settings."""
        mine = (self.benchmark, self.fingerprint, self.system, self.condition)
        return mine == (run.benchmark, fingerprint, run.system, run.condition) and same_run(run.settings, self.settings)


def unwritten_file(store: Store) -> Path:
    """Where answers go that the store does not take."""
    if files := store_files(store.shown):
        return Path(f"{files[0]}-unwritten.jsonl")
    return Path(f"proctor-unwritten-{hashlib.sha256(store.shown.encode()).hexdigest()[:12]}.jsonl").absolute()


def keep_unwritten(store: Store, rows: Sequence[Row]) -> Path:
    """Adds answers to the file; they are on disk when it returns. Raises `OSError` where the file can't be written
    either."""
    hide, lines = environment_scrubber(), []
    for run, answer, scores in rows:
        kept = UnwrittenAnswer(
            benchmark=run.benchmark,
            fingerprint=store.known_fingerprint(run.benchmark),
            system=run.system,
            condition=run.condition,
            settings=run.settings,
            answer=schema.without_secrets(answer, hide),
            scores=tuple(scores),
        )
        lines.append(kept.model_dump_json() + "\n")
    file = unwritten_file(store)
    with _locked(file) as opened:
        size = opened.seek(0, os.SEEK_END)
        try:
            opened.write("".join(lines).encode())
            opened.flush()
            os.fsync(opened.fileno())
        except OSError:  # no half line stays
            os.truncate(file, size)
            raise
    return file


def add_unwritten(store: Store, run: Run) -> int:
    """Writes the answers of a run that lie in the file to the store, unless it has settled answers to these items by now,
    and removes them from the file; returns their number. Leaves them there while another process has the run. Raises
    `InputError` for a line that can't be read."""
    file = unwritten_file(store)
    if not file.exists():
        return 0
    fingerprint = store.fingerprint(run.benchmark)
    with suppress(RunTakenError), store.owning([run]) as lease, _locked(file) as opened:
        mine: list[UnwrittenAnswer] = []
        others: list[bytes] = []
        for number, line in enumerate(opened.read().splitlines(keepends=True), start=1):
            found = _read(file, number, line)
            if found.belongs_to(run, fingerprint):
                mine.append(found)
            else:
                others.append(line)
        store.write(run, [(one.answer, one.scores) for one in mine], lease.kept)
        if lease.lost is None and mine:
            _replace(file, others)
            return len(mine)
    return 0


def _read(file: Path, number: int, line: bytes) -> UnwrittenAnswer:
    try:
        return UnwrittenAnswer.model_validate_json(line)
    except ValidationError as error:
        found = f"{first_problem(error)}"
        expected = "an answer as Proctor wrote it: delete the line to go on without it"
        raise InputError(file, f"line {number}", found=found, expected=expected) from error


def _replace(file: Path, lines: Sequence[bytes]) -> None:
    if not lines:
        file.unlink()
        return
    with replacing(file) as draft:
        draft.write_bytes(b"".join(lines))


@contextmanager
def _locked(file: Path) -> Iterator[IO[Any]]:
    """The file, created if missing, opened for reading and writing while no other process does the same."""
    while True:
        with file.open("a+b") as opened:
            fcntl.flock(opened, fcntl.LOCK_EX)
            try:
                same = os.fstat(opened.fileno()).st_ino == file.stat().st_ino
            except FileNotFoundError:  # emptied and removed by another process meanwhile
                same = False
            if same:
                opened.seek(0)
                yield opened
                return
