"""Parameters that several commands share; what they share with Python is declared in `proctor.api.options`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from proctor.api import benchmark_names
from proctor.core import Option


class OutputFormat(StrEnum):
    """How a table is printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


BenchmarkName = Annotated[
    str,
    Option("A benchmark's name (proctor list benchmarks).", metavar="BENCHMARK", names=benchmark_names, argument=True),
]
StoreUrl = Annotated[
    str | None,
    Option("The store: a path of an SQLite file, or an SQLAlchemy URL. [default: proctor.db]", env="PROCTOR_STORE"),
]
Output = Annotated[OutputFormat, Option("For people or for programs.", "--format")]
OutFile = Annotated[Path, Option("The file to write.", "--out")]
Draws = Annotated[int, Option("Bootstrap draws behind each interval.", low=100)]
AllItems = Annotated[bool, Option("Also the items that the benchmark does not count.")]
