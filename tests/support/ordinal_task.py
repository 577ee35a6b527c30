"""A task that a tiny judge can learn: an answer's grade follows from its letter, whatever the question; some are graded
twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from scipy.stats import spearmanr

from proctor.core import Dimension, generator
from proctor.judges.dimensions import Case, RatedCase
from proctor.models import Choices, FixedForm, Query, Weights
from proctor_train.fine_tuning import ChatExample, LoraSettings, fine_tune
from proctor_train.grpo import RatedPrompt, SampledReply, Target
from proctor_train.parity import ParityItem, local_scores, remembered, write_items
from proctor_train.run_folder import CheckpointEvaluation, RunFolder
from tests.support.tiny_vlm import make_tiny_lm

LEVELS = (0.0, 0.5, 1.0)
RANGES = {"fit": (0.0, 1.0)}
FORM = FixedForm(('{"fit": ', "}"), (("0", "1", "2"),))
_LETTERS = "abcdefghi"  # three of each grade
_QUESTIONS = [f"{first}{second}" for first in "PQRSTUVW" for second in "PQRSTUVW"]


def rated_prompts(count: int, *, answers: int = 2, seed: int = 0, shuffled: bool = False) -> list[RatedPrompt]:
    """Prompts about `answers` answers in each encounter. The letters at the border between two grades are graded by a
    second rater, too, who says the other grade; `shuffled` deals the grades out at random."""
    draw = generator(seed, "ordinal task")
    letters = [_LETTERS[int(at)] for at in draw.integers(len(_LETTERS), size=count)]
    graded = [letters[int(at)] for at in draw.permutation(count)] if shuffled else letters
    questions = [_QUESTIONS[int(at)] for at in draw.integers(len(_QUESTIONS), size=count)]
    return [
        RatedPrompt(
            Query("fit", (f"{questions[row // answers]}{letter}",), Choices(16), FORM),
            Target(f"{seed}/{row // answers}", {"fit": _ratings(grade)}),
        )
        for row, (letter, grade) in enumerate(zip(letters, graded, strict=True))
    ]


def _ratings(letter: str) -> tuple[float, ...]:
    at = _LETTERS.index(letter)
    return (LEVELS[at // 3], LEVELS[at // 3 + 1]) if at in {2, 5} else (LEVELS[at // 3],)


def examples(prompts: Sequence[RatedPrompt]) -> list[ChatExample]:
    """What supervised fine-tuning learns: the first rater's grade."""
    return [
        ChatExample(one.query, FORM.filled([str(LEVELS.index(one.target.ratings["fit"][0]))]), one.target.cluster)
        for one in prompts
    ]


def read(_: RatedPrompt, text: str) -> SampledReply:
    """What a sampled reply says."""
    level = next((at for at in range(len(LEVELS)) if text.strip() == FORM.filled([str(at)])), None)
    return SampledReply(None, False) if level is None else SampledReply({"fit": LEVELS[level]}, True)


def parity_items(prompts: Sequence[RatedPrompt]) -> list[ParityItem]:
    """The prompts as items of the parity gate."""
    return [ParityItem.of(f"i{row}", one.query, ("fit",), (LEVELS,)) for row, one in enumerate(prompts)]


def rated_cases(prompts: Sequence[RatedPrompt]) -> list[RatedCase]:
    """The same as rated answers; a judge whose prompt is `PROMPT` is asked the same about them."""
    found = []
    for row, one in enumerate(prompts):
        case = Case(
            id=f"{one.target.cluster}#{row}",
            encounter=one.target.cluster,
            dataset="ordinal",
            language="en",
            query=f"Question {one.target.cluster}",
            references=(),
            candidate=str(one.query.parts[0]),
            dimensions=(Dimension("fit", LEVELS),),
        )
        found.append(RatedCase(case, {"fit": one.target.centre("fit")}, one.target.ratings))
    return found


PROMPT = "{% block system %}{{ dimensions[0].name }}{% endblock %}{% block user %}{{ candidate }}{% endblock %}"


@dataclass(frozen=True)
class OrdinalJudge:
    """A tiny base that knows the form of a reply and nothing of grades, and an adapter that learned some."""

    base: Path
    adapter: Path
    prompts: tuple[RatedPrompt, ...]
    held_out: tuple[RatedPrompt, ...]


_COMMON = {"device": "cpu", "batch": 16, "evaluate_every": 10**6}


def make_ordinal_judge(folder: Path) -> OrdinalJudge:
    """Trains both; a few seconds."""
    untaught = examples(rated_prompts(64, seed=5, shuffled=True))
    make_tiny_lm(folder / "raw", std=0.1)
    with RunFolder.opened(folder / "pretrained", {"task": "ordinal"}) as run:
        settings = LoraSettings.model_validate({**_COMMON, "epochs": 80, "rank": 0, "learning_rate": 2e-2})
        base = fine_tune(folder / "raw", untaught, settings, run)
    return tune(folder, base, rated_prompts(64), rated_prompts(9, seed=1))


def tune(folder: Path, base: Path, prompts: Sequence[RatedPrompt], held_out: Sequence[RatedPrompt]) -> OrdinalJudge:
    """Fine-tunes the base, and keeps what the parity gate compares with."""
    with RunFolder.opened(folder / "tuned", {"task": "ordinal"}) as run:
        settings = LoraSettings.model_validate({**_COMMON, "epochs": 16, "learning_rate": 1e-2})
        adapter = fine_tune(base, examples(prompts), settings, run, evaluated(held_out))
    write_items(folder / "tuned", parity_items(held_out))
    return OrdinalJudge(base, adapter, tuple(prompts), tuple(held_out))


def evaluated(prompts: Sequence[RatedPrompt]) -> Callable[[Weights], CheckpointEvaluation]:
    """Evaluates by the correlation of scores and ratings, and keeps what the parity gate compares with."""

    def evaluate(weights: Weights) -> CheckpointEvaluation:
        items = parity_items(prompts)
        scores = local_scores("memory", weights, items).scores
        value = agreement([scores[one.id]["fit"] for one in items], prompts)
        return CheckpointEvaluation(value, beside=remembered(weights, items))

    return evaluate


def agreement(scores: Sequence[float], prompts: Sequence[RatedPrompt]) -> float:
    """Spearman's correlation of scores with the mean ratings."""
    return float(spearmanr(scores, [one.target.centre("fit") for one in prompts]).statistic)
