"""Does the server answer, where it is looked for, with this key? Asked once, before a run is paid or written."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable

from proctor.core import ConfigurationError
from proctor.models.faults import one_line
from proctor.models.provider import http_client

_PATIENCE_S = 15.0
_REFUSED = {401, 403}
_NOT_FOUND = 404


async def reachable(base_urls: Iterable[str | None]) -> None:
    """Asks each OpenAI-compatible server for its list of models, which costs nothing.

    Raises `ConfigurationError`, with the address, where nobody listens, where the key is refused, and where the list
    is below `/v1` of the address instead. Any other reply will do: not every server has such a list.
    """
    urls = list(dict.fromkeys(url for url in base_urls if url is not None))
    await asyncio.gather(*(_check(url) for url in urls))


async def _check(url: str) -> None:
    status, said = await _listed(url)
    if status in _REFUSED:
        key = "another OPENAI_API_KEY" if os.environ.get("OPENAI_API_KEY") else "OPENAI_API_KEY to be set"
        raise ConfigurationError(f"{url} refuses access (HTTP {status}{said}): expected {key}")
    if status == _NOT_FOUND and not url.endswith("/v1"):
        below, _ = await _listed(f"{url}/v1")
        if below == 200 or below in _REFUSED:
            raise ConfigurationError(f"nothing at {url} (HTTP 404): did you mean --base-url {url}/v1?")


async def _listed(url: str) -> tuple[int, str]:
    """The status of a server's list of models, 0 where it sent none, and its words in case of an error."""
    import httpx2

    key = os.environ.get("OPENAI_API_KEY")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with http_client(_PATIENCE_S) as http:
        try:
            reply = await http.get(f"{url}/models", headers=headers)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise ConfigurationError(
                f"nobody answers at {url} ({_reason(error)}): is the server running, and is --base-url right?"
            ) from error
        except httpx2.HTTPError:
            return 0, ""  # somebody is there
    said = one_line(reply.text)[:200] if reply.status_code in _REFUSED else ""
    return reply.status_code, f": {said}" if said else ""


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__
