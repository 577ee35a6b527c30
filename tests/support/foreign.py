"""Other programs' packages, in an environment of their own (`make interchange`): what they say of our files, and what
they write."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from tests.support.means import missing
from tests.support.paths import ROOT, SOURCES


def foreign(code: str, *arguments: str | Path) -> Any:
    """Runs Python code, or a module of the tests, there with these arguments, and gives the JSON of its last line.

    Each call has a process of its own, forked from one that has loaded what all need (`foreign_host`)."""
    host = _host()
    assert host.stdin is not None
    assert host.stdout is not None
    host.stdin.write(json.dumps([code, *map(str, arguments)]) + "\n")
    host.stdin.flush()
    answer = host.stdout.readline()
    assert answer, "the process with other programs' packages ended"
    done = json.loads(answer)
    assert done["code"] == 0, f"{done['out'][-2000:]}\n{done['err'][-4000:]}"
    return json.loads(done["out"].strip().splitlines()[-1])


@cache
def _host() -> subprocess.Popen[str]:
    folder = Path(os.environ.get("PROCTOR_INTERCHANGE") or ROOT / ".interchange")
    python = folder / "bin" / "python"
    if not python.exists():
        missing("no environment with other programs' packages: make interchange")
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1"}
    environment |= {"PYTHONPATH": os.pathsep.join([*map(str, SOURCES.values()), str(ROOT)])}
    host = subprocess.Popen(
        [str(python), "-W", "ignore", "-m", "tests.support.foreign_host"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )

    @atexit.register
    def _end() -> None:
        host.communicate()

    return host
