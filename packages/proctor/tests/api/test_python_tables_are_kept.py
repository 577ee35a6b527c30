"""What Python's tables show, to the letter: their text, their page in a notebook, their columns, and every part of their
figures, of one made-up store and of one audit.

The numbers are held elsewhere (`tests/runs/*_recomputed.py`). After a change that is meant, look at the difference:
`PROCTOR_UPDATE_SNAPSHOTS=1 pytest tests/api/test_python_tables_are_kept.py; git diff tests/api/snapshots`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

import proctor
from tests.reports.test_sections_are_kept import audited
from tests.support.fuzzed_store import NAME, fuzzed
from tests.support.snapshot import assert_frozen

HERE = Path(__file__).parent / "snapshots"


def of_figure(figure: Figure) -> Iterator[str]:
    yield f"figure {' × '.join(f'{side:.2f}' for side in figure.get_size_inches())} in"
    for axes in figure.axes:
        yield f"  {axes.get_title(loc='left')!r} | {axes.get_xlabel()} | {axes.get_ylabel()}"
        yield f"  x {rounded(axes.get_xlim())} y {rounded(axes.get_ylim())} below {axes.get_axisbelow()}"
        yield f"  {'; '.join(one.get_text() for one in axes.get_yticklabels())}"
        for line in axes.lines:
            look = f"{line.get_color()} {line.get_linestyle()} {line.get_marker()} {line.get_linewidth():g}"
            yield f"  line {line.get_label()!r} {look}: {rounded(line.get_xdata())} at {rounded(line.get_ydata())}"
        for text in axes.texts:
            yield f"  text {text.get_text()!r} at {rounded(text.get_position())}"
        for line in axes.get_xgridlines()[:1]:
            yield f"  grid {line.get_visible()} {line.get_color()}"
        if (legend := axes.get_legend()) is not None:
            location = rounded(legend.get_bbox_to_anchor().transformed(axes.transAxes.inverted()).min)
            yield f"  legend at {location}, frame {legend.get_frame_on()}: {[one.get_text() for one in legend.get_texts()]}"


def rounded(values: Any) -> list[float]:
    return [round(float(one), 3) + 0.0 for one in np.asarray(values, dtype=float)]


def of_table(table: Any, **plot: Any) -> Iterator[str]:
    yield str(table)
    page = re.sub(r"<style>.*?</style>", "", table._repr_html_(), flags=re.DOTALL)
    yield unescape(re.sub(r"\s*(<[^>]+>\s*)+", " ; ", page)).strip(" ;")
    if hasattr(table, "to_pandas"):
        frames = table.to_pandas()
        for title, frame in frames.items() if isinstance(frames, dict) else [("", frames)]:
            kinds = zip(frame.columns, frame.dtypes, strict=True)
            yield "\n".join([f"frame {title} of {len(frame)}", *(f"  {name} {kind}" for name, kind in kinds)])
    if hasattr(table, "plot"):
        yield from of_figure(table.plot(**plot))


def text_of(*tables: tuple[Any, dict[str, Any]]) -> str:
    parts = ["\n".join(of_table(table, **plot)) for table, plot in tables]
    return "\n".join(line.rstrip() for part in parts for line in [*part.splitlines(), ""])


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return fuzzed(tmp_path_factory.mktemp("tables"), 51, items=60, waits=0.0).store


def test_results(store: Any) -> None:
    options: Any = {"draws": 100, "failed": "wrong"}
    made = proctor.results(store, NAME, **options)
    parted = proctor.results(store, NAME, **options, by="level", conditions="video", metrics=["accuracy", "effort"])
    shown = [(made, {}), (made, {"metric": "helpful"}), (parted, {"metric": "effort"})]
    assert_frozen(text_of(*shown), HERE / "results.txt")


def test_comparisons(store: Any) -> None:
    options: Any = {"draws": 100, "failed": "wrong"}
    made = proctor.compare(store, NAME, **options, systems=["alpha", "beta"], metrics=["accuracy", "effort"])
    against = proctor.compare(
        store, NAME, **options, against="random/text-only", conditions="text-only", metrics="accuracy"
    )
    assert_frozen(text_of((made, {"metric": "effort"}), (against, {})), HERE / "comparisons.txt")


def test_rankings(store: Any) -> None:
    made = proctor.rank(store, NAME, draws=100, stability=20, failed="wrong")
    board = proctor.leaderboard(store, NAME, draws=100, failed="wrong", metric="accuracy", scorer="code")
    assert_frozen(text_of((made, {}), (board, {})), HERE / "rankings.txt")


def test_an_analysis(store: Any) -> None:
    made = proctor.analyze(store, NAME, draws=100, stability=20, failed="wrong")
    assert_frozen(text_of((made, {})), HERE / "analysis.txt")


def test_an_audit(tmp_path: Path) -> None:
    audited(tmp_path, 3, parts=True)
    made = proctor.audit(tmp_path / "scores.csv", tmp_path / "ratings.csv", draws=100)
    assert_frozen(text_of((made, {})), HERE / "audit.txt")
