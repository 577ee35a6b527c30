"""A server of the OpenAI protocol whose model reads: OCR with trained weights, and classical vision, nothing of Proctor.

It imports nothing of Proctor and knows no plan of a sight test: it decodes the pictures and videos of a request, reads digits
with PP-OCR v4 (`pip install rapidocr-onnxruntime`, whose wheel has the weights), finds coloured discs by hue, size, position and
way with OpenCV, and answers the words of the question. Each picture is read once, as an encoder cache of a real server does.

`--fault` breaks what reaches the model: `nothing`, `black`, `first:K`, `last:K`, `every:K` (of pictures, and of those sampled
from a video), `video-first:K` (of a video's alone), `reversed`, `shrink:N` (pixels of the longest side), `cached` (replies by
the text of a request), `no-video`, `no-tools`, `no-schema` (pictures are dropped when tools or a schema are given), `times`
(labels of frames, and the clock of a video, run at half speed), `shift:K` (the label of a frame stands K frames later). Its first line of output is its port. `bench/sight.py` starts
it.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import hashlib
import io
import json
import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import av
import cv2
import numpy as np
from aiohttp import web

Pixels = Any  # an array of height × width × 3, BGR
_SAMPLED = 2.0  # pictures a second that the model takes of a video
_HUES = {"red": 0, "yellow": 25, "green": 65, "blue": 115}  # of OpenCV: half degrees
_REQUEST_BYTES = 256 * 2**20
_LEAST_AREA = 0.002  # of the picture: smaller specks are no disc


@dataclass(frozen=True)
class Part:
    """A part of a request: `kind` is text, picture, video or other."""

    kind: str
    text: str = ""
    pictures: tuple[Pixels, ...] = field(default=(), repr=False)
    times: tuple[float, ...] = ()


@dataclass(frozen=True)
class Shown:
    """A picture that the model looks at, with its time if it was told one."""

    pixels: Pixels = field(repr=False)
    at: float | None = None
    of_video: bool = False


@dataclass(frozen=True)
class Disc:
    """A coloured region: its centre as shares of width and height, its area as a share of the picture."""

    colour: str
    x: float
    y: float
    area: float


class Reader:
    """Reads the numbers of pictures, each picture once."""

    def __init__(self) -> None:
        from rapidocr_onnxruntime import RapidOCR

        self._ocr = RapidOCR(det_limit_side_len=1280, det_limit_type="max", intra_op_num_threads=1)
        self._read: dict[bytes, list[int]] = {}

    def numbers(self, pixels: Pixels) -> list[int]:
        """The numbers in a picture, from top to bottom."""
        key = hashlib.sha256(pixels.tobytes() + str(pixels.shape).encode()).digest()
        if key not in self._read:
            found, _ = self._ocr(pixels, use_cls=False)
            lines = sorted((min(corner[1] for corner in box), text) for box, text, _ in found or [])
            self._read[key] = [int(digits[0]) for _, text in lines if (digits := re.findall(r"\d+", text))]
        return self._read[key]


@dataclass
class Model:
    """Answers questions about pictures in words."""

    reader: Reader

    def answer(self, texts: Sequence[str], shown: Sequence[Shown]) -> tuple[str, str]:
        """The answer to the question at the end of the texts, and a sentence; the answer is "" if there is none."""
        question = re.search(r"^Question: (.+)$", texts[-1], re.MULTILINE)
        asked = question[1] if question else texts[-1]
        if not shown:
            return "", "I don't see any picture or video in your message."
        options = dict(re.findall(r"^([A-Z])[.)] (.+)$", texts[-1], re.MULTILINE))
        if options:
            return self._choice(asked, options, shown)
        if re.search(r"at what time", asked, re.IGNORECASE):
            return self._time(asked, shown)
        if re.search(r"from the top.* last that you can", asked):
            found = self.reader.numbers(shown[-1].pixels)
            if not found:
                return "", "I can't read any number in the picture."
            return str(found[-1]), f"I can read {len(found)} numbers, from {found[0]} to {found[-1]}."
        one = self._meant(asked, shown)
        found = [] if one is None else self.reader.numbers(one.pixels)
        if not found:
            otherwise = re.search(r"answer (\d+)\.", asked)
            return (otherwise[1] if otherwise else ""), "I can't see a number there."
        return str(found[0]), f"The number that I can read is {found[0]}."

    def _meant(self, asked: str, shown: Sequence[Shown]) -> Shown | None:
        """The picture that the question is about."""
        if re.search(r"\bfirst\b", asked):
            return shown[0]
        at = re.search(r"at t = ([\d.]+) s|(\d+) seconds after the beginning", asked)
        if at is None:
            return shown[-1]
        wanted = float(at[1] or at[2])
        timed = [one for one in shown if one.at is not None]
        if not timed:
            return None
        nearest = min(timed, key=lambda one: abs((one.at or 0.0) - wanted))
        return nearest if abs((nearest.at or 0.0) - wanted) < 1.0 else None

    def _time(self, asked: str, shown: Sequence[Shown]) -> tuple[str, str]:
        number = re.search(r"number (\d+)", asked)
        for one in shown if number else ():
            if one.at is not None and int(number[1]) in self.reader.numbers(one.pixels):  # type: ignore[index]
                whole = round(one.at)
                clock = f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"
                return clock, "That is when the number is shown."
        return "", "I can't see that number in any of the pictures."

    def _choice(self, asked: str, options: dict[str, str], shown: Sequence[Shown]) -> tuple[str, str]:
        seen = [discs(one.pixels) for one in shown]
        if not seen[-1]:
            return "", "I can't see anything like that in the picture."
        if re.search(r"which way", asked, re.IGNORECASE):
            said = way([found[0] for found in seen if found])
        elif re.search(r"\bwhere\b", asked, re.IGNORECASE):
            one = seen[-1][0]
            said = f"at the {'top' if one.y < 0.5 else 'bottom'} {'left' if one.x < 0.5 else 'right'}"
        else:
            said = seen[-1][0].colour
        letter = next((letter for letter, text in options.items() if text.strip() == said), "")
        return letter, f"It is {said}."


def discs(pixels: Pixels) -> list[Disc]:
    """The coloured regions of a picture, largest first."""
    hsv = cv2.cvtColor(pixels, cv2.COLOR_BGR2HSV)
    height, width = pixels.shape[:2]
    coloured = ((hsv[..., 1] > 110) & (hsv[..., 2] > 70)).astype(np.uint8)
    found = []
    for colour, hue in _HUES.items():
        apart = np.abs(hsv[..., 0].astype(int) - hue)
        mask = coloured & (np.minimum(apart, 180 - apart) <= 15).astype(np.uint8)
        count, _, stats, centres = cv2.connectedComponentsWithStats(mask)
        for k in range(1, count):
            area = float(stats[k, cv2.CC_STAT_AREA]) / (width * height)
            if area >= _LEAST_AREA:
                found.append(Disc(colour, float(centres[k][0]) / width, float(centres[k][1]) / height, area))
    return sorted(found, key=lambda one: -one.area)


def way(path: Sequence[Disc]) -> str:
    """Which way a disc went, from its first position to its last."""
    across, down = path[-1].x - path[0].x, path[-1].y - path[0].y
    if abs(across) >= abs(down):
        return "to the right" if across > 0 else "to the left"
    return "down" if down > 0 else "up"


@dataclass(frozen=True)
class Request:
    """A request to the model: its body, and the parts of the user's messages."""

    body: dict[str, Any] = field(repr=False)
    parts: tuple[Part, ...]

    @cached_property
    def texts(self) -> list[str]:
        """The texts of the user."""
        return [part.text for part in self.parts if part.kind == "text"]

    @property
    def shown(self) -> list[Shown]:
        """The pictures in order; a text right before one that tells a time is its label."""
        shown: list[Shown] = []
        label = ""
        for part in self.parts:
            if part.kind == "text":
                label = part.text
                continue
            told = re.search(r"t = ([\d.]+) s", label)
            if part.kind == "picture":
                shown += [Shown(one, float(told[1]) if told else None) for one in part.pictures]
            elif part.kind == "video":
                shown += [Shown(one, at, True) for one, at in zip(part.pictures, part.times, strict=True)]
            label = ""
        return shown


def request_of(body: dict[str, Any]) -> Request:
    """The request in the body of a call. Raises `ValueError` for a part that the model does not take."""
    parts: list[Part] = []
    for message in body["messages"]:
        if message["role"] != "user":
            continue
        content = message["content"]
        parts += map(_part, [{"type": "text", "text": content}] if isinstance(content, str) else content)
    return Request(body, tuple(parts))


def _part(one: dict[str, Any]) -> Part:
    kind = one["type"]
    if kind == "text":
        return Part("text", one["text"])
    if kind not in {"image_url", "video_url"}:
        raise ValueError(f"this model takes text, image_url and video_url, not {kind}")
    content = base64.b64decode(one[kind]["url"].partition(",")[2])
    if kind == "video_url":
        times, pictures = _sampled(content)
        return Part("video", pictures=pictures, times=times)
    pixels = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_COLOR)
    if pixels is None:
        raise ValueError("a picture that can't be decoded")
    return Part("picture", pictures=(pixels,))


def _sampled(content: bytes) -> tuple[tuple[float, ...], tuple[Pixels, ...]]:
    """Pictures of a video at the model's rate, with their times."""
    times: list[float] = []
    pictures: list[Pixels] = []
    with av.open(io.BytesIO(content), "r") as container:
        for frame in container.decode(container.streams.video[0]):
            at = float(frame.time or 0.0)
            if not times or at >= times[-1] + 1 / _SAMPLED - 0.01:
                times.append(at)
                pictures.append(frame.to_ndarray(format="bgr24"))
    return tuple(times), tuple(pictures)


Fault = Callable[[Request], Request]


def fault_of(name: str) -> Fault:
    """What a `--fault` does to a request. Raises `ValueError` for an unknown one."""
    kind, _, number = name.partition(":")
    many = int(number) if number else 0
    chosen: dict[str, Callable[[list[Any]], list[Any]]] = {
        "nothing": lambda _: [],
        "first": lambda some: some[:many],
        "last": lambda some: some[-many:],
        "every": lambda some: some[::many],
    }
    if kind in chosen:
        return lambda request: replace(request, parts=_some(request.parts, chosen[kind]))
    if kind in {"shrink", "black"}:
        change = (lambda one: _shrunk(one, many)) if kind == "shrink" else np.zeros_like
        return lambda request: replace(
            request, parts=tuple(replace(part, pictures=tuple(map(change, part.pictures))) for part in request.parts)
        )
    others: dict[str, Fault] = {
        "none": lambda request: request,
        "cached": lambda request: request,  # the replies are
        "reversed": _reversed,
        "times": _half_speed,
        "shift": lambda request: _shifted(request, many),
        "video-first": lambda request: replace(request, parts=tuple(_first_of_video(p, many) for p in request.parts)),
        "no-video": lambda request: replace(request, parts=tuple(p for p in request.parts if p.kind != "video")),
        "no-tools": lambda request: _blind(request) if request.body.get("tools") else request,
        "no-schema": lambda request: _blind(request) if request.body.get("response_format") else request,
    }
    if kind not in others:
        raise ValueError(f"unknown fault {name!r}: one of {', '.join([*chosen, 'shrink', 'black', *others])}")
    return others[kind]


def _some(parts: Sequence[Part], choose: Callable[[list[Any]], list[Any]]) -> tuple[Part, ...]:
    """The parts with some of the pictures, and some of those of each video; labels of lost pictures go with them."""
    places = [k for k, part in enumerate(parts) if part.kind == "picture"]
    lost = set(places) - set(choose(places))
    lost |= {k - 1 for k in lost if k and parts[k - 1].kind == "text" and parts[k - 1].text.startswith("t = ")}
    kept = []
    for k, part in enumerate(parts):
        if part.kind == "video":
            pairs = choose(list(zip(part.pictures, part.times, strict=True)))
            kept.append(replace(part, pictures=tuple(p for p, _ in pairs), times=tuple(t for _, t in pairs)))
        elif k not in lost:
            kept.append(part)
    return tuple(kept)


def _first_of_video(part: Part, many: int) -> Part:
    if part.kind != "video":
        return part
    return replace(part, pictures=part.pictures[:many], times=part.times[:many])


def _reversed(request: Request) -> Request:
    """The pictures in the reverse order, the labels where they were."""
    pictures = [part.pictures for part in request.parts if part.kind == "picture"]
    return replace(
        request,
        parts=tuple(
            replace(part, pictures=pictures.pop())
            if part.kind == "picture"
            else replace(part, pictures=part.pictures[::-1])
            for part in request.parts
        ),
    )


def _shifted(request: Request, many: int) -> Request:
    labels = [part for part in request.parts if part.text.startswith("t = ")]
    moved = iter([*labels[:1] * many, *labels])
    return replace(
        request, parts=tuple(next(moved) if part.text.startswith("t = ") else part for part in request.parts)
    )


def _half_speed(request: Request) -> Request:
    def told(part: Part) -> Part:
        if part.kind == "text" and (label := re.match(r"t = ([\d.]+) s", part.text)):
            return replace(part, text=f"t = {float(label[1]) / 2:.1f} s")
        return replace(part, times=tuple(at / 2 for at in part.times))

    return replace(request, parts=tuple(map(told, request.parts)))


def _blind(request: Request) -> Request:
    return replace(request, parts=tuple(part for part in request.parts if part.kind == "text"))


def _shrunk(pixels: Pixels, side: int) -> Pixels:
    """A picture whose longest side is at most `side` pixels, as processors of models make it."""
    height, width = pixels.shape[:2]
    scale = side / max(height, width)
    if scale >= 1:
        return pixels
    size = max(1, round(width * scale)), max(1, round(height * scale))
    return cv2.resize(pixels, size, interpolation=cv2.INTER_AREA)


class Server:
    """The HTTP side: one chat completion at a time is answered, others wait."""

    def __init__(self, fault: str) -> None:
        self.model = Model(Reader())
        self._fault = fault_of(fault)
        self._kept: dict[str, Any] | None = {} if fault == "cached" else None
        self._thinks = asyncio.Lock()

    async def models(self, _: web.Request) -> web.Response:
        """The list of models."""
        return web.json_response({"object": "list", "data": [{"id": "reader", "object": "model"}]})

    async def complete(self, call: web.Request) -> web.Response:
        """A chat completion."""
        body = await call.json()
        try:
            async with self._thinks:
                message = await asyncio.to_thread(self._message, body)
        except (ValueError, KeyError, av.error.FFmpegError) as error:
            said = {"error": {"message": str(error), "type": "invalid_request_error"}}
            return web.json_response(said, status=400)
        return web.json_response(
            {
                "id": "chatcmpl-1",
                "object": "chat.completion",
                "created": int(time.time()),
                "model": "reader",
                "choices": [
                    {
                        "index": 0,
                        "finish_reason": "tool_calls" if "tool_calls" in message else "stop",
                        "message": {"role": "assistant", **message},
                    }
                ],
                "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
            }
        )

    def _message(self, body: dict[str, Any]) -> dict[str, Any]:
        request = request_of(body)
        key = json.dumps([request.texts, body.get("tools"), body.get("response_format")])
        if self._kept is not None and key in self._kept:
            return self._kept[key]  # type: ignore[no-any-return]
        request = self._fault(request)
        made = message(body, *self.model.answer(request.texts, request.shown))
        if self._kept is not None:
            self._kept[key] = made
        return made


def message(body: dict[str, Any], answer: str, sentence: str) -> dict[str, Any]:
    """An answer in the form that was asked for: the call of the tool that takes a number, JSON by its schema, or words."""
    number = int(answer) if answer.isdigit() else 0
    for tool in body.get("tools") or ():
        arguments = _filled(tool["function"].get("parameters", {}), number)
        if arguments:
            function = {"name": tool["function"]["name"], "arguments": json.dumps(arguments)}
            return {"content": None, "tool_calls": [{"id": "call-1", "type": "function", "function": function}]}
    if form := (body.get("response_format") or {}).get("json_schema"):
        return {"content": json.dumps(_filled(form["schema"], number))}
    return {"content": f"Answer: {answer}\n\n{sentence}" if answer else sentence}


def _filled(schema: dict[str, Any], number: int) -> dict[str, int]:
    """An object of the schema whose whole numbers are this one."""
    properties = schema.get("properties", {})
    return {name: number for name, one in properties.items() if one.get("type") == "integer"}


async def _serve(fault: str) -> None:
    server = Server(fault)
    app = web.Application(client_max_size=_REQUEST_BYTES)
    app.add_routes([web.get("/v1/models", server.models), web.post("/v1/chat/completions", server.complete)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    sys.stdout.write(f"{runner.addresses[0][1]}\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    given = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    given.add_argument("--fault", default="none", help="What breaks the pictures on their way.")
    asyncio.run(_serve(given.parse_args().fault))
