"""``impasto train-decoders``."""

from __future__ import annotations

import argparse
import csv
import io
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from impasto.types import ImpastoError

if TYPE_CHECKING:
    from impasto.training import Schooling, Student
    from impasto.types import Image

SIDE = 640  # pixels: larger pictures are shrunk
SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".tif", ".tiff")
HELD_OUT = 20  # every twentieth picture is never learned from
EVERY = 1000  # steps between two looks at the held-out pictures
BETWEEN_CHECKPOINTS = 120.0  # seconds


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("folders", nargs="+", metavar="FOLDER", help="pictures to learn from")
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="goes on if it exists")
    parser.add_argument("--without", default="", metavar="TEXT", help="leave out files so named")
    parser.add_argument(
        "--steps", type=int, default=20_000, metavar="N", help="0: linear maps alone [20000]"
    )
    parser.add_argument("--batch", type=int, default=2, metavar="N", help="pieces per step [2]")
    parser.add_argument("--crop", type=int, default=128, metavar="N", help="their side [128]")
    parser.add_argument("--rate", type=float, default=1e-3, metavar="X", help="of Adam [0.001]")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="[0]")
    parser.epilog = (
        "Writes into DIR: decoders.safetensors (half precision, after every look at the held-out "
        "pictures), checkpoint.safetensors (to go on from: run the same command again), log.csv, "
        "curves.png and card.json. Ctrl-C ends it in order."
    )


def run(arguments: argparse.Namespace) -> int:
    """Train, or go on training."""
    from impasto import process
    from impasto.training import Schooling, learn, validate

    if arguments.crop % 16 or arguments.crop < 32 or arguments.steps < 0 or arguments.batch < 1:
        raise ImpastoError(
            "--crop must be a multiple of 16 from 32 on, --batch at least 1, --steps not negative"
        )
    names = {each.name for each in fields(Schooling)}
    schooling = Schooling(**{name: getattr(arguments, name) for name in names})
    paths = _paths(arguments.folders, arguments.without, Path(arguments.output))
    desk = Desk(Path(arguments.output), schooling, paths)
    process.tune()
    encoder = _encoder()
    pictures = [_read(path) for path in paths]
    held = pictures[::HELD_OUT]
    learned = [picture for number, picture in enumerate(pictures) if number % HELD_OUT]
    student = desk.open(encoder, learned)
    try:
        if not desk.looks:
            desk.look(student, validate(student.kernels, encoder, held))
        for found in learn(student, encoder, learned, schooling):
            desk.note(student, found)
            if student.step % EVERY == 0 or student.step == schooling.steps:
                desk.look(student, validate(student.kernels, encoder, held))
    except KeyboardInterrupt:
        desk.save(student)
        print(f"\nstopped after {student.step} steps; the same command goes on", file=sys.stderr)
        return 130
    print(f"{desk.folder / 'decoders.safetensors'}: {_words(desk.looks[-1])}")
    return 0


@dataclass
class Desk:
    """The folder of a training and what is known of it."""

    folder: Path
    schooling: Schooling
    paths: Sequence[Path]
    looks: list[dict[str, float]] = field(default_factory=list)
    losses: list[dict[str, float]] = field(default_factory=list)
    saved: float = field(default_factory=time.monotonic)
    began: float = field(default_factory=time.monotonic)
    done: int = 0  # steps before this run

    def open(self, encoder: Any, pictures: Sequence[Image]) -> Student:
        """The student of the folder, or a new one."""
        from safetensors import safe_open

        from impasto import training

        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / "checkpoint.safetensors"
        if not path.exists():
            print("solving for the linear maps; this takes minutes …", file=sys.stderr)
            student = training.begin(encoder, pictures, seed=self.schooling.seed)
            self.save(student)
            return student
        try:
            with safe_open(path, framework="pt") as file:
                told = json.loads(file.metadata()["training"])
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except Exception as error:
            raise ImpastoError(f"{path} is damaged; remove it to begin anew") from error
        if told["pictures"] != len(self.paths):
            raise ImpastoError(
                f"{path} was begun with {told['pictures']} pictures, here are {len(self.paths)}"
            )
        self.looks, self.losses, self.done = told["looks"], told["losses"], told["step"]
        kernels = {k: v for k, v in tensors.items() if not k.endswith((".1", ".2"))}
        moments = {k: v for k, v in tensors.items() if k.endswith((".1", ".2"))}
        return training.Student(kernels=kernels, moments=moments, step=told["step"])

    def note(self, student: Student, found: dict[str, float]) -> None:
        """One step was made."""
        self.losses.append({"step": student.step, **found})
        if time.monotonic() > self.saved + BETWEEN_CHECKPOINTS:
            self.save(student)
        made = student.step - self.done
        left = (time.monotonic() - self.began) / made * (self.schooling.steps - student.step)
        if sys.stderr.isatty():
            from impasto.cli.progress import clock

            text = f"step {student.step}/{self.schooling.steps}, {clock(left)} left"
            print(f"\r{text}\x1b[K", end="", file=sys.stderr, flush=True)

    def look(self, student: Student, found: dict[str, float]) -> None:
        """The held-out pictures were looked at: write down all there is."""
        from safetensors.torch import save

        from impasto import files, training

        self.looks.append({"step": student.step, **found})
        print(f"\rstep {student.step}: {_words(found)}", file=sys.stderr)
        files.write_atomically(
            self.folder / "decoders.safetensors", save(training.finished(student))
        )
        files.write_atomically(self.folder / "log.csv", _csv(self.losses).encode())
        card = {
            "schooling": asdict(self.schooling),
            "steps": student.step,
            "pictures": [path.name for path in self.paths],
            "held out": [path.name for path in self.paths[::HELD_OUT]],
            "PSNR of the held-out pictures": self.looks,
        }
        files.write_atomically(self.folder / "card.json", json.dumps(card, indent=1).encode())
        _plot(self.looks, self.folder / "curves.png")
        self.save(student)

    def save(self, student: Student) -> None:
        """Keep all that is needed to go on."""
        from safetensors.torch import save

        from impasto import files

        told = {
            "step": student.step,
            "pictures": len(self.paths),
            "looks": self.looks,
            "losses": self.losses,
        }
        data = save({**student.kernels, **student.moments}, {"training": json.dumps(told)})
        files.write_atomically(self.folder / "checkpoint.safetensors", data)
        self.saved = time.monotonic()


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
    return ", ".join(f"{tap} {value:.2f} dB" for tap, value in found.items() if tap != "step")


def _csv(rows: list[dict[str, float]]) -> str:
    names = ["step", *sorted({name for row in rows for name in row} - {"step"})]
    text = io.StringIO()
    table = csv.DictWriter(text, names)
    table.writeheader()
    table.writerows(rows)
    return text.getvalue()


def _plot(looks: list[dict[str, float]], path: Path) -> None:
    """The curves, where matplotlib is installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for tap in (name for name in looks[0] if name != "step"):
        axes.plot([look["step"] for look in looks], [look[tap] for look in looks], label=tap)
    axes.set(xlabel="steps", ylabel="PSNR of the held-out pictures, dB")
    axes.legend(ncols=5, fontsize="small")
    figure.savefig(path, dpi=100)
