"""Uploads: the bytes are stored under their hash and checked by `proctor check` in a process with limits; then the
submission is queued or refused."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from functools import cache
from pathlib import Path

from sqlalchemy import Connection, and_, or_, select

from proctor.core import ConfigurationError, InputError, replacing
from proctor.interchange import file_hash
from proctor_challenge.admission import Admission
from proctor_challenge.board_pages import passed_gate
from proctor_challenge.challenge import Challenge
from proctor_challenge.membership import is_member
from proctor_challenge.schema import submissions
from proctor_challenge.settings import Kind, Phase, size_of
from proctor_challenge.states import SubmissionState
from proctor_challenge.submissions import (
    REASONS,
    HandIn,
    HandInError,
    StaleError,
    cancel,
    hand_in,
    is_checked,
    settle,
    submission_row,
)
from proctor_challenge.teams import named_team
from proctor_web import BusyError

RENEWED_S = 30.0
"""How often a submission that waits for its check is renewed (`renew_check`)."""

CHECK_SILENT = timedelta(seconds=4 * RENEWED_S)
"""A check that was not renewed for so long no longer keeps its team from the next upload: its process was killed."""

_IMAGES = (".tar", ".gz", ".tgz", ".xz", ".zst")
_SHELL = 0  # the account of submissions from the shell
_FILES = threading.Lock()  # an upload is kept or removed together with its submission
_FILES_S = 2.0
_SECONDS, _IMAGE_SECONDS = 30, 120
_BYTES_PER_SECOND, _IMAGE_BYTES_PER_SECOND = 2**20, 20 * 2**20  # of JSON; of a compressed archive
_QUESTION_FILES = {".csv", ".json", ".jsonl", ".parquet", ".tsv", ".txt", ".xlsx", ".yaml", ".yml"}
LEAST_FILE, ANSWERS_PER_QUESTION = 4 * 2**20, 10
_KEPT = ("PATH", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH")  # without the last one, some Pythons don't start
_SUFFIX = re.compile(r"\.[A-Za-z0-9]{1,10}")
_START = "import os; os.nice(10); from proctor_challenge.check_process import main; main()"  # pages come first
_TOO_MUCH = Admission(("found a file that takes too long to check, or too much memory, expected a smaller one",))


def suffix_of(name: str) -> str:
    """The suffix of a file's name, for readers that depend on it; "" for an unusual one.

    >>> suffix_of("answers.JSON"), suffix_of("a.b/c"), suffix_of("answers")
    ('.json', '', '')
    """
    suffix = Path(name).suffix.lower()
    return suffix if _SUFFIX.fullmatch(suffix) else ""


def check_upload(challenge: Challenge, phase: Phase, kind: Kind, upload: Path, suffix: str) -> Admission:
    """Whether an upload is a submission, and what of it will be wrong. Nothing of it is unpacked, run or kept. Raises
    `ConfigurationError` when the check itself fails."""
    size = upload.stat().st_size
    image = kind == "image"
    seconds = _IMAGE_SECONDS + size // _IMAGE_BYTES_PER_SECOND if image else _SECONDS + size // _BYTES_PER_SECOND
    with tempfile.TemporaryDirectory(prefix="proctor-check-") as folder:
        named = Path(folder) / f"submission{suffix}"
        named.symlink_to(upload.resolve())
        request = {
            "kind": kind,
            "path": str(named),
            "seconds": seconds,
            "benchmark": challenge.settings.benchmark,
            "track": challenge.settings.track,
            "data": str((challenge.folder / phase.questions).resolve()) if phase.questions else "",
            "budget": phase.budget.model_dump(mode="json"),
        }
        return _run_check(request, 5.0 * seconds)


def _run_check(request: dict[str, object], timeout_s: float) -> Admission:
    """Runs the check in a process whose environment holds none of our secrets."""
    program = [sys.executable, "-B", "-P", "-c", _START]
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    try:
        done = subprocess.run(  # noqa: S603 - our own module
            program,
            input=json.dumps(request).encode(),
            capture_output=True,
            timeout=timeout_s,
            env=kept | threads,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return _TOO_MUCH
    if done.returncode < 0:  # killed by a limit
        return _TOO_MUCH
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise ConfigurationError(f"a submission could not be checked: {' '.join(last)[:300]}")
    told = json.loads(done.stdout)
    return Admission(tuple(map(str, told["problems"])), tuple(map(str, told["wrong"])), int(told["count"]))


def upload_size(challenge: Challenge, phase: Phase, kind: Kind) -> int:
    """The maximum size of an upload in bytes: as `challenge.yaml` says; a file of answers without a size there may have
    ten times as many bytes as the phase's question files, or 4 MiB if that is more."""
    said = getattr(challenge.settings.uploads, kind)
    if said is not None:
        return size_of(said)
    return max(LEAST_FILE, ANSWERS_PER_QUESTION * _question_bytes(challenge.folder / phase.questions))


@cache
def _question_bytes(folder: Path) -> int:
    """The bytes of a phase's question files, without media."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.suffix.lower() in _QUESTION_FILES)


@contextmanager
def _alone() -> Iterator[None]:
    """No other thread keeps or removes an upload within the block. Raises `BusyError` after a few seconds, so that
    those who wait for a locked database don't wait for each other on top of that."""
    if not _FILES.acquire(timeout=_FILES_S):
        raise BusyError("locked")
    try:
        yield
    finally:
        _FILES.release()


def keep_upload(challenge: Challenge, entry: HandIn, location: Callable[[Path], object]) -> int:
    """Records a submission and calls `location` to store its bytes under the path that it gets: both, or neither. Returns
    its id. Raises `HandInError` when the team may not submit."""
    with _alone(), challenge.writing() as connection:
        if entry.account != _SHELL and not is_member(connection, entry.account, entry.team):
            raise HandInError("left")
        passed = passed_gate(connection, challenge.settings, entry.phase, entry.team)
        made = hand_in(connection, challenge, replace(entry, passed=passed))  # it locks the quota: one after the other
        recent = challenge.clock(connection) - CHECK_SILENT
        if entry.account != _SHELL and is_checked(connection, entry.team, recent, but=made):
            raise HandInError("checking")
        location(challenge.uploads / entry.upload)
    return made


def check_handed_in(challenge: Challenge, submission: int) -> list[str]:
    """Checks a submission that was received, and queues or refuses it. Returns its problems, or the reason of a refusal
    for the quota. A refused upload is deleted unless another submission needs the same bytes."""
    return settle_checked(challenge, submission, check_received(challenge, submission))


def check_received(challenge: Challenge, submission: int) -> Admission:
    """What the check of a received submission finds. Its state stays."""
    with challenge.reading() as connection:
        row = submission_row(connection, submission)
    file, phase = challenge.uploads / row["upload"], challenge.phase(row["phase"])
    return check_upload(challenge, phase, row["kind"], file, row["suffix"])


def settle_checked(challenge: Challenge, submission: int, found: Admission) -> list[str]:
    """Queues or refuses a submission by what its check found; see `check_handed_in`."""
    reason = ""
    with _alone(), suppress(StaleError), challenge.writing() as connection:  # it may have been cancelled meanwhile
        reason = settle(connection, challenge, submission, found.problems, found)
        _remove_unused(connection, challenge, submission_row(connection, submission)["upload"])
    return [*found.problems] or ([REASONS[reason]] if reason else [])


def cancel_upload(challenge: Challenge, submission: int, *, organiser: bool = False) -> None:
    """Cancels a submission. Its upload is deleted if it was never run, or a team could fill the disk with uploads that
    cost it nothing. Raises `StaleError` when it is being scored or has ended."""
    with _alone(), challenge.writing() as connection:
        cancel(connection, challenge, submission, organiser=organiser)
        _remove_unused(connection, challenge, submission_row(connection, submission)["upload"])


def _remove_unused(connection: Connection, challenge: Challenge, upload: str) -> None:
    """Deletes an upload unless a submission has these bytes that is neither refused nor cancelled before it ran."""
    table = submissions.c
    unused = or_(
        table.state == SubmissionState.REFUSED.value,
        and_(table.state == SubmissionState.CANCELLED.value, table.attempted == 0),
    )
    if connection.execute(select(table.id).where(table.upload == upload, ~unused).limit(1)).first() is None:
        (challenge.uploads / upload).unlink(missing_ok=True)


def submit_file(
    challenge: Challenge, phase: str, team: str, file: Path, *, again: bool = False
) -> tuple[int, list[str]]:
    """Submits a file for a team from the shell. Returns the submission's number in the phase, and the problems for
    which it was refused. Raises `InputError` for an unknown team or file, `HandInError` when the team may not submit, and
    `IdenticalError` for a file that the team has submitted in this phase already, unless `again`."""
    challenge.phase(phase)
    if not file.is_file():
        raise InputError(file, found="no such file", expected="a file of answers, or an image's archive")
    kind: Kind = "image" if file.suffix in _IMAGES else "file"
    with challenge.reading() as connection:
        number = int(named_team(connection, team)["id"])
    suffix = suffix_of(file.name) if kind == "file" else ""
    digest, size = file_hash(file), file.stat().st_size
    entry = HandIn(number, _SHELL, phase, kind, digest, size, file.name, suffix, once=not again)

    def copied(to: Path) -> None:
        with replacing(to) as draft:
            shutil.copyfile(file, draft)
            draft.chmod(0o640)  # as from the page: for the scorer's group, and not for all users of the machine

    made = keep_upload(challenge, entry, copied)
    problems = check_handed_in(challenge, made)
    with challenge.reading() as connection:
        return int(submission_row(connection, made)["number"]), problems
