"""The file from which an interrupted run goes on: its facts and its state, nothing executable."""

from __future__ import annotations

import io
import json
import os
from dataclasses import asdict
from typing import Any

import torch

from impasto import files
from impasto.optimize import State
from impasto.types import ImpastoError, Losses

KIND = "impasto run 3"


def save(
    path: str | os.PathLike[str], *, facts: dict[str, Any], state: State, history: list[Losses]
) -> None:
    """Write the state of a run in place of the one before, atomically."""
    buffer = io.BytesIO()
    fields = {name: getattr(state, name) for name in State.__dataclass_fields__}
    fields["best_losses"] = asdict(state.best_losses) if state.best_losses else None
    losses = [asdict(each) for each in history]
    torch.save(
        {"kind": KIND, "facts": json.dumps(facts), "state": fields, "history": losses}, buffer
    )
    files.write_atomically(path, buffer.getvalue())


def load(
    path: str | os.PathLike[str], device: torch.device | str = "cpu"
) -> tuple[dict[str, Any], State, list[Losses]]:
    """The facts, the state and the history of a run."""
    try:
        data = torch.load(path, map_location=device, weights_only=True)
        if data["kind"] != KIND:
            raise KeyError("kind")
        history = [Losses(**losses) for losses in data["history"]]
        best = data["state"].pop("best_losses")
        state = State(**data["state"], best_losses=Losses(**best) if best else None)
        return json.loads(data["facts"]), state, history
    except FileNotFoundError:
        raise ImpastoError(f"there is no file {os.fspath(path)}") from None
    except Exception:  # torch.load fails in as many ways as there are broken files
        raise ImpastoError(f"{os.fspath(path)} is not a checkpoint of an Impasto run") from None
