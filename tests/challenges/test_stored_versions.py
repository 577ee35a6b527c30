"""A challenge that an earlier version stored opens, with all that it holds; one of a later version does not."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import update
from sqlalchemy.exc import IntegrityError

from proctor.challenges.challenge import Challenge
from proctor.challenges.descriptions import describe
from proctor.challenges.schema import events
from proctor.challenges.submissions import submissions_of
from proctor.challenges.teams import named_team, withdraw_team
from proctor.core import InputError
from tests.support.hosted import challenge_folder, handed_in, opened, team
from tests.support.program import proctor


@pytest.fixture
def former(tmp_path: Path) -> Path:
    """A challenge of version 1: without the table and the column that came later."""
    challenge = opened(challenge_folder(tmp_path))
    handed_in(challenge, team(challenge))
    challenge.close()
    with sqlite3.connect(tmp_path / "challenge.sqlite") as connection:
        connection.execute("drop table descriptions")
        connection.execute("alter table teams drop column disqualified")
        connection.execute("update meta set value = '1' where key = 'challenge_version'")
    return tmp_path


def version(folder: Path) -> str:
    with sqlite3.connect(folder / "challenge.sqlite") as connection:
        return str(connection.execute("select value from meta where key = 'challenge_version'").fetchone()[0])


def test_a_challenge_of_version_1_is_brought_up(former: Path, tmp_path: Path) -> None:
    assert version(former) == "1"
    for _ in range(2):
        challenge = opened(former)
        assert version(former) == "2"
        with challenge.reading() as connection:
            assert len(submissions_of(connection, 1)) == 1
            assert named_team(connection, "hand surgeons")["disqualified"] is None
        method = tmp_path / "method.txt"
        method.write_text("how it works")
        assert describe(challenge, "test", "Hand Surgeons", method)
        with challenge.writing() as connection:
            withdraw_team(connection, challenge, None, 1, why="two accounts")
            withdraw_team(connection, challenge, None, 1, undo=True)
        with pytest.raises(IntegrityError, match="rows of events stay as they are"), challenge.writing() as connection:
            connection.execute(update(events).values(after="scored"))
        challenge.close()


def test_a_challenge_of_a_later_version_is_refused_in_one_line(former: Path) -> None:
    with sqlite3.connect(former / "challenge.sqlite") as connection:
        connection.execute("update meta set value = '3' where key = 'challenge_version'")
    with pytest.raises(
        InputError, match="found a challenge of version 3, expected version 2: update Proctor to open it"
    ):
        Challenge.open(former, "organiser")
    done = proctor("challenge", "team", "list", former)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
