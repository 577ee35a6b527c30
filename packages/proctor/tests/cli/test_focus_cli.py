"""FOCUS on the command line."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tests.support.program import proctor


@pytest.fixture(scope="module")
def toolkit(data: Path) -> Path:
    return data / "focus-toolkit"


@pytest.fixture(scope="module")
def store(toolkit: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("focus") / "runs.db"
    done = proctor(
        *("import", "focus", toolkit / "responses.json", "--data", toolkit),
        *("--track", "procedure", "--name", "toolkit", "--store", path),
    )
    assert done.returncode == 0, done.stderr
    assert "54 of 1200 questions have no answer and are wrong" in done.stderr
    return path


def test_the_official_summary_is_the_toolkit_s(store: Path, toolkit: Path) -> None:
    done = proctor(
        *("results", "focus", "--store", store, "--protocol", "official", "--format", "json"),
        *("--system", "toolkit", "--seed", "42", "--draws", "2000"),
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    with (toolkit / "expected_summary.csv").open(encoding="utf-8", newline="") as lines:
        expected = list(csv.DictReader(lines))
    assert len(found) == len(expected)
    for one, row in zip(found, expected, strict=True):
        for mine, theirs in (("value", "accuracy"), ("ci_low", "ci_low"), ("ci_high", "ci_high")):
            assert one[mine] == (pytest.approx(float(row[theirs]), abs=1e-9) if row[theirs] else None)


def test_the_mended_summary_says_what_is_mended(store: Path) -> None:
    done = proctor("results", "focus", "--store", store, "--protocol", "corrected", "--draws", "200")
    assert done.returncode == 0, done.stderr
    assert "pre_evaluation" in done.stdout
    assert "a bucket without questions leaves it empty" in done.stderr


def test_a_run_becomes_a_submission_that_lint_and_import_read(store: Path, toolkit: Path, tmp_path: Path) -> None:
    """What was imported comes out again: 1,146 answers, word for word, their latencies in one of the two files."""
    given = {one["qID"]: one for one in json.loads((toolkit / "responses.json").read_text(encoding="utf-8"))}
    one = ("export", "focus", "--store", store, "--system", "toolkit")
    for form in ("answer", "responses"):
        out = tmp_path / f"{form}.json"
        done = proctor(*one, "--format", form, "--out", out)
        assert (done.returncode, done.stdout) == (0, f"1146 answers in {out}\n")
    answer, responses = (
        {one["qID"]: one for one in json.loads((tmp_path / f"{form}.json").read_text(encoding="utf-8"))}
        for form in ("answer", "responses")
    )
    assert responses == {name: given[name] for name in responses} == given
    assert answer == {name: {"qID": name, "content": given[name]["content"]} for name in given}
    lint = proctor("check", "focus", tmp_path / "responses.json", "--data", toolkit, "--format", "json")
    assert json.loads(lint.stdout)["by_rule"] == {"format": 339, "late": 35, "missing": 54}
    done = proctor("export", "focus", "--store", store, "--format", "answer", "--out", tmp_path / "a.json")
    assert done.returncode == 1
    assert "majority / text-only" in done.stderr
    assert "One run is exported, and this is not one" in done.stderr
    done = proctor(*one, "--format", "xml", "--out", tmp_path / "a.xml")
    assert done.returncode == 2


def test_wrong_words_are_named(store: Path, toolkit: Path) -> None:
    done = proctor("results", "focus", "--store", store, "--protocol", "official-ish")
    assert (done.returncode, done.stderr) == (
        1,
        "proctor: --protocol 'official-ish' does not fit: give official or corrected.\n",
    )
    done = proctor(
        *("import", "rexsonovqa", toolkit, "--data", toolkit, "--name", "x", "--track", "frame"), *("--store", store)
    )
    assert (done.returncode, done.stderr) == (
        1,
        "proctor: --track: found 'frame', expected no track, rexsonovqa has none\n",
    )


def test_a_run_knows_its_track(toolkit: Path, tmp_path: Path) -> None:
    """Whole procedures are no segments; a minute from the start is both a segment and a procedure."""
    options = ("--system", "random", "--condition", "text-only", "--limit", "3", "--store", tmp_path / "runs.db")
    done = proctor("run", "focus", "--data", toolkit, *options, "--track", "segment")
    assert done.returncode == 1
    assert "found 3761 s after start_time, expected at most 300 s (track segment)" in done.stderr
    short = tmp_path / "short"
    short.mkdir()
    requests = [one | {"end_time": 60.0} for one in json.loads((toolkit / "requests.json").read_text())]
    (short / "requests.json").write_text(json.dumps(requests))
    (short / "references.json").write_bytes((toolkit / "references.json").read_bytes())
    done = proctor("run", "focus", "--data", short, *options, "--track", "segment")
    assert done.returncode == 0, done.stderr
    again = proctor("run", "focus", "--data", short, *options, "--track", "procedure")
    assert again.returncode == 1
    assert "found answers to items with fingerprint" in again.stderr
