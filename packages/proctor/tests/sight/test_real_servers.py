"""Real servers with weights that were drawn at random: they read nothing, and no server is accused of it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from proctor import api
from proctor.models import Weights, WeightsServer
from proctor.sight import SightResult
from tests.support.tiny_vlm import make_tiny_vlm

_STARTS_S = 600.0  # a guard against a server that never starts
_SHORT = {"max_tokens": 16, "temperature": 0}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_vlm(tmp_path_factory.mktemp("weights"))


def examined(url: str, model: str, cache: Path) -> SightResult:
    table = api.sight(
        model,
        base_url=url,
        cache=cache,
        redraw=1,
        max_frames=8,
        settings=_SHORT,
        retries=0,
        within_s=3600.0,
        timeout_s=600.0,
    )
    return table.data


def test_our_own_server_of_weights(folder: Path, tmp_path: Path) -> None:
    import torch

    torch.set_num_threads(1)
    weights = Weights("tiny", str(folder), "cpu")
    weights.load()
    with WeightsServer(weights, "tiny") as server:
        result = examined(server.url, "tiny", tmp_path)
    assert (result.state, result.findings) == ("could not check", ())
    assert result.routes["video"].state == "not offered"
    assert "expected text or image_url" in result.routes["video"].note
    assert "unreadable" in result.routes["frames"].note
    assert any("Different pictures get the same reply" in note for note in result.notes)
    assert result.calls <= 64


@contextmanager
def transformers_serve(model: Path) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "transformers.cli.transformers", "serve", str(model)]
    offline = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
    with subprocess.Popen(
        [*command, "--host", "127.0.0.1", "--port", str(port), "--device", "cpu"],
        env=offline,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            _wait_for(port, process)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + _STARTS_S
    while time.monotonic() < until and process.poll() is None:
        with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=10):
            return
        time.sleep(0.5)
    raise RuntimeError("transformers serve did not start")


def test_transformers_serve(folder: Path, tmp_path: Path) -> None:
    with transformers_serve(folder) as url:
        result = examined(url, str(folder), tmp_path)
    assert (result.state, result.findings) == ("could not check", ())
    assert "unreadable" in result.routes["frames"].note
    assert result.routes["tools"].state == "could not check"
    assert result.routes["video"].state == "could not check"
    assert result.calls <= 64
