"""One file over HTTP, onto disk: bounded, resumed where it broke off, and told in one line where it fails."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from proctor import __version__
from proctor.core import InfrastructureError, InputError, JsonError, UsageError, load_json, write_whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx2

MB = 2**20
_TRIES = 5
_LONGEST_WAIT_S = 60.0
_REDIRECTS = 5
_RETRIED = {408, 425, 429, 500, 502, 503, 504}
_OFFLINE = "a connection: look at the network and the proxy (HTTPS_PROXY), or name a mirror or a file with --url"


def _wait(seconds: float) -> None:
    time.sleep(seconds)


class _BrokenOffError(Exception):
    """A try that another one may mend; `wait_s` is what the server asked for."""

    def __init__(self, reason: str, wait_s: float | None = None) -> None:
        super().__init__(reason)
        self.wait_s = wait_s


@dataclass(frozen=True)
class Downloader:
    """How a file is fetched. `hosts` are those that its address may lead on to, `most_bytes` is what is taken at most;
    `on_change` is told the bytes that are there and those expected (0: not known), `pause` waits between two tries."""

    most_bytes: int
    hosts: tuple[str, ...] = ()
    on_change: Callable[[int, int], None] | None = None
    pause: Callable[[float], None] = _wait

    def fetch(self, url: str, folder: Path) -> Path:
        """The file at an address, in `folder`, under a name of the address's hash. What a broken connection or an end
        of the program left there is gone on with, where the server knows that it is still the same file.

        Raises `InputError` for what no further try mends (a refused address, no such file, too large), and
        `InfrastructureError` after five tries.
        """
        _check(url)
        part = folder / f"{sha256(url.encode()).hexdigest()[:24]}.part"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            return self._tried(url, part)
        except OSError as error:
            reason = error.strerror or str(error)
            raise InputError(folder, found=reason, expected="a folder to write to, with room in it") from error

    def _tried(self, url: str, part: Path) -> Path:
        from httpx2 import Client, HTTPError, Timeout

        last = ""
        headers = {"User-Agent": f"proctor/{__version__}", "Accept-Encoding": "identity"}
        with Client(headers=headers, timeout=Timeout(60.0, connect=20.0), follow_redirects=False) as client:
            for number in range(_TRIES):
                try:
                    self._once(client, url, part)
                    return part
                except _BrokenOffError as error:
                    last, wait = str(error), error.wait_s
                except HTTPError as error:  # no connection, or one that broke
                    last, wait = f"{type(error).__name__}: {error}".rstrip(": "), None
                if number < _TRIES - 1:
                    self.pause(min(2.0**number if wait is None else wait, _LONGEST_WAIT_S))
        raise InfrastructureError(f"{url}: found no file after {_TRIES} tries ({last[:200]}), expected {_OFFLINE}")

    def _once(self, client: httpx2.Client, url: str, part: Path) -> None:
        there, known = _left(part)
        headers = {"Range": f"bytes={there}-", "If-Range": known} if there else {}
        with self._opened(client, url, headers) as response:
            if response.status_code == 416:  # what is there is not the beginning of what is sent
                part.unlink(missing_ok=True)
                raise _BrokenOffError("the server has another file now", 0.0)
            start = _start(response, there)
            length = response.headers.get("content-length", "")
            expected = start + int(length) if length.isdigit() else 0
            self._bounded(url, expected)
            validator = response.headers.get("etag") or response.headers.get("last-modified") or ""
            write_whole(_about(part), json.dumps({"url": url, "validator": validator}))
            done = start
            with part.open("ab" if start else "wb") as file:
                for block in response.iter_raw():
                    done += len(block)
                    self._bounded(url, done)
                    file.write(block)
                    if self.on_change is not None:
                        self.on_change(done, expected)
            if expected and done != expected:
                raise _BrokenOffError(f"{done:,} of {expected:,} bytes")

    def _bounded(self, url: str, size: int) -> None:
        if size > self.most_bytes:
            raise InputError(
                url, found=f"{size / MB:,.1f} MB or more", expected=f"at most {self.most_bytes / MB:,.0f} MB"
            )

    @contextmanager
    def _opened(self, client: httpx2.Client, url: str, headers: dict[str, str]) -> Iterator[httpx2.Response]:
        """The response behind at most five redirects. Raises `InputError` for one that leads to another host, or to no
        file, and for a status that no further try changes."""
        place = url
        for _ in range(_REDIRECTS + 1):
            with client.stream("GET", place, headers=headers) as response:
                status = response.status_code
                if status in (301, 302, 303, 307, 308):
                    place = self._led(url, place, response.headers.get("location", ""))
                    continue
                _check_status(url, response)
                yield response
                return
        raise InputError(url, found=f"more than {_REDIRECTS} redirects", expected="a file")

    def _led(self, url: str, place: str, location: str) -> str:
        found = urljoin(place, location)
        before, after = urlsplit(place), urlsplit(found)
        if after.scheme not in ("http", "https") or (before.scheme == "https" and after.scheme == "http"):
            raise InputError(url, found=f"a redirect to {found[:200]}", expected="one to https")
        if after.hostname != urlsplit(url).hostname and after.hostname not in self.hosts:
            expected = f"the same host; if you trust this one: --url {found[:200]}"
            raise InputError(url, found=f"a redirect to another host, {after.hostname}", expected=expected)
        return found


def _check(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError("--url", "an address with http:// or https://, or a file", found=url)
    if parts.username or parts.password:
        raise UsageError("--url", "an address without a name and a password in it", found=f"one at {parts.hostname}")


def _check_status(url: str, response: httpx2.Response) -> None:
    status = response.status_code
    if status in (200, 206, 416):
        if response.headers.get("content-encoding", "identity") != "identity":
            raise InputError(url, found="a compressed reply that nobody asked for", expected="the file as it is")
        return
    if status in _RETRIED:
        wait = response.headers.get("retry-after", "")
        raise _BrokenOffError(f"status {status}", float(wait) if wait.isdigit() else None)
    closed = " (its owner lets only some people in)" if status in (401, 403) else ""
    raise InputError(url, found=f"status {status}{closed}", expected="a file; the address may have changed: --url")


def _start(response: httpx2.Response, there: int) -> int:
    """From which byte on the reply is: 0 where the server sends the whole file."""
    if response.status_code != 206:
        return 0
    told = response.headers.get("content-range", "")
    if not told.startswith(f"bytes {there}-"):
        raise _BrokenOffError(f"another part than was asked for ({told[:60]!r})", 0.0)
    return there


def _about(part: Path) -> Path:
    return part.with_suffix(".json")


def _left(part: Path) -> tuple[int, str]:
    """How many bytes are there from before, and by what the server knows whether the file is still the same; (0, "")
    where that can't be told. Such a beginning is thrown away."""
    try:
        told: Any = load_json(_about(part).read_text(encoding="utf-8"))
        validator = told["validator"] if isinstance(told, dict) else ""
        size = part.stat().st_size
    except (OSError, JsonError, KeyError, UnicodeDecodeError):
        size, validator = 0, ""
    usable = isinstance(validator, str) and validator and not validator.startswith("W/")
    return (size, validator) if size and usable else (0, "")
