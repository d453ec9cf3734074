"""Neural style transfer by matching feature distributions.

>>> import impasto
>>> impasto.stylize("photo.jpg", "painting.jpg", size=512).save("out.png")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from impasto.recipe import PRESETS, Recipe
from impasto.types import ImpastoError, Losses, Step

if TYPE_CHECKING:
    from impasto.api import Result, score, stylize, stylize_steps
    from impasto.discrepancies import discrepancy
    from impasto.evaluation import Score

__version__ = "0.1.0"
__all__ = [
    "PRESETS",
    "ImpastoError",
    "Losses",
    "Recipe",
    "Result",
    "Score",
    "Step",
    "discrepancy",
    "score",
    "stylize",
    "stylize_steps",
]

# What needs torch is imported when it is first asked for: `import impasto` is instant.
_LATER = {
    "Result": "impasto.api",
    "discrepancy": "impasto.discrepancies",
    "score": "impasto.api",
    "Score": "impasto.evaluation",
    "stylize": "impasto.api",
    "stylize_steps": "impasto.api",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'impasto' has no attribute '{name}'")
    import importlib

    value = getattr(importlib.import_module(_LATER[name]), name)
    globals()[name] = value
    return value
