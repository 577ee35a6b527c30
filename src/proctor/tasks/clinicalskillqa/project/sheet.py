"""A page with the frames of all instances, for physicians who review them."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path

from proctor.construction.pipeline import Project
from proctor.core import Frame, count_of, write_whole
from proctor.tasks.clinicalskillqa.project.evidence import CheckedSentence
from proctor.tasks.clinicalskillqa.project.frames import OrderedFrames, pictures_of

_TEMPLATE = Path(__file__).with_name("sheet.html.j2")


def write_frames_sheet(
    project: Project, shown: Sequence[OrderedFrames], sentences: Sequence[CheckedSentence], out: Path
) -> None:
    """One self-contained page: each instance in mixed order, and folded up its right order with the rationale. Raises
    `InputError` where a frame can't be decoded or the page can't be written."""
    from jinja2 import Environment

    instances = [
        {
            "id": one.id,
            "mixed": [_figure(frame) for frame in pictures_of(project, one, sorted(one.order))],
            "order": " > ".join(one.order),
            "right": [_figure(frame) for frame in pictures_of(project, one, one.order)],
            "sentences": [each for each in sentences if each.instance == one.id],
        }
        for one in shown
    ]
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    title = f"{project.settings.title or project.folder.name}: {count_of(len(shown), 'instance')} to review"
    page = environment.from_string(_TEMPLATE.read_text(encoding="utf-8")).render(title=title, instances=instances)
    write_whole(out, page)


def _figure(frame: Frame) -> dict[str, str]:
    return {"label": frame.label, "jpeg": base64.b64encode(frame.jpeg).decode("ascii")}
