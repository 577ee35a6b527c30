"""From videos to instances of ClinicalSkillQA: shuffled key frames with their right order."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Self, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from proctor.core import InputError, Region, count_of, generator, json_line, read_json, read_model, whole_folder
from proctor.media import VIDEO_EXTENSIONS, MediaLibrary, Picture, distances, hashes
from proctor.tasks.clinicalskillqa.native import SCENARIOS, Scenario, labels_of, scenario_named
from proctor.tracks import check_bounds, simulated_there

T = TypeVar("T")

_KINDS = {
    "inserted": "the {name} is brought in",
    "moved": "the {name} is moved to another place",
    "hidden": "the {name} is covered",
    "retrieved": "the {name} is carried away",
}
"""The simulator's kinds of events."""

Seconds = Annotated[float, Field(ge=0)]


class LoggedEvent(BaseModel):
    """One event, in seconds of its video. `text` is what happens ("the pads are placed"); the simulator's own events have
    `kind` and `class_name` instead."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    start: Seconds
    end: Seconds
    text: str = ""
    kind: str = ""
    class_name: str = ""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.end < self.start:
            raise ValueError(f"an end from {self.start:g} on")
        if not self.description:
            raise ValueError(f"a text, or a kind ({', '.join(_KINDS)}) with a class_name")
        return self

    @property
    def description(self) -> str:
        """What happens, as part of a sentence; empty where the event has no text."""
        known = _KINDS.get(self.kind, "") if self.class_name else ""
        return self.text.strip().rstrip(".") or known.format(name=self.class_name)


class _Log(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    events: tuple[LoggedEvent, ...]


def read_events(folder: Path, video: str) -> tuple[LoggedEvent, ...]:
    """The log of a video, `NAME.json` for `NAME.mp4`: `{"events": [{"start": 1.5, "end": 3, "text": "…"}, …]}`, in
    order of start. Raises `InputError` where there is none, or where it is something else."""
    file = folder / Path(video).with_suffix(".json")
    log = read_model(file, _Log, f"the event log of {video}")
    return tuple(sorted(log.events, key=lambda event: (event.start, event.end)))


def rationale(order: Sequence[str], times: Sequence[float], events: Sequence[LoggedEvent]) -> str:
    """A rationale from the log: for each event the frames that show it, or the two between which it happens. `times` are
    those of `order`. Empty where the log has no event from the first frame to the last.

    >>> log = [LoggedEvent(start=1, end=3, text="the pads are placed"), LoggedEvent(start=4, end=5, text="a shock is given")]
    >>> rationale(["B", "C", "A"], [0.5, 2, 6], log)
    'In C the pads are placed. Between C and A a shock is given.'
    """
    sentences = []
    for event in events:
        inside = [label for label, time in zip(order, times, strict=True) if event.start <= time <= event.end]
        gap = next((at for at in range(1, len(times)) if times[at - 1] < event.start and event.end < times[at]), 0)
        if inside:
            sentences.append(f"In {_joined(inside)} {event.description}.")
        elif gap:
            sentences.append(f"Between {order[gap - 1]} and {order[gap]} {event.description}.")
    return " ".join(sentences)


def _joined(labels: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(labels[:-1]), labels[-1])))


_TRIES = 12
_MIDDLE = 0.6  # share of its slot that a time is drawn from, so that neighbours stay apart

Grab = Callable[[Sequence[float]], list[bytes]]


def stretches(duration: float, seconds: float, count: int, rng: np.random.Generator) -> list[tuple[float, float]]:
    """Up to `count` stretches of `seconds`, in order and disjoint, each drawn from an equal share of the video; fewer
    where the video is too short.

    >>> [(round(start, 2), round(end, 2)) for start, end in stretches(10.0, 4.0, 5, np.random.default_rng(0))]
    [(0.64, 4.64), (5.27, 9.27)]
    """
    fitting = min(count, int(duration / seconds + 1e-9))
    if fitting < 1:
        return []
    share = duration / fitting
    starts = [number * share + rng.random() * (share - seconds) for number in range(fitting)]
    return [(start, start + seconds) for start in starts]


def choose(
    stretch: tuple[float, float], count: int, apart: float, grab: Grab, rng: np.random.Generator
) -> tuple[list[float], list[bytes]] | None:
    """`count` times of the stretch, one in each of as many equal slots, and their pictures; None where twelve draws do
    not find pictures that all differ in at least the share `apart` of the bits of their perceptual hashes.
    """
    start, end = stretch
    slot = (end - start) / count
    for _ in range(_TRIES):
        inside = (1 - _MIDDLE) / 2 + _MIDDLE * rng.random(count)
        times = [float(start + slot * (number + inside[number])) for number in range(count)]
        pictures = grab(times)
        looks = np.stack([hashes(picture) for picture in pictures])
        between = distances(looks, looks)[np.triu_indices(count, 1)]
        if between.min() >= apart:
            return times, pictures
    return None


BUILDER_VERSION = "2"
"""Changes whenever the same videos and seed give other instances."""

_COMMENT = 4  # bytes of an empty comment
_LONGEST_COMMENT = 2 + 0xFFFF

_MOMENT = 946_684_800  # 2000-01-01: every file has the same time, so that file times reveal no order


@dataclass(frozen=True)
class InstancePlan:
    """What to make of each video: up to `per_video` stretches of `seconds`, and of each stretch one instance for every
    number in `frames`; `apart` is the smallest difference of two frames (share of their hashes' bits)."""

    frames: tuple[int, ...] = (4, 6)
    per_video: int = 4
    seconds: float = 4.0
    apart: float = 0.02
    scenario: Scenario | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.frames or len(set(self.frames)) != len(self.frames):
            raise InputError("frames", found=str(self.frames), expected="numbers of frames, each once")
        check_bounds(
            [
                *(("frames", frame, 2, 26) for frame in self.frames),
                ("per_video", self.per_video, 1, 10_000),
                ("seconds", self.seconds, 0.2, 36_000),
                ("apart", self.apart, 0, 0.5),
            ]
        )
        if self.scenario is not None and self.scenario not in SCENARIOS:
            raise InputError("scenario", found=repr(self.scenario), expected=f"one of {', '.join(SCENARIOS)}")


@dataclass(frozen=True, slots=True)
class Built:
    """What was written, how many instances had too similar frames, and the videos that were too short."""

    instances: int
    videos: int
    too_alike: int
    too_short: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DrawnFrames:
    """Frames of one stretch of a video in the order of time; none where no draw finds `count` different ones."""

    video: str
    stretch: tuple[float, float]
    count: int
    times: list[float]
    pictures: list[bytes]


def draw_frames(
    library: MediaLibrary,
    video: str,
    plan: InstancePlan,
    rng: np.random.Generator,
    *,
    within: tuple[float, float] | None = None,
    region: Region | None = None,
) -> list[DrawnFrames]:
    """All draws of a plan on one video, in seconds of its own clock, optionally `within` two times and a `region` of the
    picture. Empty where the video, or that part, is shorter than a stretch."""

    def grab(times: Sequence[float]) -> list[bytes]:
        return library.jpegs([Picture(video, time, region) for time in times])

    first, last = within or (0.0, library.probe(video).duration_s)
    found = []
    for start, end in stretches(last - first, plan.seconds, plan.per_video, rng):
        stretch = (first + start, first + end)
        for count in plan.frames:
            times, pictures = choose(stretch, count, plan.apart, grab, rng) or ([], [])
            found.append(DrawnFrames(video, stretch, count, times, pictures))
    return found


def dealt_labels(count: int, rng: np.random.Generator) -> tuple[str, ...]:
    """Shuffled labels for frames in the order of time: the first letters, each permutation with equal probability.

    >>> dealt_labels(4, np.random.default_rng(3))
    ('D', 'C', 'B', 'A')
    """
    shown = [int(one) for one in rng.permutation(count)]  # for each label the rank of its frame in time
    return tuple(labels_of(count)[shown.index(moment)] for moment in range(count))


def scenarios_of(videos: Path, file: Path | None = None) -> dict[str, Scenario]:
    """The scenario of each video below a folder: from a JSON object of names (with or without the suffix) to scenarios,
    else from the folder that contains it, `CPR`, `AED` or `BMV` in any case.

    Raises `InputError` for a video without a scenario, an unknown scenario, and a file that can't be read.
    """
    expected = f"one of {', '.join(SCENARIOS)}"
    listed = read_json(file, "an object from videos to scenarios") if file is not None else {}
    if not isinstance(listed, dict):
        raise InputError(file, found=type(listed).__name__, expected="an object from videos to scenarios")
    found: dict[str, Scenario] = {}
    for name in _videos(videos):
        if file is not None:
            stated = listed.get(name, listed.get(Path(name).with_suffix("").as_posix()))
            scenario = scenario_named(stated) if isinstance(stated, str) else None
            if scenario is None:
                shown = repr(stated) if stated else "no scenario"
                raise InputError(file, f"video {name!r}", found=shown, expected=expected)
        else:
            inside = [one for part in Path(name).parts[:-1] if (one := scenario_named(part)) is not None]
            if len(inside) != 1:
                raise InputError(videos / name, found=f"{len(inside)} folders named so", expected=expected)
            scenario = inside[0]
        found[name] = scenario
    return found


def build_instances(
    videos: Path,
    out: Path,
    plan: InstancePlan | None = None,
    *,
    events: Path | None = None,
    cache: Path | None = None,
    scenarios: Mapping[str, Scenario] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Built:
    """Makes instances of all videos below a folder (by name's ending) in the format of ClinicalSkillQA.

    `out` gets `instances/ID/A.jpg` …, `references.jsonl` (order, video and times, for scoring only) and `about.json`
    (seed, settings, whether the videos are simulated). Nothing that a system can see reveals the order: ids are dealt
    over all videos, labels are shuffled, pictures are re-encoded without metadata, all files have the same time, and
    the files of an instance have the same length. The same videos, plan and seed give the same files. With a folder of
    event logs (`events`, see `read_events`: one for each video) the references have rationales (see `rationale`).
    `scenarios` gives the scenario of each video by its name below the folder (see `scenarios_of`); the default is the
    plan's.

    `progress` is called with the number of videos done and of all videos. Raises `InputError` where `out` is not empty,
    a video can't be read, there is none, no instance can be made, or the disk is full; `out` is then unchanged.
    """
    chosen = plan or InstancePlan()
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(out, found="something there already", expected="a new or an empty folder")
    names = _videos(videos)
    logs = {name: read_events(events, name) for name in names} if events is not None else {}
    library = MediaLibrary(videos, cache_dir=cache)
    drafts: list[DrawnFrames] = []
    wanted, short = 0, []
    for number, name in enumerate(names, start=1):
        drawn = draw_frames(library, name, chosen, generator(chosen.seed, "keyframes", name))
        drafts += [drawn_frames for drawn_frames in drawn if drawn_frames.times]
        wanted += len(drawn)
        if not drawn:
            short.append(name)
        if progress is not None:
            progress(number, len(names))
    if not drafts:
        found_text = (
            f"{count_of(len(names), 'video')} without {min(chosen.frames)} visibly different frames in a stretch"
        )
        raise InputError(videos, found=found_text, expected="longer or livelier videos")
    known = dict.fromkeys(names, chosen.scenario) | dict(scenarios or {})
    source = {"simulated": simulated_there(videos), "videos": len(names)}
    with whole_folder(out) as half:
        _write(half, drafts, logs, known, chosen, source)
    return Built(len(drafts), len(names) - len(short), wanted - len(drafts), tuple(short))


def _videos(folder: Path) -> list[str]:
    if not folder.is_dir():
        raise InputError(folder, found="no such folder", expected="a folder of videos")
    found = sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and path.suffix.casefold() in VIDEO_EXTENSIONS
    )
    if not found:
        raise InputError(folder, found="no video", expected=f"files such as {', '.join(VIDEO_EXTENSIONS[:4])}")
    return found


def _write(
    out: Path,
    drafts: list[DrawnFrames],
    logs: Mapping[str, Sequence[LoggedEvent]],
    scenarios: Mapping[str, Scenario | None],
    plan: InstancePlan,
    source: Mapping[str, JsonValue],
) -> None:
    instances = []
    for name, draft in dealt_names(drafts, plan.seed):
        order = dealt_labels(draft.count, generator(plan.seed, "keyframes", "labels", name))
        reference: dict[str, JsonValue] = {
            "id": name,
            "order": [*order],
            "rationale": rationale(order, draft.times, logs.get(draft.video, ())),
            **({"scenario": scenario} if (scenario := scenarios[draft.video]) is not None else {}),
            "video": draft.video,
            # Not rounded: a millisecond may lie on the other side of a frame.
            "start": draft.stretch[0],
            "end": draft.stretch[1],
            "times": [float(time) for time in draft.times],
        }
        instances.append((reference, dict(zip(order, draft.pictures, strict=True))))
    settings: dict[str, JsonValue] = {"events": bool(logs), "seed": plan.seed, "frames": [*plan.frames]}
    write_instances(out, instances, {**source, **settings, "seconds": plan.seconds, "apart": plan.apart})


def dealt_names(drafts: Sequence[T], seed: int) -> list[tuple[str, T]]:
    """The instances with shuffled names `i1`, `i2` … of equal length, in the order of the names."""
    mixed = generator(seed, "keyframes", "ids").permutation(len(drafts))
    digits = len(str(len(drafts)))
    return [(f"i{number:0{digits}d}", drafts[int(position)]) for number, position in enumerate(mixed, start=1)]


def write_instances(
    out: Path, instances: Iterable[tuple[Mapping[str, JsonValue], Mapping[str, bytes]]], about: Mapping[str, JsonValue]
) -> None:
    """Writes `instances/ID/LABEL.jpg`, `references.jsonl` and `about.json` into an empty folder; an instance is its
    reference, with an `id`, and its pictures by label. Neither times nor sizes of the files reveal an order."""
    root = out / "instances"
    root.mkdir(parents=True, exist_ok=True)
    lines = []
    for reference, pictures in instances:
        _write_frames(root / str(reference["id"]), pictures)
        lines.append(json_line(reference))
    os.utime(root, (_MOMENT, _MOMENT))
    (out / "references.jsonl").write_text("".join(lines), encoding="utf-8")
    known = {"kind": "clinicalskillqa instances", "builder_version": BUILDER_VERSION, **about}
    (out / "about.json").write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")


def padded(jpeg: bytes, length: int) -> bytes:
    """The same picture in a file of `length` bytes (4 or more than its own), padded by comments of zeros.

    A file's size depends on how much is in the picture, which in some procedures grows with time.
    """
    comments, gap = b"", length - len(jpeg)
    while gap:
        size = min(gap, _LONGEST_COMMENT)
        if 0 < gap - size < _COMMENT:
            size -= _COMMENT
        comments += b"\xff\xfe" + (size - 2).to_bytes(2, "big") + bytes(size - _COMMENT)
        gap -= size
    return jpeg[:2] + comments + jpeg[2:]


def _write_frames(folder: Path, pictures: Mapping[str, bytes]) -> None:
    folder.mkdir()
    longest = max(map(len, pictures.values()))
    for label, jpeg in sorted(pictures.items()):
        file = folder / f"{label}.jpg"
        file.write_bytes(padded(jpeg, longest + _COMMENT))
        os.utime(file, (_MOMENT, _MOMENT))
    os.utime(folder, (_MOMENT, _MOMENT))
