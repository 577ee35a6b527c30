"""Two processes that update one review at the same moment, on PostgreSQL: the second waits for the first."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, text

from proctor.runs import reading
from proctor_challenge.scoring import scorer_version
from proctor_web import review as reviews
from proctor_web import studies
from proctor_web.readings import edit_item
from proctor_web.review import StudyUpdate, open_review
from proctor_web.settings import open_store, review_store
from proctor_web.site import signing_key
from proctor_web.trail import first_fault
from tests.support.challenge_site import challenge_site
from tests.support.program import start_proctor
from tests.support.web_folder import review_folder
from tests.support.web_rows import people
from tests.support.web_study import NOW, QUESTION

WAITING = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
PATIENCE_S = 20.0


@pytest.fixture
def folder(tmp_path: Path, postgres_url: str) -> Path:
    folder = review_folder(tmp_path / "review")
    engine = open_store(review_store(folder, postgres_url))
    with engine.begin() as connection:
        people(connection)
    engine.dispose()
    return folder


@pytest.fixture
def admin(postgres_url: str) -> Iterator[Engine]:
    engine = create_engine(postgres_url, isolation_level="AUTOCOMMIT")
    yield engine
    engine.dispose()


def held(admin: Engine) -> Callable[[], None]:
    """Called within a first transaction: waits until a second one waits for it. Does nothing the second time."""
    once = threading.Event()

    def wait() -> None:
        if once.is_set():
            return
        once.set()
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            with admin.connect() as connection:
                if connection.execute(text(WAITING)).scalar_one():
                    return
            time.sleep(0.02)

    return wait


def both(folder: Path, url: str, admin: Engine, monkeypatch: pytest.MonkeyPatch, second: Callable[[], Any]) -> Any:
    """An update that stands still before it deals, with its items written, while `second` runs; the update and what
    `second` returned."""
    wait, really, begun = held(admin), studies.deal_study, threading.Event()

    def deal(*given: Any) -> int:
        begun.set()
        wait()
        return really(*given)

    monkeypatch.setattr(reviews, "deal_study", deal)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(updated, folder, url)
        assert begun.wait(PATIENCE_S)
        other = pool.submit(second)
        return first.result(PATIENCE_S), other.result(PATIENCE_S)


def updated(folder: Path, url: str) -> StudyUpdate:
    review, (update,) = open_review(folder, url)
    review.engine.dispose()
    return update


def test_a_fresh_review_is_filled_once(
    folder: Path, postgres_url: str, admin: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = both(folder, postgres_url, admin, monkeypatch, lambda: updated(folder, postgres_url))
    assert (first.items.new, first.assigned) == (6, 18)
    assert (second.items.new, second.items.same, second.assigned) == (0, 6, 0)


def test_changed_items_get_one_new_version(
    folder: Path, postgres_url: str, admin: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    updated(folder, postgres_url)
    items = [json.loads(line) for line in (folder / "items.jsonl").read_text().splitlines()]
    items[0]["body"]["stem"] = "What comes next?"
    items.append(items[1] | {"id": "q9"})
    (folder / "items.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    first, second = both(folder, postgres_url, admin, monkeypatch, lambda: updated(folder, postgres_url))
    assert (first.items.changed, first.items.new, first.items.same) == (1, 1, 5)
    assert (second.items.changed, second.items.new, second.items.same) == (0, 0, 7)
    with admin.connect() as connection:
        numbers = connection.execute(text("select count(*), max(number) from versions")).one()
        assert tuple(numbers) == (8, 2)
    review = open_store(review_store(folder, postgres_url))
    with reading(review) as connection:
        assert first_fault(connection) is None
    review.dispose()


def test_an_organiser_changes_an_item_meanwhile(
    folder: Path, postgres_url: str, admin: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    updated(folder, postgres_url)
    changed = (folder / "items.jsonl").read_text().replace("slides", "glides")
    (folder / "items.jsonl").write_text(changed)

    def edit() -> int:
        engine = open_store(review_store(folder, postgres_url))
        try:
            with engine.begin() as connection:
                return edit_item(connection, 1, 1, QUESTION, "clearer", NOW)
        finally:
            engine.dispose()

    first, number = both(folder, postgres_url, admin, monkeypatch, edit)
    assert (first.items.changed, number) == (6, 3)


def test_two_commands_at_once_end_without_a_traceback(folder: Path, postgres_url: str) -> None:
    started = [start_proctor("review", "update", folder, "--store", postgres_url) for _ in range(3)]
    ended = [process.communicate(120) for process in started]
    assert [process.returncode for process in started] == [0, 0, 0], ended
    assert sorted(out.partition(",")[0] for out, _ in ended) == [
        "questions: 0 new items", "questions: 0 new items", "questions: 6 new items"
    ]  # fmt: skip


def test_two_reruns_at_once_record_one_scorer(
    tmp_path: Path, postgres_url: str, admin: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = challenge_site(tmp_path / "challenge", store=postgres_url)
    wait = held(admin)

    def record(*, waits: bool) -> int:
        with site.challenge.writing() as connection:
            version = scorer_version(connection, "f" * 64, NOW)
            if waits:
                begun.set()
                wait()
            return version

    begun = threading.Event()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(record, waits=True)
        assert begun.wait(PATIENCE_S)
        second = pool.submit(record, waits=False)
        assert (first.result(PATIENCE_S), second.result(PATIENCE_S)) == (1, 1)
    site.engine.dispose()


def test_a_key_that_another_server_is_about_to_write_is_waited_for(tmp_path: Path) -> None:
    key = tmp_path / "review.key"
    key.touch()
    writer = threading.Timer(0.2, key.write_text, ["k" * 43])
    writer.start()
    assert signing_key(key) == "k" * 43
    writer.join()
