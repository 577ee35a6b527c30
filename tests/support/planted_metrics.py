"""EncodedFrame-up ratings with metrics whose faults are known, to see whether an audit tells them."""

from __future__ import annotations

import numpy as np

from proctor.audits import MetricScores, Rating, RatingsTable

DIMENSIONS = {"en": ("flag", "overall"), "zh": ("overall",)}


def planted(seed: int = 0, encounters: int = 60) -> tuple[RatingsTable, dict[str, MetricScores]]:
    """Two datasets, two languages, three systems, one rater; an encounter's answers share half of their quality.

    The metrics: "fair" follows the rating with noise, "long" adds 0.4 standard deviations a doubling of the
    length, "friend" adds 0.8 to what s2 answers, "english" 0.7 to English, "flat" is constant. On "flag" a
    rating is 1 where the quality is low, and all metrics are turned.
    """
    rng = np.random.default_rng(seed)
    ratings: list[Rating] = []
    scores: dict[str, dict[tuple[str, str, str], float | None]] = {
        name: {} for name in ("fair", "long", "friend", "english", "flat")
    }
    for number in range(encounters):
        dataset = "one" if number % 2 else "two"
        shared = rng.normal()
        for language, dimensions in DIMENSIONS.items():
            for system in ("s1", "s2", "s3"):
                quality = 0.5 * shared + rng.normal()
                length = int(rng.integers(1, 64))
                text = " ".join(["word"] * length) if language == "en" else "字" * length
                item = f"{dataset}/{number}/{language}"
                for dimension in dimensions:
                    turn = -1 if dimension == "flag" else 1
                    level = float(quality < -0.5) if turn < 0 else float(np.digitize(quality, (-0.5, 0.5))) / 2
                    where = {"group": f"{dataset}/{number}", "dataset": dataset, "language": language}
                    ratings.append(Rating(item, text, system, dimension, "r", level, **where))
                    key = item, system, dimension
                    # Noise beside the rating alone: what the level doesn't say of quality must not leak in.
                    fair = turn * (level - 0.5) * 2 + rng.normal()
                    long = fair + 0.4 * np.sqrt(1.5) * float(np.log2(1 + length))
                    added = {
                        "fair": fair,
                        "long": long,
                        "friend": fair + 0.8 * (system == "s2"),
                        "english": fair + 0.7 * (language == "en"),
                        "flat": 1.0,
                    }
                    for name, value in added.items():
                        scores[name][key] = turn * value if name != "flat" else value
    table = RatingsTable(tuple(ratings), lower_is_better=frozenset({"flag"}))
    return table, {name: MetricScores(name, one) for name, one in scores.items()}
