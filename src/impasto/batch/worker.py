"""One process that makes jobs, one after another; what they share it loads once."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections import OrderedDict
from collections.abc import Callable, Generator, Hashable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from impasto import imagefile, process
from impasto.batch import storage
from impasto.batch.folder import Folder
from impasto.batch.tasks import Task
from impasto.types import ImpastoError

if TYPE_CHECKING:
    from torch import Tensor

    from impasto.api import Source, Supplies
    from impasto.networks.decoder import Decoder
    from impasto.networks.vgg import Encoder
    from impasto.recipe import Recipe
    from impasto.types import Image, Picture

BYTES_PER_PIXEL = 4.0  # a PNG is hardly larger, and a record is small
# Pixels of a style up to which it is kept as it was read, and as it was summarized. Beyond, a job
# needs the memory more than the time, of which reading and summarizing are then a small part.
KEPT_PICTURE, KEPT_SUMMARY = 2**24, 2**20


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a task."""

    name: str
    record: dict[str, Any] | None = None  # of the picture, where there is one now
    score: dict[str, Any] | None = None
    reason: str = ""  # why it failed; empty where it did not


@dataclass(frozen=True, kw_only=True)
class Order:
    """What every worker of a batch is told."""

    folder: str
    score: bool = False
    threads: int = 0  # 0: as many as torch takes
    share: float = 1.0  # of the memory of its machine


class Worker:
    """Makes the tasks of an order."""

    def __init__(self, order: Order) -> None:
        if order.threads:
            os.environ["OMP_NUM_THREADS"] = str(order.threads)
        process.tune()  # before torch is loaded
        import torch

        if order.threads:
            torch.set_num_threads(order.threads)
        self.order = order
        self.folder = Folder(place=order.folder)
        self.supplies = shared_supplies(order.share)

    def perform(self, task: Task) -> Iterator[Outcome | None]:
        """What became of a task, at the end; None whenever a part of the work is done."""
        record = None
        try:
            record = self.folder.record_of(task)
            if record is None:
                record = yield from self._paint(task)
            score = self._score(task, record) if self.order.score else None
            yield Outcome(name=task.name, record=record, score=score)
        except ImpastoError as error:
            yield Outcome(name=task.name, record=record, reason=" ".join(str(error).split()))
        except Exception as error:  # whatever it is, the other jobs go on
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            yield Outcome(name=task.name, record=record, reason=reason)

    def _paint(self, task: Task) -> Generator[None, None, dict[str, Any]]:
        """The record of the picture, when it is written; None while it is painted."""
        from impasto import api

        job = api.open_job(task.content, task.style, task.recipe, supplies=self.supplies)
        needed = BYTES_PER_PIXEL * math.prod(job.scene.size)
        if storage.room(self.order.folder) < needed:  # known before hours of work, not after
            raise ImpastoError(
                f"no space left in {self.order.folder}: {needed / 1e6:.1f} MB needed"
            )
        history = []
        for step, _ in api.steps_of(job):
            history.append(step.losses)
            yield None
        result = api.finish(job, step, history)
        alpha = result.array[..., 3] if result.array.shape[2] == 4 else None
        place = self.folder.picture(task)
        pixels = result.array[..., :3]
        data = imagefile.encode(place, pixels, alpha=alpha, record=result.record)
        storage.write(place, data)
        return imagefile.read_record(data)

    def _score(self, task: Task, record: Mapping[str, Any]) -> dict[str, Any]:
        """The score of the picture of a task, taken if it was not yet."""
        from impasto import api

        if known := self.folder.score_of(task, record):
            return known
        recipe = task.recipe
        score = api.score(
            storage.read(self.folder.picture(task)),
            task.content,
            task.style,
            supplies=self.supplies,
            style_size=recipe.style_size,
            weights=recipe.weights,
            device=recipe.device,
        )
        data = {"pixels": record["pixels"], **asdict(score)}
        storage.write(self.folder.score(task), (json.dumps(data, indent=1) + "\n").encode())
        return data


class Recent:
    """The last few things that were made, by what they depend on."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.things: OrderedDict[Hashable, Any] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """The thing of a key, made if it is not here."""
        thing = self.things.pop(key) if key in self.things else make()
        self.things[key] = thing
        if len(self.things) > self.count:
            self.forget()
        return thing

    def forget(self) -> None:
        """One thing less: the one that was not asked for the longest."""
        self.things.popitem(last=False)


def shared_supplies(share: float) -> Supplies:
    """Supplies that load networks once, a style once, and summarize it once per method.

    Tasks come ordered by style, so that the last few are enough to remember.
    """
    from impasto import api
    from impasto.discrepancies.styles import style_of
    from impasto.objective import summarize_style

    encoders, decoders, styles, summaries = Recent(1), Recent(2), Recent(1), Recent(4)

    def read(given: Any, name: str) -> tuple[Picture, Source]:
        if name != "style":
            return _read(given, name)
        picture, source = styles.get(given, lambda: _read(given, name))
        if math.prod(picture.size) > KEPT_PICTURE:
            styles.forget()
        return picture, source

    def encoder(weights: str, device: str) -> Encoder:
        return encoders.get((weights, device), lambda: api.load_encoder(weights, device))

    def decoder(name: str, device: str) -> Decoder:
        return decoders.get((name, device), lambda: api.load_decoder(name, device))

    def summarize(
        recipe: Recipe, network: Encoder, style: Image, visible: Tensor | None
    ) -> Mapping[str, Any]:
        if style[0].numel() > KEPT_SUMMARY:
            return summarize_style(recipe, network, style, visible)
        measure = style_of(recipe).build(recipe)
        pixels = _digest(style), None if visible is None else _digest(visible)
        key = (measure, tuple(recipe.style_layers), recipe.margin, id(network), *pixels)
        return summaries.get(key, lambda: summarize_style(recipe, network, style, visible))

    # Once and for all: later, what earlier jobs left in the heap would look like less memory, and
    # memory decides on blocks, and they on the rounding.
    memory = share * api.FREE_SHARE * process.free_memory()
    return api.Supplies(
        read=read, encoder=encoder, decoder=decoder, summarize=summarize, memory=memory
    )


def _read(given: Any, name: str) -> tuple[Picture, Source]:
    """As the library reads, and by URL."""
    from impasto import api

    if not (isinstance(given, str) and storage.is_url(given)):
        return api.read_picture(given, name)
    data = storage.read(given)
    picture = imagefile.read(data, name=given)
    digest = hashlib.sha256(data).hexdigest()
    return picture, api.Source(size=picture.size, path=given, sha256=digest)


def _digest(values: Tensor) -> str:
    array = values.detach().cpu().contiguous().numpy()
    return hashlib.sha256(str(array.shape).encode() + array.tobytes()).hexdigest()
