"""Packs in containers without network, at the platforms' own paths: both scorers, and the example algorithm by both
of Grand Challenge's methods. The image is of this machine's own folders, so that nothing is fetched."""

from __future__ import annotations

import io
import json
import os
import shlex
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from proctor.core import ConfigurationError
from proctor_challenge import check_pack, pack_folder, write_pack
from proctor_challenge.packs.platforms import PackProgram, start_program
from tests.support.boxes import podman
from tests.support.packed_challenge import focus_challenge

pytestmark = pytest.mark.podman

IMAGE = "localhost/proctor-pack-test:1"
WHEEL = "/opt/wheel"


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """An image without files, and the arguments that mount this machine's Python into it."""
    podman()
    folder = tmp_path_factory.mktemp("image")
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as out:
        for name in ("usr", "tmp", "etc"):
            info = tarfile.TarInfo(name)
            info.type, info.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
            out.addfile(info)
        for name in ("bin", "lib", "lib64"):
            if Path(f"/{name}").is_symlink():
                info = tarfile.TarInfo(name)
                info.type, info.linkname = tarfile.SYMTYPE, f"usr/{name}"
                out.addfile(info)
    (folder / "root.tar").write_bytes(archive.getvalue())
    environment = {"PATH": f"{Path(sys.executable).parent}:/usr/bin", "PYTHONPATH": WHEEL, "OMP_NUM_THREADS": "1"}
    changes = [part for name, value in environment.items() for part in ("--change", f"ENV {name}={value}")]
    subprocess.run(
        ["podman", "import", "--quiet", *changes, folder / "root.tar", IMAGE], check=True, capture_output=True
    )
    python = Path(os.path.realpath(sys.executable)).parents[1]
    packages = [one for one in sys.path if one.endswith("site-packages") and Path(one).is_dir()]
    mounted = {"/usr", sys.prefix, sys.base_prefix, str(python), *packages}
    yield [part for one in sorted(mounted) for part in ("--volume", f"{one}:{one}:ro")]
    subprocess.run(["podman", "rmi", "--force", IMAGE], check=True, capture_output=True)


def mounting(monkeypatch: pytest.MonkeyPatch, machine: list[str], pack: Path, folder: Path) -> None:
    """Lets the check start the image with this machine's Python and the pack's own Proctor."""
    wheels = sorted(pack.rglob("*.whl"))
    assert len(wheels) == 4
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as opened:
            opened.extractall(folder)
    known = shlex.split(os.environ.get("PROCTOR_PODMAN_ARGS", ""))
    held = {folder: WHEEL, pack / "evaluation": "/opt/app"}  # what an image that is built holds itself
    own = [part for one, inside in held.items() if one.is_dir() for part in ("--volume", f"{one}:{inside}:ro")]
    monkeypatch.setenv("PROCTOR_PODMAN_ARGS", shlex.join([*known, *machine, *own]))


@pytest.mark.parametrize("platform", ["codabench", "grand-challenge"])
def test_scorers_run_in_a_container_without_network(
    platform: str, data: Path, machine: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = focus_challenge(tmp_path / "focus", data, most=30)
    pack = pack_folder(folder, platform)
    write_pack(platform, folder, pack, IMAGE)
    mounting(monkeypatch, machine, pack, tmp_path / "wheel")
    (found,) = check_pack(platform, folder, pack)
    assert found.ran == f"podman {IMAGE}"
    assert found.ok, found.wrong
    assert found.largest <= 1e-12


def test_the_container_of_a_pack_has_no_network(
    machine: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    known = shlex.split(os.environ.get("PROCTOR_PODMAN_ARGS", ""))
    monkeypatch.setenv("PROCTOR_PODMAN_ARGS", shlex.join([*known, *machine]))
    asked = "import socket; print(socket.if_nameindex()); socket.create_connection(('192.0.2.1', 53), timeout=5)"
    program = PackProgram(IMAGE, ("python3", "-c", asked), "/app", {"/app": tmp_path}, ())
    with pytest.raises(ConfigurationError, match="Network is unreachable"):
        start_program(program)


CLIENT = """\
import http.client, os, subprocess, sys, time

os.environ["METHOD"] = "invoke"
served = subprocess.Popen([sys.executable, "start.py"])
for _ in range(3000):
    try:
        asked = http.client.HTTPConnection("127.0.0.1", 4743)
        asked.request("GET", "/health")
        health = asked.getresponse().status
        break
    except ConnectionRefusedError:
        time.sleep(0.01)
assert health == 200, health
asked = http.client.HTTPConnection("127.0.0.1", 4743)
asked.request("POST", "/invoke")
status = asked.getresponse().status
served.kill()
assert status == 201, status
"""


@pytest.mark.parametrize("method", ["exec", "invoke"])
def test_the_example_algorithm_answers_by_both_methods(
    method: str, data: Path, machine: list[str], tmp_path: Path
) -> None:
    folder = focus_challenge(tmp_path / "focus", data, most=30)
    pack = pack_folder(folder, "grand-challenge")
    write_pack("grand-challenge", folder, pack)
    cases = pack / "final/upload_to_archive/cases"
    case = min(cases.iterdir())
    sockets = json.loads((pack / "sockets.json").read_text())[:2]
    told = [{"socket": {"slug": one["slug"], "relative_path": one["relative_path"]}} for one in sockets]
    given, out = tmp_path / "input", tmp_path / "output"
    given.mkdir()
    out.mkdir()
    (given / "inputs.json").write_text(json.dumps(told))
    (given / "focus-question.json").write_bytes((case / "focus-question.json").read_bytes())
    (given / "focus-video.mp4").write_bytes(b"no video is looked at")
    command = ["start.py"] if method == "exec" else ["-c", CLIENT]
    known = shlex.split(os.environ.get("PROCTOR_PODMAN_ARGS", ""))
    folders = [f"{given}:/input:ro", f"{out}:/output", f"{pack}/example_algorithm:/opt/app:ro"]
    mounts = [part for one in folders for part in ("--volume", one)]
    start = ["podman", "run", "--rm", "--network", "none", *known, *machine, *mounts, "--workdir", "/opt/app"]
    ended = subprocess.run(
        [*start, "--env", f"METHOD={method}", "--entrypoint", "python3", IMAGE, *command],
        capture_output=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr.decode()
    assert set(json.loads((out / "answer.json").read_text())) == {"answer"}
