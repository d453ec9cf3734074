"""What a setting is: its words, its limits, and the check of a value against them."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from impasto.types import ImpastoError


def number(text: str | float) -> float:
    """A finite number."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def numbers(text: str) -> tuple[float, ...]:
    """Numbers with commas between them."""
    return tuple(number(part) for part in text.split(",") if part.strip())


def names(text: str) -> tuple[str, ...]:
    """Names with commas between them."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def side(text: str) -> int | str:
    """A number of pixels, or ``original``."""
    return text if text == "original" else int(text)


def seconds(text: str) -> float:
    """A duration: ``90``, ``90s``, ``2m``, ``1.5h``."""
    unit = {"s": 1, "m": 60, "h": 3600}.get(text[-1:], 0)
    return number(text[:-1]) * unit if unit else number(text)


def size_in_bytes(text: str) -> float:
    """An amount of memory: ``4GB``, ``800MB``, ``1e9``."""
    text = text.strip().upper().removesuffix("B")
    unit = {"K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}.get(text[-1:], 0)
    return number(text[:-1]) * unit if unit else number(text)


def setting(
    default: Any,
    help: str,
    *,
    group: str,
    parse: Callable[[str], Any] = str,
    choices: tuple[str, ...] = (),
    low: float = -math.inf,
    high: float = math.inf,
    placeholder: str = "",
) -> Any:
    """One field of the recipe and all that its flag, its check and its page need to know."""
    return field(
        default=default,
        metadata={
            "help": help,
            "group": group,
            "parse": parse,
            "choices": choices,
            "low": low,
            "high": high,
            "placeholder": placeholder,
        },
    )


def checked(name: str, meta: Mapping[str, Any], value: Any, default: Any) -> Any:
    """The value in the type of the field, or one sentence on what is wrong with it."""
    value = os.fspath(value) if isinstance(value, os.PathLike) else value
    try:
        if isinstance(value, str) and not isinstance(default, str):
            value = meta["parse"](value)
            if isinstance(value, int):
                number(value)  # hundreds of digits are no number that anything can hold
        elif isinstance(default, tuple):
            value = tuple(_name(part) if meta["choices"] else number(part) for part in value)
        elif isinstance(default, bool | int) and not isinstance(value, str):
            if number(value) != int(value):
                raise ValueError(value)
            value = int(value)
        elif isinstance(default, float):
            value = number(value)
        elif isinstance(default, str) and not isinstance(value, str):
            raise ValueError(value)
    except (TypeError, ValueError, OverflowError):
        raise ImpastoError(f"{name}: {value!r} is not valid ({meta['help']})") from None
    for part in value if isinstance(value, tuple) else (value,):
        _check_one(name, meta, part)
    return value


def _name(part: Any) -> str:
    if not isinstance(part, str):
        raise TypeError(part)
    return part


def _check_one(name: str, meta: Mapping[str, Any], value: Any) -> None:
    if isinstance(value, str):
        if meta["choices"] and value not in meta["choices"]:
            raise ImpastoError(f"{name}: unknown {value!r}; known: {', '.join(meta['choices'])}")
        if not value:
            raise ImpastoError(f"{name} is empty ({meta['help']})")
    elif not isinstance(value, int | float) or not math.isfinite(value):
        raise ImpastoError(f"{name}: {value!r} is not a number")
    elif not meta["low"] <= value <= meta["high"]:
        bounds = f"at least {meta['low']:g}"
        if math.isfinite(meta["high"]):
            bounds = f"between {meta['low']:g} and {meta['high']:g}"
        raise ImpastoError(f"{name} is {value:g}; it must be {bounds}")
