"""Run in the environment with other programs: tasks that Proctor exported, run by Inspect and by lmms-eval."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import proctor
from tests.support.lamp_benchmark import lamps


def by_inspect(folder: Path, place: Path) -> dict[str, Any]:
    """Replies of a model that says "yes" to all, marked by the task's own scorer; and the log, read by Proctor."""
    from inspect_ai import eval as run_eval
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    replies = [ModelOutput.from_content("mockllm/model", "Answer: yes") for _ in range(12)]
    for one in replies:
        one.usage = ModelUsage(
            input_tokens=9, output_tokens=2, total_tokens=11
        )  # else it is counted by a file of the net
    model = get_model("mockllm/model", custom_outputs=replies)
    os.chdir(folder)
    (log,) = run_eval("task.py", model=model, log_dir=str(place / "logs"), display="none")
    assert log.results is not None, log.error.message if log.error else log.status
    (score,) = log.results.scores
    made = proctor.import_answers(lamps(), log.location, store=place / "inspect.db", condition="text-only")
    table = made.results().to_pandas()
    ours = table[(table.metric == "accuracy") & (table.scorer == "code")]["value"].iloc[0]
    assert log.samples is not None
    asked = [[message.text for message in sample.input] for sample in log.samples if not isinstance(sample.input, str)]
    return {
        "mean": score.metrics["mean"].value,
        "stderr": score.metrics["stderr"].value,
        "ours": ours,
        "asked": asked[0],
    }


def by_lmms_eval(folder: Path, logs: Path, task: str) -> dict[str, Any]:
    """The task run by lmms-eval's own evaluator, with the replies of a log that Proctor wrote."""
    from lmms_eval.evaluator import simple_evaluate
    from lmms_eval.tasks import TaskManager

    manager = TaskManager(include_path=str(folder), include_defaults=False)
    found = simple_evaluate(
        model="from_log", model_args=f"logs={logs}", tasks=[task], task_manager=manager, batch_size=1, log_samples=True
    )
    return {"results": found["results"][task], "asked": found["samples"][task][0]["arguments"][0]}


if __name__ == "__main__":
    where = Path(sys.argv[2])
    result = (
        by_inspect(where, Path(sys.argv[3]))
        if sys.argv[1] == "inspect"
        else by_lmms_eval(where, Path(sys.argv[3]), sys.argv[4])
    )
    sys.stdout.write("\n" + json.dumps(result, default=str) + "\n")
