"""Child processes within limits: what hangs, dies or fills the memory is ended, and is one error."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor.core import ChildEndedError, ChildProcess

PROGRAM = """
import json, sys, time
from proctor.core import limit_resources
limit_resources(seconds=1, memory=2**30)
for line in sys.stdin:
    if line == "sleep\\n":
        time.sleep(3600)
    if line == "spin\\n":
        while True:
            pass
    if line == "fill\\n":
        try:
            bytes(2**31)
        except MemoryError:
            line = "full\\n"
    sys.stdout.buffer.write(json.dumps({"heard": line.strip()}).encode() + b"\\n" + b"abc")
    sys.stdout.buffer.flush()
"""


@pytest.fixture
def child(tmp_path: Path) -> ChildProcess:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    return ChildProcess(str(program))


def test_requests_and_replies(child: ChildProcess) -> None:
    for word in ("one", "two"):
        assert child.ask(word.encode(), b"\n", patience_s=60) == {"heard": word}
        assert child.read(3) == b"abc"
    assert child.is_running


def test_memory_is_limited(child: ChildProcess) -> None:
    assert child.ask(b"fill\n", patience_s=60) == {"heard": "full"}


@pytest.mark.parametrize(("word", "patience_s"), [("sleep", 0.5), ("spin", 60)])
def test_no_reply_ends_it(child: ChildProcess, word: str, patience_s: float) -> None:
    with pytest.raises(ChildEndedError):
        child.ask(word.encode() + b"\n", patience_s=patience_s)
    assert not child.is_running
    with pytest.raises(ChildEndedError):
        child.ask(b"one\n", patience_s=60)


def test_nothing_comes_from_an_ended_process(child: ChildProcess) -> None:
    child.ask(b"one\n", patience_s=60)
    child.end()
    with pytest.raises(ChildEndedError):
        child.read(3)
    with pytest.raises(ChildEndedError):
        child.ask(b"two\n", patience_s=60)
