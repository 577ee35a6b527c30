"""A challenge of another version is refused in one sentence that says what to do, and stays as it is."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from proctor import __version__
from proctor.core import InputError
from proctor_challenge.challenge import Challenge
from tests.support.hosted import challenge_folder, handed_in, opened, team
from tests.support.program import proctor


def stored(tmp_path: Path, version: str) -> Path:
    """A challenge with a submission whose tables have this version."""
    challenge = opened(challenge_folder(tmp_path))
    handed_in(challenge, team(challenge))
    challenge.close()
    with sqlite3.connect(tmp_path / "challenge.sqlite") as connection:
        connection.execute("update meta set value = ? where key = 'challenge_version'", (version,))
    connection.close()
    return tmp_path


@pytest.mark.parametrize(
    ("version", "way"),
    [
        ("1", f"start over in another store, or open it with Proctor {__version__}, which made it"),
        ("3", "update Proctor to open it"),
    ],
)
def test_a_challenge_of_another_version_is_refused_in_one_line(tmp_path: Path, version: str, way: str) -> None:
    folder = stored(tmp_path, version)
    before = (folder / "challenge.sqlite").read_bytes()
    with pytest.raises(InputError, match=f"found a challenge of version {version}, expected version 2: {way}"):
        Challenge.open(folder, "organiser")
    done = proctor("challenge", "team", "list", folder)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert (folder / "challenge.sqlite").read_bytes() == before
