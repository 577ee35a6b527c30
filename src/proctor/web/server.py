"""A site as a running server: where it listens, and that passwords never go through a network unencrypted."""

from __future__ import annotations

import socket
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from proctor.core import InputError, UsageError
from proctor.web.site import LOCAL_NAMES, Site


@dataclass(frozen=True)
class Listening:
    """Where the server listens. With a certificate and its key browsers reach it by https; `proxy` is the address of a
    program before it that ends TLS, whose word on the visitor's address is taken."""

    host: str = "127.0.0.1"
    port: int = 8000
    tls_cert: Path | None = None
    tls_key: Path | None = None
    proxy: str = ""

    def tls(self, address: str, settings: str) -> bool:
        """Whether browsers reach it by https; `settings` is the file that says the address. Raises `UsageError` for a
        server that would take passwords without TLS from other machines."""
        if (self.tls_cert is None) != (self.tls_key is None):
            raise UsageError("--tls-cert, --tls-key", "both, the certificate and its key", found="one of them")
        for name, file in (("--tls-cert", self.tls_cert), ("--tls-key", self.tls_key)):
            if file is not None and not file.is_file():
                raise InputError(file, found="no such file", expected=f"a file in PEM form ({name})")
        if self.proxy and not address.startswith("https://"):
            expected = f"an address: https://… in {settings}, where browsers find the proxy"
            raise UsageError("--proxy", expected, found=repr(address))
        if self.tls_cert is None and not self.proxy and not _is_loopback(self.host):
            expected = "--tls-cert and --tls-key, or --proxy: passwords don't go through a network unencrypted"
            raise UsageError("--host", expected, found=self.host)
        return self.tls_cert is not None or bool(self.proxy)

    def names(self, address: str) -> tuple[str, ...]:
        """Under which it answers: this machine's own, that of its address, and the one it listens on."""
        anywhere = {"0.0.0.0", "[::]"}  # noqa: S104 (asked about, not listened on)
        own = f"[{self.host}]" if ":" in self.host else self.host
        named = urlsplit(address).hostname
        return tuple(dict.fromkeys((*LOCAL_NAMES, *([named] if named else []), *({own} - anywhere))))


def serve(site: Site, listening: Listening, sockets: Sequence[socket.socket]) -> None:
    """Serves the site until the process is told to stop; requests that have begun are answered."""
    import uvicorn

    from proctor.web.app import create_app

    config = uvicorn.Config(
        create_app(site),
        access_log=False,  # addresses hold the secrets of invitations
        log_level="warning",
        server_header=False,
        proxy_headers=bool(listening.proxy),
        forwarded_allow_ips=listening.proxy or None,
        ssl_certfile=listening.tls_cert,
        ssl_keyfile=listening.tls_key,
        timeout_keep_alive=75,  # a page saves every few seconds: its connection stays
        timeout_graceful_shutdown=10,
        lifespan="off",
    )
    threading.Thread(target=lambda: [import_module(name) for name in site.slow_modules], daemon=True).start()
    try:
        uvicorn.Server(config).run(sockets=list(sockets))
    finally:
        site.engine.dispose()


def bound(listening: Listening) -> socket.socket:
    """The socket to listen on. Raises `InputError` where the address is another program's, or none of this machine."""
    family = socket.AF_INET6 if ":" in listening.host else socket.AF_INET
    # By this protocol asyncio knows that it may send at once (TCP_NODELAY): without it a page waits 40 ms for an answer
    # to its headers.
    opened = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind((listening.host, listening.port))
        opened.listen(2048)  # who comes before the server is ready waits
    except OSError as error:
        opened.close()
        found = f"{listening.host} port {listening.port}: {error.strerror or error}"
        raise InputError("--host, --port", found=found, expected="an address of this machine that is free") from error
    return opened


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
