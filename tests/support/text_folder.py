"""A folder of the benchmark `simulated` whose questions need no video, and a model that answers them."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.support.faulty_server import Request

_VIDEOS = 20


def write_text_folder(folder: Path, items: int) -> Path:
    """Questions `q000` and on, to be asked under `text-only`; the videos are named and not there."""
    folder.mkdir(parents=True, exist_ok=True)
    videos = [{"id": f"v{n}", "file": f"videos/v{n}.mp4", "seconds": 20.0} for n in range(_VIDEOS)]
    manifest = {
        "kind": "simulated procedures",
        "format_version": 1,
        "simulated": True,
        "simulator_version": "1",
        "seed": 0,
        "fps": 10,
        "width": 256,
        "height": 144,
        "note": "made for a test",
        "videos": videos,
    }
    questions = [
        {
            "id": f"q{number:03d}",
            "video": f"v{number % _VIDEOS}",
            "question": f"How many clips are in tray {number}?",
            "format": {"kind": "count"},
            "answer": _clips(number),
            "question_type": ("count", "sum")[number % 2],
            "rule": "tray",
            "objects": number % 9,
        }
        for number in range(items)
    ]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (folder / "questions.json").write_text(json.dumps({"questions": questions}))
    return folder


def answer_tray(request: Request) -> str:
    """The right answer."""
    return f"Answer: {_clips(_tray(request))}"


def item_of(request: Request) -> str:
    """The id of the item that was asked."""
    return f"q{_tray(request):03d}"


def _tray(request: Request) -> int:
    found = re.search(r"in tray (\d+)\?", request.text)
    assert found, request.text
    return int(found[1])


def _clips(tray: int) -> int:
    return (7 * tray + 3) % 11
