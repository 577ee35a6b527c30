"""The scores of one trained judge along all paths that its weights take (see `parity`)."""

from __future__ import annotations

import asyncio
import base64
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from proctor.core import Frame, InputError, content_hash, read_model, write_whole
from proctor.models import (
    Choices,
    FixedForm,
    ModelClient,
    ModelSpec,
    Part,
    Query,
    Reply,
    Weights,
    WeightsServer,
    weights_hash,
)
from proctor.training.chat_examples import template_hash
from proctor.training.checkpoints import read_origin
from proctor.training.lora import merge
from proctor.training.parity import ITEMS, ParityPath, ParityReport, PathScores, compare_paths

MEMORY = "parity_memory.json"
"""The file beside trained weights with the scores that they gave in the trainer's memory."""

_ITEMS, _REPORT = "parity_items.json", "parity.json"
_WEIGHTS = ("adapter", "merged", "weights")
_EXPORTED = (*_WEIGHTS, "manifest.json", "README.md", _REPORT)
_LISTED = 20  # alternatives to a token that servers list at most
_FROZEN = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


@dataclass(frozen=True)
class ParityItem:
    """A question to a judge whose reply is a form: the dimension of each place of the form, and the level that each of
    its options stands for, as a share of the dimension's range."""

    id: str
    query: Query
    dimensions: tuple[str, ...]
    levels: tuple[tuple[float, ...], ...]

    def expected(self, chances: Sequence[Mapping[str, float]]) -> tuple[dict[str, float], dict[str, float]]:
        """By dimension the mean level under these probabilities of the form's options, and the likeliest level."""
        scores, likeliest = {}, {}
        for name, levels, some in zip(self.dimensions, self.levels, chances, strict=True):
            total = sum(some.values())
            if total > 0:
                scores[name] = sum(level * one for level, one in zip(levels, some.values(), strict=True)) / total
                likeliest[name] = max(zip(some.values(), levels, strict=True))[1]
        return scores, likeliest


def local_scores(path: ParityPath, weights: Weights, items: Sequence[ParityItem]) -> PathScores:
    """What weights in this process say."""
    weights.load()
    said = {one.id: one.expected(weights.generate([one.query], lambda: False)[0].chances) for one in items}
    return PathScores(
        path=path,
        scores={name: scores for name, (scores, _) in said.items()},
        levels={name: levels for name, (_, levels) in said.items()},
        prompts={one.id: content_hash(weights.prompts([one.query])["input_ids"][0].tolist()) for one in items},
        template=template_hash(weights),
        tokenizer=content_hash(weights.tokenizer.backend_tokenizer.to_str()),
        precision=_precision(weights.model),
    )


def _precision(model: Any) -> str:
    """The type of the weights' numbers; where they would be the same in a smaller one, that one: so they were merged
    in it, whatever they are stored as."""
    import torch

    stored = model.dtype
    if stored == torch.float32:
        for less in (torch.bfloat16, torch.float16):
            if all(torch.equal(one, one.to(less).to(stored)) for one in model.parameters()):
                stored = less
                break
    return str(stored).removeprefix("torch.")


def remembered(weights: Weights, items: Sequence[ParityItem]) -> dict[str, str]:
    """The scores of weights in the trainer's memory as a file, by name, to be kept with the weights."""
    return {MEMORY: local_scores("memory", weights, items[:ITEMS]).model_dump_json() + "\n"}


async def served_scores(client: ModelClient, items: Sequence[ParityItem]) -> PathScores:
    """What a server says, asked as any judge asks a server: the model finds its own words, and the probabilities are
    those of its tokens. A reply that is not the form filled in gives no score."""
    scores, likeliest = {}, {}
    for one in items:
        parts: list[Part] = []
        for part in one.query.parts:
            if not isinstance(part, (str, bytes)):
                raise InputError("parity", one.id, found="a video", expected="texts and pictures")
            parts.append(part if isinstance(part, str) else Frame(part, None, ""))
        chances = form_chances(one.query.form or FixedForm(("",), ()), await client.ask(parts, system=one.query.system))
        if chances is not None:
            scores[one.id], likeliest[one.id] = one.expected(chances)
    return PathScores(path="served", scores=scores, levels=likeliest)


def form_chances(form: FixedForm, reply: Reply[Any]) -> list[dict[str, float]] | None:
    """The probability of each option in each place of a form, from the tokens of a reply that fills it in; None where
    the text is no such reply, or where an option shares its token with other text."""
    blanks = [b"(" + b"|".join(re.escape(one.encode()) for one in some) + b")" for some in form.options]
    fixed = [re.escape(text.encode()) for text in form.texts]
    pattern = b"".join(text + blank for text, blank in zip(fixed, [*blanks, b""], strict=True))
    whole = b"".join(token.text for token in reply.tokens)
    said = re.fullmatch(rb"\s*" + pattern + rb"\s*", whole)
    if said is None or whole.decode(errors="replace").strip() != reply.text.strip():
        return None
    found = []
    for place, options in enumerate(form.options, start=1):
        end = 0
        token = next(one for one in reply.tokens if (end := end + len(one.text)) > said.start(place))
        at = said.start(place) - (end - len(token.text))
        head, tail = token.text[:at], token.text[at + len(said[place]) :]
        if head.strip() or tail.strip():
            return None
        found.append({one: token.chances.get(head + one.encode() + tail, 0.0) for one in options})
    return found


def check_run(run: Path, *, server: ModelSpec | None = None, device: str = "auto") -> ParityReport:
    """Compares the paths of a run's adapter, which is merged into `run/merged` unless it is there; of weights that were
    trained as a whole nothing is merged. What was found is kept in `run/parity.json`, with the hashes of the weights
    that it holds for. `server` is asked instead of one that is started here for the check.

    Raises `InputError` where the run has no trained weights, no items or no scores from the trainer's memory.
    """
    whole, adapter, merged = run / "weights", run / "adapter", run / "merged"
    trained = whole if whole.is_dir() else adapter
    memory = read_model(trained / MEMORY, PathScores, "the scores in the trainer's memory")
    base, items = str(read_origin(trained).get("base")), read_items(run)
    found = [local_scores("base", _weights(base, device), items)]
    if trained is adapter:
        found.append(local_scores("reloaded", _weights(f"{base}+{adapter}", device), items))
        if not merged.exists():
            merge(Path(base), adapter, merged)
    weights = _weights(str(merged if trained is adapter else whole), device)
    found.append(local_scores("merged" if trained is adapter else "reloaded", weights, items))
    if server is None:
        with WeightsServer(weights, "judge") as own:
            found.append(_served(ModelSpec(name="judge", base_url=own.url), items))
    else:
        found.append(_served(server, items))
    report = compare_paths(found[0], memory, found[1:])
    kept = CheckedParity(faults=list(report.faults), weights_sha256=_hashes(run))
    write_whole(run / _REPORT, kept.model_dump_json(indent=1) + "\n")
    return report


def _weights(where: str, device: str) -> Weights:
    return Weights(f"transformers:{where}", where, device)


def _hashes(run: Path) -> dict[str, str]:
    return {name: weights_hash(run / name) for name in _WEIGHTS if (run / name).is_dir()}


class CheckedParity(BaseModel):
    """What a comparison found, and for which weights it holds."""

    model_config = _FROZEN

    faults: list[str]
    weights_sha256: dict[str, str]


def require_parity(run: Path) -> CheckedParity:
    """Raises `InputError` unless the very weights that stand in the run's folder were compared, and found to be the
    same judge on every path."""
    kept = read_model(run / _REPORT, CheckedParity, "a run whose paths were compared (proctor train check-parity)")
    if _hashes(run) != kept.weights_sha256:
        raise InputError(run, found="other weights than those that were compared", expected="the same")
    ParityReport((), tuple(kept.faults)).check()
    return kept


def export_run(run: Path, out: Path) -> Path:
    """Writes what others need to use a judge into a new folder, whole or not at all: adapter, merged weights, manifest,
    card and what the comparison found. Nothing of the answers that it learned from is in it.

    Raises `InputError` unless these very weights were compared without a fault.
    """
    require_parity(run)
    draft = out.with_name(f".{out.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    for name in _EXPORTED:
        if (run / name).is_dir():
            shutil.copytree(run / name, draft / name)
        elif (run / name).exists():
            shutil.copy2(run / name, draft / name)
    draft.rename(out)
    return out


def _served(spec: ModelSpec, items: Sequence[ParityItem]) -> PathScores:
    most = max(one.query.choices.max_tokens for one in items)
    asked = {"temperature": 0.0, "max_tokens": most, "openai_logprobs": True, "openai_top_logprobs": _LISTED}

    async def ask() -> PathScores:
        client = ModelClient(spec.model_copy(update={"settings": {**asked, **spec.settings}}))
        try:
            return await served_scores(client, items)
        finally:
            await client.aclose()

    return asyncio.run(ask())


class _StoredItem(BaseModel):
    model_config = _FROZEN

    id: str
    system: str
    parts: list[dict[str, str]]
    texts: list[str]
    options: list[list[str]]
    dimensions: list[str]
    levels: list[list[float]]
    max_tokens: int


class _StoredItems(BaseModel):
    model_config = _FROZEN

    items: list[_StoredItem]


def write_items(folder: Path, items: Sequence[ParityItem]) -> None:
    """Keeps the items that paths are compared on, the first `ITEMS` of these, in the run's folder: they hold what
    patients wrote, so they are never exported."""
    rows = []
    for one in items[:ITEMS]:
        form = one.query.form or FixedForm(("",), ())
        parts = [
            {"text": part} if isinstance(part, str) else {"jpeg": base64.b64encode(part).decode()}
            for part in one.query.parts
            if isinstance(part, (str, bytes))
        ]
        rows.append(
            _StoredItem(
                id=one.id,
                system=one.query.system,
                parts=parts,
                texts=list(form.texts),
                options=[list(some) for some in form.options],
                dimensions=list(one.dimensions),
                levels=[list(some) for some in one.levels],
                max_tokens=one.query.choices.max_tokens,
            )
        )
    write_whole(folder / _ITEMS, _StoredItems(items=rows).model_dump_json() + "\n")


def read_items(folder: Path) -> list[ParityItem]:
    """The items of a run's folder. Raises `InputError` where there are none."""
    found = []
    for one in read_model(folder / _ITEMS, _StoredItems, "the items of the parity check").items:
        parts = tuple(part["text"] if "text" in part else base64.b64decode(part["jpeg"]) for part in one.parts)
        form = FixedForm(tuple(one.texts), tuple(tuple(some) for some in one.options))
        query = Query(one.system, parts, Choices(one.max_tokens), form)
        found.append(ParityItem(one.id, query, tuple(one.dimensions), tuple(tuple(some) for some in one.levels)))
    return found
