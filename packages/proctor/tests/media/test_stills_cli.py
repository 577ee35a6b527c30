"""`proctor media frames` on an image: one picture, told with its size."""

from __future__ import annotations

import json
from pathlib import Path

from PIL import Image

from tests.support.program import proctor


def test_an_image_is_one_frame(tmp_path: Path) -> None:
    Image.new("RGB", (40, 30), (9, 99, 200)).save(tmp_path / "still.png")
    given = ("media", "frames", tmp_path / "still.png", "--out", tmp_path / "out", "--format", "json")
    done = proctor(*given, PROCTOR_CACHE=str(tmp_path / "cache"))
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)
    (written,) = sorted((tmp_path / "out").rglob("*.jpg"))
    assert row == {
        "video": str(tmp_path / "still.png"),
        "codec": "still",
        "width": 40,
        "height": 30,
        "fps": "",
        "duration_s": "",
        "start_s": "",
        "frames": 1,
        "bytes": written.stat().st_size,
    }
