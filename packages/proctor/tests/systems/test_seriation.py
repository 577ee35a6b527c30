"""Systems that order frames without a model: the shortest path against all paths, motion between pictures, and a direction
that is stated, learned or unknown."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Sequence
from itertools import pairwise, permutations
from math import factorial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from proctor.core import Answer, ConfigurationError, Frame, Item, generator
from proctor.core.formats import BinaryFormat, OrderingFormat
from proctor.models import ModelClient, ModelSpec
from proctor.systems import build_system, shortest_path
from proctor.systems.seriation import MOST_EXACT, LearnedStart, Seriation, learned, moved
from tests.support.key_frame_model import Instances, made_instances
from tests.support.program import proctor
from tests.support.stills import Shown, picture
from tests.support.virtual_time import steps_of


def item(labels: str = "ABCD") -> Item:
    return Item(id="q1", group="v1", question="In which order?", answer=OrderingFormat(labels=tuple(labels)))


def asked(name: str, steps: dict[str, bytes], **more: Any) -> Answer:
    view = Shown([Frame(jpeg, None, label) for label, jpeg in steps.items()])
    return asyncio.run(build_system(name, options=more).answer(item("".join(steps)), view))


def test_as_given_answers_with_the_labels_as_they_are() -> None:
    found = asked("as-given", {"A": b"", "B": b"", "C": b""})
    assert (found.text, found.parsed) == ("Answer: A > B > C", ["A", "B", "C"])


def test_seriation_follows_what_moves() -> None:
    steps = {"A": picture(2), "B": picture(0), "C": picture(3), "D": picture(1)}
    found = asked("seriation", steps)
    assert found.parsed == ["B", "D", "A", "C"]  # of the ends B and C, B is given earlier
    assert found.extra["evidence"] == "pixels"


def test_the_direction_is_the_stated_prior() -> None:
    steps = {"A": picture(1, 2), "B": picture(2, 3), "C": picture(0, 1), "D": picture(3, 5)}
    assert asked("seriation", steps, start="plainer").parsed == list("CABD")
    assert asked("seriation", steps, start="busier").parsed == list("DBAC")
    assert asked("seriation", steps, start="given").parsed == list("CABD")
    with pytest.raises(ConfigurationError, match=r"^seriation: option 'start': .*'given', 'plainer' or 'busier'"):
        build_system("seriation", options={"start": "left"})


@pytest.mark.parametrize(
    ("frames", "because"),
    [
        ({}, "there is not one picture for each label"),
        ({"A": picture(0), "B": picture(1)}, "there is not one picture for each label"),
        (dict.fromkeys("ABCD", picture(0)), "all pictures look the same"),
    ],
)
def test_where_there_is_nothing_to_see_it_guesses(frames: dict[str, bytes], because: str) -> None:
    view = Shown([Frame(jpeg, None, label) for label, jpeg in frames.items()])
    found = asyncio.run(Seriation(seed=3).answer(item(), view))
    assert found.extra == {"evidence": "guess", "because": because}
    assert sorted(map(str, found.parsed if isinstance(found.parsed, list) else ())) == list("ABCD")
    assert asyncio.run(Seriation(seed=3).answer(item(), view)) == found


@pytest.mark.parametrize("name", ["as-given", "seriation"])
def test_orderings_alone_are_answered(name: str) -> None:
    other = Item(id="q1", group="v1", question="Is it?", answer=BinaryFormat())
    system = build_system(name, seed=1)
    assert system.supports(item())
    assert not system.supports(other)
    assert system.name == name
    with pytest.raises(ValueError, match="an answer of the format binary has no order"):
        asyncio.run(system.answer(other, Shown([])))


def drawn(n: int, seed: int) -> NDArray[np.float64]:
    points = generator(seed, "path").random((n, n))
    return np.triu(points, 1) + np.triu(points, 1).T


def length(path: Sequence[int], table: NDArray[np.float64]) -> float:
    return sum(float(table[a, b]) for a, b in pairwise(path))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 7), st.integers(0, 1000))
def test_the_path_is_the_shortest_of_all(n: int, seed: int) -> None:
    table = drawn(n, seed)
    found = shortest_path(table)
    assert sorted(found) == list(range(n))
    assert n < 2 or found[0] < found[-1]
    best = min(length(path, table) for path in permutations(range(n)))
    assert length(found, table) == pytest.approx(best)


def test_ten_are_exact_at_the_cost_of_their_subsets_and_more_are_still_a_path() -> None:
    n = MOST_EXACT
    assert steps_of(lambda: shortest_path(drawn(n, 0))) < 2 * n * n * 2**n < factorial(n) / 10
    line = np.abs(np.subtract.outer(np.arange(16.0), np.arange(16.0)))
    mixed = generator(0, "mixed").permutation(16)
    found = shortest_path(line[np.ix_(mixed, mixed)])
    assert [int(mixed[position]) for position in found] in (list(range(16)), list(range(16))[::-1])


def ground(shift: int, bright: int = 0, size: tuple[int, int] = (160, 90)) -> bytes:
    """A smooth random ground, shifted to the right by this many points."""
    from scipy.ndimage import gaussian_filter

    noise = gaussian_filter(generator(1, "ground").normal(0, 1, (90, 260)), 3)
    points = (128 + 90 * noise / np.abs(noise).max())[:, 60 - shift : 220 - shift] + bright
    out = io.BytesIO()
    Image.fromarray(points.clip(0, 255).astype(np.uint8)).resize(size).convert("RGB").save(out, "JPEG", quality=95)
    return out.getvalue()


# ── motion ──


def test_motion_is_as_long_as_the_shift_and_explains_the_picture() -> None:
    far, left = moved([ground(0), ground(4), ground(12)])
    assert far[0, 1] == pytest.approx(4 / 160, rel=0.15)
    assert far[1, 2] == pytest.approx(8 / 160, rel=0.15)
    assert far[0, 2] == pytest.approx(12 / 160, rel=0.15)
    assert left.max() < 0.03  # moved back, little is left
    for table in (far, left):
        assert np.array_equal(table, table.T)
        assert not table.diagonal().any()


def test_what_moving_does_not_explain_is_left() -> None:
    _, left = moved([ground(0), ground(0, bright=60)])
    _, other = moved([ground(0), ground(4)])
    assert left[0, 1] > 5 * other[0, 1]


def test_pictures_of_another_size_can_be_compared() -> None:
    far, _ = moved([ground(0), ground(0, size=(320, 180)), ground(8, size=(80, 90))])
    assert far[0, 1] < 0.2 * far[0, 2]


def test_motion_orders_what_colours_alone_do_not() -> None:
    """A ground that drifts: all pictures are about as unlike in colour as far ones are, and near in motion."""
    steps = {"A": ground(20), "B": ground(0), "C": ground(30), "D": ground(10)}
    found = asked("seriation", steps)
    assert found.parsed in (list("BDAC"), list("CADB"))
    assert found.extra["evidence"] == "pixels"


# ── direction ──


def test_a_direction_is_learned_only_where_a_coin_would_not_show_it() -> None:
    assert LearnedStart(dict.fromkeys("abcdef", True)).start("z") == "plainer"
    assert LearnedStart(dict.fromkeys("abcdef", False)).start("z") == "busier"
    assert (
        LearnedStart(dict.fromkeys("abcdef", True)).start("a") == "given"
    )  # its own vote does not count: 5 are too few
    assert LearnedStart({name: name < "e" for name in "abcdefgh"}).start("z") == "given"
    assert LearnedStart({}).start("z") == "given"


def test_what_is_learned_is_which_end_is_plainer() -> None:
    found = learned(
        [("x", picture(0, 0), picture(1, 4)), ("y", picture(0, 4), picture(1, 0)), ("z", picture(0), picture(0))]
    )
    assert found.votes == {"x": True, "y": False}
    steps = {"A": picture(1, 2), "B": picture(2, 3), "C": picture(0, 1), "D": picture(3, 5)}
    prior = LearnedStart(dict.fromkeys("abcdef", False))
    system = Seriation(prior=prior)
    answer = asyncio.run(system.answer(item(), Shown([Frame(jpeg, None, label) for label, jpeg in steps.items()])))
    assert answer.parsed == list("DBAC")
    assert answer.extra["start"] == "busier"
    assert system.name == "seriation[learned]"
    assert system.settings["start"] == {"plainer_of_solved": [0, 6]}


@pytest.fixture(scope="module")
def instances(tmp_path_factory: pytest.TempPathFactory) -> Instances:
    return made_instances(tmp_path_factory.mktemp("instances"))


def test_the_direction_comes_from_solved_instances_on_the_command_line(instances: Instances, tmp_path: Path) -> None:
    task = instances.benchmark.media_root
    assert task is not None
    run = proctor(
        *("run", "clinicalskillqa", "--data", task, "--system", "seriation", "--option", f"learn={task}"),
        *("--store", tmp_path / "runs.db", "--cache", tmp_path / "cache"),
    )
    assert run.returncode == 0, run.stderr
    told = proctor("export", "clinicalskillqa", "--store", tmp_path / "runs.db", "--out", tmp_path / "o.csv")
    assert told.returncode == 0, told.stderr
    assert "seriation[learned]" in (tmp_path / "o.csv").read_text("utf-8")


def test_options_that_make_no_sense(instances: Instances) -> None:
    client = ModelClient(ModelSpec(name="openai:m", base_url="http://localhost:9/v1"))

    def built(clients: list[Any], **options: Any) -> Any:
        return build_system("seriation", clients, seed=0, options=options)

    assert built([], start="busier").settings["start"] == "busier"
    with pytest.raises(ConfigurationError, match="seriation: found 1 model, expected none"):
        built([client], start="busier")
    with pytest.raises(ConfigurationError, match="seriation: expected one of the options start and learn"):
        built([], start="given", learn="x")
    assert [built([], **one).name for one in ({}, {"start": "given"})] == ["seriation", "seriation"]
    assert [built([], start=one).name for one in ("plainer", "busier")] == ["seriation[plainer]", "seriation[busier]"]
    with pytest.raises(ConfigurationError, match=r"option 'start': .*\(its options: start, learn\)"):
        built([], start="left")
    task = instances.benchmark.media_root
    votes = built([], learn=str(task)).settings["start"]["plainer_of_solved"]
    assert task is not None
    assert votes[1] == len((task / "references.jsonl").read_text("utf-8").splitlines())
