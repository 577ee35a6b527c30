"""Boards and results on the pages of a challenge whose submissions were marked: who sees what of whom, and in which
order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, insert, select, update

from proctor_challenge import schema
from proctor_challenge.board_charts import in_order
from proctor_challenge.boards import BoardFigure, Figures
from proctor_challenge.challenge import Challenge
from proctor_challenge.pages.site import ChallengeSite
from proctor_challenge.receipts import issue_receipts, verify_receipt, write_public_key
from proctor_challenge.states import SubmissionState
from tests.support.challenge_site import HIDDEN, challenge_site, logged_in, posted, team_of_two
from tests.support.web_site import browser, join

MEANS = {"Hand Surgeons": 0.8125, "Tray Watchers": 0.75, "Bone Setters": 0.5}
PEOPLE = {"Hand Surgeons": "anna", "Tray Watchers": "cleo", "Bone Setters": "dan"}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[ChallengeSite]:
    """Three teams with a result each; the second is not listed, the third gets no awards. Boards are as they are
    kept."""
    made = challenge_site(tmp_path)
    for team, person in PEOPLE.items():
        more = {"listed": team != "Tray Watchers", "eligible": team != "Bone Setters"}
        scored(made, team_of_two(made, team, person, **more), MEANS[team])
    join(made, "olga", "organiser")
    publish(made)
    yield made
    made.engine.dispose()


def scored(site: ChallengeSite, team: int, mean: float, phase: str = HIDDEN, number: int = 1) -> int:
    """A submission of a team with this mean, as the scorer would leave it."""
    now = site.now().isoformat()
    board = BoardFigure(name="technical", title="All questions", mean=mean, low=mean - 0.1, high=mean + 0.1, questions=20,
                        groups=2, above=mean > 0.6, percent=True)  # fmt: skip
    row = {"team": team, "account": team, "phase": phase, "number": number, "kind": "file", "name": f"try {team}",
           "upload": "0" * 64, "bytes": 9, "seed": 1, "state": SubmissionState.SCORED.value, "fault": "nobody",
           "attempted": 1, "scored": 1, "submitted": now, "changed": now}  # fmt: skip
    figures = Figures(boards=(board,), statuses={"readable": 19, "timed_out": 1})
    with site.writing() as connection:
        made = int(
            connection.execute(insert(schema.submissions).values(row).returning(schema.submissions.c.id)).scalar_one()
        )
        if connection.execute(select(schema.scorers)).first() is None:
            connection.execute(insert(schema.scorers).values(version=1, at=now, fingerprint="f", why=""))
        said = figures.model_dump(mode="json")
        connection.execute(insert(schema.results).values(submission=made, scorer=1, figures=said, at=now))
    return made


def board_row(name: str, mean: float | None, **more: Any) -> dict[str, Any]:
    known = mean is not None
    row = {"name": name, "mean": mean, "low": mean - 0.1 if known else None, "high": mean + 0.1 if known else None}  # type: ignore[operator]
    return row | {"baseline": False, "rank": 1, "institution": "Clinic", "below_line": None, "mine": False} | more


SPREAD = {name: {"optimism": 0.0123, "error": 0.001} for name in ("luck", "attack")}
AWAY = {"rule": "all", "questions": 20, "groups": 2, "icc": 0.1,
        "rows": [{"who": who, "results": 3, "all": SPREAD, "ladder": SPREAD} for who in ("one team", "all teams")]}  # fmt: skip


def publish(site: ChallengeSite, phase: str = HIDDEN) -> None:
    with site.reading() as connection:
        teams = connection.execute(select(schema.teams).order_by(schema.teams.c.id)).mappings().all()
    rows = [
        board_row(one["name"], round(MEANS[one["name"]], 3), team=one["id"], number=1, rank=index,
                  listed=bool(one["listed"]), eligible=bool(one["eligible"]), p_first=0.9 if index == 1 else 0.1,
                  rank_low=1, rank_high=2, resampled_rank_low=index, resampled_rank_high=index, seconds=None)
        for index, one in enumerate(teams, start=1)
    ]  # fmt: skip
    rows.append({"name": "plain", "mean": 0.6, "low": 0.5, "high": 0.7, "rank": None, "baseline": True})
    board = {"name": "technical", "title": "All questions", "facts": {"questions": 20, "groups": 2}, "rows": rows}
    content = {"phase": phase, "boards": [board], "given_away": AWAY}
    with site.writing() as connection:
        row = {"phase": phase, "scorer": 1, "content": content, "at": site.now().isoformat()}
        connection.execute(insert(schema.boards).values(row))


def names_on(page: str) -> list[str]:
    return [re.sub(r"\s+", " ", one).strip() for one in re.findall(r'<th scope="row">([^<]*)', page)]


def test_the_public_sees_teams_in_order_with_the_baseline_at_its_place(site: ChallengeSite) -> None:
    page = browser(site).get(f"/board/{HIDDEN}").text
    assert names_on(page) == ["Hand Surgeons", "a team that is not listed", "plain", "Bone Setters"]
    assert "Tray Watchers" not in page
    assert "not eligible for awards" not in page
    assert page.count('class="track c0"') == 4  # a row of the chart for each, on one axis
    assert "81.2 %" in page
    assert "81.25" not in page
    assert "best baseline: plain 60.0 %" in page
    assert "90.0 %" in page
    assert f"/board/{HIDDEN}" in browser(site).get("/").text


def test_a_team_sees_its_own_name_and_organisers_see_all(site: ChallengeSite) -> None:
    cleos = logged_in(site, "cleo").get(f"/board/{HIDDEN}").text
    assert names_on(cleos)[1] == "Tray Watchers"
    assert "your team" in cleos
    olgas = logged_in(site, "olga").get(f"/board/{HIDDEN}").text
    assert names_on(olgas)[1] == "Tray Watchers"
    assert ("not listed" in olgas, "not eligible for awards" in olgas) == (True, True)


POLICIES = {
    "organisers": {"stranger": 404, "anna": 404, "olga": 200},
    "participants": {"stranger": 404, "anna": 200, "olga": 200},
    "public": {"stranger": 200, "anna": 200, "olga": 200},
}


@pytest.mark.parametrize("policy", POLICIES)
def test_boards_and_results_are_for_whom_the_phase_says(site: ChallengeSite, policy: str) -> None:
    seen = set_results(site, boards=policy)
    for name, status in POLICIES[policy].items():
        client = browser(seen) if name == "stranger" else logged_in(seen, name)
        assert client.get(f"/board/{HIDDEN}").status_code == status, name
        assert (f"/board/{HIDDEN}" in client.get("/").text) == (status == 200), name
    own = logged_in(seen, "anna").get("/submission/1").text
    assert ("81.2 %" in own) == (policy != "organisers")
    assert ("not shown yet" in own) == (policy == "organisers")
    assert "81.25 %" in logged_in(seen, "olga").get("/submission/1").text, "organisers see it as it is"


def test_before_its_day_organisers_alone_see_a_board(site: ChallengeSite) -> None:
    later = site.now() + timedelta(days=1)
    early = set_results(site, shown_from=later)
    assert browser(early).get(f"/board/{HIDDEN}").status_code == 404
    assert "81.2" not in logged_in(early, "anna").get("/submissions").text
    assert logged_in(early, "olga").get(f"/board/{HIDDEN}").status_code == 200
    now = replace(early, now=lambda: later, challenge=replace(early.challenge, now=lambda: later))
    assert browser(now).get(f"/board/{HIDDEN}").status_code == 200


def set_results(site: ChallengeSite, **policy: Any) -> ChallengeSite:
    """The same site under another policy for its results."""
    settings = site.challenge.settings
    phases = tuple(
        one.model_copy(update={"results": one.results.model_copy(update=policy)}) if one.name == HIDDEN else one
        for one in settings.phases
    )
    challenge = replace(site.challenge, settings=settings.model_copy(update={"phases": phases}))
    return replace(site, challenge=challenge)


def test_a_result_that_the_ladder_holds_back_is_not_told(site: ChallengeSite) -> None:
    with site.writing() as connection:
        figures = connection.execute(
            select(schema.results.c.figures).where(schema.results.c.submission == 1)
        ).scalar_one()
        connection.execute(insert(schema.scorers).values(version=2, at="", fingerprint="g", why=""))
        held = figures | {"shown": False}
        connection.execute(insert(schema.results).values(submission=1, scorer=2, figures=held, at=""))
    anna = logged_in(site, "anna")
    for path in ("/submission/1", "/submission/1/state", "/submissions", f"/phase/{HIDDEN}"):
        assert "81." not in anna.get(path).text, path
    assert "81.25 %" in logged_in(site, "olga").get("/submission/1").text


def test_organisers_alone_see_what_a_phase_has_given_away(site: ChallengeSite) -> None:
    told = "What this phase has given away"
    assert told in (page := logged_in(site, "olga").get(f"/board/{HIDDEN}").text)
    assert "+0.012" in page
    assert told not in logged_in(site, "anna").get(f"/board/{HIDDEN}").text
    assert told not in browser(site).get(f"/board/{HIDDEN}").text


def test_what_is_not_known_of_a_metric_is_said(site: ChallengeSite, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"who": who, "results": 3, "all": None, "ladder": None} for who in ("one team", "all teams")]
    monkeypatch.setitem(AWAY, "rows", rows)
    publish(site)
    page = logged_in(site, "olga").get(f"/board/{HIDDEN}").text
    assert page.count(">not known<") == 8
    assert "shares of right answers only" in page


def test_a_receipt_is_for_those_who_see_the_result_and_verifies(site: ChallengeSite, tmp_path: Path) -> None:
    assert browser(site).get("/receipt-key.txt").status_code == 404
    worker = Challenge.open(site.folder, "worker")
    write_public_key(worker.sealed)
    with worker.writing() as connection:
        issue_receipts(connection, worker, worker.sealed, HIDDEN)
    worker.close()
    anna = logged_in(site, "anna")
    assert "/submission/1/receipt" in anna.get("/submission/1").text
    handed_out = anna.get("/submission/1/receipt")
    file = tmp_path / "receipt.json"
    file.write_bytes(handed_out.content)
    key = browser(site).get("/receipt-key.txt").text.strip()
    assert verify_receipt(file, key).team == "Hand Surgeons"
    assert 'filename="receipt-pre-evaluation-1-1.json"' in handed_out.headers["content-disposition"]
    assert logged_in(site, "cleo").get("/submission/1/receipt").status_code == 404
    hidden = set_results(site, boards="organisers")
    assert logged_in(hidden, "anna").get("/submission/1/receipt").status_code == 404
    assert logged_in(hidden, "olga").get("/submission/1/receipt").status_code == 200


def test_the_gate_opens_for_teams_above_the_baselines(site: ChallengeSite) -> None:
    passed, stopped = logged_in(site, "anna").get("/phase/test").text, logged_in(site, "dan").get("/phase/test").text
    assert "Submit</button>" in passed
    assert "Submit</button>" not in stopped
    assert "has not passed the previous phase" in stopped


def test_an_organiser_rules_and_the_team_is_told(site: ChallengeSite) -> None:
    olga, anna = logged_in(site, "olga"), logged_in(site, "anna")
    assert posted(anna, "/submission/1/disqualify", why="x").status_code == 404
    assert posted(olga, "/submission/1/disqualify", why=" ").status_code == 422
    asked = posted(olga, "/submission/1/disqualify", why="It speaks to the judge <b>")
    assert asked.status_code == 200
    assert "leaves the boards" in asked.text
    assert 'name="why" value="It speaks to the judge &lt;b&gt;"' in asked.text
    assert "Disqualified" not in anna.get("/submission/1").text, "it was only asked"
    assert posted(olga, "/submission/1/disqualify", why="It speaks to the judge <b>", sure="yes").status_code == 303
    assert "Disqualified: It speaks to the judge &lt;b&gt;" in anna.get("/submission/1").text
    assert "disqualified" in anna.get("/submissions").text
    assert "Submit</button>" not in anna.get("/phase/test").text, "it counts for the gate no more"
    assert posted(olga, "/submission/1/reinstate").status_code == 303
    assert "Disqualified" not in anna.get("/submission/1").text
    assert posted(olga, "/submission/99/disqualify", why="x").status_code == 404
    assert posted(olga, "/submission/99/disqualify", why="x", sure="yes").status_code == 404
    trail = olga.get("/organise/trail").text
    assert "disqualify" in trail
    assert "reinstate" in trail


def test_an_organiser_sees_and_rules_on_teams(site: ChallengeSite) -> None:
    olga, anna = logged_in(site, "olga"), logged_in(site, "anna")
    page = olga.get("/organise/teams").text
    assert names_on(page) == ["Bone Setters", "Hand Surgeons", "Tray Watchers"]
    for change in ("withdraw", "readmit", "eligible"):
        assert posted(anna, f"/organise/teams/1/{change}").status_code == 404
        assert posted(olga, f"/organise/teams/99/{change}").status_code == 404
    asked = posted(olga, "/organise/teams/1/withdraw")
    assert (
        asked.status_code,
        "the boards, and the team cannot submit" in asked.text,
        'class="danger"' in asked.text,
    ) == (200, True, True)
    assert "was withdrawn" not in anna.get("/team").text, "it was only asked"
    assert posted(olga, "/organise/teams/1/withdraw", sure="yes").status_code == 303
    assert "was withdrawn" in anna.get("/team").text
    assert posted(olga, "/organise/teams/1/readmit").status_code == 303
    assert "was withdrawn" not in anna.get("/team").text
    assert posted(olga, "/organise/teams/1/eligible").status_code == 303
    with site.reading() as connection:
        assert connection.execute(select(schema.teams.c.eligible).where(schema.teams.c.id == 1)).scalar() == 0


def test_the_overview_shows_the_queue_and_closes_a_phase(site: ChallengeSite) -> None:
    with site.writing() as connection:
        lease = {"state": "running", "worker": "machine-7", "lease_until": 0.0}
        connection.execute(update(schema.submissions).where(schema.submissions.c.id == 2).values(lease))
    olga, anna = logged_in(site, "olga"), logged_in(site, "anna")
    page = olga.get("/organise/").text
    assert ("Queue (1)" in page, "machine-7" in page) == (True, True)
    assert "machine-7" not in anna.get("/submissions").text
    found = olga.get(f"/organise/submissions?phase={HIDDEN}&state=running").text
    assert names_on(found) == [""]
    assert "try 2" in found
    assert "try 1" not in found
    assert posted(anna, f"/organise/phase/{HIDDEN}/close").status_code == 404
    asked = posted(olga, f"/organise/phase/{HIDDEN}/close")
    assert (asked.status_code, "1 submission that waits or runs is still scored" in asked.text) == (200, True)
    assert "Submit</button>" in anna.get(f"/phase/{HIDDEN}").text, "it was only asked"
    assert posted(olga, f"/organise/phase/{HIDDEN}/close", sure="yes").status_code == 303
    assert posted(olga, f"/organise/phase/{HIDDEN}/close").status_code == 409
    assert "Submit</button>" not in anna.get(f"/phase/{HIDDEN}").text
    with site.writing() as connection:
        connection.execute(delete(schema.boards))
    assert browser(site).get(f"/board/{HIDDEN}").status_code == 404


def test_baselines_stand_where_their_mean_puts_them() -> None:
    rows = [board_row("a", 0.9), board_row("b", 0.5), board_row("c", None), board_row("x", 0.7, baseline=True),
            board_row("y", 0.95, baseline=True), board_row("z", None, baseline=True), board_row("w", 0.5, baseline=True)]  # fmt: skip
    assert [one["name"] for one in in_order({"facts": {}, "rows": rows})] == ["y", "a", "x", "w", "b", "c", "z"]
    fewer = {"facts": {"higher_is_better": False}, "rows": [board_row("b", 0.5), board_row("a", 0.9), rows[3]]}
    assert [one["name"] for one in in_order(fewer)] == ["b", "x", "a"]
