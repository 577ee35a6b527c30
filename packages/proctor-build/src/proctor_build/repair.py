"""Repair choice questions that can be guessed: right answers of other questions replace their wrong options."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from proctor.audits.items import audit_items
from proctor.core import OPTION_POOL, InputError, Item, Reference, count_of, generator
from proctor.core.formats import ChoiceFormat, option_letters
from proctor.metrics.text import Encoder
from proctor.tracks import deal_options
from proctor_build.distractors import Bounds, OptionCosts, Texts, alike, looks_right, read_texts, right_answer
from proctor_build.option_exchange import Blocks, Exchange, Floats, exchange

TO_CONFIRM = "to be confirmed by a clinician"
_ATTEMPTS = 12
_QUICK = 30  # rounds
_SEARCHES = 5


@dataclass(frozen=True)
class RepairSettings:
    """Items exchange options if they have the tags `same` in common. Those with one value within each group (the organ)
    delimit pools, the others (the type of question) classes within a pool. Pools are merged until they hold `pool_items`
    items.

    `similar` is the largest similarity of a wrong option to the right one (with an encoder also `similar_meaning`, the
    cosine of their embeddings), `supported` the largest share of its content words in what is known of the clip. At
    least the share `keep` of the items must stay; the others may be left out, if a baseline that exceeds an accuracy of
    `most` answers them. `rounds` is the number of search steps per item, `search` the number of the search (see
    `accepted_repair`). Published wrong options serve as spare texts if they look at least as right as a share `looks` of
    the right answers (1: none); a block has at most `lent` spare texts."""

    seed: int = 0
    search: int = 1
    same: tuple[str, ...] = ()
    rounds: int = 100
    pool_items: int = 24
    similar: float = 0.5
    similar_meaning: float = 0.75
    supported: float = 0.5
    keep: float = 0.9
    most: float = 0.3
    looks: float = 0.25
    lent: int = 2

    @property
    def bounds(self) -> Bounds:
        """The bounds of single options."""
        return Bounds(self.similar, self.similar_meaning, self.supported)


@dataclass(frozen=True)
class ReplacedOption:
    """A replaced wrong option: the old text, the new one (at `letter`), and the item whose right answer it is, or, if it is
    not `right_there`, whose published wrong option it is. `similarity` is to the item's right answer, `supported` the share of content words in what is known of the clip,
    `gap_s` the seconds between both clips of one medium. `state` is `TO_CONFIRM`, or "as published" if the new text is
    an old option of the item."""

    item: str
    letter: str
    old: str
    new: str
    source: str
    source_group: str
    right_there: bool
    similarity: float
    supported: float
    gap_s: float | None
    state: str

    @property
    def to_confirm(self) -> bool:
        """Whether a clinician must confirm it."""
        return self.state == TO_CONFIRM


@dataclass(frozen=True)
class RepairedChoices:
    """The repaired items by id, the replaced options, the items left out with the reason, the groups of each pool, how
    far each cue is above chance, and the value of the objective."""

    items: dict[str, Item]
    options: tuple[ReplacedOption, ...]
    left_out: dict[str, str]
    pools: dict[str, tuple[str, ...]]
    cues: dict[str, float]
    objective: float


def repair_items(
    items: Sequence[Item],
    settings: RepairSettings = RepairSettings(),
    *,
    beside: Sequence[Item] = (),
    encode: Encoder | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> RepairedChoices:
    """Replaces the wrong options of choice items by right answers of others, so that text-only baselines do no better
    than chance; stems and right options stay. The texts of items `beside` (uncounted ones, free responses) are assumed
    to be true of overlapping clips. Spare texts are right nowhere: right answers of uncounted choices among them and of
    items that are left out, and published wrong options that look like right answers (see `looks_right`).

    Options are exchanged within classes (one pool, equal tags, equal numbers of options) in blocks (see `exchange` for
    the objective, and `OptionCosts` for the cost of an option and what is forbidden). The cues in the
    objective are the baselines that blocks don't rule out, most and least of each: words shared with the stem, TF-IDF
    similarity to the stem, to the rest of the group and to its name, right answers to similar questions of other pools,
    length and looks, and with `encode` the similarity of meaning to the stem. The right letters are spread evenly by the seed.

    Raises `InputError` if there is no choice item with a reference, for an invalid reference, and if fewer than `keep`
    of the items could stay, with the reasons.
    """
    choices = _asked(items)
    left_out = dict.fromkeys(_with_several(choices), "several right options")
    several = set(left_out)
    asked = len(choices)
    search = _search(choices, several, settings, beside, [*items, *beside], encode)
    choices, texts = list(search.choices), search.texts
    unfit: set[int] = set()  # spare rows without a question that they could serve
    quick = True  # a short search shows which items can't stay, before the full one
    for attempt in range(_ATTEMPTS):
        rows = [row for row in range(asked) if choices[row].id not in left_out]
        pools = _pools(choices, rows, texts, settings)
        classes, alone = _exchangeable(_classes(choices, rows, pools, settings))
        left_out |= {choices[row].id: "too few questions of its kind to exchange with" for row in alone}
        _check_kept(choices[:asked], left_out, settings)
        free = [row for row, item in enumerate(choices) if row >= asked or item.id in left_out]
        spare = [row for row in free if row not in unfit and choices[row].id not in several]
        lent = _classes(choices, spare, pools, settings)
        rng = generator(settings.seed, "repair", str(settings.search), str(attempt))
        with_spare = {key: [*some, *lent.get(key, ())] for key, some in classes.items()}
        found = search.blocks(with_spare, pools, rng, None if quick else progress, quick=quick, spare=frozenset(spare))
        out = _excluded(search, found, left_out, asked, quick=quick or attempt == _ATTEMPTS - 1)
        if not out and not quick:
            break
        quick = bool(out) and quick
        unfit |= out.keys() & set(spare)
        left_out |= {choices[row].id: why for row, why in out.items() if row not in spare}
        _check_kept(choices[:asked], left_out, settings)
    return _repaired(choices, search, found, left_out, pools)


def _asked(items: Sequence[Item]) -> list[Item]:
    """The choices with a reference, by id."""
    choices = [item for item in items if isinstance(item.answer, ChoiceFormat) and item.reference is not None]
    if not choices:
        raise InputError("items", found="no choice question with a reference", expected="questions with options")
    return sorted(choices, key=lambda item: item.id)


def _with_several(choices: Sequence[Item]) -> list[str]:
    """The choices with several right options, by id."""
    return [item.id for item in choices if item.reference is not None and item.reference.accepted]


def _search(
    asked: Sequence[Item],
    several: Collection[str],
    settings: RepairSettings,
    beside: Sequence[Item],
    known: Sequence[Item],
    encode: Encoder | None,
) -> _Search:
    """The search over the choices that are asked and the spare ones behind them, with the texts of all `known` items."""
    choices = [*asked, *_spare(asked, beside)]
    looks = looks_right(choices)
    published = _published(choices, len(asked), looks, several, settings)
    own = {len(choices) + number: row for number, (row, _, _) in enumerate(published)}
    of_right = [scores[_slot(item)] for item, scores in zip(choices, looks, strict=True)]
    shown = [*of_right, *(score for _, _, score in published)]
    choices += [item for _, item, _ in published]
    texts = read_texts(choices, beside=known, encode=encode)
    costs = OptionCosts(choices, texts, settings.bounds, own)
    return _Search(costs, settings, {"length": [float(len(key)) for key in texts.keys], "looks": shown})


def _exchangeable(classes: Mapping[_Class, list[int]]) -> tuple[dict[_Class, list[int]], list[int]]:
    """The classes with at least as many rows as options, and the rows of the others."""
    kept = {key: rows for key, rows in classes.items() if len(rows) >= key[-1]}
    return kept, [row for key, rows in classes.items() if key not in kept for row in rows]


def _spare(choices: Sequence[Item], beside: Sequence[Item]) -> list[Item]:
    """The choices beside those that are repaired: uncounted ones with one right option."""
    known, found = {item.id for item in choices}, []
    for item in sorted(beside, key=lambda item: item.id):
        if isinstance(item.answer, ChoiceFormat) and item.reference is not None and item.id not in known:
            try:
                right_answer(item)
            except InputError:
                continue  # nobody is asked it, so it may be invalid
            if not item.reference.accepted:
                found.append(item)
                known.add(item.id)
    return found


def _published(
    choices: Sequence[Item],
    asked: int,
    looks: Sequence[Sequence[float]],
    several: Collection[str],
    settings: RepairSettings,
) -> list[tuple[int, Item, float]]:
    """Published wrong options of the choices that are `asked`, the first ones, that look like right answers: as items in
    which they were right, each with the row of the choice that offers it and how right it looks: at least as much as the
    share `looks` of the right answers does not."""
    usable = [row for row, item in enumerate(choices[:asked]) if item.id not in several]
    if not usable:
        return []
    least = float(np.quantile([looks[row][_slot(choices[row])] for row in usable], settings.looks))
    known = {right_answer(item).casefold().strip() for item in choices}
    found = []
    for row in usable:
        item, letters = choices[row], option_letters(len(choices[row].options))
        for slot, score in enumerate(looks[row]):
            text = item.options[slot].casefold().strip()
            if score >= least and settings.looks < 1 and text not in known:
                known.add(text)
                lent = {"id": f"{item.id} {letters[slot]}", "reference": Reference(answer=letters[slot])}
                found.append((row, item.model_copy(update=lent), score))
    return found


def _slot(item: Item) -> int:
    return item.options.index(right_answer(item))


def accepted_repair(
    items: Sequence[Item],
    settings: RepairSettings = RepairSettings(),
    *,
    beside: Sequence[Item] = (),
    encode: Encoder | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[RepairedChoices, RepairSettings]:
    """The result of the first of up to five searches after which no baseline of the item audit exceeds `most`, else of
    the one with the weakest best baseline; and its settings. With few items a baseline may exceed it by chance."""
    tries: list[tuple[float, RepairedChoices, RepairSettings]] = []
    for search in range(settings.search, settings.search + _SEARCHES):
        tried = replace(settings, search=search)
        made = repair_items(items, tried, beside=beside, encode=encode, progress=progress)
        audit = audit_items(list(made.items.values()), seed=settings.seed, draws=100, facets=(), encode=encode)
        found = audit.format("choice")
        top = max((baseline.accuracy.value or 0.0 for baseline in found.baselines), default=0.0) if found else 0.0
        tries.append((top, made, tried))
        if top <= settings.most:
            break
    _, made, used = min(tries, key=lambda one: one[0])
    return made, used


def _check_kept(choices: Sequence[Item], left_out: Mapping[str, str], settings: RepairSettings) -> None:
    kept = 1 - len(left_out) / len(choices)
    if kept < settings.keep or kept == 0:
        reasons = "; ".join(
            f"{count_of(count, 'item')}: {why}" for why, count in Counter(left_out.values()).most_common()
        )
        found = f"{len(choices) - len(left_out)} of {count_of(len(choices), 'item')} that can be repaired ({reasons})"
        raise InputError(
            "repair", found=found, expected=f"{settings.keep:.0%} of them at least" if settings.keep else "some"
        )


_Class = tuple[str, tuple[str, ...], int]


@dataclass(frozen=True)
class _Found:
    """The blocks by number of options, how far each cue is above chance, and the cues' scores."""

    blocks: dict[int, Blocks]
    cues: Floats
    scores: Floats

    def options(self) -> dict[int, list[int]]:
        return {row: offered for width, one in self.blocks.items() for row, offered in one.options(width).items()}


class _Search:
    """The search for blocks, by the costs of options."""

    def __init__(self, costs: OptionCosts, settings: RepairSettings, alone: Mapping[str, Sequence[float]]) -> None:
        self.costs, self.texts, self.choices, self.settings = costs, costs.texts, costs.choices, settings
        self.alone = {name: np.broadcast_to(scores, costs.cost.shape) for name, scores in alone.items()}

    def blocks(
        self,
        classes: Mapping[_Class, Sequence[int]],
        pools: Mapping[str, str],
        rng: np.random.Generator,
        progress: Callable[[int, int], None] | None,
        *,
        quick: bool,
        spare: frozenset[int],
    ) -> _Found:
        """Blocks for all classes, which hold `spare` rows, too; a quick search only avoids forbidden options."""
        rounds = min(_QUICK, self.settings.rounds) if quick else self.settings.rounds
        pool = np.unique([pools.get(item.group, "") for item in self.choices], return_inverse=True)[1]
        scores = self.texts.cues(pool) | self.alone
        cues = np.stack(list(scores.values())).round(6)
        found, shares, total = {}, np.zeros((len(cues), 2)), 0
        for width in sorted({key[-1] for key in classes}):
            of_width = [rows for key, rows in sorted(classes.items()) if key[-1] == width]
            cost, seen = (0 * self.costs.cost, cues[:0]) if quick else (self.costs.cost, cues)
            problem = Exchange(of_width, cost, self.costs.forbidden, seen, width, spare, self.settings.lent)
            found[width] = exchange(problem, rng, rounds=rounds, progress=progress)
            count = sum(row not in spare for rows in of_width for row in rows)
            if not quick:
                shares += (found[width].cues[:, [-1, 0]] - 1 / width) * count
            total += count
        signed = np.stack([cues, -cues], axis=1).reshape(-1, *cues.shape[1:])
        return _Found(found, (shares / max(1, total)).ravel(), signed)

    def cue_names(self) -> list[str]:
        return [f"{sign} {name}" for name in [*self.texts.cue_names, *self.alone] for sign in ("most", "least")]


def _pools(choices: Sequence[Item], rows: Sequence[int], texts: Texts, settings: RepairSettings) -> dict[str, str]:
    """The pool of each group. Groups of the same kind are merged, the smallest pool with the most similar one, until
    each has enough items, and enough of every class to exchange."""
    members = defaultdict[str, list[int]](list)
    for row in rows:
        members[choices[row].group].append(row)
    steady = _steady(choices, rows, settings)
    kind = {group: _values(choices[some[0]], steady) for group, some in members.items()}
    pools = [[group] for group in sorted(members)]
    while True:
        of = [[row for group in pool for row in members[group]] for pool in pools]
        kinds = [kind[pool[0]] for pool in pools]
        small = _smallest(of, pools, kinds, [_enough(choices, rows, settings) for rows in of])
        if small is None:
            break
        others = [other for other, own in enumerate(kinds) if other != small and own == kinds[small]]
        best = max(others, key=lambda other: texts.topic[np.ix_(of[small], of[other])].mean())
        merged = sorted([*pools[small], *pools[best]])
        pools = [one for number, one in enumerate(pools) if number not in {small, best}] + [merged]
    pools.sort(key=lambda pool: (kind[pool[0]], pool))
    names = [" ".join([f"{number:02d}", *kind[pool[0]]]) for number, pool in enumerate(pools, 1)]
    named = {group: name for name, pool in zip(names, pools, strict=True) for group in pool}
    return {item.group: named.get(item.group, "") for item in choices}


def _smallest(
    rows: Sequence[Sequence[int]], pools: Sequence[Sequence[str]], kinds: Sequence[object], enough: Sequence[bool]
) -> int | None:
    """The smallest pool that has not `enough`, and another one of its kind to be merged with."""
    small = [k for k, kind in enumerate(kinds) if not enough[k] and kinds.count(kind) > 1]
    return min(small, key=lambda k: (len(rows[k]), pools[k][0]), default=None)


def _steady(choices: Sequence[Item], rows: Sequence[int], settings: RepairSettings) -> list[str]:
    """The tags of `same` with one value within each group."""
    values = defaultdict[tuple[str, str], set[str]](set)
    for row in rows:
        for tag in settings.same:
            values[tag, choices[row].group].add(str(choices[row].tags.get(tag, "")))
    return [tag for tag in settings.same if all(len(some) == 1 for (one, _), some in values.items() if one == tag)]


def _enough(choices: Sequence[Item], rows: Sequence[int], settings: RepairSettings) -> bool:
    counts = Counter((_values(choices[row], settings.same), len(choices[row].options)) for row in rows)
    return len(rows) >= settings.pool_items and all(count >= width for (_, width), count in counts.items())


def _values(item: Item, tags: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(item.tags.get(tag, "")) for tag in tags)


def _classes(
    choices: Sequence[Item], rows: Sequence[int], pools: Mapping[str, str], settings: RepairSettings
) -> dict[_Class, list[int]]:
    classes = defaultdict[_Class, list[int]](list)
    for row in rows:
        item = choices[row]
        classes[pools.get(item.group, ""), _values(item, settings.same), len(item.options)].append(row)
    return dict(classes)


def _excluded(
    search: _Search, found: _Found, left_out: Mapping[str, str], total: int, *, quick: bool
) -> dict[int, str]:
    """The rows to leave out of the next search, with the reason: those with forbidden options only; after a full search
    also those that a cue above the bound answers, as far as `keep` allows."""
    pairs = [pair for block in found.blocks.values() for pair in block.forbidden]
    if pairs:
        often = Counter(row for pair in pairs for row in pair)
        out: dict[int, str] = {}
        for one, other in pairs:
            if one not in out and other not in out:
                out[max(one, other, key=lambda row: (often[row], row))] = "no wrong option that is unlike the right one"
        return out
    settings = search.settings
    room = int((1 - settings.keep) * total + 1e-9) - len(left_out)
    offered = found.options()
    chance = float(np.mean([1 / len(some) for some in offered.values()]))
    above = found.cues - (settings.most - chance)  # the cues count from chance
    if quick or room <= 0 or above.max() <= 0:
        return {}
    worst = int(above.argmax())
    scores = found.scores[worst]
    margin = {row: scores[row, row] - scores[row, some[1:]].max() for row, some in offered.items()}
    given = sorted((row for row in margin if margin[row] > 0), key=lambda row: (-margin[row], row))
    wanted = int(np.ceil(above[worst] * len(offered) / (1 - chance))) + 1
    return dict.fromkeys(given[: min(room, wanted)], f"its own words tell ({search.cue_names()[worst]})")


def _repaired(
    choices: Sequence[Item], search: _Search, found: _Found, left_out: Mapping[str, str], pools: Mapping[str, str]
) -> RepairedChoices:
    costs, settings = search.costs, search.settings
    offered = found.options()
    rows = sorted(offered)
    texts = [[costs.texts.keys[source] for source in offered[row]] for row in rows]
    rng = generator(settings.seed, "repair", str(settings.search), "letters")
    items, replaced = {}, []
    for row, (options, letter) in zip(rows, deal_options(texts, [0] * len(rows), rng), strict=True):
        item = choices[row]
        reference = item.reference or Reference(answer=letter)
        items[item.id] = item.model_copy(
            update={
                "options": tuple(options),
                "reference": reference.model_copy(update={"answer": letter}),
                "tags": {**item.tags, OPTION_POOL: pools[item.group]},
            }
        )
        replaced += _replaced(item, options, letter, offered[row], row, costs)
    names = sorted({pools[choices[row].group] for row in rows})
    in_pool = {
        name: tuple(sorted({choices[r].group for r in rows if pools[choices[r].group] == name})) for name in names
    }
    objective = float(sum(block.objective for block in found.blocks.values()))
    shares = dict(zip(search.cue_names(), map(float, found.cues), strict=True))
    return RepairedChoices(items, tuple(replaced), dict(left_out), in_pool, shares, objective)


def _replaced(
    item: Item, options: Sequence[str], letter: str, sources: Sequence[int], row: int, costs: OptionCosts
) -> list[ReplacedOption]:
    key = costs.texts.keys[row]
    before = [option for option in item.options if option != key]
    by_text = {costs.texts.keys[source]: source for source in sources}
    wrong = [(slot, text) for slot, text in zip(option_letters(len(options)), options, strict=True) if slot != letter]
    found = []
    for (slot, text), old in zip(wrong, before, strict=True):
        source = by_text[text]
        gap = float(costs.gaps[row, source])
        found.append(
            ReplacedOption(
                item=item.id,
                letter=slot,
                old=old,
                new=text,
                source=costs.choices[costs.published.get(source, source)].id,
                source_group=costs.choices[source].group,
                right_there=source not in costs.published,
                similarity=round(alike(key, text), 3),
                supported=round(float(costs.texts.supported[row, source]), 3),
                gap_s=round(gap, 2) if np.isfinite(gap) else None,
                state="as published" if text in before else TO_CONFIRM,
            )
        )
    return found
