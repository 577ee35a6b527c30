"""Run in the environment with other programs: tasks that Proctor exported, run by Inspect and by lmms-eval."""

from __future__ import annotations

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import proctor
from tests.support.lamp_benchmark import lamps


def by_inspect(folder: Path, location: Path) -> dict[str, Any]:
    """Replies of a model that says "yes" to all, scored by the task's own scorer; and the log, read by Proctor."""
    from inspect_ai import eval as run_eval
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    replies = [ModelOutput.from_content("mockllm/model", "Answer: yes") for _ in range(12)]
    for one in replies:
        one.usage = ModelUsage(
            input_tokens=9, output_tokens=2, total_tokens=11
        )  # else it is counted by a file of the net
    model = get_model("mockllm/model", custom_outputs=replies)
    os.chdir(folder)
    (log,) = run_eval("task.py", model=model, log_dir=str(location / "logs"), display="none")
    assert log.results is not None, log.error.message if log.error else log.status
    (score,) = log.results.scores
    made = proctor.import_answers(lamps(), log.location, store=location / "inspect.db", condition="text-only")
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


class _Server(BaseHTTPRequestHandler):
    """An OpenAI-compatible server that says "yes" to all, and keeps what it was asked."""

    asked: ClassVar[list[list[dict[str, Any]]]] = []

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append(body["messages"])
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Answer: yes"}}
        usage = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}
        reply = {"id": "r", "object": "chat.completion", "created": 0, "model": body["model"], "choices": [choice]}
        said = json.dumps(reply | {"usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as in the class
        """Nothing."""


def by_server(folder: Path, media: Path, location: Path) -> dict[str, Any]:
    """What a server that takes no video was sent, by the command that the task's first lines name."""
    from inspect_ai import eval as run_eval
    from inspect_ai.model import get_model

    server = ThreadingHTTPServer(("127.0.0.1", 0), _Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/v1"
    os.environ["OPENAI_API_KEY"] = "none"
    found: dict[str, Any] = {}
    os.chdir(folder)
    for frames in (True, False):
        model = get_model("openai/gpt-5.2", base_url=url, responses_api=False, memoize=False)
        _Server.asked.clear()
        (log,) = run_eval(
            "task.py",
            model=model,
            task_args={"media": str(media), "frames": frames},
            log_dir=str(location / "logs"),
            display="none",
            fail_on_error=False,
            max_connections=1,
        )
        errors = [sample.error.message for sample in log.samples or () if sample.error]
        found[str(frames)] = {"asked": list(_Server.asked), "status": log.status, "errors": errors}
    server.shutdown()
    return found


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
    if sys.argv[1] == "inspect":
        result = by_inspect(where, Path(sys.argv[3]))
    elif sys.argv[1] == "server":
        result = by_server(where, Path(sys.argv[3]), Path(sys.argv[4]))
    else:
        result = by_lmms_eval(where, Path(sys.argv[3]), sys.argv[4])
    sys.stdout.write("\n" + json.dumps(result, default=str) + "\n")
