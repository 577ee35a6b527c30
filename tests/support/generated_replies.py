"""Replies drawn at random, each with the value that it states: how models write an answer, times what stands around it.

Written from how models reply (their styles, wrappers, languages, thoughts), not from how Proctor reads. `generate` draws
a value of a format, one of the format's own ways of writing it, a sentence or structure around it, and what comes before
and after; one reply in eight states no value. The same seed gives the same replies.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from proctor.core.formats import (
    BinaryFormat,
    BoxesFormat,
    ChoiceFormat,
    ChoicesFormat,
    ClassesFormat,
    CountFormat,
    Format,
    FreeTextFormat,
    IntervalsFormat,
    OrderingFormat,
    PatternFormat,
    PercentageFormat,
    PointFormat,
    PreferenceFormat,
    QuantityFormat,
    RatingsFormat,
    ScaleFormat,
    ShortTextFormat,
    TimestampsFormat,
)
from tests.support.reply_phrases import (
    AFTER,
    ARGUES,
    BEFORE,
    CUT,
    DECLARED,
    HEDGES,
    KEYED,
    MARKED,
    RETRACTS,
    SILENT,
    THOUGHTS,
)


@dataclass(frozen=True)
class Drawn:
    """A value, ways of writing it, and ways that need no cue (a list, a table); `keyed`: the value in JSON."""

    value: Any
    said: tuple[str, ...]
    whole: tuple[str, ...] = ()
    keyed: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Kind:
    """A format with a way to draw its answers. `hedges`: two values joined by "or" state none. `bare`: the value may
    stand alone; `cues`: a cue may lead to it; `any_text`: a refusal is an answer, too; `argues`: the
    reasons that name other values."""

    form: Format
    options: tuple[str, ...]
    draw: Callable[[random.Random], Drawn]
    hedges: bool = True
    bare: bool = True
    cues: bool = True
    any_text: bool = False
    argues: str = ""


def generate(name: str, count: int, seed: int) -> Iterator[tuple[str, Any]]:
    """Texts, each with its value, or None where it states none."""
    kind, rng = KINDS[name], random.Random(f"{name}-{seed}")
    for _ in range(count):
        drawn, other = kind.draw(rng), kind.draw(rng)
        while other.value == drawn.value:
            other = kind.draw(rng)
        silent = rng.random() < 1 / 8
        yield (_silent(kind, drawn, other, rng), None) if silent else (_reply(kind, drawn, other, rng), drawn.value)


def _silent(kind: Kind, drawn: Drawn, other: Drawn, rng: random.Random) -> str:
    how = 0.0 if kind.any_text else rng.random()
    if how < 0.4 or not kind.hedges:
        thought = f"It may be so. Answer: {rng.choice(drawn.said)}? Let me check"
        return rng.choice(CUT).format(thought) if how < 0.3 else rng.choice(SILENT)
    if how < 0.7:
        return rng.choice(SILENT)
    return rng.choice(HEDGES).format(drawn.said[0], other.said[0])


def _reply(kind: Kind, drawn: Drawn, other: Drawn, rng: random.Random) -> str:
    text = _stated(kind, drawn, rng)
    if kind.argues and rng.random() < 0.3:
        return _argued(kind, drawn, rng)
    if kind.cues:
        how = rng.random()
        if how < 0.06:  # a correction
            return f"Answer: {other.said[0]}{rng.choice(RETRACTS)}Answer: {drawn.said[0]}"
        if how < 0.09:  # a base model writes on
            return f"Answer: {drawn.said[0]}\n\nQuestion: And in the next clip?\nAnswer: {other.said[0]}"
    if rng.random() < 0.35:
        doubt = rng.choice(
            ("At first {} seems right. ", "Answer: {} is tempting. ", "Could it be {}? No. ", "Final answer: {}? Hmm. ")
        )
        thought = doubt.format(rng.choice(other.said))
        text = rng.choice(THOUGHTS).replace("{}", f"The clip is short. {thought}So I decide.") + text
    return text


def _argued(kind: Kind, drawn: Drawn, rng: random.Random) -> str:
    """An answer with reasons that name other values: before it, after it, or in its sentence."""
    o, p = rng.sample([letter for letter in "ABCD" if letter != drawn.value], 2)
    reason = rng.choice(ARGUES[kind.argues]).format(o=o, p=p)
    said = drawn.said[0]
    shapes = (
        "Answer: {s}\n\n{r}", "**Answer: {s}**\n\n**Reasoning:** {r}", "Answer: {s}\n{r}", "Answer: {s}. {r}", "{r}\n\nAnswer: {s}",
        "{r}\n\nTherefore, the answer is {s}.", "Let me think. {r} {r2}\n\n**Final Answer:** {s}", "{r}\n\n\\boxed{{{s}}}",
        "<answer>{s}</answer>\n{r}", "### Analysis\n{r}\n\n### Answer\n{s}", "Answer: {s}\n\n### Why\n{r}\n{r2}",
        "Answer: {s} ({r})" if "\n" not in reason else "Answer: {s}\n\n{r}",
    )  # fmt: skip
    return rng.choice(shapes).format(s=said, r=reason, r2=rng.choice(ARGUES[kind.argues]).format(o=p, p=o))


def _stated(kind: Kind, drawn: Drawn, rng: random.Random) -> str:
    how = rng.random()
    if drawn.keyed and how < 0.15:
        return rng.choice(KEYED).format(json.dumps(rng.choice(drawn.keyed), ensure_ascii=False))
    if drawn.whole and how < 0.35:
        return rng.choice(drawn.whole)
    said = rng.choice(drawn.said)
    if kind.cues and (how < 0.75 or not kind.bare):
        before = rng.choice(BEFORE) if rng.random() < 0.4 else ""
        after = rng.choice(AFTER) if rng.random() < 0.4 else ""
        if "\n" in said:
            return f"{before}Answer:\n{said}{after}"
        declared = rng.choice(DECLARED).format(said.rstrip("."))
        heading = "\n\n" if before and declared.startswith("#") else ""
        return f"{before}{heading}{declared}{after}"
    if not kind.bare or "\n" in said:
        return said
    return rng.choice(MARKED).replace("{{", "{").replace("}}", "}").replace("{}", said.rstrip("."), 1)


POOLS = (
    ("liver", "spleen", "left kidney", "aorta"),
    ("Kelly clamp", "Babcock clamp", "Veress needle", "Trocar"),
    ("Sliding the probe", "Rotating the probe by 90 degrees", "A transverse sweep", "Increasing the depth"),
    ("Before the clip is applied", "After the duct is cut", "While the bag is opened", "Only at the end"),
)


def _choice_of(options: tuple[str, ...]) -> Callable[[random.Random], Drawn]:
    def draw(rng: random.Random) -> Drawn:
        row = rng.randrange(len(options))
        letter, text = "ABCD"[row], options[row]
        said = [
            letter,
            f"({letter})",
            f"{letter}.",
            f"{letter}) {text}",
            f"{letter}. {text}",
            f"{letter}: {text}",
            f"Option {letter}",
            text,
        ]
        if text[0].isupper() and not text.startswith(("A ", "After", "Before", "While", "Only")) and "ing" not in text:
            said += [f"A {text}", f"The {text}"]
        return Drawn(
            letter,
            tuple(said),
            (f"It shows {text}." if text.islower() else f"{letter} is correct.",),
            (letter, f"{letter}. {text}"),
        )

    return draw


def _choices(rng: random.Random) -> Drawn:
    options = POOLS[0]
    picked = sorted(rng.sample("ABCD", rng.choice((1, 2, 2, 2, 3))))
    texts = [options["ABCD".index(letter)] for letter in picked]
    said = [", ".join(picked), " and ".join(picked), ", ".join(f"({one})" for one in picked), " & ".join(picked)]
    lines = "\n".join(f"{letter}. {text}" for letter, text in zip(picked, texts, strict=True))
    said += [", ".join(picked[:-1]) + (" and " if picked[:-1] else "") + picked[-1], " and ".join(texts), lines]
    return Drawn(picked, tuple(said), (), (picked, ", ".join(picked)))


_WORDS = (
    "a rescuer kneels",
    "hands press on a chest",
    "a pad is attached",
    "the shock is given",
    "a mask is held",
    "he calls for help",
)
_ORDINALS = ("first", "second", "third", "fourth")


def _order(rng: random.Random) -> Drawn:
    order = rng.sample("ABCD", 4)
    words = rng.sample(_WORDS, 4)
    pairs = list(zip(order, words, strict=True))
    said = [sign.join(order) for sign in (" > ", ", ", " -> ", " → ", ">", " < ", " - ", "; ", " ➜ ")]
    for sign in (" > ", " → ", ", "):
        said += [
            sign.join(f"{one} ({word})" for one, word in pairs),
            sign.join(f"Picture {one} ({word})" for one, word in pairs),
        ]
    said += [sign.join(f"{one} - {word}" for one, word in pairs) for sign in (" > ", " → ", ", ")]
    said += [" > ".join(f"{one}: {word}" for one, word in pairs), " > ".join(f"**{one}**" for one in order)]
    said += ["{}, then {}, then {} and finally {}".format(*order), "first {}, then {}, then {}, last {}".format(*order)]
    lists = [
        "\n".join(f"{n}. {one}" for n, one in enumerate(order, 1)),
        "\n".join(f"{n}. Picture {one}: {word}." for n, (one, word) in enumerate(pairs, 1)),
        "\n".join(f"{n}. **{one}** - {word}" for n, (one, word) in enumerate(pairs, 1)),
        "\n".join(f"{n}. {word.capitalize()} (Picture {one})" for n, (one, word) in enumerate(pairs, 1)),
        "\n".join(f"Step {n}: {one} ({word})" for n, (one, word) in enumerate(pairs, 1)),
        "\n↓\n".join(order),
        "| Position | Picture |\n|---|---|\n" + "\n".join(f"| {n} | {one} |" for n, one in enumerate(order, 1)),
        "| Step | Frame | What |\n|:--|:--|:--|\n"
        + "\n".join(f"| {n} | {one} | {word} |" for n, (one, word) in enumerate(pairs, 1)),
        "| Picture | Position |\n|---|---|\n" + "\n".join(f"| {one} | {order.index(one) + 1} |" for one in "ABCD"),
    ]
    if order != sorted(order):
        lists.append("\n".join(f"- Picture {one}: {word}" for one, word in pairs))
    told = (
        "First is picture {}, where {}. Then {}, where {}. Next comes {}, since {}. Finally {}, as {}.",
        "Picture {} comes first because {}. Then comes picture {}: {}. After that, picture {} follows ({}). Picture {} is last ({}).",
    )
    whole = [*lists, *(one.format(*(part for pair in pairs for part in pair)) for one in told)]
    entries = [{"position": n, "frame": one} for n, one in enumerate(order, 1)]
    forms = [{"order": order}, {"order": entries}, {str(n): one for n, one in enumerate(order, 1)}, entries, order]
    forms += [
        {"order": [{"label": one, "reason": word} for one, word in pairs]},
        dict(zip(_ORDINALS, order, strict=True)),
    ]
    whole += [json.dumps(rng.choice(forms)), f"```json\n{json.dumps(rng.choice(forms), indent=1)}\n```"]
    return Drawn(order, (*said, *lists), tuple(whole), (order, " > ".join(order), entries))


def _binary(rng: random.Random) -> Drawn:
    value = rng.random() < 0.5
    word = "yes" if value else "no"
    after = ("the clip is closed", "the sponge is seen at the end", "it stays in view")
    said = (
        word,
        word.capitalize(),
        word.upper(),
        f"{word.capitalize()}, {rng.choice(after)}",
        f"{word} ({rng.choice(after)})",
    )
    return Drawn(value, said, (f"{word.capitalize()}, {rng.choice(after)}.",), (word, value))


_NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def _count(rng: random.Random) -> Drawn:
    value = rng.randrange(11)
    noun = rng.choice(("clip", "sponge", "needle"))
    nouns = noun if value == 1 else f"{noun}s"
    said = (str(value), _NUMBERS[value], f"{value} {nouns}", f"{_NUMBERS[value]} {nouns}", str(value))
    return Drawn(
        value,
        said,
        (f"There {'is' if value == 1 else 'are'} {value} {nouns}.", f"I count {_NUMBERS[value]} {nouns} in the clip."),
        (value, str(value)),
    )


def _percentage(rng: random.Random) -> Drawn:
    value = rng.randrange(0, 101, 5)
    said = (
        f"{value}%",
        f"{value} %",
        f"{value} percent",
        str(value),
        f"about {value}%",
        f"{value}.0%",
        f"approximately {value} %",
    )
    return Drawn(float(value), said, (f"It is in view for about {value}% of the time.",), (value, f"{value}%"))


CLASSES = ("Clip", "External Drain", "Mesh", "Needle", "Specimen", "Specimen Bag", "Sponge")


def _classes(rng: random.Random) -> Drawn:
    picked = sorted(rng.sample(CLASSES, rng.choice((0, 1, 1, 2, 2, 3))))
    if not picked:
        return Drawn([], ("none", "None", "none of them"), ("None.",), ([], "none"))
    low = [name.lower() for name in picked]
    said = (", ".join(picked), ", ".join(low), " and ".join(low), ", ".join(f"a {name}" for name in low))
    lines = "\n".join(f"- {name}" for name in picked)
    return Drawn(picked, said, (lines,), (picked, ", ".join(low)))


def _clock(seconds: int, *, short: bool = False) -> str:
    return (
        f"{seconds // 60}:{seconds % 60:02d}"
        if short
        else f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    )


def _time(rng: random.Random) -> Drawn:
    at = rng.randrange(5, 1500)
    said = (
        _clock(at),
        _clock(at, short=True),
        f"at {_clock(at)}",
        f"{at} s",
        f"{at} seconds",
        f"around {_clock(at, short=True)}",
    )
    return Drawn([float(at)], said, (f"The needle leaves the view at {_clock(at)}.",), (_clock(at), at))


def _times(rng: random.Random) -> Drawn:
    times = sorted(rng.sample(range(5, 1500), rng.choice((1, 2, 3))))
    said = (
        ", ".join(map(_clock, times)),
        " and ".join(_clock(at, short=True) for at in times),
        "; ".join(map(_clock, times)),
    )
    return Drawn(
        [float(at) for at in times],
        (*said, "\n".join(f"- {_clock(at)}" for at in times)),
        (),
        ([_clock(at) for at in times],),
    )


def _span(rng: random.Random) -> Drawn:
    start = rng.randrange(5, 1400)
    end = start + rng.randrange(3, 90)
    said = (f"{_clock(start)}-{_clock(end)}", f"{_clock(start)} to {_clock(end)}", f"{_clock(start, short=True)} - {_clock(end, short=True)}",
            f"from {_clock(start)} to {_clock(end)}", f"{_clock(start)} – {_clock(end)}")  # fmt: skip
    return Drawn([[float(start), float(end)]], said, (f"It is seen from {_clock(start)} to {_clock(end)}.",),
                 ({"start": _clock(start), "end": _clock(end)}, [_clock(start), _clock(end)], f"{_clock(start)}-{_clock(end)}"))  # fmt: skip


def _quantity(rng: random.Random) -> Drawn:
    value = rng.randrange(2, 95)
    said = (f"{value} mm", f"{value}mm", f"about {value} mm", f"{value} millimetres", f"{value / 10} cm", str(value))
    return Drawn(float(value), said, (f"The duct is about {value} mm wide.",), (value, f"{value} mm"))


def _box(rng: random.Random) -> Drawn:
    x, y = rng.randrange(0, 700), rng.randrange(0, 700)
    box = [x, y, x + rng.randrange(20, 300), y + rng.randrange(20, 300)]
    shown = str(box)
    keyed = (box, {"x1": box[0], "y1": box[1], "x2": box[2], "y2": box[3]})
    whole = (
        json.dumps({"bbox_2d": box}),
        f"```json\n{json.dumps([{'bbox_2d': box, 'label': 'clip'}])}\n```",
        f"The clip is at {shown}.",
    )
    return Drawn([[float(one) for one in box]], (shown, shown.replace("[", "(").replace("]", ")"), shown), whole, keyed)


def _point(rng: random.Random) -> Drawn:
    at = [rng.randrange(0, 1000), rng.randrange(0, 1000)]
    said = (str(at), f"({at[0]}, {at[1]})", f"x = {at[0]}, y = {at[1]}")
    return Drawn(
        [float(one) for one in at],
        said,
        (json.dumps({"point_2d": at}), f"The tip is at ({at[0]}, {at[1]})."),
        (at, {"x": at[0], "y": at[1]}),
    )


NAMES = ("left kidney", "Veress needle", "gallbladder", "Calot triangle", "hepatic artery", "falciform ligament")


def _short(rng: random.Random) -> Drawn:
    name = rng.choice(NAMES)
    return Drawn(name, (name, name, name.capitalize()), (), (name,))


LEVELS = ("poor", "fair", "good", "very good", "excellent")


def _scale(rng: random.Random) -> Drawn:
    level = rng.randrange(1, 6)
    said = (
        str(level),
        f"{level}/5",
        f"{level} out of 5",
        LEVELS[level - 1],
        f"{level} ({LEVELS[level - 1]})",
        f"{level} - {LEVELS[level - 1]}",
    )
    return Drawn(level, said, (f"I would rate it {level}/5.",), (level,))


def _preference(rng: random.Random) -> Drawn:
    value = rng.choice(("A", "B", "tie"))
    if value == "tie":
        return Drawn(
            value,
            ("tie", "a tie"),
            ("Both are equally good.", "There is no clear difference between A and B."),
            ("tie",),
        )
    other = "B" if value == "A" else "A"
    whole = (f"{value} is better than {other}.", f"[[{value}]]", f"I prefer {value}.", f"{value} > {other}")
    return Drawn(value, (value, f"Video {value}", f"({value})"), whole, (value,))


def _pattern(rng: random.Random) -> Drawn:
    code = "-".join(rng.sample("ABCD", 4))
    return Drawn(code, (code,), (f"The order is {code}.",), (code,))


FREE = (
    "The probe slides caudally.",
    "The duct is clipped twice, then cut.",
    "Retraction of the gallbladder shows Calot's triangle.",
    "器械夹住胆囊。",
)


def _free(rng: random.Random) -> Drawn:
    text = rng.choice(FREE)
    return Drawn(text, (text,), (text,))


def _ratings(rng: random.Random) -> Drawn:
    value = {"accuracy": rng.randrange(5) / 4, "safety": rng.randrange(5) / 4}
    text = json.dumps(value)
    return Drawn(
        value,
        (text,),
        (text, f"```json\n{text}\n```", f"The answer misses the dose.\n\n{text}", json.dumps({"ratings": value})),
    )


KINDS: dict[str, Kind] = {
    **{f"choice_{n}": Kind(ChoiceFormat(), pool, _choice_of(pool), argues="choice") for n, pool in enumerate(POOLS, 1)},
    "choices": Kind(ChoicesFormat(), POOLS[0], _choices),
    "ordering": Kind(OrderingFormat(labels=("A", "B", "C", "D")), (), _order, argues="ordering"),
    "binary": Kind(BinaryFormat(), (), _binary, argues="binary"),
    "count": Kind(CountFormat(), (), _count, argues="count"),
    "percentage": Kind(PercentageFormat(tolerance=5), (), _percentage, argues="percentage"),
    "classes": Kind(ClassesFormat(classes=CLASSES), (), _classes),
    "timestamps": Kind(TimestampsFormat(tolerance=2), (), _time, argues="time"),
    "timestamps_several": Kind(TimestampsFormat(tolerance=2, several=True), (), _times, hedges=False),
    "intervals": Kind(IntervalsFormat(), (), _span, argues="time"),
    "quantity": Kind(QuantityFormat(unit="mm", tolerance=2), (), _quantity, argues="quantity"),
    "boxes": Kind(BoxesFormat(), (), _box),
    "point": Kind(PointFormat(tolerance=20), (), _point),
    "short_text": Kind(ShortTextFormat(), (), _short),
    "scale": Kind(ScaleFormat(labels=LEVELS), (), _scale, argues="scale"),
    "preference": Kind(PreferenceFormat(), (), _preference, argues="preference"),
    "pattern": Kind(PatternFormat(pattern="[A-D](-[A-D]){3}"), (), _pattern),
    "free_text": Kind(FreeTextFormat(), (), _free, hedges=False, bare=False, cues=False, any_text=True),
    "ratings": Kind(
        RatingsFormat(dimensions=("accuracy", "safety")), (), _ratings, hedges=False, bare=False, cues=False
    ),
}
