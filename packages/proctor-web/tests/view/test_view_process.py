"""The program itself: killed in the middle of a run it changes nothing; a server's database is shown as a file is."""

from __future__ import annotations

import signal
import sqlite3
from pathlib import Path

import httpx2
import pytest

from proctor.core import Answer, Score
from proctor.runs import Store
from tests.support.postgres import binaries, running_postgres
from tests.support.program import start_proctor
from tests.support.report_store import a_benchmark, a_store, fill
from tests.support.view_site import opened

KILLS = 3


def test_killing_it_in_the_middle_of_a_run_changes_nothing(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    run = store.start_run("toy", "newcomer", "video", {})
    with store.owning([run]):
        for kill in range(KILLS):
            process = start_proctor("view", tmp_path / "toy.db", "--port", "0")
            line = process.stdout.readline()
            assert line.startswith("Showing toy.db at http://127.0.0.1:"), line + process.stderr.read()
            address = line.split(" at ")[1].split(" ")[0]
            with httpx2.Client(base_url=address, timeout=60) as client:
                for number in range(4):
                    answer = Answer(item_id=f"q{4 * kill + number:03d}", text="Answer: A", parsed="A")
                    store.write(run, [(answer, [Score(item_id=answer.item_id, metric="accuracy", value=1.0)])])
                    assert client.get("/b/toy/answers").status_code == 200
            process.send_signal(signal.SIGKILL)
            process.communicate(60)
    assert store.count_answers(run) == (4 * KILLS, 0)
    store.close()
    with sqlite3.connect(tmp_path / "toy.db") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("SELECT count(*) FROM answers WHERE run = ?", (run.id,)).fetchone() == (4 * KILLS,)


def test_a_server_s_store_is_followed_and_its_password_is_nowhere() -> None:
    programs = binaries()
    if programs is None:
        pytest.skip("no PostgreSQL here (Debian: apt-get install postgresql)")
    with running_postgres(programs) as url:
        address = f"{url}/postgres"
        store = Store(address)
        fill(store, a_benchmark())
        run = store.start_run("toy", "newcomer", "video", {})
        with opened(address) as (view, client):
            for number in range(3):
                store.write(run, [(Answer(item_id=f"q{number:03d}", text="A clip's 100 %", parsed="A"), [])])
                for _ in range(1000):  # runs that nobody owns are looked at in a tenth of the time
                    view.view.watch.look()
                    rows = client.get("/b/toy?format=json").json()["runs"]
                    if [row["settled"] for row in rows if row["system"] == "newcomer"] == [number + 1]:
                        break
                else:
                    pytest.fail("what was written is never seen")
            found = client.get("/b/toy/answers?q=CLIP'S+100+%25&format=json").json()
            assert found["answers"] == 3, "letters of both cases are alike"
            for page in ("/", "/b/toy", "/b/toy/items", "/b/toy/compare", "/b/toy/answers/q000/newcomer/video/0"):
                assert client.get(page).status_code == 200, page
        store.close()
