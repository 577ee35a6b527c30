"""The headers of every response: what a page may load and run, and who may frame it."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.types import ASGIApp, Message, Receive, Scope, Send

_INVITATION = "/invitation/"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self'; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}


class SecurityHeaders:
    """Adds security headers to every response, and `no-store` to all but static files."""

    def __init__(self, app: ASGIApp, *, tls: bool) -> None:
        self._app = app
        headers = HEADERS | ({"strict-transport-security": "max-age=31536000"} if tls else {})
        self._headers = _encoded(headers)
        # Their address holds a secret, which a proxy would log with the next request as the address that it came from.
        self._secret = _encoded(headers | {"referrer-policy": "strict-origin"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        caching = b"no-cache" if scope["path"].startswith("/static/") else b"no-store"
        headers = self._secret if scope["path"].startswith(_INVITATION) else self._headers

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [pair for pair in message.get("headers", []) if pair[0].lower() != b"cache-control"]
                message = {**message, "headers": [*own, *headers, (b"cache-control", caching)]}
            await send(message)

        await self._app(scope, receive, with_headers)


def _encoded(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in headers.items()]
