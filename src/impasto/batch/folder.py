"""The folder of a batch: what is in it counts as done, and nothing else is remembered."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from impasto import imagefile
from impasto.batch import storage
from impasto.batch.tasks import Task
from impasto.types import ImpastoError


@dataclass(frozen=True, kw_only=True)
class Folder:
    """Pictures by name, each with its record inside; their scores beside them."""

    place: str
    hashes: dict[str, str] = field(default_factory=dict)  # of the inputs, read once

    @property
    def jobs(self) -> str:
        """Where it stands what was asked for."""
        return storage.join(self.place, "jobs.json")

    def picture(self, task: Task) -> str:
        """Where the picture of a task is, or will be."""
        return storage.join(self.place, f"{task.name}.png")

    def score(self, task: Task) -> str:
        """Where the score of a task is, or will be."""
        return storage.join(self.place, f"scores/{task.name}.json")

    def record_of(self, task: Task) -> dict[str, Any] | None:
        """The record of the picture that the task asks for; None where it is yet to be made.

        It is made when the file is whole, was made by the same recipe, and from inputs that have
        the same bytes today.
        """
        try:
            _, record = imagefile.read_whole(storage.read(self.picture(task)))
            return record if self._fits(record, task) else None
        except (ImpastoError, KeyError, TypeError, AttributeError):
            return None

    def score_of(self, task: Task, record: Mapping[str, Any]) -> dict[str, Any] | None:
        """The score of these very pixels; None where it is yet to be taken."""
        try:
            score = json.loads(storage.read(self.score(task)))
            return score if score["pixels"] == record["pixels"] else None
        except (ImpastoError, ValueError, KeyError, TypeError):
            return None

    def _fits(self, record: dict[str, Any], task: Task) -> bool:
        places = {"content": task.content, "style": task.style, "start": task.recipe.start}
        return record["recipe"] == task.recipe.to_dict() and all(
            source["sha256"] == self._hash(places[name])
            for name, source in record["inputs"].items()
        )

    def _hash(self, place: str) -> str:
        if place not in self.hashes:
            self.hashes[place] = hashlib.sha256(storage.read(place)).hexdigest()
        return self.hashes[place]
