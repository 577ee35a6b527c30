"""Small DICOM and NIfTI files with known values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pydicom
from numpy.typing import NDArray
from pydicom.dataset import Dataset, FileDataset, FileMetaDataset
from pydicom.uid import CTImageStorage, ExplicitVRLittleEndian, generate_uid

AXIAL = [1, 0, 0, 0, 1, 0]


def dicom(path: Path, values: NDArray[Any], *, syntax: str = ExplicitVRLittleEndian, **elements: Any) -> Path:
    """A DICOM file of these stored values: rows × columns, frames × rows × columns, or with three samples at the end
    (PhotometricInterpretation RGB). Elements by name change or add to it; None leaves one out."""
    meta = FileMetaDataset()
    meta.TransferSyntaxUID = pydicom.uid.UID(syntax)
    meta.MediaStorageSOPClassUID = CTImageStorage
    meta.MediaStorageSOPInstanceUID = generate_uid(entropy_srcs=[path.name])
    made = FileDataset(str(path), {}, file_meta=meta, preamble=b"\0" * 128)
    colour = values.ndim > 2 and values.shape[-1] == 3
    shape = values.shape[:-1] if colour else values.shape
    bits = 8 * values.dtype.itemsize
    usual: dict[str, Any] = {
        "SOPClassUID": CTImageStorage,
        "SOPInstanceUID": meta.MediaStorageSOPInstanceUID,
        "SeriesInstanceUID": "1.2.826.0.1.3680043.8.498.1",
        "Rows": shape[-2],
        "Columns": shape[-1],
        "SamplesPerPixel": 3 if colour else 1,
        "PhotometricInterpretation": "RGB" if colour else "MONOCHROME2",
        "BitsAllocated": bits,
        "BitsStored": bits,
        "HighBit": bits - 1,
        "PixelRepresentation": int(values.dtype.kind == "i"),
        "PixelData": values.astype(values.dtype.newbyteorder("<")).tobytes(),
    }
    if colour:
        usual["PlanarConfiguration"] = 0
    if len(shape) == 3:
        usual["NumberOfFrames"] = shape[0]
    for name, value in {**usual, **elements}.items():
        if value is not None:
            setattr(made, name, value)
    made.save_as(path, enforce_file_format=True)
    return path


def lookup_table(first: int, entries: list[int], bits: int) -> Dataset:
    """An item of a VOI or modality LUT sequence."""
    table = Dataset()
    table.add_new(0x00283002, "SS" if first < 0 else "US", [len(entries), first, bits])
    table.add_new(0x00283006, "US", entries)
    return table


def nifti(path: Path, values: NDArray[Any], affine: Any = None, **header: Any) -> Path:
    """A NIfTI file of these values; without an affine in RAS+ with voxels of 1 mm."""
    import nibabel

    image = nibabel.Nifti1Image(values, np.eye(4) if affine is None else np.asarray(affine, dtype=float))
    for name, value in header.items():
        image.header[name] = value
    nibabel.save(image, path)
    return path
