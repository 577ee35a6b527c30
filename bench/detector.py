"""How well a detector that learned from faulty boxes finds the faults: simulated procedures, 10 % of boxes left out,
5 % of another class, 5 % moved by 0.6 to 1 of their size; networks trained in folds by video, from scratch, as the
stage `proposals` does it by default.

python bench/detector.py --threads 1                   (48 videos of 40 s, 3 folds of 1,000 steps, one core: 10 minutes)
python bench/detector.py --videos 8 --steps 200        (how it goes, in a few minutes)
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).resolve().parents[1])  # not this folder, which has a `statistics`

import numpy as np
from PIL import Image

from proctor.stats import Resampling, ratio, sums_interval
from proctor.tasks.simulated.pictures import Renderer
from proctor.tasks.simulated.script import draw_script
from proctor.tasks.simulated.simulation import observe
from proctor.tracks import Annotation
from proctor_build.annotators.detector import DetectorPlan, held_out_detections
from proctor_build.annotators.proposals import ACCEPT, REJECT, BoxProposal, corrected, propose, sure_score
from tests.support.planted_faults import Fault, alike, flags_of, planted

SIZE = (256, 144)
RIGHT = 0.5
LEAST_VISIBLE = 0.3
"""The share of an object that shows, from which on an annotator draws its box."""


def simulated(videos: int, seconds: int, seed: int) -> tuple[list[Annotation], dict[str, list[Image.Image]]]:
    """What is to be seen at each whole second, and its pictures."""
    truths, pictures = [], {}
    for number in range(videos):
        name = f"sim-{number:03d}"
        script = draw_script(seed, name, float(seconds))
        renderer = Renderer(script, SIZE, seed)
        tracks = observe(script, renderer).annotation
        seen = tuple(one for one in tracks.sightings if one.box and (one.visibility or 0) >= LEAST_VISIBLE)
        truths.append(Annotation(video=tracks.video, sightings=seen, moments=tracks.moments))
        pictures[name] = [Image.fromarray(renderer.picture(float(second)).pixels) for second in range(seconds)]
    return truths, pictures


def shares(rows: Sequence[tuple[str, Fault, bool, bool]]) -> dict[str, list[float | None]]:
    """Recall and precision by kind of fault, with intervals clustered by video."""
    found = {}
    for kind in ("missing", "mislabelled", "misplaced", "all"):
        own = [row for row in rows if kind in {"all", row[1][3]}]
        found[f"{kind}: recall"] = share([(video, there and flag, there) for video, _, there, flag in own])
        found[f"{kind}: precision"] = share([(video, there and flag, flag) for video, _, there, flag in own])
    return found


def reproduces(proposal: BoxProposal, flag: Fault, truth: Annotation) -> bool:
    """Whether the box as proposed is that of the truth: the same class, and an overlap of at least `RIGHT`."""
    return any(
        (one.instance, one.class_name) == (flag[2], proposal.class_name)
        and one.box is not None
        and one.box.overlap(proposal.box) >= RIGHT
        for one in truth.by_second().get(proposal.second, [])
    )


def share(rows: Sequence[tuple[str, float, float]]) -> list[float | None]:
    """A ratio of sums over rows of video, part and whole, with its interval clustered by video."""
    table = np.array([row[1:] for row in rows], dtype=np.float64).reshape(-1, 2)
    plan = Resampling(draws=1000, bounds=(0, 1))
    found = sums_interval(table, [row[0] for row in rows], lambda sums: ratio(sums[:, 0], sums[:, 1]), plan=plan)
    return [found.value, found.ci_low, found.ci_high]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    defaults = (("videos", 48), ("seconds", 40), ("folds", 3), ("steps", 1000), ("seed", 7), ("threads", 0))
    for name, value in defaults:
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--format", choices=("text", "json"), default="text")
    asked = parser.parse_args()
    if asked.threads:
        import torch

        torch.set_num_threads(asked.threads)
    truths, pictures = simulated(asked.videos, asked.seconds, asked.seed)
    some = [planted(one, asked.seed) for one in truths]
    crowds = [one.crowd for one in some]
    faults = [one for each in some for one in each.faults]
    began, processor = time.perf_counter(), time.process_time()

    def frames(video: str, seconds: Sequence[int]) -> Iterable[Image.Image]:
        return [pictures[video][second] for second in seconds]

    def told(done: int, total: int) -> None:
        if done % 100 == 0:
            print(f"{done} of {total} steps, {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)

    detections = held_out_detections(
        crowds, {one.video.id: range(asked.seconds) for one in truths}, frames,
        DetectorPlan(folds=asked.folds, steps=asked.steps, seed=asked.seed), progress=told,
    )  # fmt: skip
    score = sure_score(crowds, detections)
    rows: list[tuple[str, Fault, bool, bool]] = []  # video, fault, planted, flagged
    found_right: list[tuple[str, float, float]] = []  # proposals of a planted fault: video, whether it corrects it, 1
    before, after = [], []
    for each in some:
        proposals = propose(each.crowd, detections, score, range(asked.seconds))
        flags = flags_of(proposals, each.truth)
        rows += [(each.truth.video.id, one, one in each.faults, one in flags) for one in sorted({*flags, *each.faults})]
        video, decided = each.truth.video.id, {}
        for one, flag in zip(proposals, flags, strict=True):
            right = reproduces(one, flag, each.truth)
            decided[one.id] = ACCEPT if right else REJECT
            found_right += [(video, right, 1)] if flag in each.faults else []
        before.append((video, alike(each.truth, each.crowd), 1))
        after.append((video, alike(each.truth, corrected(each.crowd, proposals, decided)), 1))
    found: dict[str, Any] = {
        "videos": asked.videos, "pictures": asked.videos * asked.seconds, "faults": len(faults), "score": round(score, 3),
        "seconds": round(time.perf_counter() - began), "processor_seconds": round(time.process_time() - processor),
    }  # fmt: skip
    found |= shares(rows)
    found["right of these proposals"] = share(found_right)
    found["boxes right before"], found["boxes right after"] = share(before), share(after)
    if asked.format == "json":
        print(json.dumps(found))
        return
    for name, shown in found.items():
        parts = shown if isinstance(shown, list) else [shown]
        print(f"{name:26}", *(f"{one:.3f}" if isinstance(one, float) else one for one in parts))


if __name__ == "__main__":
    main()
