"""The analysis of a benchmark's runs: tables, each with its clustered intervals, to read and to plot."""

from proctor.runs.analysis.analyse import Analysis, analyse, write_tables

__all__ = ["Analysis", "analyse", "write_tables"]
