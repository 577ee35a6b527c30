"""A small MEDIQA-EVAL in a store, scored by a scripted judge and exported, all through the command line."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.dimension_cases import ENGLISH, rating
from tests.support.faulty_server import FaultyServer, Request
from tests.support.program import within

COLUMNS = ["dataset", "encounter_id", "lang", "candidate", "candidate_author_id", "metric", "rater_id", "value"]


CHINESE = {"factual-consistency-wgold": 0.4, "writing-style": 0.85}


def reply(request: Request) -> str:
    """As asked, in the language of the question; the longer the candidate, the higher the scores."""
    text = request.text.split("<<<ANSWER\n")[-1].split("\nANSWER>>>")[0]
    score = round(min(len(text), 400) / 400, 2)
    if "患者的问题" in request.text:
        return rating(dict.fromkeys(CHINESE, score))
    return rating(dict.fromkeys(ENGLISH, score) | {"disagree_flag": len(text) % 2})


def rows_of(file: Path) -> list[dict[str, str]]:
    with file.open(newline="", encoding="utf-8") as opened:
        return list(csv.DictReader(opened))


def small(folder: Path, answers: Mapping[str, str] | None = None) -> tuple[Path, Path]:
    """Ratings of one English encounter by two raters and of one Chinese one, and their encounters."""
    texts = answers or {"S1": "Eczema.", "S2": 'Rosacea, "likely",\nsee a physician.'}
    ratings, encounters = folder / "ratings.csv", folder / "encounters.jsonl"
    with ratings.open("w", newline="", encoding="utf-8") as opened:
        writer = csv.writer(opened)
        writer.writerow(COLUMNS)
        for system, text in texts.items():
            for rater in ("A", "B"):
                for name in ENGLISH:
                    writer.writerow(["iiyi", "E1", "en", text, system, name, rater, "1.0"])
        for name in CHINESE:
            writer.writerow(["woundcare", "E2", "zh", "湿疹。", "S1", name, "A", "0.5"])
    both = [
        {"dataset": "iiyi", "encounter_id": "E1", "lang": "en", "query": "What is it?",
         "references": [{"text": "Rosacea."}, {"text": "Eczema.", "frequency": 1, "completeness": 0.5}],
         "images": ["rash.png"]},
        {"dataset": "woundcare", "encounter_id": "E2", "lang": "zh", "query": "这是什么？", "references": ["湿疹。"]},
    ]  # fmt: skip
    encounters.write_text("\n".join(json.dumps(one, ensure_ascii=False) for one in both), encoding="utf-8")
    return ratings, encounters


SCORER = "mediqa-judge[openai:judge]"


def stored(folder: Path, answers: Mapping[str, str] | None = None) -> Path:
    """The store of a small task."""
    ratings, encounters = small(folder, answers)
    store = folder / "runs.db"
    code, said = within("import", "mediqa-eval", ratings, "--data", encounters, "--store", store)
    assert code == 0, said
    return store


def score(store: Path, *more: str | Path, server: FaultyServer | None = None) -> tuple[int, str]:
    model: list[str | Path] = (
        ["--model", "openai:judge", "--base-url", server.url, "--timeout", "60", "--retries", "0"] if server else []
    )
    return within("score", "mediqa-eval", "--store", store, *model, *more)


def export(
    store: Path, out: Path, *more: str | Path, scorer: str = SCORER, form: str = "submission"
) -> tuple[int, str]:
    given = ("--format", form, "--scorer", scorer, "--out", out)
    return within("export", "mediqa-eval", "--store", store, *given, *more)


def judgements(store: Path, scorer: str = SCORER) -> list[dict[str, Any]]:
    out = store.with_suffix(".jsonl")
    code, said = export(store, out, scorer=scorer, form="judgements")
    assert code == 0, said
    return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
