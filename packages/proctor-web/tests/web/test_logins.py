"""Guessing passwords: ten thousand tries, from one address and from many."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

import pytest
from argon2 import PasswordHasher
from sqlalchemy import func, select, text

from proctor.core import InputError
from proctor_web import schema
from proctor_web.accounts import Changed, add_account, disable, erase, find_account
from proctor_web.review import ReviewSite
from proctor_web.sessions import BY_ADDRESS, BY_NAME, begin_attempt, log_in
from proctor_web.trail import first_fault
from tests.support.web_site import PASSWORD, browser, clock_of, join, site
from tests.support.web_site import log_in as fill_in


def test_of_ten_thousand_guesses_ten_are_looked_at(review: ReviewSite) -> None:
    join(review, "anna")
    with review.writing() as connection:
        looked_at = [begin_attempt(review, connection, "anna", f"192.0.{n // 250}.{n % 250}") for n in range(10_000)]
    assert sum(one is not None for one in looked_at) == BY_NAME == 10
    with review.reading() as connection:
        assert connection.execute(select(func.count()).select_from(schema.logins)).scalar() == 10


def test_guesses_of_one_address_over_many_names_count_together(review: ReviewSite) -> None:
    with review.writing() as connection:
        looked_at = [begin_attempt(review, connection, f"name{n}", f"2001:db8::{n:x}") for n in range(200)]
    assert sum(one is not None for one in looked_at) == BY_ADDRESS == 60


def test_attempts_at_once_count_like_attempts_in_a_row(tmp_path: Path, postgres_url: str) -> None:
    """The second one begins before the first one is kept, and waits for it. (SQLite has one writer anyway.)"""
    review = site(tmp_path, store=postgres_url)

    def guess(number: int) -> bool:
        with review.writing() as connection:
            return begin_attempt(review, connection, "anna", f"192.0.2.{number}") is not None

    assert all(guess(number) for number in range(BY_NAME - 1))
    waiting = text("select count(*) from pg_stat_activity where wait_event_type = 'Lock'")
    with ThreadPoolExecutor(1) as pool:
        with review.writing() as first:
            assert begin_attempt(review, first, "anna", "192.0.2.98") is not None
            second = pool.submit(guess, 99)
            while not second.done():
                with review.reading() as connection:
                    if connection.execute(waiting).scalar():
                        break
        assert second.result(60) is False
    review.engine.dispose()


def test_of_a_days_patient_guessing_two_thirds_are_looked_at(review: ReviewSite) -> None:
    """One every minute: at most 10 in any 15 minutes, so 960 in a day, and not 1,440."""
    with review.writing() as connection:
        looked_at = 0
        for _ in range(1_440):
            clock_of(review).pass_by(minutes=1)
            looked_at += begin_attempt(review, connection, "anna", "192.0.2.1") is not None
    assert looked_at == 960


def test_who_waits_gets_in_and_before_that_not_even_with_the_password(review: ReviewSite) -> None:
    join(review, "anna")
    client = browser(review)
    for _ in range(BY_NAME):
        assert fill_in(client, "anna", "wrong kettle 7").status_code == 401
    refused = fill_in(client, "anna", PASSWORD)
    assert refused.status_code == 429
    assert "15 minutes" in refused.text
    clock_of(review).pass_by(minutes=15, seconds=1)
    assert fill_in(client, "anna", PASSWORD).status_code == 303


def test_an_unknown_name_is_made_to_wait_like_a_known_one(review: ReviewSite) -> None:
    client = browser(review)
    answers = [fill_in(client, "nobody", "wrong kettle 7").status_code for _ in range(BY_NAME + 1)]
    assert answers == [401] * BY_NAME + [429]


def test_no_password_takes_less_work_than_another(review: ReviewSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the time of an answer would tell which names there are."""
    join(review, "anna")
    join(review, "ben")
    with review.writing() as connection:
        disable(connection, find_account(connection, "ben"), Changed(None, review.now()))
        add_account(connection, "cleo", "reviewer", "en", Changed(None, review.now()))
    work = []

    class Counted(PasswordHasher):
        def verify(self, hash: str | bytes, password: str | bytes) -> Literal[True]:  # noqa: A002 (as argon2 has it)
            work.append(len(password))
            return super().verify(hash, password)

    monkeypatch.setattr("proctor_web.accounts._HASHER", Counted(time_cost=1, memory_cost=8, parallelism=1))
    for name in ("anna", "ben", "cleo", "nobody", "no name!"):
        assert not log_in(review, name, "wrong kettle 7", "192.0.2.1").token
    assert work == [14] * 5


def test_strangers_can_not_lock_out_who_logged_in_from_here_before(review: ReviewSite) -> None:
    join(review, "anna")
    assert log_in(review, "anna", PASSWORD, "192.0.2.1").token
    for number in range(BY_NAME + 5):
        log_in(review, "anna", "wrong kettle 7", f"198.51.100.{number}")
    assert log_in(review, "anna", PASSWORD, "198.51.100.99").waiting
    assert log_in(review, "anna", PASSWORD, "192.0.2.1").token
    for _ in range(BY_NAME):
        assert not log_in(review, "anna", "wrong kettle 7", "192.0.2.1").waiting
    assert log_in(review, "anna", PASSWORD, "192.0.2.1").waiting, "and from here no more is tried than elsewhere"


def test_a_password_changed_while_the_old_one_is_checked_lets_nobody_in(
    review: ReviewSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old password was right when it was looked at; the account has another one by the time the session begins."""
    join(review, "anna")

    def right_but_late(password_hash: str, password: str) -> bool:
        with review.writing() as connection:
            table = schema.accounts
            connection.execute(table.update().where(table.c.name == "anna").values(password="another"))
        return True

    monkeypatch.setattr("proctor_web.sessions.is_password", right_but_late)
    assert not log_in(review, "anna", PASSWORD, "192.0.2.1").token


def test_names_typed_at_a_login_stand_nowhere_in_the_database(review: ReviewSite) -> None:
    """Neither those of accounts nor those of people without one; limits count them all the same."""
    join(review, "anna")
    assert log_in(review, "anna", PASSWORD, "192.0.2.1").token
    for name in ("anna", "Dr.Nobody", "not a name"):
        assert not log_in(review, name, "wrong kettle 7", "192.0.2.2").token
    with review.reading() as connection:
        rows = connection.execute(select(schema.logins)).mappings().all()
        number = find_account(connection, "anna")["id"]
    assert [row["account"] for row in rows] == [number, number, None, None]
    assert rows[0]["name_hash"] == rows[1]["name_hash"] != rows[2]["name_hash"]
    stored = " ".join(str(value) for row in rows for value in row.values())
    assert not any(name in stored for name in ("anna", "nobody", "Nobody", "not a name"))
    assert all(row["name_hash"] != schema.token_hash(name) for row in rows for name in ("anna", "login anna"))


def test_failures_are_kept_as_long_as_they_count(review: ReviewSite) -> None:
    join(review, "anna")
    log_in(review, "nobody", "wrong kettle 7", "192.0.2.2")
    clock_of(review).pass_by(minutes=16)
    log_in(review, "somebody", "wrong kettle 7", "192.0.2.2")
    assert log_in(review, "anna", PASSWORD, "192.0.2.1").token
    with review.reading() as connection:
        assert connection.execute(select(schema.logins.c.ok).order_by(schema.logins.c.id)).scalars().all() == [0, 1]


def test_an_erased_person_leaves_the_pseudonym_alone(review: ReviewSite) -> None:
    join(review, "anna")
    join(review, "ben")
    assert log_in(review, "anna", PASSWORD, "192.0.2.77").token
    assert log_in(review, "ben", PASSWORD, "192.0.2.1").token
    changed = Changed(None, review.now())
    with review.writing() as connection:
        anna = find_account(connection, "anna")
        with pytest.raises(InputError, match="name: found 'anna', who may log in, expected a disabled account"):
            erase(connection, anna, changed)
        disable(connection, anna, changed)
        erase(connection, find_account(connection, "anna"), changed)
    assert not log_in(review, "anna", PASSWORD, "192.0.2.3").token
    assert not log_in(review, anna["pseudonym"], PASSWORD, "192.0.2.3").token
    with review.reading() as connection:
        tables = (schema.accounts, schema.invitations, schema.sessions, schema.logins, schema.trail)
        rows = [row for table in tables for row in connection.execute(select(table)).mappings().all()]
        stored = " ".join(str(value) for row in rows for value in row.values())
        assert first_fault(connection) is None
        left = connection.execute(select(schema.logins.c.address).where(schema.logins.c.ok == 1)).scalars().all()
    assert "anna" not in stored
    assert "192.0.2.77" not in stored
    assert anna["pseudonym"] in stored
    assert left == ["192.0.2.1"], "others keep theirs"
