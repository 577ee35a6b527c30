"""What the right answers of other items give away, and folds that keep pools of options together."""

from __future__ import annotations

import numpy as np

from proctor.audits.items import audit_items
from proctor.audits.items.audit import fold_units, option_pools
from proctor.audits.items.baselines import fold_of_groups, known_answers
from proctor.audits.items.options import OptionTable, right_options
from proctor.core import OPTION_POOL, Item, Reference, generator
from proctor.core.formats import ChoiceFormat
from proctor.reports import audit_section
from proctor.reports.blocks import Prose


def exchanged(pools: int = 8, size: int = 16, *, tagged: bool = True) -> list[Item]:
    """Blocks of four items with the same options, each of which is right in one; every item is a group of its own."""
    items = []
    rng = generator(0, "exchanged")
    for number in range(pools * size):
        first = number - number % 4
        options = [f"answer {first + row} of its own kind" for row in range(4)]
        order = [int(row) for row in rng.permutation(4)]
        items.append(
            Item(
                id=f"q{number:03d}",
                group=f"v{number:03d}",
                question="What is seen in the clip?",
                answer=ChoiceFormat(),
                options=tuple(options[row] for row in order),
                reference=Reference(answer="ABCD"[order.index(number % 4)]),
                tags={OPTION_POOL: f"{number // size}"} if tagged else {},
            )
        )
    return items


def test_who_knows_the_other_answers_finds_the_right_one() -> None:
    items = exchanged()
    table = OptionTable(items, 0)
    pools = option_pools(table, right_options(table), draws=200, seed=0)
    assert pools is not None
    assert (pools.pools, pools.known.value) == (8, 1.0)
    untagged = OptionTable(exchanged(tagged=False), 0)
    assert option_pools(untagged, right_options(untagged), draws=200, seed=0) is None


def test_folds_keep_a_pool_together() -> None:
    items = exchanged()
    fold = fold_of_groups(fold_units(items), 0)
    assert all(len(set(fold[16 * pool : 16 * pool + 16])) == 1 for pool in range(8))
    assert fold_units(exchanged(tagged=False))[:2] == ["v000", "v001"]


def test_a_group_in_a_pool_brings_all_its_items() -> None:
    items = exchanged(pools=2, size=4)
    more = items[0].model_copy(update={"id": "more", "tags": {}})  # of the group v000, in no pool itself
    units = fold_units([*items, more])
    assert units[8] == units[0] == units[3]
    assert units[4] != units[0]


def test_by_pools_nothing_is_found_and_by_groups_everything() -> None:
    """The same items: only the tag says that their folds must not part them."""
    tagged = audit_items(exchanged(), draws=300).format("choice")
    plain = audit_items(exchanged(tagged=False), draws=300).format("choice")
    assert tagged is not None
    assert plain is not None
    assert tagged.selected is not None
    assert plain.selected is not None
    assert tagged.selected.covers_chance is True
    assert plain.selected.covers_chance is False
    assert "not-right-elsewhere" in plain.selected.chosen
    assert plain.selected.accuracy.value is not None
    assert plain.selected.accuracy.value > 0.6
    assert plain.pools is None
    options_alone = {
        "longest-option",
        "shortest-option",
        "least-offered",
        "most-offered",
        "odd-one-out",
        "most-capitals",
    }
    by_name = {one.name: one.accuracy.value for one in tagged.baselines}
    tied = by_name["least-offered"]  # every option is offered as often: chance, by the same numbers at random
    assert all(by_name[name] == tied for name in options_alone - {"odd-one-out"})


def test_told_answers_by_hand() -> None:
    """Two groups: what is right in the first is the most and the least often right one in the second."""
    items = [
        Item(
            id=f"q{number}",
            group=f"v{number}",
            question=question,
            answer=ChoiceFormat(),
            options=options,
            reference=Reference(answer="A"),
        )
        for number, (question, options) in enumerate(
            [
                ("Which plane is shown?", ("sagittal plane", "axial plane")),
                ("Which plane is shown now?", ("sagittal plane", "colour Doppler")),
                ("Why is gain changed?", ("less noise", "sagittal plane")),
            ]
        )
    ]
    table = OptionTable(items, 0)
    guess = known_answers(table, right_options(table))
    train, test = np.array([0]), np.array([1, 2])
    assert guess["right-elsewhere", "the option that is right most often in other groups"](train, test).tolist() == [
        True,
        False,
    ]
    assert guess["not-right-elsewhere", "the option that is right least often in other groups"](
        train, test
    ).tolist() == [False, True]
    similar = guess["similar-questions", "the option most like the right answers to similar questions of other groups"]
    assert similar(train, test).tolist()[0] is True  # "sagittal plane" was right where a plane was asked for


def test_the_page_says_what_pools_cost() -> None:
    section = audit_section(audit_items(exchanged(), draws=200))
    assert section is not None
    said = [block.text for block in section.blocks if isinstance(block, Prose)]
    assert any("exchanged within 8 pools of groups" in one and "100.0 %" in one for one in said)
