"""A disqualification: set by a person with a reason, shown everywhere, ranked nowhere, and taken back."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from proctor.core import InputError
from proctor.reports import write_public_report, write_report
from proctor.results import Options, leaderboard, rank_runs, results
from proctor.runs import Store, disqualify, reinstate
from proctor.stats import RankingPlan
from proctor.tasks.focus import READER
from tests.support.panelled_store import PANEL, panelled
from tests.support.program import within

WHY = "addresses the judge in 12 answers"
NOW, LATER = "2026-08-01T10:00:00+00:00", "2026-08-03T10:00:00+00:00"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ruled")
    panelled(folder).close()
    return folder


@pytest.fixture
def store(made: Path, tmp_path: Path) -> Store:
    return Store(shutil.copytree(made, tmp_path / "copy") / "runs.db", create=False)


def ranks(store: Store) -> dict[str, int]:
    return {
        one.standing.name: one.standing.rank for one in rank_runs(store, "focus", plan=RankingPlan(stability=0))[0].runs
    }


def test_who_is_disqualified_has_no_rank_and_takes_none_from_others(store: Store) -> None:
    before = ranks(store)
    assert before == {"team-red": 1, "team-blue": 2, "team-green": 3}
    disqualify(store, "focus", "team-red", WHY, at=NOW)
    assert ranks(store) == {"team-blue": 1, "team-green": 2}
    board = rank_runs(store, "focus", plan=RankingPlan(stability=0))[0]
    assert [str(one) for one in board.disqualified] == [f"team-red since 2026-08-01 ({WHY})"]
    rows = leaderboard(store, "focus", condition="video", scorer=PANEL, options=Options(draws=100)).rows
    red = next(row for row in rows if row.system == "team-red")
    assert (red.rank, red.disqualified, red.n) == (None, True, 80)
    assert min(row.rank for row in rows if row.rank is not None) == 1
    assert {row.system for row in results(store, "focus", Options(draws=100)).rows} == set(before)
    reinstate(store, "focus", "team-red", "the answers quoted the question", at=LATER)
    assert ranks(store) == before
    (ruling,) = store.card("focus").rulings
    assert (ruling.reason, ruling.since, ruling.lifted) == (WHY, NOW, LATER)
    assert ruling.lifted_because == "the answers quoted the question"


def test_it_survives_that_more_is_imported(store: Store) -> None:
    """Adding the benchmark again, as every run and import does, keeps the decision."""
    disqualify(store, "focus", "team-red", WHY, at=NOW)
    store.add_benchmark(READER.load(Path(store.shown).parent))
    assert list(store.card("focus").disqualified) == ["team-red"]


def test_reading_takes_no_decision(store: Store) -> None:
    before = store.card("focus")
    rank_runs(store, "focus", plan=RankingPlan(stability=0))
    results(store, "focus", Options(draws=100))
    assert store.card("focus") == before


def test_a_decision_needs_a_system_and_a_reason(store: Store) -> None:
    with pytest.raises(InputError, match="found no run of 'team-x', expected one of team-blue, team-green"):
        disqualify(store, "focus", "team-x", WHY, at=NOW)
    with pytest.raises(InputError, match="--reason is empty"):
        disqualify(store, "focus", "team-red", " \n", at=NOW)
    with pytest.raises(InputError, match="'team-red', not disqualified, expected one of none"):
        reinstate(store, "focus", "team-red", "no", at=NOW)
    disqualify(store, "focus", "team-red", WHY, at=NOW)
    with pytest.raises(InputError, match="disqualified already"):
        disqualify(store, "focus", "team-red", "again", at=NOW)


def test_the_report_names_who_and_why_the_public_one_only_who(store: Store, tmp_path: Path) -> None:
    disqualify(store, "focus", "team-red", WHY, at=NOW)
    write_report(store, "focus", tmp_path / "whole.html", options=Options(draws=100))
    write_public_report(store, "focus", tmp_path / "public.html", options=Options(draws=100))
    whole, public = (tmp_path / "whole.html").read_text(), (tmp_path / "public.html").read_text()
    assert f"Disqualified, and not ranked: team-red since 2026-08-01 ({WHY})." in whole
    assert "Disqualified, and not ranked: team-red since 2026-08-01." in public
    assert WHY not in public


def test_on_the_command_line(store: Store) -> None:
    url = store.shown
    base = ("store", "change", "disqualify", "focus", "--store", url, "--system", "team-red")
    code, printed = within(*base, "--reason", WHY)
    assert (code, printed[:24]) == (0, "Disqualified: team-red s")
    code, printed = within("rank", "focus", "--store", url, "--stability", "0", "--format", "json")
    board = json.loads(printed)[0]
    assert [one["system"] for one in board["disqualified"]] == ["team-red"]
    assert [one["system"] for one in board["systems"]] == ["team-blue", "team-green"]
    for command in (("rank", "focus", "--stability", "0"), ("results", "focus", "--draws", "100")):
        code, printed = within(*command, "--store", url)
        assert code == 0
        assert f"({WHY})" in " ".join(printed.split())
    lifted = [word.replace("disqualify", "readmit") for word in base]
    code, printed = within(*lifted, "--reason", "a mistake")
    assert code == 0
    assert "Ranked again: team-red" in printed
    code, printed = within(*lifted, "--reason", "a mistake")
    assert code == 1
