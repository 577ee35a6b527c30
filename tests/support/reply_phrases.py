"""Phrases and scores around the answers of drawn replies, as models write them."""

from __future__ import annotations

THOUGHTS = (
    "<think>{}</think>",
    "<think>\n{}\n</think>\n\n",
    "{}</think>",
    "{}\n</think>\n\n",
    "<THINK>{}</THINK>",
    "<thinking>{}</thinking>\n",
    "<thought>{}</thought>",
    '<think effort="high">{}</think>',
    "<seed:think>{}</seed:think>",
    "<reasoning>{}</reasoning>\n",
    "<scratchpad>\n{}\n</scratchpad>\n",
    "<|begin_of_thought|>{}<|end_of_thought|>\n",
    "<unused94>thought\n{}<unused95>",
    "<|channel>thought\n{}<channel|>",
    "<|channel|>analysis<|message|>{}<|end|><|start|>assistant<|channel|>final<|message|>",
    "<|channel|>analysis<|message|>{}<|end|><|start|>assistant<|channel|>final <|constrain|>text<|message|>",
    "analysis{}assistantfinal",
    "[THINK]{}[/THINK]",
    "◁think▷{}◁/think▷",
    "Here is my thought process: {}\n\nHere is my response: ",
    "<think>{}</think><think>Once more.</think>",
)
CUT = (
    "<think>{}",
    "<unused94>thought\n{}",
    "<|channel|>analysis<|message|>{}",
    "analysis{}",
    "[THINK]{}",
    "<seed:think>{}",
)
DECLARED = (
    "Answer: {}", "Answer: {}", "Answer: {}", "answer: {}", "ANSWER: {}", "**Answer: {}**", "**Answer:** {}", "Final answer: {}",
    "**Final Answer:** {}", "The answer is {}.", "The correct answer is {}.", "My answer is {}.", "So the answer is {}.",
    "Therefore, the final answer is {}.", "Answer:\n{}", "### Answer\n{}", "Answer: `{}`", "答案：{}", "答案是{}。", "最终答案：{}",
    "正确答案是{}。", "Antwort: {}", "Réponse : {}", "Respuesta: {}", "答え：{}", "My best guess is {}.", "Final answer - {}",
)  # fmt: skip
MARKED = (
    "{}", "{}", "{}.", "**{}**", "`{}`", "<answer>{}</answer>", "<answer>\n{}\n</answer>", "\\boxed{{{}}}", "$\\boxed{{{}}}$",
    "The final answer is $\\boxed{{{}}}$.", "```\n{}\n```", "{}<|im_end|>", "{}</s>",
)  # fmt: skip
KEYED = (
    '{{"answer": {}}}',
    '```json\n{{"answer": {}}}\n```',
    '{{"reasoning": "It is seen.", "answer": {}}}',
    'Sure:\n{{"answer": {}}}',
)
BEFORE = (
    "The view changes as the hand moves. ", "Let me look at the clip step by step.\n\n", "The tissue is held and then released.\n\n",
    "Sure! Here is my answer:\n\n", "Looking at the frames, the tip stays in the middle.\n", "根据视频内容，器械在移动。\n",
    "### Reasoning\nThe instrument is moved slowly.\n\n", "I can't see the whole procedure, but I'll try.\n\n",
)  # fmt: skip
AFTER = (
    "\n\nExplanation: the instrument is moved slowly.", "\n\nThe view stays the same until the end.", "\nConfidence: high",
    "\n\nLet me know if you need anything else!", "\n\n**Reasoning:** The tip is in the middle of the view.", "\n\n解释：器械在移动。",
)  # fmt: skip
ARGUES: dict[str, tuple[str, ...]] = {  # what models say beside an answer, with other values of its kind
    "choice": (
        "Option {o} is wrong because nothing slides.", "{o} would need another instrument.", "Options {o} and {p} can be ruled out.",
        "Why not {o}? The view stays the same.", "- {o}: not seen\n- {p}: not seen", "While {o} looks similar, it does not fit.",
        "{o} is incorrect, and so is {p}.", "Some would choose {o}, but the tip is not there.",
    ),
    "ordering": (
        "In {o} the pads are on the chest, in {p} the shock is given.", "{o} cannot be before {p}, since the chest is still covered.",
        "A rescuer kneels in {o}.", "Picture {o} shows compressions. Picture {p} shows the mask.", "I was unsure about {o} and {p}.",
    ),
    "count": ("The second one is placed at 0:12.", "One of them is hidden behind the liver.", "The clip lasts 42 seconds.", "In frame 3 the tip is seen."),
    "percentage": ("It leaves the view at 0:12 of 0:40.", "In the rest of the video only the liver is seen.", "I looked at 8 frames."),
    "time": ("The clip begins at 00:00:00.", "The duct is cut later, at 00:40:00.", "The whole video takes 25 minutes."),
    "quantity": ("The scale on the right has a step every 5 mm.", "The port has 12 mm.", "That takes about 3 seconds."),
    "binary": ("No other instrument is seen.", "There is no doubt about it.", "It is not hidden at any time."),
    "preference": ("Video A begins earlier.", "Both show the same step.", "In video B the camera moves.", "A and B differ in the last step."),
    "scale": ("The needle is held well in 3 of 4 stitches.", "It took 2 attempts.", "A score of 5 would need smoother moves."),
}  # fmt: skip
RETRACTS = ("\n\nWait, that is wrong.\n\n", "\nActually, ", "\n\nHold on, let me check again. ", "\n\nCorrection:\n")
SILENT = (
    "", "I can't see a video.", "I'm sorry, but I can't help with that.", "Answer: unknown", "Answer: cannot be determined from the video.",
    "No video was attached. Please upload it.", "I don't know.", "无法从视频中判断。", "Please provide the images.", "Answer:", "null",
    "As an AI model, I am unable to view videos.", '{"answer": null}', "Answer: I cannot tell.", "It depends on the clip.",
)  # fmt: skip
HEDGES = (
    "Answer: {} or {}",
    "{} or {}",
    "Either {} or {}.",
    "It is either {} or {}, I can't tell.",
    "<answer>{} or {}</answer>",
)
