"""A store, its report, and a browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor.reports import ReportSummary, write_report
from proctor.runs import Store
from tests.support.chromium import find_chromium
from tests.support.means import missing
from tests.support.report_store import a_store


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return a_store(tmp_path_factory.mktemp("toy"))


@pytest.fixture(scope="session")
def written(store: Store, tmp_path_factory: pytest.TempPathFactory) -> ReportSummary:
    return write_report(store, "toy", tmp_path_factory.mktemp("report") / "report.html")


@pytest.fixture(scope="session")
def report(written: ReportSummary) -> Path:
    return written.path


@pytest.fixture(scope="session")
def chromium() -> str:
    program = find_chromium()
    if program is None:
        missing("no Chromium here (Debian: apt-get install chromium)")
    return str(program)
