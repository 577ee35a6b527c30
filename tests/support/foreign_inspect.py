"""Run in the environment with Inspect: an evaluation by Inspect itself, and what Proctor and Inspect say of each
other's logs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import proctor
from proctor.core import Answer, Score, Status, Timing, Usage
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


def shuffled(folder: Path) -> dict[str, Any]:
    """Twelve questions whose choices Inspect shuffles, three times each. The model always names the right option, but
    for the third time, when it names another one. A log of one epoch beside it."""
    from inspect_ai import Task
    from inspect_ai import eval as run_eval
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import ModelAPI, ModelOutput, get_model, modelapi
    from inspect_ai.scorer import choice
    from inspect_ai.solver import Generate, TaskState, multiple_choice, solver

    class Knowing(ModelAPI):  # type: ignore[misc]
        async def generate(self, *given: Any, **more: Any) -> ModelOutput:
            lines = (given[0] if given else more["input"])[-1].text.splitlines()
            wanted = "stomach" if any("time 3" in line for line in lines) else "liver"
            letter = next(line[0] for line in lines if line[1:].strip() == f") {wanted}")
            return ModelOutput.from_content("knowing/model", f"ANSWER: {letter}")

    @modelapi(name="knowing")  # type: ignore[untyped-decorator]
    def knowing() -> Any:
        return Knowing

    @solver  # type: ignore[untyped-decorator]
    def counted() -> Any:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            del generate
            state.user_prompt.text += f" (time {state.epoch})"
            return state

        return solve

    options = ["liver", "stomach", "bladder", "kidney"]
    found = {}
    for epochs in (1, 3):
        samples = [Sample(f"Which organ is in view {n}?", options, target="A", id=f"q{n}") for n in range(12)]
        dataset = MemoryDataset(samples, name="organs")
        dataset.shuffle_choices(seed=42)
        task = Task(dataset=dataset, solver=[counted(), multiple_choice()], scorer=choice(), name="organs")
        model = get_model("knowing/model")
        (log,) = run_eval(task, model=model, epochs=epochs, log_dir=str(folder / str(epochs)), display="none")
        assert log.results is not None
        found[str(epochs)] = log.location.removeprefix("file://")
    questions = folder / "organs.json"
    asked = [
        {"id": f"q{n}", "question": f"Which organ is in view {n}?", "options": options, "answer": "A", "group": f"v{n}"}
        for n in range(12)
    ]
    questions.write_text(json.dumps(asked))
    told: dict[str, Any] = {}
    wanted: dict[str, tuple[str, int | None]] = {
        "one": ("1", None),
        "all": ("3", None),
        "third": ("3", 3),
        "fourth": ("3", 4),
    }
    for name, (log_of, epoch) in wanted.items():
        try:
            made = proctor.import_answers(questions, found[log_of], name=name, store=":memory:", epoch=epoch)
        except proctor.InputError as error:
            told[name] = {"error": str(error)}
            continue
        answers = made.store.answers(made.runs[0])
        told[name] = {
            "figures": _figures(made),
            "notes": made.notes,
            "letters": sorted({answer.text for answer in answers.values()}),
            "shown": answers["q0"].extra["options_shown"],
            "repetitions": len(made.store.repetitions(made.runs[0])),
        }
    return told


def ended(folder: Path) -> dict[str, Any]:
    """What an import makes of samples that ended for each of Inspect's reasons."""
    from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalSample, EvalSpec, write_eval_log
    from inspect_ai.model import ModelOutput, ModelUsage

    told = [
        ("stop", "yes", None), ("max_tokens", "yes, since", None), ("max_tokens", "", None),
        ("model_length", "prompt is too long", None), ("model_length", "yes, since", 7),
        ("content_filter", "I won't.", None), ("unknown", "yes", None), ("tool_calls", "yes", None),
    ]  # fmt: skip
    outputs = []
    for reason, text, tokens in told:
        outputs.append(ModelOutput.from_content("mockllm/model", text, reason))
        outputs[-1].usage = ModelUsage(output_tokens=tokens) if tokens else None
    outputs.append(ModelOutput.from_content("mockllm/model", "half", "stop", error="the upstream is gone"))
    items = lamps().items[: len(outputs)]
    samples = [
        EvalSample(id=item.id, epoch=1, input=item.question, target="yes", output=output)
        for item, output in zip(items, outputs, strict=True)
    ]
    spec = EvalSpec(
        created="2026-11-28T10:00:00+00:00",
        task="lamps",
        dataset=EvalDataset(sample_ids=[item.id for item in items]),
        model="mockllm/model",
        config=EvalConfig(),
    )
    write_eval_log(EvalLog(status="success", eval=spec, samples=samples), str(folder / "ended.json"))
    made = proctor.import_answers(lamps(), folder / "ended.json", store=folder / "ended.db")
    answers = made.store.answers(made.runs[0])
    said = [answers[item.id] for item in items]
    return {"answers": [[str(one.status), one.reason, one.extra] for one in said], "notes": made.notes}


def written(folder: Path) -> dict[str, Any]:
    """A log that we write of answers with each status, and scores by a judge and a person, as Inspect reads it."""
    from inspect_ai.log import read_eval_log

    benchmark, store = lamps(free_text=True), proctor.open_store(folder / "written.db")
    store.add_benchmark(benchmark)
    run = store.start_run("lamps", "one", "video", {"system": {"model": "openai:gpt-5.2"}})
    used = Usage(requests=1, input_tokens=10, output_tokens=4, cached_tokens=3)
    yes = {"text": "yes", "parsed": True, "usage": used}
    rows: list[tuple[dict[str, Any], list[Score]]] = [
        (yes, []),
        ({**yes, "extra": {"cut_off": True, "finish_reason": "length"}}, []),
        ({"status": Status.FAILED, "reason": "HTTP 500: out of memory"}, []),
        ({"status": Status.REFUSED, "reason": "content_filter", "usage": used}, []),
        ({"status": Status.ERROR, "reason": "the context is too long"}, []),
        ({"status": Status.ERROR, "reason": "HTTP 400: cannot identify image file"}, []),
        ({"status": Status.TIMED_OUT, "reason": "took 31 s", "timing": Timing(model_s=31.0)}, []),
    ]
    items = [*benchmark.items[: len(rows)], benchmark.items[-1]]
    said = [Score(item_id=items[-1].id, metric="accuracy", value=value, scorer=who) for who, value in
            (("three-level[gpt]", 1.0), ("human:ana", 0.0))]  # fmt: skip
    rows.append(({"text": "the machine", "parsed": "the machine"}, said))
    answers = [(Answer(item_id=item.id, **fields), scores) for item, (fields, scores) in zip(items, rows, strict=True)]
    store.write(run, answers)
    proctor.export(store, folder / "written.json", "lamps", format="inspect")
    log = read_eval_log(str(folder / "written.json"))
    assert log.samples is not None
    assert log.results is not None
    return {
        "status": log.status,
        "completed": [log.results.completed_samples, log.results.total_samples],
        "errors": [sample.error.message if sample.error else None for sample in log.samples],
        "stops": [sample.output.stop_reason if sample.output.choices else None for sample in log.samples],
        "limits": [sample.limit.type if sample.limit else None for sample in log.samples],
        "models": sorted({name for sample in log.samples for name in sample.model_usage}),
        "total": log.stats.model_usage["openai/gpt-5.2"].model_dump(exclude_none=True),
        "judged": {name: score.value for name, score in (log.samples[-1].scores or {}).items()},
        "scorers": sorted(score.name for score in log.results.scores),
    }


def repetitions(folder: Path) -> dict[str, Any]:
    """A run of three repetitions as a log, as Inspect reads it, and read back."""
    from inspect_ai.log import read_eval_log

    from tests.support.toy_run import toy

    rows = [f"q00{item},{item + number},{number},{0.1 * (item + number)}" for item in range(3) for number in range(3)]
    (folder / "mine.csv").write_text("\n".join(["id,answer,repetition,confidence", *rows]) + "\n")
    made = proctor.import_answers(toy(3), folder / "mine.csv", name="mine", store=folder / "first.db")
    made.export(folder / "log.eval", format="inspect")
    log = read_eval_log(str(folder / "log.eval"))
    again = proctor.import_answers(toy(3), folder / "log.eval", name="mine", store=folder / "second.db")
    both = [
        [
            sorted(
                (item, one.text, one.parsed, one.confidence.value if one.confidence else None)
                for item, one in found.store.answers(found.runs[0], number).items()
            )
            for number in found.store.repetitions(found.runs[0])
        ]
        for found in (made, again)
    ]
    return {
        "same": both[0] == both[1] and len(both[0]) == 3,
        "epochs": [log.eval.config.epochs, sorted({sample.epoch for sample in log.samples or ()})],
        "status": log.status,
        "samples": len(log.samples or ()),
        "scored": [[one.scored_samples, one.unscored_samples] for one in log.results.scores] if log.results else [],
    }


if __name__ == "__main__":
    location = Path(sys.argv[1])
    asked = {"shuffled": shuffled, "ended": ended, "written": written, "repetitions": repetitions}
    if more := asked.get(" ".join(sys.argv[2:])):
        sys.stdout.write(json.dumps(more(location)) + "\n")
    else:
        evaluate(location)
        sys.stdout.write(json.dumps({"read": read(location), "write": write(location)}) + "\n")
