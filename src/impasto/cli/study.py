"""``impasto study``."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from impasto.types import ImpastoError

if TYPE_CHECKING:
    from impasto.study.plan import Plan

DATABASE = "IMPASTO_DATABASE"  # environment: a URL may hold a password, and flags can be seen
ACTIONS = {
    "create": "make a study from a folder of results",
    "serve": "open the voting page",
    "report": "what the votes say: tables, intervals, tests, figures",
}
EPILOG = """a study from the first picture to the report:
  impasto batch --contents photos/ --styles paintings/ --methods cmd,gram,mm -o grid/
  impasto study create --grid grid/ -o study/
  impasto study serve study/
  impasto study report study/

`impasto study ACTION --help` tells more about each."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.epilog = EPILOG
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, text in ACTIONS.items():
        action = actions.add_parser(
            name,
            help=text,
            description=text[0].upper() + text[1:] + ".",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        {"create": _configure_create, "serve": _configure_serve, "report": _configure_report}[name](
            action
        )


def run(arguments: argparse.Namespace) -> int:
    """Do what the action says."""
    try:
        return {"create": _create, "serve": _serve, "report": _report}[arguments.action](arguments)
    except ModuleNotFoundError as problem:
        if problem.name is None or problem.name.startswith("impasto"):
            raise
        raise ImpastoError(
            f"studies need {problem.name}; get it with: pip install impasto[web]"
        ) from None


def _configure_create(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--grid",
        required=True,
        metavar="DIR",
        help="pictures that Impasto made, as by `impasto batch`: content, style and method are "
        "read from the record inside each",
    )
    parser.add_argument("-o", "--output", required=True, metavar="STUDY", help="a new folder")
    parser.add_argument("--methods", default="", metavar="A,B,…", help="these only [all]")
    parser.add_argument("--images", metavar="DIR", help="where inputs are, if they have moved")
    parser.add_argument(
        "--protocol",
        choices=["all", "two"],
        default="all",
        help="all results side by side, as in the paper, or two at a time [all]",
    )
    parser.add_argument(
        "--ballots", type=int, default=0, metavar="N", help="of each participant [one per pair]"
    )
    parser.add_argument(
        "--repeats", type=int, default=0, metavar="N", help="ballots that come again [0]"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of all sequences [0]")
    parser.add_argument("--title", default="", metavar="TEXT", help="what participants read first")
    parser.add_argument("--question", default="", metavar="TEXT", help="what they are asked")
    parser.add_argument(
        "--size", type=int, default=1024, metavar="N", help="longest side of a picture [1024]"
    )
    parser.epilog = (
        "Every participant gets a sequence that follows from the seed: over all participants each\n"
        "ballot comes equally often, each method in each place. Pictures are copied under random\n"
        "names and without their records, so nothing on the page tells the method."
    )


def _configure_serve(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", metavar="STUDY", help="the folder that `study create` made")
    parser.add_argument("--host", default="127.0.0.1", help="0.0.0.0 lets others in [127.0.0.1]")
    parser.add_argument("--port", type=int, default=8737, metavar="N", help="0: any free [8737]")
    parser.add_argument(
        "--name",
        action="append",
        default=[],
        metavar="HOST",
        help="a name this server is known by, as behind a proxy; may be given again",
    )
    parser.add_argument("--no-browser", action="store_true", help="print the link only")
    _add_database(parser)
    parser.epilog = (
        "Participants join and vote at the same time; a vote is on the disk before it is told so.\n"
        "Whoever is let in from elsewhere needs the link with the token, which stays the same\n"
        "(STUDY/token). Ctrl-C ends it; participants go on when it is back."
    )


def _configure_report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "study", metavar="STUDY", help="the folder of the study, or a CSV file: method,votes"
    )
    parser.add_argument("-o", "--output", metavar="DIR", help="[STUDY/report]")
    parser.add_argument(
        "--confidence", type=float, default=0.95, metavar="X", help="of intervals [0.95]"
    )
    _add_database(parser)
    parser.epilog = (
        "Writes report.html, which needs nothing else, tables as CSV and figures as PNG and SVG,\n"
        "and prints the table of votes."
    )


def _add_database(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--database",
        default="",
        metavar="URL",
        help=f"postgresql://USER@HOST/NAME, or ${DATABASE} [SQLite: STUDY/votes.sqlite]",
    )


def _create(arguments: argparse.Namespace) -> int:
    from impasto.cli.progress import Progress
    from impasto.study import grid, making

    folder = Path(arguments.output)
    making.check(folder)
    wish = making.Wish(
        **{key: text for key in ("title", "question") if (text := getattr(arguments, key))},
        **{key: getattr(arguments, key) for key in ("protocol", "ballots", "repeats", "seed")},
        size=arguments.size,
    )
    methods = tuple(name.strip() for name in arguments.methods.split(",") if name.strip())
    images = Path(arguments.images) if arguments.images else None
    found = grid.read(Path(arguments.grid), methods=methods, images=images)
    for sentence in found.incomplete:
        print(f"left out: {sentence}", file=sys.stderr)
    progress = Progress()
    for share, made in making.create(folder, found, wish):
        progress.show(share, "copying pictures", last=made is not None)
    assert made is not None
    print(_summary(made, folder))
    return 0


def _summary(plan: Plan, folder: Path) -> str:
    pairs = f"{len(plan.pairs)} pair{'s' if len(plan.pairs) > 1 else ''}"
    return (
        f"{pairs}, {len(plan.methods)} methods ({', '.join(plan.methods)}), "
        f"{plan.design.length} ballots for each participant\n"
        f"open the voting page with: impasto study serve {folder}"
    )


def _serve(arguments: argparse.Namespace) -> int:
    from impasto.study import plan, store
    from impasto.web import serving
    from impasto.web.ballot import app

    folder = Path(arguments.study)
    study = plan.load(folder)
    reachable = arguments.name or not serving.is_local(arguments.host)
    token = serving.token_of(folder) if reachable else ""
    votes = store.connect(_database(arguments, folder), study.identity)
    door = serving.guarded(
        app.create(study, folder, votes),
        host=arguments.host,
        names=tuple(arguments.name),
        token=token,
        max_bytes=10_000,
    )
    listening = serving.listen(arguments.host, arguments.port)
    link = serving.link(listening, token)
    print(f"vote at {link}\nCtrl-C ends it; all votes are kept", flush=True)
    serving.serve(door, listening, browser="" if arguments.no_browser else link)
    return 0


def _report(arguments: argparse.Namespace) -> int:
    from impasto.study import findings, plan, report, store

    place = Path(arguments.study)
    if place.is_file():
        found = findings.of_totals(findings.read_totals(place), confidence=arguments.confidence)
        output = Path(arguments.output or place.with_suffix(".report"))
    else:
        study = plan.load(place)
        votes = store.connect(_database(arguments, place), study.identity)
        try:
            found = findings.of_study(study, votes.choices(), confidence=arguments.confidence)
        finally:
            votes.close()
        output = Path(arguments.output or place / "report")
    report.write(found, output)
    print(report.text(found))
    print(f"the report is {(output / 'report.html').resolve()}")
    return 0


def _database(arguments: argparse.Namespace, folder: Path) -> str:
    from impasto.study import store

    return arguments.database or os.environ.get(DATABASE, "") or store.local(folder)
