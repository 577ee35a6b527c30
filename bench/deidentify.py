"""How well text overlays and pictures outside the body are found, on made videos and two real clips.

python bench/deidentify.py --data DATA

Text: lines of text of four heights, three contrasts and two durations over made tissue under a drifting camera, one
scene a trial (exact intervals, Clopper and Pearson 1934), and the real clips of `DATA/video`, each with and without
text (two scenes: no interval). Outside: a finder fitted on made videos, what it says of itself, and what it does on
others that are made with other seeds, and on the real clips, which show rooms. Made pictures say how the method works,
not how well it does in a theatre.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.stats import binomtest

sys.path.insert(0, str(Path(__file__).parents[1]))

from proctor.media import TextOverlay, sampled
from proctor.media.overlays import text_in
from proctor.stats import Resampling, mean_interval
from proctor_build.sources.outside import OutsideFinder, fit_finder, look_of
from tests.support.labelled_pictures import LABELS, LaidText, Pixels, moving_tissue, sampled_at, with_text
from tests.support.rooms import made_videos

HEIGHTS, CONTRASTS, DURATIONS = (0.03, 0.045, 0.07, 0.1), (30.0, 60.0, 120.0), (3.0, 6.0)
_SECONDS = 6.0


def exact(hits: int, trials: int) -> str:
    """A share of independent trials with its 95 % interval."""
    found = binomtest(hits, trials).proportion_ci(method="exact")
    return f"{hits}/{trials} ({100 * found.low:.0f} to {100 * found.high:.0f} %)"


def is_found(overlays: Sequence[TextOverlay], box: Sequence[float], span: tuple[float, float]) -> bool:
    """Whether one lies mostly in the box, while the text is there."""
    for one in overlays:
        region = one.region
        across = min(box[2], region.x + region.width) - max(box[0], region.x)
        down = min(box[3], region.y + region.height) - max(box[1], region.y)
        inside = across > 0 and down > 0 and across * down >= 0.5 * region.width * region.height
        if inside and one.start < span[1] and one.end > span[0]:
            return True
    return False


def trial(scene: list[Pixels], height: float, contrast: float, duration: float, rng: np.random.Generator) -> bool:
    """One scene with one line of text at a drawn position and time."""
    start = float(rng.uniform(0, _SECONDS - duration))
    row = (float(rng.uniform()), float(rng.uniform()))
    laid = LaidText(str(rng.choice(LABELS)), height, contrast, row, start, start + duration)
    pictures, box = with_text(scene, laid)
    return is_found(text_in(sampled_at(pictures)), box, (laid.start, laid.end))


def text_tables(data: Path | None, scenes: int, seed: int) -> None:
    """Sensitivity by height, contrast and duration; false alarms without text."""
    made = [moving_tissue(seed + k, _SECONDS) for k in range(scenes)]
    alarms = [len(text_in(sampled_at(one))) for one in made]
    print(f"false alarms: flagged scenes {exact(sum(n > 0 for n in alarms), scenes)} of {_SECONDS:g} s without text")
    rng = np.random.default_rng(seed)
    print("text found: height (share of the picture's), contrast (levels of grey), seconds it is there")
    for height in HEIGHTS:
        for contrast in CONTRASTS:
            shown = (
                f"{duration:g} s {exact(sum(trial(one, height, contrast, duration, rng) for one in made), scenes)}"
                for duration in DURATIONS
            )
            print(f"  {height:5.3f} {contrast:4.0f}   ", "   ".join(shown))
    for file in sorted((data / "video").glob("*.mp4")) if data else ():
        clip = [one.pixels for one in sampled(file, 2.0, 960)][: round(2 * _SECONDS)]
        hits = [trial(clip, 0.05, 60.0, 6.0, rng) for _ in range(8)]
        print(
            f"{file.name}: {len(text_in(sampled_at(clip)))} flags without text; {sum(hits)} of 8 lines found (0.05, 60, 6 s)"
        )


def finder_tables(data: Path | None, videos: int, seed: int) -> None:
    """What a finder says of itself, and what it does on other videos."""
    finder = fitted(videos, seed)
    held = finder.held_out
    print(f"fitted on {videos} made videos; threshold {finder.threshold:.3f} for {100 * finder.target:g} %")
    low_high = (held.sensitivity_low, held.sensitivity_high, held.specificity_low, held.specificity_high)
    ends = [float("nan") if one is None else 100 * one for one in low_high]
    print(f"  held out in fitting: sensitivity {100 * held.sensitivity:.1f} % ({ends[0]:.1f} to {ends[1]:.1f})", end="")
    print(f", specificity {100 * held.specificity:.1f} % ({ends[2]:.1f} to {ends[3]:.1f})")
    new = made_videos(videos, 16, seed + 1)
    hit = finder.scores(np.stack([look_of(one) for one in new.pictures])) >= finder.threshold
    plan = Resampling().within(0.0, 1.0)
    for what, mask, right in (("sensitivity", new.outside, hit), ("specificity", ~new.outside, ~hit)):
        groups = [new.groups[int(k)] for k in np.flatnonzero(mask)]
        one = mean_interval(right[mask].astype(float), groups, plan)
        low, high = (100 * (end if end is not None else float("nan")) for end in (one.ci_low, one.ci_high))
        print(
            f"  {videos} other made videos: {what} {100 * (one.value or 0):.1f} % ({low:.1f} to {high:.1f}), {one.n} pictures"
        )
    for file in sorted((data / "video").glob("*.mp4")) if data else ():
        looks = np.stack([look_of(one.pixels) for one in sampled(file, 2.0, 160)])
        print(
            f"  {file.name} (a real room): {np.mean(finder.scores(looks) >= finder.threshold):.0%} of {len(looks)} pictures proposed"
        )


def fitted(videos: int, seed: int) -> OutsideFinder:
    """A finder from made videos of 16 pictures each."""
    made = made_videos(videos, 16, seed)
    return fit_finder(np.stack([look_of(one) for one in made.pictures]), made.outside, made.groups, seed=seed)


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder with real data")
    parser.add_argument("--scenes", type=int, default=20)
    parser.add_argument("--videos", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1000, help="the detector was designed on seeds below 100")
    given = parser.parse_args()
    finder_tables(given.data, given.videos, given.seed)
    text_tables(given.data, given.scenes, given.seed)


if __name__ == "__main__":
    main()
