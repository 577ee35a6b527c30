"""A sight test of a scripted server, on localhost."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from proctor.media import MediaSettings
from proctor.models import ModelClient, ModelSpec
from proctor.sight import SightPlan, SightResult, examine
from tests.support.faulty_server import FaultyServer
from tests.support.sighted_server import Sighted

ROUTES = ("frames", "video", "tools", "schema")


def tried(
    model: Sighted,
    *,
    routes: Sequence[str] = ROUTES,
    seed: int = 1,
    retries: int = 6,
    settings: MediaSettings | None = None,
    **server: Any,
) -> tuple[SightResult, int]:
    """The result, and how many requests the server answered."""

    async def examined(url: str) -> SightResult:
        client = ModelClient(ModelSpec(name="m", base_url=url, backoff_s=0.001, retries=retries))
        try:
            plan = SightPlan(tuple(routes), settings=settings or MediaSettings(), seed=seed, seconds=3600.0)
            return await examine(client, plan)
        finally:
            await client.aclose()

    with FaultyServer(model, **server) as running:
        result = asyncio.run(examined(running.url))
        return result, sum(request.fault is None for request in running.requests)
