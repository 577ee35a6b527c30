"""The commands of "From a laptop to a cluster" that need PostgreSQL run as they stand, on processes of this machine:
the database and the bucket are the tests' own, and `sbatch` is `bash`."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.test_examples import agrees, called
from tests.support.markdown import blocks, commands
from tests.support.object_server import object_server
from tools.docs import ROOT

PAGE = ROOT / "docs" / "tasks" / "several-machines.md"
DATABASE = "postgresql+psycopg://proctor@db/runs"


def test_a_page_says_each_way() -> None:
    lines = [one.line for block in blocks(PAGE) for one in commands(block)]
    for way in ("--workers 2", "--share", "--on store", "proctor worker", "--on slurm", "sbatch", "--on ray"):
        assert any(way in line for line in lines), way


def run(words: list[str]) -> tuple[int, str]:
    """The exit code of a process, and what a terminal would show. A script that it prints is kept as workers.sh."""
    told = subprocess.PIPE if "slurm" in words else subprocess.STDOUT
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=told, text=True, check=False, timeout=600)
    if "slurm" in words:
        Path("workers.sh").write_text(done.stdout)
    return done.returncode, done.stdout


@pytest.mark.pages
def test_the_way_to_a_cluster_is_as_the_page_says(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")
    monkeypatch.setenv("PROCTOR_CACHE", str(tmp_path / "frames"))
    first = commands(next(block for block in blocks(PAGE) if block.info == "console run"))[0]
    assert called(shlex.split(first.line))[0] == 0
    lines = [
        one for block in blocks(PAGE) if block.info == "console" and "psycopg" in block.body for one in commands(block)
    ]
    files = [one for one in Path("simulated").rglob("*") if one.is_file()]
    with object_server({f"hospital/{one}": one.read_bytes() for one in files}) as bucket:
        told = {"ENDPOINT_URL": bucket.url, "ACCESS_KEY_ID": "key", "SECRET_ACCESS_KEY": "secret"}
        for name, value in {**told, "REGION": "us-east-1"}.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        for command in lines:
            words = shlex.split(command.line.replace(DATABASE, postgres_url))
            if words[0] == "export":
                monkeypatch.setenv(*words[1].split("="))
                continue
            output = command.output.replace(DATABASE, postgres_url)
            if words[0] == "sbatch":
                words[0], output = "bash", "simulated: joined classical-vision / black\nAsked 8: 8 answered\n"
            else:
                words[:1] = [sys.executable, "-m", "proctor"]
            code, said = run(words)
            assert code == 0, said
            assert agrees(output, said), f"{command.line}\n{said}"
        assert any(name.startswith("hospital/frames/frames/") for name in bucket.objects)
