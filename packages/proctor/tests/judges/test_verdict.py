"""The verdict's numbers, case by case: every score with every error type."""

import pytest
from pydantic import ValidationError

from proctor.core import Metric
from proctor.judges import CONTRADICTION, RUBRIC_BY_ERROR_TYPE, VERDICT_METRICS, ErrorType, Verdict, verdict_scores
from proctor.judges.verdict_metrics import RUBRIC

# (score, error type) -> rubric, its label, rubric by error type, its label, contradiction
LEDGER = {
    (2, "none"): (2, "2", 2, "2", 0),
    (2, "wrong_conclusion"): (2, "2", 1, "1 wrong conclusion", 1),
    (2, "wrong_visual_evidence"): (2, "2", 1, "1 wrong visual evidence", 1),
    (2, "both"): (2, "2", 0, "0", 1),
    (1, "none"): (1, "1", 2, "2", 1),
    (1, "wrong_conclusion"): (1, "1 wrong conclusion", 1, "1 wrong conclusion", 0),
    (1, "wrong_visual_evidence"): (1, "1 wrong visual evidence", 1, "1 wrong visual evidence", 0),
    (1, "both"): (1, "1", 0, "0", 1),
    (0, "none"): (0, "0", 2, "2", 1),
    (0, "wrong_conclusion"): (0, "0", 1, "1 wrong conclusion", 1),
    (0, "wrong_visual_evidence"): (0, "0", 1, "1 wrong visual evidence", 1),
    (0, "both"): (0, "0", 0, "0", 0),
}


@pytest.mark.parametrize(("said", "expected"), LEDGER.items())
def test_every_verdict_gives_both_readings(
    said: tuple[int, str], expected: tuple[float, str, float, str, float]
) -> None:
    by_metric = {score.metric: score for score in verdict_scores(*said, item_id="q", scorer="j", judgement_key="k")}
    rubric, by_type, contradiction = (by_metric[metric.name] for metric in VERDICT_METRICS)
    assert (rubric.value, rubric.label, by_type.value, by_type.label, contradiction.value) == expected
    assert {(score.item_id, score.scorer, score.judgement_key) for score in by_metric.values()} == {("q", "j", "k")}


def test_the_published_spelling_of_both_is_read() -> None:
    assert verdict_scores(0, "both_fail", item_id="q", scorer="j") == verdict_scores(
        0, ErrorType.BOTH, item_id="q", scorer="j"
    )


@pytest.mark.parametrize(
    "reply",
    [
        {"score": 3, "error_type": "none", "explanation": ""},
        {"score": -1, "error_type": "both", "explanation": ""},
        {"score": "2", "error_type": "none", "explanation": ""},
        {"score": 1.0, "error_type": "wrong_conclusion", "explanation": ""},
        {"score": True, "error_type": "wrong_conclusion", "explanation": ""},
        {"score": 2, "error_type": "fine", "explanation": ""},
        {"score": 2, "error_type": None, "explanation": ""},
        {"score": 2, "error_type": "none"},
        {"score": 2, "error_type": "none", "explanation": "", "confidence": 1},
    ],
)
def test_what_is_not_a_verdict_is_refused(reply: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Verdict.model_validate(reply)


@pytest.mark.parametrize(
    ("metric", "low", "high", "better"),
    [(RUBRIC, 0, 2, True), (RUBRIC_BY_ERROR_TYPE, 0, 2, True), (CONTRADICTION, 0, 1, False)],
)
def test_metrics_say_their_range_and_direction(metric: Metric, low: float, high: float, better: bool) -> None:
    assert (metric.low, metric.high, metric.higher_is_better) == (low, high, better)
