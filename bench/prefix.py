"""What local weights spare by keeping what they computed of a video's pictures for its next questions.

    python bench/prefix.py --questions 40 --pictures 8

The LLaVA of `bench/answerer.py` (random weights, 36 tokens a picture) is asked questions about one video, one after the
other, by the prompt that `proctor run` takes: once with everything computed again, once with the beginning kept. The
processor's seconds a question, everything included: pictures decoded, resized and encoded, the prompt read, the words
said. The replies have to be the same; if they are not, it ends with the code 1.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])  # not this folder, which has a `statistics`
os.environ.setdefault("HF_HUB_OFFLINE", "1")

from bench.answerer import Pictures, new_model
from proctor.models import Choices, Query, Weights
from proctor.systems import prompt_for_benchmark


@dataclass(frozen=True)
class Spent:
    """The processor's seconds of the first question and of a later one (mean), and tokens of all that were kept."""

    way: str
    first_s: float
    later_s: float
    tokens: int
    kept_tokens: int


def main() -> None:
    """Measures both ways and prints them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--questions", type=int, default=40)
    parser.add_argument("--pictures", type=int, default=8, help=f"of the video, at most {Pictures.MOMENTS}")
    parser.add_argument("--words", type=int, default=8, help="tokens of each reply")
    parser.add_argument("--rounds", type=int, default=3, help="the best one counts")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    options = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model, processor = new_model()
    queries = asked(options.questions, options.pictures, options.words)
    found: dict[str, list[tuple[Spent, list[str]]]] = {"again": [], "kept": []}
    for _ in range(options.rounds):
        for way, kept in (("again", 0.0), ("kept", 1e9)):
            weights = Weights.around("tiny", model.eval(), processor)
            if kept:
                weights.reuse_prefixes(kept)
            found[way].append(measured(way, weights, queries))
    rows = [min((one for one, _ in some), key=lambda one: one.later_s) for some in found.values()]
    if len({tuple(said) for some in found.values() for _, said in some}) > 1:
        sys.exit("the replies differ")
    if options.format == "json":
        print(json.dumps([asdict(one) for one in rows]))
        return
    print(
        f"{options.questions} questions, {options.pictures} pictures, {rows[0].tokens} tokens a question; same replies"
    )
    for one in rows:
        print(
            f"  {one.way}: {one.first_s * 1000:6.1f} ms for the first question, {one.later_s * 1000:6.1f} ms for each "
            f"of the others ({one.kept_tokens} tokens kept)"
        )
    print(f"  a later question takes {rows[1].later_s / rows[0].later_s:.0%} of the time")


def asked(questions: int, pictures: int, words: int) -> list[Query]:
    """Questions about one simulated procedure, each with all of its pictures."""
    shown = Pictures(1, 0)
    parts = [
        part
        for time_s, jpeg in zip(shown.times[0, :pictures], shown.jpegs[0], strict=False)
        for part in (f"t = {time_s:.1f} s", jpeg)
    ]
    prompt = prompt_for_benchmark("simulated")
    made = []
    for number in range(questions):
        system, user = prompt.render(
            question=f"Does a thin curved needle come into view after second {number}?",
            options=[("A", "yes"), ("B", "no")],
            instruction='Start your reply with "Answer: A" or "Answer: B".',
            pictures=pictures,
            timed=True,
            video=False,
            blind=False,
            sounds=0,
            definitions=[],
        )
        made.append(Query(system, (*parts, user), Choices(words)))
    return made


def measured(way: str, weights: Weights, queries: list[Query]) -> tuple[Spent, list[str]]:
    """The questions one after the other."""
    seconds, said, kept, tokens = [], [], 0, 0
    for query in queries:
        started = time.process_time()
        (reply,) = weights.generate([query], lambda: False)
        seconds.append(time.process_time() - started)
        said.append(reply.text)
        kept, tokens = reply.cached_tokens, reply.input_tokens
    return Spent(way, seconds[0], sum(seconds[1:]) / max(1, len(seconds) - 1), tokens, kept), said


if __name__ == "__main__":
    main()
