"""Behind a proxy: which connections are the proxy's, and how much each visitor may ask at once."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, cast

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware


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


class IgnoredProxy:
    """Logs once, with the address, that somebody who is no proxy of ours names another visitor: probably a proxy that
    `--proxy` does not name, so that all of its visitors count as one."""

    def __init__(self, app: ASGIApp, is_proxy: Callable[[str], bool]) -> None:
        self._app, self._is_proxy, self._told = app, is_proxy, False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._told and any(name == b"x-forwarded-for" for name, _ in scope.get("headers", ())):
            address = scope["client"][0] if scope.get("client") else ""
            if not self._is_proxy(network(address)):
                self._told = True
                logging.getLogger("uvicorn.error").warning(
                    "X-Forwarded-For from %s is ignored. If that is your proxy, start with --proxy %s: until then, all of "
                    "its visitors count as one address.", address, address
                )  # fmt: skip
        await self._app(scope, receive, send)


def behind(proxies: Sequence[str], app: ASGIApp, most: int, tally: Counter[str]) -> ASGIApp:
    """The application behind these proxies (see `proxy_networks`): requests have the address of their visitor, with at
    most `most` at once from each. Without proxies, as it is."""
    if not proxies:
        return IgnoredProxy(app, lambda _: False)
    visitors: Any = PerVisitor(app, most, tally)
    trusted: Any = ProxyHeadersMiddleware(visitors, "*" if "*" in proxies else list(proxies))
    return IgnoredProxy(trusted, proxy_addresses(proxies))


def _as_seen(net: IPv4Network | IPv6Network) -> IPv4Network | IPv6Network:
    """A network by what `network` tells apart: of IPv6 no less than 64 bits."""
    return net.supernet(new_prefix=64) if net.version == 6 and net.prefixlen > 64 else net


def proxy_addresses(proxies: Sequence[str]) -> Callable[[str], bool]:
    """Whether an address, as `network` writes it, is one of the proxies (see `proxy_networks`).

    >>> known = proxy_addresses(["127.0.0.1/32", "10.0.0.0/8"])
    >>> [known(address) for address in ("127.0.0.1", "10.7.7.7", "192.0.2.1", "2001:db8::/64")]
    [True, True, False, False]
    """
    nets = [_as_seen(ip_network(one)) for one in proxies if one != "*"]

    def known(address: str) -> bool:
        if "*" in proxies:
            return True
        try:
            own = ip_network(address, strict=False)
        except ValueError:
            return False
        return any(own.version == one.version and own.subnet_of(cast("Any", one)) for one in nets)

    return known


def network(address: str) -> str:
    """What counts as one address: of IPv6 the /64 network, which one connection has whole.

    >>> network("192.0.2.7"), network("2001:db8::7"), network("unix")
    ('192.0.2.7', '2001:db8::/64', 'unix')
    """
    try:
        known = ip_address(address)
    except ValueError:
        return address[:80]
    if isinstance(known, IPv6Address) and known.ipv4_mapped is None:
        return str(IPv6Network((known, 64), strict=False))
    return str(getattr(known, "ipv4_mapped", None) or known)
