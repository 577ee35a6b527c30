"""The sockets of a Grand Challenge phase: a question and its video in, an answer out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SUCCEEDED = "Succeeded"
"""The status of a job that ended well."""

PREDICTIONS = "predictions.json"
"""In an evaluation's input: all jobs."""

IDS_FILE = "ids.json"
"""In the ground truth: the question of each case."""

ANSWER = "answer.json"
"""Where an algorithm writes its answer: as the template algorithm does."""


@dataclass(frozen=True)
class GrandChallengeSocket:
    """An input or output. `kind` is the platform's name of its type."""

    title: str
    slug: str
    kind: Literal["Anything", "MP4 file"]
    relative_path: str

    @property
    def told(self) -> dict[str, object]:
        """As the platform tells it to an evaluation."""
        is_json = self.kind == "Anything"
        return {
            "slug": self.slug,
            "relative_path": self.relative_path,
            "is_image_kind": False,
            "is_panimg_kind": False,
            "is_dicom_image_kind": False,
            "is_json_kind": is_json,
            "is_file_kind": not is_json,
        }


@dataclass(frozen=True)
class PhaseSockets:
    """Those of a phase."""

    question: GrandChallengeSocket
    video: GrandChallengeSocket
    answer: GrandChallengeSocket


def sockets_of(benchmark: str) -> PhaseSockets:
    """The sockets of a benchmark's phases.

    >>> sockets_of("lamps").question.relative_path
    'lamps-question.json'
    """
    named = benchmark.replace("_", "-")
    return PhaseSockets(
        GrandChallengeSocket(f"{named} question", f"{named}-question", "Anything", f"{named}-question.json"),
        GrandChallengeSocket(f"{named} video", f"{named}-video", "MP4 file", f"{named}-video.mp4"),
        GrandChallengeSocket(f"{named} answer", f"{named}-answer", "Anything", ANSWER),
    )
