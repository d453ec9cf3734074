"""Batches on a real Ray: workers are killed, drivers are killed, and the folder is the same."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from impasto import imagefile
from impasto.cli import main
from tests.conftest import sample

PHOTOS = ("coffee", "chelsea", "astronaut", "rocket")
PAINTINGS = ("cypresses", "irises", "jatte")
JOBS = len(PHOTOS) * len(PAINTINGS) * 2
PATIENCE = 240  # seconds after which a process hangs
TOKEN = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}  # of our own cluster
QUIET = {**os.environ, **TOKEN, "RAY_USAGE_STATS_ENABLED": "0"}


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., list[str]]:
    """The words of a grid of 24 jobs into a folder."""
    folder = tmp_path_factory.mktemp("pictures")
    for kind, names in {"photos": PHOTOS, "paintings": PAINTINGS}.items():
        (folder / kind).mkdir()
        for name in names:
            pixels = sample(name, 64).permute(1, 2, 0).numpy()
            imagefile.write(folder / kind / f"{name}.png", pixels)
    grid = ["--contents", str(folder / "photos"), "--styles", str(folder / "paintings")]
    tiny = ["--methods", "cmd,mm", "--size", "48", "--steps", "3", "--threads", "1"]
    return lambda out, *more: ["batch", *grid, *tiny, "-o", str(out), *more]


@pytest.fixture(scope="module")
def reference(words, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same grid by one process of one thread."""
    folder = tmp_path_factory.mktemp("reference") / "out"
    threads = torch.get_num_threads()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        assert main([*words(folder), "--quiet"]) == 0
    torch.set_num_threads(threads)
    return folder


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A cluster that outlives the runs on it."""
    script = (
        "import ray, sys\n"
        "ray.init('local', num_cpus=2, object_store_memory=10**8, include_dashboard=False)\n"
        "print(ray.get_runtime_context().gcs_address, flush=True)\n"
        "sys.stdin.read()"
    )
    cluster = subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=QUIET,
    )
    with cluster:
        assert cluster.stdout is not None
        yield next(line.strip() for line in cluster.stdout if line[0].isdigit())
        cluster.communicate(timeout=PATIENCE)  # its input ends, and so does it


def start(words: list[str], **more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "impasto", *words]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**QUIET, **more})


def wait_for(count: int, folder: Path, driver: subprocess.Popen[str]) -> None:
    """Return as soon as there are so many pictures."""
    deadline = time.monotonic() + PATIENCE
    while len(list(folder.glob("*.png"))) < count:
        if driver.poll() is not None or time.monotonic() > deadline:
            driver.kill()
            raise AssertionError(f"no {count} pictures: {driver.communicate()[1]}")
        time.sleep(0.01)


def workers_of(driver: int) -> list[int]:
    """The processes below a driver in which our workers live."""
    parents, titles = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                status = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                titles[int(entry.name)] = (entry / "cmdline").read_text()
            except OSError:  # gone meanwhile
                continue
            parents[int(entry.name)] = int(status[1])

    def below(process: int) -> bool:
        return process == driver or (process in parents and below(parents[process]))

    return [each for each, title in titles.items() if "ray::Remote" in title and below(each)]


def facts(folder: Path) -> dict[str, tuple[str, dict, dict]]:
    """What makes a result, by name; how long it took is not part of it."""
    lines = (folder / "records.jsonl").read_text().splitlines()
    return {
        record["name"]: (record["pixels"], record["recipe"], record["inputs"])
        for record in map(json.loads, lines)
    }


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_killed_worker_costs_nothing(words, reference, tmp_path):
    out = tmp_path / "out"
    driver = start(words(out, "--engine", "ray", "--workers", "2"))
    wait_for(3, out, driver)
    workers = workers_of(driver.pid)
    os.kill(workers[0], signal.SIGKILL)
    said = driver.communicate(timeout=PATIENCE)[1]
    assert driver.returncode == 0, said
    assert len(workers) == 2
    assert f"{JOBS}/{JOBS} jobs" in said
    assert facts(out) == facts(reference)  # every pixel is the same
    assert names(out) == names(reference)
    records = map(json.loads, (out / "records.jsonl").read_text().splitlines())
    assert {record["machine"]["threads"] for record in records} == {1}
    assert not workers_of(driver.pid)


def test_a_killed_driver_goes_on_where_it_was(words, reference, address, tmp_path):
    out = tmp_path / "out"
    on_cluster = words(out, "--engine", "ray", "--address", address)
    driver = start(on_cluster)
    wait_for(3, out, driver)
    driver.kill()
    driver.communicate(timeout=PATIENCE)
    before = {path.name: path.stat().st_mtime_ns for path in out.glob("*.png")}
    assert len(before) < JOBS
    again = start(on_cluster)
    said = again.communicate(timeout=PATIENCE)[1]
    assert again.returncode == 0, said
    assert facts(out) == facts(reference)
    assert names(out) == names(reference)
    after = {path.name: path.stat().st_mtime_ns for path in out.glob("*.png")}
    assert all(after[name] == before[name] for name in before)
    third = start(on_cluster)
    said = third.communicate(timeout=PATIENCE)[1]
    assert f"{JOBS} done before, 0 to do" in said
    assert {path.name: path.stat().st_mtime_ns for path in out.glob("*.png")} == after


def test_what_fails_on_a_cluster_is_listed(words, address, tmp_path):
    (tmp_path / "jobs.json").write_text('[{"content": "nowhere.png", "style": "nowhere.png"}]')
    table = ["batch", "--jobs", str(tmp_path / "jobs.json"), "-o", str(tmp_path / "out")]
    driver = start([*table, "--engine", "ray", "--address", address])
    said = driver.communicate(timeout=PATIENCE)[1]
    assert driver.returncode == 3, said
    assert "nowhere.png does not exist" in (tmp_path / "out" / "failures.csv").read_text()


def test_a_cluster_that_does_not_let_us_in_is_a_sentence(words, address, tmp_path):
    table = words(tmp_path / "out", "--engine", "ray", "--address", address)
    driver = start(table, RAY_AUTH_TOKEN="not-the-token", RAY_NUM_REDIS_GET_RETRIES="2")
    said = driver.communicate(timeout=PATIENCE)[1]
    assert driver.returncode == 1
    assert "wants a token" in said
    assert "Traceback" not in said
