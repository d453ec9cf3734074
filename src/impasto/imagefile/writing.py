"""Writing: 8-bit sRGB with its profile and the record of what made it."""

from __future__ import annotations

import hashlib
import io
import json
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from PIL import Image, ImageCms, PngImagePlugin

from impasto.files import check_place, write_atomically
from impasto.types import ImpastoError

DESCRIPTION = 0x010E  # the EXIF and TIFF tag ImageDescription, where a record lives outside PNG
EXIF_BYTES = 65_533  # what one JPEG segment holds
Array: TypeAlias = "np.ndarray[Any, Any]"


@dataclass(frozen=True, kw_only=True)
class Encoding:
    """How the files of one suffix are written."""

    format: str
    longest: int = 2**31 - 1  # pixels that a side can have
    options: Mapping[str, Any] = field(default_factory=dict)


_JPEG = Encoding(format="JPEG", longest=65_500, options={"quality": 95, "subsampling": "4:4:4"})
_TIFF = Encoding(format="TIFF", options={"compression": "tiff_adobe_deflate"})
ENCODINGS: Mapping[str, Encoding] = {
    ".png": Encoding(format="PNG", options={"compress_level": 6}),  # 9 is slow for a few percent
    ".jpg": _JPEG,
    ".jpeg": _JPEG,
    ".webp": Encoding(
        format="WEBP",
        longest=16_383,
        options={"quality": 95, "alpha_quality": 100, "exact": True},
    ),
    ".tif": _TIFF,
    ".tiff": _TIFF,
}


def write(
    path: str | os.PathLike[str],
    rgb: Array,
    *,
    alpha: Array | None = None,
    record: Mapping[str, Any] | None = None,
) -> None:
    """The file of an sRGB image (H, W, 3), in the format of its suffix, whole or not at all.

    Equal arguments give equal bytes. JPEG has no alpha: there the image stands on white.
    """
    write_atomically(path, encode(path, rgb, alpha=alpha, record=record))


def encode(
    path: str | os.PathLike[str],
    rgb: Array,
    *,
    alpha: Array | None = None,
    record: Mapping[str, Any] | None = None,
) -> bytes:
    """The bytes that `write` writes; of the path only the suffix counts."""
    encoding = _encoding(path)
    pixels = _canvas(to_8bit(rgb), None if alpha is None else to_8bit(alpha), encoding)
    options = {**encoding.options, **_metadata(encoding, record), "icc_profile": _srgb_profile()}
    buffer = io.BytesIO()
    try:
        Image.fromarray(pixels).save(buffer, encoding.format, **options)
    except Exception as problem:
        raise ImpastoError(f"{path} could not be encoded ({problem}); try PNG") from problem
    return buffer.getvalue()


def check_writable(path: str | os.PathLike[str], *, size: tuple[int, int] | None = None) -> None:
    """An early refusal of what `write` would refuse after hours of work; size is (W, H)."""
    encoding = _encoding(path)
    if size is not None and max(size) > encoding.longest:
        raise ImpastoError(
            f"{path} cannot hold {size[0]} × {size[1]} pixels: a side of a {encoding.format} file "
            f"ends at {encoding.longest}; choose .png"
        )
    check_place(path)


def to_8bit(values: Array) -> Array:
    """Values in 256 levels, v ↦ round(255 v), clipped to what a file can hold; uint8 as it is."""
    values = np.asarray(values)
    if values.dtype == np.uint8:
        return values
    if values.dtype.kind != "f":
        raise ImpastoError(f"pixels are floats in [0, 1] or uint8, not {values.dtype}")
    if not np.isfinite(values).all():
        raise ImpastoError("an image with NaN or infinite values cannot be written")
    return np.rint(np.clip(values, 0, 1) * 255).astype(np.uint8)


def pixels_sha256(rgb: Array, alpha: Array | None = None) -> str:
    """The identity of an image: SHA-256 of its shape and 8-bit pixels, blind to a full alpha."""
    pixels = to_8bit(rgb)
    layer = None if alpha is None else to_8bit(alpha)
    if layer is not None and (layer < 255).any():
        pixels = np.dstack([pixels, layer])
    return hashlib.sha256(str(pixels.shape).encode() + pixels.tobytes()).hexdigest()


def _encoding(path: str | os.PathLike[str]) -> Encoding:
    encoding = ENCODINGS.get(Path(path).suffix.lower())
    if encoding is None:
        raise ImpastoError(f"{path} has no known suffix; known are {', '.join(ENCODINGS)}")
    return encoding


def _canvas(rgb: Array, alpha: Array | None, encoding: Encoding) -> Array:
    """The 8-bit pixels (H, W, 3 | 4) that a file of this format can hold."""
    if rgb.ndim != 3 or rgb.shape[2] != 3 or 0 in rgb.shape:
        raise ImpastoError(f"an image to write is (H, W, 3), not {rgb.shape}")
    if alpha is None:
        return rgb
    if alpha.shape != rgb.shape[:2]:
        raise ImpastoError(f"the alpha {alpha.shape} does not fit the image {rgb.shape}")
    if encoding.format != "JPEG":
        return np.dstack([rgb, alpha])
    cover = alpha[..., None].astype(np.float32) / 255
    return np.rint(rgb * cover + 255 * (1 - cover)).astype(np.uint8)


def _metadata(encoding: Encoding, record: Mapping[str, Any] | None) -> dict[str, Any]:
    """The options by which Pillow stores a record, and the predictor of a TIFF."""
    tags: dict[int, Any] = {317: 2} if encoding.format == "TIFF" else {}  # differences pack tighter
    if record is not None:
        tags[DESCRIPTION] = json.dumps(record, ensure_ascii=True, separators=(",", ":"))
    if encoding.format == "TIFF":
        return {"tiffinfo": tags}
    if not tags:
        return {}
    if encoding.format == "PNG":
        text = PngImagePlugin.PngInfo()
        text.add_text("impasto", tags[DESCRIPTION])
        return {"pnginfo": text}
    exif = Image.Exif()
    exif.update(tags)
    if encoding.format == "JPEG" and len(exif.tobytes()) > EXIF_BYTES:
        raise ImpastoError(
            f"the record is too long for a JPEG file ({EXIF_BYTES:,} bytes); use PNG"
        )
    return {"exif": exif}


@cache
def _srgb_profile() -> bytes:
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    date = struct.pack(">6H", 2000, 1, 1, 0, 0, 0)  # not today: equal input gives equal bytes
    return profile[:24] + date + profile[36:]
