"""The check of what a team handed in: the participant's own (`proctor validate`), in a process that ends when it takes
too much. Handing in, by a page or from the shell: the bytes are kept under their hash, checked by a bounded process, and the
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
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from sqlalchemy import select

from proctor.challenges.challenge import Challenge
from proctor.challenges.publishing import passed_gate
from proctor.challenges.schema import submissions, teams
from proctor.challenges.settings import Kind, Phase
from proctor.challenges.states import SubmissionState
from proctor.challenges.submissions import REASONS, HandIn, StaleError, hand_in, settle, submission_row
from proctor.core import ConfigurationError, InputError, replacing
from proctor.interchange import file_hash

_SECONDS = 120
_BYTES_A_SECOND = 20 * 2**20  # of an archive that is compressed
_SUFFIX = re.compile(r"\.[A-Za-z0-9]{1,10}")
_TOO_MUCH = "found a file that takes too long to check, or too much memory, expected a smaller one"


def suffix_of(name: str) -> str:
    """How a file's name ends, for readers that go by it; "" for what is no plain ending.

    >>> suffix_of("answers.JSON"), suffix_of("a.b/c"), suffix_of("answers")
    ('.json', '', '')
    """
    suffix = Path(name).suffix.lower()
    return suffix if _SUFFIX.fullmatch(suffix) else ""


def check_upload(challenge: Challenge, phase: Phase, kind: Kind, upload: Path, suffix: str) -> list[str]:
    """What is wrong with an upload, each problem with its place; [] where it fits. Nothing of it is unpacked, run or
    kept. Raises `ConfigurationError` where the check itself can't be made."""
    size = upload.stat().st_size
    seconds = _SECONDS + size // _BYTES_A_SECOND
    with tempfile.TemporaryDirectory(prefix="proctor-check-") as folder:
        named = Path(folder) / f"submission{suffix}"
        named.symlink_to(upload.resolve())
        asked = {
            "kind": kind,
            "path": str(named),
            "seconds": seconds,
            "benchmark": challenge.settings.benchmark,
            "track": challenge.settings.track,
            "data": str((challenge.folder / phase.questions).resolve()) if phase.questions else "",
        }
        return _run_check(asked, 5.0 * seconds)


def _run_check(asked: dict[str, object], patience_s: float) -> list[str]:
    """Asks a process of its own, without any of our secrets in its environment."""
    program = [sys.executable, "-B", "-P", "-m", "proctor.challenges.check_process"]
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "TMPDIR") if name in os.environ}
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    try:
        done = subprocess.run(  # noqa: S603 - our own module
            program,
            input=json.dumps(asked).encode(),
            capture_output=True,
            timeout=patience_s,
            env=kept | threads,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return [_TOO_MUCH]
    if done.returncode < 0:  # a bound ended it
        return [_TOO_MUCH]
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise ConfigurationError(f"a submission could not be checked: {' '.join(last)[:300]}")
    return [str(one) for one in json.loads(done.stdout)["problems"]]


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
