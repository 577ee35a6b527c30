"""Who gets which prize: hand-worked ties and exclusions, sums that never exceed the whole, and a table by real boards."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest
from sqlalchemy import select, update

from proctor.core import InputError, ProblemsError, generator
from proctor_challenge.awards import Contender, announced_teams, prize_shares
from proctor_challenge.board_pages import publish, visible_boards
from proctor_challenge.challenge import Challenge
from proctor_challenge.descriptions import DescriptionError, describe, rule_on_description
from proctor_challenge.prizes import prize_table, prize_tables, prizes_of
from proctor_challenge.schema import teams
from proctor_challenge.settings import ChallengeSettings, Prizes
from proctor_challenge.teams import named_team, set_eligible
from tests.support.hosted import team
from tests.support.program import proctor
from tests.support.scored_challenge import PHASE, Hosted, copied

SPLIT = (50, 30, 20)


def of(*teams: tuple[str, int | None, str]) -> list[Contender]:
    return [Contender(name, rank, "b" not in why, tuple(why)) for name, rank, why in teams]


@pytest.mark.parametrize(
    ("contenders", "expected"),
    [
        ([("A", 1, ""), ("B", 2, ""), ("C", 3, ""), ("D", 4, "")], {"A": "1/2", "B": "3/10", "C": "1/5"}),
        ([("A", 1, "e"), ("B", 2, ""), ("C", 3, ""), ("D", 4, "")], {"B": "1/2", "C": "3/10", "D": "1/5"}),
        ([("A", 1, ""), ("B", 1, ""), ("C", 3, "")], {"A": "2/5", "B": "2/5", "C": "1/5"}),  # (50 + 30) / 2
        (
            [("A", 1, ""), ("B", 2, ""), ("C", 2, ""), ("D", 4, "")],
            {"A": "1/2", "B": "1/4", "C": "1/4"},
        ),  # (30 + 20) / 2
        ([("A", 1, ""), ("B", 2, ""), ("C", 3, ""), ("D", 3, "")], {"A": "1/2", "B": "3/10", "C": "1/10", "D": "1/10"}),
        ([("A", 1, ""), ("B", 1, ""), ("C", 1, ""), ("D", 1, "")], dict.fromkeys("ABCD", "1/4")),  # 100 / 4
        ([("A", 1, ""), ("B", 1, "d"), ("C", 3, "")], {"A": "1/2", "C": "3/10"}),  # a tie with somebody who gets none
        ([("A", 1, ""), ("B", None, "")], {"A": "1/2"}),
        ([("A", 1, "b"), ("B", 2, "b")], {}),
        ([], {}),
    ],
)
def test_shares_by_hand(contenders: list[tuple[str, int | None, str]], expected: dict[str, str]) -> None:
    found = prize_shares(of(*contenders), SPLIT)
    assert found == {name: Fraction(share) for name, share in expected.items()}


def test_money_is_never_made_nor_given_to_the_wrong_team() -> None:
    """Ranks at random: all shares add up to the percentages of the ranks that are taken; who is better gets no
    less, who shares a rank the same, and who may get nothing gets nothing."""
    rng = generator(5, "prizes")
    for _ in range(2000):
        count = int(rng.integers(1, 9))
        rows = sorted(int(one) for one in rng.integers(1, 6, count))
        some = [Contender(f"T{n}", row, reasons=("no",) * int(rng.random() < 0.3)) for n, row in enumerate(rows)]
        shares = prize_shares(some, SPLIT)
        entitled = [one for one in some if not one.reasons]
        assert set(shares) <= {one.name for one in entitled}
        assert sum(shares.values()) == sum(Fraction(part, 100) for part in SPLIT[: len(entitled)])
        for one in entitled:
            for other in entitled:
                mine, theirs = shares.get(one.name, Fraction(0)), shares.get(other.name, Fraction(0))
                assert mine >= theirs if (one.rank or 0) < (other.rank or 0) else True
                assert mine == theirs if one.rank == other.rank else True


def test_who_is_announced_may_be_without_a_prize_and_beats_the_baselines() -> None:
    some = of(("A", 1, "e"), ("B", 2, "b"), ("C", 3, ""), ("D", 4, ""), ("E", 4, ""), ("F", 6, ""))
    assert announced_teams(some, 3) == {"A", "C", "D", "E"}
    assert announced_teams(some, 1) == {"A"}


@pytest.mark.parametrize(
    ("prizes", "said"),
    [
        ("{split: [60, 50]}", "split: found 110 % in all, at most 100 % is expected"),
        ("{boards: {technical: 90, clinical: 20}}", "boards: found 110 % in all"),
        ("{split: []}", "split"),
        ("{amount: -1}", "amount"),
    ],
)
def test_settings_that_give_more_than_there_is(tmp_path: Path, prizes: str, said: str) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "challenge.yaml").write_text(
        f"benchmark: focus\nphases: [{{name: p, questions: p, prizes: {prizes}}}]\n"
    )
    with pytest.raises(ProblemsError, match=said):
        Challenge.open(tmp_path, "organiser")


def test_the_default_is_that_of_the_paper() -> None:
    phase = {"name": "final", "questions": "q", "prizes": {}}
    prizes = ChallengeSettings.model_validate({"benchmark": "focus", "phases": [phase]}).phases[0].prizes
    assert prizes == Prizes(split=(50, 30, 20), announced=3, coauthors=3)


# By the boards of a challenge

PRIZES = """  prizes: {amount: 20000, currency: EUR, at: 2026-12-10T00:00:00Z}
  description: {required_for: prizes, due: 2026-12-01T00:00:00Z}
"""


@pytest.fixture(scope="module")
def hosted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosted]:
    found = Hosted(tmp_path_factory.mktemp("prizes") / "c", videos=8, baseline=0.5, more=PRIZES)
    for name, skill in (("Alpha", 0.97), ("Beta", 0.85), ("Gamma", 0.7), ("Delta", 0.1)):
        found.submit(team(found.challenge, name), skill)
    publish(found.challenge, PHASE)
    yield found
    found.challenge.close()


@pytest.fixture
def challenge(hosted: Hosted, tmp_path: Path) -> Iterator[Challenge]:
    found = copied(hosted.challenge, tmp_path / "c")
    yield found
    found.close()


def text(tmp_path: Path, content: str = "We trained a model.") -> Path:
    file = tmp_path / "method.txt"
    file.write_text(content)
    return file


def test_a_table_by_real_boards(challenge: Challenge, tmp_path: Path) -> None:
    for name in ("Alpha", "Beta", "Delta"):
        describe(challenge, PHASE, name, text(tmp_path, f"How {name} works"))
    with challenge.writing() as connection:
        set_eligible(connection, challenge, None, named_team(connection, "alpha")["id"], eligible=False)
    content = prizes_of(challenge, PHASE)
    technical = next(board for board in content["boards"] if board["name"] == "technical")
    rows = {row["team"]: row for row in technical["rows"]}
    assert rows["Alpha"]["reasons"] == ["not eligible for awards"]
    assert rows["Gamma"]["reasons"] == ["no description of the method"]
    assert rows["Delta"]["reasons"] == ["not above every baseline"]
    assert [rows[name]["prize"] for name in ("Alpha", "Beta", "Gamma", "Delta")] == [0, 50, 0, 0]
    assert (rows["Beta"]["of_all"], rows["Beta"]["amount"]) == (25, 5000)  # half of one of two boards
    assert technical["left"] == 50
    assert [name for name, row in rows.items() if row["announced"]] == ["Alpha", "Beta", "Gamma"]
    assert [row["coauthors"] for row in rows.values()] == [3, 3, 3, 0]
    describe(challenge, PHASE, "Gamma", text(tmp_path))
    rows = {row["team"]: row for row in prizes_of(challenge, PHASE)["boards"][0]["rows"]}
    assert [rows[name]["prize"] for name in ("Beta", "Gamma")] == [50, 30]
    with challenge.writing() as connection:
        rule_on_description(
            connection, challenge, None, PHASE, named_team(connection, "Gamma")["id"], "no training data"
        )
    rows = {row["team"]: row for row in prizes_of(challenge, PHASE)["boards"][0]["rows"]}
    assert rows["Gamma"]["reasons"] == ["description does not suffice: no training data"]
    (first, _), rule = prize_tables(content), content["rule"]
    assert first.title == "All questions (50 % of all prizes; 50 % not awarded)"
    assert first.records[1]["Amount"] == "5,000.00 EUR"
    assert "have handed in a description of their method get 50, 30, 20 %" in rule[0]


def test_only_organisers_see_it_before_it_is_announced(challenge: Challenge, tmp_path: Path) -> None:
    describe(challenge, PHASE, "Beta", text(tmp_path))
    with challenge.writing() as connection:
        connection.execute(update(teams).where(teams.c.name == "Alpha").values(listed=0))
    with challenge.reading() as connection:
        for visitor in ("public", "participant"):
            assert prize_table(connection, challenge, PHASE, visitor) is None
        board = visible_boards(connection, challenge.settings, PHASE, "public", challenge.now())
        assert board is not None
        assert not any("announced" in row for row in board["boards"][0]["rows"])
        board = visible_boards(connection, challenge.settings, PHASE, "organiser", challenge.now())
        assert board is not None
        assert sum(row.get("announced", False) for row in board["boards"][0]["rows"]) == 3
    challenge.now.pass_by(days=30)  # type: ignore[attr-defined]
    with challenge.reading() as connection:
        shown = prize_table(connection, challenge, PHASE, "public")
        board = visible_boards(connection, challenge.settings, PHASE, "public", challenge.now())
    assert shown is not None
    rows = shown["boards"][0]["rows"]
    assert [row["team"] for row in rows] == ["", "Beta", "Gamma"]
    assert not any({"reasons", "listed"} & set(row) for row in rows)
    assert board is not None
    assert [row["name"] for row in board["boards"][0]["rows"] if row.get("announced")] == ["", "Beta", "Gamma"]


def test_a_description_for_the_ranking_decides_who_is_on_the_boards(tmp_path: Path) -> None:
    more = "  description: {required_for: ranking, due: 2026-12-01T00:00:00Z}\n"
    found = Hosted(tmp_path / "c", videos=4, baseline=None, more=more)
    challenge = found.challenge
    for name, skill in (("Alpha", 0.9), ("Beta", 0.4)):
        found.submit(team(challenge, name), skill)
    publish(challenge, PHASE)
    describe(challenge, PHASE, "Beta", text(tmp_path))

    def shown() -> list[str]:
        with challenge.reading() as connection:
            seen = visible_boards(connection, challenge.settings, PHASE, "public", challenge.now())
        assert seen is not None
        return [row["name"] for row in seen["boards"][0]["rows"]]

    assert shown() == ["Alpha", "Beta"]  # before the date
    challenge.now.pass_by(days=9)  # type: ignore[attr-defined]
    assert shown() == ["Beta"]
    publish(challenge, PHASE)
    with challenge.reading() as connection:
        seen = visible_boards(connection, challenge.settings, PHASE, "public", challenge.now())
    assert seen is not None
    assert not seen["outdated"]
    assert [(row["name"], row["rank"]) for row in seen["boards"][0]["rows"]] == [("Beta", 1)]
    with pytest.raises(DescriptionError, match="found a time after 2026-12-01"):
        describe(challenge, PHASE, "Alpha", text(tmp_path))
    challenge.close()


def test_money_for_a_board_that_is_not_there_is_named(tmp_path: Path) -> None:
    found = Hosted(tmp_path / "c", videos=4, baseline=None, more="  prizes: {boards: {technicl: 50}}\n")
    found.submit(team(found.challenge, "Alpha"), 0.9)
    publish(found.challenge, PHASE)
    with pytest.raises(InputError, match="prizes, boards: found 'technicl', expected one of technical, clinical"):
        prizes_of(found.challenge, PHASE)
    found.challenge.close()


def test_the_command(challenge: Challenge) -> None:
    folder = challenge.folder
    done = proctor("challenge", "status", folder, PHASE, "--prizes")
    assert done.returncode == 0, done.stderr
    assert "Teams that share a rank get equal parts of the sum" in done.stdout
    assert "no description of the method" in done.stdout
    rows = proctor("challenge", "status", folder, PHASE, "--prizes", "--format", "csv").stdout.splitlines()
    assert rows[0].startswith(
        "Rank,Team,Above baselines,Prize,Of all,Amount,Announced,Co-authors,No prize because,Board"
    )
    assert len(rows) == 1 + 2 * 4
    with challenge.reading() as connection:
        assert len(connection.execute(select(teams)).all()) == 4
