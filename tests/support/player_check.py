"""What a player really shows: the clock in the pixels that the browser has, beside the picture that was asked for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tests.support.clock_video import BITS, shown_by_decoding

READ_CLOCK = """
window.readClock = (source, width, height, turn) => {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [width, height];
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.drawImage(source, 0, 0, width, height);
  const pixels = context.getImageData(0, 0, width, height).data;
  const grey = (u, v) => {
    const [x, y] = { 0: [u, v], 90: [v, 1 - u], 180: [1 - u, 1 - v], 270: [1 - v, u] }[turn];
    return pixels[4 * (Math.floor(y * height) * width + Math.floor(x * width))];
  };
  let number = 0;
  for (let bit = 0; bit < BITS; bit += 1) {
    const [top, bottom] = [grey((bit + 0.5) / BITS, 0.25), grey((bit + 0.5) / BITS, 0.75)];
    if (Math.abs(top - bottom) < 100) return -1;
    if (top > bottom) number += 1 << bit;
  }
  return number;
};
window.thePlayer = async () => {
  const { playerOf } = await import("/static/player.js");
  const player = await playerOf(document.querySelector("[data-player]"));
  while (!player.ready) await new Promise((done) => setTimeout(done, 20));
  return player;
};
window.sought = async (places, turn) => {
  const player = await thePlayer();
  const [video, { width, height }] = [player.video, player.table];
  const told = [];
  for (const place of places) {
    const shown = await player.show(place);
    const image = player.root.querySelector('[data-part="stage"] img');
    const over = !shown || image.hidden ? -2 : readClock(image, image.naturalWidth, image.naturalHeight, turn);
    if (video.seeking) await new Promise((done) => video.addEventListener("seeked", done, { once: true }));
    const under = readClock(video, width, height, turn);
    told.push([place, player.root.dataset.pts, over, under]);
  }
  return told;
};
window.played = async (rate, first, last, turn) => {
  const player = await thePlayer();
  const [video, { width, height }] = [player.video, player.table];
  await player.show(first);
  player.window(first, last);
  player.looping = false;
  const told = [];
  const note = ({ detail }) => {
    if (detail.exact || player.moving !== 1) return;
    const seen = new VideoFrame(video); /* with its own time: Chromium may have gone on since it told */
    const timed = seen.timestamp > 1000; /* microseconds; Firefox has none worth the name, and does not turn them */
    const now = timed ? player.times.presented(seen.timestamp / 1e6) : detail.place;
    const own = readClock(seen, width, height, turn);
    const clock = timed || own >= 0 ? own : readClock(video, width, height, turn);
    seen.close();
    told.push([detail.place, detail.pts, now, clock]);
  };
  player.root.addEventListener("frame", note);
  await player.play(rate);
  while (player.moving) await new Promise((done) => setTimeout(done, 20));
  player.root.removeEventListener("frame", note);
  return told;
};
""".replace("BITS", str(BITS))


@dataclass(frozen=True)
class ClockTruth:
    """What a file holds: the number that each picture shows, and its timestamp; how far it is turned for display."""

    numbers: tuple[int, ...]
    pts: tuple[int, ...]
    turn: int = 0


@dataclass(frozen=True)
class Sought:
    """One picture that was asked for: its position, the timestamp that the page tells, the clock in the picture that the
    page shows, and the one in the video below it, which only the browser can answer for."""

    position: int
    pts: int
    shown: int
    below: int

    def right(self, truth: ClockTruth) -> bool:
        """Whether the picture asked for is shown."""
        return self.pts == truth.pts[self.position] and self.shown == truth.numbers[self.position]


@dataclass(frozen=True)
class Played:
    """One callback while playing: which picture the player says is shown and its timestamp; which one the browser's
    picture is by its own time when it is read just then (the same, or a later one where reading came late; where
    pictures have no time, as in Firefox, the same), and the clock in its pixels."""

    position: int
    pts: int
    now: int
    clock: int

    def right(self, truth: ClockTruth) -> bool:
        """Whether pixels and media time say the same, and the callback was of this picture or one before it."""
        return (
            self.pts == truth.pts[self.position] and self.clock == truth.numbers[self.now] and self.position <= self.now
        )

    def off(self, truth: ClockTruth) -> int:
        """How many pictures the pixels are from the one that the callback told of; above 0 where they are later."""
        return self.clock - truth.numbers[self.position]


def truth_of(path: Path, pts: Sequence[int], turn: int = 0) -> ClockTruth:
    """By decoding the file from its start."""
    numbers = tuple(number for _, number in shown_by_decoding(path))
    assert len(numbers) == len(pts)
    return ClockTruth(numbers, tuple(int(one) for one in pts), turn % 360)


class CanEvaluate(Protocol):
    """A page of any browser."""

    async def evaluate(self, expression: str) -> Any: ...


async def seek_all(page: CanEvaluate, rows: Sequence[int], turn: int) -> list[Sought]:
    """Asks the open page's player for each of these pictures, and reads the JPEG and the video below it."""
    await page.evaluate(READ_CLOCK)
    told = await page.evaluate(f"sought({json.dumps(list(rows))}, {turn})")
    return [Sought(row, int(pts), over, under) for row, pts, over, under in told]


async def play_all(page: CanEvaluate, rate: float, first: int, last: int, turn: int) -> list[Played]:
    """Plays from one picture to the other, and reads the video at each callback."""
    await page.evaluate(READ_CLOCK)
    told = await page.evaluate(f"played({rate}, {first}, {last}, {turn})")
    return [Played(row, int(pts), now, clock) for row, pts, now, clock in told]
