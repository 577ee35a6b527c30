"""One table, four forms: what the terminal, the page, CSV and JSON show of it is the same."""

from __future__ import annotations

import io
import json
import re
from html import unescape

import pytest
from rich.console import Console

from proctor.core import ACCURACY, Cell, Column, Span, Table, difference, number, p_value, percent
from proctor.reports.blocks import Folded, Prose, Section, Story, Units, records_table, span_of
from proctor.reports.content import Shown
from proctor.reports.renderers import render_page, show_block, show_section

HOSTILE = "team [bold]a[/bold] <b>\x1b[31m\u202e & co"
TABLE = Table(
    "Each score with its interval.",
    (
        Column("System", name="system"),
        Column("Score", numeric=True, name="value"),
        Column("95 % CI", numeric=True),
        Column("0 to 100 %", drawn=True),
        *(Column(f"Answered under condition {k}", numeric=True, name=f"answered_{k}") for k in range(9)),
    ),
    tuple(
        (
            Cell(name, badge="baseline" if k else ""),
            Cell(percent(0.1234 * k), strong=True, raw=0.1234 * k),
            f"{k}1.5 to {k}9.5",
            Cell("", span=Span(0.1, 0.2, 0.3)),
            *(1000 * k + n for n in range(9)),
        )
        for k, name in enumerate([HOSTILE, "a-system-with-a-long-name-indeed"])
    ),
    title="Scores",
)


def printed(width: int) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=True, color_system=None, emoji=False)
    show_block(console, TABLE)
    return re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200, 400])
def test_the_terminal_loses_no_number(width: int) -> None:
    said = printed(width)
    assert max(map(len, said.splitlines())) <= width
    for row in TABLE.texts:
        for cell in [row[1], row[2], *row[4:]]:
            assert re.search(rf"(?<![\w.]){re.escape(cell)}(?![\w.])", said), cell
    assert "0 to 100 %" not in said  # a drawing has no text
    assert "\u202e" not in said
    assert "[31m" not in said or "\x1b" not in said
    assert said.startswith("Scores\n")


def test_the_page_has_the_same_cells() -> None:
    section = Section("scores", "Scores", "All.", (TABLE,), opened=True)
    last = Section("last", "Last", "")
    page = render_page(
        story=Story("Nothing.", ()),
        sections=[section],
        last=last,
        data=None,
        title="T",
        simulated=False,
        withheld=[],
        browsing="",
        shown=Shown(),
        left_out=[],
        version="0",
    )
    text = unescape(re.sub(r"<[^>]+>", " ", page.partition("<tbody>")[2].partition("</tbody>")[0]))
    for row in TABLE.texts:
        for cell in row[1:3] + row[4:]:
            assert cell in text
    assert "<b>" not in page.partition("<tbody>")[2]
    assert "team [bold]a[/bold] <b>\ufffd[31m\ufffd & co" in text


def test_programs_get_raw_values_under_the_columns_names() -> None:
    first, second = json.loads(json.dumps(TABLE.records))
    assert (first["system"], second["value"]) == (HOSTILE, pytest.approx(0.1234))
    assert first["answered_8"] == 8
    assert second["95 % CI"] == "11.5 to 19.5"


def test_records_are_shown_by_the_one_formatter_and_kept_as_they_are() -> None:
    rows = [{"name": "a", "share_of": 1 / 3, "n": 1300, "known": True, "none": None, "p": 0.0312}]
    table = records_table("Shares", rows)
    assert [column.numeric for column in table.columns] == [False, True, True, False, False, True]
    assert [column.label for column in table.columns] == ["Name", "Share of", "Items", "Known", "None", "p"]
    assert table.texts == [["a", "0.333", "1\u202f300", "yes", "–", "0.031"]]
    assert table.records == rows
    assert records_table("Nothing", []).columns == ()


def test_records_of_a_metric_have_its_unit_and_one_column_for_an_interval() -> None:
    row = {"value": 0.25, "ci_low": 0.1, "ci_high": 0.4, "difference": -0.05, "sd": 0.02, "share": 0.5, "df": 3.5}
    table = records_table("Scores", [row], Units(ACCURACY))
    assert [column.label for column in table.columns][:3] == ["Score", "95 % CI", "Difference"]
    assert table.texts == [["25.0 %", "10.0 to 40.0", "−5.0 pts", "2.0 pts", "50.0 %", "3.500"]]
    assert records_table("Gaps", [row], Units(ACCURACY, signed=("value",))).texts[0][0] == "+25.0 pts"
    few = row | {"p": 0.25, "p_holm": 0.5, "decides": False, "groups": 3}
    assert records_table("Pairs", [few]).texts[0][-4:-2] == ["3 groups can't decide", "–"]


def test_sections_print_their_blocks_in_order() -> None:
    out = io.StringIO()
    console = Console(file=out, width=80, color_system=None)
    small = Table("Small.", (Column("a"), Column("b", numeric=True)), (("x", 1234567),), ("all", 2))
    blocks = ("Head", Prose("Said.", ("one", "two")), Folded("More", (small,)))
    show_section(console, Section("k", "Title", "Lead.", blocks))
    lines = [line.rstrip() for line in out.getvalue().splitlines() if line.strip()]
    assert lines[:6] == ["Title", "Head", "Said.", "- one", "- two", "More"]
    assert lines[6:] == ["Small.", "a            b", "x    1\u202f234\u202f567", "all          2"]


def test_a_drawn_interval_is_in_shares_of_its_axis() -> None:
    """On an axis from 20 to 60: 30 lies at a quarter, 40 in the middle; what lies beyond ends at the edge."""
    assert span_of((20.0, 60.0), 30.0, 40.0, 70.0, 20.0) == Span(0.25, 0.5, 1.0, 0.0)
    assert span_of((-1.0, 1.0), None, 0.5, None, None) == Span(None, 0.75, None)
    assert span_of((20.0, 60.0), 30.0, None, 50.0, 40.0) is None


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (percent(0.6626), "66.3 %"),
        (percent(None), "–"),
        (number(-0.00001), "0.000"),
        (difference(ACCURACY, -0.051), "−5.1 pts"),
        (p_value(0.0004), "< 0.001"),
        (p_value(0.05), "0.050"),
    ],
)
def test_numbers_in_words(shown: str, expected: str) -> None:
    assert shown == expected
