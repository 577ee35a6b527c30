"""Scoring files: figures equal to the commands' own, aggregates alone, and whose fault it is where scoring fails."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy.exc import IntegrityError

from proctor.api import rank, results
from proctor_challenge.boards import Figures
from proctor_challenge.challenge import SealedPart
from proctor_challenge.scoring import Entrant, ScorerFaultError, score_entrant, scorer_fingerprint, scorer_version
from proctor_challenge.settings import read_challenge
from proctor_challenge.submissions import disqualify
from tests.support.hosted import StandingClock, team
from tests.support.scored_challenge import PHASE, Hosted, answers, leased_file, scored, scored_folder


@pytest.fixture(scope="module")
def hosted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosted]:
    found = Hosted(tmp_path_factory.mktemp("scoring") / "c")
    yield found
    found.challenge.close()


@pytest.fixture(scope="module")
def figures(hosted: Hosted) -> Figures:
    return hosted.submit(team(hosted.challenge), 0.8)


def test_the_mean_is_that_of_rank(hosted: Hosted, figures: Figures) -> None:
    store = hosted.challenge.folder / f"sealed/{PHASE}.sqlite"
    given = {"condition": "text-only", "baselines": "plain", "stability": 0, "draws": 100}
    boards = rank(store, systems="Hand Surgeons#1", latency="optional", **given).boards  # type: ignore[arg-type]
    assert [one.name for one in figures.boards] == ["technical", "clinical"]
    for mine, theirs in zip(figures.boards, boards, strict=True):
        assert mine.mean == theirs.runs[0].standing.mean
        assert mine.above is (not theirs.runs[0].below)
        assert (mine.questions, mine.groups) == (theirs.items, theirs.standings.groups)
        assert mine.low is not None
        assert mine.high is not None
        assert mine.low < (mine.mean or 0) < mine.high


def test_the_interval_of_equal_buckets_is_that_of_results(hosted: Hosted, figures: Figures) -> None:
    # Every bucket has the same number of questions in every video: the mean over buckets is the plain mean.
    store = hosted.challenge.folder / f"sealed/{PHASE}.sqlite"
    row = results(store, systems="Hand Surgeons#1", metrics="accuracy").rows[0]
    board = figures.boards[0]
    assert board.mean == pytest.approx(row["value"], abs=1e-12)
    assert board.low == pytest.approx(row["ci_low"], abs=1e-9)
    assert board.high == pytest.approx(row["ci_high"], abs=1e-9)


def test_figures_are_aggregates(hosted: Hosted, figures: Figures) -> None:
    text = figures.model_dump_json()
    ids = [one["qID"] for one in json.loads((hosted.challenge.folder / f"public/{PHASE}/requests.json").read_text())]
    assert not any(name in text for name in ids)
    assert figures.statuses == {"readable": 160}
    assert figures.seconds is not None
    assert figures.seconds.model_dump() == {
        "answers": 160,
        "median": 1.0,
        "p95": 1.0,
        "longest": 1.0,
        "measured": False,
    }


def test_no_answer_and_no_reference_is_in_the_public_database(hosted: Hosted, figures: Figures) -> None:
    with hosted.challenge.reading() as connection:
        names = connection.exec_driver_sql("select name from sqlite_master where type = 'table'").scalars().all()
        for name in ("answers", "items", "scores", "judgements"):
            assert name not in names or not connection.exec_driver_sql(f"select * from {name}").all()
    for file in hosted.challenge.folder.glob("challenge.sqlite*"):
        assert b"v00-q00" not in file.read_bytes()


def test_scoring_again_gives_the_same(tmp_path: Path) -> None:
    folder = scored_folder(tmp_path / "c", videos=4)
    sealed = SealedPart(folder, read_challenge(folder, sealed=True))
    entrant = Entrant("A#1", answers(folder, tmp_path / "a.json", 0.7))
    assert score_entrant(sealed, PHASE, entrant) == score_entrant(sealed, PHASE, entrant)


def test_missing_and_late_answers_are_counted_and_wrong(tmp_path: Path) -> None:
    folder = scored_folder(tmp_path / "c", videos=4, baseline=None)
    file = answers(folder, tmp_path / "a.json", 1.0)
    content = json.loads(file.read_text())
    for one in content[:20]:
        one["latency"] = 31.0
    file.write_text(json.dumps(content[:60]))
    sealed = SealedPart(folder, read_challenge(folder, sealed=True))
    found = score_entrant(sealed, PHASE, Entrant("A#1", file))
    assert found.statuses == {"readable": 40, "timed_out": 20, "not_submitted": 20}
    assert found.boards[0].mean == pytest.approx(40 / 80)
    assert found.boards[0].above is None


def test_a_file_without_a_suffix_that_its_reader_goes_by(tmp_path: Path) -> None:
    folder = scored_folder(tmp_path / "c", videos=4, baseline=None)
    upload = answers(folder, tmp_path / ("0" * 64), 1.0)
    sealed = SealedPart(folder, read_challenge(folder, sealed=True))
    assert score_entrant(sealed, PHASE, Entrant("A#1", upload, ".json")).boards[0].mean == 1.0


def test_a_judge_that_can_not_be_asked_is_a_fault_of_the_scorer(tmp_path: Path) -> None:
    folder = scored_folder(tmp_path / "c", videos=4, baseline=None)
    keys = folder / f"sealed/{PHASE}/references.json"
    content = json.loads(keys.read_text())
    content[0].update(format="open_ended", answer="yes")
    keys.write_text(json.dumps(content))
    settings = folder / "challenge.yaml"
    settings.write_text(settings.read_text() + "judge: {models: ['openai:none'], base_url: 'http://127.0.0.1:9/v1'}\n")
    sealed = SealedPart(folder, read_challenge(folder, sealed=True))
    with pytest.raises(ScorerFaultError, match="A#1"):
        score_entrant(sealed, PHASE, Entrant("A#1", answers(folder, tmp_path / "a.json", 1.0)))


def test_a_version_of_the_scorer_for_each_fingerprint(hosted: Hosted, figures: Figures) -> None:
    sealed = SealedPart(hosted.challenge.folder, hosted.challenge.settings)
    known = scorer_fingerprint(sealed)
    assert known == scorer_fingerprint(sealed)
    now = StandingClock()()
    with hosted.challenge.engine.connect() as connection:
        found = [scorer_version(connection, one, now) for one in (known, known, "other", "other", known)]
        connection.rollback()
    assert found == [1, 1, 2, 2, 3]


def test_a_changed_reference_is_another_scorer(tmp_path: Path) -> None:
    folder = scored_folder(tmp_path / "c", videos=4, baseline=None)

    def fingerprint() -> str:
        return scorer_fingerprint(SealedPart(folder, read_challenge(folder, sealed=True)))

    before = fingerprint()
    keys = folder / f"sealed/{PHASE}/references.json"
    keys.write_text(keys.read_text().replace('"no"', '"yes"', 1).replace('"answer": "no"', '"answer": "yes"', 1))
    assert fingerprint() != before


@pytest.mark.parametrize(
    ("old", "new", "other"),
    [
        ("counts: best", "counts: last", False),
        ("quota: {scored: 5, attempted: 9}", "quota: {scored: 6, attempted: 9}", False),
        ("question_s: 30.0", "question_s: 20.0", True),
        ("- name: plain", "- name: simple", True),
    ],
)
def test_what_figures_depend_on_makes_another_scorer(tmp_path: Path, old: str, new: str, other: bool) -> None:
    folder = scored_folder(tmp_path / "c", videos=2, more="  counts: best\n  quota: {scored: 5, attempted: 9}\n")

    def fingerprint() -> str:
        return scorer_fingerprint(SealedPart(folder, read_challenge(folder, sealed=True)))

    before, settings = fingerprint(), folder / "challenge.yaml"
    assert old in settings.read_text()
    settings.write_text(settings.read_text().replace(old, new))
    assert (fingerprint() != before) is other


def test_the_ladder_shows_what_is_better_beyond_the_interval(tmp_path: Path) -> None:
    hosted = Hosted(tmp_path / "c", more="  results: {rule: ladder}\n", baseline=None)
    of = team(hosted.challenge)
    shown = [hosted.submit(of, skill).shown for skill in (0.5, 0.55, 0.9, 0.6, 0.92)]
    assert shown == [True, False, True, False, False]
    hosted.challenge.close()


def test_a_disqualified_result_is_no_step_of_the_ladder(tmp_path: Path) -> None:
    hosted = Hosted(tmp_path / "c", more="  results: {rule: ladder}\n", baseline=None)
    challenge, of = hosted.challenge, team(hosted.challenge)
    assert hosted.submit(of, 0.5).shown
    assert hosted.submit(of, 0.98).shown
    with challenge.writing() as connection:
        disqualify(connection, challenge, None, 2, "read the references")
    assert hosted.submit(of, 0.8).shown
    challenge.close()


def test_a_leased_file_is_scored_once(tmp_path: Path) -> None:
    hosted = Hosted(tmp_path / "c", videos=4, baseline=None)
    challenge, of = hosted.challenge, team(hosted.challenge)
    leased = leased_file(challenge, of, answers(challenge.folder, tmp_path / "a.json", 0.7))
    scored(challenge, leased)
    with pytest.raises(IntegrityError):
        scored(challenge, leased)
    challenge.close()
