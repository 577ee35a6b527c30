"""No key reaches a store, a report or an export, wherever a server repeats it and in whatever form."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from proctor.core import Judgement
from proctor.runs import Store
from tests.core.test_secrets import forms
from tests.support.program import proctor
from tests.support.raw_server import raw_server
from tests.support.text_folder import write_text_folder

KEY = "sk-proj-7hQ2mZ9xLw41RtYv-Kb83NcDe6"
FORMS = [*forms(KEY).values(), KEY[3:], KEY[:-4], KEY[6:-5]]


def leaks(content: bytes) -> list[str]:
    """The forms of the key, and pieces of twelve of its letters, that stand in a file, seen without scores and case."""
    plain = re.sub(rb"[\W_]+", b"", content).lower()
    short = "".join(filter(str.isalnum, KEY)).lower()
    wanted = [short[start : start + 12] for start in range(len(short) - 11)]
    wanted += [
        KEY.encode().hex(),
        b64encode(KEY.encode()).decode()[:16].lower(),
        b64encode(b"user:" + KEY.encode()).decode()[8:24].lower(),
    ]
    return [piece for piece in wanted if piece.encode() in plain]


def test_no_form_of_a_key_is_stored_reported_or_exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert leaks(KEY.encode())
    assert leaks(" ".join(KEY).encode())
    data, store = write_text_folder(tmp_path / "q", len(FORMS)), tmp_path / "runs.db"

    def reply(asked: dict[str, Any]) -> bytes:
        number = int(json.dumps(asked["messages"]).partition("in tray ")[2].partition("?")[0])
        said = FORMS[number]
        choice = {
            "message": {"content": f"Answer: {(7 * number + 3) % 11}\nYour header was {said}"},
            "finish_reason": ("stop", f"nap {said}")[number % 5 == 4],
        }
        return json.dumps({"model": f"m {KEY}", "choices": [choice]}).encode()  # one model answers a run

    with raw_server(reply) as url:
        words = ("--model", "m", "--base-url", url, "--store", store, "--condition", "text-only", "--retries", "0")
        done = proctor("run", "simulated", "--data", data, *words)
    assert done.returncode == 3, done.stderr
    exported = []
    for form in ("csv", "jsonl"):
        exported.append(tmp_path / f"rows.{form}")
        told = proctor(
            "export", "simulated", "--system", "m", "--format", form, "--out", exported[-1], "--store", store
        )
        assert told.returncode == 0, told.stderr
    report = tmp_path / "report.html"
    told = proctor("report", "simulated", "--store", store, "--out", report)
    assert told.returncode == 0, told.stderr
    rows = [json.loads(line) for line in exported[1].read_text().splitlines()]
    assert sum("***" in row["text"] for row in rows) == sum(row["status"] == "answered" for row in rows) > 30
    files = [*tmp_path.glob("runs.db*"), *exported, report]
    for file in files:
        assert leaks(file.read_bytes()) == [], file
    assert leaks((done.stdout + done.stderr).encode()) == []


def test_judgements_and_imported_answers_are_stored_without_it_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    path = tmp_path / "runs.db"
    store = Store(path)
    for number, said in enumerate(FORMS):
        reply: dict[str, Any] = {"score": 2, "reason": f"as {said} says", said: [said]}
        store.put(Judgement(key=f"{number:064d}", judge="j", item_id="q", reply=reply, flags=(f"odd {said}",)))
    kept = store.get("0" * 64)
    store.close()
    assert kept is not None
    assert (kept.reply, kept.flags) == ({"score": 2, "reason": "as *** says", "***": ["***"]}, ("odd ***",))
    data = write_text_folder(tmp_path / "q", len(FORMS))
    rows = [{"id": f"q{number:03d}", "answer": f"3, by {said}"} for number, said in enumerate(FORMS)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ("--data", data, "--name", "m", "--condition", "text-only", "--store", path)
    done = proctor("import", "simulated", tmp_path / "a.jsonl", "--from", "table", *words)
    assert done.returncode == 0, done.stderr
    for file in tmp_path.glob("runs.db*"):
        assert leaks(file.read_bytes()) == [], file
