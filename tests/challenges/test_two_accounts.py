"""A challenge that two accounts share, set up word by word as the page says, with real users of this machine."""

from __future__ import annotations

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

from proctor.challenges.folder import check_challenge
from proctor.challenges.rights import folder_rights
from proctor.challenges.settings import read_challenge
from tests.conftest import missing
from tests.support.challenge_site import made_folder
from tests.support.markdown import blocks
from tools.docs import ROOT

PAGE = ROOT / "docs" / "tasks" / "host-a-challenge.md"
WEB, SCORER, GROUP = 61_101, 61_102, 61_103
NAMES = {"web": WEB, "scorer": SCORER, "sponges": GROUP}
LIBRARIES = os.pathsep.join([str(ROOT / "src"), *(path for path in sys.path if path.endswith("site-packages"))])


def python_for_all() -> str:
    """An interpreter of this version that another user of the machine can start, with our libraries."""
    for candidate in dict.fromkeys((sys.executable, f"/usr/bin/python3.{sys.version_info.minor}")):
        if (
            Path(candidate).exists()
            and run(WEB, [candidate, "-c", "import proctor.core, sqlalchemy, numpy"], Path("/")).returncode == 0
        ):
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

    def proctor(self, user: int, *words: str) -> subprocess.CompletedProcess[str]:
        program = "from proctor.cli.main import main; main()"
        return run(user, [self.python, "-c", program, *words], self.top)

    def works(self, user: int, *words: str) -> str:
        """Its output; fails where it does not end well."""
        done = self.proctor(user, *words)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout + done.stderr


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
    refused = shared.proctor(WEB, "challenge", "check", "sponges")
    assert (refused.returncode, "sealed: found a folder that this user may not open" in refused.stderr) == (1, True)
    assert f"({SCORER}): run this command as that one" in refused.stderr
    told = shared.works(SCORER, "challenge", "check", "sponges")
    assert f"uploads/: {WEB}:{GROUP}, mode 2775" in told
    assert f"sealed/: {SCORER}:{SCORER}, mode 0700" in told
    assert "Nothing is wrong." in told
    opened = shared.works(SCORER, "challenge", "open", "sponges", "pre-evaluation", "--no-oracle")
    assert "pre-evaluation is open" in opened
    assert "/invitation/" in shared.works(WEB, "users", "add", "sponges", "olga", "--role", "organiser")
    assert "olga" in shared.works(WEB, "users", "list", "sponges")
    assert "pre-evaluation  open" in shared.works(WEB, "challenge", "status", "sponges")
    shared.works(WEB, "users", "disable", "sponges", "olga")
    shared.works(SCORER, "users", "trail", "sponges")
    again = shared.works(SCORER, "challenge", "open", "sponges", "pre-evaluation", "--no-oracle")
    assert "pre-evaluation is open" in again
    served = shared.proctor(WEB, "serve", "sponges", "--host", "192.0.2.1")
    assert (served.returncode, "--tls-cert" in served.stderr) == (2, True), "nothing else is wrong with it"
    too_much = shared.proctor(SCORER, "serve", "sponges")
    assert "found a folder that the web server could open" in too_much.stderr


def test_the_key_of_receipts_is_not_written_twice(shared: Shared) -> None:
    set_up(shared.top)
    shared.works(SCORER, "challenge", "open", "sponges", "pre-evaluation", "--no-oracle")
    public = shared.top / "sponges" / "public"
    public.chmod(0o755)
    os.chown(public / "receipt-key.txt", WEB, GROUP)
    shared.works(SCORER, "challenge", "open", "sponges", "pre-evaluation", "--no-oracle")


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
        monkeypatch.setattr("proctor.challenges.rights._groups_of", lambda user: frozenset({user, GROUP}))
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
