"""Models that audit options: one sees them without the question, one rules out what it can without the media."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, Field

from proctor.audits.items import ModelReplies
from proctor.core import Item, JudgementCache, NoVerdictError, ParseError, generator
from proctor.core.formats import ChoiceFormat, option_letters
from proctor.judges import CachedModel, as_said, several
from proctor.models import ModelClient, load_prompt

M = TypeVar("M", bound=BaseModel)

_HERE = Path(__file__).parent
_AT_ONCE = 8


class _Chosen(BaseModel):
    answer: str = Field(min_length=1, max_length=2000)


class _RuledOut(BaseModel):
    ruled_out: list[str] = Field(max_length=26)


async def ask_option_auditors(
    items: Sequence[Item],
    client: ModelClient,
    cache: JudgementCache,
    *,
    seed: int = 0,
    at_once: int = _AT_ONCE,
    progress: Callable[[int, int], None] | None = None,
) -> list[ModelReplies]:
    """Asks a model twice about each choice item with several options: which option is right, without the question; and
    which options can be ruled out, with the question. Neither shows media. Options are in another order for each item,
    drawn by `seed`, so that a model's favourite letter gains nothing.

    Replies are read by the answer format. One that is no option, or that the model declines to give, is None: it says
    nothing. They are stored in `cache`, and not asked for again. `progress` is called with replies done and replies in
    all. Raises `InfrastructureError` where no reply comes, and `ConfigurationError` where the server rejects every
    request.
    """
    asked = [item for item in items if isinstance(item.answer, ChoiceFormat) and len(item.options) > 1]
    done = 0

    async def counted(auditor: _Auditor, item: Item) -> tuple[str, ...] | None:
        nonlocal done
        left = await auditor.left(item)
        done += 1
        if progress is not None:
            progress(done, 2 * len(asked))
        return left

    auditors = (_OptionsOnly(client, cache, seed), _Elimination(client, cache, seed))
    jobs = [(auditor, item) for auditor in auditors for item in asked]
    replies = await several(lambda job: counted(*job), jobs, at_once)
    found = []
    for number, auditor in enumerate(auditors):
        own = replies[number * len(asked) : (number + 1) * len(asked)]
        left = dict(zip((item.id for item in asked), own, strict=True))
        found.append(ModelReplies(f"{auditor.name} {client.name}", auditor.label, left))
    return found


class _Auditor:
    """A prompt, and the form of its replies."""

    name: str
    label: str

    def __init__(self, client: ModelClient, cache: JudgementCache, seed: int) -> None:
        self._prompt = load_prompt(_HERE / f"{self.name.replace('-', '_')}.txt.j2")
        self._model = CachedModel(f"audit.{self.name}", client, cache)
        self._seed = seed

    async def left(self, item: Item) -> tuple[str, ...] | None:
        """The letters of the options that the model leaves; None where its reply says nothing."""
        order = [
            int(position)
            for position in generator(self._seed, "audit", "shown", item.id).permutation(len(item.options))
        ]
        letters, shown = option_letters(len(order)), [item.options[position] for position in order]
        try:
            kept = await self._kept(item, shown)
        except (NoVerdictError, ParseError):
            return None
        positions = sorted(order[letters.index(letter)] for letter in kept)
        return tuple(letters[position] for position in positions)

    async def _kept(self, item: Item, shown: Sequence[str]) -> list[str]:
        """The letters, as shown, of the options that are left."""
        raise NotImplementedError

    async def _reply(self, form: type[M], item: Item, shown: Sequence[str]) -> M:
        options = list(zip(option_letters(len(shown)), shown, strict=True))
        system, user = self._prompt.render(question=item.question, options=options)
        content = {"kind": f"audit.{self.name}", "prompt": self._prompt.sha256, "system": system, "user": user}
        return (await self._model.ask(as_said(form), [user], content=content, item_id=item.id, system=system))[0]


def _letter(said: str, shown: Sequence[str]) -> str:
    return str(ChoiceFormat().parse(said, shown))


class _OptionsOnly(_Auditor):
    name = "options-only"
    label = "a model that sees the options without the question"

    async def _kept(self, item: Item, shown: Sequence[str]) -> list[str]:
        reply = await self._reply(_Chosen, item, shown)
        return [_letter(reply.answer, shown)]


class _Elimination(_Auditor):
    name = "elimination"
    label = "a model that rules options out without the media; one of the others is drawn"

    async def _kept(self, item: Item, shown: Sequence[str]) -> list[str]:
        reply = await self._reply(_RuledOut, item, shown)
        out = {_letter(said, shown) for said in reply.ruled_out}
        letters = option_letters(len(shown))
        return [letter for letter in letters if letter not in out] or letters
