"""What a monitor asks: whether the process answers, and whether it can work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from sqlalchemy import create_engine, text

from proctor_web.review import ReviewSite
from tests.support.web_site import browser, site


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_both_are_answered_under_any_name_and_without_a_login(review: ReviewSite, path: str) -> None:
    client = browser(review)
    for host in ("review.test", "10.0.0.7:8000"):
        answer = client.get(path, headers={"host": host})
        assert (answer.status_code, answer.text) == (200, "ok\n")
        assert answer.headers["cache-control"] == "no-store"
        assert "set-cookie" not in answer.headers
    seen = client.head(path)
    assert (seen.status_code, seen.text) == (200, "")
    assert client.get("/login", headers={"host": "10.0.0.7:8000"}).status_code == 400
    assert client.post(path).status_code in {403, 404, 405}


def test_a_process_without_its_database_answers_and_is_not_ready(tmp_path: Path, postgres_url: str) -> None:
    review = site(tmp_path, store=postgres_url)
    client = browser(review)
    review.engine.dispose()
    admin = create_engine(postgres_url.rpartition("/")[0] + "/postgres", isolation_level="AUTOCOMMIT")
    name = postgres_url.rpartition("/")[2]
    with admin.connect() as connection:
        connection.execute(text(f"alter database {name} allow_connections false"))
        answer = client.get("/readyz")
        assert (answer.status_code, answer.text) == (503, "not ready: the database\n")
        assert client.get("/healthz").status_code == 200
        connection.execute(text(f"alter database {name} allow_connections true"))
    admin.dispose()
    review.engine.dispose()


def test_a_full_disk_and_a_closed_folder_are_named(review: ReviewSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proctor_web.health.os.statvfs", lambda _: SimpleNamespace(f_bavail=10, f_frsize=4096))
    monkeypatch.setattr("proctor_web.health.os.access", lambda *_: False)
    answer = browser(review).get("/readyz")
    assert (answer.status_code, answer.text) == (503, "not ready: room on the disk, a folder to write to\n")


def test_a_folder_that_is_gone_is_named(review: ReviewSite, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(folder: object) -> None:
        raise FileNotFoundError(folder)

    monkeypatch.setattr("proctor_web.health.os.statvfs", gone)
    answer = browser(review).get("/readyz")
    assert (answer.status_code, answer.text) == (503, "not ready: a folder to write to\n")


def test_many_who_ask_at_once_ask_the_database_once(review: ReviewSite, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def look(_: object) -> Iterator[str]:
        asked.append("look")
        return iter(())

    monkeypatch.setattr("proctor_web.health._faults", look)
    client = browser(review)
    assert {client.get("/readyz").status_code for _ in range(5)} == {200}
    assert asked == ["look"]
