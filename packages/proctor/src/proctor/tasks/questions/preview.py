"""Open the media files of questions, and show ten questions on a page as a model gets them."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proctor.core import Frame, Item, clean, write_whole
from proctor.core.formats import ABSTAINED_WORD, BoxesFormat, PointFormat, extents, option_letters
from proctor.media import MediaLibrary, MediaSettings, PlaysSounds, open_picture, shown_location, view
from proctor.tasks.questions.media import is_recording
from proctor.tasks.questions.question_set import QuestionSet

if TYPE_CHECKING:
    from proctor.core import Frame
    from proctor.media import Sound

_SHOWN = 10
_FRAMES = 6
_SIDE = 240
_PLAYED_S = 30.0  # ten sounds of this length make a page of 13 MB


def add_media_faults(found: QuestionSet) -> None:
    """Adds a fault for each missing file; without any, for each file that can't be shown: broken, or shorter than a
    clip."""
    columns = found.columns.fields.get("media", [])
    column = columns[0] if columns else ""
    heard = found.columns.one("audio") or column
    for row, media in found.shown:
        for name in found.folder.missing(media):
            expected = f"a file below {shown_location(found.folder.root)}"
            where = heard if is_recording(name) else column
            found.fault(row, where, f"no file {name!r}", expected)
    if found.faults:
        found.faults.sort(key=lambda fault: (fault[0], fault[1].row))
        return
    library = MediaLibrary(found.folder.write_embedded())
    spoken = {medium.source for item in found.items for medium in item.sounding}
    for problem in library.problems(found.items):
        where = heard if is_recording(problem.source) else column
        expected = f"a file that can be {'played' if problem.source in spoken else 'shown'}"
        for item_id in problem.item_ids:
            found.fault(found.locations[item_id], where, problem.problem, expected)
    found.notes += library.warnings(found.items)


def write_preview(found: QuestionSet, out: Path) -> int:
    """Writes a page with ten questions, including every format; returns their number. Raises `InputError` if it can't
    be written."""
    from jinja2 import Environment, StrictUndefined

    items = _ten(found.items)
    library = MediaLibrary(found.folder.write_embedded(), MediaSettings(max_side=_SIDE, max_frames=_FRAMES))
    frames = asyncio.run(_frames(items, library))
    sounds = asyncio.run(_sounds(items, library))
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    environment.filters["clean"] = clean
    template = environment.from_string((files(__package__) / "preview.html.j2").read_text(encoding="utf-8"))
    page = template.render(
        title=found.layout.settings.title or found.layout.name,
        notes=found.notes,
        total=len(found.items),
        items=[_shown(found, *one) for one in zip(items, frames, sounds, strict=True)],
    )
    write_whole(out, page)
    return len(items)


def _ten(items: Sequence[Item]) -> list[Item]:
    """The first item of each format, and evenly spaced others up to ten, in order."""
    first: dict[str, int] = {}
    for row, item in enumerate(items):
        first.setdefault(item.answer.kind, row)
    chosen = set(first.values())
    spread = [round(step * (len(items) - 1) / (_SHOWN - 1)) for step in range(_SHOWN)]
    for row in (*spread, *range(min(len(items), _SHOWN))):
        if len(chosen) < _SHOWN:
            chosen.add(row)
    return [items[row] for row in sorted(chosen)]


async def _frames(items: Sequence[Item], library: MediaLibrary) -> list[list[Frame]]:
    return [with_locations(await view(item, "video", library).frames(count=_FRAMES), item) for item in items]


async def _sounds(items: Sequence[Item], library: MediaLibrary) -> list[list[Sound]]:
    """The sounds of each item that are short enough for the page."""
    shown = [view(item, "video", library) for item in items]
    played = [await one.sounds() if isinstance(one, PlaysSounds) else [] for one in shown]
    return [[sound for sound in sounds if sound.span[1] - sound.span[0] <= _PLAYED_S] for sounds in played]


def _shown(found: QuestionSet, item: Item, frames: Sequence[Frame], sounds: Sequence[Sound]) -> dict[str, Any]:
    index, reference = found.locations[item.id], item.reference
    answers = [item.answer.write(reference.answer)] if reference is not None and reference.answer is not None else []
    answers += [item.answer.write(one) for one in reference.accepted] if reference is not None else []
    answers += [ABSTAINED_WORD] if item.unanswerable else []
    answers += (
        [f"{criterion.points:+g}: {criterion.criterion}" for criterion in reference.criteria]
        if reference is not None
        else []
    )
    return {
        "id": item.id,
        "location": f"{index.file.name}, row {index.row}",
        "kind": item.answer.kind,
        "group": item.group,
        "question": item.question,
        "options": list(zip(option_letters(len(item.options)), item.options, strict=True)),
        "instruction": item.answer.instruction(item.options),
        "answers": answers,
        "rationale": "" if reference is None else reference.rationale,
        "facets": [f"{name}: {value}" for name, value in item.tags.items()],
        "media": [medium.source for medium in item.media],
        "frames": [(frame.label, base64.b64encode(frame.jpeg).decode("ascii")) for frame in frames],
        "sounds": [(sound.label, base64.b64encode(sound.wav).decode("ascii")) for sound in sounds],
    }


_RED, _LEAST = (255, 40, 40), 3.0  # the radius of a point without a tolerance


def with_locations(frames: Sequence[Frame], item: Item) -> list[Frame]:
    """The frames, with the boxes or points of the reference drawn in red."""
    answer, reference = item.answer, item.reference
    if not isinstance(answer, BoxesFormat | PointFormat) or reference is None:
        return [*frames]
    values = (reference.answer, *reference.accepted)
    shapes = [row for value in values for row in (extents(value) if _nested(value) else extents([value]))]
    return [replace(frame, jpeg=_drawn(frame.jpeg, shapes, answer)) for frame in frames]


def _nested(value: Any) -> bool:
    return bool(value) and isinstance(value[0], list | tuple)


def _drawn(jpeg: bytes, shapes: Sequence[Sequence[float]], answer: BoxesFormat | PointFormat) -> bytes:
    from PIL import ImageDraw

    picture = open_picture(jpeg)
    draw, scale = ImageDraw.Draw(picture), (picture.width / answer.width, picture.height / answer.height)
    for shape in shapes:
        ends = [one * scale[row % 2] for row, one in enumerate(shape)]
        if len(ends) == 4:
            draw.rectangle(ends, outline=_RED, width=2)
        else:
            far = max(_LEAST, answer.tolerance * scale[0]) if isinstance(answer, PointFormat) else _LEAST
            draw.ellipse([ends[0] - far, ends[1] - far, ends[0] + far, ends[1] + far], outline=_RED, width=2)
    out = BytesIO()
    picture.save(out, "JPEG")
    return out.getvalue()
