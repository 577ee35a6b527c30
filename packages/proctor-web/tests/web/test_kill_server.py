"""The server is killed at any moment, while people save and seal: what it acknowledged is there afterwards."""

from __future__ import annotations

import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock

import httpx2
from itsdangerous import Signer
from sqlalchemy import select

from proctor.core import generator
from proctor_web import open_review, schema
from proctor_web.accounts import find_account
from proctor_web.review import ReviewSite
from proctor_web.sessions import start_session
from proctor_web.trail import first_fault
from tests.support.web_folder import invitations, review_folder, serving
from tests.support.web_study import ACCEPT, READINGS

KILLS = 2
READERS = ("anna", "ben")


@dataclass
class Acknowledged:
    """What a reader was told is kept, item by item: the revision and the comment of the last save, and the seals; and
    what was sent since and not answered."""

    kept: dict[int, tuple[int, str]] = field(default_factory=dict)
    sealed: set[int] = field(default_factory=set)
    sent: dict[int, str] = field(default_factory=dict)


def logged_in(review: ReviewSite, name: str) -> dict[str, str]:
    """The headers of somebody who is logged in."""
    with review.writing() as connection:
        account = find_account(connection, name)["id"]
        token = start_session(connection, account, review.now())
        csrf = connection.execute(select(schema.sessions.c.csrf).where(schema.sessions.c.account == account)).scalar()
    cookie = Signer(review.key, salt="session").sign(token).decode()
    return {"cookie": f"proctor={cookie}", "x-csrf-token": str(csrf), "accept": "application/json"}


def items_of(review: ReviewSite, name: str) -> list[int]:
    with review.reading() as connection:
        account = find_account(connection, name)["id"]
        mine = select(schema.assignments.c.item).where(schema.assignments.c.account == account)
        return list(connection.execute(mine.order_by(schema.assignments.c.position)).scalars())


def work(address: str, headers: dict[str, str], items: list[int], said: Acknowledged, told: Callable[[], None]) -> None:
    """Saves each item twice and seals it, from where the last acknowledgement was, until the server is gone."""
    with httpx2.Client(base_url=address, headers=headers, timeout=60) as client:
        for item in items:
            while item not in said.sealed:
                revision, _ = said.kept.get(item, (0, ""))
                comment = f"remark {revision + 1} on {item}"
                said.sent[item] = comment
                end = "seal" if revision >= 2 else "draft"
                payload = dict(ACCEPT if end == "seal" else READINGS["question"][revision % 2])
                save = {"version": 1, "revision": revision, "payload": payload, "comment": comment, "seconds": 1}
                try:
                    answer = client.post(f"/item/{item}/{end}", json=save)
                except httpx2.TransportError:
                    return
                if answer.status_code == 409:  # the save before was kept, and the acknowledgement lost
                    said.kept[item] = (answer.json()["revision"], comment)
                    continue
                assert answer.status_code == 200, answer.text
                said.kept[item] = (revision + 1, comment)
                if end == "seal":
                    said.sealed.add(item)
                told()


def test_no_acknowledged_save_or_seal_is_lost(tmp_path: Path) -> None:
    folder = review_folder(tmp_path / "review", items=20)
    invitations(folder)
    review, _ = open_review(folder)
    headers = {name: logged_in(review, name) for name in READERS}
    items = {name: items_of(review, name) for name in READERS}
    said = {name: Acknowledged() for name in READERS}
    draws = generator(1, "kill")
    for _ in range(KILLS):
        wanted, lock, enough = int(draws.integers(3, 25)), Lock(), Event()
        count = 0

        def told(wanted: int = wanted, lock: Lock = lock, enough: Event = enough) -> None:
            nonlocal count
            with lock:
                count += 1
                if count >= wanted:
                    enough.set()

        with serving(folder) as (process, address), ThreadPoolExecutor(len(READERS)) as pool:
            done = [pool.submit(work, address, headers[name], items[name], said[name], told) for name in READERS]
            assert enough.wait(120)
            process.send_signal(signal.SIGKILL)
            for one in done:
                one.result(120)
        check(review, said)
    assert sum(len(one.sealed) for one in said.values()) >= 3
    review.engine.dispose()


def check(review: ReviewSite, said: dict[str, Acknowledged]) -> None:
    """Every acknowledged revision is there, or the one after it, which was sent and not answered."""
    with review.reading() as connection:
        for name, one in said.items():
            account = find_account(connection, name)["id"]
            query = select(schema.readings, schema.versions.c.item).join(
                schema.versions, schema.versions.c.id == schema.readings.c.version
            )
            rows = connection.execute(query.where(schema.readings.c.account == account)).mappings()
            found = {row["item"]: row for row in rows}
            for item, (revision, comment) in one.kept.items():
                row = found[item]
                assert row["revision"] in {revision, revision + 1}
                assert row["comment"] == (comment if row["revision"] == revision else one.sent[item])
            assert one.sealed <= {item for item, row in found.items() if row["sealed"] is not None}
        assert first_fault(connection) is None
