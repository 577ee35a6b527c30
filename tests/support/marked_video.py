"""A small video with what must not leave a hospital: sound, a name, a place, chapters."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import av

from tests.support.clock_video import ClockVideo, write_clock_video

SECRETS = {"title": "Jane Q. Patient", "comment": "ward 7, bed 12", "artist": "Theatre 3"}


def write_marked_video(path: Path, video: ClockVideo) -> Path:
    """The clock video with `SECRETS` as tags and two chapters, one named after the patient."""
    plain = write_clock_video(path.with_stem(f"{path.stem}-plain"), video)
    with av.open(str(plain)) as source, av.open(str(path), "w") as target:
        copies = {stream.index: target.add_stream_from_template(stream) for stream in source.streams}
        target.metadata.update(SECRETS)
        target.set_chapters(
            [
                {
                    "id": k,
                    "start": k * 500,
                    "end": k * 500 + 500,
                    "time_base": Fraction(1, 1000),
                    "metadata": {"title": name},
                }
                for k, name in enumerate(("Jane Q. Patient", "Closing"))
            ]
        )
        for packet in source.demux():
            if packet.dts is not None:
                packet.stream = copies[packet.stream_index]
                target.mux(packet)
    plain.unlink()
    return path
