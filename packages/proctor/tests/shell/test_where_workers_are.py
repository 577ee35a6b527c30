"""Where workers are: at the store, on SLURM by a script, or on Ray."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import proctor as python
from proctor.runs import Store, evaluation_content, open_orders
from proctor.shell import orders, workers
from proctor.shell.workers import slurm_script
from tests.support.faulty_server import FaultyServer
from tests.support.pretended_ray import PretendedRay
from tests.support.program import proctor
from tests.support.text_folder import answer_tray, item_of, write_text_folder

ITEMS = 12


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with FaultyServer(answer_tray) as running:
        yield running


@pytest.fixture
def words(tmp_path: Path, server: FaultyServer) -> list[str]:
    data = write_text_folder(tmp_path / "data", ITEMS)
    found = f"run simulated --data {data} --condition text-only --model local --base-url {server.url}"
    return found.split()


def content(store: Path | str) -> dict[str, object]:
    opened = Store(store, create=False)
    try:
        return asdict(evaluation_content(opened, "simulated", ["local"]))
    finally:
        opened.close()


def alone(tmp_path: Path, server: FaultyServer) -> dict[str, object]:
    store = tmp_path / "alone.db"
    given = {"model": "local", "base_url": server.url, "conditions": "text-only", "baselines": False}
    python.run("simulated", data=tmp_path / "data", store=store, **given).store.close()  # type: ignore[arg-type]
    server.requests.clear()
    return content(store)


def test_on_ray_a_lost_worker_is_replaced_and_the_hash_is_that_of_one_alone(
    tmp_path: Path, server: FaultyServer, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, store = alone(tmp_path, server), tmp_path / "runs.db"
    monkeypatch.setitem(sys.modules, "ray", ray := PretendedRay())
    done = proctor(*words, "--store", store, "--on", "ray", "--workers", "2")
    assert done.returncode == 0, done.stderr
    assert f"Asked {ITEMS}: {ITEMS} answered" in done.stdout
    assert "workers lost: 1; others went on" in done.stderr
    assert (ray.started, ray.wanted) == (3, {"num_cpus": 1, "num_gpus": 0})
    assert Counter(item_of(one) for one in server.requests) == Counter({f"q{n:03d}": 1 for n in range(ITEMS)})
    assert content(store) == expected
    again = proctor(*words, "--store", store, "--on", "ray")
    assert (again.returncode, ray.started) == (0, 3)


def test_what_others_answer_while_a_run_is_planned_is_not_still_to_be_asked(
    tmp_path: Path, server: FaultyServer, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, location = tmp_path / "runs.db", orders.store_order

    def late(*given: Any) -> None:
        monkeypatch.setattr(orders, "store_order", location)
        other: dict[str, Any] = {"data": tmp_path / "data", "model": "local", "base_url": server.url, "share": True}
        python.run("simulated", store=store, conditions="text-only", baselines=False, **other).store.close()
        location(*given)

    monkeypatch.setattr(orders, "store_order", late)
    monkeypatch.setitem(sys.modules, "ray", PretendedRay())
    done = proctor(*words, "--store", store, "--on", "ray")
    assert (done.returncode, len(server.requests)) == (0, ITEMS), done.stderr
    assert "still to be asked" not in done.stderr
    opened = Store(store, create=False)
    assert open_orders(opened) == []
    opened.close()


def test_a_cluster_whose_machines_are_all_lost_ends_the_run(
    tmp_path: Path, server: FaultyServer, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", ray := PretendedRay(lost=1000))
    done = proctor(*words, "--store", tmp_path / "runs.db", "--on", "ray")
    assert (done.returncode, ray.started, server.requests) == (130, 4, [])
    assert f"{ITEMS} items still to be asked" in done.stderr


def test_workers_that_may_not_join_end_the_run_with_their_reason(
    tmp_path: Path, server: FaultyServer, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    refusal = "not joined: simulated (local / text-only): this machine has other settings"
    monkeypatch.setitem(sys.modules, "ray", PretendedRay(lost=0, said=["joined", refusal, refusal]))
    done = proctor(*words, "--store", tmp_path / "runs.db", "--on", "ray", "--workers", "2")
    assert (done.returncode, done.stdout, server.requests) == (1, "", [])
    assert [line for line in done.stderr.splitlines() if "not joined" in line] == [f"proctor: {refusal}"]


@pytest.mark.training
def test_on_a_real_ray_the_hash_is_that_of_one_alone(tmp_path: Path, server: FaultyServer, words: list[str]) -> None:
    expected, store = alone(tmp_path, server), tmp_path / "runs.db"
    code = "from proctor.cli.main import main; main()"
    command = [sys.executable, "-c", code, *words, "--store", str(store), "--on", "ray", "--workers", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    assert f"Asked {ITEMS}: {ITEMS} answered" in done.stdout
    assert Counter(item_of(one) for one in server.requests) == Counter({f"q{n:03d}": 1 for n in range(ITEMS)})
    assert content(store) == expected


def test_what_the_script_for_slurm_runs_joins_the_run(
    tmp_path: Path, server: FaultyServer, words: list[str], postgres_url: str
) -> None:
    expected = alone(tmp_path, server)
    options = ["--store", postgres_url, "--workers", "3"]
    made = proctor(*words, *options, "--on", "slurm")
    assert made.returncode == 0, made.stderr
    assert "#SBATCH --array=1-3\n" in made.stdout
    assert postgres_url not in made.stdout  # it may hold a password
    assert server.requests == []
    script = tmp_path / "workers.sh"
    script.write_text(made.stdout)
    bare = subprocess.run(["bash", script], capture_output=True, text=True, check=False, env={}, timeout=600)
    assert bare.returncode != 0
    assert "the address of the store is expected" in bare.stderr
    first, *command = shlex.split(made.stdout.splitlines()[-1])  # the page's test runs it as a process
    assert [first, *command[:3]] == ["exec", sys.executable, "-m", "proctor"]
    done = proctor(*command[3:], PROCTOR_STORE=postgres_url)
    assert (done.returncode, done.stdout) == (0, f"Asked {ITEMS}: {ITEMS} answered\n"), done.stderr
    assert content(postgres_url) == expected


@pytest.mark.parametrize("needs_gpu", [True, False])
def test_a_job_has_a_gpu_where_weights_are_read_in_the_process(
    needs_gpu: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"media": "/media", "cache": None, "concurrency": 4, "base_url": ["http://a/v1", "http://b/v1"]}
    monkeypatch.setattr(workers, "worker_options", lambda _: given)
    arranged = SimpleNamespace(benchmark=SimpleNamespace(name="mine"), needs_gpu=needs_gpu)
    made = workers.slurm_job(cast("Any", SimpleNamespace(arranged=arranged)), 3)
    assert ("#SBATCH --gpus-per-task=1\n" in made, "#SBATCH --array=1-3\n" in made) == (needs_gpu, True)
    asked = "--media /media --concurrency 4 --base-url http://a/v1 --base-url http://b/v1"
    assert made.splitlines()[-1].endswith(asked)


def test_a_script_holds_what_people_named_and_runs_none_of_it() -> None:
    made = slurm_script("my $(touch x) questions", 2, ["--media", "/data/$(touch y) 'z'"], gpu=True)
    assert "#SBATCH --job-name=proctor-my-touch-x-questions\n" in made
    assert "#SBATCH --gpus-per-task=1\n" in made
    assert made.splitlines()[-1].endswith("""--media '/data/$(touch y) '"'"'z'"'"''""")


@pytest.mark.parametrize(
    ("on", "why"),
    [
        ("cloud", "--on 'cloud' is unknown: choose store, slurm, ray or ray:ADDRESS"),
        ("slurm:there", "--on 'slurm:there' is unknown: choose store"),
        ("store", "Workers on other machines can't reach the file {store}. Give a PostgreSQL URL"),
        ("slurm", "Workers on other machines can't reach the file {store}. Give a PostgreSQL URL"),
        ("ray:there:1", "Workers on other machines can't reach the file {store}. Give a PostgreSQL URL"),
    ],
)
def test_workers_elsewhere_need_a_store_that_they_reach(on: str, why: str, tmp_path: Path, words: list[str]) -> None:
    store = tmp_path / "runs.db"
    done = proctor(*words, "--store", store, "--on", on)
    assert done.returncode == 2
    assert why.format(store=store) in done.stderr


def test_code_and_a_missing_cluster_are_told(
    tmp_path: Path, words: list[str], monkeypatch: pytest.MonkeyPatch, server: FaultyServer
) -> None:
    (tmp_path / "mine.py").write_text("def answer(question):\n    return 'Answer: 1'\n")
    own = ["run", "simulated", "--data", words[3], "--condition", "text-only", "--system", f"{tmp_path}/mine.py:answer"]
    done = proctor(*own, "--store", tmp_path / "own.db", "--on", "ray")
    assert f"{tmp_path}/mine.py:answer is code, which does not travel: use --share there" in done.stderr
    monkeypatch.setitem(sys.modules, "ray", None)
    done = proctor(*words, "--store", tmp_path / "runs.db", "--on", "ray")
    assert "--on ray needs ray: pip install 'proctor-eval[ray]'" in done.stderr
    assert (done.returncode, server.requests) == (1, [])
