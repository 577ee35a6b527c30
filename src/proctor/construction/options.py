"""Where the right one stands among a choice's options."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from proctor.core.formats import option_letters


def deal_options(
    options: Sequence[Sequence[str]], right: Sequence[int], rng: np.random.Generator
) -> list[tuple[list[str], str]]:
    """Reshuffles the options of many choices: per choice the options in their new order and the key's letter.

    `right[i]` is the index of the right one among `options[i]`. Among choices of the same size every letter
    is the key equally often (up to one), which of them where is at random, and so are the places of the others.
    """
    decks: dict[int, list[int]] = {}
    for size in sorted({len(some) for some in options}):
        number = sum(len(some) == size for some in options)
        first = int(rng.integers(size))
        deck = [(first + place) % size for place in range(number)]
        decks[size] = [deck[int(index)] for index in rng.permutation(number)]
    dealt = []
    for some, key in zip(options, right, strict=True):
        place = decks[len(some)].pop()
        others = [option for index, option in enumerate(some) if index != key]
        mixed = [others[int(index)] for index in rng.permutation(len(others))]
        mixed.insert(place, some[key])
        dealt.append((mixed, option_letters(len(some))[place]))
    return dealt
