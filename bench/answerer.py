"""A small vision-language model learns simulated procedures from pixels, by `proctor train answerer`.

    python bench/answerer.py --out answerer            # one core, no GPU

1. The base: a LLaVA of two million parameters with random weights (a Swin encoder of pictures, 36 tokens each, and a Llama)
   is pretrained, as every vision-language model is: its encoder learns which objects lie where in pictures of simulated
   procedures, then its language model, over what the encoder sees, to say of one or two pictures which objects they show
   ("thin curved needle yes silvery metal clip no …"). It has read none of the questions, and seen none of the videos.
2. Simulated procedures are filmed: some to learn from, others held out; neither are those of the captions.
3. `proctor train answerer` fine-tunes the base with LoRA on questions of the rule `seen` ("Does a thin curved needle come
   into view at any time?"). Two controls are trained the same way: one on the pictures of other videos (`--condition
   other-video`), one on answers that were shuffled over training and validation part.
4. `proctor run` examines base, tuned model and controls on the held-out videos: with their video, without it
   (`text-only`), and with another video's pictures.

What it prints are accuracies and paired differences with intervals over videos. "majority" is the better of always
yes and always no on the held-out questions, which it has seen. Everything is drawn from `--seed`. Started again with the same
folder it goes on.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import proctor_train

sys.path[0] = str(Path(__file__).resolve().parents[1])  # not this folder, which has a `statistics`
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np
from numpy.typing import NDArray

import proctor
from proctor.core import generator
from proctor.models import Choices, Query, Weights
from proctor.tasks.simulated import simulate
from proctor.tasks.simulated.pictures import CLASSES, Renderer
from proctor.tasks.simulated.script import draw_script
from proctor_train import ChatExample
from proctor_train.fine_tuning import collate

SIZE, SHOWN, SIDE, SQUARES = (256, 144), 128, 96, 6
"""Of a video; its longer side as the model is shown it; the square that the encoder reads, and its tokens each way."""
SECONDS, FPS, FRAMES = 12.0, 1 / 3, 4
BATCH = 32
PROMPT = "{% block system %}{% endblock %}{% block user %}{{ instruction }} {{ question }}{% endblock %}"
REPLIES = ("Answer: yes", "Answer: no")
RULE = "seen"
LEAST_PIXELS = 20  # of an object, to be called shown in a caption
TEMPLATE = (
    "{% for message in messages %}{% if message['role'] == 'assistant' %}A:{% endif %}"
    "{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<image>{% else %}{{ part['text'] }}{% endif %}{% endfor %}\n"
    "{% endfor %}{% if add_generation_prompt %}A:{% endif %}"
)

Masks = NDArray[np.float32]


def main() -> None:
    """Everything, as the options say."""
    options = _options()
    import torch

    torch.set_num_threads(1)
    started = time.process_time()
    out: Path = options.out
    out.mkdir(parents=True, exist_ok=True)
    (out / "prompt.txt.j2").write_text(PROMPT)
    for name, videos, seed in (("learn", options.videos, options.seed), ("held", options.held, options.seed + 1)):
        if not (out / name).exists():
            film(out / name, videos, seed)
    if not (out / "shuffled").exists():
        shuffle_answers(out / "learn", out / "shuffled", options.seed)
    _spent("videos", started)
    base = out / "base"
    if not (base / "config.json").exists():
        make_base(base, options)
    _spent("base", started)
    shown: dict[str, Any] = {"fps": FPS, "max_frames": FRAMES, "max_side": SHOWN, "cache": out / "frames"}
    shown |= {"prompt": str(out / "prompt.txt.j2")}
    learned = {
        "device": "cpu",
        "rank": options.rank,
        "epochs": options.epochs,
        "batch": 16,
        "learning_rate": options.rate,
    }
    for name, data, condition in (
        ("tuned", "learn", "video"),
        ("other-pictures", "learn", "other-video"),
        ("other-answers", "shuffled", "video"),
    ):
        made = proctor_train.train_answerer(
            "simulated", base, out / name, data=out / data, condition=condition, share=0.15, **learned, **shown
        )
        for row in made.rows:
            print(f"  {name}:", {k: round(v, 3) if isinstance(v, float) else v for k, v in row.items()}, flush=True)
        examine(name, made.data.model, out, shown)
        _spent(name, started)
    examine("base", f"transformers:{base}", out, shown)
    report(out)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="a new folder, or one to go on with")
    parser.add_argument("--pretrained", type=int, default=240, help="procedures whose pictures the base has seen")
    parser.add_argument("--seeing", type=int, default=350, help="steps in which its encoder learns what lies where")
    parser.add_argument("--captions", type=int, default=300, help="steps in which it learns to caption")
    parser.add_argument("--videos", type=int, default=120, help="videos to learn from")
    parser.add_argument("--held", type=int, default=60, help="videos to be examined on")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--rank", type=int, default=16, help="of the adapter; 0 trains all weights")
    parser.add_argument("--rate", type=float, default=2e-3, help="the highest rate of learning in fine-tuning")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def _spent(what: str, started: float) -> None:
    print(f"{what}: {time.process_time() - started:.0f} s of the processor so far", flush=True)


def film(folder: Path, videos: int, seed: int) -> None:
    """Simulated procedures with the questions of one rule alone."""
    simulate(folder, videos=videos, seconds=SECONDS, fps=5, size=SIZE, seed=seed, questions_per_video=60)
    file = folder / "questions.json"
    asked = json.loads(file.read_text())["questions"]
    file.write_text(json.dumps({"questions": [one for one in asked if one["rule"] == RULE]}))


def shuffle_answers(folder: Path, out: Path, seed: int) -> None:
    """The same videos and questions, with all answers shuffled."""
    half = out.with_name(f"{out.name}.part")
    shutil.rmtree(half, ignore_errors=True)
    shutil.copytree(folder, half)
    file = half / "questions.json"
    asked = json.loads(file.read_text())["questions"]
    answers = [one["answer"] for one in asked]
    for one, row in zip(asked, generator(seed, "bench", "answers").permutation(len(answers)), strict=True):
        one["answer"] = answers[int(row)]
    file.write_text(json.dumps({"questions": asked}))
    half.rename(out)


class Pictures:
    """Of simulated procedures: as JPEG, as they are shown to the model, and how much of each object lies in each
    square: procedures × moments × rows × columns × kinds of object."""

    MOMENTS = 8

    def __init__(self, procedures: int, seed: int) -> None:
        rng = generator(seed, "bench", "moments")
        self.jpegs: list[list[bytes]] = []
        self.times = np.sort(rng.uniform(0, SECONDS, (procedures, self.MOMENTS)), axis=1)
        self.lies: Masks = np.zeros((procedures, self.MOMENTS, SQUARES, SQUARES, len(CLASSES)), dtype=np.float32)
        for number, times in enumerate(self.times):
            renderer = Renderer(draw_script(seed, f"caption-{number}", SECONDS), SIZE, seed)
            self.jpegs.append([self._picture(renderer, number, row, at) for row, at in enumerate(times.tolist())])

    def _picture(self, renderer: Renderer, number: int, row: int, at: float) -> bytes:
        from PIL import Image

        made = renderer.picture(at)
        for instance, index in renderer.instances.items():
            kind = next(n for n, one in enumerate(CLASSES) if instance.startswith(one.name))
            rows, columns = np.nonzero(made.owner == index)
            squares = (rows * SQUARES // SIZE[1], columns * SQUARES // SIZE[0])
            np.add.at(self.lies[number, row, :, :, kind], squares, 1)
        written = io.BytesIO()
        small = (SHOWN, SHOWN * SIZE[1] // SIZE[0])
        Image.fromarray(made.pixels).resize(small, Image.Resampling.LANCZOS).save(written, "JPEG", quality=85)
        return written.getvalue()

    def captions(self, seed: int, easy: int) -> Iterator[ChatExample]:
        """Of pictures of one procedure, without end: what is shown and what is not. The first `easy` ones are of one
        picture and name each object; then there are up to two, and half of them answer in the order that is asked."""
        rng = generator(seed, "bench", "captions")
        made = 0
        while True:
            made += 1
            number = int(rng.integers(len(self.jpegs)))
            rows = sorted(rng.permutation(self.MOMENTS)[: 1 if made <= easy else int(rng.integers(1, 3))].tolist())
            parts: list[str | bytes] = []
            for row in rows:
                parts += [f"t = {self.times[number, row]:.1f} s", self.jpegs[number][row]]
            shown = self.lies[number, rows].sum((1, 2)).max(0) >= LEAST_PIXELS
            kinds = [int(kind) for kind in rng.permutation(len(CLASSES))]
            names, words = [CLASSES[kind].phrase for kind in kinds], ["yes" if shown[kind] else "no" for kind in kinds]
            if made <= easy or rng.random() < 0.5:
                asked, said = (
                    "All?",
                    "Answer:" + "".join(f" {name} {word}" for name, word in zip(names, words, strict=True)),
                )
            else:
                asked, said = f"Shown: {' '.join(names)}?", f"Answer: {' '.join(words)}"
            yield ChatExample(Query("", (*parts, asked), Choices(64)), said, str(number))


def make_base(folder: Path, options: argparse.Namespace) -> None:
    """A LLaVA with random weights whose picture encoder learns what lies where, and whose language model then learns to caption."""
    import torch

    torch.manual_seed(options.seed)
    model, processor = new_model()
    print(f"{sum(one.numel() for one in model.parameters()) / 1e6:.1f} million parameters", flush=True)
    started = time.process_time()
    pictures = Pictures(options.pretrained, options.seed + 2)
    _spent("  pictures", started)
    teach_to_see(model, processor, pictures, options.seeing, options.seed)
    weights = Weights.around("base", model, processor)
    drawn = pictures.captions(options.seed, BATCH * options.captions // 3)

    named = torch.tensor([processor.tokenizer.encode(f" {one.phrase}") for one in CLASSES])

    def loss() -> Any:
        batch = collate(weights, [next(drawn) for _ in range(BATCH)])
        batch["labels"][torch.isin(batch["labels"], named)] = -100  # in which order things are named is drawn
        return model(**batch).loss

    for part in (model.model.vision_tower, model.model.multi_modal_projector):
        part.requires_grad_(False)  # it sees already
    learn([one for one in model.parameters() if one.requires_grad], loss, options.captions, "captions")
    half = folder.with_name("base.part")
    shutil.rmtree(half, ignore_errors=True)
    model.eval().save_pretrained(half)
    processor.save_pretrained(half)
    half.rename(folder)


def teach_to_see(model: Any, processor: Any, pictures: Pictures, steps: int, seed: int) -> None:
    """The encoder and what joins it to the language model learn which objects lie in which square: the likeness of a
    square's token to the words for an object says how likely it is, as in contrastive pretraining."""
    import torch
    from PIL import Image
    from torch.nn.functional import binary_cross_entropy_with_logits, normalize

    rng = generator(seed, "bench", "seeing")
    words = model.get_input_embeddings()
    names = [processor.tokenizer.encode(f" {one.phrase}") for one in CLASSES]
    plain = torch.nn.Sequential(torch.nn.LayerNorm(128), torch.nn.Linear(128, len(CLASSES)))
    bend = torch.nn.Parameter(torch.tensor([8.0, -3.0]))
    torch.nn.init.constant_(plain[1].bias, -3.0)
    joined = [*model.model.vision_tower.parameters(), *model.model.multi_modal_projector.parameters()]

    def loss() -> Any:
        rows = list(
            zip(rng.integers(len(pictures.jpegs), size=BATCH), rng.integers(Pictures.MOMENTS, size=BATCH), strict=True)
        )
        opened = [Image.open(io.BytesIO(pictures.jpegs[a][b])).convert("RGB") for a, b in rows]
        pixels = processor.image_processor(opened, return_tensors="pt")["pixel_values"]
        seen = model.model.vision_tower(pixels, output_hidden_states=True).hidden_states[-1]
        tokens = normalize(model.model.multi_modal_projector(seen), dim=-1)
        kinds = normalize(torch.stack([words.weight[ids].mean(0) for ids in names]), dim=-1)
        wanted = (
            torch.from_numpy(np.stack([pictures.lies[a, b] for a, b in rows])).flatten(1, 2) >= LEAST_PIXELS
        ).float()
        likeness = tokens @ kinds.T * bend[0] + bend[1]
        return binary_cross_entropy_with_logits(plain(seen), wanted) + binary_cross_entropy_with_logits(
            likeness, wanted
        )

    learn([*joined, *words.parameters(), *plain.parameters(), bend], loss, steps, "seeing", 2e-3)


def learn(weights: Any, loss: Callable[[], Any], steps: int, what: str, highest: float = 1.5e-3) -> None:
    """Plain training by AdamW."""
    import torch

    weights, started = list(weights), time.process_time()
    rate = torch.optim.AdamW(weights, lr=highest, weight_decay=0.01)
    plan = torch.optim.lr_scheduler.OneCycleLR(rate, highest, total_steps=steps, pct_start=0.1)
    losses = []
    for step in range(steps):
        found = loss()
        found.backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        rate.step()
        plan.step()
        rate.zero_grad()
        losses.append(found.item())
        if step % 25 == 24:
            spent = time.process_time() - started
            mean = np.mean(losses[-25:])
            print(f"  {what}, step {step + 1} of {steps}: loss {mean:.3f}, {spent:.0f} s", flush=True)


def _texts() -> list[str]:
    """All words that are said, for the tokenizer."""
    asked = [f"Does a {one.phrase} come into view at any time?" for one in CLASSES]
    said = [f"All? Shown: {one.phrase}? {one.phrase} yes {one.phrase} no yes no" for one in CLASSES]
    forms = ['Start your reply with "Answer: yes" or "Answer: no".', *(f"A:{one}\n" for one in REPLIES)]
    return [*asked, *said, *forms, *(f"t = {n}.{n} s" for n in range(10))]


def _tokenizer(texts: Sequence[str]) -> Any:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    special = ["<pad>", "<s>", "</s>", "<image>"]
    words = Tokenizer(models.BPE())
    words.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    words.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    words.train_from_iterator(
        list(texts) * 3, trainers.BpeTrainer(vocab_size=640, special_tokens=special, initial_alphabet=alphabet)
    )
    words.add_special_tokens([AddedToken(one, special=True) for one in special])
    words.add_tokens([AddedToken(f" {one.phrase}") for one in CLASSES])
    return PreTrainedTokenizerFast(
        tokenizer_object=words,
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
        extra_special_tokens={"image_token": "<image>"},
    )


def new_model() -> tuple[Any, Any]:
    """A LLaVA with random weights, and its processor."""
    from transformers import LlamaConfig, LlavaConfig, LlavaForConditionalGeneration, LlavaProcessor, SwinConfig
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    tokenizer = _tokenizer(_texts())
    size = {"height": SIDE, "width": SIDE}
    processor = LlavaProcessor(
        image_processor=CLIPImageProcessorPil(size=size, crop_size=size, do_center_crop=False),
        tokenizer=tokenizer,
        patch_size=SIDE // SQUARES,
        vision_feature_select_strategy="full",
        num_additional_image_tokens=0,
        chat_template=TEMPLATE,
    )
    vision = SwinConfig(
        image_size=SIDE,
        patch_size=4,
        embed_dim=32,
        depths=(2, 2, 2),
        num_heads=(2, 4, 8),
        window_size=6,
        mlp_ratio=2.0,
        drop_path_rate=0.0,
    )
    text = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=160,
        intermediate_size=424,
        num_hidden_layers=4,
        num_attention_heads=5,
        num_key_value_heads=5,
        max_position_embeddings=1024,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    config = LlavaConfig(
        vision_config=vision,
        text_config=text,
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        image_seq_length=SQUARES**2,
        vision_feature_layer=-1,
        vision_feature_select_strategy="full",
    )
    return LlavaForConditionalGeneration(config), processor


def examine(name: str, model: str, out: Path, shown: dict[str, Any]) -> None:
    """Answers to all questions on held-out videos, into the store."""
    proctor.run(
        "simulated",
        data=out / "held",
        model=model,
        name=name,
        conditions=["video", "text-only", *(["other-video"] if name == "tuned" else [])],
        store=out / "held.db",
        settings={"max_tokens": 8, "device": "cpu", "batch_size": 16},
        concurrency=32,
        **shown,
    )


def report(out: Path) -> None:
    """Accuracies on held-out videos, and what the pictures are worth."""
    store = out / "held.db"
    print("accuracy on held-out videos")
    for row in proctor.results(store, "simulated", metrics="accuracy").rows:
        print(
            f"  {row['system'] + ' / ' + row['condition']:30}{_told(row)}  {row['n']} questions, {row['groups']} videos"
        )
    print("differences")
    first = "tuned/video"
    for against, runs in (
        ("tuned/text-only", [first]),
        ("tuned/other-video", [first]),
        ("majority/text-only", [first, "other-pictures/video", "other-answers/video"]),
        ("other-pictures/text-only", ["other-pictures/video"]),
        ("other-pictures/video", [first]),
        ("other-answers/video", [first]),
    ):
        options: dict[str, Any] = {"metrics": "accuracy", "systems": [*runs, against], "against": against}
        for row in proctor.compare(store, "simulated", **options).rows:
            pair = (
                f"{row['first_system']} / {row['first_condition']} − {row['second_system']} / {row['second_condition']}"
            )
            print(f"  {pair:58}{_told({**row, 'value': row['difference']})}")


def _told(row: dict[str, Any]) -> str:
    value, low, high = (row[name] for name in ("value", "ci_low", "ci_high"))
    between = "no interval" if low is None else f"{low:.3f} to {high:.3f}"
    return f"{value:7.3f} ({between})"


if __name__ == "__main__":
    main()
