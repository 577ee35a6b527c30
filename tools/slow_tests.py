"""Writes tests/slow.txt: the tests that `make test` leaves out and `make test ALL=yes` runs.

python tools/slow_tests.py suite.xml [--seconds 3]      suite.xml: from `make test ALL=yes OPTIONS=--junitxml=suite.xml`
"""

from __future__ import annotations

import argparse
import xml.etree.ElementTree as ET
from collections import defaultdict
from pathlib import Path

LIST = Path(__file__).resolve().parents[1] / "tests" / "slow.txt"


def slow_tests(report: Path, seconds: float) -> list[str]:
    """The test functions that take at least that long, with all of their parameters together."""
    taken = defaultdict[str, float](float)
    for case in ET.parse(report).getroot().iter("testcase"):  # noqa: S314 (a file of one's own)
        *modules, last = case.get("classname", "").split(".")
        file = Path(*modules, f"{last}.py")
        if (LIST.parents[1] / file).is_file():  # not a test of a class
            taken[f"{file.as_posix()}::{case.get('name', '').partition('[')[0].partition('@')[0]}"] += float(
                case.get("time", "0")
            )
    return sorted(name for name, time in taken.items() if time >= seconds)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("report", type=Path, help="durations, as JUnit's XML")
    arguments.add_argument("--seconds", type=float, default=3.0, help="from how many seconds on a test is slow")
    given = arguments.parse_args()
    LIST.write_text("".join(f"{name}\n" for name in slow_tests(given.report, given.seconds)), encoding="utf-8")


if __name__ == "__main__":
    main()
