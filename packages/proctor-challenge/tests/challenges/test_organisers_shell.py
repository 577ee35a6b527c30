"""All that an organiser does, from the shell: teams, submissions, receipts, descriptions, questions of a phase that was
added by hand; each with its entry in the trail."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from proctor.core import InfrastructureError
from proctor_challenge import opening, uploads
from proctor_challenge.admission import Admission
from proctor_challenge.board_pages import publish
from proctor_challenge.challenge import Challenge
from proctor_challenge.containers import ProcessExecutor
from proctor_challenge.descriptions import DAILY, DescriptionError, describe, description_of
from proctor_challenge.folder import NewChallenge, check_challenge, new_challenge
from proctor_challenge.opening import open_phase
from proctor_challenge.states import PhaseState, set_phase
from proctor_challenge.submissions import IdenticalError
from proctor_challenge.uploads import submit_file
from tests.support.challenge_data import focus_data
from tests.support.hosted import challenge_folder, opened, team
from tests.support.program import proctor
from tests.support.scored_challenge import PHASE, Hosted, answers, copied

TERMS = "terms: public/terms.md\n"


@pytest.fixture(scope="module")
def hosted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosted]:
    found = Hosted(tmp_path_factory.mktemp("shell") / "c", videos=4, baseline=0.5)
    for name, skill in (("Alpha", 0.9), ("Beta", 0.3)):
        found.submit(team(found.challenge, name), skill)
    publish(found.challenge, PHASE)
    yield found
    found.challenge.close()


@pytest.fixture
def folder(hosted: Hosted, tmp_path: Path) -> Path:
    own = copied(hosted.challenge, tmp_path / "c")
    own.close()
    return own.folder


@pytest.fixture
def _unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "check_upload", lambda *_: Admission())


def said(*words: object, code: int = 0) -> str:
    """What a command of `proctor challenge` prints, or `proctor check`."""
    done = proctor(*([] if words[:2] == ("check", "receipt") else ["challenge"]), *map(str, words))
    assert done.returncode == code, (done.stdout, done.stderr)
    return done.stdout if code in {0, 3} else done.stdout + done.stderr


def rows(*words: object) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(said(*words, "--format", "json"))
    return found


def actions(folder: Path) -> list[str]:
    return [row["action"] for row in json.loads(proctor("serve", "users", "trail", folder, "--format", "json").stdout)]


# Teams


def test_a_team_is_added_changed_and_withdrawn(folder: Path) -> None:
    new = ("team", "add", folder, "Hand Surgeons", "--institution", "Clinic", "--country", "at")
    assert "--agreed is missing. Give it if the team agreed to the terms" in said(*new, code=2)
    told = said(*new, "--agreed", "--not-eligible")
    assert told.startswith("Hand Surgeons is registered. Its members join with the code ")
    assert "found 'Hand Surgeons', which there is already" in said(*new, "--agreed", code=1)
    found = {row["name"]: row for row in rows("team", "list", folder)}
    assert (found["Hand Surgeons"]["country"], found["Hand Surgeons"]["eligible"]) == ("AT", False)
    assert said("team", "eligible", folder, "hand surgeons") == "Hand Surgeons is eligible for awards\n"
    assert said("team", "code", folder, "Alpha").startswith("Members of Alpha join with the code ")
    assert "--why is missing. Give the reason" in said("team", "disqualify", folder, "Beta", code=2)
    assert said("team", "disqualify", folder, "Beta", "--why", "two accounts") == "Beta is disqualified\n"
    assert said("team", "withdraw", folder, "Alpha") == "Alpha is withdrawn\n"
    found = {row["name"]: row for row in rows("team", "list", folder)}
    assert (found["Beta"]["disqualified"], bool(found["Beta"]["withdrawn"])) == ("two accounts", True)
    assert (found["Alpha"]["disqualified"], bool(found["Alpha"]["withdrawn"])) == ("", True)
    file = answers(folder, folder / "a.json", 0.5, seed=3)
    assert "The team was withdrawn." in said("submission", "add", folder, PHASE, "Beta", "--file", file, code=1)
    assert said("team", "readmit", folder, "Beta") == "Beta is readmitted\n"
    assert rows("team", "list", folder)[1]["disqualified"] == ""
    assert "Disqualified" not in said("team", "list", folder)
    assert "expected one of Alpha, Beta, Hand Surgeons" in said("team", "withdraw", folder, "Gama", code=1)
    assert "did you mean" in said("team", "readmits", folder, "Beta", code=2)
    assert actions(folder)[-6:] == [
        *("register team", "set eligible", "new join secret", "withdraw team", "withdraw team", "readmit team")
    ]


def test_members_join_move_and_leave(folder: Path) -> None:
    for name in ("anna", "ben"):
        assert proctor("serve", "users", "add", folder, name, "--role", "participant").returncode == 0
    assert proctor("serve", "users", "add", folder, "olga", "--role", "organiser").returncode == 0
    assert said("team", "join", folder, "Alpha", "--member", "anna") == "anna is a member of Alpha\n"
    assert said("team", "join", folder, "Alpha", "--member", "ben") == "ben is a member of Alpha\n"
    assert said("team", "join", folder, "Beta", "--member", "ben") == "ben is a member of Beta\n"
    assert [row["members"] for row in rows("team", "list", folder)] == [["anna"], ["ben"]]
    assert "found organiser, expected a participant" in said("team", "join", folder, "Beta", "--member", "olga", code=1)
    assert "found 'anna', expected a member of the team" in said(
        "team", "remove", folder, "Beta", "--member", "anna", code=1
    )
    assert "--member is missing. Give the name of an account" in said("team", "remove", folder, "Beta", code=2)
    assert said("team", "remove", folder, "Alpha", "--member", "anna") == "anna is no longer a member of Alpha\n"
    assert actions(folder)[-5:] == ["add member", "add member", "remove member", "add member", "remove member"]


def test_registration_has_dates_for_all_but_organisers(tmp_path: Path) -> None:
    text = "\nteams: {opens: 2026-12-01T00:00:00Z, closes: 2026-12-08T00:00:00Z}\n"
    folder = challenge_folder(tmp_path)
    file = folder / "challenge.yaml"
    file.write_text(file.read_text() + text)
    challenge = opened(folder)
    rules = challenge.settings.teams
    assert [rules.registers(challenge.now())] == [False]
    assert team(challenge, "By an organiser") == 1
    challenge.now.pass_by(days=9)  # type: ignore[attr-defined]
    assert rules.registers(challenge.now())
    challenge.now.pass_by(days=7)  # type: ignore[attr-defined]
    assert not rules.registers(challenge.now())
    challenge.close()


# Submissions


def test_submissions_are_listed_cancelled_disqualified_and_reinstated(folder: Path) -> None:
    file = folder / "late.json"
    asked = json.loads((folder / "public" / PHASE / "requests.json").read_text())
    file.write_text(json.dumps([{"qID": one["qID"], "content": "yes", "latency": 31} for one in asked[:-2]]))
    told = said("submission", "add", folder, PHASE, "Alpha", "--file", file).splitlines()
    assert told[0] == f"wrong: late: {asked[0]['qID']}: found 31.000 s, expected at most 30 s"
    assert told[-1] == f"Alpha#2 was queued; {len(asked)} questions counted as wrong"
    (folder / "bad.json").write_text("[")
    refused = said("submission", "add", folder, PHASE, "alpha", "--file", folder / "bad.json", code=1)
    assert "the end of the file: it is cut off" in refused
    assert "alpha#3 was refused" in refused
    found = rows("submission", "list", folder)
    assert [(row["submission"], row["state"], row["wrong"]) for row in found] == [
        *(
            ("Alpha#1", "scored", 0),
            ("Beta#1", "scored", 0),
            ("Alpha#2", "queued", len(asked)),
            ("Alpha#3", "refused", 0),
        )
    ]
    assert len(found[3]["problems"]) == 1
    assert [row["submission"] for row in rows("submission", "list", folder, PHASE, "--team", "beta")] == ["Beta#1"]
    assert [row["submission"] for row in rows("submission", "list", folder, "--state", "queued")] == ["Alpha#2"]
    assert "state: found 'qeued', expected one of received" in said(
        "submission", "list", folder, "--state", "qeued", code=1
    )
    assert "phase: found 'p', expected one of" in said("submission", "list", folder, "p", code=1)
    assert said("submission", "cancel", folder, PHASE, "Alpha#2") == "Alpha#2 is cancelled\n"
    assert "it can't be cancelled now" in said("submission", "cancel", folder, PHASE, "Alpha#2", code=1)
    assert "--why" in said("submission", "disqualify", folder, PHASE, "Beta#1", code=2)
    assert said("submission", "disqualify", folder, PHASE, "Beta#1", "--why", "copied") == "Beta#1 is disqualified\n"
    assert rows("submission", "list", folder, "--team", "Beta")[0]["disqualified"] == "copied"
    assert "copied" in said("submission", "list", folder)
    assert said("submission", "reinstate", folder, PHASE, "beta#1") == "beta#1 is reinstated\n"
    assert "found '#1', expected TEAM#NUMBER" in said("submission", "cancel", folder, PHASE, "#1", code=1)
    assert "found #9, expected a submission of Beta" in said("submission", "cancel", folder, PHASE, "Beta#9", code=1)
    assert actions(folder)[-2:] == ["disqualify", "reinstate"]


@pytest.mark.usefixtures("_unchecked")
def test_an_identical_file_is_told_before_it_costs_a_result(folder: Path) -> None:
    file = answers(folder, folder / "a.json", 0.5, seed=3)
    assert said("submission", "add", folder, PHASE, "Alpha", "--file", file) == "Alpha#2 was queued\n"
    told = said("submission", "add", folder, PHASE, "alpha", "--file", file, code=1)
    assert told == (
        "proctor: The team has submitted this file in this phase before. It is number 2 (queued); --again submits it "
        "again, for another result.\n"
    )
    assert (
        said("submission", "add", folder, PHASE, "Beta", "--file", file) == "Beta#2 was queued\n"
    )  # another team's own
    assert said("submission", "add", folder, PHASE, "Alpha", "--file", file, "--again") == "Alpha#3 was queued\n"
    for number in (2, 3):
        said("submission", "cancel", folder, PHASE, f"Alpha#{number}")
    assert (
        said("submission", "add", folder, PHASE, "Alpha", "--file", file) == "Alpha#4 was queued\n"
    )  # none of them has a result
    challenge = Challenge.open(folder, "organiser")
    with pytest.raises(IdenticalError) as caught:
        submit_file(challenge, PHASE, "Alpha", file)
    assert (caught.value.number, caught.value.state) == (4, "queued")
    challenge.close()


def test_a_receipt_is_printed_and_verified(folder: Path, tmp_path: Path) -> None:
    public = folder / "public"
    challenge = Challenge.open(folder, "organiser")
    publish(challenge, PHASE)
    open_phase(challenge, PHASE, None)
    challenge.close()
    printed = json.loads(said("submission", "receipt", folder, PHASE, "Alpha#1"))
    out = tmp_path / "receipt.json"
    assert said("submission", "receipt", folder, PHASE, "alpha#1", "--out", out) == f"{out} written\n"
    assert json.loads(out.read_text()) == printed
    assert "found a file that is there" in said("submission", "receipt", folder, PHASE, "alpha#1", "--out", out, code=1)
    assert said("check", "receipt", out, "--option", f"key={public / 'receipt-key.txt'}").startswith(
        "Signed by this challenge, and unchanged."
    )
    file = folder / "bad.json"
    file.write_text("[")
    said("submission", "add", folder, PHASE, "Alpha", "--file", file, code=1)
    assert "found no receipt (refused), expected a result" in said(
        "submission", "receipt", folder, PHASE, "Alpha#2", code=1
    )


@pytest.mark.parametrize("name", ["nothing.json", "folder"])
def test_a_receipt_that_is_not_there_is_one_line(folder: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    told = said("check", "receipt", tmp_path / name, "--option", f"key={'0' * 64}", code=1)
    assert told.startswith(f"proctor: {tmp_path / name}: found ")
    assert told.count("\n") == 1
    binary = tmp_path / "key.bin"
    binary.write_bytes(b"\xff\xfe")
    assert "found text that is not UTF-8" in said(
        "check", "receipt", tmp_path / name, "--option", f"key={binary}", code=1
    )


@pytest.mark.parametrize("given", [("test",), ("test", "Alpha"), ("test", "--file", "a.json"), ("--team", "Alpha")])
def test_a_submission_is_added_for_a_team_and_from_a_file(given: tuple[str, ...], tmp_path: Path) -> None:
    told = said("submission", "add", tmp_path, *given, code=2)
    example = "proctor challenge submission add DIR test Alpha --file answers.json"
    assert told == f"proctor: PHASE, TEAM and --file are needed. Example: {example}\n"
    assert list(tmp_path.iterdir()) == []


# Descriptions


def test_a_description_is_handed_in_saved_and_ruled_on(folder: Path, tmp_path: Path) -> None:
    method, out = tmp_path / "method.pdf", tmp_path / "saved.pdf"
    method.write_bytes(b"%PDF-1.7\n<script>alert(1)</script>\n%%EOF\n")
    one = ("team", "describe", folder, "Alpha", "--phase", PHASE)
    assert "--file is missing. Give the description" in said(*one, code=2)
    assert said(*one, "--file", method) == f"Alpha handed in a description for {PHASE}\n"
    assert rows("team", "list", folder)[0]["described"] == [PHASE]
    assert (
        said("team", "save-description", folder, "alpha", "--phase", PHASE, "--file", out)
        == f"{out} written: pdf, {method.stat().st_size} bytes\n"
    )
    assert out.read_bytes() == method.read_bytes()
    assert "found a file that is there" in said(
        "team", "save-description", folder, "alpha", "--phase", PHASE, "--file", out, code=1
    )
    assert "--why" in said("team", "reject-description", folder, "Alpha", "--phase", PHASE, code=2)
    told = said("team", "reject-description", folder, "Alpha", "--phase", PHASE, "--why", "no data named")
    assert told == f"The description of Alpha for {PHASE} does not suffice\n"
    assert rows("team", "list", folder)[0]["described"] == []
    assert (
        said("team", "accept-description", folder, "Alpha", "--phase", PHASE)
        == f"The description of Alpha for {PHASE} suffices\n"
    )
    assert "found none, expected one of this team" in said(
        "team", "accept-description", folder, "Beta", "--phase", PHASE, code=1
    )
    assert actions(folder)[-3:] == ["submit description", "rule on description", "rule on description"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"GIF89a\xff\xfe", "found another kind of file"),
        (b"%PDF-1.4 cut off \xff", "found another kind of file"),
        (b"a\x00b", "found control characters"),
        (b"\x1b[2J", "found control characters"),
        (b" \n\t ", "found no text"),
        (b"", "found no text"),
    ],
)
def test_what_is_no_description(folder: Path, tmp_path: Path, content: bytes, problem: str) -> None:
    file = tmp_path / "method"
    file.write_bytes(content)
    assert problem in said("team", "describe", folder, "Alpha", "--phase", PHASE, "--file", file, code=1)


def test_descriptions_have_limits_and_the_last_one_counts(folder: Path, tmp_path: Path) -> None:
    settings = folder / "challenge.yaml"
    settings.write_text(settings.read_text() + "uploads: {description: 1k}\n")
    challenge = opened(folder)
    file = tmp_path / "method.md"
    file.write_text("x" * 1025)
    with pytest.raises(DescriptionError, match="found 1,025 bytes, expected at most 1k"):
        describe(challenge, PHASE, "Alpha", file)
    for number in range(DAILY):
        file.write_text(f"version {number} <b>")
        describe(challenge, PHASE, "Alpha", file)
    kept = list((challenge.uploads / "descriptions").iterdir())
    assert [one.read_text() for one in kept] == [f"version {DAILY - 1} <b>"]  # the former ones are deleted
    with pytest.raises(DescriptionError, match="found 20 in 24 hours"):
        describe(challenge, PHASE, "Alpha", file)
    with challenge.reading() as connection:
        row = description_of(connection, challenge.phase(PHASE), 1)
    assert row is not None
    assert (row["kind"], row["name"]) == ("text", "method.md")
    describe(challenge, PHASE, "Beta", file)  # the same bytes of another team
    challenge.now.pass_by(days=1)  # type: ignore[attr-defined]
    file.write_text("another")
    describe(challenge, PHASE, "Alpha", file)
    assert len(list((challenge.uploads / "descriptions").iterdir())) == 2
    challenge.close()


# Phases


def test_the_questions_of_a_phase_that_was_added_by_hand(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    new_challenge(folder, NewChallenge("focus", focus_data(tmp_path / "d"), pre_evaluation=3, test=5))
    settings = yaml.safe_load((folder / "challenge.yaml").read_text())
    test = settings["phases"][1]
    assert said("phase", "questions", folder, "test") == "public/test: 100 questions without references\n"
    test |= {"questions": "public/test", "accepts": ["file"]}
    (folder / "challenge.yaml").write_text(yaml.safe_dump(settings))
    assert check_challenge(folder).problems == ()
    assert not (folder / "public/test/references.json").exists()
    assert "expected a new or an empty folder" in said("phase", "questions", folder, "test", code=1)
    assert "phase: found 'tset', expected one of pre-evaluation, test" in said(
        "phase", "questions", folder, "tset", code=1
    )
    test["questions"] = "public/other"  # not there yet: other commands refuse the folder
    (folder / "challenge.yaml").write_text(yaml.safe_dump(settings))
    assert "found nothing at 'public/other'" in said("check", folder, code=1)
    assert said("phase", "questions", folder, "test").startswith("public/other: 100 questions")
    assert said("check", folder).endswith("Nothing is wrong.\n")


def test_a_challenge_of_files_needs_no_containers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    data, folder = focus_data(tmp_path / "d"), tmp_path / "c"
    told = said("new", folder, "focus", "--data", data, "--pre-evaluation", 3, "--test", 5, "--files-only")
    assert told == "pre-evaluation: 60 questions\ntest: 100 questions\n"
    assert (folder / "public/test/requests.json").is_file()
    assert not (folder / "public/test/references.json").exists()
    assert said("check", folder).endswith("Nothing is wrong.\n")
    for phase in ("pre-evaluation", "test"):
        assert said("phase", "open", folder, phase) == f"{phase} is open\n"


def test_where_no_container_starts_the_cures_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "c"
    new_challenge(folder, NewChallenge("focus", focus_data(tmp_path / "d"), pre_evaluation=4))
    cause = "podman run: Error: runc: setting rlimit (set PROCTOR_PODMAN_ARGS='--ulimit nofile=1024:1024')"

    async def fails(*_: object) -> str:
        raise InfrastructureError(cause)

    monkeypatch.setattr(opening, "ask_oracle", fails)
    monkeypatch.setattr("proctor_challenge.containers.executor_of", lambda name: ProcessExecutor())
    told = said("phase", "open", folder, "pre-evaluation", code=1).splitlines()
    assert told == [
        "If pre-evaluation takes files of answers alone: accepts: [file] in challenge.yaml (it needs no containers then)",
        f"What containers lack on this machine: proctor challenge check {folder} --machine",
        (
            "To open it without the cheating test, which is recorded: proctor challenge phase open "
            f"{folder} pre-evaluation --no-oracle"
        ),
        f"proctor: {cause}",
    ]


def test_status_shows_the_schedule_and_who_passed_a_gate(folder: Path) -> None:
    settings = yaml.safe_load((folder / "challenge.yaml").read_text())
    first = settings["phases"][0]
    final = {**deepcopy(first), "name": "final", "gate": {"phase": PHASE}, "closes": "2126-12-24T00:00:00Z"}
    final["results"] = {"shown_from": "2127-01-01T00:00:00Z"}
    final["description"] = {"required_for": "prizes", "due": "2126-12-20T00:00:00Z"}
    settings["phases"].append(final)
    settings["teams"] = {"opens": "2026-05-15T00:00:00Z", "closes": "2126-09-01T00:00:00Z"}
    (folder / "challenge.yaml").write_text(yaml.safe_dump(settings))
    row = rows("status", folder)[1]
    assert (row["gate"], row["passed"], row["registered"]) == (PHASE, 1, 2)
    assert row["description_due"] == "2126-12-20T00:00:00+00:00"
    done = proctor("challenge", "status", folder)
    table = " ".join(done.stdout.split())
    dates = "from 2026-05-15T00:00:00+00:00 until 2126-09-01T00:00:00+00:00"
    assert done.stderr == f"Teams register {dates}.\n"
    assert f"{PHASE}: 1 of 2 teams passed" in table
    assert "description due" in table
    challenge = Challenge.open(folder, "organiser")
    with challenge.writing() as connection:
        set_phase(connection, "final", PhaseState.OPEN, challenge.now(), checks=())
    challenge.close()
    file = answers(folder, folder / "a.json", 0.5, seed=3)
    told = said("submission", "add", folder, "final", "Beta", "--file", file, code=1)
    assert told == "proctor: The team has not passed the previous phase.\n"


def test_the_trail_of_the_shell_is_that_of_the_pages(folder: Path) -> None:
    said("team", "disqualify", folder, "Beta", "--why", "two accounts")
    found = proctor("serve", "users", "trail", folder).stdout
    assert "two accounts" in found
