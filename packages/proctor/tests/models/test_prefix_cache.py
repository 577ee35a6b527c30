"""What local weights computed of pictures is taken up for other questions about them, and changes no reply."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pillow

from proctor.core import Frame, Item
from proctor.core.formats import BinaryFormat
from proctor.models import NOT_REUSED, Choices, FixedForm, ModelClient, ModelSpec, Query, Weights
from proctor.models.prefix_cache import PrefixReuse
from proctor.models.queries import Clip, GeneratedText
from proctor.systems import ModelSystem
from tests.support.tiny_vlm import make_tiny_lm, make_tiny_vlm, tiny_qwen_vl

pytestmark = [pytest.mark.xdist_group("weights"), pytest.mark.usefixtures("offline")]

WITHIN = 1e-5
"""How far logits may differ with reuse and without; those of these weights span a unit or two."""
FORM = FixedForm(('{"a": ', "}"), (("0", "1", "2"),))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_vlm(tmp_path_factory.mktemp("weights"))


@pytest.fixture(params=["llava", "qwen2-vl", "qwen3-vl"])
def plain(request: pytest.FixtureRequest, folder: Path) -> Weights:
    """Weights that compute everything again, and attend to positions more than the usual tiny ones."""
    import torch

    if request.param != "llava":
        made = Weights.around("tiny", *tiny_qwen_vl(int(request.param[4])))
    else:
        made = Weights("tiny", str(folder), "cpu")
        made.load()
    with torch.no_grad():
        for weight in made.model.model.language_model.parameters():
            weight.mul_(4 if weight.dim() > 1 else 1)
    return made


def reusing(plain: Weights, most: float = 1e9) -> Weights:
    """The same weights, which reuse."""
    made = Weights.around("tiny", plain.model, plain.processor)
    made.reuse_prefixes(most)
    return made


def picture(seed: int, size: tuple[int, int] = (64, 48)) -> bytes:
    pixels = np.random.default_rng(seed).integers(0, 255, (3, 4, 3), dtype=np.uint8)
    out = io.BytesIO()
    Pillow.fromarray(pixels).resize(size).save(out, "JPEG")
    return out.getvalue()


VIDEOS = (
    (picture(1), picture(2), picture(3)),
    (picture(4, (96, 64)), picture(5, (40, 88)), picture(6)),
    (picture(2), picture(1), picture(3)),  # the first one's, in another order
)


def asked(video: int, text: str, system: str = "Be brief.", **choices: Any) -> Query:
    shown = [part for number, one in enumerate(VIDEOS[video]) for part in (f"t = {10**number}.0 s", one)]
    return Query(system, (*shown, text), Choices(max_tokens=8, **choices))


def say(weights: Weights, queries: Sequence[Query]) -> list[GeneratedText]:
    return weights.generate(queries, lambda: False)


def same(said: Sequence[GeneratedText], others: Sequence[GeneratedText]) -> bool:
    return [replace(one, cached_tokens=0) for one in said] == [replace(one, cached_tokens=0) for one in others]


def logits(weights: Weights, queries: Sequence[Query]) -> list[Any]:
    import torch

    given = weights._asked(queries).inputs
    how = {"do_sample": False, "temperature": None, "top_p": None, "top_k": None}
    with torch.inference_mode():
        made = weights.model.generate(
            **given, max_new_tokens=6, min_new_tokens=6, output_logits=True, return_dict_in_generate=True, **how
        )
    return list(made.logits)


def test_replies_are_the_same_with_reuse_and_without(plain: Weights) -> None:
    """Batches of one to four questions on three videos, with words of any length, in any order."""
    rng, mine = np.random.default_rng(0), reusing(plain)
    seen: set[tuple[int, str]] = set()
    for _ in range(12):
        some = [(int(rng.integers(3)), ("", "Be brief.")[int(rng.integers(2))]) for _ in range(rng.integers(1, 5))]
        queries = [asked(video, "What? " * int(rng.integers(1, 6)), system) for video, system in some]
        said = say(mine, queries)
        assert same(said, say(plain, queries))
        known = []
        for one in some:
            known.append(one in seen)
            seen.add(one)
        assert [one.cached_tokens > 0 for one in said] == known
        assert all(one.cached_tokens < one.input_tokens and not one.not_reused for one in said)
    assert len(seen) == 6


def test_logits_differ_by_rounding_alone(plain: Weights) -> None:
    """With the prefix just computed, found, and in a batch of prefixes and questions of other lengths."""
    mine = reusing(plain)
    one, other, far = asked(0, "What is it?"), asked(0, "What is it, and how many are there?"), asked(1, "Well?")
    assert abs(logits(plain, [one])[0] - logits(plain, [asked(2, "What is it?")])[0]).max() > 1000 * WITHIN
    for queries in ([one], [one], [other], [other, one], [far, one, other], [one, far]):
        reused, fresh = logits(mine, queries), logits(plain, queries)
        assert len(reused) == len(fresh) == 6
        assert max(float(abs(a - b).max()) for a, b in zip(reused, fresh, strict=True)) < WITHIN


def test_pictures_are_encoded_once(plain: Weights, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = reusing(plain)
    inner = plain.model.model
    encoder = inner.vision_tower if hasattr(inner, "vision_tower") else inner.visual
    seen: list[int] = []
    hook = encoder.register_forward_hook(lambda *_: seen.append(1))
    images = type(plain.processor.image_processor)
    real = images.preprocess
    resized: list[int] = []

    def preprocess(*some: Any, **more: Any) -> Any:
        resized.append(1)
        return real(*some, **more)

    monkeypatch.setattr(images, "preprocess", preprocess)
    say(mine, [asked(0, "What?")])
    say(mine, [asked(0, "How many?"), asked(0, "Where?")])
    hook.remove()
    assert (len(seen), len(resized)) == (1, 1)


def test_a_form_is_filled_in_alike(plain: Weights) -> None:
    mine = reusing(plain)
    queries = [replace(asked(0, text), form=FORM) for text in ("Well?", "Is it well?")]
    for _ in range(2):
        said, others = say(mine, queries), say(plain, queries)
        assert [one.text for one in said] == [one.text for one in others]
        for one, other in zip(said, others, strict=True):
            assert dict(one.chances[0]) == pytest.approx(dict(other.chances[0]), abs=1e-5)
    assert all(one.cached_tokens for one in said)


def test_drawn_words_and_stop_sequences_are_the_same(plain: Weights) -> None:
    mine = reusing(plain)
    say(mine, [asked(0, "Well?")])
    for choices in ({"temperature": 2.0, "seed": 3}, {"temperature": 5.0, "top_k": 7}, {"stop": ("3", "{")}):
        assert same(say(mine, [asked(0, "What?", **choices)]), say(plain, [asked(0, "What?", **choices)]))


def test_texts_alone_are_asked_as_ever(plain: Weights) -> None:
    mine, query = reusing(plain), Query("Be brief.", ("What?",), Choices(max_tokens=8))
    assert say(mine, [query]) == say(mine, [query]) == say(plain, [query])


def test_the_least_recently_used_prefix_is_given_up(plain: Weights) -> None:
    mine = reusing(plain)
    assert mine._reuse is not None
    say(mine, [asked(0, "What?")])
    mine._reuse.kept.most = 2.5 * mine._reuse.kept.size
    found = [say(mine, [asked(video, "What?")])[0].cached_tokens > 0 for video in (1, 0, 2, 0, 1)]
    assert found == [False, True, False, True, False]
    assert mine._reuse.kept.size <= mine._reuse.kept.most


def test_pictures_too_many_to_keep_are_computed_again(plain: Weights) -> None:
    mine = reusing(plain, most=20_000)
    for _ in range(2):
        said = say(mine, [asked(0, "What?")])
        assert said[0].not_reused == "its pictures are more than prefix_cache_gb allows"
        assert same([replace(said[0], not_reused="")], say(plain, [asked(0, "What?")]))


def test_words_that_hold_a_pictures_token_are_refused_as_ever(plain: Weights) -> None:
    mine = reusing(plain)
    say(mine, [asked(0, "What?")])
    errors = []
    for weights in (mine, plain):
        with pytest.raises(ValueError, match="<image>") as caught:
            say(weights, [asked(0, "Is <image> a picture?")])
        errors.append(str(caught.value))
    assert errors[0] == errors[1]


def test_a_memory_that_is_too_small_for_both_holds_the_question_alone(
    plain: Weights, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    mine, real = reusing(plain), type(plain.model).generate
    say(mine, [asked(0, "What?")])

    def full(*some: Any, **more: Any) -> Any:
        if "past_key_values" in more:
            raise torch.OutOfMemoryError
        return real(*some, **more)

    monkeypatch.setattr(type(plain.model), "generate", full)
    said = say(mine, [asked(0, "What?"), asked(1, "What?")])
    assert same(said, [*say(plain, [asked(0, "What?")]), *say(plain, [asked(1, "What?")])])


def sliding() -> Any:
    from transformers import MistralConfig

    return MistralConfig, {"sliding_window": 16}


def recurrent() -> Any:
    from transformers import Qwen3NextConfig

    return Qwen3NextConfig, {"layer_types": ["linear_attention", "full_attention"], "head_dim": 16}


@pytest.mark.parametrize(
    ("kind", "layers"), [(sliding, "DynamicSlidingWindowLayer"), (recurrent, "LinearAttentionLayer")]
)
def test_layers_that_forget_tokens_are_not_reused(folder: Path, kind: Callable[[], Any], layers: str) -> None:
    from transformers import LlavaConfig, LlavaForConditionalGeneration

    made = Weights("tiny", str(folder), "cpu")
    made.load()
    own = made.model.config
    sizes = ["vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads"]
    sizes += ["num_key_value_heads", "bos_token_id", "eos_token_id", "pad_token_id"]
    config, more = kind()
    text = config(**{name: getattr(own.text_config, name) for name in sizes}, **more)
    changed = LlavaConfig(**(own.to_dict() | {"text_config": text, "vision_config": own.vision_config}))
    plain = Weights.around("tiny", LlavaForConditionalGeneration(changed).eval(), made.processor)
    said = say(reusing(plain), [asked(0, "What?")])
    assert said[0].not_reused == f"not all of its layers keep every token ({layers})"
    assert same([replace(said[0], not_reused="")], say(plain, [asked(0, "What?")]))


def test_tokens_that_see_what_follows_them_are_found_by_asking(plain: Weights) -> None:
    """As of models whose attention goes both ways within a prompt."""

    def ahead(_module: object, _some: object, given: dict[str, Any]) -> tuple[object, dict[str, Any]]:
        seen = given["inputs_embeds"]
        return (), given | {"inputs_embeds": seen + seen.mean(dim=1, keepdim=True)}

    hook = plain.model.model.language_model.register_forward_pre_hook(ahead, with_kwargs=True)
    mine = reusing(plain)
    (said,) = say(mine, [asked(0, "What?")])
    hook.remove()
    assert said.not_reused.startswith("its logits differ by ")
    assert said.not_reused.endswith(" of their range, expected 0.01% at most")
    assert said.cached_tokens == 0


def test_positions_that_are_not_the_models_own_are_found_by_asking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of Qwen-VL, counted as if pictures were texts."""
    import torch

    monkeypatch.setattr(
        PrefixReuse, "_positions", lambda _, ids, __: torch.arange(len(ids)).view(1, 1, -1).expand(3, -1, -1)
    )
    mine = reusing(Weights.around("tiny", *tiny_qwen_vl()))
    assert mine._reuse is not None
    assert mine._reuse.reason.startswith("its logits differ by ")


def test_a_processor_that_does_not_say_what_stands_for_a_picture(
    plain: Weights, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = type(plain.processor).__call__

    def silent(*some: Any, return_text_replacement_offsets: bool = False, **more: Any) -> Any:
        return real(*some, **more)

    monkeypatch.setattr(type(plain.processor), "__call__", silent)
    said = say(reusing(plain), [asked(0, "What?")])
    assert said[0].not_reused == "its processor does not say what stands for a picture"
    assert same([replace(said[0], not_reused="")], say(plain, [asked(0, "What?")]))


def test_a_model_that_can_t_be_asked_so_is_asked_as_ever(plain: Weights, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("no such\nshape")

    monkeypatch.setattr(type(plain.processor), "get_text_with_replacements", broken)
    mine = reusing(plain)
    assert mine._reuse is not None
    assert mine._reuse.reason.startswith("it can't be asked so (RuntimeError: no such")
    assert "\n" not in mine._reuse.reason


def test_only_loaded_weights_with_room_reuse(folder: Path, tmp_path: Path) -> None:
    """Weights in training change while what they computed would be kept."""
    client = ModelClient(ModelSpec(name=f"transformers:{folder}", settings={"prefix_cache_gb": 0}))
    off = client._local()._batches._load.__self__  # type: ignore[attr-defined]  # the method's weights
    on = Weights("tiny", str(folder), "cpu", kept_bytes=1e9)
    words = Weights("tiny", str(make_tiny_lm(tmp_path)), "cpu", kept_bytes=1e9)
    for weights in (off, on, words):
        weights.load()
    found = [one._reuse is not None for one in (off, on, words, Weights.around("tiny", on.model, on.processor))]
    assert found == [False, True, False, False]


class Shown:
    """A view of one video."""

    condition = "video"
    span = (0.0, 9.0)

    async def frames(self, **_: object) -> list[Frame]:
        return [Frame(one, float(number), f"t = {number}.0 s") for number, one in enumerate(VIDEOS[0])]


def answers(folder: Path, questions: Sequence[str], **settings: object) -> list[Any]:
    async def run() -> list[Any]:
        spec = ModelSpec.model_validate({"name": f"transformers:{folder}", "settings": {"max_tokens": 8, **settings}})
        client = ModelClient(spec)
        system = ModelSystem(client)
        items = [Item(id=text, group="v", question=text, answer=BinaryFormat()) for text in questions]
        try:
            return list(await asyncio.gather(*(system.answer(item, Shown()) for item in items)))
        finally:
            await client.aclose()

    return asyncio.run(run())


def test_answers_under_way_at_once_share_and_say_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    questions = [f"Is it {'very ' * number}well?" for number in range(10)]
    shared, alone = answers(folder, questions), answers(folder, questions, prefix_cache_gb=0)
    assert [one.text for one in shared] == [one.text for one in alone]
    counts = [one.usage.cached_tokens for one in shared]
    assert counts[0] == 0
    assert len(set(counts[1:])) == 1
    assert counts[1] > 3 * 16
    assert [one.usage.input_tokens for one in shared] == [one.usage.input_tokens for one in alone]
    assert not any(one.usage.cached_tokens or NOT_REUSED in one.extra for one in alone)
    assert not any(NOT_REUSED in one.extra for one in shared)

    monkeypatch.setattr(PrefixReuse, "_check_model", _refuse)
    refused = answers(folder, questions[:2])
    assert [one.extra[NOT_REUSED] for one in refused] == ["no reuse today"] * 2
    assert [one.text for one in refused] == [one.text for one in alone[:2]]


def _refuse(_: object) -> None:
    from proctor.models.prefix_cache import NotReusableError

    raise NotReusableError("no reuse today")


def test_clips_are_computed_again(folder: Path) -> None:
    from proctor.core import ConfigurationError

    mine = Weights("tiny", str(folder), "cpu", kept_bytes=1e9)
    mine.load()
    assert mine._reuse is not None
    with pytest.raises(ConfigurationError, match="takes no video"):  # as ever, where it is computed
        say(mine, [Query("", (Clip((VIDEOS[0][0],), (0.0,)), "What?"), Choices(max_tokens=4))])
