"""Containers for tests: an executor that works here, and images of this machine's Python with a program in them."""

from __future__ import annotations

import asyncio
import os
from functools import cache
from pathlib import Path

import pytest

from proctor.core import ProctorError
from proctor_challenge.containers import BoxLimits, PodmanExecutor
from proctor_challenge.containers.images import own_image

SMALL = BoxLimits(memory=2**27, cpus=1, processes=32, shared_memory=2**20, scratch=2**20, log=2**16)
HOSTILE = Path(__file__).parent / "hostile_box.py"


def podman() -> PodmanExecutor:
    """Podman, as it works on this machine. Where it does not the test is skipped with the reason; where it has to
    (`PROCTOR_PODMAN=required`), it fails."""
    if reason := _missing():
        if os.environ.get("PROCTOR_PODMAN") == "required":
            pytest.fail(reason)
        pytest.skip(reason)
    return PodmanExecutor()


def image_of(program: Path) -> str:
    """The digest of an image that runs a program; made once."""
    return asyncio.run(own_image("podman", program))


@cache
def _missing() -> str:
    """Why no container runs here; empty where one does."""

    async def start() -> None:
        box = await PodmanExecutor().start(await own_image("podman", HOSTILE), SMALL, label="test/start/1")
        await box.stop()

    try:
        asyncio.run(start())
    except ProctorError as error:
        return f"no container runs here: {error}"
    return ""
