"""``impasto score``."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from impasto.evaluation import Score


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("image", metavar="IMAGE", help="any picture, also another tool's")
    parser.add_argument("--content", required=True, metavar="FILE", help="what it should show")
    parser.add_argument("--style", required=True, metavar="FILE", help="how it should look")
    parser.add_argument(
        "--size", default="original", metavar="X", help="long side to measure at [the picture's]"
    )
    parser.add_argument("--style-size", default="0", metavar="X", help="as in stylize")
    parser.add_argument("--weights", default="oxford", metavar="X", help="as in stylize")
    parser.add_argument("--device", default="auto", metavar="X", help="as in stylize")
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.epilog = (
        "Lower is better, except for ssim. 'held out' is the sliced Wasserstein distance on "
        "layers\nthat no method optimizes by default."
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the table."""
    from impasto import api

    score = api.score(
        arguments.image,
        arguments.content,
        arguments.style,
        size=arguments.size,
        style_size=arguments.style_size,
        weights=arguments.weights,
        device=arguments.device,
    )
    print(json.dumps(asdict(score), indent=1) if arguments.json else table(score))
    return 0


def table(score: Score) -> str:
    """The score for people."""
    lines = [f"{'method':12} {'loss':>10}   per layer 1_1 … 5_1"]
    for method, loss in score.style.items():
        layers = "  ".join(f"{value:9.4g}" for value in score.layers[method].values())
        lines.append(f"{method:12} {loss:10.4g}   {layers}")
    held = "  ".join(f"{layer} {value:.4g}" for layer, value in score.held_out.items())
    lines += [
        f"{'content':12} {score.content:10.4g}",
        f"{'ssim':12} {score.ssim:10.4g}",
        f"{'held out':12} {score.held_out_mean:10.4g}   {held}",
        f"measured at {score.size[0]}×{score.size[1]}",
    ]
    return "\n".join(lines)
