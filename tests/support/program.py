"""The program as other programs call it: a process with arguments, two streams and an exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

__all__ = ["proctor"]


def proctor(
    *arguments: str | Path, timeout: float = 120, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs `proctor` and returns what it printed and how it ended."""
    return subprocess.run(
        [sys.executable, "-c", "from proctor.cli.main import main; main()", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        env=os.environ | environment,
    )
