"""Run in the environment with lmms-eval: samples written by its own tracker, and its own readers on samples of
Proctor's."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.support.lamp_benchmark import lamps


def write(folder: Path) -> dict[str, Any]:
    """What the tracker of an evaluation writes: twelve replies, of which one is empty."""
    from lmms_eval.loggers.evaluation_tracker import EvaluationTracker

    tracker = EvaluationTracker(output_path=str(folder))
    tracker.general_config_tracker.log_experiment_args("hf", "pretrained=a-lab/seer-7b", "", "", False)
    samples: list[dict[str, Any]] = []
    for number, item in enumerate(lamps().items):
        assert item.reference is not None
        right = "yes" if item.reference.answer else "no"
        said = "" if number == 0 else "no" if number == 4 else "Answer: yes"
        samples.append(
            {
                "doc_id": number,
                "doc": {"id": item.id},
                "target": right,
                "arguments": (item.question, {"max_new_tokens": 16}, number, "lamps", "test"),
                "resps": [[said]],
                "filtered_resps": [said.strip()],
                "token_counts": [{"input_tokens": 90, "output_tokens": 3}],
                "doc_hash": "0" * 8,
                "exact_match": float(said.removeprefix("Answer: ") == right),
            }
        )
    mean = sum(one["exact_match"] for one in samples) / len(samples)
    results = {"results": {"lamps": {"exact_match,none": mean}}}
    tracker.save_results_aggregated(results, {"lamps": samples}, "20261122_101500")
    tracker.save_results_samples("lamps", samples)
    (file,) = folder.rglob("*_samples_lamps.jsonl")
    return {"file": str(file), "exact_match": mean}


def read(folder: Path, task: str) -> dict[str, Any]:
    """A folder that Proctor wrote, by lmms-eval's reader of baselines and by its model `from_log`."""
    from lmms_eval.api.instance import Instance
    from lmms_eval.baselines import load_baseline
    from lmms_eval.models.simple.from_log import FromLog

    (file,) = folder.glob("*_samples_*.jsonl")
    scores, results = load_baseline(str(file), task)
    model = FromLog(logs=str(folder))
    requests = [
        Instance(
            "generate_until", ("", {}, None, number, task, "test"), 0, {"task": task, "doc_id": number, "repeats": 1}
        )
        for number in sorted(scores)
    ]
    return {"scores": scores, "results": results, "replies": model.generate_until(requests)}


if __name__ == "__main__":
    step, row = sys.argv[1], Path(sys.argv[2])
    sys.stdout.write(json.dumps(write(row) if step == "write" else read(row, sys.argv[3])) + "\n")
