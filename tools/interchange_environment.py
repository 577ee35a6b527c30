"""Makes the environment in which the tests run other programs' packages: `make interchange`.

Inspect (fsspec), lmms-eval (httpx, av, torchvision), mlcroissant (pandas-stubs, which would type all of pandas),
Every Eval Ever (Python 3.12) and ppi-python (numba) can't be installed beside the pinned packages. Here they lie in a
folder of their own, over those: their pinned versions stand in packages/proctor/tests/interchange/environment.txt.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PINS = ROOT / "packages" / "proctor" / "tests" / "interchange" / "environment.txt"


def make(folder: Path) -> None:
    """Makes the environment, or brings it up to date."""
    venv.create(folder, with_pip=False)
    below = [
        *map(str, sorted(ROOT.glob("packages/*/src"))),
        *(path for path in sys.path if path.endswith("site-packages")),
    ]
    (site,) = folder.glob("lib/python3*/site-packages")
    (site / "10_proctor.pth").write_text("".join(f"{path}\n" for path in below), encoding="utf-8")
    python = str(folder / "bin" / "python")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python, "install", "--quiet"]
    subprocess.run([*pip, "--no-deps", "--ignore-requires-python", "--requirement", str(PINS)], check=True)  # noqa: S603 - our own words
    shutil.rmtree(site / "tests", ignore_errors=True)  # ppi-python brings its own, which would hide ours


if __name__ == "__main__":
    make(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / ".interchange"))
