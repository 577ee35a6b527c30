"""nginx in front of a server of the tests, with the block that the documentation shows."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.markdown import blocks
from tools.docs import ROOT

PAGE = ROOT / "docs" / "tasks" / "review-in-the-browser.md"
_STARTS_S = 20.0
_CONFIGURATION = """user root;
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log info;
events {{}}
http {{
  access_log {folder}/access.log combined;
  client_body_temp_path {folder}/bodies;
  proxy_temp_path {folder}/answers;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
{block}}}
"""


def program() -> str | None:
    """Where nginx is (Debian keeps it out of a user's PATH), or None."""
    return shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")


@dataclass(frozen=True)
class Nginx:
    """A running nginx: its `address`, and the `folder` with its logs."""

    address: str
    folder: Path

    def logs(self) -> str:
        """All that it has logged."""
        return "".join((self.folder / name).read_text() for name in ("access.log", "error.log"))


@contextmanager
def nginx_before(server: str, folder: Path, certificate: tuple[Path, Path], port: int) -> Iterator[Nginx]:
    """Starts nginx on `port` with the block of the page, in front of a server's address."""
    folder.mkdir()
    (block,) = (one.body for one in blocks(PAGE) if one.info == "nginx")
    here = {
        "listen 443 ssl;": f"listen 127.0.0.1:{port} ssl;",
        "server_name review.hospital.org;": "server_name localhost;",
        "/etc/ssl/certs/review.pem": str(certificate[0]),
        "/etc/ssl/private/review.key": str(certificate[1]),
        "http://127.0.0.1:8000": server,
    }
    for shown, own in here.items():
        assert shown in block, shown
        block = block.replace(shown, own)
    (folder / "nginx.conf").write_text(_CONFIGURATION.format(folder=folder, block=block))
    command = [program() or "nginx", "-p", str(folder), "-c", str(folder / "nginx.conf")]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            _wait_for(port, process)
            yield Nginx(f"https://localhost:{port}", folder)
        finally:
            process.terminate()
            process.communicate(timeout=30)


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(port: int, process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + _STARTS_S
    while time.monotonic() < until:
        if process.poll() is not None:
            raise AssertionError(process.communicate()[1])
        with socket.socket() as probe:
            probe.settimeout(1)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError("nginx did not start")
