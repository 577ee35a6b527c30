"""How replies are read: wrong and missed readings of the labelled replies in tests/core/replies, per answer format.

A reading is wrong where it is another value than the label, or a value where the label says that two people would
agree on none. It is missed where the label is a value and nothing is read: such a reply counts as wrong, too, but
nothing is guessed. `--show` lists both.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).resolve().parents[1])  # not this folder, which has a `statistics`

from pydantic import TypeAdapter

from proctor.core import ParseError
from proctor.core.formats import AnswerFormat, Format

REPLIES = Path(__file__).parents[1] / "tests" / "core" / "replies"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--show", action="store_true", help="list every wrong or missed reply")
    show = parser.parse_args().show
    adapter: TypeAdapter[Format] = TypeAdapter(AnswerFormat)
    print(f"{'format':20} {'replies':>7} {'unreadable':>10} {'wrong':>6} {'missed':>6} {'error rate':>10}")
    for file in sorted(REPLIES.glob("*.jsonl")):
        head, *rows = (json.loads(line) for line in file.read_text(encoding="utf-8").splitlines())
        form = adapter.validate_python(head["format"])
        found = [(row, read(form, row["text"], head.get("options", []))) for row in rows]
        differ = [(row, value) for row, value in found if value != row["value"]]
        wrong = sum(value is not None for _, value in differ)
        none = sum(row["value"] is None for row in rows)
        rate = f"{100 * len(differ) / len(rows):.1f} %"
        print(f"{file.stem:20} {len(rows):7} {none:10} {wrong:6} {len(differ) - wrong:6} {rate:>10}")
        for row, value in differ if show else []:
            print(f"    {row['text']!r}: read {value!r}, wanted {row['value']!r}")


def read(form: Format, text: str, options: list[str]) -> Any:
    """The value, or None."""
    try:
        return form.parse(text, options)
    except ParseError:
        return None


if __name__ == "__main__":
    main()
