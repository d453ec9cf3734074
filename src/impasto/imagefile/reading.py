"""Reading: what people have, as sRGB in [0, 1] with its transparency apart."""

from __future__ import annotations

import io
import json
import os
import re
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
from PIL import Image, ImageCms, ImageFile, UnidentifiedImageError

from impasto.imagefile.writing import DESCRIPTION, Array, pixels_sha256, to_8bit
from impasto.types import ImpastoError, Picture

MAX_PIXELS = 250_000_000
MAX_BYTES = 1 << 30

# Known by their first bytes and decoded by Pillow alone; EPS, for one, would start Ghostscript.
FORMATS = ("JPEG", "PNG", "WEBP", "TIFF", "BMP", "GIF", "AVIF", "JPEG2000", "PPM", "QOI")

ORIENTATION = 0x0112
TOLERANCE = 1e-3  # how far resampling may leave [0, 1] before a float array has another scale

Layers: TypeAlias = "tuple[Array, Array | None]"  # rgb (H, W, 3) and alpha (H, W), float32

UPRIGHT: Mapping[int, Callable[[Array], Array]] = {  # EXIF orientation: how to undo it
    2: lambda pixels: pixels[:, ::-1],
    3: lambda pixels: pixels[::-1, ::-1],
    4: lambda pixels: pixels[::-1],
    5: lambda pixels: pixels.swapaxes(0, 1),
    6: lambda pixels: np.rot90(pixels, -1),
    7: lambda pixels: pixels[::-1, ::-1].swapaxes(0, 1),
    8: lambda pixels: np.rot90(pixels),
}

REASONS: tuple[tuple[type[Exception], str], ...] = (
    (FileNotFoundError, "does not exist; check the path"),
    (NotADirectoryError, "does not exist; check the path"),
    (IsADirectoryError, "is a directory; name a file in it"),
    (PermissionError, "may not be read; check its permissions"),
    (UnidentifiedImageError, f"is no image of a known kind ({', '.join(FORMATS)}); save it as PNG"),
    (MemoryError, "needs more memory than there is; make it smaller"),
)


class _Unfit(Exception):
    """What is wrong with an image: the end of a sentence that begins with its name."""


def read(
    source: Any,
    *,
    name: str | None = None,
    max_pixels: int = MAX_PIXELS,
    max_bytes: int = MAX_BYTES,
) -> Picture:
    """The picture in a file, its bytes, a binary stream, a PIL image, an array or a tensor.

    Files are known by content, not by suffix; the first frame counts. Arrays are (H, W) or
    (H, W, 1 | 3 | 4), tensors (H, W) or (1 | 3 | 4, H, W), as sRGB: bool, uint8, uint16, or float
    in [0, 1]. `name` is what errors call the image.
    """
    with _blame(name or _label(source), max_pixels):
        if isinstance(source, np.ndarray):
            return _picture(*_from_array(source, max_pixels))
        if hasattr(source, "is_floating_point"):  # a tensor; streams too have detach()
            return _picture(*_from_array(_channels_last(source), max_pixels))
        if isinstance(source, Image.Image):
            with _pillow(max_pixels):
                return _picture(*_from_image(source, max_pixels))
        with _opened(_contents(source, max_bytes), max_pixels) as image:
            return _picture(*_from_image(image, max_pixels))


def read_record(source: Any) -> dict[str, Any]:
    """The record that `write` left in a file or its bytes; no pixel is decoded."""
    with (
        _blame(_label(source), MAX_PIXELS),
        _opened(_contents(source, MAX_BYTES), MAX_PIXELS) as image,
    ):
        return _record(image)


def read_whole(source: Any) -> tuple[Array, dict[str, Any]]:
    """The 8-bit pixels and the record of a file without loss, refused where they do not agree."""
    with (
        _blame(_label(source), MAX_PIXELS),
        _opened(_contents(source, MAX_BYTES), MAX_PIXELS) as image,
    ):
        record, pixels = _record(image), np.array(image)
        if pixels.dtype != np.uint8 or record.get("pixels") != pixels_sha256(pixels):
            raise _Unfit("does not hold the pixels that its record tells of")
        return pixels, record


def _record(image: Image.Image) -> dict[str, Any]:
    png = image.format == "PNG"
    text = image.info.get("impasto") if png else image.getexif().get(DESCRIPTION)
    try:
        record = json.loads(text or "")
    except (TypeError, ValueError, RecursionError):  # a camera's words are no record of ours
        record = None
    if not isinstance(record, dict):
        raise _Unfit("carries no Impasto record")
    return record


def _label(source: object) -> str:
    return os.fsdecode(source) if isinstance(source, str | os.PathLike) else "image"


@contextmanager
def _blame(label: str, max_pixels: int) -> Iterator[None]:
    """One sentence about the image in place of whatever was raised."""
    try:
        yield
    except _Unfit as problem:
        raise ImpastoError(f"{label} {problem}") from problem
    except Image.DecompressionBombError as problem:
        count = re.search(r"\d+", str(problem))  # Pillow tells the size only in words
        pixels = int(count[0]) if count else max_pixels + 1
        raise ImpastoError(f"{label} {_too_large(pixels, max_pixels)}") from problem
    except Exception as problem:  # on a damaged file Pillow raises nearly any type
        words = " ".join(str(problem).split()) or type(problem).__name__
        damaged = f"is damaged or cut off ({words}); export it anew"
        reasons = (reason for kind, reason in REASONS if isinstance(problem, kind))
        raise ImpastoError(f"{label} {next(reasons, damaged)}") from problem


def _too_large(pixels: int, max_pixels: int) -> str:
    return f"has {pixels:,} pixels, more than the limit of {max_pixels:,}; make it smaller"


def _check_size(width: int, height: int, max_pixels: int) -> None:
    if width * height == 0:
        raise _Unfit(f"has no pixels: it is {width} × {height}")
    if width * height > max_pixels:
        raise _Unfit(_too_large(width * height, max_pixels))


_PILLOW = threading.RLock()


@contextmanager
def _pillow(max_pixels: int) -> Iterator[None]:
    """Pillow with our limits and without its warnings.

    They are settings of the whole process, hence one reader at a time, and put back afterwards.
    """
    with _PILLOW, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before = Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES
        Image.MAX_IMAGE_PIXELS = (max_pixels + 1) // 2  # Pillow refuses from twice this on
        ImageFile.LOAD_TRUNCATED_IMAGES = False
        try:
            yield
        finally:
            Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES = before


def _contents(source: Any, max_bytes: int) -> io.BytesIO:
    """The bytes of a file, a stream or a buffer; in memory, where nobody changes them meanwhile."""
    if isinstance(source, str | os.PathLike):
        with Path(os.fsdecode(source)).open("rb") as file:
            return _limited(file, max_bytes)
    if isinstance(source, bytes | bytearray | memoryview):
        return _limited(io.BytesIO(source), max_bytes)
    if hasattr(source, "read"):
        return _limited(source, max_bytes)
    raise _Unfit(
        f"is of type {type(source).__name__}, not a path, bytes, PIL image, array or tensor"
    )


def _limited(stream: BinaryIO, max_bytes: int) -> io.BytesIO:
    buffer = io.BytesIO()
    while chunk := stream.read(1 << 20):
        buffer.write(chunk)
        if buffer.tell() > max_bytes:
            raise _Unfit(f"is larger than the limit of {max_bytes:,} bytes; make it smaller")
    if not buffer.tell():
        raise _Unfit("is empty; export it anew")
    return buffer


@contextmanager
def _opened(buffer: io.BytesIO, max_pixels: int) -> Iterator[Image.Image]:
    with _pillow(max_pixels):
        Image.init()
        known = [kind for kind in FORMATS if kind in Image.OPEN]  # an old Pillow has no AVIF
        with Image.open(buffer, formats=known) as image:
            yield image


def _from_image(image: Image.Image, max_pixels: int) -> Layers:
    _check_size(image.width, image.height, max_pixels)
    image.load()
    profile = image.info.get("icc_profile")
    if not image.mode.startswith(("I", "F")):
        color, alpha = _color_and_alpha(image)
        rgb = _unit(np.asarray(_to_srgb(color, profile)))
    else:
        gray, alpha = _deep_gray(image)
        rgb = np.repeat(gray[..., None], 3, axis=2)
        if profile:  # ImageCms answers in 8 bits
            rgb = _unit(np.asarray(_to_srgb(Image.fromarray(to_8bit(gray)), profile)))
    upright = UPRIGHT.get(_orientation(image), np.asarray)
    return upright(rgb), None if alpha is None else upright(alpha)


def _orientation(image: Image.Image) -> int:
    """The EXIF orientation; ask after loading, when Pillow has already turned a TIFF."""
    with suppress(Exception):  # broken metadata does not make the pixels worse
        return int(image.getexif().get(ORIENTATION, 1))
    return 1


def _color_and_alpha(image: Image.Image) -> tuple[Image.Image, Array | None]:
    """The colors as L, RGB, CMYK or LAB, and the transparency, of an image with 8 bits."""
    if image.mode in ("CMYK", "LAB"):
        return image, None
    if image.mode == "La":
        image = image.convert("LA")  # the only conversion Pillow has for it
    mode = "L" if image.mode in ("1", "L", "LA") else "RGB"
    if not image.has_transparency_data:
        return image.convert(mode), None
    image = image.convert("RGBA")
    return image.convert(mode), _unit(np.asarray(image.getchannel("A")))


def _deep_gray(image: Image.Image) -> Layers:
    """The levels (H, W) and transparency of a gray image with more than 8 bits."""
    values = np.asarray(image)
    key = image.info.get("transparency")
    alpha = (values != key).astype(np.float32) if isinstance(key, int) else None
    tags = getattr(image, "tag_v2", {})
    if values.dtype.kind == "i":  # mode I: 16 bits in 32, or numbers of a scale nobody told
        if values.min() < 0 or values.max() > 65_535:
            raise _Unfit("holds 32-bit numbers; save it with 8 or 16 bits")
        values = values.astype(np.uint16)
    gray = _unit(values)
    if tags.get(258) == (12,):  # BitsPerSample: Pillow leaves 12 bits at 0 … 4095
        gray = np.minimum(gray * np.float32(65_535 / 4_095), 1)
    if tags.get(262) == 0:  # WhiteIsZero: Pillow inverts it up to 8 bits only
        gray = 1 - gray
    return gray, alpha


def _to_srgb(image: Image.Image, profile: bytes | None) -> Image.Image:
    """The image in sRGB; a profile that is broken or of another color space is ignored."""
    if image.mode == "LAB":
        return _converted(image, ImageCms.createProfile("LAB"), ImageCms.Flags.NONE)
    with suppress(Exception):
        source = ImageCms.ImageCmsProfile(io.BytesIO(profile or b""))
        space = source.profile.xcolor_space.strip()
        if (image.mode, space) == ("L", "GRAY"):
            # The grid by which LittleCMS shortens its work errs in the dark: ask it for 256 levels.
            ramp = Image.fromarray(np.arange(256, dtype=np.uint8)[None])
            curve = np.asarray(_converted(ramp, source, ImageCms.Flags.NOOPTIMIZE))[0]
            return Image.fromarray(curve[np.asarray(image)])
        if (image.mode, space) in (("L", "RGB"), ("RGB", "RGB"), ("CMYK", "CMYK")):
            return _converted(image.convert(space), source, ImageCms.Flags.NONE)
    return image.convert("RGB")


def _converted(image: Image.Image, source: Any, flags: ImageCms.Flags) -> Image.Image:
    srgb = ImageCms.createProfile("sRGB")
    converted = ImageCms.profileToProfile(image, source, srgb, outputMode="RGB", flags=flags)
    return image if converted is None else converted  # None is for work in place only


def _channels_last(tensor: Any) -> Array:
    if tensor.ndim == 4 and tensor.shape[0] == 1:
        tensor = tensor[0]
    if tensor.ndim == 2:
        tensor = tensor[None]
    if tensor.ndim != 3 or tensor.shape[0] not in (1, 3, 4):
        raise _Unfit(f"has the shape {tuple(tensor.shape)}; a tensor is (1, 3 or 4, H, W)")
    tensor = tensor.detach().cpu()
    if tensor.is_floating_point():
        tensor = tensor.float()  # NumPy knows no bfloat16
    return np.moveaxis(tensor.numpy(), 0, -1)


def _from_array(array: Array, max_pixels: int) -> Layers:
    if array.ndim == 2:
        array = array[..., None]
    if array.ndim != 3 or array.shape[2] not in (1, 3, 4):
        raise _Unfit(f"has the shape {array.shape}; known are (H, W) and (H, W, 1, 3 or 4)")
    _check_size(array.shape[1], array.shape[0], max_pixels)
    values = _unit(array)
    if values.shape[2] == 1:
        return np.repeat(values, 3, axis=2), None
    return values[..., :3], values[..., 3] if values.shape[2] == 4 else None


def _unit(values: Array) -> Array:
    """The values in [0, 1] as float32, in memory of their own."""
    if values.dtype.kind == "b":
        return values.astype(np.float32)
    if values.dtype.kind == "u" and values.dtype.itemsize <= 2:
        return values.astype(np.float32) / np.float32(np.iinfo(values.dtype).max)
    if values.dtype.kind != "f":
        raise _Unfit(f"holds {values.dtype}; known are bool, uint8, uint16 and float in [0, 1]")
    if not np.isfinite(values).all():
        raise _Unfit("holds NaN or infinite values; replace them")
    low, high = float(values.min()), float(values.max())
    if low < -TOLERANCE or high > 1 + TOLERANCE:
        raise _Unfit(f"holds values from {low:g} to {high:g}; floats must be scaled to [0, 1]")
    return np.clip(values, 0, 1).astype(np.float32, copy=False)


def _picture(rgb: Array, alpha: Array | None) -> Picture:
    """The picture of both layers, where what nobody can see has the mean color of the rest."""
    rgb = np.ascontiguousarray(rgb)
    if alpha is None or (alpha == 1).all():
        return Picture(rgb)
    seen = alpha > 0
    if not seen.any():
        raise _Unfit("is wholly transparent; there is nothing to paint")
    if not seen.all():
        rgb[~seen] = np.average(rgb[seen], axis=0, weights=alpha[seen].astype(np.float64))
    return Picture(rgb, np.ascontiguousarray(alpha))
