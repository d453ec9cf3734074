"""What the heap keeps and gives back, seen from outside: the memory of a process of its own."""

import platform
import subprocess
import sys

import pytest

PROGRAM = """
import contextlib, sys
import numpy as np
from impasto import heap

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096

def left():
    before = resident()
    np.ones(2**23)  # 64 MiB, freed at once
    return resident() - before > 2**25

heap.manage(2**30)
print(left())
heap.trim()
with heap.apart():
    print(left())
    with heap.kept():
        print(left())
    heap.trim()
    print(left())
heap.trim()
print(left())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told")
def test_large_blocks_are_kept_or_given_back_as_asked():
    words = [sys.executable, "-c", PROGRAM]
    found = subprocess.run(words, capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["True", "False", "True", "False", "True"]


def test_without_a_heap_of_ours_nothing_happens():
    program = """
from impasto import heap
with heap.apart(), heap.kept():
    heap.trim()
print("fine")
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (found.stdout, found.stderr) == ("fine\n", "")
