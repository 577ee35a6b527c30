"""Handing in, by a page or from the shell: the bytes are kept under their hash, checked by a bounded process, and the
submission is queued or refused."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from sqlalchemy import select

from proctor.challenges.challenge import Challenge
from proctor.challenges.checking import check_upload, suffix_of
from proctor.challenges.publishing import passed_gate
from proctor.challenges.schema import submissions, teams
from proctor.challenges.settings import Kind
from proctor.challenges.states import SubmissionState
from proctor.challenges.submissions import REASONS, HandIn, StaleError, hand_in, settle, submission_row
from proctor.core import InputError, replacing
from proctor.interchange import file_hash

_IMAGES = (".tar", ".gz", ".tgz", ".xz", ".zst")
_SHELL = 0  # stands for an account


_FILES = threading.Lock()  # an upload comes and goes with its submission: both, or neither


def keep_upload(challenge: Challenge, entry: HandIn, place: Callable[[Path], object]) -> int:
    """Enters a submission and has its bytes put where they stay: both, or neither; its id. Raises `HandInError` where
    the team may not hand in."""
    with _FILES, challenge.writing() as connection:
        passed = passed_gate(connection, challenge.settings, entry.phase, entry.team)
        made = hand_in(connection, challenge, replace(entry, passed=passed))
        place(challenge.uploads / entry.upload)
    return made


def check_handed_in(challenge: Challenge, submission: int) -> list[str]:
    """Checks a submission that was received, and queues or refuses it: the problems, or the quota that is used up. What
    was refused and nobody else handed in is not kept."""
    with challenge.reading() as connection:
        row = submission_row(connection, submission)
    file, phase = challenge.uploads / row["upload"], challenge.phase(row["phase"])
    problems, reason = check_upload(challenge, phase, row["kind"], file, row["suffix"]), ""
    with _FILES, suppress(StaleError), challenge.writing() as connection:  # it may have been cancelled meanwhile
        reason = settle(connection, challenge, submission, problems)
        kept = (submissions.c.upload == row["upload"], submissions.c.state != SubmissionState.REFUSED.value)
        if connection.execute(select(submissions.c.id).where(*kept).limit(1)).first() is None:
            file.unlink(missing_ok=True)
    return problems or ([REASONS[reason]] if reason else [])


def submit_file(challenge: Challenge, phase: str, team: str, file: Path) -> tuple[int, list[str]]:
    """From the shell: an organiser hands in for a team what came by another way. Its number in the phase, and the
    problems for which it was refused. Raises `InputError` for an unknown team or file, and `HandInError` where it may
    not hand in.
    """
    challenge.phase(phase)
    if not file.is_file():
        raise InputError(file, found="no such file", expected="a file of answers, or an image's archive")
    kind: Kind = "image" if file.suffix in _IMAGES else "file"
    with challenge.reading() as connection:
        number = connection.execute(select(teams.c.id).where(teams.c.folded == team.casefold())).scalar()
    if number is None:
        raise InputError("team", found=repr(team[:80]), expected="a team of the challenge")
    suffix = suffix_of(file.name) if kind == "file" else ""
    entry = HandIn(number, _SHELL, phase, kind, file_hash(file), file.stat().st_size, file.name, suffix)

    def copied(to: Path) -> None:
        with replacing(to) as draft:
            shutil.copyfile(file, draft)

    made = keep_upload(challenge, entry, copied)
    problems = check_handed_in(challenge, made)
    with challenge.reading() as connection:
        return int(submission_row(connection, made)["number"]), problems
