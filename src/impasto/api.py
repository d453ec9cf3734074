"""The library: pictures of any kind in, a painted picture with its record out."""

from __future__ import annotations

import hashlib
import math
import os
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import torch

import impasto
from impasto import download, imagefile, process
from impasto.course import paint
from impasto.evaluation import Score, evaluate
from impasto.maths.raster import resize
from impasto.networks import checkpoints, decoders, vgg
from impasto.networks.decoder import Decoder
from impasto.objective import Summarize, summarize_style
from impasto.optimize import State
from impasto.recipe import FEED_FORWARD, Recipe
from impasto.scene import Scene, arrange, to_image
from impasto.types import ImpastoError, Losses, Picture, Step

SCORE_BYTES = 6000.0  # per pixel
FREE_SHARE = 0.75  # of the free memory is ours where nothing else was said
STARTS = ("content", "color", "noise", *FEED_FORWARD)  # of the recipe; any other start is a picture


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where a picture came from; its pixels are in the scene."""

    size: tuple[int, int]
    path: str  # as it was given; empty for what was no file
    sha256: str  # of the file, or of the pixels


def read_picture(given: Any, name: str) -> tuple[Picture, Source]:
    """A picture and its origin; the hash of a file is that of its bytes."""
    if isinstance(given, str | os.PathLike):
        picture = imagefile.read(given)
        digest = hashlib.sha256(Path(given).read_bytes()).hexdigest()
        return picture, Source(size=picture.size, path=os.fspath(given), sha256=digest)
    picture = imagefile.read(given, name=f"the {name} image")
    digest = imagefile.pixels_sha256(picture.rgb, picture.alpha)
    return picture, Source(size=picture.size, path="", sha256=digest)


def load_encoder(weights: str, device: str) -> vgg.Encoder:
    """The network of a recipe."""
    return vgg.build(checkpoints.load(weights), device_of(device))


def load_decoder(
    name: str, device: str, tell: Callable[[download.Progress], None] | None = None
) -> Decoder:
    """A decoder of a recipe; AdaIN's own is fetched by its first use."""
    source = checkpoints.SOURCES.get(name)
    if source is not None and not checkpoints.location(name).is_file():
        for progress in download.obtain(name, source):
            if tell is not None:
                tell(progress)
    return decoders.load(name, device_of(device))


@dataclass(frozen=True, kw_only=True)
class Supplies:
    """Where a job gets what others may need too; a batch hands in ways that remember."""

    read: Callable[[Any, str], tuple[Picture, Source]] = read_picture
    encoder: Callable[[str, str], vgg.Encoder] = load_encoder
    decoder: Callable[[str, str], Decoder] = load_decoder
    summarize: Summarize = summarize_style
    memory: float = 0.0  # bytes; 0 is most of what is free


@dataclass(frozen=True, kw_only=True, eq=False)
class Job:
    """Everything that is known before the first step."""

    recipe: Recipe
    sources: dict[str, Source]  # content, style, and start where it is a picture
    scene: Scene
    began: float  # by time.monotonic: a budget counts from here


@dataclass(frozen=True, kw_only=True, eq=False)
class Result:
    """A painted picture."""

    array: np.ndarray  # (H, W, 3) or, with transparency, (H, W, 4), uint8
    history: tuple[Losses, ...]  # one of each step that was measured
    record: dict[str, Any]  # what made it: enough to make it again

    @property
    def image(self) -> PIL.Image.Image:
        """The picture for Pillow."""
        return PIL.Image.fromarray(self.array)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture with its record: PNG, JPEG, WebP or TIFF by its suffix."""
        alpha = self.array[..., 3] if self.array.shape[2] == 4 else None
        imagefile.write(path, self.array[..., :3], alpha=alpha, record=self.record)


def stylize(content: Any, style: Any, *, preset: str = "", **settings: Any) -> Result:
    """Paint the content in the style.

    Pictures are paths, PIL images, NumPy arrays (H, W, 3) or tensors (3, H, W). Settings are
    those of :class:`impasto.Recipe`, on top of a preset if one is named.
    """
    job = open_job(content, style, Recipe.of(preset, **settings))
    history = []
    for step, _ in steps_of(job):
        history.append(step.losses)
    return finish(job, step, history)


def stylize_steps(content: Any, style: Any, *, preset: str = "", **settings: Any) -> Iterator[Step]:
    """The steps of :func:`stylize` as they are made, for a loop of one's own.

    ``step.image`` (3, H, W) is what ``step.losses`` measure, ``step.best`` the best so far.
    """
    job = open_job(content, style, Recipe.of(preset, **settings))
    for step, _ in steps_of(job):
        yield step


def score(
    image: Any, content: Any, style: Any, *, supplies: Supplies | None = None, **settings: Any
) -> Score:
    """How well an image has the style and the content; it may be another tool's.

    Settings are ``size`` (of the measurement, by default that of the image), ``style_size``,
    ``weights``, ``device`` and those of the discrepancies.
    """
    recipe = Recipe.from_dict({"size": "original", **settings})
    supplies = supplies or Supplies()
    encoder = supplies.encoder(recipe.weights, recipe.device)
    target = read_picture(image, "scored")[0]
    scene = arrange(recipe, encoder, target, supplies.read(style, "style")[0], called="scored")
    needed = SCORE_BYTES * max(math.prod(scene.size), math.prod(scene.style_size))
    if needed > process.free_memory():
        raise ImpastoError(
            f"to score {scene.size[1]}×{scene.size[0]} pixels takes {needed / 1e9:.0f} GB, more "
            f"than is free; choose a smaller --size"
        )
    wanted = to_image(supplies.read(content, "content")[0], scene.size, scene.device)
    return evaluate(
        scene.content,
        wanted,
        scene.style,
        encoder=encoder,
        recipe=recipe,
        visible=scene.visible,
        visible_style=scene.visible_style,
    )


def open_job(
    content: Any,
    style: Any,
    recipe: Recipe,
    *,
    start: Any = None,
    began: float | None = None,
    supplies: Supplies | None = None,
) -> Job:
    """Read the pictures, load the network: all that can fail fails here."""
    supplies = supplies or Supplies()
    began = time.monotonic() if began is None else began
    given = {"content": content, "style": style}
    if start is None and recipe.start not in STARTS:
        start = recipe.start
    if start is not None:
        given["start"] = start
    read = {name: supplies.read(one, name) for name, one in given.items()}
    scene = arrange(
        recipe,
        supplies.encoder(recipe.weights, recipe.device),
        *(picture for picture, _ in read.values()),
        memory=recipe.memory or supplies.memory or FREE_SHARE * process.free_memory(),
        summarize=supplies.summarize,
        decoders={
            level: supplies.decoder(name, recipe.device)
            for level, name in decoders_of(recipe).items()
        },
    )
    sources = {name: source for name, (_, source) in read.items()}
    return Job(recipe=recipe, sources=sources, scene=scene, began=began)


def decoders_of(recipe: Recipe) -> dict[int, str]:
    """The names of the decoders that a recipe needs, by level."""
    levels = set(recipe.passes)
    if recipe.start in FEED_FORWARD:
        levels |= set(Recipe(method=recipe.start).passes)
    return {level: decoders.choose(recipe.decoder, level) for level in sorted(levels)}


def steps_of(
    job: Job, *, state: State | None = None, until: int | None = None
) -> Iterator[tuple[Step, State]]:
    """The steps of a job, each with the state from which the rest can be resumed."""
    return paint(job.scene, state=state, until=until, began=job.began)


def finish(job: Job, step: Step, history: list[Losses]) -> Result:
    """The result of the last step that was made, at the final size."""
    rgb = resize(step.best, job.scene.size).permute(1, 2, 0).cpu().numpy()
    array = imagefile.to_8bit(rgb)
    if job.scene.visible is not None:
        alpha = imagefile.to_8bit(job.scene.visible.cpu().numpy())
        array = np.dstack([array, alpha])
    record = {
        **facts_of(job, step),
        **_measured(history, step),
        "seconds": round(time.monotonic() - job.began, 2),
        "pixels": imagefile.pixels_sha256(array),
    }
    measured = tuple(losses for losses in history if losses.known)
    return Result(array=array, history=measured, record=record)


def _measured(history: list[Losses], step: Step) -> dict[str, Any]:
    """The losses of the record; feed-forward methods have none."""
    if not step.best_losses.known:
        return {}
    return {"losses": {"start": asdict(history[0]), "end": asdict(step.best_losses)}}


def repeatable(record: dict[str, Any]) -> Recipe:
    """The recipe that a record tells of, the time it once had replaced by the plan it led to."""
    try:
        planned = record["steps"]["planned"]
        int(record["steps"]["done"])
        inputs = record["inputs"]
        if not {"content", "style"} <= set(inputs) <= {"content", "style", "start"}:
            raise KeyError("inputs")
        for source in inputs.values():
            if not (isinstance(source["path"], str) and isinstance(source["sha256"], str)):
                raise TypeError("inputs")
        memory = record["machine"]["memory"] or record["recipe"]["memory"]
        known = {"steps": planned, "budget": 0.0, "memory": memory}
        if record["recipe"]["budget"]:  # no step of it was shallow
            known["shallow"] = 0
        return Recipe.from_dict({**record["recipe"], **known})
    except ImpastoError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ImpastoError("the record is not whole; it was cut or edited") from None


def device_of(name: str) -> torch.device:
    """The device of a name, ``auto`` being the best one present."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
        if torch.backends.mps.is_available():
            name = "mps"
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).item()  # 'meta' is a device that holds no numbers
    except (RuntimeError, AssertionError, NotImplementedError):
        raise ImpastoError(f"device '{name}' is not present here; try --device cpu") from None
    return device


def facts_of(job: Job, step: Step) -> dict[str, Any]:
    """What the pixels depend on, and how far the run has come."""
    return {
        "impasto": impasto.__version__,
        "recipe": job.recipe.to_dict(),
        "inputs": {
            name: {"path": source.path, "sha256": source.sha256, "size": source.size}
            for name, source in job.sources.items()
        },
        "network": {"name": job.scene.encoder.name, "sha256": job.scene.encoder.sha256},
        "decoders": {
            str(level): {"name": decoder.name, "sha256": decoder.sha256}
            for level, decoder in job.scene.decoders.items()
        },
        "machine": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": np.__version__,
            "pillow": PIL.__version__,
            "system": platform.system(),
            "processor": platform.machine(),
            "device": str(job.scene.device),
            "threads": torch.get_num_threads(),
            # Decides on blocks, and they on the rounding; 0 where all was looked at as a whole.
            "memory": round(job.scene.memory) if job.scene.in_blocks else 0,
        },
        "steps": {"planned": step.steps, "done": step.index, "reason": step.reason or "stopped"},
    }
