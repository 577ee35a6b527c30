"""Writes a folder of simulated procedures: videos, ground truth and questions."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

from pydantic import BaseModel

from proctor.construction.options import deal_options
from proctor.construction.tracks.annotation import AnnotatedVideo, Annotation
from proctor.construction.tracks.balance import choose
from proctor.core import InputError, generator, whole_folder
from proctor.core.formats import ChoiceFormat
from proctor.tasks.simulated.construction.questions import QUESTION_TYPES, EventLog, Truth, moments_of, offers, sighting
from proctor.tasks.simulated.construction.render import Renderer
from proctor.tasks.simulated.construction.script import Script, draw_script
from proctor.tasks.simulated.reader import FORMAT_VERSION, SimulatedManifest, SimulatedQuestion, SimulatedVideo

SIMULATOR_VERSION = "1"
"""Changes whenever the same seed gives other pictures, events or questions."""

PROCEDURE = "simulated procedure"
"""The kind of procedure that the tracks name, so that nobody takes them for an operation's."""

_NOTE = (
    "rendered by proctor.tasks.simulated from a script of events; no patient, no operation. "
    "It tests whether a model sees, counts and keeps time, not what it knows of surgery."
)
_LIMITS: dict[str, tuple[float, float]] = {
    "videos": (1, 1000),
    "seconds": (8, 3600),
    "fps": (5, 60),
    "width": (256, 1920),
    "height": (144, 1080),
    "questions_per_video": (1, 60),
}


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

    The folder is what the benchmark `simulated` reads: `manifest.json`, `questions.json`, `videos/*.mp4`
    (H.264, `fps` frames a second, `size` = width and height in pixels, both even), `events/*.json` (the
    event log) and `tracks/*.json` (per whole second the boxes of all instances, with the moments of insertion and
    retrieval: an `Annotation` of `proctor.construction.tracks`). The same arguments give
    the same ground truth and questions byte for byte, and the same decoded frames with the same encoder.

    A video gets `questions_per_video` questions, fewer if it has not so much to ask; see
    `balance.choose` for how they are balanced. `progress` is called with videos done and videos in all.
    Returns `out`. Raises `InputError` where an argument is out of its range or `out` is not empty; then
    `out` is as it was. So it is where the disk is full or read-only: the folder appears as a whole.
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
            _write(half / "events" / f"{name}.json", truth.log)
            _write(half / "tracks" / f"{name}.json", truth.tracks)
            _film(renderer, script.seconds, fps, half / file)
            entries.append(SimulatedVideo(id=name, file=file, seconds=script.seconds))
            if progress is not None:
                progress(number + 1, videos)
        questions = ask(truths, questions_per_video, seed)
        asked = [question.model_dump(mode="json") for question in questions]
        _write_json(half / "questions.json", {"questions": asked})
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
    """The questions of all videos, from their ground truth alone."""
    pool = {video: offers(truth) for video, truth in truths.items()}
    chosen = choose(pool, per_video, generator(seed, "simulate", "questions"))
    flat = [(video, number, offer) for video, some in chosen.items() for number, offer in enumerate(some, 1)]
    choices = [offer for _, _, offer in flat if isinstance(offer.format, ChoiceFormat)]
    rng = generator(seed, "simulate", "options")
    dealt = deal_options([offer.options for offer in choices], [0] * len(choices), rng)
    decks = iter(dealt)
    types = {rule: kind for kind, rules in QUESTION_TYPES.items() for rule in rules}
    questions = []
    for video, number, offer in flat:
        options, answer = next(decks) if isinstance(offer.format, ChoiceFormat) else ([], offer.answer)
        questions.append(
            SimulatedQuestion(
                id=f"{video}-q{number:02d}",
                video=video,
                question=offer.question,
                format=offer.format,
                options=tuple(options),
                answer=answer,
                question_type=types[offer.rule],
                rule=offer.rule,
                objects=len(truths[video].of("inserted")),
            )
        )
    return questions


def _check(videos: int, seconds: float, fps: int, size: tuple[int, int], questions_per_video: int) -> None:
    given = {
        "videos": videos,
        "seconds": seconds,
        "fps": fps,
        "width": size[0],
        "height": size[1],
        "questions_per_video": questions_per_video,
    }
    for name, value in given.items():
        low, high = _LIMITS[name]
        if not low <= value <= high:
            raise InputError(None, name, found=f"{value:g}", expected=f"{low:g} to {high:g}")
    if size[0] % 2 or size[1] % 2:
        raise InputError(None, "size", found=f"{size[0]}x{size[1]}", expected="even numbers of pixels")
    if not 1.2 <= size[0] / size[1] <= 2.4:
        raise InputError(None, "size", found=f"{size[0]}x{size[1]}", expected="a width of 1.2 to 2.4 times the height")


def observe(script: Script, renderer: Renderer, fps: int = 10) -> Truth:
    """The ground truth of one video: its script, and what the renderer shows at every whole second."""
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
    video = AnnotatedVideo(
        id=script.video,
        file=f"{script.video}.mp4",
        width=renderer.width,
        height=renderer.height,
        seconds=script.seconds,
        fps=fps,
        procedure=PROCEDURE,
    )
    tracks = Annotation(video=video, sightings=tuple(sightings), moments=moments_of(script.events))
    return Truth(EventLog(video=script.video, seconds=script.seconds, events=script.events), tracks)


def _film(renderer: Renderer, seconds: float, fps: int, path: Path) -> None:
    """Renders and writes one video: H.264, one key frame a second, bit for bit the same for the same pictures."""
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
