"""`proctor show`: one item in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from proctor.cli.options import BenchmarkName, Conditions, Output, OutputFormat, StoreUrl, Systems
from proctor.cli.output import console, note, print_json
from proctor.cli.results import DEFAULT_STORE
from proctor.core import reader_or_default

if TYPE_CHECKING:
    from proctor.core import Item, VideoClip
    from proctor.runs import GivenAnswer, ItemHistory

_FRAMES = 64


def show(
    benchmark: BenchmarkName,
    item: Annotated[
        str, typer.Argument(metavar="ITEM", help="The item's id, as in results and reports.", show_default=False)
    ],
    store: StoreUrl = DEFAULT_STORE,
    systems: Systems = None,
    conditions: Conditions = None,
    prompt: Annotated[bool, typer.Option("--prompt", help="Also the words that a model is asked with.")] = False,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Show one item with answers and scores.

    The question, its options and reference, and of every run the answer, what was read from it, its scores and
    what judges replied.

    Example: proctor show rexsonovqa 1st_Trimester_Scan/mcq-01 --store runs.db --system gemini-3-pro
    """
    from proctor.runs import Store, item_history

    if output is OutputFormat.CSV:
        raise typer.BadParameter("one item is printed as table or json", param_hint="--format")
    opened = Store(store, create=False)
    found = item_history(opened, benchmark, item, tuple(systems or ()), tuple(conditions or ()))
    if output is OutputFormat.JSON:
        print_json(found.to_json() | ({"prompt": _prompt(benchmark, found.item)} if prompt else {}))
        return
    _show_item(found)
    if prompt:
        _say("\nPrompt:")
        for text in _prompt(benchmark, found.item):
            _say(_indented(text))
    for one in found.given:
        _show_answer(one)


def _show_item(found: ItemHistory) -> None:
    from proctor.core.formats import option_letters

    item = found.item
    _say(f"{item.id}  ({item.answer.kind}, group {item.group})", bold=True)
    _say(_indented(item.question))
    for letter, option in zip(option_letters(len(item.options)), item.options, strict=True):
        _say(f"    {letter}  {option}")
    if item.reference is not None:
        accepted = "".join(f"; also {_value(one)}" for one in item.reference.accepted)
        _say(f"Reference: {_value(item.reference.answer)}{accepted}")
        if item.reference.rationale:
            _say(_indented(item.reference.rationale))
    if item.media:
        _say("Media: " + "; ".join(_medium(one) for one in item.media))
    if item.tags:
        _say("Facets: " + "; ".join(f"{name} {_value(value)}" for name, value in item.tags.items()))


def _show_answer(one: GivenAnswer) -> None:
    from proctor.core import Status

    run = f"{one.run.system} / {one.run.condition}"
    answer = one.answer
    if answer is None:
        _say(f"\n{run}: not asked", bold=True)
        return
    parsed = "can't be read" if answer.parsed is None else _value(answer.parsed)
    _say(f"\n{run}: {parsed if answer.status is Status.ANSWERED else answer.status.value}", bold=True)
    for reason in (answer.reason, answer.problem):
        if reason:
            _say(f"  {reason}")
    if answer.text:
        _say(_indented(answer.text))
    for score in one.scores:
        label = f" ({score.label})" if score.label else ""
        _say(f"  {score.metric} {score.value:g}{label} by {score.scorer}")
    for vote in one.votes:
        flags = f" flagged: {', '.join(vote.flags)}" if vote.flags else ""
        _say(f"  {vote.judge} replied{flags}: {_value(vote.reply)}")


def _prompt(benchmark: str, item: Item) -> list[str]:
    """The messages that a model gets beside the pictures under the condition `video`, by the usual prompt."""
    from proctor.core import VideoClip
    from proctor.systems import prompt_for_benchmark, prompt_text

    clips = [one for one in item.media if isinstance(one, VideoClip)]
    pictures = sum(_frames(one) for one in clips) + len(item.media) - len(clips)
    if clips:
        note("Numbers of frames in the prompt are for one frame a second, at most 64.")
    texts = prompt_text(
        prompt_for_benchmark(benchmark),
        item,
        reader_or_default(benchmark).briefing,
        pictures=pictures,
        timed=bool(clips),
    )
    return [text for text in texts if text]


def _frames(clip: VideoClip) -> int:
    return _FRAMES if clip.end is None else min(_FRAMES, max(1, round(clip.end - clip.start)))


def _medium(medium: object) -> str:
    from proctor.core import VideoClip

    if isinstance(medium, VideoClip):
        end = "its end" if medium.end is None else f"{medium.end:g} s"
        return f"{medium.source} from {medium.start:g} s to {end}"
    return str(getattr(medium, "source", medium))


def _value(value: object) -> str:
    import json

    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.strip().splitlines())


def _say(text: str, *, bold: bool = False) -> None:
    """Texts come from unknown authors: no control character, no markup reaches the terminal."""
    from proctor.core import clean

    console.print(clean(text), style="bold" if bold else "", markup=False, highlight=False, soft_wrap=True)
