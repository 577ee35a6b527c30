"""Rated answers as the files of MEDIQA-EVAL."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path

from proctor.judges.dimensions import RatedCase

_NAMES = {
    "disagree_flag": ("disagree_flag",),
    "overall": ("completeness", "factual-accuracy", "relevance", "writing-style", "overall"),
}
_CHINESE = ("factual-consistency-wgold", "writing-style")


def write_task(folder: Path, rated: Sequence[RatedCase]) -> None:
    """`encounters.jsonl` and `ratings.csv` of what `made_up` made."""
    encounters: dict[str, dict[str, object]] = {}
    rows = []
    for number, one in enumerate(rated):
        case = one.case
        name = case.encounter.replace("one", "iiyi").replace("two", "woundcare")
        dataset, encounter = name.split("/")
        encounters[f"{name}/{case.language}"] = {
            "dataset": dataset,
            "encounter_id": encounter,
            "lang": case.language,
            "query": case.query,
            "references": [reference.text for reference in case.references],
            "images": list(case.images),
        }
        given = (
            {metric: value for own, value in one.values.items() for metric in _NAMES[own]}
            if case.language == "en"
            else dict.fromkeys(_CHINESE, one.values["overall"])
        )
        rows += [
            {
                "dataset": dataset,
                "encounter_id": encounter,
                "lang": case.language,
                "candidate": case.candidate,
                "candidate_author_id": f"SYSTEM{number % 3}",
                "metric": metric,
                "rater_id": "A1",
                "value": value,
            }
            for metric, value in given.items()
        ]
    text = "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in encounters.values())
    (folder / "encounters.jsonl").write_text(text, encoding="utf-8")
    with (folder / "ratings.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
