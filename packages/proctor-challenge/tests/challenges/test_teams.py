"""Teams: names that nobody mistakes, members by a secret, and who may not take part."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import select

from proctor.core import InputError
from proctor_challenge.challenge import Challenge
from proctor_challenge.membership import join_team, members_of, new_join_secret, team_of
from proctor_challenge.schema import teams
from proctor_challenge.teams import TeamEntry, register_team, set_eligible, withdraw_team
from proctor_web import schema as web_schema
from tests.support.hosted import SETTINGS, account, challenge_folder, opened

RULES = SETTINGS + "teams: {members: 2, excluded_countries: [XA]}\nterms: terms.md\n"


@pytest.fixture
def challenge(tmp_path: Path) -> Challenge:
    (tmp_path / "terms.md").write_text("Be fair.")
    return opened(challenge_folder(tmp_path, RULES))


def register(challenge: Challenge, name: str, account: int | None = None, country: str = "AT", terms: str = "") -> str:
    entry = TeamEntry(name, "Clinic", country, terms or challenge.terms)
    with challenge.writing() as connection:
        return register_team(connection, challenge, account, entry)[1]


@pytest.mark.parametrize("name", ["Hand Surgeons", "hand  surgeons ", "Ｈand Surgeons"])
def test_names_that_look_alike_are_one(challenge: Challenge, name: str) -> None:
    register(challenge, "Hand Surgeons")
    with pytest.raises(InputError, match="which there is already"):
        register(challenge, name)


@pytest.mark.parametrize("name", ["", "123", "x" * 81, "Ha\u043dd", "a\u202eb", "a/b", "<b>a</b>", "a\x00b"])
def test_names_that_could_deceive_are_refused(challenge: Challenge, name: str) -> None:
    with pytest.raises(InputError, match="team: found"):
        register(challenge, name)


@pytest.mark.parametrize("name", ["Médecins d'Île-de-France", "手術チーム 1", "A&B (Graz)"])
def test_names_of_the_world_are_taken(challenge: Challenge, name: str) -> None:
    register(challenge, name)


@pytest.mark.parametrize(
    ("country", "told"), [("XA", "may not take part"), ("at", "two letters"), ("AUT", "two letters")]
)
def test_countries(challenge: Challenge, country: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        register(challenge, "A", country=country)


def test_who_agreed_to_other_terms_agrees_again(challenge: Challenge) -> None:
    with pytest.raises(InputError, match="found other terms"):
        register(challenge, "A", terms="0" * 64)


def test_members_join_by_the_secret_until_the_team_is_full(challenge: Challenge) -> None:
    anna, ben, cleo = (account(challenge, name) for name in ("anna", "ben", "cleo"))
    secret = register(challenge, "A", anna)
    with challenge.writing() as connection:
        mine = join_team(connection, challenge, ben, secret)
        assert members_of(connection, mine) == [anna, ben]
        with pytest.raises(InputError, match="found 2 members"):
            join_team(connection, challenge, cleo, secret)
        assert team_of(connection, cleo) is None
        with pytest.raises(InputError, match="a member of a team"):
            register_team(connection, challenge, ben, TeamEntry("B", "Clinic", "AT", challenge.terms))


def test_a_former_secret_and_a_withdrawn_team_let_nobody_in(challenge: Challenge) -> None:
    anna = account(challenge, "anna")
    former = register(challenge, "A")
    with challenge.writing() as connection:
        secret = new_join_secret(connection, challenge, None, 1)
        with pytest.raises(InputError, match="found none of a team"):
            join_team(connection, challenge, anna, former)
        withdraw_team(connection, challenge, None, 1)
        with pytest.raises(InputError, match="found none of a team"):
            join_team(connection, challenge, anna, secret)
        withdraw_team(connection, challenge, None, 1, undo=True)
        assert join_team(connection, challenge, anna, secret) == 1


def test_the_secret_is_not_kept_and_changes_are_in_the_trail(challenge: Challenge) -> None:
    secret = register(challenge, "A")
    with challenge.writing() as connection:
        set_eligible(connection, challenge, None, 1, eligible=False)
        row = connection.execute(select(teams)).mappings().one()
        actions = connection.execute(select(web_schema.trail.c.action)).scalars().all()
    assert secret not in repr(dict(row))
    assert row["eligible"] == 0
    assert actions == ["register team", "set eligible"]
