"""Slices of NIfTI volumes, by nibabel. Runs in `scan_process`.

Slices are counted in RAS+ orientation (as by `nibabel.as_closest_canonical`) and displayed by radiological convention:
the patient's right at the left of axial and coronal slices, the front at the top of axial and at the left of sagittal
ones, the head at the top of the others.
"""

from __future__ import annotations

from typing import Any

from proctor.media.scan_values import (
    MAX_PIXELS,
    GreyWindow,
    RefusedScanError,
    Rescale,
    ScanPicture,
    checked_aspect,
    grey,
)

AXES = ("sagittal", "coronal", "axial")
"""The kind of slices across each axis of RAS+."""

_MAX_SIDE = 32_767  # the limit of NIfTI-1
_MAX_VOLUMES = 100_000


def facts(path: str) -> dict[str, object]:
    """The number of slices across each axis, and of volumes."""
    image = _opened(path)
    sizes, volumes = _sizes(image)
    order = _orientation(image)
    counts = {AXES[int(axis)]: size for size, (axis, _) in zip(sizes, order, strict=True)}
    return {"slices": counts, "volumes": volumes}


def picture(
    path: str, axis: str | None, position: int | None, volume: int | None, window: tuple[float, float] | None
) -> ScanPicture:
    """One slice. Raises `RefusedScanError` where there is none, or the file can't be shown."""
    image = _opened(path)
    sizes, volumes = _sizes(image)
    order = _orientation(image)
    if axis is None or position is None:
        raise RefusedScanError("a volume", "an axis and a slice (as in #axial=0)")
    if volume is None and volumes > 1:
        raise RefusedScanError(f"{volumes} volumes", "a volume (as in #axial=0,volume=0)")
    if volume is not None and volume >= volumes:
        raise RefusedScanError(f"volume {volume}", f"0 to {volumes - 1}")
    across = AXES.index(axis)
    source = next(k for k in range(3) if int(order[k][0]) == across)
    if position >= sizes[source]:
        raise RefusedScanError(f"{axis} slice {position}", f"0 to {sizes[source] - 1}")
    rest = [k for k in range(3) if k != source]
    if sizes[rest[0]] * sizes[rest[1]] > MAX_PIXELS:
        raise RefusedScanError(f"a slice of {sizes[rest[0]]} × {sizes[rest[1]]}", f"at most {MAX_PIXELS:,} pixels")
    wanted = position if order[source][1] > 0 else sizes[source] - 1 - position
    plane = _plane(image, source, wanted, volume)
    zooms = image.header.get_zooms()
    plane = plane[tuple(slice(None, None, 1 if order[k][1] > 0 else -1) for k in rest)]
    if order[rest[0]][0] > order[rest[1]][0]:
        plane, rest = plane.T, rest[::-1]
    aspect = checked_aspect(float(zooms[rest[0]]), float(zooms[rest[1]]))
    return ScanPicture(grey(plane.T[::-1, ::-1].copy(), Rescale(), _window(image, window), None), aspect)


def _opened(path: str) -> Any:
    import nibabel

    image: Any = nibabel.load(path, mmap=False, keep_file_open=True)
    if not isinstance(image, nibabel.Nifti1Image):  # NIfTI-2 is a kind of it
        raise RefusedScanError("another kind of image", "NIfTI")
    return image


def _sizes(image: Any) -> tuple[list[int], int]:
    shape = [int(size) for size in image.shape]
    while len(shape) > 3 and shape[-1] == 1:
        shape.pop()
    if len(shape) not in {3, 4} or not all(0 < size <= _MAX_SIDE for size in shape[:3]):
        raise RefusedScanError(f"{len(shape)} dimensions of {shape[:8]}", "a volume, or several of one size")
    volumes = shape[3] if len(shape) == 4 else 1
    if not 0 < volumes <= _MAX_VOLUMES:
        raise RefusedScanError(f"{volumes} volumes", f"1 to {_MAX_VOLUMES:,}")
    if image.get_data_dtype().kind not in "iuf":
        raise RefusedScanError("values that are no plain numbers (colours, complex)", "grey values")
    return shape[:3], volumes


def _orientation(image: Any) -> list[tuple[float, float]]:
    """For each axis of the file the nearest axis of RAS+, and 1 for the same direction, else -1."""
    import nibabel
    import numpy as np

    header = image.header
    if int(header["qform_code"]) <= 0 and int(header["sform_code"]) <= 0:
        raise RefusedScanError("no orientation (qform and sform codes are 0)", "a volume whose orientation is stated")
    if not np.isfinite(image.affine).all():
        raise RefusedScanError("an orientation that is no number", "a volume whose orientation is stated")
    found = nibabel.io_orientation(image.affine)
    if not np.isfinite(found).all():
        raise RefusedScanError("an orientation without one of the axes", "a volume whose orientation is stated")
    return [(float(axis), float(way)) for axis, way in found]


def _plane(image: Any, source: int, wanted: int, volume: int | None) -> Any:
    """The values of one plane of the file. Across the first two axes it is assembled from planes across the third, so
    that only one of those is in memory."""
    import numpy as np

    more = tuple([volume or 0] + [0] * (len(image.shape) - 4)) if len(image.shape) > 3 else ()
    if source == 2:
        return np.asarray(image.dataobj[(slice(None), slice(None), wanted, *more)])
    lines = []
    for position in range(image.shape[2]):
        part = np.asarray(image.dataobj[(slice(None), slice(None), position, *more)])
        lines.append(np.take(part, wanted, axis=source).copy())
    return np.stack(lines, axis=1)


def _window(image: Any, given: tuple[float, float] | None) -> GreyWindow | None:
    """The given window, else the header's display range; None for the slice's whole range."""
    import numpy as np

    if given is not None:
        return GreyWindow(*given)
    low, high = float(image.header["cal_min"]), float(image.header["cal_max"])
    if np.isfinite(low) and np.isfinite(high) and high > low:
        return GreyWindow((low + high) / 2, high - low)
    return None
