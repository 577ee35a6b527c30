"""The pictures of a request as they arrived at a server."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path

from proctor.core import Item
from proctor.media import MediaLibrary, MediaSettings, view
from proctor.models import ModelClient, ModelSpec
from proctor.systems import ModelSystem, Sampling
from tests.support.faulty_server import FaultyServer


def sent_pictures(
    root: Path, cache: Path, asked: Item, condition: str, settings: MediaSettings | None = None, *, seed: int = 0
) -> list[bytes]:
    """What a scripted server got when a model was asked the item under the condition, ten pictures a second."""
    how = (settings or MediaSettings()).model_copy(update={"max_frames": 500, "fps": 10.0})
    with FaultyServer("Answer: yes") as server:

        async def run() -> None:
            client = ModelClient(ModelSpec(name="m", base_url=server.url))
            library = MediaLibrary(root, how, cache_dir=cache)
            system = ModelSystem(client, sampling=Sampling(fps=10.0))
            await system.answer(asked.as_asked(), view(asked, condition, library, seed=seed))
            await client.aclose()

        asyncio.run(run())
        (request,) = server.requests
        parts = [part for message in request.body["messages"][1:] for part in message["content"]]
    urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    return [base64.b64decode(url.partition("base64,")[2]) for url in urls]
