"""``impasto resume``."""

from __future__ import annotations

import argparse
from pathlib import Path

from impasto.cli.rerun import add_inputs, check_inputs, inputs_of
from impasto.cli.stylize import check_apart
from impasto.types import ImpastoError


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("checkpoint", metavar="CHECKPOINT", help="from `stylize --checkpoint`")
    parser.add_argument("-o", "--output", required=True, metavar="OUT", help="where to save")
    parser.add_argument("--report", default="", metavar="FILE.json", help="record and all losses")
    add_inputs(parser)


def run(arguments: argparse.Namespace) -> int:
    """Go on where the run stopped: to the same result as if it had not."""
    from impasto import files, imagefile

    if not Path(arguments.checkpoint).is_file():
        raise ImpastoError(f"there is no file {arguments.checkpoint}")
    imagefile.check_writable(arguments.output)
    if arguments.report:
        files.check_place(arguments.report)
    check_apart([arguments.checkpoint], [arguments.output, arguments.report])

    from impasto import api, runfile
    from impasto.cli.painting import paint
    from impasto.course import plan

    facts, _, _ = runfile.load(arguments.checkpoint)
    recipe = api.repeatable(facts)
    job = api.open_job(
        **inputs_of(facts, arguments, Path(arguments.checkpoint).parent), recipe=recipe
    )
    check_inputs(facts, job)
    _, state, history = runfile.load(arguments.checkpoint, job.scene.device)
    stages = plan(job.scene.size, recipe)
    if tuple(state.image.shape[-2:]) != stages[state.stage].size:
        raise ImpastoError("the content has another shape than the one that the run began with")
    _, code = paint(
        job,
        output=arguments.output,
        report=arguments.report,
        checkpoint=arguments.checkpoint,
        quiet=arguments.quiet,
        state=state,
        history=history,
    )
    return code
