"""Is anybody there? Asked once before a run: a server that is not running answers no item."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from proctor.core import ConfigurationError
from proctor.models.provider import http_client

__all__ = ["reachable"]

_PATIENCE_S = 15.0


async def reachable(base_urls: Iterable[str | None]) -> None:
    """Sends one request to each server. Any reply will do: paths and keys are checked by the first question.

    Raises `ConfigurationError`, with the address, where nobody listens.
    """
    urls = list(dict.fromkeys(url for url in base_urls if url is not None))
    await asyncio.gather(*(_answers(url) for url in urls))


async def _answers(url: str) -> None:
    import httpx2

    async with http_client(_PATIENCE_S) as http:
        try:
            await http.get(url)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise ConfigurationError(
                f"nobody answers at {url} ({_reason(error)}): is the server running, and is --base-url right?"
            ) from error
        except httpx2.HTTPError:
            return  # somebody is there


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__
