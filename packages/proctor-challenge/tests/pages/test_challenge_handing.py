"""Handing in by the page: what is queued, what is refused and why, who may, and what is left on the disk."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import tarfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from proctor_challenge import check_process, uploads
from proctor_challenge.admission import Admission
from proctor_challenge.pages.desk import OccupiedError, UploadDesk
from proctor_challenge.pages.site import ChallengeSite
from proctor_challenge.states import PhaseState, set_phase
from proctor_challenge.submissions import submissions_of
from proctor_web import WriterGate
from proctor_web import uploads as web_uploads
from tests.support.challenge_site import HIDDEN, answers, challenge_site, handed, logged_in, posted, team_of_two
from tests.support.web_site import browser, csrf_of, join

BAD = [{"qID": "v99-q00", "content": "yes", "latency": 1.0}]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[ChallengeSite]:
    made = challenge_site(tmp_path)
    team_of_two(made, "Hand Surgeons", "anna", "ben")
    yield made
    made.engine.dispose()


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """No process is started for a check: these are its problems."""
    problems: list[str] = []
    monkeypatch.setattr(uploads, "check_upload", lambda *_: Admission(tuple(problems)))
    return problems


def kept(site: ChallengeSite) -> list[str]:
    return sorted(one.name for one in site.challenge.uploads.iterdir())


def test_answers_that_fit_are_queued_and_others_refused_with_locations(site: ChallengeSite) -> None:
    """By the real check, in its own process."""
    anna, fits = logged_in(site, "anna"), answers(site)
    first = handed(anna, fits)
    assert (first.status_code, first.headers["location"]) == (303, "/submission/1")
    page = anna.get("/submission/1").text
    assert 'class="badge state-queued"' in page
    assert hashlib.sha256(fits).hexdigest() in page
    assert "9 of 10 results left" in anna.get("/").text
    handed(anna, json.dumps(BAD).encode(), file_name="../../evil.JSON")
    page = anna.get("/submission/2").text
    assert "No question of this phase: <code>v99-q00</code>" in page
    assert "found entry 1, expected a question of the benchmark" in page
    anna.post("/language", data={"csrf": csrf_of(anna.get("/")), "language": "de"})
    assert "Keine Frage dieser Phase: <code>v99-q00</code>" in anna.get("/submission/2").text
    anna.post("/language", data={"csrf": csrf_of(anna.get("/")), "language": "en"})
    assert 'class="badge state-refused"' in page
    assert str(site.folder) not in page
    assert "9 of 10 results left" in anna.get("/").text
    assert kept(site) == [hashlib.sha256(fits).hexdigest()]


def test_what_is_refused_and_somebody_elses_too_stays(site: ChallengeSite, unchecked: list[str]) -> None:
    anna = logged_in(site, "anna")
    handed(anna, b"same")
    unchecked.append("does not fit")
    handed(anna, b"same")
    handed(anna, b"other")
    assert kept(site) == [hashlib.sha256(b"same").hexdigest()]


def test_a_quota_is_used_up_and_said_before_a_byte_is_taken(site: ChallengeSite, unchecked: list[str]) -> None:
    assert unchecked == []
    anna = logged_in(site, "anna")
    csrf = csrf_of(anna.get("/"))
    for number in range(10):
        assert handed(anna, b"x" * (number + 1)).status_code == 303
    assert "Submit</button>" not in anna.get(f"/phase/{HIDDEN}").text
    said = {"csrf": csrf, "name": "one more"}
    answer = anna.post(f"/phase/{HIDDEN}/file", data=said, files={"upload": ("a.json", b"y")})
    assert (answer.status_code, "Its quota is used up" in answer.text) == (409, True)
    assert len(kept(site)) == 10
    assert "0 of 10 results left" in anna.get("/submissions").text
    posted(anna, "/submission/1/cancel")
    assert "1 of 10 results left" in anna.get("/submissions").text
    assert "Cancelled by the team." in anna.get("/submission/1").text


def test_a_day_s_quota_is_used_up_before_a_byte_is_taken(tmp_path: Path, unchecked: list[str]) -> None:
    assert unchecked == []
    site = challenge_site(tmp_path, {"  title: Pre-evaluation": "  title: Pre-evaluation\n  quota: {per_day: 1}"})
    team_of_two(site, "Hand Surgeons", "anna")
    anna = logged_in(site, "anna")
    csrf = csrf_of(anna.get("/"))
    assert "Submit</button>" in anna.get(f"/phase/{HIDDEN}").text
    handed(anna, b"x")
    assert "0 left today" in anna.get(f"/phase/{HIDDEN}").text
    assert "Submit</button>" not in anna.get(f"/phase/{HIDDEN}").text
    answer = anna.post(f"/phase/{HIDDEN}/file", data={"csrf": csrf, "name": "b"}, files={"upload": ("a.json", b"y")})
    assert (answer.status_code, len(kept(site))) == (409, 1)
    site.engine.dispose()


def test_who_may_not_hand_in_is_told_why(site: ChallengeSite, unchecked: list[str]) -> None:
    assert unchecked == []
    anna = logged_in(site, "anna")
    file = {"upload": ("a.json", b"y")}

    def sent(client_csrf: str, path: str) -> int:
        return anna.post(path, data={"csrf": client_csrf, "name": "x"}, files=file).status_code

    csrf = csrf_of(anna.get("/"))
    assert sent(csrf, "/phase/nowhere/file") == 404
    assert sent(csrf, "/phase/test/file") == 404, "it takes images alone"
    assert sent("x" * 40, f"/phase/{HIDDEN}/file") == 403
    assert anna.post(f"/phase/{HIDDEN}/file", data={"csrf": csrf}).status_code == 400, "not the form of a file"
    empty = anna.post(f"/phase/{HIDDEN}/file", data={"csrf": csrf}, files={"upload": ("a.json", b"")})
    assert (empty.status_code, "No file arrived" in empty.text) == (422, True)
    with site.writing() as connection:
        set_phase(connection, HIDDEN, PhaseState.CLOSED, site.now(), checks=())
    assert sent(csrf, f"/phase/{HIDDEN}/file") == 409
    for name, role in (("dan", "participant"), ("olga", "organiser")):
        join(site, name, role)
        other = logged_in(site, name)
        said = {"csrf": csrf_of(other.get("/"))}
        assert other.post(f"/phase/{HIDDEN}/file", data=said, files=file).status_code == 404, name
    stranger = browser(site)
    answer = stranger.post(f"/phase/{HIDDEN}/file", data={"csrf": csrf_of(stranger.get("/login"))}, files=file)
    assert answer.status_code == 401
    assert kept(site) == []
    with site.reading() as connection:
        assert submissions_of(connection, 1) == []


def test_what_was_cancelled_while_it_was_checked_stays_so(site: ChallengeSite, monkeypatch: pytest.MonkeyPatch) -> None:
    def cancelled(*_: object) -> Admission:
        assert posted(logged_in(site, "ben"), "/submission/1/cancel").status_code == 303
        return Admission()

    monkeypatch.setattr(uploads, "check_upload", cancelled)
    anna = logged_in(site, "anna")
    assert handed(anna, b"first").status_code == 303
    assert 'class="badge state-cancelled"' in anna.get("/submission/1").text


def test_a_team_sends_one_file_at_a_time(site: ChallengeSite, unchecked: list[str]) -> None:
    assert unchecked == []
    anna = logged_in(site, "anna")
    desk = anna.app.state.desk  # type: ignore[attr-defined]
    another = UploadDesk(site.challenge, desk.gate)  # of another server on this folder
    for of_this_team in (desk, another):
        with of_this_team.occupied(1):
            answer = handed(anna, b"second")
            assert (answer.status_code, "still being checked" in answer.text) == (409, True)
        with of_this_team.occupied(2):
            assert handed(anna, b"first" if of_this_team is desk else b"third").status_code == 303
    assert handed(anna, b"second").status_code == 303
    assert desk.teams == {}
    assert len(kept(site)) == 3


def test_the_file_of_a_team_is_left_to_one_of_many(site: ChallengeSite) -> None:
    """It is deleted when it is unlocked, while others are about to lock it."""
    most, now = 0, 0
    count = threading.Lock()

    def enter(desk: UploadDesk) -> int:
        nonlocal most, now
        times = 0
        for _ in range(200):
            with suppress(OccupiedError), desk.occupied(1):
                with count:
                    now += 1
                    most = max(most, now)
                times += 1
                time.sleep(0)
                with count:
                    now -= 1
        return times

    with ThreadPoolExecutor(4) as pool:
        desks = [UploadDesk(site.challenge, WriterGate(Counter())) for _ in range(4)]
        entered = list(pool.map(enter, desks))
    assert most == 1
    assert any(entered)
    assert kept(site) == []


def test_uploads_under_way_have_their_room_on_the_disk(
    site: ChallengeSite, unchecked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each upload looked at the disk alone, so many teams at once could fill it."""
    assert unchecked == []
    anna = logged_in(site, "anna")
    room = 10_000
    disk = SimpleNamespace(f_bavail=2**30 + room, f_frsize=1)
    monkeypatch.setattr("proctor_web.uploads.os.statvfs", lambda _: disk)
    other = site.challenge.uploads / f".incoming-{room}-of-another-process"
    other.write_bytes(bytes(100))  # what it may still write is reserved
    full = handed(anna, b"x" * 200)
    assert (full.status_code, full.headers["retry-after"], "no room" in full.text) == (503, "5", True)
    assert kept(site) == [other.name]
    other.unlink()
    assert handed(anna, b"x" * 200).status_code == 303


def test_what_a_killed_process_left_is_deleted_and_what_a_living_one_writes_stays(site: ChallengeSite) -> None:
    folder = site.challenge.uploads
    (folder / ".incoming-9-killed").write_bytes(b"x")
    handle, living = web_uploads._reserved(folder, 9, 0)
    web_uploads.remove_unfinished(folder)
    assert kept(site) == [living.name]
    os.close(handle)
    web_uploads.remove_unfinished(folder)
    assert kept(site) == []


def test_a_full_disk_is_said_and_leaves_nothing(
    site: ChallengeSite, unchecked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else filled it meanwhile."""
    assert unchecked == []

    def full(_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(web_uploads, "_to_disk", full)
    answer = handed(logged_in(site, "anna"), b"x")
    assert (answer.status_code, "no room" in answer.text) == (503, True)
    assert kept(site) == []


def test_a_file_that_is_too_large_is_refused_by_its_kind(tmp_path: Path, unchecked: list[str]) -> None:
    assert unchecked == []
    site = challenge_site(tmp_path, {"benchmark: focus": "benchmark: focus\nuploads: {file: 1k, image: 300k}"})
    team_of_two(site, "Hand Surgeons", "anna")
    anna = logged_in(site, "anna")
    large = bytes(250_000)
    assert handed(anna, large).status_code == 413
    assert handed(anna, large, kind="image", file_name="a.tar").status_code == 303
    assert len(kept(site)) == 1
    site.engine.dispose()


def archive(*names: str) -> bytes:
    """An archive of an image, with further files."""
    out = io.BytesIO()
    manifest = json.dumps([{"Config": "config.json", "Layers": []}]).encode()
    with tarfile.open(fileobj=out, mode="w") as made:
        for name, content in {"config.json": b"{}", "manifest.json": manifest, **dict.fromkeys(names, b"x")}.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            made.addfile(member, io.BytesIO(content))
    return out.getvalue()


def test_what_is_cancelled_before_it_ran_is_not_kept(site: ChallengeSite, unchecked: list[str]) -> None:
    """Or a team could fill the disk with uploads that cost it nothing."""
    anna = logged_in(site, "anna")
    for content, again in ((b"one", ""), (b"two", ""), (b"two", "yes")):
        handed(anna, content, again=again)
    for number in (1, 2):
        assert posted(anna, f"/submission/{number}/cancel", f"/submission/{number}").status_code == 303
    assert kept(site) == [hashlib.sha256(b"two").hexdigest()], "the third one has the same bytes"
    assert posted(anna, "/submission/3/cancel", "/submission/3").status_code == 303
    assert kept(site) == []


IMAGES = {
    "one that fits": (archive(), ""),
    "names that climb": (archive("../../etc/cron.d/x"), "a name outside the archive"),
    "no archive": (b"#!/bin/sh\nrm -rf /\n", "found no whole tar archive"),
}


@pytest.mark.parametrize("case", IMAGES)
def test_an_archive_is_looked_at_and_never_unpacked(tmp_path: Path, case: str) -> None:
    made, told = IMAGES[case]
    file = tmp_path / "image.tar"
    file.write_bytes(made)
    found = check_process.checked({"kind": "image", "path": str(file), "track": ""}).problems
    assert [told in one for one in found] == ([True] if told else [])
    assert str(tmp_path) not in "".join(found)
    assert [one.name for one in tmp_path.iterdir()] == ["image.tar"]


def test_a_check_that_takes_too_much_is_a_problem_of_the_file(
    site: ChallengeSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No second of the processor is left to it."""
    file = tmp_path / "answers.json"
    file.write_bytes(b"[]")
    monkeypatch.setattr(uploads, "_SECONDS", 0)
    found = uploads.check_upload(site.challenge, site.challenge.phase(HIDDEN), "file", file, ".json")
    assert found == uploads._TOO_MUCH


def test_problems_are_errors_alone_and_the_last_line_counts_the_rest(site: ChallengeSite, tmp_path: Path) -> None:
    file, phase = tmp_path / "answers.json", site.challenge.phase(HIDDEN)
    questions = json.loads((site.folder / phase.questions / "requests.json").read_text())
    file.write_bytes(b"[]")
    found = uploads.check_upload(site.challenge, phase, "file", file, ".json")
    assert found.problems == ("submission.json: found no answer, expected answers to the benchmark's questions",)
    file.write_text(json.dumps([{"qID": questions[0]["qID"], "content": "yes", "latency": 31}]))
    found = uploads.check_upload(site.challenge, phase, "file", file, ".json")
    assert (found.problems, found.count) == ((), len(questions))
    assert found.wrong[0] == f"wrong: late: {questions[0]['qID']}: found 31.000 s, expected at most 30 s"
    assert {one.partition(": v")[0] for one in found.wrong[1:]} == {"wrong: missing"}
    file.write_text(json.dumps([{"qID": f"x{number}", "content": "A"} for number in range(150)]))
    problems = uploads.check_upload(site.challenge, phase, "file", file, ".json").problems
    assert (len(problems), problems[-1]) == (100, "… and 51 more")
