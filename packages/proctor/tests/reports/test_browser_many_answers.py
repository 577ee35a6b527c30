"""Of many answers no more are read than the browser's limit of characters lets it hold, and what it shows is the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from proctor.core import Answer
from proctor.reports import browser
from proctor.reports.content import Limits
from proctor.reports.packing import BrowserData
from proctor.reports.report_numbers import Source
from proctor.results import Options
from proctor.runs import Run, Store
from tests.support.report_store import a_benchmark

_ITEMS = 60
_LIMITS = replace(Limits(), characters=20_000)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[range]:
    """The rows whose answers are read, one entry for each run."""
    locations: list[range] = []
    load = Source.answers

    def noted(source: Source, run: Run, asked: range) -> dict[int, Answer]:
        locations.append(asked)
        return load(source, run, asked)

    monkeypatch.setattr(Source, "answers", noted)
    return locations


def source_of(folder: Path, *, long_first: int = 0) -> Source:
    store = Store(folder / "runs.db")
    benchmark = a_benchmark(items=_ITEMS, groups=6)
    store.add_benchmark(benchmark)
    for system in ("one", "two"):
        texts = [f"{system}: " + "word " * (120 if k < long_first else 40) for k in range(_ITEMS)]
        given = [
            Answer(item_id=item.id, text=text, parsed="A") for item, text in zip(benchmark.items, texts, strict=True)
        ]
        store.write(store.start_run("toy", system, "video", {}), [(answer, []) for answer in given])
    return Source(store, "toy", Options())


def shown(source: Source, limits: Limits = _LIMITS) -> tuple[BrowserData, int, int]:
    data, counts = browser.browser_data(source, limits)
    return data, counts.items_left_out, counts.answers


def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser, "_MANY", 10)
    monkeypatch.setattr(browser, "_PROBED", 4)


def test_answers_that_would_be_left_out_are_not_read(
    tmp_path: Path, read: list[range], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = source_of(tmp_path)
    everything = shown(source)
    assert read == [range(_ITEMS)] * 2
    assert 0 < everything[1] < _ITEMS
    read.clear()
    few(monkeypatch)
    assert shown(source) == everything
    # the first four of each run for the estimate, then a quarter more than fit, and nothing after that
    assert read[:2] == [range(4)] * 2
    assert read[2] == read[3] == range(read[2].stop)
    assert len(read) == 4
    fitting = _ITEMS - everything[1]
    assert fitting < read[2].stop <= fitting * 1.25 + 2


def test_the_rest_is_read_if_the_first_items_are_longer_than_others(
    tmp_path: Path, read: list[range], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = source_of(tmp_path, long_first=4)
    everything = shown(source)
    read.clear()
    few(monkeypatch)
    assert shown(source) == everything
    assert read[2].stop == read[4].start < _ITEMS - everything[1]


def test_what_fits_is_read_at_once(tmp_path: Path, read: list[range], monkeypatch: pytest.MonkeyPatch) -> None:
    source = source_of(tmp_path)
    everything = shown(source, Limits())
    assert everything[1] == 0
    read.clear()
    few(monkeypatch)
    assert shown(source, Limits()) == everything
    assert read == [*[range(4)] * 2, *[range(_ITEMS)] * 2]
