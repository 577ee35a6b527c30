"""How replies are read: wrong and missed readings of the labelled replies in packages/proctor/tests/core/replies, per answer format.

A reading is wrong where it is another value than the label, or a value where the label says that two people would
agree on none. It is missed where the label is a value and nothing is read: such a reply counts as wrong, too, but
nothing is guessed. `--show` lists both.

Below stand the abstentions of packages/proctor/tests/core/abstentions, in the declared form and in other words; the held-out
ones were written before the reader, which was not changed for them.

`--generated N` reads N replies of each format that are drawn at random instead (tests/support/generated_replies.py: ways
of writing an answer, wrappers, languages, thoughts, corrections, refusals), with the seed `--seed`; and as many orders
that were requested by a JSON schema (tests/support/schema_replies.py).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).resolve().parents[1])  # not this folder, which has a `statistics`

from pydantic import TypeAdapter

from proctor.core import ParseError
from proctor.core.formats import AnswerFormat, Format, OrderingFormat, ShortTextFormat
from tests.support.abstention_replies import reading
from tests.support.abstention_replies import rows as abstention_rows
from tests.support.generated_replies import KINDS, generate
from tests.support.schema_replies import draw_schema_replies

REPLIES = Path(__file__).parents[1] / "packages" / "proctor" / "tests" / "core" / "replies"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--show", action="store_true", help="list every wrong or missed reply")
    parser.add_argument("--generated", type=int, metavar="N", help="read N drawn replies of each format")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the draws")
    parser.add_argument("--format", help="read replies of this format only")
    asked = parser.parse_args()
    print(f"{'format':20} {'replies':>7} {'unreadable':>10} {'wrong':>6} {'missed':>6} {'error rate':>10}")
    for name, form, options, rows in generated(asked.generated, asked.seed) if asked.generated else labelled():
        if asked.format not in {None, name}:
            continue
        found = [(text, wanted, read(form, text, options)) for text, wanted in rows]
        differ = [(text, wanted, value) for text, wanted, value in found if not same(form, wanted, value)]
        wrong = sum(value is not None for _, _, value in differ)
        none = sum(wanted is None for _, wanted, _ in found)
        rate = f"{100 * len(differ) / len(found):.2f} %"
        print(f"{name:20} {len(found):7} {none:10} {wrong:6} {len(differ) - wrong:6} {rate:>10}")
        for text, wanted, value in differ if asked.show else []:
            print(f"    {text!r}: read {value!r}, wanted {wanted!r}")
    if not asked.generated and asked.format is None:
        print_abstentions(show=asked.show)


def print_abstentions(*, show: bool) -> None:
    """What labelled replies say, and what is read."""
    print(
        f"\n{'abstentions':20} {'says':9} {'replies':>7} {'abstains':>9} {'declines':>9} {'answer':>7} {'error rate':>10}"
    )
    for file in ("replies.jsonl", "held_out.jsonl"):
        given = [(row["says"], reading(row), row["text"]) for row in abstention_rows(file)]
        for says in dict.fromkeys(says for says, _, _ in given):
            found = [(value, text) for wanted, value, text in given if wanted == says]
            count = Counter(value for value, _ in found)
            columns = f"{count['abstains']:9} {count['declines']:9} {count['answer']:7}"
            rate = f"{100 * (1 - count[says] / len(found)):.2f} %"
            print(f"{file.removesuffix('.jsonl'):20} {says:9} {len(found):7} {columns} {rate:>10}")
            for value, text in found if show else []:
                if value != says:
                    print(f"    {text!r}: read as {value}")


Rows = Iterable[tuple[str, Any]]


def labelled() -> Iterator[tuple[str, Format, list[str], Rows]]:
    """The labelled replies by file, without those of which not everybody is sure."""
    adapter: TypeAdapter[Format] = TypeAdapter(AnswerFormat)
    for file in sorted(REPLIES.rglob("*.jsonl")):
        head, *rows = (json.loads(line) for line in file.read_text(encoding="utf-8").splitlines())
        form = adapter.validate_python(head["format"])
        clear = [(row["text"], row["value"]) for row in rows if not row.get("unclear")]
        yield file.stem, form, head.get("options", []), clear


def generated(count: int, seed: int) -> Iterator[tuple[str, Format, list[str], Rows]]:
    """Drawn replies by format."""
    for name, kind in KINDS.items():
        yield name, kind.form, [*kind.options], generate(name, count, seed)
    labels = ("A", "B", "C", "D")
    rows = ((text, order) for _, text, order in draw_schema_replies(count, seed, labels))
    yield "ordering by schema", OrderingFormat(labels=labels), [], rows


def same(form: Format, wanted: Any, value: Any) -> bool:
    """Whether a reading is the value; short texts may differ in case and articles."""
    return bool(
        value == wanted
        or (isinstance(form, ShortTextFormat) and None not in {wanted, value} and form.match(wanted, value))
    )


def read(form: Format, text: str, options: list[str]) -> Any:
    """The value, or None."""
    try:
        return form.parse(text, options)
    except ParseError:
        return None


if __name__ == "__main__":
    main()
