"""Images in and out: laws of formats, of color and of files, on files that Pillow or we make."""

from __future__ import annotations

import errno
import io
import json
import os
import stat
import struct
import threading
import time
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageCms, ImageFile

from impasto import files, imagefile
from impasto.imagefile import reading, writing
from impasto.types import ImpastoError, Picture

LEVEL = 1 / 255
NOISE = np.random.default_rng(7).integers(0, 256, (30, 40, 3), dtype=np.uint8)
SUFFIXES = (".png", ".jpg", ".webp", ".tif")


def encoded(image: Image.Image, kind: str, **options) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def png(
    width: int, height: int, rows: bytes, *, bits: int, color: int, extra: bytes = b""
) -> bytes:
    """A PNG by the letter of its specification, for depths that Pillow cannot write."""
    header = struct.pack(">IIBBBBB", width, height, bits, color, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        (chunk(b"IHDR", header), extra, chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b""))
    )


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def tiff(
    width: int, height: int, data: bytes, *, bits: int, photometric: int, samples: int
) -> bytes:
    """A little-endian TIFF of one strip by the letter of its specification."""
    where = 8 + 2 + 12 * 8 + 4
    entries = [
        (256, 4, 1, width),
        (257, 4, 1, height),
        (258, 3, samples, bits if samples == 1 else where),
        (259, 3, 1, 1),
        (262, 3, 1, photometric),
        (273, 4, 1, where + 2 * samples),
        (277, 3, 1, samples),
        (279, 4, 1, len(data)),
    ]
    table = b"".join(struct.pack("<HHII", *entry) for entry in entries)
    depths = struct.pack("<H", bits) * samples
    return struct.pack("<2sHIH", b"II", 42, 8, 8) + table + bytes(4) + depths + data


def icc(space: bytes, pcs: bytes, kind: bytes, tags: dict[bytes, bytes]) -> bytes:
    """An ICC profile, version 2, by the letter of its specification."""
    white = struct.pack(">3i", 63190, 65536, 54061)  # D50 in s15Fixed16
    tags = {b"wtpt": b"XYZ \0\0\0\0" + white, b"cprt": b"text\0\0\0\0none\0", **tags}
    table, body, offset = b"", b"", 132 + 12 * len(tags)
    for name, data in tags.items():
        data += bytes(-len(data) % 4)
        table += name + struct.pack(">II", offset + len(body), len(data))
        body += data
    header = struct.pack(
        ">I4sI4s4s4s12x4s4s24x", offset + len(body), b"none", 0x02400000, kind, space, pcs,
        b"acsp", b"none",
    )  # fmt: skip
    return header + white + bytes(48) + struct.pack(">I", len(tags)) + table + body


def swapped_srgb() -> bytes:
    """sRGB, except that it names red what is blue."""
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    return profile.replace(b"rXYZ", b"????").replace(b"bXYZ", b"rXYZ").replace(b"????", b"bXYZ")


def linear_gray() -> bytes:
    curve = b"curv" + struct.pack(">II", 0, 0)  # no entries: the identity
    return icc(b"GRAY", b"XYZ ", b"mntr", {b"kTRC": curve})


def one_ink_is_black() -> bytes:
    """A CMYK press on which any full ink alone already gives black."""
    identity = bytes(range(256))
    corners = bytes([255, 128, 128]) + bytes([0, 128, 128]) * 15  # Lab at the 2⁴ corners
    matrix = struct.pack(">9i", 65536, 0, 0, 0, 65536, 0, 0, 0, 65536)
    lut = b"mft1\0\0\0\0" + bytes([4, 3, 2, 0]) + matrix + identity * 4 + corners + identity * 3
    return icc(b"CMYK", b"Lab ", b"prtr", {b"A2B0": lut})


def srgb_encoded(light: np.ndarray) -> np.ndarray:
    """IEC 61966-2-1."""
    return np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)


# ── What every read gives ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "BMP", "PPM", "QOI"])
def test_lossless_formats_are_read_exactly(kind):
    picture = imagefile.read(encoded(Image.fromarray(NOISE), kind))
    assert np.array_equal(picture.rgb, NOISE.astype(np.float32) / np.float32(255))
    assert picture.rgb.dtype == np.float32
    assert picture.rgb.flags.c_contiguous
    assert picture.alpha is None
    assert picture.size == (40, 30)


@pytest.mark.parametrize("kind", ["JPEG", "WEBP", "JPEG2000", "GIF"])
def test_lossy_formats_are_read_as_pillow_decodes_them(kind):
    data = encoded(Image.fromarray(NOISE), kind)
    with Image.open(io.BytesIO(data)) as image:
        expected = np.asarray(image.convert("RGB"))
    assert np.abs(imagefile.read(data).rgb * 255 - expected).max() < 1e-3


def test_content_decides_not_the_suffix(tmp_path):
    path = tmp_path / "really_a_png.jpg"
    path.write_bytes(encoded(Image.fromarray(NOISE), "PNG"))
    assert np.array_equal(imagefile.to_8bit(imagefile.read(path).rgb), NOISE)


def test_all_kinds_of_sources_give_the_same_picture(tmp_path):
    path = tmp_path / "picture.png"
    path.write_bytes(encoded(Image.fromarray(NOISE), "PNG"))
    tensor = torch.from_numpy(NOISE).permute(2, 0, 1)
    unit = tensor.float() / 255
    with path.open("rb") as stream:
        sources = [
            path, str(path), path.read_bytes(), bytearray(path.read_bytes()), stream,
            io.BytesIO(path.read_bytes()), Image.fromarray(NOISE), NOISE, NOISE / 255,
            NOISE.astype(np.uint16) * 257, (NOISE.astype(np.uint16) * 257).astype(">u2"),
            tensor, unit, unit.double(), unit[None], unit.clone().requires_grad_(),
        ]  # fmt: skip
        for source in sources:
            assert np.abs(imagefile.read(source).rgb - NOISE / 255).max() < 1e-6
        assert not stream.closed


def test_gray_and_bool_and_half_precision_arrays():
    ramp = np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 4)
    for source in (ramp, ramp[..., None], torch.from_numpy(ramp), torch.from_numpy(ramp)[None]):
        rgb = imagefile.read(source).rgb
        assert rgb.shape == (3, 4, 3)
        assert np.array_equal(rgb, np.dstack([ramp] * 3))
    assert np.abs(imagefile.read(ramp.astype(np.float16)).rgb[..., 0] - ramp).max() < 1e-3
    assert np.abs(imagefile.read(torch.from_numpy(ramp).bfloat16()).rgb[..., 0] - ramp).max() < 4e-3
    assert np.array_equal(imagefile.read(ramp > 0.5).rgb[..., 0], (ramp > 0.5).astype(np.float32))


@pytest.mark.parametrize("make", [np.copy, torch.from_numpy, Image.fromarray])
def test_the_picture_has_memory_of_its_own(make):
    pixels = np.dstack([NOISE, np.zeros((30, 40), np.uint8)])
    pixels[0, 0, 3] = 255
    source = make(np.moveaxis(pixels, 2, 0).copy() if make is torch.from_numpy else pixels)
    before = np.asarray(source).copy()
    imagefile.read(source).rgb[:] = 0
    assert np.array_equal(np.asarray(source), before)


def test_floats_are_clipped_within_the_tolerance_only():
    rgb = imagefile.read(np.array([[-5e-4, 1 + 5e-4]])).rgb
    assert (rgb.min(), rgb.max()) == (0, 1)
    with pytest.raises(ImpastoError, match=r"from 0 to 255; floats must be scaled to \[0, 1\]"):
        imagefile.read(np.array([[0.0, 255.0]]))


# ── Orientation ──────────────────────────────────────────────────────────────────────────────────

# EXIF 2.32, tag 274: the visual corners (row, column) of the stored pixels (0, 0) and (0, -1).
CORNERS = {
    1: ((0, 0), (0, -1)),
    2: ((0, -1), (0, 0)),
    3: ((-1, -1), (-1, 0)),
    4: ((-1, 0), (-1, -1)),
    5: ((0, 0), (-1, 0)),
    6: ((0, -1), (-1, -1)),
    7: ((-1, -1), (0, -1)),
    8: ((-1, 0), (0, 0)),
}


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
@pytest.mark.parametrize("orientation", CORNERS)
def test_exif_orientation_is_applied_once(kind, orientation):
    stored = np.zeros((32, 48, 3), np.uint8)
    stored[:8, :8] = 255
    stored[:8, -8:] = 128
    exif = Image.Exif()
    exif[reading.ORIENTATION] = orientation
    picture = imagefile.read(encoded(Image.fromarray(stored), kind, exif=exif))
    white, gray = CORNERS[orientation]
    assert picture.size == ((48, 32) if orientation < 5 else (32, 48))
    assert np.abs(picture.rgb[white] - 1).max() < 0.05
    assert np.abs(picture.rgb[gray] - 0.5).max() < 0.05
    assert np.isclose(picture.rgb.mean(), stored.mean() / 255, atol=0.01)


def test_the_alpha_turns_with_the_colors():
    pixels = np.full((2, 3, 4), 255, np.uint8)
    pixels[0, 0, 3] = 51
    exif = Image.Exif()
    exif[reading.ORIENTATION] = 6
    alpha = imagefile.read(encoded(Image.fromarray(pixels), "PNG", exif=exif)).alpha
    assert alpha.shape == (3, 2)
    assert np.isclose(alpha[0, -1], 0.2)


def test_broken_exif_does_not_spoil_the_pixels():
    data = encoded(Image.fromarray(NOISE), "PNG", exif=b"Exif\0\0nonsense")
    assert np.array_equal(imagefile.to_8bit(imagefile.read(data).rgb), NOISE)


# ── Color ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "JPEG", "WEBP"])
def test_a_profile_is_converted_to_srgb(kind):
    flat = Image.new("RGB", (16, 16), (200, 120, 40))
    options = {"quality": 100, "subsampling": 0} if kind == "JPEG" else {}
    rgb = imagefile.read(encoded(flat, kind, icc_profile=swapped_srgb(), **options)).rgb
    assert np.abs(rgb * 255 - (40, 120, 200)).max() < (2 if kind in ("PNG", "TIFF") else 8)


@pytest.mark.parametrize("mode", ["RGBA", "P"])
def test_a_profile_leaves_alpha_alone(mode):
    image = Image.new("RGBA", (4, 4), (200, 120, 40, 255))
    image.putpixel((1, 0), (200, 120, 40, 0))
    if mode == "P":
        image = image.quantize(4)
    picture = imagefile.read(encoded(image, "PNG", icc_profile=swapped_srgb()))
    assert np.abs(picture.rgb * 255 - (40, 120, 200)).max() < 2
    assert (picture.alpha == 0).sum() == 1


def test_a_conversion_is_that_of_littlecms():
    rgb = imagefile.read(encoded(Image.fromarray(NOISE), "PNG", icc_profile=swapped_srgb())).rgb
    expected = ImageCms.profileToProfile(
        Image.fromarray(NOISE), io.BytesIO(swapped_srgb()), ImageCms.createProfile("sRGB")
    )
    assert np.array_equal(imagefile.to_8bit(rgb), np.asarray(expected))


@pytest.mark.parametrize("mode", ["L", "LA", "I;16"])
def test_linear_gray_gets_the_curve_of_srgb(mode):
    levels = np.arange(256, dtype=np.uint16).reshape(16, 16)
    deep = mode == "I;16"
    image = Image.frombytes(
        "I;16" if deep else "L", (16, 16), (levels * 257 if deep else levels.astype("u1")).tobytes()
    )
    image = image if deep else image.convert(mode)
    rgb = imagefile.read(encoded(image, "PNG", icc_profile=linear_gray())).rgb
    assert np.abs(rgb - srgb_encoded(levels / 255)[..., None]).max() < 1.5 * LEVEL


@pytest.mark.parametrize("profile", [b"nonsense", swapped_srgb()[:200], linear_gray()])
def test_a_profile_that_is_broken_or_of_another_space_is_ignored(profile):
    data = encoded(Image.fromarray(NOISE), "PNG", icc_profile=profile)
    assert np.array_equal(imagefile.to_8bit(imagefile.read(data).rgb), NOISE)


def test_an_rgb_profile_serves_a_gray_image():
    image = Image.new("L", (4, 4), 90)
    rgb = imagefile.read(encoded(image, "PNG", icc_profile=swapped_srgb())).rgb
    assert np.abs(rgb * 255 - 90).max() < 2  # red and blue swapped leave gray as it is


@pytest.mark.parametrize("kind", ["JPEG", "TIFF"])
def test_cmyk_without_a_profile_subtracts_inks(kind):
    for inks, color in {
        (255, 0, 0, 0): (0, 255, 255),
        (0, 255, 0, 0): (255, 0, 255),
        (0, 0, 0, 0): (255, 255, 255),
        (0, 0, 0, 255): (0, 0, 0),
    }.items():
        rgb = imagefile.read(encoded(Image.new("CMYK", (16, 16), inks), kind)).rgb
        assert np.abs(rgb * 255 - color).max() < 4


@pytest.mark.parametrize("kind", ["JPEG", "TIFF"])
def test_cmyk_with_a_profile_follows_the_press(kind):
    for inks, level in {(255, 0, 0, 0): 0, (0, 0, 255, 0): 0, (0, 0, 0, 0): 255}.items():
        image = Image.new("CMYK", (16, 16), inks)
        rgb = imagefile.read(encoded(image, kind, icc_profile=one_ink_is_black())).rgb
        assert np.abs(rgb * 255 - level).max() < 4


@pytest.mark.parametrize("lightness", [0, 30, 53.4, 80, 100])
def test_lab_has_the_lightness_of_cie(lightness):
    image = Image.new("LAB", (4, 4), (round(lightness * 2.55), 128, 128))
    light = ((lightness + 16) / 116) ** 3 if lightness > 8 else lightness / 903.3
    for source in (image, encoded(image, "TIFF")):
        rgb = imagefile.read(source).rgb
        assert np.abs(rgb - srgb_encoded(np.array(light))).max() < 2.5 * LEVEL


@pytest.mark.parametrize("mode", ["YCbCr", "HSV", "RGBX"])
def test_other_color_modes(mode):
    image = Image.new("RGB", (16, 16), (200, 120, 40)).convert(mode)
    assert np.abs(imagefile.read(image).rgb * 255 - (200, 120, 40)).max() < 3


def test_ycbcr_in_a_file():
    data = encoded(Image.new("YCbCr", (4, 4), (90, 128, 128)), "TIFF")
    assert np.abs(imagefile.read(data).rgb * 255 - 90).max() < 1e-3


# ── Depth ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_one_bit(kind):
    bits = NOISE[..., 0] > 127
    rgb = imagefile.read(encoded(Image.fromarray(bits), kind)).rgb
    assert np.array_equal(rgb, np.dstack([bits] * 3).astype(np.float32))


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
@pytest.mark.parametrize("mode", ["I;16", "I;16B", "I"])
def test_sixteen_bit_gray_keeps_its_depth(kind, mode):
    levels = np.arange(0, 65536, 16, dtype=np.uint16).reshape(64, 64)
    dtype = {"I;16": "<u2", "I;16B": ">u2", "I": "i4"}[mode]
    image = Image.frombytes(mode, (64, 64), levels.astype(dtype).tobytes())
    sources = [image] if (kind, mode) == ("PNG", "I") else [image, encoded(image, kind)]
    for source in sources:  # PNG has no 32 bits
        rgb = imagefile.read(source).rgb
        assert np.abs(rgb - levels[..., None] / 65535).max() < 1e-6


def test_numbers_of_an_unknown_scale_are_refused():
    for value in (-1, 70_000):
        image = Image.new("I", (2, 2), value)
        with pytest.raises(ImpastoError, match="32-bit numbers; save it with 8 or 16 bits"):
            imagefile.read(encoded(image, "TIFF"))


@pytest.mark.parametrize("alpha", [False, True])
def test_sixteen_bit_color_keeps_eight_bits(alpha):
    channels = 4 if alpha else 3
    deep = np.random.default_rng(0).integers(256, 65536, (5, 6, channels)).astype(">u2")
    rows = b"".join(b"\0" + row.tobytes() for row in deep)
    picture = imagefile.read(png(6, 5, rows, bits=16, color=6 if alpha else 2))
    assert np.abs(picture.rgb - deep[..., :3] / 65535).max() <= LEVEL
    assert (picture.alpha is not None) == alpha
    if not alpha:
        data = deep.astype("<u2").tobytes()
        rgb = imagefile.read(tiff(6, 5, data, bits=16, photometric=2, samples=3)).rgb
        assert np.array_equal(rgb, picture.rgb)


def test_twelve_bits_and_white_is_zero():
    rgb = imagefile.read(tiff(2, 1, b"\xff\xf0\x00", bits=12, photometric=1, samples=1)).rgb
    assert np.allclose(rgb[0, :, 0], (1, 0))
    levels = struct.pack("<3H", 0, 65535, 13107)
    rgb = imagefile.read(tiff(3, 1, levels, bits=16, photometric=0, samples=1)).rgb
    assert np.allclose(rgb[0, :, 0], (1, 0, 0.8))


def test_float_tiff():
    ramp = np.linspace(0, 1, 30, dtype=np.float32).reshape(5, 6)
    rgb = imagefile.read(encoded(Image.fromarray(ramp), "TIFF")).rgb
    assert np.array_equal(rgb[..., 1], ramp)
    for wrong in (ramp * 255, ramp * np.nan):
        with pytest.raises(ImpastoError, match="holds"):
            imagefile.read(encoded(Image.fromarray(wrong), "TIFF"))


# ── Transparency and frames ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["PNG", "WEBP", "TIFF"])
def test_alpha_is_kept_apart(kind):
    alpha = np.random.default_rng(1).integers(1, 256, (30, 40), dtype=np.uint8)
    options = {"lossless": True} if kind == "WEBP" else {}
    data = encoded(Image.fromarray(np.dstack([NOISE, alpha])), kind, **options)
    picture = imagefile.read(data)
    assert np.array_equal(imagefile.to_8bit(picture.rgb), NOISE)
    assert np.array_equal(imagefile.to_8bit(picture.alpha), alpha)
    assert picture.alpha.dtype == np.float32


def test_full_alpha_is_no_alpha():
    full = np.dstack([NOISE, np.full((30, 40), 255, np.uint8)])
    assert imagefile.read(full).alpha is None
    assert imagefile.read(encoded(Image.fromarray(full), "PNG")).alpha is None


@pytest.mark.parametrize("mode", ["LA", "La", "PA", "RGBa"])
def test_other_modes_with_alpha(mode):
    image = Image.new("LA", (2, 1), (100, 255))
    image.putpixel((1, 0), (100, 0))
    via = "RGBA" if mode in ("PA", "RGBa") else "LA"
    picture = imagefile.read(image.convert(via).convert(mode))
    assert np.abs(picture.rgb * 255 - 100).max() < 1
    assert np.array_equal(picture.alpha, [[1, 0]])


@pytest.mark.parametrize("kind", ["PNG", "GIF"])
def test_palette_with_transparency(kind):
    image = Image.new("P", (3, 1))
    image.putpalette([255, 0, 0, 0, 0, 255, 9, 9, 9])
    for index in range(3):
        image.putpixel((index, 0), index)
    picture = imagefile.read(encoded(image, kind, transparency=2))
    assert np.array_equal(picture.alpha, [[1, 1, 0]])
    assert np.allclose(picture.rgb[0], [(1, 0, 0), (0, 0, 1), (0.5, 0, 0.5)])


def test_partly_transparent_palette_and_transparent_gray():
    image = Image.new("P", (2, 1))
    image.putpalette([255, 0, 0, 0, 0, 255])
    image.putpixel((1, 0), 1)
    picture = imagefile.read(encoded(image, "PNG", transparency=b"\xff\x33"))
    assert np.allclose(picture.alpha, [[1, 0.2]])
    key = chunk(b"tRNS", struct.pack(">H", 513))  # one level of 16-bit gray is transparent
    rows = b"\0" + struct.pack(">3H", 512, 513, 514)
    assert np.array_equal(
        imagefile.read(png(3, 1, rows, bits=16, color=0, extra=key)).alpha, [[1, 0, 1]]
    )


def test_hidden_colors_do_not_matter():
    seen = np.random.default_rng(2).random((6, 5, 4))
    seen[::2, :, 3] = 0
    other = seen.copy()
    other[::2, :, :3] = 1 - other[::2, :, :3]
    one, two = imagefile.read(seen), imagefile.read(other)
    assert np.array_equal(one.rgb, two.rgb)
    weights = seen[..., 3, None]
    mean = (seen[..., :3] * weights).sum((0, 1)) / weights.sum()
    assert np.allclose(one.rgb[::2], mean, atol=1e-6)
    assert np.allclose(one.rgb[1::2], seen[1::2, :, :3])


def test_nothing_to_see_is_an_error():
    with pytest.raises(ImpastoError, match="the style image is wholly transparent"):
        imagefile.read(np.zeros((3, 3, 4)), name="the style image")


def test_the_first_frame_counts():
    frames = [Image.new("RGB", (8, 8), color) for color in ("red", "blue")]
    data = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert np.array_equal(imagefile.read(data).rgb[4, 4], (1, 0, 0))


# ── Refusals ─────────────────────────────────────────────────────────────────────────────────────


def refusal(source: object, **options) -> str:
    with pytest.raises(ImpastoError) as caught:
        imagefile.read(source, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_paths_that_are_no_images(tmp_path):
    absent, empty, text = tmp_path / "absent.png", tmp_path / "empty.png", tmp_path / "text.png"
    empty.touch()
    text.write_text("P is for picture, which this is not.")
    assert refusal(absent) == f"{absent} does not exist; check the path"
    assert "does not exist" in refusal(text / "inside.png")
    assert refusal(tmp_path) == f"{tmp_path} is a directory; name a file in it"
    assert "is empty" in refusal(empty)
    assert "no image of a known kind (JPEG, PNG" in refusal(text)
    assert str(text) in refusal(text)
    assert refusal(absent, name="the content image").startswith("the content image does not")
    assert refusal("a\0b.png")
    assert "is of type int, not a path" in refusal(3)
    assert refusal(io.StringIO("text"))


def test_a_file_that_may_not_be_read(tmp_path, monkeypatch):
    def denied(*_args, **_options):
        raise PermissionError(errno.EACCES, "Permission denied")  # root is never denied

    monkeypatch.setattr(Path, "open", denied)
    assert "may not be read; check its permissions" in refusal(tmp_path / "secret.png")


def test_formats_that_run_other_programs_are_not_opened():
    assert "no image of a known kind" in refusal(encoded(Image.fromarray(NOISE), "EPS"))


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.full((2, 2), np.nan), "NaN"),
        (np.full((2, 2, 3), np.inf), "infinite"),
        (np.zeros((0, 4)), "has no pixels"),
        (np.zeros((4, 0, 3)), "has no pixels"),
        (np.zeros(3), "shape"),
        (np.zeros((2, 2, 2)), "shape"),
        (np.zeros((3, 8, 8)), "shape"),
        (np.zeros((1, 2, 2, 3)), "shape"),
        (np.zeros((2, 2), np.int64), "int64"),
        (np.zeros((2, 2), complex), "complex"),
        (np.zeros((2, 2), object), "object"),
        (np.full((2, 2), -0.5), "from -0.5 to -0.5"),
        (torch.zeros(8, 8, 3), "shape"),
        (torch.zeros(2, 3, 8, 8), "shape"),
        (torch.zeros(3, 0, 8), "has no pixels"),
        (torch.zeros(3, 8, 8, dtype=torch.int64), "int64"),
        (torch.full((3, 2, 2), torch.nan), "NaN"),
        (Image.new("RGB", (0, 5)), "has no pixels"),
    ],
)
def test_arrays_that_are_no_images(array, words):
    message = refusal(array, name="the mask")
    assert message.startswith("the mask ")
    assert words in message


def test_a_bomb_is_refused_before_it_is_decoded():
    bomb = png(60_000, 60_000, b"", bits=8, color=2)
    expected = "has 3,600,000,000 pixels, more than the limit of 250,000,000; make it smaller"
    assert refusal(bomb) == f"image {expected}"
    gif = bytearray(encoded(Image.new("P", (4, 4)), "GIF"))
    gif[6:10] = b"\xff\xff\xff\xff"
    assert "has 4,294,836,225 pixels" in refusal(bytes(gif))


def test_limits_are_those_of_the_caller():
    data = encoded(Image.fromarray(NOISE), "PNG")
    for source in (data, NOISE, Image.fromarray(NOISE), torch.zeros(3, 30, 40)):
        assert imagefile.read(source, max_pixels=1200).size == (40, 30)
        assert "has 1,200 pixels, more than the limit of 1,199" in refusal(source, max_pixels=1199)
        assert "has 1,200 pixels, more than the limit of 10;" in refusal(source, max_pixels=10)
    assert imagefile.read(data, max_bytes=len(data)).size == (40, 30)
    assert f"limit of {len(data) - 1:,} bytes" in refusal(data, max_bytes=len(data) - 1)


def test_settings_of_the_process_stay_as_they_were(monkeypatch):
    data = encoded(Image.fromarray(NOISE), "PNG")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10)
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    filters = list(warnings.filters)
    threads = [threading.Thread(target=imagefile.read, args=(data,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert imagefile.read(data).size == (40, 30)
    assert "damaged or cut off" in refusal(data[:-200])  # whatever others told Pillow
    assert Image.MAX_IMAGE_PIXELS == 10
    assert ImageFile.LOAD_TRUNCATED_IMAGES
    assert warnings.filters == filters


ENCODED = {
    "PNG": encoded(Image.fromarray(NOISE), "PNG"),
    "JPEG": encoded(Image.fromarray(NOISE), "JPEG"),
    "progressive JPEG": encoded(Image.fromarray(NOISE), "JPEG", progressive=True),
    "WEBP": encoded(Image.fromarray(NOISE), "WEBP"),
    "TIFF": encoded(Image.fromarray(NOISE), "TIFF"),
    "LZW TIFF": encoded(Image.fromarray(NOISE), "TIFF", compression="tiff_lzw"),
    "BMP": encoded(Image.fromarray(NOISE), "BMP"),
    "GIF": encoded(Image.fromarray(NOISE), "GIF"),
}


def picture_or_sentence(data: bytes) -> Picture | str:
    """What reading gives; another exception than the one error fails the test."""
    try:
        return imagefile.read(data, max_pixels=1 << 16)
    except ImpastoError as refused:
        return str(refused)


@pytest.mark.parametrize("kind", ENCODED)
def test_a_cut_file_is_an_error_or_lacks_nothing(kind):
    data = ENCODED[kind]
    whole = imagefile.read(data).rgb
    cuts = [*range(0, len(data), max(1, len(data) // 60)), *range(len(data) - 25, len(data))]
    results = [picture_or_sentence(data[:cut]) for cut in cuts]
    pictures = [result for result in results if isinstance(result, Picture)]
    assert all(np.array_equal(picture.rgb, whole) for picture in pictures)
    assert len(results) - len(pictures) >= 60  # only the mark at the very end may go unmissed


SMALL = [
    encoded(Image.fromarray(NOISE[:6, :8]), kind, **options)
    for kind, options in [
        ("PNG", {"icc_profile": swapped_srgb()}),
        ("JPEG", {}),
        ("GIF", {}),
        ("TIFF", {}),
        ("TIFF", {"compression": "tiff_lzw"}),
        ("WEBP", {}),
        ("BMP", {}),
        ("PPM", {}),
    ]
]


@settings(max_examples=600, deadline=None)
@given(st.data())
def test_a_damaged_file_gives_a_picture_or_a_sentence(data):
    damaged = bytearray(data.draw(st.sampled_from(SMALL)))
    places = st.integers(0, len(damaged) - 1) | st.integers(0, min(80, len(damaged) - 1))
    for place, byte in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), max_size=6)):
        damaged[place] = byte
    result = picture_or_sentence(bytes(damaged))
    if isinstance(result, str):
        assert result.startswith("image ")
    else:
        assert np.isfinite(result.rgb).all()
        assert result.rgb.min() >= 0
        assert result.rgb.max() <= 1


# ── Writing ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("suffix", [".png", ".tif", ".TIFF"])
@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (30, 40)])
def test_lossless_round_trip(tmp_path, suffix, shape):
    path = tmp_path / f"out{suffix}"
    pixels = NOISE[: shape[0], : shape[1]]
    alpha = pixels[..., 0] | 1  # hidden colors are not meant to come back
    for rgb in (pixels, pixels / 255, (pixels / 255).astype(np.float32)):
        imagefile.write(path, rgb)
        back = imagefile.read(path)
        assert np.array_equal(imagefile.to_8bit(back.rgb), pixels)
        assert back.alpha is None
    imagefile.write(path, pixels, alpha=alpha / 255)
    back = imagefile.read(path)
    assert np.array_equal(imagefile.to_8bit(back.rgb), pixels)
    assert imagefile.pixels_sha256(back.rgb, back.alpha) == imagefile.pixels_sha256(pixels, alpha)


@pytest.mark.parametrize("suffix", [".jpg", ".JPEG", ".webp"])
def test_lossy_round_trip(tmp_path, suffix):
    rows, columns = np.mgrid[0:1:48j, 0:1:64j]
    smooth = np.dstack([rows, columns, 1 - rows * columns])
    imagefile.write(tmp_path / f"out{suffix}", smooth)
    error = np.abs(imagefile.read(tmp_path / f"out{suffix}").rgb - smooth)
    assert error.mean() < 2 * LEVEL
    assert error.max() < 10 * LEVEL


def test_jpeg_keeps_color_at_full_resolution(tmp_path):
    stripes = np.zeros((32, 32, 3))
    stripes[:, ::2, 0] = stripes[:, 1::2, 2] = 1
    imagefile.write(tmp_path / "stripes.jpg", stripes)
    with Image.open(tmp_path / "stripes.jpg") as image:
        assert {layer[1:3] for layer in image.layer} == {(1, 1)}
    assert np.abs(imagefile.read(tmp_path / "stripes.jpg").rgb - stripes).mean() < 0.05


def test_webp_alpha_is_exact(tmp_path):
    alpha = NOISE[..., 1] | 1
    imagefile.write(tmp_path / "out.webp", NOISE, alpha=alpha)
    assert np.array_equal(imagefile.to_8bit(imagefile.read(tmp_path / "out.webp").alpha), alpha)


def test_jpeg_stands_on_white(tmp_path):
    alpha = np.zeros((32, 32))
    alpha[:, 16:] = 0.5
    imagefile.write(tmp_path / "out.jpg", np.zeros((32, 32, 3)), alpha=alpha)
    rgb = imagefile.read(tmp_path / "out.jpg").rgb
    assert np.abs(rgb[:, :8] - 1).max() < 0.02
    assert np.abs(rgb[:, 24:] - 0.5).max() < 0.02


@given(st.floats(0, 1), st.integers(0, 255))
def test_eight_bits_are_the_nearest(value, level):
    assert abs(float(imagefile.to_8bit(np.array(value))) - 255 * value) <= 0.5 + 1e-9
    assert imagefile.to_8bit(np.float32(level) / np.float32(255)) == level
    assert imagefile.to_8bit(np.array([value - 2, value + 2]).clip(-1, 2)).tolist() in (
        [0, 255],
        [255, 255],
    )


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_profile_is_srgb(tmp_path, suffix):
    path = tmp_path / f"out{suffix}"
    imagefile.write(path, NOISE)
    with Image.open(path) as image:
        profile = ImageCms.ImageCmsProfile(io.BytesIO(image.info["icc_profile"]))
    same = ImageCms.profileToProfile(
        Image.fromarray(NOISE), profile, ImageCms.createProfile("sRGB")
    )
    assert "sRGB" in ImageCms.getProfileDescription(profile)
    assert np.array_equal(np.asarray(same), NOISE)


def test_equal_input_gives_equal_bytes(tmp_path):
    def files() -> list[bytes]:
        writing._srgb_profile.cache_clear()
        for suffix in SUFFIXES:
            imagefile.write(tmp_path / f"out{suffix}", NOISE, record={"seed": 1})
        return [(tmp_path / f"out{suffix}").read_bytes() for suffix in SUFFIXES]

    first = files()
    time.sleep(1.1)  # formats and profiles count time in seconds
    assert files() == first


RECORD = {
    "artist": "Müller, 北斎 🎨",
    "quote": 'a "b"\n\\c\0',
    "steps": 500,
    "losses": [0.1, 1e-300],
    "nested": {"none": None, "yes": True},
}


@pytest.mark.parametrize("suffix", [*SUFFIXES, ".jpeg", ".tiff"])
@pytest.mark.parametrize("record", [RECORD, {}, {"long": "x" * 60_000}])
def test_a_record_comes_back(tmp_path, suffix, record):
    path = tmp_path / f"out{suffix}"
    imagefile.write(path, NOISE, alpha=np.full((30, 40), 0.5), record=record)
    assert imagefile.read_record(path) == record
    assert json.dumps(record, separators=(",", ":")).encode("ascii") in path.read_bytes()


def test_a_record_too_long_for_jpeg(tmp_path):
    record = {"long": "x" * 66_000}
    with pytest.raises(ImpastoError, match="too long for a JPEG file"):
        imagefile.write(tmp_path / "out.jpg", NOISE, record=record)
    assert not list(tmp_path.iterdir())
    for suffix in (".png", ".webp", ".tif"):
        imagefile.write(tmp_path / f"out{suffix}", NOISE, record=record)
        assert imagefile.read_record(tmp_path / f"out{suffix}") == record


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_without_a_record(tmp_path, suffix):
    path = tmp_path / f"out{suffix}"
    imagefile.write(path, NOISE)
    with pytest.raises(ImpastoError, match="carries no Impasto record"):
        imagefile.read_record(path)
    for words in ("OLYMPUS DIGITAL CAMERA", "[1, 2]", "{", "[" * 60_000):
        exif = Image.Exif()
        exif[writing.DESCRIPTION] = words
        Image.fromarray(NOISE).save(path, exif=exif)
        with pytest.raises(ImpastoError, match="carries no Impasto record"):
            imagefile.read_record(path)


def test_a_record_needs_a_file_but_no_pixels(tmp_path):
    path = tmp_path / "out.png"
    with pytest.raises(ImpastoError, match="does not exist"):
        imagefile.read_record(path)
    imagefile.write(path, NOISE, record={"seed": 3})
    path.write_bytes(path.read_bytes()[:-100])
    assert imagefile.read_record(path) == {"seed": 3}


def test_the_identity_of_pixels():
    identity = imagefile.pixels_sha256(NOISE)
    assert len(identity) == 64
    assert identity == imagefile.pixels_sha256(NOISE / 255)
    assert identity == imagefile.pixels_sha256(np.asfortranarray(NOISE))
    assert identity == imagefile.pixels_sha256(NOISE, np.ones((30, 40)))
    assert identity != imagefile.pixels_sha256(NOISE, np.full((30, 40), 0.5))
    assert identity != imagefile.pixels_sha256(NOISE.reshape(40, 30, 3))
    assert identity != imagefile.pixels_sha256(NOISE ^ np.uint8(1))


@pytest.mark.parametrize(
    ("rgb", "alpha"),
    [
        (np.full((2, 2, 3), np.nan), None),
        (np.zeros((2, 2, 3), int), None),
        (np.zeros((2, 2)), None),
        (np.zeros((2, 2, 4)), None),
        (np.zeros((0, 2, 3)), None),
        (np.zeros((2, 2, 3)), np.zeros((2, 3))),
    ],
)
def test_what_cannot_be_written_leaves_no_file(tmp_path, rgb, alpha):
    with pytest.raises(ImpastoError):
        imagefile.write(tmp_path / "out.png", rgb, alpha=alpha)
    assert not list(tmp_path.iterdir())


def test_a_side_that_a_format_cannot_hold(tmp_path):
    path = tmp_path / "out.webp"
    with pytest.raises(ImpastoError, match=r"a side of a WEBP file ends at 16383; choose \.png"):
        imagefile.check_writable(path, size=(16_384, 1))
    with pytest.raises(ImpastoError, match="could not be encoded"):
        imagefile.write(path, np.zeros((1, 16_384, 3)))
    imagefile.check_writable(path, size=(16_383, 1))
    imagefile.write(path, np.zeros((1, 16_383, 3)))
    assert imagefile.read(path).size == (16_383, 1)


# ── Places and atomicity ─────────────────────────────────────────────────────────────────────────


def test_places_that_cannot_be_written(tmp_path):
    (tmp_path / "file.txt").touch()
    (tmp_path / "folder.png").mkdir()
    os.mkfifo(tmp_path / "pipe.png")
    cases = {
        "out.gif": r"known are \.png, \.jpg, \.jpeg, \.webp, \.tif, \.tiff",
        "out": "no known suffix",
        "absent/out.png": "does not exist; create it first",
        "file.txt/out.png": "is not a directory",
        "folder.png": "is a directory; add a file name",
        "pipe.png": "not an ordinary file",
        "x" * 300 + ".png": "could not be written",
        "a\0b.png": "could not be written",
    }
    for name, words in cases.items():
        with pytest.raises(ImpastoError, match=words):
            imagefile.check_writable(tmp_path / name)
        with pytest.raises(ImpastoError, match=words):
            imagefile.write(tmp_path / name, NOISE)
    assert {path.name for path in tmp_path.iterdir()} == {"file.txt", "folder.png", "pipe.png"}


def test_a_folder_without_permission(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_args: False)  # root may write anywhere
    path = tmp_path / "out.png"
    for call in (imagefile.check_writable, lambda path: imagefile.write(path, NOISE)):
        with pytest.raises(ImpastoError) as caught:
            call(path)
        assert str(caught.value) == (
            f"{path} cannot be written: the directory {tmp_path} is not writable"
        )


def test_a_good_place_stays_untouched_by_the_check(tmp_path):
    imagefile.check_writable(tmp_path / "out.PNG")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("owner", "name"), [(os, "fsync"), (Path, "replace"), (Path, "chmod")])
def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch, owner, name):
    path = tmp_path / "out.png"
    imagefile.write(path, NOISE)
    before = path.read_bytes()

    def full(*_args, **_options):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(owner, name, full)
    with pytest.raises(ImpastoError, match=r"out\.png could not be written: No space left"):
        imagefile.write(path, 255 - NOISE)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_an_interruption_leaves_nothing_behind(tmp_path, monkeypatch):
    def interrupted(_file):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        files.write_atomically(tmp_path / "report.json", b"{}")
    assert not list(tmp_path.iterdir())


def test_permissions_are_those_of_an_ordinary_file(tmp_path):
    path = tmp_path / "report.json"
    before = os.umask(0o027)
    try:
        files.write_atomically(path, b"{}")
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        path.chmod(0o604)
        files.write_atomically(path, b"[]")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o604
    assert path.read_bytes() == b"[]"


def test_a_symbolic_link_is_followed(tmp_path):
    (tmp_path / "real").mkdir()
    link, target = tmp_path / "link.png", tmp_path / "real" / "out.png"
    link.symlink_to(target)
    imagefile.write(link, NOISE)
    assert link.is_symlink()
    assert imagefile.read(target).size == (40, 30)
