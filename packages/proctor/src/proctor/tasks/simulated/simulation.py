"""Simulated procedures: ground truth, questions, and the folder with videos.

Most questions come from the rules for all annotated videos (`proctor_build`). The rules here ask what only the
script knows: what was hidden, and what was moved.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from proctor import tracks
from proctor.core import InputError, generator, whole_folder
from proctor.core.formats import ChoiceFormat
from proctor.tasks.simulated.pictures import CLASSES, Renderer
from proctor.tasks.simulated.reader import FORMAT_VERSION, SimulatedManifest, SimulatedQuestion, SimulatedVideo
from proctor.tasks.simulated.script import SLIDE, Event, Script, draw_script

NAMES = tuple(kind.name for kind in CLASSES)


def _texts() -> dict[str, dict[str, str]]:
    import yaml

    text = files(__package__).joinpath("questions.yaml").read_text(encoding="utf-8")
    read: dict[str, dict[str, str]] = yaml.safe_load(text)
    return read


_TEXTS = _texts()

QUESTION_TYPES = {kind: tuple(rules) for kind, rules in _TEXTS.items()}
"""The rules of each question type; every rule has exactly one type."""

WORDS = tracks.QuestionTemplates(
    names=NAMES,
    phrases={kind.name: kind.phrase for kind in CLASSES},
    texts={rule: text for rules in _TEXTS.values() for rule, text in rules.items()},
)
"""The wording: an insertion comes into view, a retrieval is carried out of view."""


SHOWN = 0.6
"""An instance is in view from this visible share on."""
UNSEEN = 0.03
"""An instance is not in view up to this visible share. No question is about shares in between."""


def moments_of(events: tuple[Event, ...]) -> tuple[tracks.AnnotatedMoment, ...]:
    """The insertions and retrievals: when an object's centre crosses the frame's edge."""
    return tuple(
        tracks.AnnotatedMoment(kind="insertion", instance=event.instance, class_name=event.class_name, time=event.start)
        if event.kind == "inserted"
        else tracks.AnnotatedMoment(
            kind="retrieval", instance=event.instance, class_name=event.class_name, time=event.end
        )
        for event in events
        if event.kind in {"inserted", "retrieved"}
    )


def sighting(second: int, instance: str, class_name: str, shown: NDArray[np.bool_], area: int) -> tracks.Sighting:
    """The sighting of an instance from the mask of pixels that show it, and its full area.

    The box bounds these pixels; it is None without any (the instance is covered). The instance is occluded if less than
    `SHOWN` of it is visible.
    """
    rows, columns = np.flatnonzero(shown.any(axis=1)), np.flatnonzero(shown.any(axis=0))
    box = None
    if rows.size:
        left, top = int(columns[0]), int(rows[0])
        box = tracks.AnnotatedBox(x=left, y=top, width=int(columns[-1]) + 1 - left, height=int(rows[-1]) + 1 - top)
    visibility = round(min(1.0, float(shown.sum()) / max(1, area)), 3)
    return tracks.Sighting(
        second=second,
        instance=instance,
        class_name=class_name,
        box=box,
        occluded=visibility < SHOWN,
        visibility=visibility,
    )


_UNTRACED = tracks.Traces()


class Truth(tracks.Timeline):
    """The ground truth of one simulated video: its script and its annotation.

    Unlike an annotation, the script says when something was covered; so `plain` and `quiet` are exact.
    """

    def __init__(self, script: Script, annotation: tracks.Annotation, traces: tracks.Traces = _UNTRACED) -> None:
        super().__init__(annotation)
        self.script = script
        self.traces = traces
        self._shares: dict[str, dict[int, float]] = {}
        for seen in annotation.sightings:
            self._shares.setdefault(seen.instance, {})[seen.second] = seen.visibility or 0.0

    def of(self, kind: str, class_name: str | None = None) -> list[Event]:
        """Events of a kind, of one class or all, in order of their start."""
        return [event for event in self.script.events if event.kind == kind and class_name in {None, event.class_name}]

    def visibility(self, instance: str) -> dict[int, float]:
        """The visible share of an instance at every second in the scene."""
        return self._shares.get(instance, {})

    def plain(self, instance: str) -> bool:
        """Whether the instance is visible from its insertion to its retrieval, except when the script hides it."""
        mine = [event for event in self.script.events if event.instance == instance]
        hidden = [(event.start, event.end) for event in mine if event.kind == "hidden"]
        last = min([event.end for event in mine if event.kind == "retrieved"], default=self.script.seconds)
        shares = [
            share
            for time, share in self.visibility(instance).items()
            if mine[0].start + 0.7 < time < last - 0.7 and not any(a <= time <= b for a, b in hidden)
        ]
        covered = all(
            any(share <= UNSEEN for time, share in self.visibility(instance).items() if a <= time <= b)
            for a, b in hidden
        )
        return covered and bool(shares) and min(shares) >= SHOWN

    def quiet(self) -> list[int]:
        """The seconds at which it is clear what is in view: nothing comes, goes or is half covered."""
        changes: list[tuple[float, float]] = []
        for event in self.script.events:
            if event.kind == "inserted":
                changes.append((event.start, event.start))
            elif event.kind == "retrieved":
                changes.append((event.end, event.end))
            elif event.kind == "hidden":
                changes += [(event.start, event.start + SLIDE), (event.end - SLIDE, event.end)]
        partly = {
            second for shares in self._shares.values() for second, share in shares.items() if UNSEEN < share < SHOWN
        }
        return [
            second
            for second in range(2, self.annotation.video.whole_seconds)
            if second <= self.script.seconds - 1
            and second not in partly
            and not any(a - 0.7 < second < b + 0.7 for a, b in changes)
        ]


def candidates(truth: Truth) -> list[tracks.CandidateQuestion]:
    """All candidate questions about one video."""
    return [replace(candidate, rule=name) for name, rule in RULES.items() for candidate in rule(truth)]


def _plain_classes(truth: Truth) -> list[str]:
    """Classes with one instance, which is visible except when the script hides it."""
    return [name for name in NAMES if len(found := truth.insertions(name)) == 1 and truth.plain(found[0].instance)]


def _singled_out(question: str, truth: Truth, kind: str) -> Iterator[tracks.CandidateQuestion]:
    """Which class has events of a kind, if exactly one class has."""
    happened = {event.class_name for event in truth.of(kind)}
    if len(happened) == 1:
        yield from WORDS.choice(question, happened.pop(), [n for n in NAMES if not truth.of(kind, n)])


def _hidden(truth: Truth) -> Iterator[tracks.CandidateQuestion]:
    for name in _plain_classes(truth):
        yield WORDS.yes_no(WORDS.text("hidden", name), bool(truth.of("hidden", name)), name, (name,))


def _which_hidden(truth: Truth) -> Iterator[tracks.CandidateQuestion]:
    if all(truth.plain(moment.instance) for moment in truth.insertions()):
        yield from _singled_out(WORDS.text("which-hidden"), truth, "hidden")


def _moved(truth: Truth) -> Iterator[tracks.CandidateQuestion]:
    for name in _plain_classes(truth):
        yield WORDS.yes_no(WORDS.text("moved", name), bool(truth.of("moved", name)), name, (name,))


def _which_moved(truth: Truth) -> Iterator[tracks.CandidateQuestion]:
    yield from _singled_out(WORDS.text("which-moved"), truth, "moved")


def _in_words(rule: tracks.Rule) -> Callable[[Truth], Iterator[tracks.CandidateQuestion]]:
    return lambda truth: rule(truth, WORDS)


_OWN: dict[str, Callable[[Truth], Iterator[tracks.CandidateQuestion]]] = {
    "hidden": _hidden,
    "which-hidden": _which_hidden,
    "moved": _moved,
    "which-moved": _which_moved,
}

# The order decides random ties, so it must not change.
_BEFORE = [name for name in tracks.TRACK_RULES if name != "where"]
RULES: dict[str, Callable[[Truth], Iterator[tracks.CandidateQuestion]]] = {
    name: _OWN.get(name) or _in_words(tracks.TRACK_RULES[name]) for name in (*_BEFORE, *_OWN, "where")
}
"""All rules by name."""


SIMULATOR_VERSION = "1"
"""Changes if the same seed gives other frames, events or questions."""

PROCEDURE = "simulated procedure"
"""The kind of procedure in the tracks, which marks them as simulated."""

_NOTE = (
    "rendered by proctor.tasks.simulated from a script of events; no patient, no operation. "
    "It tests whether a model sees, counts and keeps time, not what it knows of surgery."
)


def simulate(
    out: Path,
    *,
    videos: int = 6,
    seconds: float = 24.0,
    fps: int = 10,
    size: tuple[int, int] = (384, 216),
    seed: int = 0,
    questions_per_video: int = 12,
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Writes `videos` simulated procedures of `seconds` each, with ground truth and questions, into `out`.

    The folder is read by the benchmark `simulated`: `manifest.json`, `questions.json`, `videos/*.mp4` (H.264, `fps`
    frames a second, `size` = width and height in pixels, both even), `events/*.json` (scripts) and `tracks/*.json` (an
    `Annotation` with the boxes at every whole second, insertions and retrievals). The same arguments give identical
    ground truth and questions, and identical decoded frames with the same encoder.

    A video gets `questions_per_video` questions, or fewer if there are not enough candidates; see `choose` for their
    balance. `progress` is called with videos done and videos in all. Returns `out`. Raises `InputError` if an argument
    is out of range, or `out` is not empty or can't be written; then `out` is unchanged.
    """
    _check(videos, seconds, fps, size, questions_per_video)
    with whole_folder(out) as half:
        truths: dict[str, Truth] = {}
        entries: list[SimulatedVideo] = []
        for number in range(videos):
            name = f"sim-{number:03d}"
            file = f"videos/{name}.mp4"
            script = draw_script(seed, name, round(seconds * fps) / fps)
            renderer = Renderer(script, size, seed)
            truths[name] = truth = observe(script, renderer, fps)
            _write(half / "events" / f"{name}.json", script)
            _write(half / "tracks" / f"{name}.json", truth.annotation)
            _film(renderer, script.seconds, fps, half / file)
            entries.append(SimulatedVideo(id=name, file=file, seconds=script.seconds))
            if progress is not None:
                progress(number + 1, videos)
        questions = ask(truths, questions_per_video, seed)
        dumped = [question.model_dump(mode="json") for question in questions]
        _write_json(half / "questions.json", {"questions": dumped})
        manifest = SimulatedManifest(
            kind="simulated procedures",
            format_version=FORMAT_VERSION,
            simulated=True,
            simulator_version=SIMULATOR_VERSION,
            seed=seed,
            fps=fps,
            width=size[0],
            height=size[1],
            note=_NOTE,
            videos=tuple(entries),
        )
        _write(half / "manifest.json", manifest)
    return out


def ask(truths: dict[str, Truth], per_video: int, seed: int) -> list[SimulatedQuestion]:
    """The questions about all videos, from their ground truth."""
    pool = {video: candidates(truth) for video, truth in truths.items()}
    chosen = tracks.choose(pool, per_video, generator(seed, "simulate", "questions"))
    flat = [(video, number, candidate) for video, some in chosen.items() for number, candidate in enumerate(some, 1)]
    choices = [candidate for _, _, candidate in flat if isinstance(candidate.format, ChoiceFormat)]
    rng = generator(seed, "simulate", "options")
    dealt = tracks.deal_options([candidate.options for candidate in choices], [0] * len(choices), rng)
    decks = iter(dealt)
    types = {rule: kind for kind, rules in QUESTION_TYPES.items() for rule in rules}
    questions = []
    for video, number, candidate in flat:
        options, answer = next(decks) if isinstance(candidate.format, ChoiceFormat) else ([], candidate.answer)
        questions.append(
            SimulatedQuestion(
                id=f"{video}-q{number:02d}",
                video=video,
                question=candidate.question,
                format=candidate.format,
                options=tuple(options),
                answer=answer,
                question_type=types[candidate.rule],
                rule=candidate.rule,
                objects=len(truths[video].of("inserted")),
                evidence=tracks.evidence_of(candidate, truths[video], truths[video].traces),
            )
        )
    return questions


def _check(videos: int, seconds: float, fps: int, size: tuple[int, int], questions_per_video: int) -> None:
    tracks.check_bounds(
        [
            ("videos", videos, 1, 1000),
            ("seconds", seconds, 8, 3600),
            ("fps", fps, 5, 60),
            ("width", size[0], 256, 1920),
            ("height", size[1], 144, 1080),
            ("questions_per_video", questions_per_video, 1, 60),
        ]
    )
    if size[0] % 2 or size[1] % 2:
        raise InputError("size", found=f"{size[0]}x{size[1]}", expected="even numbers of pixels")
    if not 1.2 <= size[0] / size[1] <= 2.4:
        raise InputError("size", found=f"{size[0]}x{size[1]}", expected="a width of 1.2 to 2.4 times the height")


def observe(script: Script, renderer: Renderer, fps: int = 10) -> Truth:
    """The ground truth of one video: its script, and the renderer's output at every whole second."""
    sightings = []
    for second in range(math.ceil(script.seconds)):
        owner = renderer.picture(float(second)).owner
        for instance, index in renderer.instances.items():
            mine = [event for event in script.events if event.instance == instance]
            gone = any(event.kind == "retrieved" and event.end < second for event in mine)
            area = renderer.sprites[instance].area
            seen = sighting(second, instance, mine[0].class_name, owner == index, area)
            if seen.box is not None or (mine[0].start <= second and not gone):
                sightings.append(seen)
    video = tracks.AnnotatedVideo(
        id=script.video,
        file=f"{script.video}.mp4",
        width=renderer.width,
        height=renderer.height,
        seconds=script.seconds,
        fps=fps,
        procedure=PROCEDURE,
    )
    annotation = tracks.Annotation(video=video, sightings=tuple(sightings), moments=moments_of(script.events))
    return Truth(script, annotation, trace(script, renderer, fps))


_MARGIN = 5.0  # units around an object: its shadow, and what an encoder smears
_COVER_MARGIN = 8.0


def trace(script: Script, renderer: Renderer, fps: int) -> tracks.Traces:
    """The position of every object in every frame, also where it is covered; and of the cover, while there is one."""
    objects: dict[str, list[tracks.Trace]] = {}
    covers: dict[str, list[tracks.Trace]] = {}
    for number in range(round(script.seconds * fps)):
        start, end = number / fps, (number + 1) / fps
        state = renderer.scene.at(start)
        for located in state.objects:
            box = renderer.extent(located, _MARGIN)
            objects.setdefault(located.instance, []).append(tracks.Trace(start, end, box))
        hidden = [one for one in script.events if one.kind == "hidden" and one.start <= start < one.end]
        for event, cover in zip(hidden, state.covers, strict=True):
            box = renderer.cover_extent(cover, _COVER_MARGIN)
            covers.setdefault(event.instance, []).append(tracks.Trace(start, end, box))
    names = {event.instance: event.class_name for event in script.events}
    return tracks.Traces(
        tuple((names[instance], tuple(own)) for instance, own in objects.items()),
        tuple((names[instance], tuple(own)) for instance, own in covers.items()),
    )


def _film(renderer: Renderer, seconds: float, fps: int, path: Path) -> None:
    """Renders and writes one video: H.264, one key frame a second; the same frames give identical files."""
    import av  # heavy, and only filming needs it

    path.parent.mkdir(parents=True, exist_ok=True)
    options = {"preset": "veryfast", "crf": "20", "g": str(fps), "threads": "1", "flags": "+bitexact"}
    with av.open(str(path), "w", options={"movflags": "+faststart", "fflags": "+bitexact"}) as file:
        stream = file.add_stream("libx264", rate=Fraction(fps), options=options)
        stream.width, stream.height, stream.pix_fmt = renderer.width, renderer.height, "yuv420p"
        for number in range(round(seconds * fps)):
            picture = renderer.picture(number / fps)
            file.mux(stream.encode(av.VideoFrame.from_ndarray(picture.pixels, format="rgb24")))
        file.mux(stream.encode())


def _write(path: Path, content: BaseModel) -> None:
    _write_json(path, content.model_dump(mode="json"))


def _write_json(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
