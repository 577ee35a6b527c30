"""The pages of teams: who registers, who joins, who withdraws, and what others see of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from starlette.testclient import TestClient

from proctor_challenge.pages.site import ChallengeSite
from proctor_challenge.teams import all_teams
from tests.support.challenge_site import challenge_site, handed, logged_in, posted, team_of_two
from tests.support.web_site import browser, join

ENTRY = {"name": "Hand Surgeons", "institution": "Clinic", "country": "at", "eligible": "yes", "listed": "yes"}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[ChallengeSite]:
    made = challenge_site(tmp_path, {"baselines: []": "teams: {excluded_countries: [IR]}"})
    yield made
    made.engine.dispose()


def register(site: ChallengeSite, client: TestClient, **other: str) -> httpx2.Response:
    return posted(client, "/team", "/team", **(ENTRY | {"terms": site.challenge.terms} | other))


def teams(site: ChallengeSite) -> list[str]:
    with site.reading() as connection:
        return [str(one["name"]) for one in all_teams(connection)]


def test_a_team_is_registered_and_joined_by_its_secret(site: ChallengeSite) -> None:
    for name in ("anna", "ben"):
        join(site, name, "participant")
    anna, ben = logged_in(site, "anna"), logged_in(site, "ben")
    assert "/team" in anna.get("/").text
    made = register(site, anna)
    secret = re.search(r"<code>([\w-]{40,})</code>", made.text)
    assert made.status_code == 200
    assert secret is not None
    assert secret[1] not in anna.get("/team").text, "it is shown once"
    assert posted(ben, "/team/join", "/team", secret=f" {secret[1]} ").status_code == 303
    assert "anna, ben" in ben.get("/team").text
    again = re.search(r"<code>([\w-]{40,})</code>", posted(anna, "/team/secret", "/team").text)
    assert again is not None
    join(site, "cleo", "participant")
    cleo = logged_in(site, "cleo")
    refused = posted(cleo, "/team/join", "/team", secret=secret[1])
    assert (refused.status_code, "No team has this join code" in refused.text) == (422, True)


REFUSED = {
    "terms": ({"terms": ""}, "Teams agree to the terms"),
    "other terms": ({"terms": "0" * 64}, "The terms have changed"),
    "a country": ({"country": "Austria"}, "A country is two letters"),
    "a country that is excluded": ({"country": "IR"}, "Teams from this country may not take part"),
    "no institution": ({"institution": " "}, "one line of at most 200 characters"),
    "a name of two scripts": ({"name": "Hаnd"}, "has letters of one script"),
    "a name that is taken": ({"name": "TRAY watchers"}, "already a team with this name"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_told_and_kept_in_the_form(site: ChallengeSite, case: str) -> None:
    said, told = REFUSED[case]
    team_of_two(site, "Tray Watchers", "cleo")
    join(site, "anna", "participant")
    answer = register(site, logged_in(site, "anna"), **said)
    assert (answer.status_code, told in answer.text) == (422, True)
    assert 'value="Clinic"' in answer.text or case == "no institution"
    assert teams(site) == ["Tray Watchers"]


def test_what_does_not_fit_is_told_in_the_language_of_the_account(site: ChallengeSite) -> None:
    join(site, "anna", "participant")
    anna = logged_in(site, "anna")
    assert posted(anna, "/language", "/", language="de").status_code == 303
    assert "Ein Land besteht aus zwei Buchstaben" in register(site, anna, country="Austria").text
    assert "Kein Team hat diesen Beitrittscode" in posted(anna, "/team/join", "/team", secret="x").text


def test_a_team_withdraws_when_it_is_sure(site: ChallengeSite) -> None:
    team_of_two(site, "Hand Surgeons", "anna")
    anna = logged_in(site, "anna")
    assert posted(anna, "/team/withdraw", "/team").status_code == 422
    assert "Submit</a>" in anna.get("/").text
    assert posted(anna, "/team/withdraw", "/team", sure="yes").status_code == 303
    assert "was withdrawn" in anna.get("/team").text
    assert "Submit</a>" not in anna.get("/").text
    assert posted(anna, "/team/join", "/team", secret="x").status_code == 422


def test_a_member_leaves_when_sure_and_sees_nothing_of_the_team_any_more(site: ChallengeSite) -> None:
    team_of_two(site, "Hand Surgeons", "anna", "ben")
    anna, ben = logged_in(site, "anna"), logged_in(site, "ben")
    assert handed(ben, b"{}").headers["location"] == "/submission/1"
    assert posted(ben, "/team/leave", "/team").status_code == 422
    assert "anna, ben" in anna.get("/team").text
    assert "You are the last member" not in ben.get("/team").text
    assert posted(ben, "/team/leave", "/team", sure="yes").headers["location"] == "/team"
    assert "Register the team" in ben.get("/team").text
    assert ben.get("/submission/1").status_code == 404
    assert anna.get("/submission/1").status_code == 200
    assert posted(ben, "/team/leave", "/team", sure="yes").status_code == 404
    assert "You are the last member" in anna.get("/team").text
    assert posted(anna, "/team/leave", "/team", sure="yes").status_code == 303
    assert teams(site) == ["Hand Surgeons"]


def test_an_organiser_removes_adds_and_moves_members(site: ChallengeSite) -> None:
    first, second = team_of_two(site, "Hand Surgeons", "anna", "ben"), team_of_two(site, "Tray Watchers", "cleo")
    join(site, "olga", "organiser")
    olga = logged_in(site, "olga")
    assert f'href="/organise/teams/{first}"' in olga.get("/organise/teams").text
    page = f"/organise/teams/{first}"
    remove = re.search(
        r'action="(/organise/teams/\d+/members/\d+/remove)".*?<span>ben<', olga.get(page).text, re.DOTALL
    )
    assert remove is not None
    ben = re.findall(r"members/(\d+)/remove", olga.get(page).text)[1]
    assert posted(olga, f"{page}/members/{ben}/remove", page).status_code == 303
    assert posted(olga, f"{page}/members/{ben}/remove", page).status_code == 404
    assert "<span>ben<" not in olga.get(page).text
    there = f"/organise/teams/{second}"
    assert posted(olga, f"{there}/members", there, name="ben").status_code == 303
    assert posted(olga, f"{there}/members", there, name=" Anna ").status_code == 303
    assert re.findall(r"<span>(\w+)<", olga.get(there).text) == ["anna", "ben", "cleo"]
    assert "has no members" in olga.get(page).text
    for name, told in (("nobody", "no account"), ("olga", "Only participants"), ("ben", "already in a team")):
        refused = posted(olga, f"{there}/members", there, name=name)
        assert (refused.status_code, told in refused.text) == (422, True), name
    assert posted(olga, "/organise/teams/99/members", there, name="ben").status_code == 404
    assert olga.get("/organise/teams/99").status_code == 404


def test_only_organisers_change_who_is_in_a_team(site: ChallengeSite) -> None:
    team = team_of_two(site, "Hand Surgeons", "anna")
    join(site, "ben", "participant")
    for name in ("anna", "ben"):
        client = logged_in(site, name)
        assert client.get(f"/organise/teams/{team}").status_code == 404
        assert posted(client, f"/organise/teams/{team}/members", name="ben").status_code == 404
        assert posted(client, f"/organise/teams/{team}/members/1/remove").status_code == 404


def test_teams_are_for_participants(site: ChallengeSite) -> None:
    join(site, "olga", "organiser")
    olga = logged_in(site, "olga")
    assert olga.get("/team").status_code == 404
    assert posted(olga, "/team", **ENTRY).status_code == 404
    assert browser(site).get("/team").headers["location"] == "/login?next=%2Fteam"
    assert browser(site).get("/terms").status_code == 200


def test_what_a_team_says_is_text(site: ChallengeSite) -> None:
    join(site, "anna", "participant")
    anna = logged_in(site, "anna")
    hostile = "<script>alert(1)</script>{{ 7 * 191 }}"
    assert register(site, anna, institution=hostile).status_code == 200
    shown = anna.get("/team").text
    assert "<script>alert" not in shown
    assert "&lt;script&gt;" in shown
    assert "1337" not in shown
