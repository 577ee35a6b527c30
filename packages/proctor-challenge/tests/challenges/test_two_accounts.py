"""A challenge that two accounts share, set up word by word as the page says, with real users of this machine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from proctor_challenge.folder import check_challenge
from proctor_challenge.rights import folder_rights
from proctor_challenge.settings import read_challenge
from tests.support.challenge_site import made_folder
from tests.support.markdown import blocks
from tests.support.means import missing
from tests.support.paths import SOURCES
from tools.docs import ROOT

PAGE = ROOT / "docs" / "tasks" / "host-a-challenge.md"
WEB, SCORER, GROUP = 61_101, 61_102, 61_103
NAMES = {"web": WEB, "scorer": SCORER, "sponges": GROUP}
ONE_BY_ONE = """
import contextlib, io, json, sys
from proctor.cli.main import main
for line in sys.argv[1:]:
    sys.argv, told, code = ["proctor", *line.split()], io.StringIO(), 0
    with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
    print(json.dumps({"code": code, "told": told.getvalue()}))
"""
LIBRARIES = os.pathsep.join(
    [*map(str, SOURCES.values()), *(path for path in sys.path if path.endswith("site-packages"))]
)


def can_start(candidate: str) -> bool:
    """Whether another user can start this interpreter and our libraries with it."""
    try:
        return run(WEB, [candidate, "-c", "import proctor.core, sqlalchemy, numpy"], Path("/")).returncode == 0
    except PermissionError:  # it lies in somebody's home
        return False


def python_for_all() -> str:
    """An interpreter of this version that another user of the machine can start, with our libraries."""
    for candidate in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"):
        if can_start(candidate):
            return candidate
    missing("no Python of this version that other users of the machine can start")
    return ""


def run(user: int, command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """A command as another user, with the umask of a careful one."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": LIBRARIES, "HOME": str(folder), "LANG": "C.UTF-8"}
    return subprocess.run(
        command,
        cwd=folder,
        env=environment | {"PYTHONDONTWRITEBYTECODE": "1", "PROCTOR_CACHE": str(folder / "cache")},
        user=user,
        group=user,
        extra_groups=[GROUP],
        umask=0o027,
        capture_output=True,
        text=True,
        check=False,
    )


@dataclass(frozen=True)
class Shared:
    """The folder's parent, which all may read, and the interpreter."""

    top: Path
    python: str

    def proctor(self, user: int, *lines: str) -> list[tuple[int, str]]:
        """Several commands of a user, one after the other in one process: the exit code and the output of each."""
        done = run(user, [self.python, "-c", ONE_BY_ONE, *lines], self.top)
        assert done.returncode == 0, (lines, done.stdout, done.stderr)
        return [(one["code"], one["told"]) for one in map(json.loads, done.stdout.splitlines())]


@pytest.fixture
def shared() -> Iterator[Shared]:
    if os.geteuid() != 0:
        missing("only root can be two other users")
    with in_the_open() as top:
        yield Shared(top, python_for_all())


@contextmanager
def in_the_open() -> Iterator[Path]:
    """A folder that all users reach, with a challenge."""
    with tempfile.TemporaryDirectory(prefix="proctor-accounts-") as name:
        top = Path(name)
        top.chmod(0o755)
        shutil.copytree(made_folder(), top / "sponges")
        (top / "sponges" / "challenge.sqlite").unlink(missing_ok=True)
        yield top


def set_up(top: Path) -> None:
    """What the page says, with numbers for the names of accounts and groups."""
    (block,) = (one.body for one in blocks(PAGE) if one.info == 'sh title="two accounts"')
    for name in ("web:sponges", "scorer:scorer"):
        assert f" {name} " in block
        block = block.replace(f" {name} ", f" {':'.join(str(NAMES[part]) for part in name.split(':'))} ")
    subprocess.run(["sh", "-euc", block], cwd=top, check=True)


def test_each_account_does_its_part(shared: Shared) -> None:
    set_up(shared.top)
    public = shared.top / "sponges" / "public"
    checked, opened = shared.proctor(
        SCORER, "challenge check sponges", "challenge phase open sponges pre-evaluation --no-oracle"
    )
    assert checked[0] == opened[0] == 0, (checked, opened)
    assert f"uploads/: {WEB}:{GROUP}, mode 2755" in checked[1]
    assert f"sealed/: {SCORER}:{SCORER}, mode 0700" in checked[1]
    assert "Nothing is wrong." in checked[1]
    assert "pre-evaluation is open" in opened[1]
    public.chmod(0o755)
    os.chown(public / "receipt-key.txt", WEB, GROUP)  # the key is there: nobody need write it
    refused, added, listed, status, disabled, served = shared.proctor(
        WEB,
        "challenge check sponges",
        "serve users add sponges olga --role organiser",
        "serve users list sponges",
        "challenge status sponges",
        "serve users disable sponges olga",
        "serve sponges --host 192.0.2.1",
    )
    assert (refused[0], "sealed: found a folder that this user may not open" in refused[1]) == (1, True)
    assert f"({SCORER}): run this command as that one" in refused[1]
    assert [added[0], listed[0], status[0], disabled[0]] == [0] * 4, (added, listed, status, disabled)
    assert "/invitation/" in added[1]
    assert "olga" in listed[1]
    assert "pre-evaluation  open" in status[1]
    assert (served[0], "--tls-cert" in served[1]) == (2, True), "nothing else is wrong with it"
    trail, again, too_much = shared.proctor(
        SCORER, "serve users trail sponges", "challenge phase open sponges pre-evaluation --no-oracle", "serve sponges"
    )
    assert (trail[0], again[0]) == (0, 0), (trail, again)
    assert (too_much[0], "found a folder that the web server could open" in too_much[1]) == (1, True)


LACKING = {
    "uploads": (0o755, "uploads/: found group {web}, mode 0755", "chgrp {group} {part}; chmod g+rxs {part}"),
    "public": (0o2755, "public/: found group {web}, mode 2755", "chgrp {group} {part}; chmod g+rwxs {part}"),
    ".": (0o2750, "the folder: found group {web}, mode 2750", "chgrp {group} {part}; chmod g+rwxs {part}"),
    "challenge.yaml": (0o600, "challenge.yaml: found group {web}, mode 0600", "chgrp {group} {part}; chmod g+r {part}"),
}


@pytest.mark.parametrize("part", LACKING)
def test_what_one_of_them_lacks_is_told_with_the_commands(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() != 0:
        missing("only root can give files to two other users")
    with in_the_open() as top:
        set_up(top)
        folder = top / "sponges"
        monkeypatch.setattr("proctor_challenge.rights._groups_of", lambda user: frozenset({user, GROUP}))
        settings = read_challenge(folder, sealed=True)
        assert folder_rights(folder, settings).problems == ()
        mode, found, commands = LACKING[part]
        os.chown(folder / part, WEB, WEB)
        (folder / part).chmod(mode)
        (problem,) = folder_rights(folder, settings).problems
        said = {"web": WEB, "group": GROUP, "part": folder / part}
        assert problem.startswith(found.format(**said))
        assert problem.endswith(commands.format(**said))
        subprocess.run(["sh", "-euc", problem.rpartition(": ")[2]], check=True)
        assert folder_rights(folder, settings).problems == ()
        assert "Nothing" not in str(check_challenge(folder).problems)


def test_with_one_account_nothing_is_said_of_rights(tmp_path: Path) -> None:
    shutil.copytree(made_folder(), tmp_path / "c")
    found = folder_rights(tmp_path / "c", read_challenge(tmp_path / "c"))
    assert (found.facts, found.problems) == ((), ())
