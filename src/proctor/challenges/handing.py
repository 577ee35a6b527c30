"""A submission from the shell: an organiser hands in for a team what came by another way, by the rules of the page."""

from __future__ import annotations

import shutil
from pathlib import Path

from sqlalchemy import select

from proctor.challenges.challenge import Challenge
from proctor.challenges.checking import check_upload, suffix_of
from proctor.challenges.publishing import passed_gate
from proctor.challenges.schema import teams
from proctor.challenges.settings import Kind
from proctor.challenges.submissions import REASONS, HandIn, hand_in, settle, submission_row
from proctor.core import InputError, replacing
from proctor.interchange import file_hash

_IMAGES = (".tar", ".gz", ".tgz", ".xz", ".zst")
_SHELL = 0  # stands for an account


def submit_file(challenge: Challenge, phase: str, team: str, file: Path) -> tuple[int, list[str]]:
    """Hands a file of answers or an image's archive in for a team; its number in the phase, and the problems for which it
    was refused. Raises `InputError` for an unknown team or file, and `HandInError` where it may not hand in."""
    one = challenge.phase(phase)
    if not file.is_file():
        raise InputError(file, found="no such file", expected="a file of answers, or an image's archive")
    kind: Kind = "image" if file.suffix in _IMAGES else "file"
    digest = file_hash(file)
    with challenge.writing() as connection:
        number = connection.execute(select(teams.c.id).where(teams.c.folded == team.casefold())).scalar()
        if number is None:
            raise InputError(None, "team", found=repr(team[:80]), expected="a team of the challenge")
        passed = passed_gate(connection, challenge.settings, phase, number)
        suffix = suffix_of(file.name) if kind == "file" else ""
        entry = HandIn(number, _SHELL, phase, kind, digest, file.stat().st_size, file.name, suffix, passed=passed)
        made = hand_in(connection, challenge, entry)
        with replacing(challenge.uploads / digest) as draft:
            shutil.copyfile(file, draft)
    problems = check_upload(challenge, one, kind, challenge.uploads / digest, entry.suffix)
    with challenge.writing() as connection:
        reason = settle(connection, challenge, made, problems)
        taken = int(submission_row(connection, made)["number"])
    return taken, problems or ([REASONS[reason]] if reason else [])
