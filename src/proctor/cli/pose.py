"""`proctor pose`: what the joints of the people in pictures say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from proctor.cli.options import Output, OutputFormat
from proctor.cli.output import print_csv, print_json, print_table
from proctor.core.files import read_bytes

if TYPE_CHECKING:
    from proctor.core import Region
    from proctor.media.pose import PoseSource

__all__ = ["pose"]

_EXTENSIONS = {".jpg", ".jpeg", ".png", ".webp", ".bmp"}


def pose(
    images: Annotated[
        list[Path],
        typer.Argument(metavar="IMAGE|FOLDER...", help="Pictures, or folders of them.", show_default=False),
    ],
    weights: Annotated[
        Path | None,
        typer.Option("--weights", help="An exported YOLOv8-pose network (ONNX).", show_default=False),
    ] = None,
    keypoints: Annotated[
        Path | None,
        typer.Option("--keypoints", help="Keypoints in COCO's format, instead.", show_default=False),
    ] = None,
    head: Annotated[
        str | None,
        typer.Option(
            "--head", metavar="X,Y,W,H", help="The manikin's head, in fractions.", show_default=False
        ),
    ] = None,
    chest: Annotated[
        str | None, typer.Option("--chest", metavar="X,Y,W,H", help="Its chest.", show_default=False)
    ] = None,
    device: Annotated[
        str | None, typer.Option("--device", metavar="X,Y,W,H", help="The device.", show_default=False)
    ] = None,
    form: Output = OutputFormat.TABLE,
) -> None:
    """Who is in each picture, and what the joints say: kneeling, hands on the chest, arms straight …

    Example: proctor pose task/instances --weights yolov8n-pose.onnx --format json
    """
    from proctor.media.pose import marked_regions, open_pose

    given = weights or keypoints
    if given is None or (weights and keypoints):
        raise typer.BadParameter("one of --weights and --keypoints is needed, and only one")
    marked = marked_regions({"head": head, "chest": chest, "device": device})
    source = open_pose(given)
    rows = [_looked(source, file, name, marked) for name, file in _pictures(images)]
    if form is OutputFormat.JSON:
        print_json(rows)
        return
    lines = [[str(row["image"]), str(sentence)] for row in rows for sentence in row["sentences"]]
    if form is OutputFormat.CSV:
        print_csv(["image", "sentence"], lines)
    else:
        print_table("Pose", ["image", "sentence"], lines, wrapped=["sentence"])


def _looked(source: PoseSource, file: Path, name: str, marked: dict[str, Region]) -> dict[str, Any]:
    from proctor.core import InputError
    from proctor.media.pose import facts_of, sentences

    try:
        content = read_bytes(file)
    except OSError as error:
        raise InputError(file, found=error.strerror or "", expected="a picture") from error
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
