"""NIfTI slices: orientation by hand and by nibabel's own, windows, sizes of voxels, refusals."""

from __future__ import annotations

import gzip
from itertools import permutations, product
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pytest
from numpy.typing import NDArray

from proctor.core import InputError, Scan
from proctor.media import nifti_facts, read_image
from tests.support.medical_files import nifti

AXES = {"sagittal": 0, "coronal": 1, "axial": 2}
VALUES = np.arange(24, dtype=np.int16).reshape(2, 3, 4)  # x, y, z


def shown(path: Path, **scan: Any) -> NDArray[np.uint8]:
    return np.asarray(read_image(path, Scan(**scan)))[..., 0]


def test_orientation_by_hand(tmp_path: Path) -> None:
    file = nifti(tmp_path / "a.nii.gz", VALUES)
    window = (12.75, 25.5)  # grey = 10 · value
    # value = 12 x + 4 y + z; axial slice 0: front (high y) at the top, the patient's right (high x) at the left
    assert shown(file, axis="axial", slice=0, window=window).tolist() == [[200, 80], [160, 40], [120, 0]]
    # coronal slice 0: head (high z) at the top, right at the left
    assert shown(file, axis="coronal", slice=0, window=window).tolist() == [[150, 30], [140, 20], [130, 10], [120, 0]]
    # sagittal slice 0: head at the top, front at the left
    expected = [[110, 70, 30], [100, 60, 20], [90, 50, 10], [80, 40, 0]]
    assert shown(file, axis="sagittal", slice=0, window=window).tolist() == expected
    assert nifti_facts(file).slices == {"sagittal": 2, "coronal": 3, "axial": 4}


@pytest.mark.parametrize("suffix", [".nii", ".nii.gz"])
def test_every_orientation_as_nibabel_has_it(suffix: str, tmp_path: Path) -> None:
    draw = np.random.default_rng(3)
    values = draw.integers(0, 256, (4, 5, 6)).astype(np.uint8)
    cases = list(product(permutations(range(3)), product((1, -1), repeat=3)))
    for order, signs in [cases[int(position)] for position in draw.permutation(len(cases))[:16]]:
        affine = np.eye(4)
        affine[:3, :3] = np.eye(3)[list(order)] * signs
        affine[:3, :3] += draw.uniform(-0.05, 0.05, (3, 3))  # a little oblique
        file = nifti(tmp_path / f"o{suffix}", values, affine)
        canonical = np.asarray(nibabel.as_closest_canonical(nibabel.load(file)).dataobj)
        for axis, across in AXES.items():
            position = int(draw.integers(canonical.shape[across]))
            plane = np.take(canonical, position, axis=across)
            found = shown(file, axis=axis, slice=position, window=(127.5, 255))
            zoom = nibabel.as_closest_canonical(nibabel.load(file)).header.get_zooms()
            if np.allclose(zoom[0], zoom, atol=1e-4):
                assert found.tolist() == plane.T[::-1, ::-1].tolist()
            else:
                assert (found.shape[0] <= plane.shape[1], found.shape[1] <= plane.shape[0]) == (True, True)


def test_exact_orientations_pixel_by_pixel(tmp_path: Path) -> None:
    values = np.random.default_rng(4).integers(0, 256, (4, 5, 6)).astype(np.uint8)
    for order, signs in product(permutations(range(3)), product((1, -1), repeat=3)):
        affine = np.eye(4)
        affine[:3, :3] = np.eye(3)[list(order)] * signs
        file = nifti(tmp_path / "o.nii", values, affine)
        canonical = np.asarray(nibabel.as_closest_canonical(nibabel.load(file)).dataobj)
        for axis, across in AXES.items():
            plane = np.take(canonical, 1, axis=across)
            assert shown(file, axis=axis, slice=1, window=(127.5, 255)).tolist() == plane.T[::-1, ::-1].tolist()


def test_windows_scaling_volumes_and_voxels(tmp_path: Path) -> None:
    line = np.array([0, 1, 2, 4], dtype=np.float32).reshape(4, 1, 1)
    whole = nifti(tmp_path / "w.nii.gz", line)
    assert shown(whole, axis="axial", slice=0).tolist() == [[255, 128, 64, 0]]  # the range of the slice
    said = nifti(tmp_path / "c.nii.gz", line, cal_min=1, cal_max=2)
    assert shown(said, axis="axial", slice=0).tolist() == [[255, 255, 0, 0]]
    assert shown(said, axis="axial", slice=0, window=(2, 4)).tolist() == [[255, 128, 64, 0]]
    holes = nifti(tmp_path / "n.nii.gz", np.array([0, np.nan, 1], dtype=np.float32).reshape(3, 1, 1))
    assert shown(holes, axis="axial", slice=0).tolist() == [[255, 0, 0]]
    several = nifti(tmp_path / "v.nii.gz", np.stack([line, 4 - line], axis=-1))
    assert shown(several, axis="axial", slice=0, volume=1).tolist() == [[0, 128, 191, 255]]
    thick = nifti(tmp_path / "t.nii.gz", np.zeros((8, 8, 8), dtype=np.uint8), np.diag([1, 1, 4, 1]))
    assert read_image(thick, Scan(axis="coronal", slice=0)).size == (2, 8)  # 8 mm × 32 mm


@pytest.mark.parametrize(
    ("scan", "found"),
    [
        ({}, "found a volume, expected an axis and a slice (as in #axial=0)"),
        ({"axis": "axial", "slice": 4}, "found axial slice 4, expected 0 to 3"),
        ({"axis": "axial", "slice": 0, "volume": 1}, "found volume 1, expected 0 to 0"),
        ({"frame": 1}, "found frame=1 for it, expected an axis, a slice, a window"),
    ],
)
def test_what_is_not_there_is_one_line(scan: dict[str, Any], found: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as told:
        read_image(nifti(tmp_path / "a.nii", VALUES), Scan(**scan))
    assert found in str(told.value)
    assert "\n" not in str(told.value)


def _header(values: NDArray[Any], **changed: Any) -> bytes:
    image = nibabel.Nifti1Image(values, np.eye(4))
    content = bytearray(image.to_bytes())
    for offset, kind, number in changed.values():
        field = np.array(number, dtype=kind).tobytes()
        content[offset : offset + len(field)] = field
    return bytes(content)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (_header(VALUES, codes=(252, "<i2", [0, 0])), "found no orientation"),
        (_header(VALUES, dim=(40, "<i2", [3, 32767, 32767, 32767])), "found a slice of 32767 × 32767"),
        (_header(VALUES, dim=(40, "<i2", [3, 300, 300, 300])), "can't be read"),
        (_header(VALUES)[:300], "can't be read"),
        (_header(VALUES)[:380], "can't be read"),
        (_header(VALUES.astype(np.complex64)), "found values that are no plain numbers"),
        (b"", "can't be read"),
    ],
    ids=["codes", "side", "dim", "head", "data", "complex", "nothing"],
)
def test_broken_files_are_one_line(content: bytes, found: str, tmp_path: Path) -> None:
    for name, raw in (("a.nii", content), ("a.nii.gz", gzip.compress(content))):
        (tmp_path / name).write_bytes(raw)
        with pytest.raises(InputError) as told:
            read_image(tmp_path / name, Scan(axis="axial", slice=3 if len(content) == 380 else 0))
        assert found in str(told.value)
        assert "\n" not in str(told.value)


def test_a_gzip_bomb_is_one_line(tmp_path: Path) -> None:
    head = _header(np.zeros((2, 3, 4)), dim=(40, "<i2", [3, 6000, 6000, 300]))
    (tmp_path / "bomb.nii.gz").write_bytes(gzip.compress(head) + 290 * gzip.compress(bytes(2**20)))
    with pytest.raises(InputError, match=r"found a file that takes more than 5 s or 500 MB, expected a smaller one"):
        read_image(tmp_path / "bomb.nii.gz", Scan(axis="axial", slice=0))
    assert shown(nifti(tmp_path / "good.nii", VALUES), axis="axial", slice=0).shape == (3, 2)
