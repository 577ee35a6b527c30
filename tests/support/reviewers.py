"""Physicians by rule: they fill in the tables that a project of key frames asks for."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping
from pathlib import Path

Row = dict[str, str]


def right_orders(project: Path) -> dict[str, tuple[str, ...]]:
    """The recorded order of each instance."""
    files = sorted((project / "work" / "frames").glob("*.json"))
    return {one["id"]: tuple(one["order"]) for file in files for one in json.loads(file.read_text())["records"]}


def reviewer(orders: Mapping[str, tuple[str, ...]], by: str, **others: Row) -> Callable[[Row], Row]:
    """One who sees every order as recorded and keeps every sentence, but for `others`, by the end of a row's id."""

    def review(row: Row) -> Row:
        said = {"order": " > ".join(orders[row["id"]])} if row["id"] in orders else {"verdict": "keep"}
        other = next((one for end, one in others.items() if row["id"].endswith(end.replace("_", "-"))), {})
        return {**row, **said, **other, "by": by}

    return review


def fill_in(table: Path, review: Callable[[Row], Row]) -> list[Row]:
    """Fills in a table, row by row."""
    with table.open(encoding="utf-8", newline="") as file:
        rows = [review(row) for row in csv.DictReader(file)]
    with table.open("w", encoding="utf-8", newline="") as file:
        out = csv.DictWriter(file, list(rows[0]))
        out.writeheader()
        out.writerows(rows)
    return rows
