"""What a run would send: frames by rate, length and limit; what is answered already is left out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proctor.core import ACCURACY, Answer, Benchmark, Image, Item, VideoClip, View
from proctor.core.formats import BinaryFormat
from proctor.media import MediaLibrary, MediaSettings
from proctor.runs import PICTURE_TOKENS, PlanOptions, Store, estimate_runs
from tests.support.clock_video import ClockVideo, write_clock_video


@dataclass
class Asks:
    name: str = "m"

    @property
    def settings(self) -> dict[str, Any]:
        return {"model": "m"}

    def supports(self, item: Item) -> bool:
        return item.id != "q3"

    async def answer(self, item: Item, view: View) -> Answer:
        raise AssertionError("nobody is asked")


def test_pictures_follow_rate_length_and_limit(tmp_path: Path) -> None:
    write_clock_video(tmp_path / "v.mp4", ClockVideo(times_ms=range(0, 4000, 100), rate=10))
    form = BinaryFormat()
    items = (
        Item(id="q1", group="v", question="Is it on?", answer=form, media=(VideoClip(source="v.mp4"),)),
        Item(id="q2", group="v", question="On?", answer=form, media=(VideoClip(source="v.mp4", end=1.0),)),
        Item(id="q3", group="v", question="On?", answer=form, media=(Image(source="a.png"),)),
        Item(id="q4", group="v", question="On?", answer=form, media=(Image(source="a.png"),) * 2),
    )
    benchmark = Benchmark("b", "B", items, (ACCURACY,), "accuracy")
    library = MediaLibrary(tmp_path, MediaSettings(fps=2.0, max_frames=6))
    seen, blind = estimate_runs(None, benchmark, [Asks()], ("video", "text-only"), library, PlanOptions())
    assert (seen.items, seen.pictures) == (3, 6 + 2 + 2)
    assert (blind.items, blind.pictures) == (3, 0)
    assert seen.tokens == blind.tokens + 10 * PICTURE_TOKENS
    store = Store(tmp_path / "runs.db")
    store.add_benchmark(benchmark)
    run = store.start_run("b", "m", "video", {})
    store.write(run, [(Answer(item_id="q1", text="yes", parsed=True), [])])
    (left,) = estimate_runs(store, benchmark, [Asks()], ("video",), library, PlanOptions())
    assert (left.already, left.items, left.pictures) == (1, 2, 4)
