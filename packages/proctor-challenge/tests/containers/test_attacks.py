"""What a hostile image can do in a container: each attack is one question, and a canary says whether anything came out.
`test_hostile_boxes.py` has those for which a container makes no difference, and shows that these attacks find the
canary where there is none; `test_hostile_archives.py` those of the archive itself."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from proctor.core import Answer, Item, Status
from proctor_challenge.containers import BoxedSystem, BoxError, BoxReport, Executor, gateway
from proctor_challenge.containers.podman import PodmanBox
from tests.support.boxes import HOSTILE, SMALL, image_of, podman
from tests.support.doubles_of_boxes import answers, boxed, question
from tests.support.planted import Planted, address_of_this_machine, planted

pytestmark = pytest.mark.podman


def attack(*what: str) -> Item:
    return question("liver-07/seen-B", json.dumps(what))


FINE = attack("nothing")


@dataclass
class Attacked:
    """A container that attacks, one that does not, and what is to be found."""

    runner: asyncio.Runner
    hostile: BoxedSystem
    neighbour: BoxedSystem
    secret: Planted

    def asks(self, *what: str, shows: bytes = b"") -> Any:
        """What an attack got; the canary is nowhere in it."""
        (found,) = self.runner.run(answers(self.hostile, [attack(*what)], *([shows] if shows else [])))
        assert (found.status, found.reason) == (Status.ANSWERED, "")
        assert self.secret.canary not in found.text
        return json.loads(found.text) if found.text[:1] in "[{" else found.text

    def neighbour_answers(self) -> bool:
        return [one.text for one in self.runner.run(answers(self.neighbour, [FINE]))] == ["yes"]


def ended(runner: asyncio.Runner, system: BoxedSystem) -> None:
    runner.run(system.__aexit__())


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    executor = podman()
    image = image_of(HOSTILE)
    with planted(tmp_path_factory.mktemp("challenge") / "sealed") as secret, asyncio.Runner() as runner:
        hostile = boxed(image, executor=executor, limits=SMALL, label="secret-challenge/1/1")
        neighbour = boxed(image, executor=executor, limits=SMALL, label="secret-challenge/2/1")
        with contextlib.ExitStack() as started:
            for system in (hostile, neighbour):
                runner.run(system.__aenter__())
                started.callback(ended, runner, system)
            assert isinstance(neighbour._box, PodmanBox)
            (neighbour._box.media / "image-1.jpg").write_text(secret.canary)  # another team's question
            yield Attacked(runner, hostile, neighbour, secret)
        assert secret.visits == []


def test_no_file_that_it_can_reach_holds_a_reference(attacked: Attacked) -> None:
    assert attacked.asks("files_below", "/") == []
    assert attacked.asks("files_below", "/proc/1/root", "/proc/1/cwd", str(attacked.secret.folder)) == []


def test_its_environment_is_the_image_s_and_ours(attacked: Attacked) -> None:
    ours = {"HOME", "HOSTNAME", "PATH", "PROCTOR_SOCKET", "TERM", "container"}
    image_s = {"LC_CTYPE", "LD_LIBRARY_PATH", "PYTHONHOME", "PYTHONUNBUFFERED"}
    found = attacked.asks("environment")
    assert set(found["names"]) <= ours | image_s
    assert found["canaries"] == []


def test_it_sees_its_own_processes_alone(attacked: Attacked) -> None:
    assert attacked.asks("processes") == {"canaries": [], "commands": ["/usr/bin/python3"]}


def test_its_mounts_name_neither_the_challenge_nor_the_submission(attacked: Attacked) -> None:
    mounts = attacked.asks("mounts")
    assert "/input" in mounts
    for name in ("secret-challenge", str(attacked.secret.folder), "sealed"):
        assert name not in mounts


def test_files_of_the_kernel_are_closed(attacked: Attacked) -> None:
    assert attacked.asks("kernel_files") == {}


@pytest.mark.parametrize("host", ["127.0.0.1", "this machine", "169.254.169.254", "10.0.2.2", "192.0.2.1"])
def test_no_address_is_reached(attacked: Attacked, host: str) -> None:
    """Not the machine's own servers either, nor the metadata of a cloud."""
    address = address_of_this_machine() if host == "this machine" else host
    port = "80" if host.startswith(("169", "192")) else str(attacked.secret.port)
    assert attacked.asks("connect_tcp", address, port) in {"ConnectionRefusedError", "OSError"}


def test_no_socket_of_the_machine_is_reached(attacked: Attacked) -> None:
    for row in (str(attacked.secret.unix), "/run/podman/podman.sock", "/var/run/docker.sock", "/run/dbus/socket"):
        assert attacked.asks("connect_unix", row) in {"FileNotFoundError", "PermissionError"}


def test_no_abstract_socket_of_the_machine_is_reached(attacked: Attacked) -> None:
    assert attacked.asks("connect_unix", attacked.secret.abstract) == "ConnectionRefusedError"


def test_no_name_is_resolved_and_none_of_the_machine_is_known(attacked: Attacked) -> None:
    found = attacked.asks("names_of_hosts")
    assert found["resolved"] == "gaierror"
    assert found["interfaces"] == ["lo"]
    assert found["hostname"] == "box"
    assert found["hosts"] == []


def test_raw_sockets_are_refused(attacked: Attacked) -> None:
    found = attacked.asks("raw_sockets")
    assert (found["raw"], found["packet"]) == ("PermissionError", "PermissionError")


def test_it_has_no_right(attacked: Attacked) -> None:
    found = attacked.asks("privileges")
    assert found.pop("uid") == ["10001"] * 4
    assert found.pop("capabilities") == ["0" * 16] * 5
    assert found.pop("no new privileges") == "1"
    assert found.pop("seccomp") == "2"
    assert set(found.values()) <= {"PermissionError", "refused", "FileNotFoundError"}, found


def test_calls_of_the_kernel_that_lead_out_are_refused(attacked: Attacked) -> None:
    assert set(attacked.asks("system_calls").values()) == {"refused"}


def test_it_can_write_where_a_limit_is_and_nowhere_else(attacked: Attacked) -> None:
    assert sorted(attacked.asks("writable")) == ["/dev/shm", "/proctor", "/tmp"]


def test_it_can_not_change_its_media(attacked: Attacked) -> None:
    found = attacked.asks("change_media", shows=b"pixels")
    assert set(found.values()) <= {"OSError", "PermissionError"}


def test_a_file_that_it_keeps_open_is_empty_after_its_question(attacked: Attacked) -> None:
    first, second = (attacked.asks("keep_media", shows=b"pixels") for _ in range(2))
    assert first["before"] == []
    assert second["before"] == [[0, 0]]


def test_names_times_and_attributes_of_media_say_nothing(attacked: Attacked) -> None:
    found = attacked.asks("keep_media", shows=b"pixels")
    assert found["there"] == ["image-1.jpg"]
    assert found["times"][0] == 0.0
    assert found["attributes"] == []


def test_it_never_sees_another_question_s_media(attacked: Attacked) -> None:
    """Neither those of the next question nor those of the one before, however closely it looks."""
    attacked.asks("watch_media", "/input")
    for _ in range(5):
        attacked.asks("nothing", shows=b"pixels")
        attacked.asks("nothing")
    assert sorted(attacked.asks("watched")) in ([[], ["image-1.jpg"]], [[]])


@pytest.mark.parametrize(
    ("folder", "most"), [("/tmp", SMALL.scratch), ("/dev/shm", SMALL.shared_memory), ("/proctor", 2**16)]
)
def test_what_it_writes_has_a_limit(attacked: Attacked, folder: str, most: int) -> None:
    assert 0 < attacked.asks("fill", folder)["bytes"] <= most
    assert attacked.neighbour_answers()


def test_the_machine_s_disk_does_not_fill_with_what_it_writes(attacked: Attacked) -> None:
    """The folder of the socket is the only folder that we look into: it is a file system of the container's own."""
    assert isinstance(attacked.hostile._box, PodmanBox)
    ours = attacked.hostile._box.media.parent
    attacked.asks("fill", "/proctor")
    assert sorted(one.name for one in ours.iterdir()) == ["box", "input", "seccomp.json"]
    assert list(attacked.hostile._box.media.iterdir()) == []


def ended_by(executor: Executor, image: str, *items: Item) -> tuple[list[Answer], BoxReport]:
    """A container of its own, for what ends it."""

    async def ask() -> tuple[list[Answer], BoxReport]:
        async with (system := boxed(image, executor=executor, limits=SMALL)):
            found = await answers(system, items)
        return found, system.report(public=True)

    return asyncio.run(ask())


def test_a_fork_bomb_has_a_limit_and_harms_nobody(attacked: Attacked) -> None:
    (found, fine), _ = ended_by(podman(), image_of(HOSTILE), attack("fork_bomb"), FINE)
    assert 0 < int(found.text) < SMALL.processes
    assert fine.text == "yes"
    assert attacked.neighbour_answers()


def test_memory_has_a_limit_and_harms_nobody(attacked: Attacked) -> None:
    (found, fine), report = ended_by(podman(), image_of(HOSTILE), attack("memory"), FINE)
    assert found.status is Status.ERROR
    assert fine.text == "yes"  # in the container that was started instead
    assert report.restarts == 1
    assert report.peak_memory is not None
    assert report.peak_memory <= SMALL.memory
    assert attacked.neighbour_answers()


def test_what_it_prints_has_a_limit(attacked: Attacked) -> None:
    (found,), report = ended_by(podman(), image_of(HOSTILE), attack("talk", "20"))
    assert found.text == "yes"
    assert 0 < len(report.log) <= SMALL.log
    assert report.blind().log == ""


def test_the_log_on_the_machine_has_a_limit(attacked: Attacked) -> None:
    attacked.asks("talk", "20")
    assert isinstance(attacked.hostile._box, PodmanBox)
    asked = ["podman", "inspect", "--format={{.HostConfig.LogConfig.Path}}", attacked.hostile._box._name]
    file = Path(subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip())
    assert file.stat().st_size <= 2 * SMALL.log


def test_a_process_that_left_its_parent_is_killed_with_the_container() -> None:
    (found,), _ = ended_by(podman(), image_of(HOSTILE), attack("daemon"))
    assert found.text == "yes"
    left = [file for file in Path("/proc").glob("[0-9]*/cmdline") if b"left-behind" in contents(file)]
    assert left == []


def contents(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_what_stands_where_the_socket_was_is_not_followed(
    attacked: Attacked, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(gateway, "_BREATH_S", 0.05)
    there = attack("replace_socket", kind, str(attacked.secret.unix))
    found, report = ended_by(podman(), image_of(HOSTILE), there, FINE, FINE)
    assert [one.status for one in found] == [Status.ANSWERED, Status.ERROR, Status.ANSWERED]
    assert report.restarts == 1
    assert attacked.secret.visits == []


@pytest.fixture(scope="module")
def changed() -> Iterator[str]:
    """An image whose configuration asks for more than it may have, with a program that runs as root, and a folder that
    everybody may write to."""
    podman()
    name = "localhost/proctor-test-changed:1"
    changes = ["USER 0", "VOLUME /data", "LABEL proctor.box=another/1", "ENV PROCTOR_SOCKET=/etc/socket"]
    made = shell("create", image_of(HOSTILE))
    program = Path(shell("mount", made)) / "usr/bin"
    (program / "root").write_bytes((program / "python3").read_bytes())
    (program / "root").chmod(0o4755)
    (program.parents[1] / "open").mkdir()
    (program.parents[1] / "open").chmod(0o777)
    shell("unmount", made)
    shell("commit", *(part for change in changes for part in ("--change", change)), made, name)
    shell("rm", made)
    yield name
    shell("rmi", "--force", name)


def shell(*arguments: str) -> str:
    return subprocess.run(["podman", *arguments], capture_output=True, text=True, check=True).stdout.strip()


def test_an_image_s_own_settings_give_it_nothing(changed: str) -> None:
    """Neither its user, nor a volume, nor a program with the right to run as root, nor variables of our names."""
    asks = attack("privileges"), attack("writable"), attack("set_uid_program", "/usr/bin/root")
    (rights, writable, program), _ = ended_by(podman(), changed, *asks)
    assert json.loads(rights.text)["uid"] == ["10001"] * 4
    assert sorted(json.loads(writable.text)) == ["/dev/shm", "/proctor", "/tmp"]
    assert program.text == "10001\n"


def test_a_label_of_the_image_is_not_taken_for_ours(changed: str) -> None:
    executor = podman()

    async def start() -> None:
        async with boxed(changed, executor=executor, limits=SMALL):
            assert await executor.remove_left("another") == 0

    asyncio.run(start())


def test_an_image_without_a_program_is_its_team_s_fault() -> None:
    executor = podman()
    made = shell("create", image_of(HOSTILE))
    image = shell("commit", "--change", 'ENTRYPOINT ["/no/such/program"]', made).splitlines()[-1]
    shell("rm", made)
    try:
        with pytest.raises(BoxError, match="the image's program was not found"):
            asyncio.run(executor.start(image, SMALL, label="test/5/1"))
    finally:
        shell("rmi", "--force", image)
