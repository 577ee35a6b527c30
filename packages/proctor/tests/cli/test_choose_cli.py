"""`proctor choose`: several models on a validation part, the evidence in a folder."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import proctor as python
from tests.support.faulty_server import Fault, FaultyServer, Request
from tests.support.program import proctor
from tests.support.text_folder import answer_tray, item_of, write_text_folder

ITEMS = 60
MODELS = ("--model", "good", "--model", "poor")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_text_folder(tmp_path / "data", ITEMS)


def said(request: Request) -> str:
    """The good model is always right, the poor one for half of the trays."""
    right = request.model == "good" or int(item_of(request)[1:]) % 4 < 2
    return answer_tray(request) if right else "Answer: 99"


def command(folder: Path, out: Path, server: FaultyServer, *more: str) -> list[str | Path]:
    return [
        *("choose", "simulated", "--data", folder, "--out", out, "--condition", "text-only", "--base-url", server.url),
        *more,
    ]


def test_the_best_is_chosen_on_a_part_with_its_evidence_and_nothing_is_asked_twice(
    folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "new" / "baseline"
    with FaultyServer(said) as server:
        first = proctor(*command(folder, out, server, *MODELS, "--share", "0.5", "--draws", "200"))
        asked = server.count
        again = proctor(*command(folder, out, server, *MODELS, "--share", "0.5", "--draws", "200"))
        assert server.count == asked
    assert first.returncode == 0, first.stderr
    assert first.stdout == again.stdout
    shown = [line for line in first.stdout.splitlines() if line.split()[:1] == ["poor"]]
    assert re.search(r" \d+\.\d % +\d+\.\d % to \d+\.\d % ", shown[0])
    assert first.stdout.splitlines()[-1] == f"Chosen: good; the evidence is in {out / 'choice.json'}"
    told = json.loads((out / "choice.json").read_text())
    part = told["part"]["items"]
    assert (told["chosen"], told["part"]["share"], told["items"], asked) == ("good", 0.5, len(part), 2 * len(part))
    assert 20 <= len(part) <= 40
    assert len({int(item[1:]) % 20 for item in part}) == len(part) // 3, "a video lies on both sides"
    best, other = told["candidates"]
    right = {kind: [int(item[1:]) % 4 < 2 for item in part if int(item[1:]) % 2 == kind] for kind in (0, 1)}
    mean = sum(sum(some) / len(some) for some in right.values()) / 2
    assert (best["mean"], other["mean"]) == (1.0, pytest.approx(mean))
    assert f"Lead over poor: {100 * (1 - mean):.1f} %" in first.stderr
    assert best["settings"]["system"]["model"] == "good"
    assert other["ci_low"] < mean < other["ci_high"]


def test_python_chooses_as_the_shell_does_and_tells_how_far_it_is(folder: Path, tmp_path: Path) -> None:
    tallies: list[Any] = []
    with FaultyServer(said) as server:
        made = python.choose_model(
            "simulated", tmp_path / "a", data=folder, model=["good", "poor"], condition="text-only", draws=200,
            base_url=server.url, on_change=tallies.append,
        )  # fmt: skip
        asked = server.count
        done = proctor(*command(folder, tmp_path / "b", server, *MODELS, "--draws", "200"))
    assert done.returncode == 0, done.stderr
    assert made.data.candidates[0].name == "good"
    assert tallies[-1].done == asked == 2 * ITEMS
    first, second = (json.loads((tmp_path / name / "choice.json").read_text()) for name in ("a", "b"))
    assert [one["mean"] for one in first["candidates"]] == [one["mean"] for one in second["candidates"]]


def test_a_model_does_not_lose_by_a_servers_fault(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "baseline"
    with FaultyServer(said, script=[Fault.SERVER_ERROR]) as server:
        stopped = proctor(*command(folder, out, server, *MODELS, "--retries", "0", "--concurrency", "1"))
        assert stopped.returncode == 1
        expected = (
            "found answers: 1 failed, 0 not asked for, expected all answers of all models: run the same command again"
        )
        assert expected in stopped.stderr
        assert not (out / "choice.json").exists()
        again = proctor(*command(folder, out, server, *MODELS, "--draws", "200"))
    assert again.returncode == 0, again.stderr
    assert "Chosen: good" in again.stdout


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--model", "good"), "good: there is nothing to choose from. Give two models or more"),
        ((*MODELS, "--share", "1"), "share: found 1, expected a share between 0 and 1"),
        ((*MODELS, "--share", "0"), "share: found 0, expected a share between 0 and 1"),
    ],
)
def test_what_is_no_choice_is_refused_before_anything_is_asked(
    folder: Path, tmp_path: Path, more: tuple[str, ...], message: str
) -> None:
    with FaultyServer(said) as server:
        refused = proctor(*command(folder, tmp_path / "baseline", server, *more))
        assert server.count == 0
    assert refused.returncode in {1, 2}
    assert message in refused.stderr
