"""Run in the environment with other programs: a process that has loaded them forks one for each line that it reads, the
code or the module to run and its arguments, and writes a line with its exit code and what it wrote."""

from __future__ import annotations

import importlib
import json
import os
import runpy
import sys
import tempfile
import traceback
from pathlib import Path

_LOADED = {
    "inspect": ("inspect_ai.scorer", "inspect_ai.solver"),
    "lmms": ("lmms_eval.evaluator", "lmms_eval.loggers.evaluation_tracker", "lmms_eval.models.simple.from_log"),
}
"""What takes seconds to load, by a word in what asks for it."""


def _run(code: str, arguments: list[str]) -> None:
    sys.argv = [code, *arguments]
    if code.startswith("tests."):
        runpy.run_module(code, run_name="__main__", alter_sys=True)
    else:
        exec(compile(code, "<a test>", "exec"), {"__name__": "__main__"})


def _forked(line: list[str]) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                for number, file in ((1, out), (2, err)):
                    os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), number)
                _run(line[0], line[1:])
                code = 0
            except BaseException:  # noqa: BLE001  (the process ends here, whatever happened)
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        _, status = os.waitpid(pid, 0)
        return {
            "code": os.waitstatus_to_exitcode(status),
            "out": out.read_text(encoding="utf-8", errors="replace") if out.exists() else "",
            "err": err.read_text(encoding="utf-8", errors="replace") if err.exists() else "",
        }


if __name__ == "__main__":
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what packages print while they are loaded is no answer
    for text in sys.stdin:
        asked = json.loads(text)
        for word in [word for word in _LOADED if word in " ".join(asked[:2])]:
            for name in _LOADED[word]:
                importlib.import_module(name)
        answers.write(json.dumps(_forked(asked)) + "\n")
        answers.flush()
