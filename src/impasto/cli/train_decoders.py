"""``impasto train-decoders``."""

from __future__ import annotations

import argparse
import csv
import io
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from impasto.types import ImpastoError

if TYPE_CHECKING:
    from impasto.training import Kernels, Student
    from impasto.types import Image

SIDE = 640  # pixels: larger pictures are shrunk
SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".tif", ".tiff")
HELD_OUT = 20  # every twentieth picture is never learned from
EVERY = 150  # pieces between two looks at the held-out pictures


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("folders", nargs="+", metavar="FOLDER", help="pictures to learn from")
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="goes on if it exists")
    parser.add_argument("--without", default="", metavar="TEXT", help="leave out files so named")
    parser.add_argument(
        "--pieces", type=int, default=1200, metavar="N", help="of pictures to learn from [1200]"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="[0]")
    parser.epilog = (
        "About a second per piece and core. After every look at the held-out pictures, one per "
        f"{EVERY} pieces, DIR has decoders.safetensors (half precision), log.csv, curves.png, "
        "card.json and checkpoint.safetensors: the same command goes on from there."
    )


def run(arguments: argparse.Namespace) -> int:
    """Train, or go on training."""
    from impasto import process
    from impasto.training import learn, solve, validate

    if arguments.pieces < 1:
        raise ImpastoError("--pieces must be at least 1")
    paths = _paths(arguments.folders, arguments.without, Path(arguments.output))
    desk = Desk(Path(arguments.output), arguments.pieces, arguments.seed, paths)
    student = desk.open()
    process.tune()
    encoder = _encoder()
    pictures = [_read(path) for path in paths]
    held = pictures[::HELD_OUT]
    learned = [picture for number, picture in enumerate(pictures) if number % HELD_OUT]
    lessons = learn(student, encoder, learned, pieces=desk.pieces, seed=desk.seed)
    try:
        for done in lessons:
            desk.note(done)
            if done % EVERY == 0 or done == desk.pieces:
                kernels = solve(student)
                desk.look(student, kernels, validate(kernels, encoder, held))
    except KeyboardInterrupt:
        # A piece may be half learned: the checkpoint of the last look stays.
        kept = desk.looks[-1]["pieces"] if desk.looks else 0
        print(f"\nstopped; the same command goes on after piece {kept}", file=sys.stderr)
        return 130
    print(f"{desk.folder / 'decoders.safetensors'}: {_words(desk.looks[-1])}")
    return 0


@dataclass
class Desk:
    """The folder of a training and what is known of it."""

    folder: Path
    pieces: int
    seed: int
    paths: Sequence[Path]
    looks: list[dict[str, float]] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    before: int = 0  # pieces that were learned by an earlier run

    def open(self) -> Student:
        """The student of the folder, or a new one."""
        from safetensors import safe_open

        from impasto import training

        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / "checkpoint.safetensors"
        student = training.begin()
        if not path.exists():
            return student
        try:
            with safe_open(path, framework="pt") as file:
                told = json.loads(file.metadata()["training"])
                for name, sums in (("features", student.features), ("colors", student.colors)):
                    for level, sum in sums.items():
                        sum.copy_(file.get_tensor(f"{name}{level}"))
        except Exception as error:
            raise ImpastoError(f"{path} is damaged; remove it to begin anew") from error
        if (told["pictures"], told["seed"]) != (self._names, self.seed):
            raise ImpastoError(
                f"{path} was begun with other pictures or another seed; choose another folder"
            )
        self.looks, self.before = told["looks"], told["pieces"]
        student.pieces = told["pieces"]
        return student

    @property
    def _names(self) -> list[str]:
        return [path.name for path in self.paths]

    def note(self, done: int) -> None:
        """One more piece was learned."""
        left = (time.monotonic() - self.began) / (done - self.before) * (self.pieces - done)
        if sys.stderr.isatty():
            from impasto.cli.progress import clock

            text = f"piece {done}/{self.pieces}, {clock(left)} left"
            print(f"\r{text}\x1b[K", end="", file=sys.stderr, flush=True)

    def look(self, student: Student, kernels: Kernels, found: dict[str, float]) -> None:
        """The held-out pictures were looked at: write down all there is."""
        from safetensors.torch import save

        from impasto import files

        self.looks.append({"pieces": student.pieces, **found})
        print(f"\rpiece {student.pieces}: {_words(found)}", file=sys.stderr)
        halves = {name: kernel.half().contiguous() for name, kernel in kernels.items()}
        files.write_atomically(self.folder / "decoders.safetensors", save(halves))
        files.write_atomically(self.folder / "log.csv", _csv(self.looks).encode())
        card = {
            "pieces": student.pieces,
            "seed": self.seed,
            "pictures": self._names,
            "held out": self._names[::HELD_OUT],
            "PSNR of the held-out pictures": found,
        }
        files.write_atomically(self.folder / "card.json", json.dumps(card, indent=1).encode())
        _plot(self.looks, self.folder / "curves.png")
        self.save(student)

    def save(self, student: Student) -> None:
        """Keep all that is needed to go on."""
        from safetensors.torch import save

        from impasto import files

        told = {
            "pieces": student.pieces,
            "pictures": self._names,
            "seed": self.seed,
            "looks": self.looks,
        }
        sums = {f"features{level}": each for level, each in student.features.items()}
        sums |= {f"colors{level}": each for level, each in student.colors.items()}
        data = save(sums, {"training": json.dumps(told)})
        files.write_atomically(self.folder / "checkpoint.safetensors", data)


def _paths(folders: list[str], without: str, output: Path) -> list[Path]:
    """The pictures of some folders; what the training itself writes is none of them."""
    found = []
    for folder in folders:
        if not Path(folder).is_dir():
            raise ImpastoError(f"{folder} is not a folder")
        found += [
            path
            for path in sorted(Path(folder).rglob("*"))
            if path.suffix.lower() in SUFFIXES
            and not (without and without in path.name)
            and output.resolve() not in path.resolve().parents
        ]
    if len(found) < 2:
        raise ImpastoError(f"there are {len(found)} pictures in {', '.join(folders)}; 2 are needed")
    return found


def _read(path: Path) -> Image:
    import torch

    from impasto import imagefile
    from impasto.maths.raster import fit

    image = torch.from_numpy(imagefile.read(path).rgb).permute(2, 0, 1)
    return fit(image, min(SIDE, max(image.shape[1:]))).contiguous()


def _encoder() -> Any:
    from impasto.networks import checkpoints, vgg

    return vgg.build(checkpoints.load())


def _words(found: dict[str, float]) -> str:
    return ", ".join(f"{tap} {value:.2f} dB" for tap, value in found.items() if tap != "pieces")


def _csv(looks: list[dict[str, float]]) -> str:
    text = io.StringIO()
    table = csv.DictWriter(text, list(looks[0]))
    table.writeheader()
    table.writerows(looks)
    return text.getvalue()


def _plot(looks: list[dict[str, float]], path: Path) -> None:
    """The curves, where matplotlib is installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for tap in (name for name in looks[0] if name != "pieces"):
        pieces, found = zip(*((look["pieces"], look[tap]) for look in looks), strict=True)
        axes.plot(pieces, found, marker=".", label=tap)
    axes.set(xlabel="pieces of pictures", ylabel="PSNR of the held-out pictures, dB")
    axes.legend(ncols=5, fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1))
    figure.savefig(path, dpi=100)
