"""What participants get of a phase: the questions without their references, for teams, once the phase was opened."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote

import pytest
from sqlalchemy import delete

from proctor_challenge.pages.site import ChallengeSite
from proctor_challenge.schema import openings
from tests.support.challenge_site import HIDDEN, challenge_site, logged_in, posted, team_of_two
from tests.support.web_site import browser, join

QUESTIONS = f"/phase/{HIDDEN}/files/public/{HIDDEN}/requests.json"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[ChallengeSite]:
    made = challenge_site(tmp_path)
    team_of_two(made, "Hand Surgeons", "anna")
    for name, role in (("eve", "participant"), ("olga", "organiser")):
        join(made, name, role)
    (tmp_path / "sealed" / "secret").write_text("canary")
    (tmp_path / "public" / HIDDEN / "link.json").symlink_to(tmp_path / "sealed" / "secret")
    (tmp_path / "public" / HIDDEN / "way").symlink_to(tmp_path / "sealed")
    (tmp_path / "public" / HIDDEN / "a page.html").write_text("<script>alert(1)</script>")
    yield made
    made.engine.dispose()


def test_teams_get_the_questions_to_keep(site: ChallengeSite) -> None:
    anna = logged_in(site, "anna")
    page = anna.get(f"/phase/{HIDDEN}").text
    assert QUESTIONS in page
    assert "link.json" not in page
    answer = anna.get(QUESTIONS)
    assert answer.content == (site.folder / "public" / HIDDEN / "requests.json").read_bytes()
    html = anna.get(f"/phase/{HIDDEN}/files/public/{HIDDEN}/{quote('a page.html')}")
    assert html.headers["content-type"] == "application/octet-stream"
    assert html.headers["content-disposition"].startswith("attachment")
    for person in (logged_in(site, "eve"), browser(site)):
        assert person.get(QUESTIONS).status_code == 404
        assert QUESTIONS not in person.get(f"/phase/{HIDDEN}").text


OTHERS = [
    f"public/{HIDDEN}/link.json", f"public/{HIDDEN}/way/secret", "sealed/secret", f"sealed/{HIDDEN}/references.json",
    "public/../sealed/secret", f"public/{HIDDEN}/../../sealed/secret", "challenge.yaml", "challenge.sqlite",
    "public/training/references.json", "public/terms.md", f"public/{HIDDEN}", "", "/etc/passwd", "%2e%2e/sealed/secret",
]  # fmt: skip


@pytest.mark.parametrize("path", OTHERS)
def test_everything_else_is_not_there(site: ChallengeSite, path: str) -> None:
    for name in ("anna", "olga"):
        answer = logged_in(site, name).get(f"/phase/{HIDDEN}/files/{path}")
        assert answer.status_code in {404, 307}, (name, path)
        assert "canary" not in answer.text


def test_before_a_phase_is_opened_organisers_alone_have_its_files(site: ChallengeSite) -> None:
    with site.writing() as connection:
        connection.exec_driver_sql("drop trigger if exists openings_stay_on_delete")
        connection.execute(delete(openings))
    assert logged_in(site, "anna").get(QUESTIONS).status_code == 404
    assert logged_in(site, "olga").get(QUESTIONS).status_code == 200
    assert logged_in(site, "anna").get("/phase/test/files/sealed/test/references.json").status_code == 404


def test_before_its_day_a_phase_hands_nothing_out(tmp_path: Path) -> None:
    later = (challenge_site(tmp_path / "one").now() + timedelta(days=1)).isoformat()
    site = challenge_site(tmp_path / "two", {"  title: Pre-evaluation": f"  title: Pre-evaluation\n  opens: {later}"})
    team_of_two(site, "Hand Surgeons", "anna")
    assert logged_in(site, "anna").get(QUESTIONS).status_code == 404
    site.engine.dispose()


@pytest.mark.parametrize("opened", [True, False])
def test_closing_a_phase_before_its_day_hands_out_nothing(tmp_path: Path, opened: bool) -> None:
    """Neither by the organisers' button while it waits, nor after nobody has opened it."""
    later = (challenge_site(tmp_path / "one").now() + timedelta(days=1)).isoformat()
    site = challenge_site(tmp_path / "two", {"  title: Pre-evaluation": f"  title: Pre-evaluation\n  opens: {later}"})
    team_of_two(site, "Hand Surgeons", "anna")
    join(site, "olga", "organiser")
    if not opened:
        with site.writing() as connection:
            connection.exec_driver_sql("drop trigger if exists openings_stay_on_delete")
            connection.execute(delete(openings))
    closed = posted(logged_in(site, "olga"), f"/organise/phase/{HIDDEN}/close", sure="yes")
    assert closed.status_code == (303 if opened else 409)
    anna = logged_in(site, "anna")
    assert anna.get(QUESTIONS).status_code == 404
    assert QUESTIONS not in anna.get(f"/phase/{HIDDEN}").text
    site.engine.dispose()
