"""A report that may be published: everything that must stay secret is looked for, text by text."""

from __future__ import annotations

import gc
import html
from pathlib import Path

import pytest

from proctor.core import clock_text
from proctor.reports import write_public_report, write_report
from proctor.results import Options, pseudonyms_of, public_copy, rank_runs
from proctor.results.export import hidden_judges
from proctor.runs import Store
from proctor.stats import RankingPlan
from tests.support.panelled_store import JUDGES, PANEL, panelled
from tests.support.report_store import a_store

_QUICK = Options(draws=200)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return panelled(tmp_path_factory.mktemp("public"))


def secrets(store: Store, benchmark: str) -> set[str]:
    """Every text that no published page may hold."""
    found: set[str] = set()
    for item in store.items(benchmark):
        found |= {item.id, item.question.split("\n")[0], *item.options}
        if item.reference is not None:
            key = item.reference.answer
            found |= {clock_text(float(str(one))) for one in key} if isinstance(key, list) else {str(key)}
    for run in store.runs(benchmark):
        notes = run.settings.get("notes")
        found |= {str(note) for note in notes} if isinstance(notes, list) else set()
        for answer in store.answers(run).values():
            found |= {answer.text, answer.problem, answer.reason}
    return {text for text in found if len(text) > 2}  # a letter is on any page


def held(page: str, texts: set[str]) -> list[str]:
    plain = html.unescape(page)
    return sorted(text for text in texts if text in plain)


def test_no_reference_no_answer_and_no_judge_is_on_the_page(store: Store, tmp_path: Path) -> None:
    public, whole = tmp_path / "public.html", tmp_path / "whole.html"
    write_report(store, "focus", whole, options=_QUICK)
    summary = write_public_report(store, "focus", public, options=_QUICK)
    texts = secrets(store, "focus") | set(JUDGES)
    assert len(texts) > 400
    assert len(held(whole.read_text(), texts)) > 400, "the test looks for what a whole report has"
    assert held(public.read_text(), texts) == []
    assert (summary.items, summary.answers) == (0, 0)
    assert "Items and answers" not in public.read_text()
    assert "questions, references, answers, names of judges" in public.read_text()


def test_texts_of_every_other_kind_stay_away(tmp_path: Path) -> None:
    """Options, rationales, reasons for failing, notes on runs, judgements: a store that has all of them."""
    toy = a_store(tmp_path)
    public, whole = tmp_path / "public.html", tmp_path / "whole.html"
    write_report(toy, "toy", whole, options=_QUICK)
    write_public_report(toy, "toy", public, options=_QUICK)
    texts = {
        *("the clip is placed", "It is seen at the end.", "By its tip.", "A clip is placed.", "grasper"),
        *("Which instrument is seen", "Nothing happens.", "I can't tell.", "connection reset"),
        *("Both halves hold.", "Neither half holds.", "the-judge", "looker was run by hand"),
    }
    assert held(whole.read_text(), texts) == sorted(texts)
    assert held(public.read_text(), texts) == []


def test_the_numbers_are_those_of_the_whole_report(store: Store) -> None:
    names = pseudonyms_of(store, "focus")
    copy = public_copy(store, "focus", names)
    before, after = (rank_runs(one, "focus", plan=RankingPlan(stability=100)) for one in (store, copy))
    for board, other in zip(before, after, strict=True):
        rows = {names[one.standing.name]: (one.standing.rank, one.standing.mean) for one in board.runs}
        assert rows == {one.standing.name: (one.standing.rank, one.standing.mean) for one in other.runs}
    assert before[0].judge == PANEL
    assert after[0].judge == "panel[judge A, judge B, judge C]"


def test_pseudonyms_stand_for_systems_and_not_for_baselines(store: Store, tmp_path: Path) -> None:
    names = pseudonyms_of(store, "focus", baselines=("team-green",), seed=3)
    assert sorted(names) == ["team-blue", "team-red"]
    assert sorted(names.values()) == ["System 1", "System 2"]
    out = tmp_path / "public.html"
    write_public_report(store, "focus", out, options=_QUICK, baselines=("team-green",), pseudonyms=names)
    page = out.read_text()
    assert held(page, {"team-red", "team-blue"}) == []
    assert held(page, {"System 1", "System 2", "team-green"}) == ["System 1", "System 2", "team-green"]
    orders = {tuple(pseudonyms_of(store, "focus", seed=seed).values()) for seed in range(20)}
    assert len(orders) > 1, "the numbers are drawn, they do not follow the names"


def test_judges_lose_their_models_and_stay_apart() -> None:
    assert hidden_judges(["code", "rationale+frames[b]", "panel[a, b]", "a", "panel[b, c]"]) == {
        "code": "code",
        "a": "judge A",
        "panel[a, b]": "panel[judge A, judge B]",
        "panel[b, c]": "panel[judge B, judge C]",
        "rationale+frames[b]": "rationale+frames[judge B]",
    }
    many = hidden_judges([f"m{number:02d}" for number in range(30)])
    assert len(set(many.values())) == 31
    assert many["m29"] == "judge AD"


def test_a_public_copy_leaves_no_file_behind(store: Store) -> None:
    copy = public_copy(store, "focus")
    folder = Path(copy.shown).parent
    assert folder.is_dir()
    copy.close()
    del copy
    gc.collect()
    assert not folder.exists()
