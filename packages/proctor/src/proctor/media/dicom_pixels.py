"""Pictures from DICOM files, by pydicom. Runs in `scan_process`.

Only the elements that a picture needs are read (`_ELEMENTS`), never personal data.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any, BinaryIO

from proctor.media.scan_values import (
    BLOCK,
    MAX_PIXELS,
    GreyWindow,
    RefusedScanError,
    Rescale,
    ScanPicture,
    checked_aspect,
    grey,
)

_MAX_FRAMES = 100_000
_BITS = (1, 8, 16, 32, 64)
_MONOCHROME = ("MONOCHROME1", "MONOCHROME2")
_COLOURS = ("RGB", "YBR_FULL", "YBR_FULL_422", "YBR_ICT", "YBR_RCT")
_ELEMENTS = [
    "SeriesInstanceUID", "ImagePositionPatient", "ImageOrientationPatient", "NumberOfFrames", "FrameTime",
    "FrameTimeVector", "CineRate", "RecommendedDisplayFrameRate", "FrameIncrementPointer", "BurnedInAnnotation",
    "RecognizableVisualFeatures", "Rows", "Columns", "BitsAllocated", "BitsStored", "HighBit", "PixelRepresentation",
    "SamplesPerPixel", "PlanarConfiguration", "PhotometricInterpretation", "RescaleSlope", "RescaleIntercept",
    "ModalityLUTSequence", "VOILUTSequence", "WindowCenter", "WindowWidth", "VOILUTFunction", "PixelPaddingValue",
    "PixelPaddingRangeLimit", "PixelSpacing", "ImagerPixelSpacing", "NominalScannedPixelSpacing", "PixelAspectRatio",
    "RedPaletteColorLookupTableDescriptor", "GreenPaletteColorLookupTableDescriptor",
    "BluePaletteColorLookupTableDescriptor", "RedPaletteColorLookupTableData", "GreenPaletteColorLookupTableData",
    "BluePaletteColorLookupTableData", "SegmentedRedPaletteColorLookupTableData",
    "SegmentedGreenPaletteColorLookupTableData", "SegmentedBluePaletteColorLookupTableData",
    "SharedFunctionalGroupsSequence", "PerFrameFunctionalGroupsSequence",
]  # fmt: skip
_DEFLATED = "1.2.840.10008.1.2.1.99"
_LOSSLESS = ("1.2.840.10008.1.2.4.57", "1.2.840.10008.1.2.4.70")
_EXTENDED = "1.2.840.10008.1.2.4.51"  # of which Pillow decodes what has 8 bits
_INSTALL = {
    **dict.fromkeys(_LOSSLESS, "pip install pylibjpeg pylibjpeg-libjpeg"),
    **dict.fromkeys((f"1.2.840.10008.1.2.4.{n}" for n in (80, 81)), "pip install pyjpegls"),
    **dict.fromkeys((f"1.2.840.10008.1.2.4.{n}" for n in (201, 202, 203)), "pip install pylibjpeg pylibjpeg-openjpeg"),
}
_VIDEO = re.compile(r"1\.2\.840\.10008\.1\.2\.4\.10\d(\.1)?")
_UID = re.compile(r"[0-9.]{1,64}")


def prepare() -> None:
    """Imports what reading needs before the memory limit applies, and silences pydicom's messages about values."""
    import numpy as np
    import pydicom.config
    from pydicom.pixels import get_decoder
    from pydicom.uid import JPEG2000, JPEGBaseline8Bit, RLELossless

    pydicom.config.settings.reading_validation_mode = pydicom.config.IGNORE
    for syntax in (JPEG2000, JPEGBaseline8Bit, RLELossless):
        get_decoder(syntax).is_available  # noqa: B018 - imports its plugins
    np.zeros((2, 2)).min()


def facts(path: str) -> dict[str, object]:
    """The facts of a file: its series (a hash of the UID), its plane, the number and times of frames, its size, and
    whether it declares identifying pixels (see `DicomFacts`)."""
    with open(path, "rb") as file:  # noqa: PTH123 - a text came in
        header = _header(file)
    series = str(header.get("SeriesInstanceUID", ""))
    frames = _frame_count(header)
    marked = [
        name
        for name in ("BurnedInAnnotation", "RecognizableVisualFeatures")
        if str(header.get(name, "")).strip().upper() == "YES"
    ]
    return {
        "series": hashlib.sha256(series.encode("utf-8", "replace")).hexdigest() if series else "",
        "plane": _plane(header),
        "frames": frames,
        "ends": _frame_ends(header, frames),
        "width": int(header.get("Columns") or 0),
        "height": int(header.get("Rows") or 0),
        "marked": marked,
    }


def picture(path: str, frame: int | None, window: tuple[float, float] | None) -> ScanPicture:
    """One frame, counted from 1, as it should be displayed. Raises `RefusedScanError` where there is none."""
    with open(path, "rb") as file:  # noqa: PTH123 - as above
        header = _header(file)
        frames = _frame_count(header)
        if frame is None and frames > 1:
            raise RefusedScanError(f"{frames} frames", "one of them (as in #frame=1)")
        if frame is not None and frame > frames:
            raise RefusedScanError(f"frame {frame}", f"1 to {frames}")
        number = (frame or 1) - 1
        _check_size(header)
        stored = _decoded(file, header, number)
    aspect = _aspect(header, number)
    kind = str(header.get("PhotometricInterpretation", ""))
    if kind in _MONOCHROME:
        return ScanPicture(_grey(stored, header, number, window), aspect)
    if window is not None:
        raise RefusedScanError("a window for a picture in colours", "none")
    if kind == "PALETTE COLOR":
        from pydicom.pixels import apply_color_lut

        return ScanPicture(_bytes(apply_color_lut(stored, header)), aspect)
    return ScanPicture(_bytes(stored, int(header.BitsStored)), aspect)


def _header(file: BinaryIO) -> Any:
    import pydicom
    from pydicom.errors import InvalidDicomError

    try:
        header = pydicom.dcmread(file, stop_before_pixels=True, specific_tags=list(_ELEMENTS))
    except InvalidDicomError:
        raise RefusedScanError("no DICOM file (128 bytes, then DICM, are its start)", "one") from None
    syntax = str(header.file_meta.get("TransferSyntaxUID", ""))
    if not _UID.fullmatch(syntax):
        raise RefusedScanError("no transfer syntax", "a DICOM file that states it")
    return header


def _frame_count(header: Any) -> int:
    frames = int(header.get("NumberOfFrames") or 1)
    if not 1 <= frames <= _MAX_FRAMES:
        raise RefusedScanError(f"{frames:,} frames", f"1 to {_MAX_FRAMES:,}")
    return frames


def _check_size(header: Any) -> None:
    rows, columns = int(header.get("Rows") or 0), int(header.get("Columns") or 0)
    samples, bits = int(header.get("SamplesPerPixel") or 1), int(header.get("BitsAllocated") or 0)
    kind = str(header.get("PhotometricInterpretation", ""))
    if not (rows and columns):
        raise RefusedScanError("no picture in it", "a DICOM file with pixels")
    if rows * columns > MAX_PIXELS:
        raise RefusedScanError(f"a picture of {columns:,} × {rows:,}", f"at most {MAX_PIXELS:,} pixels")
    expected = {**dict.fromkeys((*_MONOCHROME, "PALETTE COLOR"), 1), **dict.fromkeys(_COLOURS, 3)}
    if kind not in expected:
        raise RefusedScanError("an unknown photometric interpretation", ", ".join(expected))
    if samples != expected[kind] or bits not in _BITS or (samples == 3 and bits not in {8, 16}):
        raise RefusedScanError(f"{samples} samples of {bits} bits as {kind}", f"{expected[kind]}, of 1 to 64 bits")


def _decoded(file: BinaryIO, header: Any, number: int) -> Any:
    """The stored values of one frame: rows × columns, or rows × columns × 3 in RGB."""
    import pydicom
    from pydicom.pixels import pixel_array

    syntax = header.file_meta.TransferSyntaxUID
    _check_decoder(syntax, int(header.get("BitsStored") or 0))
    file.seek(0)
    try:
        if str(syntax) == _DEFLATED:  # can't be read from the middle
            stored = pixel_array(pydicom.dcmread(file), index=number)
        else:
            stored = pixel_array(file, index=number)
    except (AttributeError, ValueError, RuntimeError, LookupError, OSError, AssertionError) as error:
        if isinstance(error, RecursionError):
            raise
        raise RefusedScanError(f"pixels ({syntax.name}) that can't be decoded", "whole ones") from error
    shape = (int(header.Rows), int(header.Columns), *((3,) if int(header.get("SamplesPerPixel") or 1) == 3 else ()))
    if stored.shape != shape:
        raise RefusedScanError(f"a picture of {_sides(stored.shape)}", f"{_sides(shape)} as its header says")
    return stored


def _sides(shape: Sequence[int]) -> str:
    return " × ".join(map(str, shape[:4]))


def _check_decoder(syntax: Any, bits: int) -> None:
    from pydicom.pixels import get_decoder

    named = f"the transfer syntax {syntax.name}" + (f" ({syntax})" if syntax.name != str(syntax) else "")
    if _VIDEO.fullmatch(str(syntax)):
        raise RefusedScanError(f"a video ({syntax.name})", "the video exported into a file of its own (MP4)")
    try:
        decoder = get_decoder(syntax)
    except NotImplementedError:
        raise RefusedScanError(named, "one that pydicom decodes") from None
    if not decoder.is_available:
        install = _INSTALL.get(str(syntax), "gdcm or pylibjpeg")
        raise RefusedScanError(named, f"a decoder for it: {install}")
    if str(syntax) == _EXTENDED and bits > 8 and set(decoder.available_plugins) == {"pillow"}:
        raise RefusedScanError(f"{named} with {bits} bits", f"a decoder for them: {_INSTALL[_LOSSLESS[0]]}")


def _grey(stored: Any, header: Any, number: int, given: tuple[float, float] | None) -> Any:
    """By modality LUT or rescale, then VOI LUT or window, then the polarity (DICOM PS3.3 C.11.1, C.11.2, C.7.6.3.1.2).
    A given window overrides the file's."""
    padding = _padding(header)
    modality = _first_item(header.get("ModalityLUTSequence"))
    rescale = Rescale()
    if modality is not None:
        stored, padding = _looked_up(stored, modality, rescale)[0], None
    else:
        slope = _stated(header, number, "PixelValueTransformationSequence", "RescaleSlope")
        intercept = _stated(header, number, "PixelValueTransformationSequence", "RescaleIntercept")
        if slope is not None and intercept is not None:
            rescale = _rescale(slope, intercept)
    table = _first_item(_stated(header, number, "FrameVOILUTSequence", "VOILUTSequence"))
    if given is None and table is not None:
        shown, bits = _looked_up(stored, table, rescale)
        levels = grey(shown, Rescale(), GreyWindow((2**bits - 1) / 2, 2**bits - 1), None)
    else:
        levels = grey(stored, rescale, _window(header, number, given), padding)
    return 255 - levels if str(header.PhotometricInterpretation) == "MONOCHROME1" else levels


def _rescale(slope: Any, intercept: Any) -> Rescale:
    import numpy as np

    found = Rescale(float(slope), float(intercept))
    if not (np.isfinite(found.slope) and np.isfinite(found.intercept)) or found.slope == 0.0:
        raise RefusedScanError(f"a rescale slope of {found.slope:g}", "a number other than 0")
    return found


def _window(header: Any, number: int, given: tuple[float, float] | None) -> GreyWindow | None:
    function = str(_stated(header, number, "FrameVOILUTSequence", "VOILUTFunction") or "LINEAR").strip().lower()
    if given is not None:
        return GreyWindow(*given, function)
    centre = _first(_stated(header, number, "FrameVOILUTSequence", "WindowCenter"))
    width = _first(_stated(header, number, "FrameVOILUTSequence", "WindowWidth"))
    return None if centre is None or width is None else GreyWindow(float(centre), float(width), function)


def _padding(header: Any) -> tuple[float, float] | None:
    one = header.get("PixelPaddingValue")
    if one is None:
        return None
    other = header.get("PixelPaddingRangeLimit")
    low, high = sorted((float(one), float(one if other is None else other)))
    return low, high


def _looked_up(values: Any, table: Any, rescale: Rescale) -> tuple[Any, int]:
    """Rescaled values mapped by a lookup table (DICOM PS3.3 C.11.1.1), clipped to its ends; and the bits of its
    entries."""
    import numpy as np

    entries, first, bits = (int(one) for one in table.LUTDescriptor)
    entries = entries or 2**16
    if not (0 < entries <= 2**16 and 1 <= bits <= 16):
        raise RefusedScanError(f"a lookup table of {entries} entries of {bits} bits", "up to 65,536 of up to 16")
    content = table.LUTData
    if isinstance(content, bytes):
        order = "<" if table.is_little_endian is not False else ">"
        known = np.frombuffer(content[: 2 * entries], dtype=f"{order}u2")
    else:
        known = np.asarray([content] if isinstance(content, int) else list(content), dtype=np.int64)
    if len(known) < entries:
        raise RefusedScanError(f"a lookup table of {len(known)} entries", f"{entries} as it says")
    known, flat = known.astype(np.uint16), values.reshape(-1)
    out = np.empty(flat.shape, dtype=np.uint16)
    for start in range(0, flat.size, BLOCK):
        part = np.rint(rescale(flat[start : start + BLOCK].astype(np.float64)))
        positions = np.clip(np.nan_to_num(part - first), 0, entries - 1).astype(np.int64)
        out[start : start + BLOCK] = known[positions]
    return out.reshape(values.shape), bits


def _stated(header: Any, number: int, group: str, name: str) -> Any:
    """The value of an element for a frame: from its own functional group, the shared one, or the header."""
    per_frame, shared = header.get("PerFrameFunctionalGroupsSequence"), header.get("SharedFunctionalGroupsSequence")
    own = per_frame[number] if per_frame is not None and number < len(per_frame) else None
    for one in (own, _first_item(shared)):
        item = None if one is None else _first_item(one.get(group))
        if item is not None and item.get(name) is not None:
            return item.get(name)
    return header.get(name)


def _first_item(sequence: Any) -> Any:
    return sequence[0] if sequence is not None and len(sequence) else None


def _first(value: Any) -> Any:
    """The first of several values; None where there is none."""
    if value is None or isinstance(value, str | bytes | int | float):
        return value or None if isinstance(value, str | bytes) else value
    values = list(value) if hasattr(value, "__iter__") else [value]
    return values[0] if values else None


def _bytes(colours: Any, bits: int | None = None) -> Any:
    """Colours of 8 bits: of more the highest 8."""
    import numpy as np

    stored = 8 * colours.dtype.itemsize if bits is None else bits
    if stored > 8:
        colours = colours >> (stored - 8)
    return np.clip(colours, 0, 255).astype(np.uint8)


def _aspect(header: Any, number: int) -> float:
    spacing = _stated(header, number, "PixelMeasuresSequence", "PixelSpacing")
    for named in (spacing, header.get("ImagerPixelSpacing"), header.get("NominalScannedPixelSpacing")):
        if named is not None and len(named) == 2:
            return checked_aspect(float(named[1]), float(named[0]))
    ratio = header.get("PixelAspectRatio")  # the height of a pixel to its width
    return checked_aspect(float(ratio[1]), float(ratio[0])) if ratio is not None and len(ratio) == 2 else 1.0


def _plane(header: Any) -> dict[str, object] | None:
    """The directions of rows and columns, and the position along their normal; None where the file does not state
    them."""
    import numpy as np

    position, turned = header.get("ImagePositionPatient"), header.get("ImageOrientationPatient")
    if position is None or turned is None or len(position) != 3 or len(turned) != 6:
        return None
    directions = np.array([float(one) for one in turned])
    normal = np.cross(directions[:3], directions[3:])
    along = float(np.dot(normal, [float(one) for one in position]))
    return {"directions": directions.tolist(), "along": along} if np.isfinite([along, *directions]).all() else None


def _frame_ends(header: Any, frames: int) -> list[float] | None:
    """The end of each frame, in seconds from the first one's start; None without times."""
    if frames == 1:
        return None
    pointer = header.get("FrameIncrementPointer")
    named = (
        [int(one) for one in (pointer if hasattr(pointer, "__iter__") else [pointer])] if pointer is not None else []
    )
    if named and not {0x00181063, 0x00181065} & set(named):
        return None  # frames that do not differ in time
    steps = _frame_steps(header, frames)
    if steps is None:
        return None
    ends = list(accumulate(steps))
    if not all(0.0 < end < 10**7 for end in ends) or any(later <= earlier for earlier, later in pairwise(ends)):
        raise RefusedScanError("frame times that do not ascend", "times in ascending order")
    return ends


def _frame_steps(header: Any, frames: int) -> list[float] | None:
    """The duration of each frame in seconds."""
    vector = header.get("FrameTimeVector")
    if vector is not None and len(vector):
        told = [float(one) / 1000 for one in vector]
        if len(told) != frames:
            raise RefusedScanError(f"{len(told)} frame times", f"{frames}, one for each frame")
        return [*told[1:], told[-1]]  # each says how long after the one before it a frame comes
    one = float(header.get("FrameTime") or 0.0) / 1000
    rate = float(header.get("CineRate") or header.get("RecommendedDisplayFrameRate") or 0.0)
    step = one if one > 0 else 1 / rate if rate > 0 else 0.0
    return [step] * frames if step > 0 else None
