"""A vision-language model of the LLaVA family with random weights, small enough to be made in a second."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

_TEMPLATE = (
    "{% for message in messages %}{{ message['role'] | upper }}: "
    "{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<image>{% else %}{{ part['text'] }}{% endif %}{% endfor %}\n"
    "{% endfor %}{% if add_generation_prompt %}ASSISTANT:{% endif %}"
)
_SIDE, _PATCH = 32, 8
_ASCII = [chr(code) for code in range(33, 127)] + ["\u0120", "\u010a"]  # how space and new line are written


def make_tiny_vlm(folder: Path) -> Path:
    """Writes weights, configuration, tokenizer (one token a letter) and processor into the folder."""
    import torch
    from transformers import CLIPVisionConfig, LlamaConfig, LlavaConfig, LlavaForConditionalGeneration, LlavaProcessor
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    torch.manual_seed(0)
    tokenizer = _tokenizer()
    image_id = tokenizer.convert_tokens_to_ids("<image>")
    assert isinstance(image_id, int)
    size = {"height": _SIDE, "width": _SIDE}
    processor = LlavaProcessor(
        image_processor=CLIPImageProcessorPil(size=size, crop_size=size, do_center_crop=False),
        tokenizer=tokenizer,
        patch_size=_PATCH,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=_TEMPLATE,
    )
    vision = CLIPVisionConfig(
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        image_size=_SIDE,
        patch_size=_PATCH,
        projection_dim=16,
    )
    config = LlavaConfig(
        vision_config=vision,
        text_config=_text_config(tokenizer, LlamaConfig),
        image_token_index=image_id,
        image_seq_length=(_SIDE // _PATCH) ** 2,
        vision_feature_layer=-1,
    )
    model = LlavaForConditionalGeneration(config)
    for weight in model.parameters():  # far from the usual tiny ones, so that pictures change the words
        torch.nn.init.normal_(weight, std=0.3)
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


def tiny_qwen_vl(generation: int = 2) -> tuple[Any, Any]:
    """A Qwen2-VL or (3) Qwen3-VL with random weights, whose tokens of pictures have positions of three axes, and its
    processor; without the part that reads videos, which needs torchvision."""
    import torch
    import transformers
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil
    from transformers.models.qwen2_vl.processing_qwen2_vl import Qwen2VLProcessor
    from transformers.processing_utils import ProcessorMixin

    class PictureProcessor(Qwen2VLProcessor):  # type: ignore[misc]  # the library has no types
        def __init__(self, image_processor: Any, tokenizer: Any, chat_template: str) -> None:
            self.image_token, self.image_token_id = "<image>", tokenizer.convert_tokens_to_ids("<image>")
            ProcessorMixin.__init__(self, image_processor, tokenizer, chat_template=chat_template)

    torch.manual_seed(0)
    tokenizer = _tokenizer()
    text: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 3, 3]},
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }
    vision: dict[str, Any] = {"depth": 2, "hidden_size": 32, "num_heads": 2, "patch_size": 8}
    if generation == 2:
        vision["embed_dim"] = 32
    else:  # what the encoder's layers see is added within the language model's
        vision |= {"out_hidden_size": 32, "intermediate_size": 64, "num_position_embeddings": 64}
        vision["deepstack_visual_indexes"] = [0, 1]
        text["head_dim"] = 16
    config = getattr(transformers, f"Qwen{generation}VLConfig")(
        text_config=text,
        vision_config=vision,
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        video_token_id=len(tokenizer) - 1,
    )
    model = getattr(transformers, f"Qwen{generation}VLForConditionalGeneration")(config)
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    images = Qwen2VLImageProcessorPil(patch_size=8, min_pixels=16 * 16, max_pixels=64 * 64)
    return model.eval(), PictureProcessor(images, tokenizer, _TEMPLATE)


def make_tiny_lm(folder: Path, *, std: float = 0.3, learns: bool = False) -> Path:
    """Writes a model of texts alone, of the Llama family, with the same tokenizer; its messages are plain texts. With
    `learns`, the weights that scale stay 1, as in real models: an adapter then learns much faster."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    tokenizer = _tokenizer()
    tokenizer.chat_template = (
        "{% for message in messages %}{{ message['role'] | upper }}: {{ message['content'] }}\n{% endfor %}"
        "{% if add_generation_prompt %}ASSISTANT:{% endif %}"
    )
    model = LlamaForCausalLM(_text_config(tokenizer, LlamaConfig))
    for weight in model.parameters():
        if weight.dim() > 1 or not learns:
            torch.nn.init.normal_(weight, std=std)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _text_config(tokenizer: Any, kind: Any) -> Any:
    return kind(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )


def _tokenizer() -> Any:
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(
        tokenizer_object=_letters_tokenizer(),
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
        extra_special_tokens={"image_token": "<image>"},
    )


def _letters_tokenizer() -> object:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    special = ["<pad>", "<s>", "</s>", "<image>"]
    letters = sorted(_ASCII)
    tokenizer = Tokenizer(models.BPE(vocab={word: k for k, word in enumerate([*special, *letters])}, merges=[]))
    tokenizer.add_special_tokens([AddedToken(word, special=True) for word in special])
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def jpeg(seed: int) -> bytes:
    """A picture of one colour, another for each number."""
    from PIL import Image

    out = io.BytesIO()
    Image.new("RGB", (40, 30), (seed * 53 % 256, seed * 97 % 256, 50)).save(out, "JPEG")
    return out.getvalue()
