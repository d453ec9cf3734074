"""Figures without pyplot, so that a server can draw too: the same data give the same bytes."""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from impasto.types import Image, ImpastoError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, QUIET, BEFORE, AFTER, TARGET = "#222222", "#8a8a8a", "#9aa5b1", "#c8553d", "#2a6f97"
COLORS = ("#c8553d", "#2a6f97", "#588157", "#e09f3e", "#7b5ea7", "#5f6c7b", "#b5838d", "#3d5a80",
          "#8a9a5b", "#d4a373", "#457b9d", "#9d4edd")  # fmt: skip
LOOK: dict[str, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib: the same everywhere
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": QUIET,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "svg.hashsalt": "impasto",
    "figure.dpi": 100,
}
DPI = 150
CELL = 1.55  # inches of a picture in a sheet


def check() -> None:
    """Refuse to begin what could not be drawn."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ImpastoError(
            "figures need matplotlib; get it with: pip install impasto[paper]"
        ) from None


@contextmanager
def look() -> Iterator[None]:
    """Our own look, whatever the settings of the user are."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(LOOK)  # type: ignore[arg-type]
        yield


def blank(width: float, height: float) -> Figure:
    """An empty figure of so many inches, its parts kept apart."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def rendered(figure: Figure) -> dict[str, bytes]:
    """The files of a figure by their suffixes."""
    found = {}
    for suffix, metadata in {".png": {"Software": None}, ".svg": {"Date": None}}.items():
        stream = io.BytesIO()
        with look():
            figure.savefig(stream, format=suffix[1:], dpi=DPI, metadata=metadata)
        found[suffix] = stream.getvalue()
    return found


def sheet(
    rows: Sequence[Sequence[Image | None]],
    *,
    titles: Sequence[Sequence[str]] = (),
    cell: float = CELL,
) -> Figure:
    """Pictures in rows, with titles above those of the rows that have some."""
    columns = max(len(row) for row in rows)
    lines = [max((1 + text.count("\n") for text in line), default=0) for line in titles]
    heights = [_tallest(row) * cell + 0.04 for row in rows]
    figure = blank(columns * cell, sum(heights) + 0.17 * sum(lines) + 0.1)
    figure.set_layout_engine("constrained", w_pad=0.02, h_pad=0.02, wspace=0.0, hspace=0.0)
    axes = figure.subplots(len(rows), columns, squeeze=False, height_ratios=heights)
    for number, row in enumerate(rows):
        above = titles[number] if number < len(titles) else ()
        for column in range(columns):
            image = row[column] if column < len(row) else None
            place(axes[number, column], image, above[column] if column < len(above) else "")
    return figure


def pixels(image: Image) -> np.ndarray:
    """A picture for matplotlib: (H, W, 3), uint8."""
    array = image.clamp(0, 1).permute(1, 2, 0).cpu().numpy()
    return (array * 255 + 0.5).astype(np.uint8)


def heatmap(
    axes: Axes, values: np.ndarray, *, rows: Sequence[str], columns: Sequence[str], high: float
) -> None:
    """Numbers in colored cells: pale is 0."""
    axes.imshow(values, cmap="OrRd", vmin=0, vmax=high, aspect="auto")
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(rows)), rows)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    for (y, x), value in np.ndenumerate(values):
        color = "white" if value > 0.6 * high else INK
        axes.text(x, y, f"{value:.2g}", ha="center", va="center", color=color, fontsize=8)


def _tallest(row: Sequence[Image | None]) -> float:
    """Height over width of the tallest picture of a row, of those that are wide as a cell."""
    return max(min(1.0, image.shape[1] / image.shape[2]) for image in row if image is not None)


def place(axes: Axes, image: Image | None, title: str = "") -> None:
    """A picture without axes, or nothing."""
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_visible(False)
    axes.set_title(title, fontsize=8.5, loc="center", pad=3)
    if image is None:
        axes.axis("off")
    else:
        axes.imshow(pixels(image))
