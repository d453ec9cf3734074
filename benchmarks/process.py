"""What `impasto.process.tune` is worth: a step with and without it, alone and in company.

python benchmarks/process.py [SIZE] [ROUNDS]
"""

from __future__ import annotations

import statistics
import subprocess
import sys

STEP = """
import sys, time
from impasto import process
if sys.argv[2] == "tuned":
    process.tune()
import torch
from impasto import objective
from impasto.networks import checkpoints, vgg
from impasto.recipe import Recipe
side = int(sys.argv[1])
image = torch.rand(3, side, side, generator=torch.Generator().manual_seed(0))
evaluate = objective.build(Recipe(), vgg.build(checkpoints.load()), image, image.flip(1))
evaluate(image)
began = time.perf_counter()
for _ in range(3):
    evaluate(image)
print((time.perf_counter() - began) / 3)
"""
BUSY = "import itertools\nfor _ in itertools.count(): pass"


def seconds(size: int, how: str) -> float:
    words = [sys.executable, "-c", STEP, str(size), how]
    return float(subprocess.run(words, capture_output=True, check=True, text=True).stdout)


def main(size: int, rounds: int) -> None:
    for place in ("alone", "beside a busy program"):
        other = None if place == "alone" else subprocess.Popen([sys.executable, "-c", BUSY])
        try:
            pairs = [(seconds(size, "plain"), seconds(size, "tuned")) for _ in range(rounds)]
        finally:
            if other:
                other.kill()
        ratio = statistics.median(plain / tuned for plain, tuned in pairs)
        print(f"{place}: plain ÷ tuned {ratio:.2f}", [tuple(round(t, 2) for t in p) for p in pairs])


if __name__ == "__main__":
    words = [int(word) for word in sys.argv[1:]]
    main(*(words + [512, 3][len(words) :]))
