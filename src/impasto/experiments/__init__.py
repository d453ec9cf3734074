"""The experiments of the paper: the table of all; each is a module of this package.

An experiment names the pictures it needs, measures, and says in three sentences what the paper
shows, what is seen here and where the two differ; see :class:`Experiment`.
"""

from __future__ import annotations

import importlib
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, cast

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from impasto.experiments.gallery import Gallery
    from impasto.experiments.plan import Order, Plan

EXPERIMENTS: dict[str, str] = {
    "toy": "two laws on the line, aligned by each loss (figure 2)",
    "comparison": "the systems side by side (figure 3)",
    "ablation": "some of the five moments alone (figure 4)",
    "strength": "the weight of the content (figure 5)",
    "learning-rate": "the length of the steps (appendix B)",
    "runtime": "seconds and their ratios to Gatys (appendix A)",
    "convergence": "losses and stop rules over the steps (section 4.1)",
    "alignment": "how far the features of the results are from the style (the central claim)",
    "votes": "the user study with intervals and tests (table 1)",
}
Data: TypeAlias = dict[str, Any]  # plain JSON
Row: TypeAlias = dict[str, Any]  # of a table


class Caption(NamedTuple):
    """What is said under a figure; the last two are computed from the data."""

    paper: str
    seen: str
    differs: str


class Experiment(Protocol):
    """What the module of an experiment offers."""

    def orders(self, plan: Plan) -> list[Order]:
        """The pictures that it needs."""

    def measure(self, plan: Plan, gallery: Gallery) -> Generator[float, None, Data]:
        """The data; the share that is done is yielded now and then."""

    def rows(self, data: Data) -> list[Row]:
        """The data as a table."""

    def caption(self, data: Data) -> Caption:
        """What is said under the figure."""

    def draw(self, data: Data, gallery: Gallery) -> Figure:
        """The figure."""


def experiment(name: str) -> Experiment:
    """The module of an experiment, loaded when it is asked for."""
    return cast(Experiment, importlib.import_module(f"{__name__}.{name.replace('-', '_')}"))


def listed(words: Sequence[str]) -> str:
    """Words as a sentence has them: a, b and c."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
