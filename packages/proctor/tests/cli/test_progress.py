"""Progress of long work: a line now and then in a log, a bar on a terminal, what Ctrl-C does; and how commands end."""

from __future__ import annotations

import asyncio
import io
import os
import re
import signal
import time
from contextlib import AbstractContextManager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from proctor.cli import STOPPED, output
from proctor.core import InputError, Status, Usage, UsageError
from proctor.judges.dimensions import SearchProgress
from proctor.runs import JudgeTally, PaidJudgements, Tally
from tests.support.program import proctor


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def paid(count: int, cost: float | None) -> PaidJudgements:
    made = PaidJudgements(cast("Any", None))
    made.count, made.usage = count, Usage(requests=count, cost_usd=cost)
    return made


def asked(**more: Any) -> Tally:
    counts = dict.fromkeys(Status, 0) | {Status.ANSWERED: 7, Status.FAILED: 2}
    return Tally(total=20, by_status=counts, started=time.monotonic() - 3, **more)


NOTHING = JudgeTally(total=9, scored=4)
OPEN = JudgeTally(total=9, scored=4, unscored=1, unresolved=2)
TOLD: list[tuple[AbstractContextManager[Any], Any, str]] = [
    (output.show_asking(20), asked(), "asking: 9/20 7 answered, 2 failed, 3.0/s"),
    (output.show_asking(20), asked(usage=Usage(requests=9)), "asking: 9/20 7 answered, 2 failed, 3.0/s, cost unknown"),
    (output.show_asking(20), asked(usage=Usage(requests=9, cost_usd=0.25), unreadable=3, last_reason="HTTP 500 " + "x" * 80),
     "asking: 9/20 7 answered, 2 failed, 3.0/s, $0.2500, 3 unreadable, last failure: HTTP 500 " + "x" * 50 + "…"),
    (output.show_judging(9, paid(0, None)), NOTHING, "judging: 4/9 4 scored, 0 without a verdict"),
    (output.show_judging(9, paid(5, 0.5)), OPEN,
     "judging: 7/9 4 scored, 1 without a verdict, 2 unresolved, 5 new judgements, $0.5000"),
    (output.show_trials(6, paid(0, None)), SearchProgress(6, 4), "trying: 4/6 "),
    (output.show_trials(6, paid(3, None)), SearchProgress(6, 4, 1),
     "trying: 4/6 1 with a score missing, 3 new judgements, cost unknown"),
]  # fmt: skip


@pytest.mark.parametrize(("shown", "told", "line"), TOLD)
def test_a_log_gets_a_line_every_ten_seconds(
    shown: AbstractContextManager[Any], told: Any, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, moment = io.StringIO(), [100.0]
    monkeypatch.setattr("sys.stderr", log)
    monkeypatch.setattr(output, "time", SimpleNamespace(monotonic=lambda: moment[0]))
    with shown as update:
        for moment[0], lines in ((100.0, 0), (110.0, 0), (110.1, 1), (120.0, 1), (120.2, 2)):
            update(told)
            assert [re.sub(r"\d+\.\d/s", "3.0/s", one) for one in log.getvalue().splitlines()] == [line] * lines


def test_a_terminal_gets_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr("sys.stderr", shown)
    with output.show_judging(9, paid(0, None)) as update:
        update(OPEN)
    last = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.getvalue()).splitlines()[-1].strip()
    bar = re.fullmatch(r"judging (\S+) 7/9 4 scored, 1 without a verdict, 2 unresolved +-:--:--", last)
    assert bar is not None, last
    assert len(bar[1]) == 24


def test_a_bar_shows_brackets_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr("sys.stderr", shown)
    with output.show_asking(20) as update:
        update(asked(last_reason="no [bold] key [/x]"))
    assert "last failure: no [bold] key [/x]" in shown.getvalue()


def test_the_first_ctrl_c_lets_come_in_what_is_under_way_and_the_second_stops(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def pressed(times: int) -> bool:
        async with asyncio.timeout(600):
            with output.stopping() as stop:
                for _ in range(times):
                    os.kill(os.getpid(), signal.SIGINT)
                    await asyncio.sleep(0.01)
                return stop.is_set()

    assert asyncio.run(pressed(0)) is False
    assert asyncio.run(pressed(1)) is True
    assert capsys.readouterr().err == "\nstopping: waiting for the answers under way (again to stop at once)\n"
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(pressed(2))


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        (KeyboardInterrupt(), 130, f"{STOPPED}\n"),
        (asyncio.CancelledError(), 130, f"{STOPPED}\n"),
        (BrokenPipeError(), 1, ""),
        (InputError("a.csv", found="nothing", expected="a table"), 1, "proctor: a.csv: found nothing, expected a table\n"),
        (UsageError("Give --name NAME."), 2, "proctor: Give --name NAME.\n"),
    ],
)  # fmt: skip
def test_how_a_command_ends(raised: BaseException, code: int, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def program(*_: Any, **__: Any) -> None:
        raise raised

    monkeypatch.setattr("proctor.cli.main._program", lambda _: program)
    ended = proctor("list")
    assert (ended.returncode, ended.stdout, ended.stderr) == (code, "", said)
