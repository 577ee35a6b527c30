"""The checks of judges: every fault that they are for is found, and every judge of ours passes them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

import proctor
from proctor import Answer, Item, Metric
from proctor.core import InfrastructureError, JudgementCache, Score
from proctor.judges import JUDGES, Ask, CachedModel, as_said
from proctor.judges.dimensions import Case, RatedCase, ReferenceAnswer
from proctor.models import ModelClient
from proctor.testing import Check, check_judge, judge_checks
from proctor.testing.judge_checks import SCHEME
from tests.support.kit import finds, passes
from tests.support.paths import ROOT

NEVER_CAME = {"refused", "timed_out", "error"}


class Verdict(BaseModel):
    """What the model says."""

    same: bool


class Careful:
    """A judge without faults."""

    metrics: Any = (Metric("same", "Same", formats=("free_text",)),)
    settings: Any = {}  # noqa: RUF012  (what is faulty is declared so)

    def __init__(self, client: ModelClient, judgements: JudgementCache) -> None:
        self.client, self.judgements = client, judgements
        self.name = f"careful[{client.name}]"

    def applies(self, item: Item) -> Any:
        return item.answer.kind == "free_text"

    async def score(self, item: Item, answer: Answer) -> Any:
        if answer.status in NEVER_CAME:
            return [self.given(item, 0.0)]
        verdict, judgement = await self.asked(item, answer)
        return [self.given(item, float(verdict.same), judgement.key)]

    async def asked(self, item: Item, answer: Answer) -> Any:
        model = CachedModel(self.name, self.client, self.judgements)
        return await model.ask_about(
            Verdict, lambda shown: f"Is it right?\n{shown}", item_id=item.id, answer=answer.wording
        )

    def given(self, item: Item, value: float, key: str = "") -> Score:
        return Score(item_id=item.id, metric="same", value=value, scorer=self.name, judgement_key=key)


class OneName(Careful):
    def __init__(self, client: ModelClient, judgements: JudgementCache) -> None:
        super().__init__(client, judgements)
        self.name = "careful"


class PathOfPrompt(Careful):
    settings = {"prompt": Path("judge.txt.j2")}  # noqa: RUF012


class Undeclared(Careful):
    metrics = ()


class Backwards(Careful):
    metrics = (Metric("same", "Same", low=1, high=0),)


class AppliesPerhaps(Careful):
    def applies(self, item: Item) -> Any:
        return item.reference


class ByCode(Careful):
    def given(self, item: Item, value: float, key: str = "") -> Score:
        return Score(item_id=item.id, metric="same", value=value)


class OutOfRange(Careful):
    def given(self, item: Item, value: float, key: str = "") -> Score:
        return super().given(item, 5 * value, key)


class KeyOfNothing(Careful):
    def given(self, item: Item, value: float, key: str = "") -> Score:
        return super().given(item, value, "0" * 64)


class AsksAboutNothing(Careful):
    async def score(self, item: Item, answer: Answer) -> Any:
        verdict, judgement = await self.asked(item, answer)
        return [self.given(item, float(verdict.same), judgement.key)]


class PaysTwice(Careful):
    async def asked(self, item: Item, answer: Answer) -> Any:
        await self.client.ask(["Are you there?"])
        return await super().asked(item, answer)


class PaysAtOnce(Careful):
    """It looks whether it was asked before, but two may look at the same time."""

    async def asked(self, item: Item, answer: Answer) -> Any:
        if self.judgements.get("k") is None:
            await self.client.ask(["Are you there?"])
        return await super().asked(item, answer)


class ForgetsTheModel(Careful):
    async def asked(self, item: Item, answer: Answer) -> Any:
        kept = KEPT.get(answer.wording)
        if kept is None:
            kept = KEPT[answer.wording] = await super().asked(item, answer)
            return kept
        self.judgements.put(kept[1])
        return kept


KEPT: dict[str, Any] = {}


class WithoutFences(Careful):
    async def asked(self, item: Item, answer: Answer) -> Any:
        model = CachedModel(self.name, self.client, self.judgements)
        content = {"answer": answer.wording}
        return await model.ask(
            as_said(Verdict), [f"Is it right? {answer.wording}"], content={**content}, item_id=item.id
        )


class ZeroWithoutVerdict(Careful):
    async def score(self, item: Item, answer: Answer) -> Any:
        try:
            return await super().score(item, answer)
        except InfrastructureError:
            return [self.given(item, 0.0)]


FAULTS: list[tuple[Any, str, str]] = [
    (OneName, "name_says_judge_and_model", "found 'careful' for two models, expected the model in it: careful[MODEL]"),
    (PathOfPrompt, "settings_are_json", "settings['prompt'] is PosixPath"),
    (Undeclared, "metrics_are_declared", "`metrics`: found none, expected those of its scores"),
    (Backwards, "metrics_are_declared", "found low=1 and high=0, expected low < high"),
    (AppliesPerhaps, "applies_says_yes_or_no", "`applies` returned Reference, expected True or False"),
    (ByCode, "scores_are_of_its_metrics", "found a score by 'code', expected one by 'careful[scripted:model]'"),
    (OutOfRange, "scores_are_of_its_metrics", "found same 5, expected 0 to 1"),
    (KeyOfNothing, "scores_are_of_its_metrics", "found a key of no stored judgement"),
    (AsksAboutNothing, "answers_that_never_came_get_the_worst", "refused: found same 1, expected 0"),
    (AsksAboutNothing, "answers_that_never_came_get_the_worst", "about answers that never came, expected none"),
    (PaysTwice, "no_call_is_repeated", "found 1 calls for content that was judged, expected none: keep each reply"),
    (
        PaysAtOnce,
        "the_same_is_asked_once_at_a_time",
        "found 4 calls for three equal answers at the same time, expected 2",
    ),
    (ForgetsTheModel, "the_model_belongs_to_the_key", "found the judgement of another model, expected a call"),
    (WithoutFences, "answers_stand_between_fences", "expected <<<ANSWER: an answer stands between fences"),
    (
        WithoutFences,
        "hostile_answers_are_flagged",
        "found no flag, expected 'prompt-injection' in the flags of its judgement",
    ),
    (
        WithoutFences,
        "hostile_answers_are_flagged",
        "found [1] ends of fences in its prompts, expected [0]: sanitize it",
    ),
    (
        ZeroWithoutVerdict,
        "no_verdict_is_no_score",
        "reply 'declined': found the scores same 0, expected a NoVerdictError",
    ),
    (ZeroWithoutVerdict, "infrastructure_errors_pass", "found the scores same 0, expected the InfrastructureError"),
]


def named(judge: Any, name: str) -> Check:
    (check,) = [check for check in judge_checks(judge) if check.name == name]
    return check


@pytest.mark.parametrize(("judge", "name", "told"), FAULTS, ids=lambda one: getattr(one, "__name__", None))
def test_a_fault_is_found_by_its_check(judge: Any, name: str, told: str) -> None:
    KEPT.clear()
    finds(named(judge, name), told)


def test_a_judge_that_follows_an_injection_is_found() -> None:
    """One that lets the answer decide, where its model says the same of every answer."""

    class Steered(Careful):
        async def score(self, item: Item, answer: Answer) -> Any:
            scores = await super().score(item, answer)
            return [self.given(item, 0.0 if "full marks" in answer.wording else score.value) for score in scores]

    finds(named(Steered, "hostile_answers_are_flagged"), "found {('same', 'careful[scripted:model]'): 0.0}")


@proctor.judge(percent=True)
async def same(reference: str, answer: str, ask: Ask) -> bool:
    """Whether an answer says the same as the reference."""
    return (await ask(f"Do these say the same?\n{reference}\n{answer}", Verdict)).same


@pytest.mark.parametrize("judge", [Careful, same], ids=["class", "function"])
def test_a_judge_without_faults_passes_all(judge: Any) -> None:
    report = check_judge(judge)
    assert list(report.skipped.values()) == ["it is no function with a prompt file"]
    assert len(report.passed) == len(judge_checks(judge)) - 1


def test_a_function_must_ask_with_its_prompt(tmp_path: Path) -> None:
    template = tmp_path / "same.txt.j2"
    template.write_text("Do these say the same? {{ reference }} {{ answer }}", encoding="utf-8")

    @proctor.judge(prompt=template, name="faithful")
    async def faithful(prompt: str, ask: Ask) -> bool:
        return (await ask(prompt, Verdict)).same

    @proctor.judge(prompt=template, name="own_words")
    async def own_words(prompt: str, answer: str, ask: Ask) -> bool:
        return (await ask(f"Is it right? {answer}", Verdict)).same

    assert check_judge(faithful).skipped == {}
    finds(named(own_words, "it_asks_with_its_prompt"), "found no text of another prompt in 1 requests")


def rated(number: int) -> RatedCase:
    case = Case(
        id=f"case-{number}",
        encounter=f"encounter-{number}",
        dataset="",
        language="en",
        query=f"What is seen in case {number}?",
        references=(ReferenceAnswer(text="The probe."),),
        candidate=f"The probe number {number}.",
        dimensions=SCHEME.of("en"),
        scheme=SCHEME,
    )
    return RatedCase(case, {"overall": 0.5, "safety": 1.0})


OURS: Mapping[str, Mapping[str, Any]] = {
    "agent-judge": {},
    "criteria": {},
    "few-shot-judge": {"rated": [rated(number) for number in range(8)]},
    "local-pipeline": {},
    "mediqa-judge": {},
    "model-ensemble": {},
    "panel": {"expected_failures": {"scores_are_of_its_metrics": "it also stores the votes of its judges"}},
    "persona-ensemble": {},
    "rating-judge": {},
    "rationale": {},
    "rubric-judge": {},
    "temperature-ensemble": {},
    "three-level": {},
}

NOT_MADE_HERE = {
    "classifier-judge": "it needs trained weights: packages/proctor-train/tests/tasks/mediqa_eval/test_classifier.py",
    "embedded": "it needs a trained folder: packages/proctor-train/tests/tasks/mediqa_eval/test_embedded_judge.py",
    "evidence-judge": "it needs an index of documents: packages/proctor/tests/judges/test_dimension_evidence.py",
    "generative-judge": "it needs trained weights: packages/proctor/tests/judges/test_dimension_logprobs.py",
    "logprob-judge": "it needs a server that gives probabilities of tokens: packages/proctor/tests/judges/test_dimension_logprobs.py",
    "per-dimension": "it needs a fitted choice: packages/proctor-train/tests/judges/test_dimension_per_dimension.py",
    "retrieval-judge": "it needs an index of documents: packages/proctor/tests/judges/test_dimension_retrieval.py",
}
"""The judges that a scripted model can't stand for, and where they are tested."""


def test_every_judge_is_checked_or_has_a_reason() -> None:
    assert sorted(OURS.keys() | NOT_MADE_HERE.keys()) == JUDGES.names()
    for reason in NOT_MADE_HERE.values():
        assert (ROOT / reason.rpartition(" ")[2]).is_file(), reason


@pytest.mark.parametrize(
    "check", [check for name, given in OURS.items() for check in judge_checks(name, **given)], ids=str
)
def test_ours_pass(check: Check) -> None:
    passes(check, "it is no function with a prompt file", "expected to fail: it also stores the votes of its judges")
