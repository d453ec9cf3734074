"""The pictures of a run in one folder: painted once, used by all experiments."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import torch

import impasto
from impasto import api, files, imagefile
from impasto.experiments.plan import Order, Plan, Source
from impasto.maths.raster import scaled
from impasto.networks.vgg import Encoder
from impasto.scene import to_image
from impasto.types import Image, ImpastoError


@dataclass(frozen=True, kw_only=True)
class Gallery:
    """A folder of painted pictures, each beside its losses."""

    folder: Path
    plan: Plan

    def path(self, order: Order) -> Path:
        """The file of a picture."""
        return self.folder / f"{order.name}.png"

    def has(self, order: Order) -> bool:
        """Whether a picture is there and was made by this very recipe and version."""
        try:
            record = imagefile.read_whole(self.path(order))[1]
            told, version = record["recipe"], record["impasto"]
        except (ImpastoError, KeyError):
            return False
        wanted = order.recipe.to_dict()
        same = all(told[name] == wanted.get(name) for name in told)
        return same and version == impasto.__version__

    def check(self, orders: Iterable[Order]) -> None:
        """Look at all that will be needed: what is broken or missing is told before the work."""
        orders = list(orders)
        for path in sorted({s.path for o in orders for s in (o.pair.content, o.pair.style)}):
            imagefile.read(path)
        for recipe in {order.recipe for order in orders}:
            for name in api.decoders_of(recipe).values():
                self.supplies.decoder(name, recipe.device)

    def paint(self, order: Order) -> Iterator[float]:
        """Paint a picture; the share that is done is yielded at every step."""
        sources = order.pair.content.path, order.pair.style.path
        job = api.open_job(*sources, order.recipe, supplies=self.supplies)
        history = []
        for step, _ in api.steps_of(job):
            history.append(step.losses)
            yield step.progress
        result = api.finish(job, step, history)
        data = {**result.record, "history": [asdict(losses) for losses in result.history]}
        # The losses first: a picture that is there is whole with all that belongs to it.
        files.write_atomically(self.path(order).with_suffix(".json"), json.dumps(data).encode())
        result.save(self.path(order))

    def facts(self, order: Order) -> dict[str, Any]:
        """The record of a picture with its history of losses."""
        return json.loads(self.path(order).with_suffix(".json").read_bytes())

    def image(self, order: Order) -> Image:
        """A painted picture."""
        return self._tensor(str(self.path(order)))

    def source(self, source: Source) -> Image:
        """A content or a style, at the size of the plan."""
        return self._tensor(source.path)

    @cached_property
    def encoder(self) -> Encoder:
        """The network of the plan."""
        recipe = self.plan.recipe()
        return api.load_encoder(recipe.weights, recipe.device)

    @cached_property
    def supplies(self) -> api.Supplies:
        """Networks, loaded once for all pictures."""
        return api.Supplies(
            encoder=lambda weights, device: self.encoder, decoder=cache(api.load_decoder)
        )

    def _tensor(self, path: str) -> Image:
        picture = imagefile.read(path)
        width, height = picture.size
        size = scaled((height, width), self.plan.size)
        return to_image(picture, size, torch.device("cpu")).to(self.encoder.mean.device)
