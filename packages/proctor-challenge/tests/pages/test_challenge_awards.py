"""The pages of prizes and descriptions, answers that count as wrong, and a file that was handed in before."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from proctor_challenge import uploads
from proctor_challenge.admission import Admission
from proctor_challenge.pages.site import ChallengeSite
from proctor_challenge.schema import boards
from proctor_challenge.submissions import submissions_of
from proctor_challenge.teams import withdraw_team
from tests.support.challenge_site import HIDDEN, answers, challenge_site, handed, logged_in, posted, team_of_two
from tests.support.web_site import browser, csrf_of, join

HOSTILE = b"<script>alert(1)</script>\n"
SETTINGS = {
    "  title: Pre-evaluation\n": "  title: Pre-evaluation\n"
    "  prizes: {amount: 1000, currency: EUR, at: 2027-01-01T00:00:00Z}\n"
    "  description: {required_for: prizes, due: 2027-01-01T00:00:00Z}\n"
}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[ChallengeSite]:
    made = challenge_site(tmp_path, SETTINGS)
    team_of_two(made, "Hand Surgeons", "anna", "ben")
    team_of_two(made, "Bone Setters", "cleo")
    join(made, "olga", "organiser")
    yield made
    made.engine.dispose()


def described(client: TestClient, content: bytes, name: str = "method.pdf", phase: str = HIDDEN) -> int:
    """The status of a description handed in by the phase's page."""
    said = {"csrf": csrf_of(client.get(f"/phase/{phase}"))}
    return client.post(f"/phase/{phase}/description", data=said, files={"upload": (name, content)}).status_code


def test_a_description_is_a_file_to_save_and_never_a_page(site: ChallengeSite) -> None:
    anna, cleo, olga = (logged_in(site, name) for name in ("anna", "cleo", "olga"))
    assert "has not handed in a description yet" in anna.get(f"/phase/{HIDDEN}").text
    assert described(anna, HOSTILE, '"><b>.html') == 303
    page = anna.get(f"/phase/{HIDDEN}").text
    assert "<b>.html" not in page
    assert 'href="/description/1" download' in page
    assert "received" in page
    for client in (anna, logged_in(site, "ben"), olga):
        found = client.get("/description/1")
        assert found.content == HOSTILE
        assert found.headers["content-type"] == "application/octet-stream"
        assert found.headers["content-disposition"] == f'attachment; filename="description-{HIDDEN}-1.txt"'
        assert found.headers["x-content-type-options"] == "nosniff"
    assert cleo.get("/description/1").status_code == 404
    assert browser(site).get("/description/1").status_code in {303, 404}
    assert described(anna, b"%PDF-1.7 ... %%EOF") == 303
    assert anna.get("/description/1").status_code == 404  # it was replaced
    assert anna.get("/description/2").headers["content-disposition"].endswith('.pdf"')
    assert described(anna, b"\xff\xd8\xff\xe0") == 422
    assert described(olga, b"text") == 404


def test_who_may_not_describe(site: ChallengeSite) -> None:
    anna = logged_in(site, "anna")
    csrf = csrf_of(anna.get(f"/phase/{HIDDEN}"))
    url, file = f"/phase/{HIDDEN}/description", {"upload": ("a.txt", b"text")}
    assert anna.post(url, data={"csrf": "x"}, files=file).status_code == 403
    assert anna.post("/phase/nothing/description", data={"csrf": csrf}, files=file).status_code == 404
    assert posted(anna, "/team/leave", "/team", sure="yes").status_code == 303
    assert anna.post(url, data={"csrf": csrf}, files=file).status_code == 404
    with site.challenge.writing() as connection:
        withdraw_team(connection, site.challenge, None, 2)
    cleo = logged_in(site, "cleo")
    said = {"csrf": csrf_of(cleo.get("/team"))}
    answer = cleo.post(url, data=said, files=file)
    assert (answer.status_code, "The team was withdrawn." in answer.text) == (422, True)
    with site.challenge.reading() as connection:
        assert connection.exec_driver_sql("select count(*) from descriptions").scalar() == 0


def test_prizes_are_seen_by_organisers_and_by_all_once_announced(site: ChallengeSite) -> None:
    anna, olga, nobody = logged_in(site, "anna"), logged_in(site, "olga"), browser(site)
    assert olga.get(f"/prizes/{HIDDEN}").status_code == 404  # no boards yet
    rows = [
        {
            "name": "Hand Surgeons",
            "team": 1,
            "number": 1,
            "rank": 1,
            "mean": 0.9,
            "below_line": False,
            "baseline": False,
        },
        {"name": "Bone Setters", "team": 2, "number": 1, "rank": 2, "mean": 0.1, "below_line": True, "baseline": False},
    ]
    more = {"institution": "Clinic", "eligible": True, "listed": True, "low": 0.0, "high": 1.0, "seconds": None}
    board = {
        "name": "technical",
        "title": "All questions",
        "facts": {"questions": 9},
        "rows": [row | more for row in rows],
    }
    with site.challenge.writing() as connection:
        connection.exec_driver_sql("insert into scorers (version, at, fingerprint, why) values (1, '', 'f', '')")
        content = {"phase": HIDDEN, "boards": [board], "given_away": None}
        connection.execute(boards.insert().values(phase=HIDDEN, scorer=1, content=content, at="2026-11-23T00:00:00"))
    for client in (anna, nobody):
        assert client.get(f"/prizes/{HIDDEN}").status_code == 404
        assert "/prizes/" not in client.get(f"/board/{HIDDEN}").text
    page = olga.get(f"/prizes/{HIDDEN}").text
    assert "no description of the method" in page
    assert f'href="/prizes/{HIDDEN}"' in olga.get(f"/board/{HIDDEN}").text
    described(anna, b"how it works")
    assert "1,000.00" not in olga.get(f"/prizes/{HIDDEN}").text
    assert "500.00 EUR" in olga.get(f"/prizes/{HIDDEN}").text  # half of the only board's money
    site.now.pass_by(days=60)  # type: ignore[attr-defined]
    page = nobody.get(f"/prizes/{HIDDEN}").text
    assert "Hand Surgeons" in page
    assert "Bone Setters" not in page
    assert "get 50, 30, 20 % of its money" in page
    assert "announced" in nobody.get(f"/board/{HIDDEN}").text
    assert browser(site).get("/prizes/test").status_code == 404


def test_what_counts_as_wrong_is_told_and_accepted(site: ChallengeSite) -> None:
    """By the real check, in its own process."""
    anna = logged_in(site, "anna")
    some = json.loads(answers(site))
    some[0]["latency"], some[1]["content"] = 31.0, "perhaps"
    assert handed(anna, json.dumps(some[:-1]).encode()).status_code == 303
    page = anna.get("/submission/1").text
    assert 'class="badge state-queued"' in page
    assert "3 answers count as wrong" in page
    assert f"Too late: <code>{some[0]['qID']}</code>" in page
    assert f"No answer: <code>{some[-1]['qID']}</code>" in page
    anna.post("/language", data={"csrf": csrf_of(anna.get("/")), "language": "de"})
    assert "3 Antworten zählen als falsch" in anna.get("/submission/1").text


def test_a_file_that_was_handed_in_before_needs_a_tick(site: ChallengeSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "check_upload", lambda *_: Admission())
    anna = logged_in(site, "anna")
    assert handed(anna, b"first").status_code == 303
    again = handed(anna, b"first")
    assert again.status_code == 409
    assert "The team has submitted this file in this phase before. It is number 1." in again.text
    assert '<input type="checkbox" name="again" value="yes">' in again.text
    assert "again" not in anna.get(f"/phase/{HIDDEN}").text.replace("Submit again", "")
    assert handed(anna, b"second").status_code == 303
    assert handed(anna, b"first", again="yes").status_code == 303
    with site.challenge.reading() as connection:
        assert len(submissions_of(connection, 1)) == 3


def test_nobody_registers_a_team_outside_the_dates(tmp_path: Path) -> None:
    site = challenge_site(tmp_path, {"baselines: []": "baselines: []\nteams: {closes: 2020-01-01T00:00:00Z}"})
    join(site, "dan", "participant")
    dan = logged_in(site, "dan")
    fields = {"name": "Late", "institution": "Clinic", "country": "AT", "terms": site.challenge.terms}
    answer = posted(dan, "/team", "/team", **fields)
    assert (answer.status_code, "Teams can't be registered now" in answer.text.replace("&#39;", "'")) == (422, True)
    site.engine.dispose()


def test_a_team_reads_why_it_is_disqualified(site: ChallengeSite) -> None:
    olga, page = logged_in(site, "olga"), "/organise/teams/1"
    assert posted(olga, f"{page}/disqualify", page, why=" ").status_code == 422
    assert posted(olga, f"{page}/disqualify", page, why="two accounts <b>", sure="yes").status_code == 303
    anna = logged_in(site, "anna")
    assert "Disqualified: two accounts &lt;b&gt;" in anna.get("/team").text
    assert "Disqualified: two accounts &lt;b&gt;" in olga.get(page).text
    assert posted(olga, f"{page}/readmit", page).status_code == 303
    assert "two accounts" not in anna.get("/team").text


def test_an_organiser_rules_on_a_description(site: ChallengeSite) -> None:
    anna, olga, page = logged_in(site, "anna"), logged_in(site, "olga"), "/organise/teams/1"
    ruling = f"{page}/description/{HIDDEN}"
    assert posted(olga, f"{ruling}/reject", page, why="too short").status_code == 404  # there is none
    described(anna, b"short")
    assert 'href="/description/1"' in olga.get(page).text
    assert posted(olga, f"{ruling}/reject", page, why="").status_code == 422
    assert posted(olga, f"{ruling}/reject", page, why="too short").status_code == 303
    assert "It does not suffice: too short" in anna.get(f"/phase/{HIDDEN}").text
    assert posted(olga, f"{ruling}/accept", page).status_code == 303
    assert "does not suffice" not in anna.get(f"/phase/{HIDDEN}").text
    assert posted(anna, f"{ruling}/reject", "/team", why="x").status_code in {403, 404}
