"""A page that shows each proposal in its frames, for a person to decide on."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proctor.construction.pipeline import Project
from proctor.construction.sources.proposals import Decision
from proctor.construction.sources.stage import SourceRecord
from proctor.core import Region, clock_text, count_of, write_whole
from proctor.media import MediaLibrary, MediaSettings, Picture

_TEMPLATE = Path(__file__).parent / "sheet.html.j2"
_SETTINGS = MediaSettings(max_side=320, quality=72)
_SHOTS, _OVERVIEW = 4, 8
_MOST = 300
_SAID = {"": "undecided", "accept": "accepted", "reject": "rejected"}


@dataclass(frozen=True)
class _Frames:
    """The pictures of one source."""

    library: MediaLibrary
    name: str
    end: float

    def shots(self, start: float, end: float, count: int) -> list[dict[str, str]]:
        """Evenly spread, with their times; the first and last just inside."""
        edge = min(0.1, (end - start) / 4)
        step = (end - start - 2 * edge) / (count - 1)
        times = [min(start + edge + k * step, max(0.0, self.end - 1e-3)) for k in range(count)]
        jpegs = self.library.jpegs([Picture(self.name, time) for time in times])
        return [
            {"time": f"{time:.1f} s", "jpeg": base64.b64encode(jpeg).decode("ascii")}
            for time, jpeg in zip(times, jpegs, strict=True)
        ]


def write_sheet(
    project: Project, records: Sequence[SourceRecord], decisions: Sequence[Decision], finder: str, out: Path
) -> None:
    """One self-contained page: each source with its facts, each of its proposals (300 in all) in four frames with what
    was decided, and eight frames of the whole. Raises `InputError` where a frame can't be decoded or the page can't be
    written."""
    from jinja2 import Environment

    left = _MOST
    sources: list[Mapping[str, Any]] = []
    for record in records:
        path = project.path(next(one for one in project.settings.sources if one.id == record.id), "video").resolve()
        frames = _Frames(MediaLibrary(path.parent, _SETTINGS), path.name, record.duration_s)
        mine = [one for one in decisions if one.source == record.id]
        shown = mine[:left]
        left -= len(shown)
        sources.append(
            {
                "name": record.id,
                "facts": _facts(record),
                "flags": _flags(record),
                "proposals": [_proposal(one, frames) for one in shown],
                "overview": frames.shots(0.0, record.duration_s, _OVERVIEW),
            }
        )
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    page = environment.from_string(_TEMPLATE.read_text(encoding="utf-8")).render(
        title=f"{project.settings.title or project.folder.name}: {count_of(len(decisions), 'proposal')} to hide",
        finder=f"{finder[:1].upper()}{finder[1:]}.",
        sources=sources,
        left_out=max(0, len(decisions) - _MOST),
    )
    write_whole(out, page)


def _proposal(one: Decision, frames: _Frames) -> Mapping[str, Any]:
    what = one.what
    return {
        "state": _SAID[one.decision] + (f" by {one.by} ({one.how})" if one.decision == "accept" else ""),
        "kind": what.kind,
        "span": f"{clock_text(what.start)} to {clock_text(what.end)} ({what.start:.1f} to {what.end:.1f} s)",
        "score": "" if what.score is None else f"{what.score:.2f}",
        "place": "" if what.region is None else _style(what.region),
        "shots": frames.shots(min(what.start, frames.end), min(what.end, frames.end), _SHOTS),
    }


def _style(region: Region) -> str:
    parts = {"left": region.x, "top": region.y, "width": region.width, "height": region.height}
    return ";".join(f"{name}:{100 * share:.2f}%" for name, share in parts.items())


def _facts(record: SourceRecord) -> str:
    rate = f"{record.fps:.2f} pictures a second{', variable' if record.variable_rate else ''}"
    return f"{record.codec}, {record.width} × {record.height}, {record.duration_s:.1f} s, {rate}"


def _flags(record: SourceRecord) -> list[str]:
    beside = [one.removeprefix("no ") for one in record.flags if one.startswith("no ")]
    found = [f"Missing in project.yaml: {', '.join(beside)}."] if beside else []
    found += [f"A copy will not have: {', '.join(record.holds)}."] if record.holds else []
    return found + ([f"Shows the same as: {', '.join(record.like)}."] if record.like else [])
