"""A machine with secrets on it: a canary in files, in variables and arguments of processes, and behind sockets."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock


@dataclass
class Planted:
    """Where the canary lies. `visits` are the listeners that somebody connected to."""

    canary: str
    folder: Path
    port: int = 0
    abstract: str = ""
    visits: list[str] = field(default_factory=list)

    @property
    def unix(self) -> Path:
        """A Unix socket that says it."""
        return self.folder / "listener"


@contextlib.contextmanager
def planted(folder: Path) -> Iterator[Planted]:
    """Plants a new canary."""
    secret = Planted(f"CANARY-{secrets.token_hex(16)}", folder)
    secret.abstract = f"@proctor-test-{secrets.token_hex(8)}"
    folder.mkdir(parents=True)
    (folder / "references.json").write_text(f'{{"q1": "{secret.canary}"}}')
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.dict(os.environ, {"PROCTOR_TEST_CANARY": secret.canary}))
        waiting = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)", secret.canary])
        stack.callback(waiting.wait)
        stack.callback(waiting.kill)
        tcp = stack.enter_context(socket.create_server(("0.0.0.0", 0)))
        secret.port = tcp.getsockname()[1]
        for name, address in (("unix", str(secret.unix)), ("abstract", "\0" + secret.abstract[1:])):
            listener = stack.enter_context(socket.socket(socket.AF_UNIX))
            listener.bind(address)
            listener.listen()
            stack.enter_context(_answering(listener, name, secret))
        stack.enter_context(_answering(tcp, "tcp", secret))
        yield secret


@contextlib.contextmanager
def _answering(listener: socket.socket, name: str, secret: Planted) -> Iterator[None]:
    def answer() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection = listener.accept()[0]
                secret.visits.append(name)
                with connection:
                    connection.recv(2**16)  # what is closed unread would take the reply with it
                    connection.sendall(secret.canary.encode())

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def address_of_this_machine() -> str:
    """That of the interface to other machines; the loopback's where there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        try:
            one.connect(("192.0.2.1", 9))  # nothing is sent
        except OSError:
            return "127.0.0.1"
        return str(one.getsockname()[0])
