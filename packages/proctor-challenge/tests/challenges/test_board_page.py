"""Boards as tables and as a page: what they say, for whom, and that a hostile name stays a name."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import update

from proctor.interchange import file_hash
from proctor_challenge.board_charts import BoardText, board_chart, in_order
from proctor_challenge.board_pages import board_tables, leaders, publish, seen_boards, who_leads, write_boards
from proctor_challenge.schema import teams
from proctor_challenge.submissions import HandInError
from proctor_challenge.uploads import submit_file
from tests.support.hosted import team
from tests.support.program import proctor
from tests.support.scored_challenge import PHASE, Hosted, answers, copied

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def hosted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosted]:
    found = Hosted(tmp_path_factory.mktemp("page") / "c", videos=6, baseline=0.5)
    for name, skill in (("Alpha", 0.9), ("Beta", 0.3)):
        found.submit(team(found.challenge, name), skill)
    with found.challenge.writing() as connection:
        connection.execute(update(teams).where(teams.c.name == "Alpha").values(institution=HOSTILE))
    publish(found.challenge, PHASE)
    yield found
    found.challenge.close()


def test_tables_say_places_means_and_who_passes_the_gate(hosted: Hosted) -> None:
    technical, clinical = board_tables(seen_boards(hosted.challenge, PHASE, "public"))
    rows = {row["Team"]: row for row in technical.records}
    assert [*rows] == ["Alpha", "Beta", "plain"]
    assert (rows["Alpha"]["Rank"], rows["plain"]["Rank"]) == ("1", "")
    assert (rows["Alpha"]["Remarks"], rows["Beta"]["Remarks"]) == ("passes the gate", "")
    assert rows["Alpha"]["Seconds (median)"] == "1.0 (self-reported)"
    assert technical.title == "Technical leaderboard (120 questions in 6 groups)"
    assert clinical.title.startswith("Clinical leaderboard (")


def test_charts_hold_intervals_and_the_best_baseline_on_the_whole_axis(hosted: Hosted) -> None:
    for board in seen_boards(hosted.challenge, PHASE, "public")["boards"]:
        chart = board_chart(board, in_order(board), BoardText())
        assert chart.axis.limits == (0.0, 1.0)
        assert any(label.startswith("best baseline: plain ") for _, label in chart.lines)
        for (lane,) in (row.lanes for row in chart.rows):
            assert lane.low is not None
            assert lane.value is not None
            assert lane.high is not None
            assert 0 <= lane.low <= lane.value <= lane.high <= 1


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([], "Nobody has a place."),
        ([("A", 1, 1, 1), ("B", 2, 2, 2)], "A."),
        ([("A", 1, 1, 2), ("B", 2, 1, 2)], "A; not certain: its rank by the mean is 1 to 2 (95 % CI)."),
        ([("A", 1, 1, 2), ("", 1, 1, 2)], "A, a team that is not listed, who share the first place (2)."),
        ([("A", 1, None, None)], "A."),
    ],
)
def test_who_leads_is_said_with_its_uncertainty(rows: list[tuple[object, ...]], told: str) -> None:
    names = ("name", "rank", "rank_low", "rank_high")
    assert leaders({"rows": [dict(zip(names, row, strict=True)) for row in rows]}) == told


def test_the_question_keeps_the_name_of_a_metric() -> None:
    assert who_leads("Clinical leaderboard") == "Who leads the clinical leaderboard?"
    assert who_leads("Kendall's tau") == "Who leads in Kendall's tau?"  # not "the kendall's tau"


def test_the_page_stands_alone_and_names_no_question(hosted: Hosted, tmp_path: Path) -> None:
    summary = write_boards(hosted.challenge, PHASE, tmp_path / "boards.html")
    text = (tmp_path / "boards.html").read_text()
    assert summary.sections == ("technical", "clinical")
    assert "Alpha" in text
    assert HOSTILE not in text
    assert "default-src 'none'" in text
    assert not any(f"v{video:02d}-q" in text for video in range(6))


def test_the_commands(hosted: Hosted, tmp_path: Path) -> None:
    own = copied(hosted.challenge, tmp_path / "c")
    own.close()
    folder = own.folder
    shown = proctor("challenge", "status", folder, PHASE, "--out", tmp_path / "b.html", "--format", "csv")
    assert shown.returncode == 0
    rows = [(row["Team"], row["Board"]) for row in csv.DictReader(shown.stdout.splitlines())]
    boards = ("All questions", "Questions of clinical relevance")
    assert rows == [(name, board) for board in boards for name in ("Alpha", "Beta", "plain")]
    assert (tmp_path / "b.html").is_file()
    kept = proctor("challenge", "status", folder, PHASE, "--out", folder / "challenge.yaml")
    assert (kept.returncode, "found a file of another kind" in kept.stderr) == (1, True)
    wrong = proctor("challenge", "status", folder, PHASE, "--audience", "everybody")
    assert (wrong.returncode, "'organiser'" in wrong.stderr) == (2, True)
    file = answers(folder, tmp_path / "a.json", 0.6, seed=7)
    handed = proctor("challenge", "submission", "add", folder, PHASE, "alpha", "--file", file)
    assert (handed.returncode, handed.stdout) == (0, "alpha#2 was queued\n")
    assert (folder / "uploads" / file_hash(file)).stat().st_mode & 0o777 == 0o640
    assert proctor("challenge", "submission", "add", folder, PHASE, "Gamma", "--file", file).returncode == 1


def test_what_does_not_fit_is_refused_with_its_problems(hosted: Hosted, tmp_path: Path) -> None:
    own = copied(hosted.challenge, tmp_path / "c")
    file = tmp_path / "a.json"
    file.write_text("[]")
    _, problems = submit_file(own, PHASE, "Alpha", file)
    assert problems
    own.close()


def test_the_quota_holds_in_the_shell(tmp_path: Path) -> None:
    hosted = Hosted(tmp_path / "c", videos=4, baseline=None, more="  quota: {scored: 1, attempted: 1}\n")
    hosted.submit(team(hosted.challenge), 0.5)
    file = answers(hosted.challenge.folder, tmp_path / "a.json", 0.6)
    with pytest.raises(HandInError, match="as many results"):
        submit_file(hosted.challenge, PHASE, "Hand Surgeons", file)
    hosted.challenge.close()
