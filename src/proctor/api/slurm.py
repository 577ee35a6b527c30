"""Workers on SLURM: the script of an array job, to look at and hand to `sbatch`."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

_SCRIPT = """\
#!/bin/bash
#SBATCH --job-name={name}
#SBATCH --array=1-{count}
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=2
{gpu}#SBATCH --time=24:00:00
#SBATCH --output=proctor-%A-%a.log
#SBATCH --requeue
#SBATCH --signal=B:TERM@120
# Each task is a worker; any number may run, start late, or be killed. Two minutes before its time is over it lets the
# answers under way come in. The store's address and the keys of models come from the environment of sbatch.
: "${{PROCTOR_STORE:?the address of the store is expected: export it before sbatch}}"
exec {command}
"""


def slurm_script(benchmark: str, count: int, options: Sequence[str], *, gpu: bool = False) -> str:
    """A batch script with `count` workers, each with these options of `proctor worker`, and a GPU where one is needed.

    >>> print(slurm_script("focus", 8, ["--media", "/data/my videos"]).splitlines()[2])
    #SBATCH --array=1-8
    """
    name = "proctor-" + (re.sub(r"[^\w.-]+", "-", benchmark) or "run")
    command = shlex.join([str(Path(sys.executable)), "-m", "proctor", "worker", "--once", *options])
    return _SCRIPT.format(name=name, count=count, gpu="#SBATCH --gpus-per-task=1\n" if gpu else "", command=command)
