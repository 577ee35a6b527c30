"""Whether the picture asked for is the picture shown: seeks in a real browser, read from a clock burned into the
pixels.

python bench/player.py --seeks 1000

For each kind of video: seeks (first, last, and others drawn by the seed) with how many show the picture asked for; how
many of them the browser's own video below also shows, which nothing promises; and, while playing at 0.25× and at 2×, in
how many callbacks the picture's own media time says what its pixels are (`right`), in how many the pixels are those of
the picture that the callback names (`prompt`: Chromium may have gone on to a later one before they are read, and
Firefox names the next one), and in how many those of its neighbours at most (`next`).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).parents[1])  # instead of this folder, whose statistics.py is not the standard one

from proctor.core import VideoClip
from proctor.media import MediaLibrary
from proctor_web.video import ItemMedia, ShownItem
from tests.support.chromium import Page, find_chromium, open_page
from tests.support.firefox import FirefoxPage, find_firefox, open_firefox
from tests.support.player_check import ClockTruth, Played, play_all, seek_all, truth_of
from tests.support.served_app import serving
from tests.support.web_player import clock_kinds, review_app, write_clock_kinds

RATES = (0.25, 2.0)
_SLOW_PICTURES = 25


async def measured(page: Page | FirefoxPage, url: str, truth: ClockTruth, seeks: Sequence[int]) -> dict[str, Any]:
    """The figures of one kind of video."""
    await page.open(url)
    sought = await seek_all(page, seeks, truth.turn)
    row: dict[str, Any] = {"seeks": len(sought), "right": sum(one.right(truth) for one in sought)}
    row["video below"] = sum(one.below == truth.numbers[one.position] for one in sought)
    for rate in RATES:
        last = len(truth.pts) - 2
        played = await play_all(page, rate, 0, min(last, _SLOW_PICTURES) if rate < 1 else last, truth.turn)
        row[f"{rate:g}x"] = _playing(played, truth)
    return row


def _playing(played: Sequence[Played], truth: ClockTruth) -> dict[str, int]:
    return {
        "callbacks": len(played),
        "right": sum(one.right(truth) for one in played),
        "prompt": sum(one.off(truth) == 0 for one in played),
        "next": sum(abs(one.off(truth)) <= 1 for one in played),
    }


async def run(program: str, folder: Path, seeks: int, seed: int, pictures: int) -> dict[str, dict[str, Any]]:
    """All kinds of videos, one after the other, in one browser."""
    draw, kinds = random.Random(seed), clock_kinds(pictures)
    files = write_clock_kinds(folder, pictures=pictures)
    library = MediaLibrary(folder, cache_dir=folder / "cache")
    items = {k: ShownItem(kind, (VideoClip(source=path.name),)) for k, (kind, path) in enumerate(files.items())}
    rows = {}
    with serving(review_app(folder, ItemMedia(library), items)) as address:
        async with open_firefox(program) if "firefox" in Path(program).name else open_page(program) as page:
            for k, (kind, path) in enumerate(files.items()):
                library.playback(path.name)
                truth = truth_of(path, library.index(path.name).pts.tolist(), kinds[kind][1].rotation)
                share = -(-seeks // len(files))
                indices = [0, len(truth.pts) - 1, *(draw.randrange(len(truth.pts)) for _ in range(share - 2))]
                rows[kind] = await measured(page, f"{address}/player/{k}", truth, indices)
    return rows


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeks", type=int, default=1000, help="over all kinds together")
    parser.add_argument("--pictures", type=int, default=300, help="in each video")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--browser", choices=("chromium", "firefox"), default="chromium")
    parser.add_argument("--program", default="", help="the browser's path, where it is not found by itself")
    parser.add_argument("--format", choices=("table", "json"), default="table")
    given = parser.parse_args()
    program = given.program or (find_firefox() if given.browser == "firefox" else find_chromium())
    if program is None:
        parser.error(f"no {given.browser} here (Debian: apt-get install chromium firefox-esr)")
    with tempfile.TemporaryDirectory() as folder:
        rows = asyncio.run(run(program, Path(folder), given.seeks, given.seed, given.pictures))
    if given.format == "json":
        print(json.dumps(rows, indent=1))
        return
    print(
        f"{'video':24}{'seeks':>8}{'right':>8}{'below':>8}"
        + "".join(f"{f'{rate:g}x right / prompt / next':>28}" for rate in RATES)
    )
    for kind, row in rows.items():
        playing = [row[f"{rate:g}x"] for rate in RATES]
        told = [f"{one['right']} / {one['prompt']} / {one['next']} of {one['callbacks']}" for one in playing]
        print(
            f"{kind:24}{row['seeks']:>8}{row['right']:>8}{row['video below']:>8}"
            + "".join(f"{one:>28}" for one in told)
        )
    totals = [sum(row[name] for row in rows.values()) for name in ("seeks", "right", "video below")]
    print(f"{'all':24}" + "".join(f"{total:>8}" for total in totals))


if __name__ == "__main__":
    main()
