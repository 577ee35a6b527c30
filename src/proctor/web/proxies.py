"""Behind a proxy: which connections are the proxy's, and how much each visitor may ask at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from ipaddress import ip_network
from typing import Any, cast

from starlette.types import ASGIApp, Receive, Scope, Send

from proctor.web.sessions import network


class PerVisitor:
    """Refuses (503) requests beyond `most` at once from one visitor's address: for a server behind a proxy, whose
    connections all have the proxy's address."""

    def __init__(self, app: ASGIApp, most: int, tally: Counter[str]) -> None:
        self._app, self._most, self._tally = app, most, tally
        self._running: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        address = network(scope["client"][0]) if scope.get("client") else ""
        if self._running[address] >= self._most:
            self._tally["requests refused: too many from one address"] += 1
            headers = [(b"content-type", b"text/plain"), (b"retry-after", b"10"), (b"connection", b"close")]
            await send({"type": "http.response.start", "status": 503, "headers": headers})
            await send({"type": "http.response.body", "body": b"Too many requests at once."})
            return
        self._running[address] += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._running[address] -= 1
            if not self._running[address]:
                del self._running[address]


def proxy_addresses(proxy: str) -> Callable[[str], bool]:
    """Whether an address, as `network` writes it, is one of the proxy's: addresses and networks between commas, or `*`.

    >>> known = proxy_addresses("127.0.0.1, 10.0.0.0/8")
    >>> [known(address) for address in ("127.0.0.1", "10.7.7.7", "192.0.2.1", "2001:db8::/64")]
    [True, True, False, False]
    """
    parts = [part.strip() for part in proxy.split(",") if part.strip()]
    nets = [ip_network(part if "/" in part else network(part), strict=False) for part in parts if _is_network(part)]

    def known(address: str) -> bool:
        if "*" in parts or address in parts:
            return True
        if not _is_network(address):
            return False
        own = ip_network(address, strict=False)
        return any(own.version == one.version and own.subnet_of(cast("Any", one)) for one in nets)

    return known


def _is_network(text: str) -> bool:
    try:
        ip_network(text, strict=False)
    except ValueError:
        return False
    return True
