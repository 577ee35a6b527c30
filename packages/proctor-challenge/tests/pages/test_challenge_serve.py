"""`proctor serve` and `proctor users` on a challenge's folder."""

from __future__ import annotations

import shutil
from pathlib import Path

import httpx2
import pytest

from tests.support.challenge_site import made_folder
from tests.support.program import proctor
from tests.support.web_folder import come_in, serving


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "challenge"
    shutil.copytree(made_folder(), made)
    return made


def test_who_could_open_the_sealed_part_serves_no_challenge(folder: Path) -> None:
    done = proctor("serve", folder)
    assert done.returncode == 1
    assert f"{folder / 'sealed'}: found a folder that the web server could open" in done.stderr
    assert "--same-user to try things out" in done.stderr
    assert not (folder / "challenge.sqlite").exists()
    for options in (("--host", "0.0.0.0"), ("--proxy", "127.0.0.1")):
        refused = proctor("serve", folder, "--same-user", *options)
        assert refused.returncode == 2
    assert "https://… in challenge.yaml" in refused.stderr


def test_people_of_a_challenge_are_participants_unless_it_is_said(folder: Path) -> None:
    added = proctor("serve", "users", "add", folder, "anna")
    assert added.stdout.startswith("http://localhost:8000/invitation/")
    assert "challenge.yaml has none" in added.stderr
    assert proctor("serve", "users", "add", folder, "olga", "--role", "organiser").returncode == 0
    rows = proctor("serve", "users", "list", folder, "--format", "csv").stdout.splitlines()
    assert [row.split(",")[:2] for row in rows[1:]] == [["anna", "participant"], ["olga", "organiser"]]
    assert "all entries are as recorded" in proctor("serve", "users", "trail", folder).stderr


def test_a_challenge_is_served_to_try_it_out(folder: Path) -> None:
    left = folder / "uploads" / ".incoming-of-a-killed-process"
    left.write_bytes(b"half")
    link = proctor("serve", "users", "add", folder, "olga", "--role", "organiser").stdout.strip()
    with (
        serving(folder, "--same-user") as (_, address),
        httpx2.Client(base_url=address, headers={"accept": "text/html"}) as client,
    ):
        assert "FOCUS, procedure track" in client.get("/").text
        come_in(client, "/invitation/" + link.rpartition("/")[2])
        assert client.get("/organise/").status_code == 200
    assert not left.exists()
    assert (folder / "challenge.key").stat().st_mode & 0o777 == 0o600
