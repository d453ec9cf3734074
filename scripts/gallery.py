"""Paint the gallery of the documentation: four photos in three styles, all free to use.

Writes `docs/gallery.jpg` and `docs/hero.jpg`. Pictures that are already in the folder given by
the first argument are not painted again.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from impasto import process

process.tune()

import PIL.Image

import impasto
from impasto.samples import locate

PHOTOS = ("chelsea", "coffee", "astronaut", "camera")
STYLES = ("cypresses", "apples", "primavesi")
HERO = ("astronaut", "cypresses")
SIDE, CELL, GAP = 512, 320, 8
DOCS = Path(__file__).parents[1] / "docs"


def painted(photo: str, painting: str, folder: Path) -> PIL.Image.Image:
    path = folder / f"{photo}-{painting}.png"
    if not path.exists():
        print(f"{photo} × {painting} …", flush=True)
        impasto.stylize(locate(photo), locate(painting), size=SIDE).save(path)
    return PIL.Image.open(path).convert("RGB")


def cell(image: PIL.Image.Image) -> PIL.Image.Image:
    canvas = PIL.Image.new("RGB", (CELL, CELL), "white")
    image = image.convert("RGB")
    image.thumbnail((CELL, CELL), PIL.Image.Resampling.LANCZOS)
    canvas.paste(image, ((CELL - image.width) // 2, (CELL - image.height) // 2))
    return canvas


def sheet(rows: list[list[PIL.Image.Image]]) -> PIL.Image.Image:
    step = CELL + GAP
    canvas = PIL.Image.new("RGB", (len(rows[0]) * step - GAP, len(rows) * step - GAP), "white")
    for y, row in enumerate(rows):
        for x, image in enumerate(row):
            canvas.paste(cell(image), (x * step, y * step))
    return canvas


def main(folder: Path) -> None:
    blank = PIL.Image.new("RGB", (CELL, CELL), "white")
    rows = [[blank, *(PIL.Image.open(locate(style)) for style in STYLES)]]
    rows += [
        [PIL.Image.open(locate(photo)), *(painted(photo, style, folder) for style in STYLES)]
        for photo in PHOTOS
    ]
    sheet(rows).save(DOCS / "gallery.jpg", quality=88)
    hero = [PIL.Image.open(locate(name)) for name in HERO] + [painted(*HERO, folder)]
    sheet([hero]).save(DOCS / "hero.jpg", quality=90)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[1]).mkdir(exist_ok=True)
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(Path(folder))
