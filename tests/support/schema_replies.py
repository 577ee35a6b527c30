"""Replies to questions whose order is requested by a JSON schema, drawn at random, each with the order that it states.

Servers that enforce the schema, those that only tell the model of it, and those that cut the reply off: the fields in
either order, compact or indented, in fences or with words beside them, after thoughts, with rationales that name other
orders. The same seed gives the same replies.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

LABELS = (
    tuple("ABCDEFGH"),
    tuple("abcdef"),
    tuple("1234567"),
    ("Step 1", "Step 2", "Step 3", "Step 10"),
    ("check_scene", "open_airway", "compress", "bare_chest"),
    ("Check the scene", "Bare the chest", "Compress"),
    ("img_01.jpg", "img_02.jpg", "img_03.jpg", "img_04.jpg"),
    ("K7Q", "B4X", "Z2M", "T9C"),
    ("开放气道", "胸外按压", "检查反应"),
    ("A", "I", "M"),
)
REASONS = (
    "{a} shows the scene being checked, so it precedes {b}.",
    "At first {b} > {a} seems right, but the pads are on only in {b}.",
    "Final answer: {b}, {a}? No: {a} comes first, then {b}.",
    'The rescuer calls out ("are you all right?") in {a}; in {b} the chest is bare.',
    "1. {a}\n2. {b}\nThe order of the two follows from the guideline [2, 1].",
    "Answer: {b} > {a} would leave the airway closed {{which no guideline allows}}.",
    "在{a}中检查反应，然后是{b}。",
    "Nothing but the hands \u2013 see {a} \u2014 tells {a} from {b}.",
)
WRAPPERS = (
    "{}",
    "{}",
    "{}",
    "```json\n{}\n```",
    "```\n{}\n```",
    "\n\n{}\n",
    "Here is the order:\n{}",
    "{}\n\nThe rationale explains each picture.",
)
THOUGHTS = (
    "",
    "",
    "<think>Maybe {o}? Answer: {o}. Let me look again.</think>",
    "First I look at the pictures: {o}?\n</think>\n\n",
    '<think>{{"order": {j}}} is my draft.</think>\n',
)


def draw_schema_replies(
    count: int, seed: int, given: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], str, list[str] | None]]:
    """Labels (those `given`, or of any kind), the text of a reply, and the order in it: None where the reply was cut off
    before it."""
    rng = random.Random(f"schema-{seed}")
    for _ in range(count):
        known = given or rng.choice(LABELS)
        labels = given or known[: rng.randint(3, len(known))]
        order, other = rng.sample(labels, len(labels)), rng.sample(labels, len(labels))
        reasons = [rng.choice(REASONS).format(a=a, b=b) for a, b in pairwise(order)]
        fields: dict[str, Any] = {"rationale": " ".join(reasons), "order": order}
        kind = rng.random()
        if kind < 0.25:
            fields = {"order": order}
        elif kind < 0.5:
            fields = {"order": order, "rationale": fields["rationale"]}
        body = json.dumps(fields, ensure_ascii=rng.random() < 0.3, indent=rng.choice((None, None, 1, 2)))
        thought = rng.choice(THOUGHTS).format(o=" > ".join(other), j=json.dumps(other))
        if rng.random() < 0.25:
            text, whole = _cut(body, order, rng)
            yield labels, thought + text, order if whole else None
        else:
            yield labels, thought + rng.choice(WRAPPERS).replace("{}", body), order


def _cut(body: str, order: list[str], rng: random.Random) -> tuple[str, bool]:
    """The beginning of a reply, and whether its order stands in it; never one that breaks off within the order."""
    at = body.index('"order"')
    ends = body.index("]", at + 1) + 1 if not any("]" in label for label in order) else len(body) - 1
    row = rng.randrange(2, len(body))
    if at + 8 <= row < ends:
        row = ends
    return body[:row], row >= ends
