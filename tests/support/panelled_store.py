"""A store of FOCUS whose texts are all different, with free text scored by a panel of judges with names."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path

from proctor.core import Score
from proctor.metrics import AccuracyScorer
from proctor.runs import Store, import_answers
from proctor.tasks.focus import READER

JUDGES = ("secret-gpt", "secret-qwen", "secret-llama")
PANEL = f"panel[{', '.join(sorted(JUDGES))}]"


def panelled(path: Path) -> Store:
    """Three teams on times and free text, of which no two texts are equal; the free text scored by a panel."""
    requests: list[dict[str, object]] = []
    references: list[dict[str, object]] = []
    for number in range(80):
        free = number % 2 == 0
        hour = f"{number % 7:02d}:{number % 60:02d}:{(number * 7) % 60:02d}"
        key = f"reference-{number:03d}" if free else hour
        name = f"q-{number:03d}"
        requests.append(
            {
                "qID": name,
                "videoID": f"video-{number % 10}",
                "start_time": 0,
                "end_time": 30000,
                "procedure_type": "resection",
                "question": f"question-{number:03d}?",
            }
        )
        references.append(
            {
                "qID": name,
                "primary": ("object_identification", "temporal_localization")[number % 2],
                "format": "open_ended" if free else "time",
                "answer": key,
                "ood": number % 4 < 2,
            }
        )
    (path / "requests.json").write_text(json.dumps(requests))
    (path / "references.json").write_text(json.dumps(references))
    benchmark, opened = READER.load(path), Store(path / "runs.db")
    for team, skill in (("team-red", 0.9), ("team-blue", 0.5), ("team-green", 0.2)):
        rng = random.Random(team)
        right = {row["qID"]: rng.random() < skill for row in references}
        answers = [
            {"qID": row["qID"], "content": said(team, row, right=right[str(row["qID"])]), "latency": 1.0}
            for row in references
        ]
        (path / "r.json").write_text(json.dumps(answers))
        recorded = READER.read_recorded(path / "r.json", benchmark)
        asyncio.run(
            import_answers(opened, benchmark, recorded, name=team, condition="video", scorers=[AccuracyScorer()])
        )
        (run,) = [one for one in opened.runs("focus") if one.system == team]
        scores = [
            Score(item_id=name, metric="accuracy", value=float(right[name]), scorer=PANEL)
            for name in (str(row["qID"]) for row in references if row["format"] == "open_ended")
        ]
        opened.add_scores(run, scores)
    return opened


def said(team: str, row: dict[str, object], *, right: bool) -> str:
    if row["format"] == "open_ended":
        return f"{team} says {row['qID']}"
    return str(row["answer"]) if right else f"07:59:{random.Random(str(row['qID']) + team).randrange(60):02d}"
