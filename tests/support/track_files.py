"""Files of tracks as other tools write them, piece by piece."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from proctor.tracks import Annotation, ReadDefaults
from proctor_build.cvat import read_cvat

CVAT = """<?xml version="1.0" encoding="utf-8"?>
<annotations>
  <version>1.1</version>
  <meta>
    <task>
      <id>5</id><name>case 7</name><size>100</size><mode>interpolation</mode>
      <start_frame>0</start_frame><stop_frame>99</stop_frame>
      <original_size><width>640</width><height>480</height></original_size>
    </task>
    <source>case-7.mp4</source>
  </meta>
  {tracks}
</annotations>
"""


def box(frame: int, left: float = 0, *, more: str = "", inner: str = "") -> str:
    return (
        (
            f'<box frame="{frame}" xtl="{left}" ytl="10" xbr="{left + 20}" ybr="40" outside="0" occluded="0" '
            f'keyframe="1" z_order="0">{inner}</box>'
        )
        if not more
        else (f'<box frame="{frame}" xtl="{left}" ytl="10" xbr="{left + 20}" ybr="40" {more} z_order="0">{inner}</box>')
    )


def attribute(name: str, value: str) -> str:
    return f'<attribute name="{name}">{value}</attribute>'


def from_cvat(*boxes: str, fps: float = 10) -> Annotation:
    tracks = f'<track id="3" label="Sponge" source="manual">{"".join(boxes)}</track>'
    return read_cvat(Path("x.xml"), CVAT.format(tracks=tracks).encode(), ReadDefaults(fps=fps))


COCO: dict[str, Any] = {
    "images": [
        {"id": 1, "width": 64, "height": 48, "frame_index": 0},
        {"id": 2, "width": 64, "height": 48, "frame_index": 12},
        {"id": 3, "width": 64, "height": 48, "frame_index": 25},
        {"id": 4, "width": 64, "height": 48, "frame_index": 52},
    ],
    "categories": [{"id": 7, "name": "Needle", "supercategory": "object"}],
    "annotations": [
        {"id": 1, "image_id": 1, "category_id": 7, "bbox": [1, 2, 3, 4], "track_id": 5},
        {"id": 2, "image_id": 2, "category_id": 7, "bbox": [9, 9, 9, 9], "track_id": 5},
        {"id": 3, "image_id": 3, "category_id": 7, "bbox": [2, 2, 3, 4],
         "attributes": {"track_id": 5, "occluded": True, "keyframe": True, "colour": "grey"}},
        {"id": 4, "image_id": 4, "category_id": 7, "bbox": [0, 0, 0, 0], "instance": "n",
         "attributes": {"outside": True}},
    ],
}  # fmt: skip


def write(path: Path, content: object) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path
