"""One module per benchmark: reads its native files, states its protocol."""

from proctor.core import BenchmarkReader, Registry

__all__ = ["BENCHMARKS"]

BENCHMARKS: Registry[BenchmarkReader] = Registry("benchmark", group="proctor.benchmarks")
