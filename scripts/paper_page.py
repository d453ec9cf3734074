"""Write docs/paper.md and its small figures from a folder of `impasto paper`.

    python scripts/paper_page.py DIR

What it says was found are the captions of that run: nothing is written by hand. Experiments that
are not in the folder stay as they were on the page.
"""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path

import PIL.Image

from impasto.experiments import EXPERIMENTS, experiment

DOCS = Path(__file__).parents[1] / "docs"
SHOWN = ("toy", "comparison", "ablation", "alignment", "votes")  # as pictures; all are told of
WIDTH, QUALITY = 1000, 72
HOW = """# The paper, reproduced

Written by `scripts/paper_page.py` from a run of `impasto paper`.

## How to run it

```
pip install impasto[demo,paper]
impasto paper -o report --quick      # about ten minutes on two cores: four pairs, 128 pixels
impasto paper -o report              # 256 pixels; some hours on two cores
impasto paper -o report --only alignment,toy --size 512
impasto paper -o report --contents my-photos --styles my-paintings
```

Then open `report/report.html`: one page with everything in it. Beside it are, for every
experiment, the data (`NAME.json`, `NAME.csv`) and the figure (`NAME.png`, `NAME.svg`), and in
`pictures/` every painted picture with its record. Ctrl-C loses only the picture at hand; the same
command goes on, and does nothing where all is done. Delete `NAME.json` to have an experiment
measured again.

What is compared, and how: decisions [15](decisions/0015-one-procedure.md),
[16](decisions/0016-measures-of-alignment.md) and [17](decisions/0017-names-of-pictures.md).

One picture in the same light, whoever made it:

```
impasto inspect out.png --content photo.jpg --style painting.jpg -o light.png
```

![features of a picture before, after and in its style](paper-inspect.jpg)

Gray is the content, red the picture, blue the style. Above all channels of a layer, then the one
that had the longest way to go, below the error of each moment. In Python:
`impasto.experiments.inspection.inspect`.

## What was found
"""


def shrink(source: Path, name: str) -> None:
    """A figure for the page: readable, and small."""
    image = PIL.Image.open(source).convert("RGB")
    size = (WIDTH, round(image.height * WIDTH / image.width))
    smaller = image.resize(size, PIL.Image.Resampling.LANCZOS)
    smaller.save(DOCS / f"paper-{name}.jpg", quality=QUALITY, optimize=True)


def section(name: str, folder: Path) -> str:
    found = json.loads((folder / f"{name}.json").read_bytes())
    caption = experiment(name).caption(found["data"])
    lines = [f"\n### {name}: {EXPERIMENTS[name]}\n"]
    if name in SHOWN:
        shrink(folder / f"{name}.png", name)
        lines.append(f"![{name}](paper-{name}.jpg)\n")
    for term, text in zip(("The paper", "Here", "Difference"), caption, strict=True):
        lines.append(textwrap.fill(f"**{term}.** {text}", 100) + "\n")
    return "\n".join([*lines, found["made"], ""])


def main(folder: Path) -> None:
    if (folder / "inspect.png").exists():
        shrink(folder / "inspect.png", "inspect")
    page = DOCS / "paper.md"
    known = {each.split(":")[0]: each for each in page.read_text().split("\n### ")[1:]}
    sections = [
        section(name, folder) if (folder / f"{name}.json").exists() else f"\n### {known[name]}"
        for name in EXPERIMENTS
        if name in known or (folder / f"{name}.json").exists()
    ]
    page.write_text(HOW + "".join(sections))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
