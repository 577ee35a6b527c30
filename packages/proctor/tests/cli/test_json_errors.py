"""With `--format json` an error is one JSON object on standard error: kind, location, found, expected, and what to call next."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from proctor.cli.error_report import next_command
from proctor.core import ConfigurationError, InputError, ProctorError
from proctor.runs import Store
from tests.cli.test_wrong_invocations import WRONG
from tests.support.program import proctor

FIELDS = ["kind", "file", "location", "found", "expected", "message", "next", "notes", "exit_code"]


def error(*words: str | Path) -> tuple[int, dict[str, Any]]:
    done = proctor(*words, "--format", "json")
    assert done.stdout == ""
    last = done.stderr.splitlines()[-1]
    found = json.loads(last)["error"]
    assert list(found) == FIELDS
    assert found["exit_code"] == done.returncode
    return done.returncode, found


def test_the_location_and_what_was_found_and_expected(tmp_path: Path) -> None:
    code, found = error("results", "focus", "--store", tmp_path / "none.db")
    assert (code, found["kind"], found["file"]) == (1, "input", str(tmp_path / "none.db"))
    assert found["found"] == "no such file"
    assert found["message"].startswith(f"{tmp_path / 'none.db'}: found no such file, expected ")
    Store(tmp_path / "runs.db").close()
    _, found = error("results", "focus", "--store", tmp_path / "runs.db")
    assert (found["found"], found["expected"]) == (
        "no benchmark 'focus'", "a store with answers: run something first"
    )  # fmt: skip


def test_wrong_usage_leads_to_the_help_or_the_example() -> None:
    code, found = error("results")
    assert (code, found["kind"], found["file"]) == (2, "usage", None)
    assert found["next"] == "proctor results rexsonovqa --store runs.db"
    _, found = error("compare", "focus", "--modle", "m")
    assert found["next"] == "proctor compare --help"
    _, found = error("compare", "focus", "--store", "x.db", "--gate", "bettr")
    assert found["exit_code"] == 2  # a gate that is undecided


def test_the_wrong_command_lines_of_new_users_are_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message is the same as for people, and what is to be called next is a command."""
    monkeypatch.chdir(tmp_path)
    checked, led = 0, 0
    for wrong in WRONG:
        words = wrong.words.split()
        if "'" in wrong.words or '"' in wrong.words or "--format" in words:
            continue
        plain = proctor(*words)
        done = proctor(*words, "--format", "json")
        if 0 in {plain.returncode, done.returncode} or "No such option --format" in done.stderr:
            continue
        found = json.loads(done.stderr.splitlines()[-1])["error"]
        assert list(found) == FIELDS
        assert found["message"] in plain.stderr
        assert found["next"] is None or re.match(r"(proctor|uv pip|pip) ", found["next"]), found
        checked, led = checked + 1, led + bool(found["next"])
    assert checked >= 10
    assert led >= checked // 3


def test_a_hostile_name_stays_within_the_object(tmp_path: Path) -> None:
    name = '"}}\n{"error": null}\x1b[31m'
    _, found = error("results", name, "--store", tmp_path / "none.db")
    assert "\x1b" not in json.dumps(found)


def test_a_bug_is_an_object_after_its_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("a bug")

    Store(tmp_path / "runs.db").close()
    monkeypatch.setattr("proctor.api.results", broken)
    monkeypatch.setattr("proctor.cli.results.named_in", lambda _, name: name)
    done = proctor("results", "focus", "--store", tmp_path / "runs.db", "--format", "json")
    found = json.loads(done.stderr.splitlines()[-1])["error"]
    assert (done.returncode, found["kind"], found["message"]) == (1, "bug", "KeyError: 'a bug'")
    assert "Traceback" in done.stderr


def test_people_read_what_they_read_before(tmp_path: Path) -> None:
    done = proctor("results", "focus", "--store", tmp_path / "none.db")
    assert done.stderr.startswith("proctor: ")
    assert "{" not in done.stderr


@pytest.mark.parametrize(
    ("message", "command"),
    [
        ("--data is missing. Help: proctor run --help", "proctor run --help"),
        ("a judge has to score (proctor score focus --model PROVIDER:MODEL)", "proctor score focus --model PROVIDER:MODEL"),
        ("unknown: proctor list conditions", "proctor list conditions"),
        ("it needs ray: pip install 'proctor-eval[ray]'", "pip install 'proctor-eval[ray]'"),
        ("found 3, expected 4", ""),
    ],
)  # fmt: skip
def test_the_next_command_is_read_from_the_message(message: str, command: str) -> None:
    assert next_command(message) == command


def test_fields_of_errors() -> None:
    assert InputError("a whole sentence.").file == ""
    assert ConfigurationError("x").exit_code == ProctorError("x").exit_code == 1
