"""Stores of FOCUS with as many made-up systems as one likes: good ones, equal ones, poor ones, with long names."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path
from typing import Any

from proctor.core import generator
from proctor.metrics import AccuracyScorer
from proctor.runs import Store, import_answers
from proctor.tasks.focus import READER
from proctor.tasks.focus.vocabulary import GROUPS

BASE = ("frontier baseline", "open-weights baseline")
_FORMATS: tuple[tuple[str, dict[str, Any], tuple[str, ...]], ...] = (
    ("binary", {}, ("yes", "no")),
    ("number", {}, ("0", "1", "2", "3", "4")),
    ("percentage", {}, ("10", "35", "60", "90")),
    ("fo_class", {}, ("clip", "mesh", "none")),
    ("time", {}, ("00:00:10", "00:02:20", "00:04:50")),
)
_LEAVES = [leaf for group in GROUPS.values() for leaf in group["leaves"]]


def many_systems(folder: Path, n: int, *, questions: int = 600, videos: int = 24) -> Store:
    """`n` systems, two of them the baselines `BASE`, on this many questions."""
    folder.mkdir(parents=True, exist_ok=True)
    pairs = [_asked(number, videos) for number in range(questions)]
    (folder / "requests.json").write_text(json.dumps([request for request, _ in pairs]))
    (folder / "references.json").write_text(json.dumps([reference for _, reference in pairs]))
    benchmark, store = READER.load(folder), Store(str(folder / "runs.db"))
    names = [*BASE, *(_name(number) for number in range(n - len(BASE)))]
    for number, name in enumerate(names):
        answers = [_given(name, number, n, *pair) for pair in pairs]
        (folder / "r.json").write_text(json.dumps([one for one in answers if one is not None]))
        recorded = READER.read_recorded(folder / "r.json", benchmark)
        asyncio.run(
            import_answers(store, benchmark, recorded, name=name, condition="video", scorers=[AccuracyScorer()])
        )
    return store


def _name(number: int) -> str:
    if number == 1:
        return "a team with <b>a very long name</b> & an even longer description of its method (v2.1)"
    return f"{('agentic', 'tracker', 'memory', 'retrieval', 'tuned')[number % 5]}-vlm-{number:02d}"


def _asked(number: int, videos: int) -> tuple[dict[str, Any], dict[str, Any]]:
    rng = random.Random(number)
    form, kwargs, answers = _FORMATS[number % len(_FORMATS)]
    minutes = rng.choice((5, 20, 60))
    request = {
        "qID": f"q{number:04d}",
        "videoID": f"v{int(videos * rng.random() ** 1.3):02d}.mp4",
        "start_time": 0,
        "end_time": 60 * minutes,
        "procedure_type": rng.choice(("sigmoid resection", "cholecystectomy")),
        "question": f"Question {number}?",
    }
    leaf, other = _LEAVES[(number * 7) % len(_LEAVES)], rng.choice(_LEAVES)
    reference = {
        "qID": request["qID"],
        "primary": leaf,
        "secondaries": [other] if other != leaf and rng.random() < 0.4 else [],
        "format": form,
        "format_kwargs": kwargs,
        "answer": rng.choice(answers),
        "ood": rng.random() < 0.4,
        "clinical": rng.random() < 0.5,
    }
    return request, reference


def _given(name: str, number: int, n: int, request: dict[str, Any], reference: dict[str, Any]) -> dict[str, Any] | None:
    rng = generator(0, name, request["qID"])
    video = generator(0, "video", request["videoID"]).normal(0, 0.15)
    skill = 0.85 - 0.55 * (number // 2 * 2) / max(n, 4) + video
    skill -= 0.12 * reference["ood"] + 0.1 * (request["end_time"] > 1800)
    if name in BASE:
        skill -= 0.2
    drawn = rng.random()
    if drawn < skill:
        content = reference["answer"]
    elif drawn < skill + 0.04:
        return None
    elif drawn < skill + 0.1:
        content = "I can't tell"
    else:
        choices = next(answers for form, _, answers in _FORMATS if form == reference["format"])
        content = str(rng.choice([one for one in choices if one != reference["answer"]]))
    latency = 45.0 if rng.random() < 0.03 else 4.0
    return {"qID": request["qID"], "content": content, "latency": latency}
