"""DICOM files as pictures: window and level, rescale, polarity, tables, colours, frames, order, and refusals."""

from __future__ import annotations

import warnings
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pydicom
import pydicom.encaps
import pytest
from numpy.typing import NDArray
from PIL.Image import fromarray
from PIL.Image import open as opened
from pydicom.dataset import Dataset
from pydicom.pixels import apply_modality_lut, apply_voi_lut
from pydicom.uid import DeflatedExplicitVRLittleEndian, ImplicitVRLittleEndian, RLELossless

from proctor.core import ConfigurationError, Image, InputError, Item, ParseError, Scan, VideoClip
from proctor.core.formats import BinaryFormat
from proctor.media import (
    MediaLibrary,
    MediaSettings,
    Picture,
    dicom_facts,
    in_order,
    parse_scan,
    parse_window,
    read_image,
)
from tests.support.medical_files import AXIAL, dicom, lookup_table

VALUES = np.array([[-200, -161, -160, -100], [0, 39, 40, 41], [139, 238, 239, 240]], dtype=np.int16)


def shown(path: Path, **scan: Any) -> NDArray[np.uint8]:
    picture = np.asarray(read_image(path, Scan(**scan) if scan else None))
    assert (picture[..., 0] == picture[..., 1]).all()
    return picture[..., 0]


def test_window_by_hand(tmp_path: Path) -> None:
    # PS3.3 C.11.2.1.2.1, centre 40, width 400: black up to 39.5 - 199.5 = -160, white above 239, else
    # ((x - 39.5) / 399 + 0.5) * 255: -100 → 38.35, 0 → 102.26, 39 → 127.18, 40 → 127.82, 41 → 128.46, 139 → 191.09
    file = dicom(tmp_path / "ct.dcm", VALUES, WindowCenter=40, WindowWidth=400)
    assert shown(file).tolist() == [[0, 0, 0, 38], [102, 127, 128, 128], [191, 254, 255, 255]]


def test_an_own_window_goes_first_then_the_files_first_one_then_the_range(tmp_path: Path) -> None:
    two = dicom(tmp_path / "two.dcm", VALUES, WindowCenter=[40, 0], WindowWidth=[400, 1])
    assert shown(two).tolist() == shown(two, window=(40, 400)).tolist()
    # width 1: black up to the centre - 0.5, white above
    assert shown(two, window=(40, 1)).tolist() == [[0, 0, 0, 0], [0, 0, 255, 255], [255, 255, 255, 255]]
    none = dicom(tmp_path / "none.dcm", np.array([[10, 20, 30]], dtype=np.uint16))
    assert shown(none).tolist() == [[0, 128, 255]]
    padded = dicom(tmp_path / "padded.dcm", np.array([[-2000, 10, 30]], dtype=np.int16), PixelPaddingValue=-2000)
    assert shown(padded).tolist() == [[0, 0, 255]]
    flat = dicom(tmp_path / "flat.dcm", np.full((2, 2), 7, dtype=np.uint16))
    assert shown(flat).tolist() == [[0, 0], [0, 0]]


def test_rescale_polarity_and_exact_and_sigmoid_windows(tmp_path: Path) -> None:
    stored = np.array([[0, 50, 100]], dtype=np.uint16)
    hounsfield = dicom(tmp_path / "hu.dcm", stored, RescaleSlope=2, RescaleIntercept=-100)  # -100, 0, 100
    exact: dict[str, Any] = {"WindowCenter": 0, "WindowWidth": 200, "VOILUTFunction": "LINEAR_EXACT"}
    # (0 - 0) / 200 + 0.5 = 0.5 → 127.5, to the even neighbour
    assert shown(dicom(hounsfield, stored, RescaleSlope=2, RescaleIntercept=-100, **exact)).tolist() == [[0, 128, 255]]
    inverted = dicom(tmp_path / "m1.dcm", stored, PhotometricInterpretation="MONOCHROME1")
    assert shown(inverted).tolist() == [[255, 127, 0]]
    falling = dicom(tmp_path / "neg.dcm", stored, RescaleSlope=-1, RescaleIntercept=0)
    assert shown(falling).tolist() == [[255, 128, 0]]
    # 255 / (1 + exp(-4 (x - 50) / 100)): x = 0 → 255 / (1 + e²) = 30.40, 50 → 127.5, 100 → 224.60
    sigmoid = dicom(tmp_path / "s.dcm", stored, WindowCenter=50, WindowWidth=100, VOILUTFunction="SIGMOID")
    assert shown(sigmoid).tolist() == [[30, 128, 225]]


def test_tables_and_functional_groups(tmp_path: Path) -> None:
    stored = np.array([[0, 10, 11, 12, 60]], dtype=np.uint16)
    voi = dicom(
        tmp_path / "voi.dcm", stored, VOILUTSequence=[lookup_table(10, [0, 128, 255], 8)], WindowCenter=1, WindowWidth=1
    )
    assert shown(voi).tolist() == [[0, 0, 128, 255, 255]]  # below the table its first entry, above its last
    assert shown(voi, window=(11, 1)).tolist() == [[0, 0, 255, 255, 255]]
    modality = dicom(tmp_path / "mod.dcm", stored, ModalityLUTSequence=[lookup_table(10, [100, 50, 0], 16)])
    assert shown(modality).tolist() == [[255, 255, 128, 0, 0]]

    def group(name: str, **said: Any) -> Dataset:
        inner, outer = Dataset(), Dataset()
        for key, value in said.items():
            setattr(inner, key, value)
        setattr(outer, name, [inner])
        return outer

    frames = np.array([[[0, 100]], [[0, 100]]], dtype=np.uint16)
    own = [
        group("FrameVOILUTSequence", WindowCenter=50.5, WindowWidth=101),
        group("FrameVOILUTSequence", WindowCenter=500, WindowWidth=101),
    ]
    shared = group("PixelValueTransformationSequence", RescaleSlope=1, RescaleIntercept=0)
    enhanced = dicom(
        tmp_path / "e.dcm", frames, PerFrameFunctionalGroupsSequence=own, SharedFunctionalGroupsSequence=[shared]
    )
    assert shown(enhanced, frame=1).tolist() == [[0, 255]]
    assert shown(enhanced, frame=2).tolist() == [[0, 0]]
    assert dicom_facts(enhanced).ends is None


@pytest.mark.parametrize("seed", range(40))
def test_as_pydicom_has_it(seed: int, tmp_path: Path) -> None:
    """pydicom's own arithmetic, in other code: rescale and window over the whole range of what can be stored."""
    draw = np.random.default_rng(seed)
    signed = bool(draw.integers(2))
    stored = draw.integers(-2000 if signed else 0, 3000, (7, 9)).astype(np.int16 if signed else np.uint16)
    said: dict[str, Any] = {
        "WindowCenter": float(draw.integers(-500, 1500)),
        "WindowWidth": float(draw.integers(1, 3000)),
    }
    said["VOILUTFunction"] = str(draw.choice(["LINEAR", "LINEAR_EXACT", "SIGMOID"]))
    if draw.integers(2):
        said |= {
            "RescaleSlope": float(draw.choice([0.5, 1, 2.25])),
            "RescaleIntercept": float(draw.integers(-1024, 10)),
        }
    file = dicom(tmp_path / "f.dcm", stored, **said)
    known = pydicom.dcmread(file)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values = apply_voi_lut(apply_modality_lut(known.pixel_array, known), known).astype(float)
    slope, intercept = said.get("RescaleSlope", 1.0), said.get("RescaleIntercept", 0.0)
    low, high = (-(2.0**15), 2.0**15 - 1) if signed else (0.0, 2.0**16 - 1)
    share = (values - (low * slope + intercept)) / ((high - low) * slope)
    assert np.abs(shown(file).astype(float) - 255 * share).max() <= 0.5 + 1e-6


@pytest.mark.parametrize("syntax", [ImplicitVRLittleEndian, DeflatedExplicitVRLittleEndian, RLELossless])
def test_transfer_syntaxes(syntax: str, tmp_path: Path) -> None:
    stored = np.arange(64, dtype=np.uint8).reshape(8, 8)
    plain = dicom(tmp_path / "p.dcm", stored)
    made = pydicom.dcmread(plain)
    if syntax == RLELossless:
        made.compress(RLELossless)
        made.save_as(tmp_path / "c.dcm")
    else:
        dicom(tmp_path / "c.dcm", stored, syntax=syntax)
    assert shown(tmp_path / "c.dcm").tolist() == shown(plain).tolist()


@pytest.mark.parametrize(
    ("syntax", "form", "how", "values"),
    [
        ("1.2.840.10008.1.2.4.50", "JPEG", {"quality": 95}, np.uint8),
        ("1.2.840.10008.1.2.4.90", "JPEG2000", {"no_jp2": True}, np.uint8),
        ("1.2.840.10008.1.2.4.90", "JPEG2000", {"no_jp2": True}, np.uint16),
    ],
)
def test_compressed_pixels(syntax: str, form: str, how: dict[str, Any], values: type, tmp_path: Path) -> None:
    stored: NDArray[Any] = (np.add.outer(np.arange(32), np.arange(32)) * (4 if values is np.uint8 else 800)).astype(
        values
    )
    file, out = dicom(tmp_path / "c.dcm", stored, PixelData=b"\0\0"), BytesIO()
    fromarray(stored).save(out, form, **how)
    made = pydicom.dcmread(file)
    made.file_meta.TransferSyntaxUID = pydicom.uid.UID(syntax)
    made.PixelData = pydicom.encaps.encapsulate([out.getvalue()])
    made["PixelData"].VR, made["PixelData"].is_undefined_length = "OB", True
    made.save_as(file)
    assert np.abs(shown(file).astype(int) - np.rint(stored / stored.max() * 255)).max() <= 1


def test_colours_palettes_and_pixels_that_are_not_square(tmp_path: Path) -> None:
    stored = np.array([[[255, 0, 0], [0, 128, 7]]], dtype=np.uint8)
    colour = dicom(tmp_path / "rgb.dcm", stored)
    assert np.asarray(read_image(colour)).tolist() == stored.tolist()
    with pytest.raises(InputError, match="a window for a picture in colours"):
        read_image(colour, Scan(window=(1, 2)))
    palette: dict[str, Any] = {"PhotometricInterpretation": "PALETTE COLOR"}
    for name, entries in (("Red", [0, 65535]), ("Green", [0, 0]), ("Blue", [65535, 32768])):
        palette[f"{name}PaletteColorLookupTableDescriptor"] = [2, 0, 16]
        palette[f"{name}PaletteColorLookupTableData"] = np.array(entries, dtype="<u2").tobytes()
    painted = dicom(tmp_path / "pal.dcm", np.array([[0, 1]], dtype=np.uint8), **palette)
    assert np.asarray(read_image(painted)).tolist() == [[[0, 0, 255], [255, 0, 128]]]
    narrow = dicom(tmp_path / "n.dcm", np.zeros((10, 20), dtype=np.uint8), PixelSpacing=[2.0, 1.0])
    assert read_image(narrow).size == (10, 10)  # half as wide as high: shrunk in the longer direction


def pixels(jpeg: bytes) -> NDArray[np.uint8]:
    return np.asarray(opened(BytesIO(jpeg)).convert("RGB"))


def item(*media: Any) -> Item:
    return Item(id="q", group="g", question="?", answer=BinaryFormat(), media=media)


def test_frames_with_times_are_a_clip(tmp_path: Path) -> None:
    frames = np.stack([np.full((16, 16), value, dtype=np.uint8) for value in (0, 100, 200)])
    dicom(tmp_path / "us.dcm", frames, FrameTimeVector=[0, 100, 300], WindowCenter=128, WindowWidth=256)
    library = MediaLibrary(tmp_path, MediaSettings(quality=95), tmp_path / "cache")
    info = library.probe("us.dcm")
    assert (round(info.duration_s, 6), info.width, info.height) == (0.7, 16, 16)  # the last as long as the one before
    clip = VideoClip(source="us.dcm", start=0.0, end=0.7)
    assert library.span(clip) == (0.0, 0.7)
    assert library.problems([item(clip)]) == []
    got = [pixels(jpeg)[8, 8, 0] for jpeg in library.jpegs([Picture("us.dcm", t) for t in (0.0, 0.09, 0.1, 0.39, 0.4)])]
    assert [round(int(one) / 100) for one in got] == [0, 0, 1, 1, 2]
    dark = library.jpegs([Picture("us.dcm", 0.4, scan=Scan(window=(250, 20)))])[0]
    assert pixels(dark)[8, 8, 0] < 5
    assert library.mp4(clip)[4:8] == b"ftyp"
    assert dicom_facts(dicom(tmp_path / "ct.dcm", frames, FrameIncrementPointer=0x00540080, CineRate=10)).ends is None
    assert dicom_facts(dicom(tmp_path / "r.dcm", frames, CineRate=10)).ends == pytest.approx((0.1, 0.2, 0.3))


def test_a_series_is_in_the_order_of_its_positions(tmp_path: Path) -> None:
    positions = {"a": 30.0, "b": -10.0, "c": 12.5}
    files = [
        (
            name,
            dicom(
                tmp_path / name,
                VALUES,
                ImagePositionPatient=[0, 0, position],
                ImageOrientationPatient=AXIAL,
                InstanceNumber=1,
            ),
        )
        for name, position in positions.items()
    ]
    assert in_order(files) == ["b", "c", "a"]
    # the normal of rows along y and columns along -z is -x: from left to right is falling x
    sideways = [
        (
            name,
            dicom(
                tmp_path / f"s{name}",
                VALUES,
                ImagePositionPatient=[position, 0, 0],
                ImageOrientationPatient=[0, 1, 0, 0, 0, -1],
            ),
        )
        for name, position in positions.items()
    ]
    assert in_order(sideways) == ["a", "c", "b"]


@pytest.mark.parametrize(
    ("other", "found"),
    [
        ({"SeriesInstanceUID": "1.2.3"}, "found DICOM files of 2 series, expected one series in a folder"),
        ({"ImagePositionPatient": [0, 0, 1]}, "found a and b at one position, expected one picture at each"),
        ({"ImagePositionPatient": None}, "found no position in b"),
        ({"ImageOrientationPatient": [0, 1, 0, 0, 0, -1]}, "found a series of planes in several directions"),
    ],
)
def test_what_is_no_series(other: dict[str, Any], found: str, tmp_path: Path) -> None:
    said: dict[str, Any] = {"ImagePositionPatient": [0, 0, 1], "ImageOrientationPatient": AXIAL}
    files = [
        ("a", dicom(tmp_path / "a", VALUES, **said)),
        ("b", dicom(tmp_path / "b", VALUES, **{**said, "ImagePositionPatient": [0, 0, 2], **other})),
    ]
    with pytest.raises(InputError) as told:
        in_order(files)
    assert found in str(told.value)
    assert "1.2" not in str(told.value).replace(str(tmp_path), "")


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"Rows": 60_000, "Columns": 60_000}, "found a picture of 60,000 × 60,000, expected at most 40,000,000 pixels"),
    ({"Rows": 5_000, "Columns": 5_000}, "that can't be decoded, expected whole ones"),
    ({"NumberOfFrames": 10**8}, "found 100,000,000 frames, expected 1 to 100,000"),
    ({"NumberOfFrames": 5}, "found 5 frames, expected one of them (as in #frame=1)"),
    ({"RescaleSlope": 0, "RescaleIntercept": 0}, "found a rescale slope of 0, expected a number other than 0"),
    ({"WindowCenter": 0, "WindowWidth": 0.5}, "found a window of width 0.5, expected a width of at least 1"),
    ({"WindowCenter": 0, "WindowWidth": 9, "VOILUTFunction": "CUBIC"}, "found an unknown VOI LUT function"),
    ({"PhotometricInterpretation": "CMYK"}, "found an unknown photometric interpretation"),
    ({"PixelSpacing": [1e-9, 1.0]}, "times as wide as high, expected 0.01 to 100"),
    ({"PixelData": None}, "that can't be decoded"),
    ({"Rows": None}, "found no picture in it"),
    ({"VOILUTSequence": [lookup_table(0, [1, 2], 40)]}, "found a lookup table of 2 entries of 40 bits"),
]


@pytest.mark.parametrize(("elements", "found"), REFUSED)
def test_refusals_are_one_line(elements: dict[str, Any], found: str, tmp_path: Path) -> None:
    file = dicom(tmp_path / "x.dcm", VALUES, **elements)
    with pytest.raises(InputError) as told:
        read_image(file)
    assert found in str(told.value)
    assert str(told.value).startswith(f"{file}: ")
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("syntax", "found"),
    [
        ("1.2.840.10008.1.2.4.70", "found the transfer syntax JPEG Lossless, Non-Hierarchical, First-Order Prediction"),
        ("1.2.840.10008.1.2.4.51", "bits, expected a decoder for them: pip install pylibjpeg pylibjpeg-libjpeg"),
        ("1.2.840.10008.1.2.4.80", "expected a decoder for it: pip install pyjpegls"),
        ("1.2.840.10008.1.2.4.102", "expected the video exported into a file of its own (MP4)"),
        ("1.2.3.4", "found the transfer syntax 1.2.3.4, expected one that pydicom decodes"),
    ],
)
def test_syntaxes_that_need_another_decoder(syntax: str, found: str, tmp_path: Path) -> None:
    file = dicom(tmp_path / "x.dcm", VALUES)
    file.write_bytes(
        file.read_bytes().replace(b"1.2.840.10008.1.2.1\0", syntax.encode() + b"\0" * (-len(syntax) % 2), 1)
    )
    content = bytearray(file.read_bytes())
    at = content.index(b"\x02\x00\x10\x00UI") + 6
    grown = (len(syntax) + len(syntax) % 2) - int.from_bytes(content[at : at + 2], "little")
    content[at : at + 2] = (len(syntax) + len(syntax) % 2).to_bytes(2, "little")
    length = content.index(b"\x02\x00\x00\x00UL") + 8
    content[length : length + 4] = (int.from_bytes(content[length : length + 4], "little") + grown).to_bytes(
        4, "little"
    )
    file.write_bytes(content)
    with pytest.raises(InputError) as told:
        read_image(file)
    assert found in str(told.value)


def test_a_deflate_bomb_and_a_full_memory_are_one_line_and_the_next_file_is_read(tmp_path: Path) -> None:
    import zlib

    bomb = dicom(tmp_path / "bomb.dcm", VALUES, syntax=DeflatedExplicitVRLittleEndian)
    content = bomb.read_bytes()
    group = 128 + 4 + 12 + int.from_bytes(content[128 + 4 + 8 : 128 + 4 + 12], "little")
    packer = zlib.compressobj(wbits=-15)
    million = packer.compress(bytes(2**20)) + packer.flush(zlib.Z_FULL_FLUSH)
    bomb.write_bytes(content[:group] + 2000 * million + packer.flush())  # 2 GB in 2 MB
    with pytest.raises(InputError, match=r"found a file that takes more than 5 s or 500 MB, expected a smaller one"):
        read_image(bomb)
    assert shown(dicom(tmp_path / "good.dcm", VALUES)).shape == VALUES.shape


def test_nested_sequences_without_end(tmp_path: Path) -> None:
    deep = dicom(tmp_path / "deep.dcm", VALUES)
    nested = b"\x28\x00\x10\x30SQ\0\0\xff\xff\xff\xff\xfe\xff\x00\xe0\xff\xff\xff\xff" * 5_000
    content = deep.read_bytes()
    deep.write_bytes(content[: content.index(b"\x28\x00\x02\x00US")] + nested)
    with pytest.raises(InputError, match="found"):
        read_image(deep)


@pytest.mark.parametrize(
    "text", ["window=40", "window=40/0", "frame=0", "axial=1,coronal=2", "volume=1", "nonsense", ""]
)
def test_how_a_file_is_shown_is_read_or_refused(text: str) -> None:
    with pytest.raises(ParseError):
        parse_scan(text)


def test_without_the_extra_the_message_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = dicom(tmp_path / "x.dcm", VALUES)
    monkeypatch.setattr("proctor.media.scans.importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigurationError) as told:
        read_image(file)
    assert str(told.value) == f"{file}: pydicom is not installed, which reads it: pip install 'proctor-eval[dicom]'"


def test_a_window_as_people_write_it() -> None:
    assert [parse_window(text) for text in ("40/400", "[40, 400]", "-600 ; 1500")] == [
        (40, 400),
        (40, 400),
        (-600, 1500),
    ]
    assert parse_scan("frame=3&window=40/400") == Scan(frame=3, window=(40, 400))


def test_images_without_medical_files_keep_their_fingerprint() -> None:
    assert "scan" not in Image(source="a.png").model_dump()
    assert "scan" not in VideoClip(source="a.mp4").model_dump()
    given = Image(source="a.dcm", scan=Scan(window=(1, 2)))
    assert Image.model_validate(given.model_dump(mode="json")) == given
