"""Other programs' packages, in an environment of their own (`make interchange`): what they say of our files, and what
they write."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from tests.conftest import missing

ROOT = Path(__file__).parents[2]


def foreign(code: str, *arguments: str | Path) -> Any:
    """Runs Python code, or a module of the tests, there with these arguments, and gives the JSON of its last line."""
    folder = Path(os.environ.get("PROCTOR_INTERCHANGE") or ROOT / ".interchange")
    python = folder / "bin" / "python"
    if not python.exists():
        missing("no environment with other programs' packages: make interchange")
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1"}
    environment |= {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    program = ["-m", code] if code.startswith("tests.") else ["-c", code]
    command = [str(python), "-W", "ignore", *program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600, check=False)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return json.loads(done.stdout.strip().splitlines()[-1])
