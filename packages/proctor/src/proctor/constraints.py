"""Prints where `constraints.txt` lies: the version of every package with which this release was tested. It needs nothing
but this package, so that it can be asked before the others are installed:

    pip install --no-deps proctor-eval
    pip install --constraint "$(python -m proctor.constraints)" proctor-eval
"""

from __future__ import annotations

import sys
from pathlib import Path

CONSTRAINTS = Path(__file__).with_name("constraints.txt")

if __name__ == "__main__":
    sys.stdout.write(f"{CONSTRAINTS}\n")
