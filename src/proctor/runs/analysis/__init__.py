"""The analysis of a benchmark's runs: tables, each with its clustered intervals, to read and to plot."""

from proctor.runs.analysis.analyse import Analysis, analyse, write_tables
from proctor.runs.analysis.boards import duels_of, lead_rows, rule_rows
from proctor.runs.analysis.performance import NothingMarkedError, Row

__all__ = ["Analysis", "NothingMarkedError", "Row", "analyse", "duels_of", "lead_rows", "rule_rows", "write_tables"]
