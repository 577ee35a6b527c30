"""Small FOCUS data for challenges: yes-or-no questions in ten buckets on videos, and answers of a given skill."""

from __future__ import annotations

import json
from pathlib import Path

from proctor.core import generator
from proctor.tasks.focus.native import read_references, read_requests
from proctor.tasks.focus.vocabulary import CAPABILITIES, GROUP_OF

ONE_OF_EACH = tuple({GROUP_OF[leaf]: leaf for leaf in CAPABILITIES}.values())


def focus_data(folder: Path, videos: int = 8, questions: int = 20) -> Path:
    """Questions of the procedure track on so many videos, each with a key; nobody has the videos."""
    folder.mkdir(parents=True)
    requests, references = [], []
    for video in range(videos):
        for number in range(questions):
            name = f"v{video:02d}-q{number:02d}"
            asked = {"videoID": f"v{video:02d}", "start_time": 0.0, "end_time": 60.0, "procedure_type": "resection"}
            requests.append({"qID": name, **asked, "question": f"Is object {number} of video {video} in view?"})
            leaf = ONE_OF_EACH[number % len(ONE_OF_EACH)]
            key = {"primary": leaf, "format": "binary", "answer": "yes" if (video + number) % 2 else "no"}
            out = number // len(ONE_OF_EACH) % 2 == 1
            references.append({"qID": name, **key, "ood": out, "clinical": number % 3 == 0})
    (folder / "requests.json").write_text(json.dumps(requests))
    (folder / "references.json").write_text(json.dumps(references))
    return folder


def focus_answers(
    questions: Path, keys: Path, file: Path, skill: float, *, seed: int = 0, latency: float = 1.0
) -> Path:
    """Answers to the questions in one folder, right at this rate by the keys in another."""
    right = {one.qID: one.answer for one in read_references(keys)}
    rng = generator(seed, "answers of a team")
    other = {"yes": "no", "no": "yes"}
    given = []
    for one in read_requests(questions):
        text = right[one.qID] if rng.random() < skill else other[right[one.qID]]
        given.append({"qID": one.qID, "content": text, "latency": latency})
    file.write_text(json.dumps(given))
    return file
