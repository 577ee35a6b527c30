"""A team that attacks the boards of a real challenge: files of random answers, scored as a worker scores them, then what can be
made of the rounded figures that a team is shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import lsq_linear

from proctor.core import Item
from proctor_challenge.board_pages import shown_figures
from proctor_challenge.boards import HiddenQuestions, given_away
from proctor_challenge.challenge import SealedPart
from proctor_challenge.folder import NewChallenge, new_challenge
from proctor_challenge.scoring import Entrant, board_maker, score_entrant
from proctor_challenge.settings import read_challenge
from tests.support.challenge_data import focus_data

PHASE = "pre-evaluation"
GROUPS = {"focus": 7, "own-questions": 12}
SETTINGS = "ranking: {draws: 100, stability: 0}\n"

Floats = NDArray[np.float64]
How = Literal["least squares", "least squares in bounds", "blocks"]


class Attack:
    """A team that submits answers, and at last what it makes of its figures. `how`: random answers and the solution of least
    norm; the same with each unknown between 0 and 1; or, one after the other, blocks of questions in which the answer is
    another one than in the first file."""

    def __init__(self, folder: Path, benchmark: str, data: Path, rule: str, seed: int) -> None:
        new_challenge(folder, NewChallenge(benchmark, data, pre_evaluation=GROUPS[benchmark]))
        file = folder / "challenge.yaml"
        text = file.read_text()
        assert text.count("  condition: ") == 1
        text = text.replace("  condition: ", f"  results: {{rule: {rule}}}\n  condition: ")
        file.write_text(text + SETTINGS)
        self.sealed = SealedPart(folder, read_challenge(folder, sealed=True))
        self.phase = self.sealed.settings.phase(PHASE)
        self.items = list(self.sealed.benchmark(PHASE).items)
        self.folder, self.benchmark = folder, benchmark
        self.rng = np.random.default_rng(seed)
        self.best = ""
        self.given: list[list[int]] = []
        self.told: list[list[float]] = []

    @property
    def options(self) -> NDArray[np.int64]:
        """The number of answers to each question."""
        return np.array([len(values_of(item)) for item in self.items])

    def submit(self, given: list[int]) -> list[float]:
        """The means on all boards, unrounded; remembered as they are shown, unless the ladder holds them back."""
        number = len(self.given) + 1
        file = self.folder / f"attack.{'json' if self.benchmark == 'focus' else 'csv'}"
        texts = [item.answer.write(values_of(item)[one]) for item, one in zip(self.items, given, strict=True)]
        if self.benchmark == "focus":
            rows = [
                {"qID": item.id, "content": text, "latency": 1.0} for item, text in zip(self.items, texts, strict=True)
            ]
            file.write_text(json.dumps(rows))
        else:
            lines = [f"{item.id},{text}" for item, text in zip(self.items, texts, strict=True)]
            file.write_text("\n".join(["id,answer", *lines]) + "\n")
        figures = score_entrant(self.sealed, PHASE, Entrant(f"A#{number}", file, file.suffix, self.best))
        seen = shown_figures(figures, self.phase)
        if seen is not None:
            self.best = f"A#{number}"
            self.given.append(given)
            self.told.append([board["mean"] for board in seen["boards"]])
        else:
            self.given.append([])
        self.figures = figures
        return [float(board.mean or 0.0) for board in figures.boards]

    def random(self) -> list[int]:
        """Random answers."""
        return [int(one) for one in self.rng.integers(0, self.options)]

    def weights(self) -> Floats:
        """The weights of the questions in each board, as an attacker knows them: FOCUS's boards are public."""
        n = len(self.items)
        if self.benchmark != "focus":
            return np.full((1, n), 1 / n)
        cells = [(item.tags["capability"], item.tags["distribution"]) for item in self.items]
        rows = []
        for asked in ([True] * n, [item.tags["clinical"] is True for item in self.items]):
            sizes = {cell: sum(a and c == cell for a, c in zip(asked, cells, strict=True)) for cell in cells}
            filled = sum(1 for size in sizes.values() if size)
            rows.append([a / (filled * sizes[c]) if a else 0.0 for a, c in zip(asked, cells, strict=True)])
        return np.array(rows)

    def blocks(self, results: int) -> list[list[int]]:
        """Files that differ from the first in one block of questions each."""
        first, parts = self.random(), np.array_split(np.arange(len(self.items)), max(1, results - 2))
        files = [first]
        for part in parts:
            other = list(first)
            for row in part.tolist():
                other[row] = (first[row] + 1) % int(self.options[row])
            files.append(other)
        return files[: results - 1]

    def guess(self, *, within: bool = False) -> list[int]:
        """The answers with the highest value in the least-squares solution, or in that `within` 0 and 1."""
        options, weights = self.options, self.weights()
        most, n = int(options.max()), len(options)
        shown = [np.array(given) for given in self.given if given]
        rows, right = [], []
        for given, told in zip(shown, self.told, strict=True):
            there = np.arange(most) < options[:, None]
            hot = np.where(there, (np.arange(most) == given[:, None]) - 1 / options[:, None], 0.0)
            for row, mean in zip(weights, told, strict=True):
                rows.append((hot * row[:, None]).ravel())
                right.append(mean - float(row @ (1 / options)))
        if within:
            low = np.where(np.arange(most) < options[:, None], -1 / options[:, None], -1e-9).ravel()
            solved = lsq_linear(np.array(rows), np.array(right), (low, low + 1 + 1e-9), max_iter=200)
            found = solved.x.reshape(n, most)
        else:
            found = np.linalg.lstsq(np.array(rows), np.array(right), rcond=1e-9)[0].reshape(n, most)
        found[np.arange(most) >= options[:, None]] = -np.inf
        return [int(one) for one in (found + self.rng.uniform(0, 1e-9, found.shape)).argmax(axis=1)]

    def run(self, results: int, how: How = "least squares") -> tuple[list[float], dict[str, Any]]:
        """What the last of so many results has above chance on each board, and what the page says was given away."""
        files = self.blocks(results) if how == "blocks" else [self.random() for _ in range(results - 1)]
        for given in files:
            self.submit(given)
        while len(self.given) < results - 1:
            self.submit(self.random())
        means = self.submit(self.guess(within=how == "least squares in bounds"))
        chance = self.weights() @ (1 / self.options)
        with self.sealed.store(PHASE) as store:
            hidden = board_maker(self.sealed, store, PHASE).hidden(f"A#{results}")
        assert isinstance(hidden, HiddenQuestions)
        told = given_away(self.phase, [self.figures], {"one team": results}, hidden)
        return [mean - float(one) for mean, one in zip(means, chance, strict=True)], told["rows"][0]


def values_of(item: Item) -> list[Any]:
    """The answers to a question."""
    return [chr(65 + n) for n in range(len(item.options))] if item.options else [True, False]


def attack_data(benchmark: str, folder: Path) -> Path:
    """The questions of one of the two benchmarks that are attacked."""
    return focus_data(folder, videos=GROUPS["focus"], questions=19) if benchmark == "focus" else four_options(folder)


def four_options(folder: Path, questions: int = 11) -> Path:
    """A table of questions with four options."""
    rng = np.random.default_rng([4, 33])  # no stream of an attack's seed
    rows = ["id,group,question,options,answer"]
    for number in range(GROUPS["own-questions"] * questions):
        texts = [f"lamp {number} {letter}" for letter in "wxyz"]
        rows.append(
            f"q{number:03d},p{number % GROUPS['own-questions']},Which is {number}?,{';'.join(texts)},{texts[rng.integers(4)]}"
        )
    folder.mkdir(parents=True)
    (folder / "questions.csv").write_text("\n".join(rows) + "\n")
    return folder / "questions.csv"
