"""`--out` names a file of a kind that is written: another ending is refused, whether or not the file is there."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest
from openpyxl import load_workbook

import proctor
from proctor.core import InputError, columns
from proctor.core.table import Table
from proctor.reports import latex
from proctor.reports.figures import write_picture
from proctor.reports.figures.canvas import plain_axis
from proctor.reports.figures.rows import ChartSeries, Dot, Panel, Stack, draw_rows
from proctor.results.export import write_rows
from tests.support.program import proctor as shell
from tests.support.report_store import a_store

PAGE = "found a name that ends in {ending}, expected one that ends in .html or .htm"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kinds")
    a_store(folder).close()
    return folder / "toy.db"


def test_a_report_is_no_pdf(store: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.pdf"
    done = shell("report", "toy", "--store", store, "--out", out)
    assert (done.returncode, out.exists()) == (1, False)
    assert done.stderr == f"proctor: {out}: {PAGE.format(ending='.pdf')}\n"


def test_nor_is_any_other_page(store: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.docx"
    (tmp_path / "q.csv").write_text("question,answer,A,B\nWhich?,A,on,off\n")
    for command in (
        ("check", tmp_path / "q.csv", "--out", out),
        ("audit", "toy", "--store", store, "--report", out),
        ("media", "duplicates", tmp_path, tmp_path, "--out", out),
    ):
        done = shell(*command)
        assert PAGE.format(ending=".docx") in done.stderr, command
        assert not out.exists()


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet", "xlsx", "sums", "judgements", "unresolved"])
def test_an_export_has_the_ending_of_its_format(store: Path, tmp_path: Path, form: str) -> None:
    out = tmp_path / "answers.docx"
    with pytest.raises(InputError, match=r"found a name that ends in \.docx, expected one that ends in "):
        proctor.export(store, out, "toy", format=form, scorer="the-judge")
    assert not out.exists()


def test_a_fit_and_a_comparison_of_judges_are_json(store: Path, tmp_path: Path) -> None:
    out = tmp_path / "fit.txt"
    fit = ("fit", "--method", "calibration", "--scorer", "the-judge")
    for command in (("compare",), fit):
        done = shell("judge", command[0], "toy", *command[1:], "--store", store, "--out", out)
        assert "found a name that ends in .txt, expected one that ends in .json" in done.stderr, command


def test_an_ending_that_is_no_format_names_those_that_are(store: Path, tmp_path: Path) -> None:
    for name, found in (("a.docx", "a name that ends in .docx"), ("answers", "a name without an ending")):
        with pytest.raises(
            InputError, match=re.escape(f"{name}: found {found}, expected one that ends in .jsonl, .csv")
        ):
            proctor.export(store, tmp_path / name, "toy")


def test_a_workbook_has_the_rows_of_the_frame(store: Path, tmp_path: Path) -> None:
    done = shell("export", "toy", "--store", store, "--out", tmp_path / "a.xlsx")
    assert done.returncode == 0, done.stderr
    heads, *rows = load_workbook(tmp_path / "a.xlsx", read_only=True)["answers"].iter_rows(values_only=True)
    frame = proctor.export(store, benchmark="toy")
    assert list(heads) == list(frame.columns)
    assert len(rows) == len(frame) == int(done.stdout.split()[0].replace("\u202f", ""))
    index = list(heads).index("value")
    assert [row[index] for row in rows] == [None if math.isnan(value) else value for value in frame["value"]]


def test_what_looks_like_a_formula_stays_a_text_and_a_long_text_is_cut(tmp_path: Path) -> None:
    texts = ["=1+1", "+cmd|' /C calc'!A0", "a\x00b", "x" * 40_000, "true"]
    rows: Any = ({"text": text, "value": 0.5} for text in texts)
    assert write_rows(tmp_path / "a.xlsx", "xlsx", ["text", "value"], rows) == len(texts)
    cells = [row[0] for row in load_workbook(tmp_path / "a.xlsx")["answers"].iter_rows(min_row=2)]
    assert {cell.data_type for cell in cells} == {"s"}
    assert [cell.value for cell in cells[:3]] == ["=1+1", texts[1], "a\ufffdb"]
    assert (len(str(cells[3].value)), str(cells[3].value)[-1]) == (32_767, "…")


def test_a_table_for_a_paper(store: Path) -> None:
    shown = shell("results", "toy", "--store", store, "--draws", "100", "--format", "latex")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.count(r"\begin{table}") == shown.stdout.count(r"\end{table}") >= 2
    assert r"looker & video & " in shown.stdout
    assert r" \% " in shown.stdout
    assert shown.stdout == proctor.results(store, "toy", draws=100).to_latex()
    for command in (("compare",), ("rank", "--metric", "accuracy"), ("rank",)):
        done = shell(command[0], "toy", "--store", store, "--draws", "100", *command[1:], "--format", "latex")
        assert (done.returncode, r"\toprule" in done.stdout) == (0, True), done.stderr
    refused = shell("results", "toy", "--store", store, "--hash", "--format", "latex")
    assert (refused.returncode, "--format latex" in refused.stderr) == (2, True)


def test_names_from_outside_are_escaped() -> None:
    table = Table(
        "x", columns("System", ">Score"), ((r"\input{/etc/passwd}", "50.0 %"), ("a_b & c$", "−1")), title="T_1"
    )
    text = latex(table)
    assert r"\textbackslash{}input\{/etc/passwd\} & 50.0 \%" in text
    assert r"a\_b \& c\$ & $-$1" in text
    assert r"\caption{T\_1}" in text


def test_a_name_is_no_argument_of_the_line_before_it() -> None:
    r"""`\\` and `\midrule` take what follows in brackets as a length, and `\\` takes an asterisk."""
    lines = latex(Table("x", columns("System"), (("[a]",), ("*b",)), title="T")).splitlines()
    assert [line for line in lines if line[:1] in {"[", "*"}] == []
    assert lines[6:8] == [r"{[}a{]} \\", r"{*}b \\"]


@pytest.mark.parametrize("ending", ["png", "pdf", "svg"])
def test_a_figure_in_every_kind(store: Path, tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"f.{ending}"
    done = shell("results", "toy", "--store", store, "--draws", "100", "--figure", file)
    assert done.returncode == 0, done.stderr
    first = file.read_bytes()
    assert first.startswith({"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}[ending])
    again = proctor.results(store, "toy", draws=100).write_figure(file)
    assert again.read_bytes() == first  # equal figures, equal bytes


def test_a_figure_of_a_comparison_and_of_ranks(store: Path, tmp_path: Path) -> None:
    for name, *command in (("c", "compare"), ("r", "rank"), ("m", "rank", "--metric", "accuracy")):
        file = tmp_path / f"{name}.pdf"
        done = shell(command[0], "toy", "--store", store, "--draws", "100", *command[1:], "--figure", file)
        assert (done.returncode, file.read_bytes()[:4]) == (0, b"%PDF"), done.stderr
    refused = shell("compare", "toy", "--store", store, "--draws", "100", "--figure", tmp_path / "c.jpg")
    assert "found a name that ends in .jpg, expected one that ends in .png or .pdf or .svg" in refused.stderr


def test_a_drawing_of_a_report_is_drawn_the_same(tmp_path: Path) -> None:
    """All shapes of our drawings: texts, lines, rectangles, circles, and paths of markers."""
    axis = plain_axis(0.0, 1.0)
    scores = [[Dot(0.5, 0.4, 0.6), Dot(0.2, 0.1, 0.3)], [Dot(0.9), Dot()]]
    series = [ChartSeries("video", 0), ChartSeries("$text-only$ & <more>", 1)]
    drawn = draw_rows("k", "A title", ["one", "two"], [Panel("", scores, (0.25, "chance"))], axis, series=series)
    stacked = draw_rows("s", "T", ["one"], [Panel("", [Stack([3, 1], shares=True)])], axis, series=series)
    for number, one in enumerate((drawn, stacked)):
        sizes = {
            form: write_picture(one, tmp_path / f"{number}.{form}").stat().st_size for form in ("png", "pdf", "svg")
        }
        assert min(sizes.values()) > 1000
    assert write_picture(drawn, tmp_path / "a.pdf").read_bytes() == (tmp_path / "0.pdf").read_bytes()
