"""`proctor build clinicalskillqa` and `proctor media pose`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import JsonValue

from proctor.core import Option, PluginReport, Steps, UsageError, count_of, input_bytes, plain_table, shell_word

if TYPE_CHECKING:
    from proctor.core import Region
    from proctor.tasks.clinicalskillqa.keypoints import PoseSource

_EXTENSIONS = {".jpg", ".jpeg", ".png", ".webp", ".bmp"}


def build(
    videos: Annotated[Path, Option("The folder with the videos.")],
    out: Annotated[Path, Option("A new folder.")],
    steps: Steps,
    frames: Annotated[
        list[int] | None, Option("Frames of an instance; may be repeated. [default: 4 and 6]", low=2, high=26)
    ] = None,
    per_video: Annotated[int, Option("Stretches of each video.", low=1)] = 4,
    seconds: Annotated[float, Option("How long a stretch is.", low=0.2)] = 4.0,
    apart: Annotated[
        float, Option("Share of the perceptual hash's bits in which frames differ.", low=0, high=0.5)
    ] = 0.02,
    scenario: Annotated[
        str,
        Option("What all videos show, or each: by its folder, or by a file.", metavar="CPR|AED|BMV|folders|FILE.json"),
    ] = "",
    events: Annotated[
        Path | None, Option("A folder of event logs, NAME.json each: the references then say why.")
    ] = None,
    cache: Annotated[Path | None, Option("Where frames are kept: a folder or a URL.", env="PROCTOR_CACHE")] = None,
    seed: Annotated[int, Option("The seed of every draw; recorded.")] = 0,
) -> PluginReport:
    """Build ordering items from videos.

    Each holds shuffled key frames of one video, with the right order beside it.

    Example: proctor build clinicalskillqa --videos videos --out task --per-video 10 --seconds 3
    """
    from proctor.tasks.clinicalskillqa.instances import InstancePlan, build_instances, scenarios_of

    each = scenario == "folders" or scenario.endswith(".json")
    every: Any = None if each else scenario or None
    plan = InstancePlan(tuple(frames or (4, 6)), per_video, seconds, apart, every, seed)
    scenarios = scenarios_of(videos, None if scenario == "folders" else Path(scenario)) if each else None
    with steps("looking for frames", 0) as progress:
        built = build_instances(videos, out, plan, events=events, cache=cache, scenarios=scenarios, progress=progress)
    notes = []
    if built.too_alike:
        notes.append(f"{built.too_alike} more had no frames that differ visibly.")
    if built.too_short:
        notes.append(f"Shorter than a segment, and left out: {', '.join(built.too_short)}")
    notes.append(f"Next: proctor run clinicalskillqa --data {shell_word(out)} --system seriation --system random")
    found: dict[str, JsonValue] = {"instances": built.instances, "videos": built.videos}
    found |= {"too_alike": built.too_alike, "too_short": [*built.too_short]}
    done = f"{count_of(built.instances, 'instance')} of {count_of(built.videos, 'video')} in {out}"
    return PluginReport(found, (done,), tuple(notes))


def pose(
    images: Annotated[list[Path], Option("Pictures, or folders of them.", metavar="IMAGE|FOLDER...", argument=True)],
    weights: Annotated[Path | None, Option("An exported YOLOv8-pose network (ONNX).")] = None,
    keypoints: Annotated[Path | None, Option("Keypoints in COCO's format, instead.")] = None,
    head: Annotated[str | None, Option("The manikin's head, in fractions.", metavar="X,Y,W,H")] = None,
    chest: Annotated[str | None, Option("Its chest.", metavar="X,Y,W,H")] = None,
    device: Annotated[str | None, Option("The device.", metavar="X,Y,W,H")] = None,
) -> PluginReport:
    """Detect people and describe their pose.

    Kneeling, hands on the chest, arms straight …

    Example: proctor media pose task/instances --weights yolov8n-pose.onnx --format json
    """
    from proctor.tasks.clinicalskillqa.keypoints import open_pose
    from proctor.tasks.clinicalskillqa.pose import marked_regions

    given = weights or keypoints
    if given is None or (weights and keypoints):
        raise UsageError("Give one of --weights FILE and --keypoints FILE, and only one.")
    marked = marked_regions({"head": head, "chest": chest, "device": device})
    source = open_pose(given)
    rows = [_looked(source, file, name, marked) for name, file in _pictures(images)]
    lines = tuple((str(row["image"]), str(sentence)) for row in rows for sentence in row["sentences"])
    return PluginReport([*rows], (plain_table("Pose", ("image", "sentence"), lines, ("sentence",)),))


def _looked(source: PoseSource, file: Path, name: str, marked: dict[str, Region]) -> dict[str, Any]:
    from proctor.tasks.clinicalskillqa.pose import facts_of, sentences

    content = input_bytes(file, "a picture")
    facts = facts_of(source.look(content, name), marked)
    return {
        "image": name,
        "manikin": facts.manikin or None,
        "nearest": facts.nearest,
        "people": [{"number": person.number, **person.holds} for person in facts.rescuers],
        "sentences": sentences(facts),
    }


def _pictures(given: list[Path]) -> list[tuple[str, Path]]:
    """Name and file of each picture: below a folder the name is the path from there."""
    from proctor.core import InputError

    found: list[tuple[str, Path]] = []
    for path in given:
        if not path.is_dir():
            found.append((path.name, path))
            continue
        inside = sorted(file for file in path.rglob("*") if file.suffix.casefold() in _EXTENSIONS)
        if not inside:
            raise InputError(path, found="no picture", expected=f"files such as *{sorted(_EXTENSIONS)[1]}")
        found += [(file.relative_to(path).as_posix(), file) for file in inside]
    return found
