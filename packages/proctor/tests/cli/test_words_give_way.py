"""Nothing is said twice, one thing is not called several, and where there is no room words are shortened, never numbers."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console
from rich.progress import Progress

from proctor.cli.output import bar_columns
from proctor.core import Answer, Item, Reference, Score
from proctor.core.formats import BinaryFormat
from proctor.interchange.recorded import RecordedAnswer, _left_out
from proctor.runs import Store
from proctor.tasks.rexsonovqa.native import _note
from tests.support.lamp_benchmark import lamps
from tests.support.program import proctor

TEXT = "Based on the frames, the probe\nis moved towards the hilum."


@pytest.fixture
def answered(tmp_path: Path) -> Path:
    store, benchmark = Store(tmp_path / "s.db"), lamps(free_text=True)
    store.add_benchmark(benchmark)
    run = store.start_run(benchmark.name, "m", "video", {"seed": 1})
    free = Answer(item_id="room-1/why", text=TEXT, parsed=TEXT)
    yes = Answer(item_id="room-1/q3", text="Yes, it is.", parsed=True)
    store.write(run, [(free, []), (yes, [Score(item_id="room-1/q3", metric="accuracy", value=0.0)])])
    store.close()
    return tmp_path / "s.db"


def test_free_text_is_printed_once(answered: Path) -> None:
    shown = proctor("show", "lamps", "room-1/why", "--store", answered)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.count("Based on the frames") == 1
    assert "m / video: answered" in shown.stdout
    assert "  is moved towards the hilum." in shown.stdout.splitlines()


def test_yes_and_no_are_called_what_was_asked_for(answered: Path) -> None:
    shown = proctor("show", "lamps", "room-1/q3", "--store", answered)
    assert "Reference: no" in shown.stdout
    assert "m / video: yes" in shown.stdout


@pytest.mark.parametrize(
    ("ids", "counted", "said"),
    [
        (["a"], {"a"}, "1 call was rejected: a"),
        (["a", "b"], {"a", "b"}, "2 calls were rejected: a, b"),
        (["a", "b"], {"a"}, "1 call was rejected: a; 1 more in items that do not count"),
        (["a", "b"], set(), "2 calls were rejected, in items that do not count"),
        (["a"], set(), "1 call was rejected, in items that do not count"),
    ],
)
def test_one_call_was_and_two_were(ids: list[str], counted: set[str], said: str) -> None:
    assert _note("call was rejected", "calls were rejected", ids, counted) == said


def test_a_record_that_is_left_out_names_its_row_first() -> None:
    items = [Item(id="1", group="g", question="?", answer=BinaryFormat(), reference=Reference(answer=True))]
    alone = [RecordedAnswer("row 3", "77")]
    assert _left_out(alone, items) == ["Row 3 left out: no question has the id '77' (the first has '1')."]
    two = [*alone, RecordedAnswer("row 4", "78")]
    assert _left_out(two, items) == ["2 records left out, since no question has the id: row 3 ('77'), row 4 ('78')."]


@pytest.mark.parametrize("width", [60, 80, 160])
def test_a_bar_shortens_its_words_and_keeps_its_numbers(width: int) -> None:
    out = io.StringIO()
    screen = Console(file=out, width=width, force_terminal=True, color_system=None, legacy_windows=False)
    progress = Progress(*bar_columns(width), console=screen, expand=True, auto_refresh=False)
    words = "1016 answered, 4 failed, 2.3/s, $0.0021, last failure: connection reset by the server"
    progress.add_task("asking", total=12_345, completed=1020, text=words)
    screen.print(progress.get_renderable())
    (line,) = out.getvalue().splitlines()
    assert len(line) <= width
    assert "1020/12345" in line
    assert "1016 answered" in line
    assert line.rstrip().endswith("--:--")  # the time that is left, in full
    assert ("…" in line) is (width < 160)
