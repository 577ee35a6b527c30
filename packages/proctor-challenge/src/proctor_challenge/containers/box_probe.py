"""The program that the doctor runs in a container to find out what the container can do. It needs only Python's
standard library and imports nothing of Proctor, since an image holds only this file."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import socket
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import UnixStreamServer
from typing import Any

_NEW_USERS = 0x10000000


def rights() -> dict[str, Any]:
    """The user and its privileges."""
    lines = Path("/proc/self/status").read_text().splitlines()
    status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    return {
        "user": os.getuid(),
        "capabilities": int(status["CapEff"], 16) | int(status["CapBnd"], 16),
        "no_new_privileges": status["NoNewPrivs"] == "1",
        "filter": status["Seccomp"] == "2",
        "namespaces": _may_unshare(),
    }


def _may_unshare() -> bool:
    child = os.fork()
    if child == 0:
        os._exit(ctypes.CDLL(None).unshare(_NEW_USERS) == 0)
    return os.waitpid(child, 0)[1] != 0


def network() -> dict[str, Any]:
    """The network interfaces, and whether there is a route."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        return {
            "interfaces": [name for _, name in socket.if_nameindex()],
            "route": one.connect_ex(("192.0.2.1", 9)) == 0,  # nothing is sent
        }


def written() -> dict[str, int]:
    """The bytes that fit into each folder; -1 for a read-only one."""
    folders = {"root": "/", "input": "/input", "scratch": "/tmp", "shared": "/dev/shm"}  # noqa: S108 - inside a container
    folders["socket"] = str(Path(os.environ["PROCTOR_SOCKET"]).parent)
    return {name: _fill(Path(folder, "written")) for name, folder in folders.items()}


def _fill(path: Path) -> int:
    try:
        with path.open("wb", buffering=0) as out:
            count = 0
            with contextlib.suppress(OSError):
                while count < 2**30:
                    count += out.write(b"\1" * 2**16)
    except OSError:
        return -1
    path.unlink()
    return count


def processes() -> int:
    """The number of further processes that start, up to ten thousand."""
    children: list[int] = []
    with contextlib.suppress(OSError):
        while len(children) < 10_000:
            child = os.fork()
            if child == 0:
                time.sleep(600)
                os._exit(0)
            children.append(child)
    for child in children:
        os.kill(child, 9)
        os.waitpid(child, 0)
    return len(children)


def memory() -> int:
    """Allocates a gigabyte; should be killed."""
    kept = [b"\1" * 2**22 for _ in range(2**8)]
    return sum(map(len, kept))


def gpu() -> dict[str, Any]:
    """The number of CUDA devices, or why there are none."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        return {"devices": 0, "found": str(error)}
    count = ctypes.c_int(0)
    code = cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count))
    return {"devices": count.value, "found": f"CUDA says {code}"}


def sleep() -> str:
    """Answers late, for a deadline of less than half a second."""
    time.sleep(0.5)
    return ""


def nothing() -> str:
    """Answers at once."""
    return ""


PROBES: dict[str, Callable[[], Any]] = {
    one.__name__: one for one in (rights, network, written, processes, memory, gpu, sleep, nothing)
}


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._reply({})

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
        self._reply({"answer": json.dumps(PROBES[request["question"]]())})

    def _reply(self, content: dict[str, Any]) -> None:
        body = json.dumps(content).encode()
        with contextlib.suppress(OSError):
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the name of the library
        """Logs nothing."""


if __name__ == "__main__":
    location = os.environ["PROCTOR_SOCKET"]
    server = UnixStreamServer(location, _Handler)
    Path(location).chmod(0o666)  # the client is another user
    server.serve_forever()
