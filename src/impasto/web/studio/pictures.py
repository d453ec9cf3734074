"""Pictures that come from outside and pictures for the page: checked, small, encoded."""

from __future__ import annotations

import io
import threading
import unicodedata
from functools import lru_cache
from pathlib import Path

import numpy as np
from PIL import Image

from impasto import imagefile, samples
from impasto.types import Picture
from impasto.web.studio.store import Upload

MAX_BYTES = 64_000_000  # of a file
MAX_PIXELS = 50_000_000  # a phone's camera; some 2 GB while it is decoded
THUMB_SIDE = 320
VIEW_SIDE = 2048
LABEL = 80  # letters of a name that are kept

# Decoded pictures are large: one at a time, whoever asks.
_DECODING = threading.Lock()


def inspect(data: bytes, name: str) -> tuple[tuple[int, int], bytes]:
    """Width and height of a picture that can be painted with, and its thumbnail."""
    with _DECODING:
        picture = imagefile.read(data, name=name, max_pixels=MAX_PIXELS, max_bytes=MAX_BYTES)
        return picture.size, _webp(_small(picture, THUMB_SIDE))


@lru_cache(maxsize=24)
def view(path: Path, side: int) -> bytes:
    """A picture upright, in sRGB, with its long side at most as wanted."""
    with _DECODING:
        return _webp(_small(imagefile.read(path, max_pixels=MAX_PIXELS), side))


def size_of(upload: Upload) -> tuple[int, int]:
    """Width and height of a picture."""
    if upload.width:
        return upload.width, upload.height
    return _sample_size(upload.id)


@lru_cache(maxsize=len(samples.SAMPLES))
def _sample_size(name: str) -> tuple[int, int]:
    with Image.open(samples.locate(name)) as image:
        return image.size


def thumb(array: np.ndarray) -> bytes:
    """The thumbnail of 8-bit pixels (H, W, 3 | 4)."""
    return _webp(_shrunk(Image.fromarray(array), THUMB_SIDE))


def jpeg(array: np.ndarray, side: int) -> bytes:
    """8-bit pixels (H, W, 3) for a quick look."""
    buffer = io.BytesIO()
    _shrunk(Image.fromarray(array), side).save(buffer, "JPEG", quality=88)
    return buffer.getvalue()


def label(name: str) -> str:
    """What people call a file: its last part, without what does not print."""
    last = name.replace("\\", "/").rpartition("/")[2]
    plain = "".join(each for each in last if unicodedata.category(each)[0] != "C").strip()
    return plain[-LABEL:] or "picture"


def _small(picture: Picture, side: int) -> Image.Image:
    # Of a huge picture a part of the pixels is enough: the whole again in 8 bits is memory for two.
    part = slice(None, None, max(1, max(picture.size) // (4 * side)))
    pixels = imagefile.to_8bit(picture.rgb[part, part])
    if picture.alpha is not None:
        pixels = np.dstack([pixels, imagefile.to_8bit(picture.alpha[part, part])])
    return _shrunk(Image.fromarray(pixels), side)


def _shrunk(image: Image.Image, side: int) -> Image.Image:
    factor = side / max(image.size)
    if factor >= 1:
        return image
    size = (max(1, round(image.width * factor)), max(1, round(image.height * factor)))
    return image.resize(size, Image.Resampling.LANCZOS, reducing_gap=3.0)


def _webp(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "WEBP", quality=86, method=3)
    return buffer.getvalue()
