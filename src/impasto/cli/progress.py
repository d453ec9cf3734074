"""A line that tells how far a long job has come."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field


@dataclass
class Progress:
    """One line on stderr, rewritten on a terminal, printed now and then into a file."""

    quiet: bool = False
    began: float = field(default_factory=time.monotonic)
    printed: float = 0.0
    width: int = 0

    def show(self, share: float, text: str, *, last: bool = False) -> None:
        """Say what is being done, how much of it is done and how long the rest will take."""
        now = time.monotonic()
        terminal = sys.stderr.isatty()
        if self.quiet or not (last or now - self.printed > (0.1 if terminal else 10)):
            return
        self.printed = now
        elapsed = now - self.began
        rest = f", {clock(elapsed * (1 - share) / share)} left" if 0 < share < 1 else ""
        line = f"{text}  {share:4.0%}  {clock(elapsed)}{rest}"
        end = "\n" if last or not terminal else ""
        print(("\r" if terminal else "") + line.ljust(self.width), end=end, file=sys.stderr)
        sys.stderr.flush()
        self.width = 0 if end else len(line)

    def break_line(self) -> None:
        """Leave the line as it is and go to the next."""
        if self.width:
            print(file=sys.stderr)
            self.width = 0


def clock(seconds: float) -> str:
    """A duration as people say it."""
    seconds = round(seconds)
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{seconds // 60:.0f}:{seconds % 60:02.0f} min"
    return f"{seconds // 3600:.0f}:{seconds % 3600 // 60:02.0f} h"
