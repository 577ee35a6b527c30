"""`proctor status` and the controls of `proctor store change`, seen from another process than the one at work."""

from __future__ import annotations

import json
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from proctor.runs import Store
from tests.support.faulty_server import FaultyServer
from tests.support.program import proctor, start_proctor, wait_for
from tests.support.text_folder import answer_tray, item_of, write_text_folder

ITEMS = 40


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_text_folder(tmp_path / "data", ITEMS)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


def command(folder: Path, store: Path, server: FaultyServer, *more: str) -> list[str | Path]:
    return ["run", "simulated", "--data", folder, "--store", store, "--condition", "text-only", "--model", "local",
            "--price", "1/1", "--base-url", server.url, *more]  # fmt: skip


def row(store: Path) -> dict[str, object]:
    rows = json.loads(proctor("status", "--store", store, "--format", "json").stdout)
    (found,) = [one for one in rows if one["system"] == "local"]
    assert isinstance(found, dict)
    return found


def answered(store: Path) -> int:
    opened = Store(store, create=False)
    try:
        return sum(opened.count_answers(run)[0] for run in opened.runs("simulated") if run.system == "local")
    finally:
        opened.close()


@pytest.mark.parametrize("share", [False, True])
def test_a_run_is_paused_watched_and_resumed_from_another_shell(folder: Path, store: Path, share: bool) -> None:
    with FaultyServer(answer_tray, latency_s=0.05) as server:
        more = ("--concurrency", "2", *(["--share"] if share else []))
        process = start_proctor(*command(folder, store, server, *more))
        wait_for(lambda: store.exists() and server.count >= 4, process)
        paused = proctor("store", "change", "pause", "simulated", "--system", "local", "--store", store)
        assert (paused.returncode, paused.stdout) == (0, "Paused: 1 run\n"), paused.stderr
        wait_for(lambda: answered(store) == server.count and _quiet(server), process)
        found = row(store)
        assert (found["state"], found["wanted"]) == ("paused", ITEMS)
        assert 4 <= int(str(found["answered"])) < ITEMS
        if not share:
            assert found["by"].startswith(f"process {process.pid} on ")  # type: ignore[attr-defined]
        assert process.poll() is None
        again = proctor("store", "change", "pause", "simulated", "--system", "local", "--store", store)
        assert again.stdout == "Paused: 0 runs; 1 paused before\n"
        assert "Resumed: 1 run" in proctor("store", "change", "resume", "simulated", "--store", store).stdout
        watched = proctor("status", "simulated", "--store", store, "--watch", "--format", "json")
        _, complained = process.communicate(timeout=600)
        asked = Counter(map(item_of, server.requests))
    assert process.returncode == 0, complained
    assert set(asked.values()) == {1}
    assert len(asked) == ITEMS
    lines = [json.loads(line) for line in watched.stdout.splitlines()]
    assert lines[-1][-1]["state"] == "complete", watched.stdout
    assert row(store)["cost_usd"] > 0  # type: ignore[operator]
    assert "complete" in proctor("status", "--store", store).stdout


def _quiet(server: FaultyServer) -> bool:
    before = server.count
    time.sleep(0.3)  # six times what a request takes
    return server.count == before


def test_a_killed_run_says_so_and_items_are_asked_again(folder: Path, store: Path) -> None:
    with FaultyServer(answer_tray, holds_after=6) as server:
        process = start_proctor(*command(folder, store, server, "--concurrency", "2"))
        wait_for(lambda: server.count >= 7 and answered(store) >= 5, process)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
        server.release()
        found = row(store)
        assert (found["state"], found["why"]) == ("stopped", "its process is gone")
        assert proctor(*command(folder, store, server)).returncode == 0
        opened = Store(store, create=False)
        name = opened.items("simulated")[0].id
        opened.close()
        change = ("store", "change", "requeue", "simulated", "--system", "local", "--store", store)
        assert "--item is missing" in proctor(*change).stderr
        assert "--reason is missing" in proctor(*change, "--item", name).stderr
        done = proctor(*change, "--item", name, "--reason", "a black frame", "--yes")
        assert (done.returncode, done.stdout) == (0, "To ask again: 1 answer\n"), done.stderr
        before = server.count
        assert proctor(*command(folder, store, server)).returncode == 0
        assert server.count == before + 1
    assert row(store)["requeued"] == 1
    assert "1 asked again by a person" in proctor("status", "--store", store).stdout


def test_a_store_without_runs_and_no_store(tmp_path: Path) -> None:
    Store(tmp_path / "empty.db").close()
    assert proctor("status", "--store", tmp_path / "empty.db").stdout == "No run.\n"
    assert proctor("status", "--store", tmp_path / "none.db").returncode == 1
    assert proctor("status", "--watch", "--store", tmp_path / "empty.db").returncode == 0
    assert "'proctor store change pause'" in proctor("pause").stderr
