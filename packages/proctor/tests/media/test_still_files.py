"""Image files that hold more than one opaque picture: what is transparent, and what moves."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as Pillow

from proctor.core import Image, Item
from proctor.core.formats import BinaryFormat
from proctor.media import MediaLibrary, read_image
from proctor.media.library import Picture
from proctor.media.pictures import StillFacts


def see_through(mode: str) -> Pillow.Image:
    """A transparent ground whose hidden colour is black, under a black square."""
    if mode == "P":
        paletted = Pillow.new("P", (32, 32), 0)
        paletted.putpalette([0, 0, 0, 0, 0, 0])
        paletted.paste(1, (8, 8, 24, 24))
        paletted.info["transparency"] = 0
        return paletted
    picture = Pillow.new("RGBA", (32, 32), (0, 0, 0, 0))
    picture.paste((0, 0, 0, 255), (8, 8, 24, 24))
    return picture.convert(mode)


@pytest.mark.parametrize(("name", "mode"), [("a.png", "RGBA"), ("a.png", "LA"), ("a.png", "P"), ("a.webp", "RGBA")])
def test_what_is_transparent_is_white_as_a_page_shows_it(tmp_path: Path, name: str, mode: str) -> None:
    see_through(mode).save(tmp_path / name, lossless=True, exact=True)  # which PNG knows nothing of
    pixels = np.asarray(read_image(tmp_path / name))
    assert pixels[2, 2].tolist() == [255, 255, 255]
    assert pixels[16, 16].tolist() == [0, 0, 0]


def test_what_was_kept_of_a_transparent_image_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    see_through("RGBA").save(tmp_path / "a.png")
    Pillow.new("RGB", (32, 32)).save(tmp_path / "b.png")

    def corners(white: bool) -> list[int]:
        jpegs = MediaLibrary(tmp_path, cache_dir=tmp_path / "cache").jpegs(pictures)
        found = [int(np.asarray(Pillow.open(io.BytesIO(jpeg)).convert("L"))[2, 2]) for jpeg in jpegs]
        assert white or found == [0, 0]
        return found

    pictures = [Picture("a.png", None), Picture("b.png", None)]
    with monkeypatch.context() as former:  # as it was before: what is hidden is shown, under a key that says nothing
        former.setattr("proctor.media.pictures._on_white", lambda picture: picture.convert("RGB"))
        former.setattr("proctor.media.library.still_facts", lambda _: StillFacts())
        corners(white=False)
    assert corners(white=True) == [255, 0]


def test_of_a_file_with_several_images_it_is_said_that_the_first_is_shown(tmp_path: Path) -> None:
    first, second = Pillow.new("RGB", (32, 32), "red"), Pillow.new("RGB", (32, 32), "blue")
    for name in ("moves.gif", "moves.webp", "pages.tif"):
        first.save(tmp_path / name, save_all=True, append_images=[second])
    first.save(tmp_path / "one.png")
    first.save(tmp_path / "phone.jpg", format="MPO", save_all=True, append_images=[second])  # with a preview
    items = [
        Item(id=f"q-{name}", group="g", question="?", answer=BinaryFormat(), media=(Image(source=name),))
        for name in ("one.png", "phone.jpg", "pages.tif", "moves.webp", "moves.gif")
    ]
    library = MediaLibrary(tmp_path, cache_dir=tmp_path / "cache")
    told = "3 files with several images, of which the first is shown (first moves.gif, of item 'q-moves.gif')"
    assert library.warnings(items) == [told]
    assert library.warnings(items[:2]) == []
