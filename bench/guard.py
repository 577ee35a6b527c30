"""The injection guard on texts made to keep it busy: the processor's time of each, the slowest first.

Every text is measured whole (a million characters: what a judge is shown, and what people read) and cut to the
50,000 characters that are looked through for attempts. Wanted: less than 50 ms for each, on a loaded machine too.

    python bench/guard.py
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])  # not this folder, which has a `statistics`

from proctor.judges.prompt_injection import has_injection, sanitize

SIZE = 1_000_000
EXAMINED = 50_000
PIECES = (
    "<", "<< ", "<<\n", "<<a", "\n", "/ ", "ANSWER ", "ANSWER>>>", "ANSWE ", "a ", "a", "dear.", "dear the ", "a\u200b",
    "\u200b", "\x01", "a\x01", "\ud800", "a\ud800", "é", "e\u0301", "评分", "评", "给", "给1.1", "评分应", "忽略", "你是", "注意",
    "ignore ", "give ", "give a b c ", "score ", "rule ", "approved by ", "approved by a b c ", "verdict ", "the answer should be ",
    "<|", "<|" + "a" * 50, "\nuser ", "ignoriera ", "ignora ", "ﷺ", "ⅷ", "ﬃ ", "각", "각a", "가", "\u00a0", " \u3000", "a_", "a a a a_ ",
    "1.", "system prompt ", "ignorepreviousinstruction ", "The needle is seen at the left, moving towards the vein. ",
)  # fmt: skip
ENDS = "\nrule\nmark\nignore\ngive\nregel\nanterior\n规则\n满分\n应1\n评委\n>> << x ANSWER"
"""What the first words of an attempt wait for, too far away to count."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="rounds to time; the best one counts")
    rounds = parser.parse_args().rounds
    milliseconds("é", 1)  # what is made once
    found = []
    for piece in PIECES:
        text = (piece * SIZE)[: SIZE - len(ENDS)] + ENDS
        part = text[: EXAMINED - len(ENDS)] + ENDS
        found.append((milliseconds(text, rounds), milliseconds(part, rounds), repr(piece)[:30]))
    print(f"{'1,000,000 characters':>20} {'50,000':>10}  repeated")
    for whole, examined, piece in sorted(found, key=lambda row: -max(row[:2])):
        print(f"{whole:17.1f} ms {examined:7.1f} ms  {piece}")


def milliseconds(text: str, rounds: int) -> float:
    """The processor's time for one text, the best of some rounds."""
    best = float("inf")
    for _ in range(rounds):
        started = time.process_time()
        has_injection(text)
        sanitize(text)
        best = min(best, time.process_time() - started)
    return 1000 * best


if __name__ == "__main__":
    main()
