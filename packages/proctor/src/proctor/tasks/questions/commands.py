"""`proctor new questions`: the example of questions of one's own."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from proctor.core import PluginReport, shell_word, whole_folder, write_whole


def new(out: Path) -> PluginReport:
    """Write an example of one's own questions into a new folder (see `write_example`)."""
    count = write_example(out)
    return PluginReport(
        {"out": str(out), "questions": count},
        (f"{count} questions, 2 videos and 3 images in {out}",),
        (f"Next: proctor check {shell_word(out)}", f"      proctor run {shell_word(out)} --system random"),
    )


_SIZE = (320, 240)
_RATE = 10
_SECONDS = 6
_BACK, _DISC, _BOX = (24, 30, 38), (214, 69, 65), (64, 132, 214)

_QUESTIONS = (
    ("id", "question", "answer", "option A", "option B", "option C", "media", "start", "end", "topic"),
    ("disc-1", "Which shape moves?", "A", "a red disc", "a blue box", "a green line", "disc.mp4", "", "", "what"),
    ("disc-2", "Where does the disc move?", "to the right", "to the left", "to the right", "upwards", "disc.mp4", "0", "0:03", "where"),
    ("disc-3", "Is a blue box visible?", "no", "", "", "", "disc.mp4", "", "", "what"),
    ("disc-4", "When is the disc in the middle of the picture?", "0:03", "", "", "", "disc.mp4", "", "", "when"),
    ("disc-5", "When is the disc in the left half of the picture?", "0:00-0:03", "", "", "", "disc.mp4", "", "", "when"),
    ("box-1", "How many boxes are visible at the end?", "3", "", "", "", "boxes.mp4", "4", "6", "how many"),
    ("box-2", "Are there more boxes at the end than at the start?", "yes", "", "", "", "boxes.mp4", "", "", "how many"),
    ("box-3", "Describe what happens.", "Blue boxes appear one after another.", "", "", "", "boxes.mp4", "", "", "what"),
    ("size-1", "Put the images in order, from the smallest disc to the largest.", "B > C > A", "", "", "", "large.png; small.png; medium.png", "", "", "order"),
    ("size-2", "Which share of the three images shows a disc?", "100 %", "", "", "", "large.png; small.png; medium.png", "", "", "how many"),
)  # fmt: skip
_RADII = {"large": 90, "small": 25, "medium": 55}


def write_example(out: Path) -> int:
    """Writes the folder; returns the number of questions. Raises `InputError` if it is not empty or can't be written."""
    from proctor.media import from_jpegs
    from proctor.tasks.questions.folder import NAME

    with whole_folder(out) as draft:
        media = draft / "media"
        media.mkdir()
        (media / "disc.mp4").write_bytes(from_jpegs(_moving_disc()))
        (media / "boxes.mp4").write_bytes(from_jpegs(_more_boxes()))
        for name, radius in _RADII.items():
            (media / f"{name}.png").write_bytes(_picture([_circle(160, radius)], "PNG"))
        table = io.StringIO(newline="")
        csv.writer(table, lineterminator="\n").writerows(_QUESTIONS)
        write_whole(draft / "questions.csv", table.getvalue())
        write_whole(draft / NAME, (files(__package__) / "example.yaml").read_text(encoding="utf-8"))
    return len(_QUESTIONS) - 1


_Shape = tuple[str, tuple[int, int, int, int]]


def _circle(x: int, radius: int) -> _Shape:
    return "ellipse", (x - radius, 120 - radius, x + radius, 120 + radius)


def _moving_disc() -> Iterator[tuple[float, bytes]]:
    steps = _RATE * _SECONDS
    for step in range(steps + 1):
        yield step / _RATE, _picture([_circle(40 + round(240 * step / steps), 30)], "JPEG")


def _more_boxes() -> Iterator[tuple[float, bytes]]:
    for step in range(_RATE * _SECONDS + 1):
        count = 1 + min(2, step // (2 * _RATE))
        boxes: list[_Shape] = [("rectangle", (40 + 90 * row, 90, 100 + 90 * row, 150)) for row in range(count)]
        yield step / _RATE, _picture(boxes, "JPEG")


def _picture(shapes: list[_Shape], form: str) -> bytes:
    from PIL import Image, ImageDraw

    picture = Image.new("RGB", _SIZE, _BACK)
    draw = ImageDraw.Draw(picture)
    for kind, box in shapes:
        (draw.ellipse if kind == "ellipse" else draw.rectangle)(box, fill=_DISC if kind == "ellipse" else _BOX)
    out = io.BytesIO()
    picture.save(out, form)
    return out.getvalue()
