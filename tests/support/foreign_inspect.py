"""Run in the environment with Inspect: an evaluation by Inspect itself, and what Proctor and Inspect say of each
other's logs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import proctor
from tests.support.lamp_benchmark import lamps


def evaluate(folder: Path) -> None:
    """Twelve questions, of which one ends by an error, one by its limit of time and one by a content filter."""
    from inspect_ai import Task
    from inspect_ai import eval as run_eval
    from inspect_ai.dataset import Sample
    from inspect_ai.log import read_eval_log, write_eval_log
    from inspect_ai.model import ModelOutput
    from inspect_ai.scorer import match
    from inspect_ai.solver import Generate, TaskState, solver
    from inspect_ai.util import LimitExceededError

    @solver  # type: ignore[untyped-decorator]
    def answering() -> Any:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            if state.sample_id == "room-1/q1":
                raise ConnectionError("the server is gone")
            if state.sample_id == "room-1/q2":
                raise LimitExceededError("time", value=31, limit=30)
            reason = "content_filter" if state.sample_id == "room-1/q3" else "stop"
            said = "no" if state.sample_id == "room-2/q1" else "yes"
            state.output = ModelOutput.from_content("mockllm/model", "I won't." if reason != "stop" else said, reason)
            return state

        return solve

    words = {True: "yes", False: "no"}
    right = [(item, item.reference.answer if item.reference else None) for item in lamps().items]
    dataset = [Sample(item.question, id=item.id, target=words[answer is True]) for item, answer in right]
    task = Task(dataset=dataset, solver=answering(), scorer=match(), name="lamps")
    (log,) = run_eval(
        task,
        model="mockllm/model",
        log_dir=str(folder / "eval"),
        log_format="eval",
        fail_on_error=False,
        display="none",
    )
    (folder / "json").mkdir()
    write_eval_log(read_eval_log(log.location), str(folder / "json" / "log.json"))


def _figures(made: proctor.Evaluation) -> dict[str, Any]:
    rows = made.results(failed="exclude").to_pandas()
    return {f"{row.metric}/{row.scorer}": row["value"] for _, row in rows.iterrows()}


def read(folder: Path) -> dict[str, Any]:
    from inspect_ai.log import read_eval_log

    found: dict[str, Any] = {}
    for form in ("eval", "json"):
        (file,) = (folder / form).iterdir()
        made = proctor.import_answers(lamps(), file, store=folder / f"{form}.db")
        log = read_eval_log(str(file))
        assert log.results is not None
        found[form] = {
            "system": made.systems,
            "notes": made.notes,
            "figures": _figures(made),
            "inspect": {name: one.value for name, one in log.results.scores[0].metrics.items()},
            "scored": log.results.scores[0].scored_samples,
            "statuses": {name: str(one.status) for name, one in made.store.answers(made.runs[0]).items()},
        }
    return found


def write(folder: Path) -> dict[str, Any]:
    """Our log of the run of before, read by Inspect, and by us again."""
    from inspect_ai.log import read_eval_log

    store = proctor.open_store(folder / "eval.db")
    found: dict[str, Any] = {}
    for ending in ("eval", "json"):
        out = folder / f"ours.{ending}"
        made = proctor.export(
            store, out, "lamps", format="inspect", systems="mockllm/model", origin={"licence": "CC0-1.0"}
        )
        log = read_eval_log(str(out))
        assert log.samples is not None
        assert log.results is not None
        scored = {one.id: one.scores["accuracy"].value for one in log.samples if one.scores}
        again = proctor.import_answers(lamps(), out, store=folder / f"again-{ending}.db")
        after = again.store.answers(again.runs[0])
        before = next(store.answers(run) for run in store.runs("lamps") if run.system == "mockllm/model")
        same = [
            (before[name].status, before[name].text, before[name].parsed) == (one.status, one.text, one.parsed)
            for name, one in after.items()
        ]
        found[ending] = {
            "dropped": made.dropped,
            "samples": len(log.samples),
            "scored": scored,
            "unscored": log.results.scores[0].unscored_samples,
            "mean": log.results.scores[0].metrics["mean"].value,
            "metadata": log.eval.metadata,
            "same": all(same) and len(same) == len(before),
            "figures": _figures(again),
        }
    return found


if __name__ == "__main__":
    place = Path(sys.argv[1])
    evaluate(place)
    sys.stdout.write(json.dumps({"read": read(place), "write": write(place)}) + "\n")
