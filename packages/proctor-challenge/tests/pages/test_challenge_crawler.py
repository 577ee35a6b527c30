"""A crawler logged in as everybody follows every link of a challenge and tries every address: nobody sees a word of
what another team says, and nobody a word of the sealed part."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from proctor.core import ConfigurationError, InputError
from proctor_challenge import uploads
from proctor_challenge.admission import Admission
from proctor_challenge.challenge import Challenge
from proctor_challenge.pages import open_challenge
from proctor_challenge.pages.site import ChallengeSite
from tests.support.challenge_site import challenge_site, handed, logged_in, posted, team_of_two
from tests.support.killed_child import in_a_fork
from tests.support.web_attack import MarkupEye
from tests.support.web_site import browser, join

CANARY = re.compile(r"canary-(\w+)")
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>{{ 7 * 191 }}\"'</textarea>"
_LINKS = re.compile(r"(?:href|src|action|hx-get)=\"(/[^\"#]*)\"")
_TRIED = (
    "/", "/team", "/submissions", "/terms", "/organise/", "/organise/people", "/organise/trail", "/phase/nowhere",
    "/phase/../sealed", "/static/challenge/../../site.py", "/static/challenge/%2e%2e/site.py", "/sealed/secret",
    "/static/../sealed/answers.sqlite", "/challenge.yaml", "/challenge.sqlite", "/challenge.key", "/uploads/",
    "/submission/0", "/submission/-1", "/submission/1e0", "/submission/99", "/submission/99/state",
    *(f"/submission/{number}{more}" for number in range(1, 4) for more in ("", "/state")),
)  # fmt: skip


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ChallengeSite]:
    """Two teams have handed something in, whose every text is theirs and hostile; a third has nothing."""
    monkeypatch.setattr(uploads, "check_upload", lambda *_: Admission((f"canary-problem {HOSTILE}",)))
    made = challenge_site(tmp_path)
    (tmp_path / "sealed" / "secret").write_text("canary-sealed")
    for team, person in (("Hand Surgeons", "anna"), ("Tray Watchers", "cleo"), ("Bone Setters", "dan")):
        team_of_two(made, team, person)
    join(made, "olga", "organiser")
    join(made, "eve", "participant")
    for name in ("anna", "cleo"):
        said = {"name": f"canary-{name} {HOSTILE}", "description": f"canary-{name} {HOSTILE}"}
        assert handed(logged_in(made, name), name.encode(), **said).status_code == 303
    yield made
    made.engine.dispose()


def crawled(client: TestClient) -> str:
    """Everything that all addresses said."""
    ahead, seen, texts = [*_TRIED], set(), []
    while ahead:
        path = ahead.pop()
        if path in seen or path.startswith(("/static/htmx", "/logout")):
            continue
        seen.add(path)
        answer = client.get(path)
        text = answer.content.decode("utf-8", "replace")
        assert answer.status_code in {200, 303, 401, 404, 405, 422}, (path, answer.status_code)
        assert answer.status_code != 200 or "html" not in answer.headers["content-type"] or not MarkupEye(text).faults
        texts.append(f"{dict(answer.headers)} {text}")
        ahead += [found.replace("&amp;", "&") for found in _LINKS.findall(text)]
        ahead += [answer.headers["location"]] if answer.status_code == 303 else []
    return " ".join(texts)


def test_everybody_sees_their_own_team_alone(site: ChallengeSite) -> None:
    both = {"anna", "cleo", "problem"}
    allowed = {"anna": {"anna", "problem"}, "cleo": {"cleo", "problem"}, "olga": both, "dan": set(), "eve": set()}
    for name, seen in allowed.items():
        assert set(CANARY.findall(crawled(logged_in(site, name)))) == seen, name
    assert set(CANARY.findall(crawled(browser(site)))) == set()


def test_nobody_changes_what_is_another_teams(site: ChallengeSite) -> None:
    for name in ("cleo", "dan", "eve"):
        assert posted(logged_in(site, name), "/submission/1/cancel").status_code == 404, name
    assert (
        posted(logged_in(site, "dan"), "/organise/people", name="x", role="organiser", language="en").status_code == 404
    )


def test_the_web_process_reaches_nothing_sealed(site: ChallengeSite) -> None:
    with pytest.raises(ConfigurationError):
        _ = site.challenge.sealed
    with pytest.raises(InputError, match="a folder that the web server could open"):
        Challenge.open(site.folder, "web")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_serves_it_and_can_not_open_the_sealed_files(site: ChallengeSite) -> None:
    """At the level of the operating system: a process of another user serves every page, and each sealed file is
    refused to it."""
    folder = Path(tempfile.mkdtemp(prefix="proctor-sealed-"))
    shutil.copytree(site.folder, folder, dirs_exist_ok=True)
    for one in [folder, *folder.rglob("*")]:
        if folder / "sealed" not in [one, *one.parents]:
            os.chown(one, 65534, 65534)
    (folder / "sealed").chmod(0o700)
    sealed = [one for one in (folder / "sealed").rglob("*") if one.is_file()]
    assert sealed
    for file in sealed:
        file.write_text(file.read_text() + " canary-sealed")
    assert in_a_fork(lambda: _as_another_user(folder, sealed)) == 0
    shutil.rmtree(folder)


def _as_another_user(folder: Path, sealed: list[Path]) -> int:
    """0 where that user serves all pages, holds no sealed file open, says nothing of one, and can open none."""
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
    TestClient.portal = None  # that of the parent has no thread here
    served = replace(open_challenge(folder), hosts=("review.test",))
    said = [crawled(browser(served)), *(crawled(logged_in(served, name)) for name in ("anna", "olga"))]
    held = [str(one.readlink()) for one in Path("/proc/self/fd").iterdir() if one.is_symlink()]
    if any("canary-sealed" in one for one in said) or "Queue" not in said[2]:
        return 2
    if any(str(folder / "sealed") in one for one in held):
        return 3
    for file in [folder / "sealed", *sealed]:
        for act in (lambda path: os.open(path, os.O_RDONLY), os.stat if file in sealed else os.listdir):
            try:
                act(file)
            except PermissionError:
                continue
            return 4
    return 0
