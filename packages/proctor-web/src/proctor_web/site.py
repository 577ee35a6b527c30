"""A site and its server: where it listens, its address and hosts, TLS, proxies, and the sizes of uploads.

A kind of site is a subclass of `Site`; the review is one (`ReviewSite`). All sites have the login, accounts and the
trail. A subclass adds its own routes (`mount`), and folders of `templates` and `texts`: a template there replaces one
of the same name in this room, and its `nav.html` fills the bar at the top.
"""

from __future__ import annotations

import os
import socket
import stat
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import ip_address, ip_network
from pathlib import Path
from re import Pattern
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import urlsplit

from sqlalchemy import Connection, Engine

from proctor.core import InputError, UsageError, input_text
from proctor.runs import reading
from proctor_web.schema import ROLES, Role, new_token

if TYPE_CHECKING:
    from fastapi import FastAPI

_KEY_TRIES, _KEY_WAIT_S = 20, 0.05

LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, kw_only=True)
class Site(ABC):
    """What pages are made from. `key` signs cookies, `address` is the public URL, `hosts` are the names that the server
    answers to, and `tls` says whether browsers use https.

    `roles` are those that an organiser may give; `newcomer` is the default.
    `slow_modules` are imported while the server starts, so that no visitor waits for them.
    """

    templates: ClassVar[Path | None] = None
    texts: ClassVar[Path | None] = None
    roles: ClassVar[tuple[Role, ...]] = ROLES
    newcomer: ClassVar[Role] = "reviewer"
    slow_modules: ClassVar[tuple[str, ...]] = ()

    folder: Path
    title: str
    engine: Engine
    key: str
    address: str = ""
    hosts: tuple[str, ...] = LOCAL_NAMES
    tls: bool = False
    now: Callable[[], datetime] = _utc_now

    @abstractmethod
    def mount(self, app: FastAPI) -> None:
        """Adds the site's own routes and their shared state to its application."""

    @property
    def open_registration(self) -> bool:
        """Whether anybody may register, as a `newcomer`."""
        return False

    @property
    def uploads(self) -> Mapping[Pattern[str], int]:
        """Paths that take files, each with the maximum size of a body in bytes. Their routes stream the form
        (`receive_upload`)."""
        return {}

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A read-only connection that sees one state and blocks nobody."""
        with reading(self.engine) as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction: committed when the block ends, rolled back where it raises. Keep it short: SQLite allows one
        writer at a time."""
        with self.engine.begin() as connection:
            yield connection


def upload_limit(site: Site, path: str) -> int | None:
    """The maximum size of a body at this path in bytes; None where it takes no files."""
    return next((limit for pattern, limit in site.uploads.items() if pattern.fullmatch(path)), None)


def signing_key(path: Path) -> str:
    """The key in a file, created at the first call with access for its owner alone. Deleting the file logs everybody
    out."""
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(new_token())
    except FileExistsError:
        pass
    except OSError as error:
        raise InputError(path, found=error.strerror or "an error", expected="a place for the key") from error
    key = input_text(path, "the key that signs cookies").strip()
    for _ in range(_KEY_TRIES):
        if key:
            break
        time.sleep(_KEY_WAIT_S)  # another server has made the file, and not yet written it
        key = input_text(path, "the key that signs cookies").strip()
    if len(key) < 32:
        raise InputError(path, found=f"{len(key)} characters", expected="a key of 32 or more; delete the file for one")
    return key


def private_store(path: Path) -> Path:
    """The path of a database. A new one is created with no access for other users of the machine, since it holds names,
    readings and hashes of passwords. In a folder whose files go to a group that may write there, that group may."""
    with suppress(OSError, ValueError):  # it exists, or opening it says why it can't
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o660)
        shared = stat.S_ISGID | stat.S_IWGRP
        if path.parent.stat().st_mode & shared == shared:
            os.fchmod(file, 0o660)  # whatever the umask
        os.close(file)
    return path


# -- the server


@dataclass(frozen=True)
class Listening:
    """Where the server listens. With a certificate and its key it serves https. `proxy` are the addresses or networks of
    the proxies that terminate TLS, between commas; the server trusts their headers for the visitor's address."""

    host: str = "127.0.0.1"
    port: int = 8000
    tls_cert: Path | None = None
    tls_key: Path | None = None
    proxy: str = ""

    def tls(self, address: str, settings: str) -> bool:
        """Whether browsers use https. `address` is the site's public URL, `settings` the file that states it.

        Raises `UsageError` for a server that would accept passwords from other machines without TLS, and for a proxy
        that no connection could be of.
        """
        if (self.tls_cert is None) != (self.tls_key is None):
            raise UsageError("--tls-cert, --tls-key", "both, the certificate and its key", found="one of them")
        for name, file in (("--tls-cert", self.tls_cert), ("--tls-key", self.tls_key)):
            if file is not None and not file.is_file():
                raise InputError(file, found="no such file", expected=f"a file in PEM form ({name})")
        proxy_networks(self.proxy)
        if self.proxy and not address.startswith("https://"):
            expected = f"an address: https://… in {settings}, where browsers find the proxy"
            raise UsageError("--proxy", expected, found=repr(address))
        if self.tls_cert is None and not self.proxy and not is_loopback(self.host):
            expected = "--tls-cert and --tls-key, or --proxy: passwords don't go through a network unencrypted"
            raise UsageError("--host", expected, found=self.host)
        return self.tls_cert is not None or bool(self.proxy)

    @property
    def in_clear(self) -> bool:
        """Whether other machines than the proxy reach the server without TLS unless a firewall keeps them out."""
        return self.tls_cert is None and not is_loopback(self.host)

    def names(self, address: str) -> tuple[str, ...]:
        """The names that the server answers to: this machine's, the public address's, and the one it listens on."""
        anywhere = {"0.0.0.0", "[::]"}  # noqa: S104 (asked about, not listened on)
        own = f"[{self.host}]" if ":" in self.host else self.host
        public = urlsplit(address).hostname
        return tuple(dict.fromkeys((*LOCAL_NAMES, *([public] if public else []), *({own} - anywhere))))


def bound(listening: Listening) -> socket.socket:
    """The socket to listen on. Raises `InputError` where the address is in use or does not belong to this machine."""
    family = socket.AF_INET6 if ":" in listening.host else socket.AF_INET
    # asyncio sets TCP_NODELAY only on sockets of this protocol: without it a page waits 40 ms for an answer.
    opened = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind((listening.host, listening.port))
        opened.listen(2048)  # visitors who come before the server is ready wait
    except OSError as error:
        opened.close()
        found = f"{listening.host} port {listening.port}: {error.strerror or error}"
        raise InputError("--host, --port", found=found, expected="an address of this machine that is free") from error
    return opened


def proxy_networks(text: str) -> tuple[str, ...]:
    """The networks of proxies in a text with commas; `*` is all addresses. Raises `UsageError` for anything else, such as
    a name, which no connection has.

    >>> proxy_networks("127.0.0.1, 10.1.2.3/8"), proxy_networks("*"), proxy_networks("")
    (('127.0.0.1/32', '10.0.0.0/8'), ('*',), ())
    """
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    if "*" in parts:
        return ("*",)
    found = []
    for part in parts:
        try:
            found.append(str(ip_network(part, strict=False)))
        except ValueError as error:
            expected = "addresses or networks such as 127.0.0.1 or 172.18.0.0/16; connections have no names"
            raise UsageError("--proxy", expected, found=repr(part)) from error
    return tuple(found)


def is_loopback(host: str) -> bool:
    """Whether an address to listen on is reached from this machine alone."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
