"""The bench's server that reads: it knows nothing of Proctor, and its faults do what they say. Its OCR is not installed here."""

from __future__ import annotations

import ast
import base64
from pathlib import Path

import cv2
import numpy as np
import pytest

from bench import reading_server as server
from proctor.sight import pictures
from tests.support.paths import ROOT


def request(*pictures_: int, body: dict[str, object] | None = None) -> server.Request:
    """A request with grey pictures of these shades, each after its time, and a question."""
    parts: list[server.Part] = []
    for second, shade in enumerate(pictures_):
        parts.append(server.Part("text", f"t = {second:.1f} s"))
        parts.append(server.Part("picture", pictures=(np.full((30, 40, 3), shade, np.uint8),)))
    return server.Request(body or {}, (*parts, server.Part("text", "Question: What?")))


def shown(fault: str, made: server.Request) -> list[tuple[int, float | None]]:
    """The shades that the model gets, with their times."""
    return [(int(one.pixels[0, 0, 0]), one.at) for one in server.fault_of(fault)(made).shown]


def test_it_imports_nothing_of_proctor() -> None:
    for name in ("reading_server.py", "llama_server.py"):
        tree = ast.parse(Path(ROOT / "bench" / name).read_text(encoding="utf-8"))
        modules = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        modules += [one.name for node in ast.walk(tree) if isinstance(node, ast.Import) for one in node.names]
        assert not [one for one in modules if one.partition(".")[0] == "proctor"]


@pytest.mark.parametrize(
    ("fault", "arrives"),
    [
        ("none", [(10, 0.0), (20, 1.0), (30, 2.0)]),
        ("nothing", []),
        ("black", [(0, 0.0), (0, 1.0), (0, 2.0)]),
        ("first:2", [(10, 0.0), (20, 1.0)]),
        ("last:1", [(30, 2.0)]),
        ("every:2", [(10, 0.0), (30, 2.0)]),
        ("reversed", [(30, 0.0), (20, 1.0), (10, 2.0)]),
        ("shift:1", [(10, 0.0), (20, 0.0), (30, 1.0)]),
        ("times", [(10, 0.0), (20, 0.5), (30, 1.0)]),
        ("no-tools", [(10, 0.0), (20, 1.0), (30, 2.0)]),
    ],
)
def test_what_a_fault_does(fault: str, arrives: list[tuple[int, float]]) -> None:
    assert shown(fault, request(10, 20, 30)) == arrives


def test_pictures_are_dropped_beside_tools_or_a_schema_alone() -> None:
    assert shown("no-tools", request(10, body={"tools": [{}]})) == []
    assert shown("no-schema", request(10, body={"response_format": {}})) == [(10, 0.0)]
    assert shown("no-schema", request(10, body={"response_format": {"type": "json_schema"}})) == []


def test_a_picture_is_shrunk_to_its_longest_side() -> None:
    (one,) = server.fault_of("shrink:20")(request(10)).shown
    assert one.pixels.shape == (15, 20, 3)
    with pytest.raises(ValueError, match="unknown fault 'nix'"):
        server.fault_of("nix")


def test_it_sees_colours_places_and_ways() -> None:
    for colour in pictures.COLOURS:
        for place, at in pictures.CORNERS.items():
            (one,) = server.discs(np.asarray(pictures.disc(colour, at))[:, :, ::-1].copy())
            assert one.colour == colour
            assert (one.x < 0.5, one.y < 0.5) == ("left" in place, "top" in place)
    for way in pictures.WAYS:
        drawn = [np.asarray(one)[:, :, ::-1].copy() for one in pictures.moving(way, 8)]
        assert server.way([server.discs(one)[0] for one in drawn]) == way


def test_bytes_that_are_no_picture_are_refused() -> None:
    def asked(kind: str, content: bytes) -> dict[str, object]:
        url = {"url": f"data:image/jpeg;base64,{base64.b64encode(content).decode()}"}
        return {"messages": [{"role": "user", "content": [{"type": kind, kind: url}]}]}

    with pytest.raises(ValueError, match="can't be decoded"):
        server.request_of(asked("image_url", b"no picture"))
    with pytest.raises(ValueError, match="not input_audio"):
        server.request_of(asked("input_audio", b""))
    good = cv2.imencode(".png", np.zeros((9, 9, 3), np.uint8))[1].tobytes()
    assert len(server.request_of(asked("image_url", good)).shown) == 1
