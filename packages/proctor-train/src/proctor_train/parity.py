"""The parity check: whether a trained judge gives the same scores in the trainer's memory, as an adapter that is loaded
again, merged into its base, and served over HTTP.

A judge that is served without its adapter, under another chat template or with another tokenizer still gives scores, and
nothing in them reveals it. So the scores of the same items are compared along all paths, and nothing is exported unless
they agree.
"""

from __future__ import annotations

import asyncio
import base64
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from proctor.core import Frame, FrozenModel, InputError, Table, columns, content_hash, number, read_model, write_whole
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
from proctor_train.fine_tuning import merge
from proctor_train.run_folder import read_origin, template_hash

TOLERANCE = 0.01
"""The largest allowed difference of scores, as a share of the dimension's range."""

_ROUNDED = 1e-9

_BITS = {"bfloat16": 7, "float16": 10, "float32": 23, "float64": 52}

ITEMS = 50
"""The number of items that are compared, or all if there are fewer."""

ParityPath = Literal["base", "memory", "reloaded", "merged", "served"]


class PathScores(FrozenModel):
    """The scores on one path: for each item and dimension the expected score (`scores`, as a share of the range) and the
    likeliest level (`levels`). Items without a score are left out. `prompts` are hashes of the items' prompt tokens,
    `template` and `tokenizer` hashes, `precision` the smallest number type that holds the weights; empty if a path does
    not reveal them (a server)."""

    path: ParityPath
    scores: dict[str, dict[str, float]]
    levels: dict[str, dict[str, float]]
    prompts: dict[str, str] = Field(default_factory=dict)
    template: str = ""
    tokenizer: str = ""
    precision: str = ""

    def furthest(self, other: PathScores) -> tuple[float, str]:
        """The largest difference from another path's scores, and its place."""
        apart = [
            (abs(value - other.scores[item][name]), f"{item}, {name}")
            for item, values in self.scores.items()
            for name, value in values.items()
            if name in other.scores.get(item, {})
        ]
        return max(apart, default=(0.0, ""))

    def flips(self, other: PathScores) -> int:
        """The number of likeliest levels that differ."""
        return sum(
            level != other.levels[item][name]
            for item, levels in self.levels.items()
            for name, level in levels.items()
            if name in other.levels.get(item, {})
        )

    def lacks(self, other: PathScores) -> int:
        """The number of another path's scores that are missing here."""
        return sum(name not in self.scores.get(item, {}) for item, values in other.scores.items() for name in values)


@dataclass(frozen=True)
class ParityRow:
    """One path compared with the trainer's memory: the number of scored items, the largest difference of scores, the
    number of likeliest levels that differ, and the largest difference from the untrained base."""

    path: ParityPath
    items: int
    worst: float
    flips: int
    from_base: float


@dataclass(frozen=True)
class ParityReport:
    """The paths and their faults, one line each; a judge without faults may be exported."""

    rows: tuple[ParityRow, ...]
    faults: tuple[str, ...]

    def check(self) -> None:
        """Raises `InputError` with the first fault."""
        if self.faults:
            more = f" (and {len(self.faults) - 1} more)" if len(self.faults) > 1 else ""
            raise InputError("parity", found=self.faults[0] + more, expected="the same judge on every path: no export")

    def table(self) -> Table:
        """The paths as a table."""
        rows = tuple(
            (row.path, str(row.items), number(row.worst), str(row.flips), number(row.from_base)) for row in self.rows
        )
        heads = columns("path", ">items", ">largest difference", ">levels flipped", ">furthest from the base")
        return Table("The same items on every path, compared with the trainer's memory.", heads, rows, title="Parity")


def compare_paths(base: PathScores, memory: PathScores, others: Sequence[PathScores]) -> ParityReport:
    """Compares each path with the scores in the trainer's memory, and with those of the untrained base.

    Faults are: a score that differs by more than `TOLERANCE`, a missing score, a prompt of other tokens, another chat
    template or tokenizer, weights of lower precision, and a path whose scores are all within `TOLERANCE` of the base
    model's, since nothing then shows that the adapter was loaded. Flipped levels alone are counted, but are no fault.
    Raises `InputError` if memory has no scores at all.
    """
    if not memory.scores:
        raise InputError("parity", found="no scores", expected="some: the model gives no rating of the asked form")
    rows, faults = [], []
    for path_scores in (memory, *others):
        worst, where = path_scores.furthest(memory)
        from_base = path_scores.furthest(base)[0]
        rows.append(ParityRow(path_scores.path, len(path_scores.scores), worst, path_scores.flips(memory), from_base))
        faults += _identity_faults(path_scores, memory)
        if worst > TOLERANCE + _ROUNDED:
            faults.append(
                f"{path_scores.path}: a score is off by {worst:.3f} ({where}), at most {TOLERANCE} is expected"
            )
        if missing := path_scores.lacks(memory):
            faults.append(f"{path_scores.path}: scores missing that the trainer's memory gives: {missing}")
        if from_base <= TOLERANCE + _ROUNDED:
            faults.append(
                f"{path_scores.path}: the adapter is inert: no score is further than {TOLERANCE} from the base model's"
            )
    return ParityReport(tuple(rows), tuple(faults))


def _identity_faults(path_scores: PathScores, memory: PathScores) -> list[str]:
    found = []
    kinds: Mapping[str, tuple[str, str]] = {
        "chat template": (path_scores.template, memory.template),
        "tokenizer": (path_scores.tokenizer, memory.tokenizer),
    }
    for what, (own, expected) in kinds.items():
        if own and expected and own != expected:
            found.append(f"{path_scores.path}: another {what} ({own[:12]}, trained with {expected[:12]})")
    if path_scores.precision and _BITS.get(path_scores.precision, 0) < _BITS.get(memory.precision, 0):
        found.append(f"{path_scores.path}: weights in {path_scores.precision}, trained in {memory.precision}")
    other = sum(prompt != memory.prompts.get(item, prompt) for item, prompt in path_scores.prompts.items())
    if other:
        found.append(f"{path_scores.path}: prompts of other tokens than in training: {other}")
    return found


MEMORY = "parity_memory.json"
"""The file beside trained weights with their scores in the trainer's memory."""

_ITEMS, _REPORT = "parity_items.json", "parity.json"
_WEIGHTS = ("adapter", "merged", "weights")
_EXPORTED = (*_WEIGHTS, "manifest.json", "README.md", _REPORT)
_LISTED = 20  # the most alternatives to a token that servers list


class ParityItem(FrozenModel):
    """A question to a judge whose reply is a form, as it is stored. `texts` and `options` are those of the form; each
    place of the form has a dimension, and each of its options a level, as a share of the dimension's range."""

    id: str
    system: str
    parts: tuple[dict[str, str], ...]
    texts: tuple[str, ...]
    options: tuple[tuple[str, ...], ...]
    dimensions: tuple[str, ...]
    levels: tuple[tuple[float, ...], ...]
    max_tokens: int

    @classmethod
    def of(
        cls, name: str, query: Query, dimensions: tuple[str, ...], levels: tuple[tuple[float, ...], ...]
    ) -> ParityItem:
        """The item of a query. Raises `InputError` for a query with a video."""
        if query.clips:
            raise InputError("parity", name, found="a video", expected="texts and pictures")
        form = query.form or FixedForm(("",), ())
        parts = tuple(
            {"text": part} if isinstance(part, str) else {"jpeg": base64.b64encode(part).decode()}
            for part in query.parts
            if isinstance(part, (str, bytes))
        )
        return cls(
            id=name,
            system=query.system,
            parts=parts,
            texts=form.texts,
            options=form.options,
            dimensions=dimensions,
            levels=levels,
            max_tokens=query.choices.max_tokens,
        )

    @property
    def form(self) -> FixedForm:
        """The form of the reply."""
        return FixedForm(self.texts, self.options)

    @property
    def query(self) -> Query:
        """The question as local weights are asked it."""
        parts = tuple(part["text"] if "text" in part else base64.b64decode(part["jpeg"]) for part in self.parts)
        return Query(self.system, parts, Choices(self.max_tokens), self.form)

    def expected(self, chances: Sequence[Mapping[str, float]]) -> tuple[dict[str, float], dict[str, float]]:
        """The mean level under these probabilities of the form's options, and the likeliest level, by dimension."""
        scores, likeliest = {}, {}
        for name, levels, some in zip(self.dimensions, self.levels, chances, strict=True):
            total = sum(some.values())
            if total > 0:
                scores[name] = sum(level * one for level, one in zip(levels, some.values(), strict=True)) / total
                likeliest[name] = max(zip(some.values(), levels, strict=True))[1]
        return scores, likeliest


def local_scores(path: ParityPath, weights: Weights, items: Sequence[ParityItem]) -> PathScores:
    """The scores of weights in this process."""
    weights.load()
    said = {item.id: item.expected(weights.generate([item.query], lambda: False)[0].chances) for item in items}
    return PathScores(
        path=path,
        scores={name: scores for name, (scores, _) in said.items()},
        levels={name: levels for name, (_, levels) in said.items()},
        prompts={item.id: content_hash(weights.prompts([item.query])["input_ids"][0].tolist()) for item in items},
        template=template_hash(weights),
        tokenizer=content_hash(weights.tokenizer.backend_tokenizer.to_str()),
        precision=_precision(weights.model),
    )


def _precision(model: Any) -> str:
    """The number type of the weights, or a smaller one that represents all of them exactly: weights that were merged in it
    may be stored in a larger one."""
    import torch

    stored = model.dtype
    if stored == torch.float32:
        for smaller in (torch.bfloat16, torch.float16):
            if all(torch.equal(parameter, parameter.to(smaller).to(stored)) for parameter in model.parameters()):
                stored = smaller
                break
    return str(stored).removeprefix("torch.")


def remembered(weights: Weights, items: Sequence[ParityItem]) -> dict[str, str]:
    """The scores of weights in the trainer's memory, as a file (name and content) that is kept with the weights."""
    return {MEMORY: local_scores("memory", weights, items[:ITEMS]).model_dump_json() + "\n"}


async def served_scores(client: ModelClient, items: Sequence[ParityItem]) -> PathScores:
    """The scores of a server, asked as by any judge: the model writes its reply freely, and the probabilities are those of
    its tokens. A reply that is not the filled-in form gives no score."""
    scores, likeliest = {}, {}
    for item in items:
        parts: list[Part] = [
            part["text"] if "text" in part else Frame(base64.b64decode(part["jpeg"]), None, "") for part in item.parts
        ]
        chances = form_chances(item.form, await client.ask(parts, system=item.system))
        if chances is not None:
            scores[item.id], likeliest[item.id] = item.expected(chances)
    return PathScores(path="served", scores=scores, levels=likeliest)


def form_chances(form: FixedForm, reply: Reply[Any]) -> list[dict[str, float]] | None:
    """The probability of each option in each place of a form, from the tokens of a reply that fills it in; None if the text
    is not such a reply, or if an option shares its token with other text."""
    blanks = [b"(" + b"|".join(re.escape(one.encode()) for one in some) + b")" for some in form.options]
    fixed = [re.escape(text.encode()) for text in form.texts]
    pattern = b"".join(text + blank for text, blank in zip(fixed, [*blanks, b""], strict=True))
    text = b"".join(token.text for token in reply.tokens)
    filled = re.fullmatch(rb"\s*" + pattern + rb"\s*", text)
    if filled is None or text.decode(errors="replace").strip() != reply.text.strip():
        return None
    found = []
    for row, options in enumerate(form.options, start=1):
        end = 0
        token = next(one for one in reply.tokens if (end := end + len(one.text)) > filled.start(row))
        at = filled.start(row) - (end - len(token.text))
        head, tail = token.text[:at], token.text[at + len(filled[row]) :]
        if head.strip() or tail.strip():
            return None
        found.append({option: token.chances.get(head + option.encode() + tail, 0.0) for option in options})
    return found


def check_run(run: Path, *, server: ModelSpec | None = None, device: str = "auto") -> ParityReport:
    """Compares the paths of a run's adapter, which is first merged into `run/merged`, unless that exists; weights that were
    trained without an adapter are not merged. The result is written to `run/parity.json`, with the hashes of the weights
    that were compared. `server` replaces the server that is started here for the check.

    Raises `InputError` if the run has no trained weights, no items or no scores from the trainer's memory.
    """
    full, adapter, merged = run / "weights", run / "adapter", run / "merged"
    trained = full if full.is_dir() else adapter
    memory = read_model(trained / MEMORY, PathScores, "the scores in the trainer's memory")
    base, items = str(read_origin(trained).get("base")), read_items(run)
    found = [local_scores("base", _weights(base, device), items)]
    if trained is adapter:
        found.append(local_scores("reloaded", _weights(f"{base}+{adapter}", device), items))
        if not merged.exists():
            merge(Path(base), adapter, merged)
    weights = _weights(str(merged if trained is adapter else full), device)
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


class CheckedParity(FrozenModel):
    """The faults that a comparison found, and the hashes of the weights that were compared."""

    faults: list[str]
    weights_sha256: dict[str, str]


def require_parity(run: Path) -> CheckedParity:
    """Raises `InputError` unless the weights in the run's folder were compared, without a fault."""
    kept = read_model(run / _REPORT, CheckedParity, "a run whose paths were compared (proctor check judge)")
    if _hashes(run) != kept.weights_sha256:
        raise InputError(run, found="other weights than those that were compared", expected="the same")
    ParityReport((), tuple(kept.faults)).check()
    return kept


def export_run(run: Path, out: Path) -> Path:
    """Writes everything that others need to use a judge to a new folder, which appears complete or not at all: adapter,
    merged weights, manifest, card and the result of the comparison. It contains nothing of the training answers.

    Raises `InputError` unless these weights were compared without a fault.
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
    longest = max(item.max_tokens for item in items)
    settings = {"temperature": 0.0, "max_tokens": longest, "openai_logprobs": True, "openai_top_logprobs": _LISTED}

    async def ask() -> PathScores:
        client = ModelClient(spec.model_copy(update={"settings": {**settings, **spec.settings}}))
        try:
            return await served_scores(client, items)
        finally:
            await client.aclose()

    return asyncio.run(ask())


class _ParityItems(FrozenModel):
    items: tuple[ParityItem, ...]


def write_items(folder: Path, items: Sequence[ParityItem]) -> None:
    """Writes the first `ITEMS` items into the run's folder. They contain patients' texts, so they are never exported."""
    write_whole(folder / _ITEMS, _ParityItems(items=tuple(items[:ITEMS])).model_dump_json() + "\n")


def read_items(folder: Path) -> list[ParityItem]:
    """The items of a run's folder. Raises `InputError` if there are none."""
    return list(read_model(folder / _ITEMS, _ParityItems, "the items of the parity check").items)
