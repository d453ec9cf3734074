"""``impasto studio``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from impasto.types import ImpastoError

PORT = 7431


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("--port", type=int, default=PORT, help=f"0 is any free one [{PORT}]")
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to listen on; others than this machine's own ask for a token [127.0.0.1]",
    )
    parser.add_argument(
        "--name", action="append", default=[], help="a further name that this server is known by"
    )
    parser.add_argument(
        "--data", metavar="DIR", help="where pictures and history are kept [the user's data folder]"
    )
    parser.add_argument("--no-browser", action="store_true", help="only print the link")
    parser.epilog = (
        "Everything stays on this machine. Ctrl-C ends; a picture at work goes on later."
    )


def run(arguments: argparse.Namespace) -> int:
    """Serve the page until Ctrl-C."""
    try:
        from impasto.web import serving
        from impasto.web.studio import app, store
    except ModuleNotFoundError as missing:
        raise ImpastoError(
            f"the studio needs {missing.name}; get it with: pip install 'impasto[web,demo]'"
        ) from None

    folder = Path(arguments.data).expanduser() if arguments.data else store.data_folder()
    listening = serving.listen(arguments.host, arguments.port)
    others = bool(arguments.name) or not serving.is_local(arguments.host)
    made = app.create(folder)
    token = serving.token_of(folder) if others else ""
    door = serving.guarded(
        made,
        host=arguments.host,
        names=tuple(arguments.name),
        token=token,
        larger=app.LARGER,
    )
    link = serving.link(listening, token)
    print(f"Impasto Studio: {link}\npictures are kept in {folder}; Ctrl-C ends", file=sys.stderr)
    browser = "" if arguments.no_browser else link
    serving.serve(door, listening, browser=browser, ending=made.state.front.workshop.leave)
    return 0
