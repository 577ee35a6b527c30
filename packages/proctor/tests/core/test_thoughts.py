"""Where thoughts are: the marks of each family, closed, cut off, nested and quoted, and all that read replies."""

from __future__ import annotations

import pytest
from pydantic import BaseModel
from pydantic_ai.messages import ModelResponse, TextPart

from proctor.core import Answer, ParseError
from proctor.core.formats import ChoiceFormat, FreeTextFormat, has_thoughts, is_cut_thought, without_thoughts
from proctor.models.reply import read_value

T = "The outline suggests option B at first. Answer: B is tempting."
HARMONY = f"<|channel|>analysis<|message|>{T}<|end|><|start|>assistant"

CLOSED = [
    f"<think>{T}</think>A",
    f"{T}</think>A",
    f"<THINKING type='deep'>{T}</thinking>A",
    f"<think>{T}</thinking>A",
    f"<Thought>{T}</Thought>A",
    f"<seed:think>{T}</seed:think>A",
    f"<seed:think>So<seed:cot_budget_reflect>100 left</seed:cot_budget_reflect>{T}</seed:think>A",
    f"<mm:think>{T}</mm:think>A",
    f"&lt;think&gt;{T}&lt;/think&gt;A",
    f"<reasoning>{T}</reasoning><CONCLUSION>A</CONCLUSION>",
    f"<scratchpad>{T}</scratchpad>A",
    f'<details type="reasoning" done="true"><summary>Thought</summary>{T}</details>A',
    f"<|begin_of_thought|>{T}<|end_of_thought|><|begin_of_solution|>A<|end_of_solution|>",
    f"<|START_THINKING|>{T}<|END_THINKING|><|START_RESPONSE|>A<|END_RESPONSE|>",
    f"<unused94>thought\n{T}<unused95>A",
    f"<|channel>thought\n{T}<channel|>A",
    "<|channel>thought\n<channel|>A",
    f"{HARMONY}<|channel|>final<|message|>A<|return|>",
    f"{HARMONY}<|channel|>final <|constrain|>text<|message|>A",
    f"{HARMONY}<|channel|>commentary<|message|>{T}<|end|><|start|>assistant<|channel|>final<|message|>A",
    f"{T}<|end|><|start|>assistant<|channel|>final<|message|>A",
    f"analysis{T}assistantfinalA",
    f"{T}assistantfinalA",
    f"analysis{T}assistant final A",
    f"analysis {T} assistantfinal A",
    f"analysis{T}assistantcommentary to=functions.look json{{}}assistantfinalA",
    f"[THINK]{T}[/THINK]A",
    f"◁think▷{T}◁/think▷A",
    f"Here is my thought process: {T}\n\nHere is my response: A",
    f"Here's my thought process:\n{T}\n\nAnswer: A",
    f"<think>\n\n</think>\n\n{T}</think>A",
    f"<think>{T}</think><think>{T}</think>A",
    f"<think>So<reflection>No</reflection>{T}</think>A",
    f"<think>{T}</think>A</think>",
    f"<think>{T}</think><response>A</response>",
    "<think/>A",
]
CUT = [
    f"<think>{T}",
    f"<seed:think>{T}",
    f"<unused94>thought\n{T}",
    f"<|channel>thought\n{T}",
    f"<|channel|>analysis<|message|>{T}",
    "<|channel|>analysis",
    f"{HARMONY}<|channel|>final",
    f"analysis{T}",
    f"[THINK]{T}",
    f"◁think▷{T}",
    f"<|begin_of_thought|>{T}",
    f"Here is my thought process: {T}",
    f"<think>So<reflection>No</reflection>{T}",
]
QUOTED = [
    "Answer: A. I wrote `</think>` at the end.",
    "I use the <think> tags as told. Answer: A",
    'Answer: A\nNote: "<think>" is not used.',
    "Analysis: the probe slides. Answer: A",
    "analysis\nThe probe slides.\nAnswer: A",
    "The assistant finally moved. Answer: A",
    '{"answer": "A", "note": "</think>"}',
]


@pytest.mark.parametrize("reply", CLOSED)
def test_the_answer_is_what_follows_the_thought(reply: str) -> None:
    assert ChoiceFormat().parse(reply, ["liver", "spleen"]) == "A"
    assert has_thoughts(reply) or reply == "<think/>A"
    assert not is_cut_thought(reply)
    assert without_thoughts(reply) in {"A", "Answer: A"}


@pytest.mark.parametrize("reply", CUT)
def test_a_thought_that_was_cut_off_is_no_answer(reply: str) -> None:
    assert without_thoughts(reply) == ""
    assert is_cut_thought(reply)
    with pytest.raises(ParseError):
        ChoiceFormat().parse(reply, ["liver", "spleen"])


@pytest.mark.parametrize("reply", QUOTED)
def test_a_mark_that_is_spoken_of_is_text(reply: str) -> None:
    assert without_thoughts(reply) == reply
    assert ChoiceFormat().parse(reply, ["liver", "spleen"]) == "A"


def test_a_free_response_is_judged_without_its_thought() -> None:
    reply = f"<unused94>thought\n{T}<unused95>The left kidney."
    assert FreeTextFormat().parse(reply) == "The left kidney."
    assert Answer(item_id="q", text=reply, parsed="The left kidney.").wording == "The left kidney."
    assert Answer(item_id="q", text=reply).wording == "The left kidney."


class _Verdict(BaseModel):
    score: int


def test_a_judge_s_reply_is_read_after_its_thought() -> None:
    reply = f'analysis{{"score": 0}}? {T}assistantfinal{{"score": 2}}'
    assert read_value(ModelResponse(parts=[TextPart(reply)]), _Verdict).score == 2
