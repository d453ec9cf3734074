"""Batches in one process: the laws of a list of jobs, and of a folder that remembers."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow.parquet
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import impasto
from impasto import api, imagefile
from impasto.batch import engines, storage, tables, tasks, worker
from impasto.batch.folder import Folder
from impasto.cli import batch, main
from impasto.recipe import METHODS, PRESETS, Recipe
from impasto.types import ImpastoError
from tests.conftest import sample

PHOTOS, PAINTINGS = ("coffee", "chelsea"), ("cypresses", "irises")
TINY = ("--size", "48", "--steps", "2", "--threads", "1", "--memory", "4GB")
PATIENCE = 300  # seconds after which a process hangs


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders of two photos and two paintings, and a file that is none."""
    folder = tmp_path_factory.mktemp("pictures")
    for kind, names in {"photos": PHOTOS, "paintings": PAINTINGS}.items():
        (folder / kind).mkdir()
        for name in names:
            pixels = sample(name, 72).permute(1, 2, 0).numpy()
            imagefile.write(folder / kind / f"{name}.png", pixels)
    (folder / "photos" / "notes.txt").write_text("not a picture")
    return folder


@pytest.fixture
def own(pictures: Path, tmp_path: Path) -> Path:
    """The same, to be changed."""
    return Path(shutil.copytree(pictures, tmp_path / "pictures"))


@pytest.fixture(scope="session")
def finished(pictures: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a grid of eight, made once for all tests, scores included."""
    folder = tmp_path_factory.mktemp("finished") / "out"
    assert main([*grid(pictures, folder), "--score", "--quiet"]) == 0
    return folder


@pytest.fixture
def out(finished: Path, tmp_path: Path) -> Path:
    """A copy of it, to be spoiled."""
    return Path(shutil.copytree(finished, tmp_path / "out"))


@pytest.fixture(autouse=True)
def as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The threads of the process as they were: other tests count on them."""
    threads = torch.get_num_threads()
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    yield
    torch.set_num_threads(threads)


def grid(pictures: Path, out: Path | str, methods: str = "cmd,gram") -> list[str]:
    """The words of a grid of 2 × 2 pictures."""
    folders = ["--contents", str(pictures / "photos"), "--styles", str(pictures / "paintings")]
    return ["batch", *folders, "--methods", methods, "-o", str(out), *TINY]


def pixels(folder: Path) -> dict[str, str]:
    """The pixels of every picture in a folder."""
    return {
        path.stem: imagefile.pixels_sha256(imagefile.read(path).rgb)
        for path in folder.glob("*.png")
    }


def times(folder: Path) -> dict[str, int]:
    """When every file of a folder was written."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in files}


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


# --- A list of jobs


names = st.sets(st.text("abcé01", min_size=1, max_size=8), min_size=1, max_size=5)


@given(contents=names, styles=names, methods=st.sets(st.sampled_from(list(METHODS)), min_size=1))
def test_a_grid_has_every_combination_and_names_do_not_depend_on_neighbors(
    tmp_path_factory, contents, styles, methods
):
    folder = tmp_path_factory.mktemp("grid")
    for kind, stems in {"c": contents, "s": styles}.items():
        (folder / kind).mkdir()
        for stem in stems:
            (folder / kind / f"{stem}.png").touch()
    whole = tasks.grid(str(folder / "c"), str(folder / "s"), sorted(methods))
    assert len(whole) == len(contents) * len(styles) * len(methods)
    assert len({task.name for task in whole}) == len(whole)
    alone = folder / "c" / f"{min(contents)}.png"
    part = tasks.grid(str(alone), str(folder / "s"), sorted(methods)[:1])
    assert len(part) == len(styles)
    assert all(task in whole for task in part)


@given(words=st.text(min_size=1, max_size=400))
def test_any_name_becomes_that_of_a_file(tmp_path_factory, words):
    row = [{"content": "a.png", "style": "b.png", "name": words}]
    path = tmp_path_factory.mktemp("names") / "jobs.json"
    path.write_text(json.dumps(row))
    (task,) = tasks.table(str(path))
    assert re.fullmatch(r"[\w.+=-]+", task.name)
    (path.parent / f"{task.name}.json").touch()


def test_a_table_is_the_same_as_csv_and_as_json(tmp_path):
    (tmp_path / "jobs.csv").write_text(
        "content,style,alpha,moment_weights,preset\n"
        'a.png,b.png,0.01,"1,0,1,1,1",\n'
        "a.png,b.png,,,fast\n"
    )
    listed = [
        {"content": "a.png", "style": "b.png", "alpha": 0.01, "moment_weights": "1,0,1,1,1"},
        {"content": "a.png", "style": "b.png", "preset": "fast"},
    ]
    (tmp_path / "jobs.json").write_text(json.dumps(listed))
    read = [tasks.table(str(tmp_path / f"jobs.{kind}"), size=64) for kind in ("csv", "json")]
    assert read[0] == read[1]
    first, second = read[0]
    weights = (1.0, 0.0, 1.0, 1.0, 1.0)
    assert first.recipe == Recipe(size=64, alpha=0.01, moment_weights=weights)
    assert second.recipe == Recipe(size=64, **PRESETS["fast"])
    assert first.content == str(tmp_path / "a.png")  # beside the table, wherever one calls from
    assert first.name == "a--b--cmd--alpha-0.01--moment-weights-1_0_1_1_1"


def test_a_row_wins_over_the_flags(tmp_path):
    (tmp_path / "jobs.csv").write_text("content,style,alpha\na.png,b.png,0.5\nc.png,b.png,\n")
    one, other = tasks.table(str(tmp_path / "jobs.csv"), alpha="0.1", start="noise")
    assert (one.recipe.alpha, other.recipe.alpha) == (0.5, 0.1)
    assert one.recipe.start == "noise"
    (tmp_path / "jobs.csv").write_text("content,style,preset\na.png,b.png,fast\nc.png,b.png,\n")
    one, other = tasks.table(str(tmp_path / "jobs.csv"), preset="best", steps="7")
    assert (one.recipe.steps, other.recipe.steps) == (PRESETS["fast"]["steps"], 7)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("content,style,colour\na.png,b.png,red\n", "job 1: unknown column 'colour'"),
        ("content,style,alpha\na.png,b.png,\na.png,c.png,7\n", "job 2: alpha is 7"),
        ("content,style,method\na.png,b.png,magic\n", "job 1: method: unknown 'magic'"),
        ("content,style,preset\na.png,b.png,magic\n", "job 1: unknown preset 'magic'"),
        ("content,alpha\na.png,1\n", "job 1: the style is missing"),
        ("content,style\n", "lists no jobs"),
        ("content,style\na.png,b.png,c.png\n", "more cells"),
        ("content,style\na.png,b.png\na.png,b.png\n", "would both be called a--b--cmd"),
        ("content,style\na.png,b.png\nA.png,b.png\n", "would both be called A--b--cmd"),
    ],
)
def test_what_is_wrong_with_a_table_is_said_in_a_sentence(tmp_path, text, complaint):
    (tmp_path / "jobs.csv").write_text(text)
    with pytest.raises(ImpastoError, match=re.escape(complaint)):
        tasks.table(str(tmp_path / "jobs.csv"))


@pytest.mark.parametrize("text", ["{}", "[1]", "[", '"a"', "\x80"])
def test_what_is_no_table_is_refused(tmp_path, text):
    (tmp_path / "jobs.json").write_text(text, encoding="latin-1")
    with pytest.raises(ImpastoError, match="no table of jobs"):
        tasks.table(str(tmp_path / "jobs.json"))


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--contents", "photos"], "both --contents DIR and --styles DIR"),
        ([], "either --jobs FILE"),
        (["--jobs", "a.csv", "--contents", "photos"], "either --jobs FILE"),
        (["--jobs", "a.csv", "--methods", "cmd"], "the column 'method'"),
        (["--jobs", "nowhere.csv"], "nowhere.csv does not exist"),
        (["--contents", "photos", "--styles", "nowhere"], "nowhere does not exist"),
        (["--contents", "photos", "--styles", "empty"], "no picture in"),
        (["--contents", "photos", "--styles", "photos", "--methods", "magic"], "unknown 'magic'"),
        (["--contents", "photos", "--styles", "photos", "--workers", "2"], "--engine ray"),
        (["--contents", "photos", "--styles", "photos", "--threads", "-1"], "negative"),
    ],
)
def test_a_wrong_command_ends_in_a_sentence_and_leaves_no_folder(
    pictures, tmp_path, monkeypatch, capsys, words, complaint
):
    shutil.copytree(pictures / "photos", tmp_path / "photos")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    assert main(["batch", *words, "-o", "out"]) == 1
    said = capsys.readouterr().err
    assert complaint in said
    assert said.count("\n") == 1
    assert not (tmp_path / "out").exists()


# --- The folder


def test_a_grid_gives_pictures_records_scores_and_a_sheet(finished, pictures):
    expected = {f"{c}--{s}--{m}" for c in PHOTOS for s in PAINTINGS for m in ("cmd", "gram")}
    assert {path.stem for path in finished.glob("*.png")} == expected
    records = [json.loads(line) for line in (finished / "records.jsonl").read_text().splitlines()]
    assert {record["name"] for record in records} == expected
    for record in records:
        path = finished / f"{record['name']}.png"
        assert imagefile.read_record(path) == {k: v for k, v in record.items() if k != "name"}
    sheet = imagefile.read(finished / "contact-sheet-1.jpg")
    assert sheet.rgb.std() > 0.1
    assert not (finished / "failures.csv").exists()


def test_pixels_are_those_of_the_library(finished, pictures):
    """What jobs share must not show: each is as if it had been alone."""
    torch.set_num_threads(1)
    for method in ("cmd", "gram"):
        alone = impasto.stylize(
            pictures / "photos" / "chelsea.png",
            pictures / "paintings" / "irises.png",
            method=method,
            size=48,
            steps=2,
            memory="4GB",
        )
        together = imagefile.read(finished / f"chelsea--irises--{method}.png").rgb
        assert np.array_equal(alone.array, imagefile.to_8bit(together))


def test_scores_are_those_of_the_library_in_both_tables(finished, pictures):
    table = rows(finished / "scores.csv")
    columns = pyarrow.parquet.read_table(finished / "scores.parquet").to_pylist()
    assert len(table) == len(columns) == 8
    for text, values in zip(table, columns, strict=True):
        assert text.keys() == values.keys()
        assert all(type(value)(text[name]) == value for name, value in values.items())
    row = next(each for each in columns if each["name"] == "coffee--irises--gram")
    inputs = pictures / "photos" / "coffee.png", pictures / "paintings" / "irises.png"
    score = api.score(finished / "coffee--irises--gram.png", *inputs)
    assert row["ssim"] == pytest.approx(score.ssim, rel=1e-4)
    assert row["held_out"] == pytest.approx(score.held_out_mean, rel=1e-3)
    assert {key for key in row if key.startswith("style_")} == {f"style_{m}" for m in METHODS}


def test_without_pyarrow_there_is_a_csv_and_a_word(pictures, out, monkeypatch, capsys):
    (out / "scores.csv").unlink()
    before = times(out)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert main([*grid(pictures, out), "--score"]) == 0
    assert "pip install impasto[ray]" in capsys.readouterr().err
    assert len(rows(out / "scores.csv")) == 8
    assert before.items() <= times(out).items()


def test_without_ray_there_is_a_sentence(own, out, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ray", None)
    (own / "photos" / "new.png").write_bytes((own / "photos" / "coffee.png").read_bytes())
    assert main([*grid(own, out), "--engine", "ray"]) == 1
    assert "pip install impasto[ray]" in capsys.readouterr().err.splitlines()[-1]


def test_settings_are_columns_of_one_type(tmp_path):
    (tmp_path / "jobs.csv").write_text(
        "content,style,size,alpha,moment_weights\n"
        'a.png,b.png,64,,\nc.png,b.png,original,1,\nd.png,b.png,,0.5,"1,0,1,0,1"\n'
    )
    told = tables._told(tasks.table(str(tmp_path / "jobs.csv")))
    columns = pyarrow.Table.from_pylist(told).to_pydict()
    assert columns["size"] == ["64", "original", "512"]
    assert columns["alpha"] == [0.002, 1.0, 0.5]
    assert columns["moment_weights"] == ["", "", "1.0,0.0,1.0,0.0,1.0"]


def test_a_second_run_does_nothing_and_loads_no_torch(pictures, out):
    before = times(out)
    script = (
        "import sys; from impasto.cli import main; code = main(sys.argv[1:]); "
        "sys.exit(code or 50 * ('torch' in sys.modules))"
    )
    words = [*grid(pictures, out), "--score"]
    again = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
    assert "8 done before, 0 to do" in again.stderr
    assert times(out) == before


def test_its_own_list_of_jobs_asks_for_the_same(out):
    before = times(out)
    assert main(["batch", "--jobs", str(out / "jobs.json"), "-o", str(out), "--score"]) == 0
    assert times(out) == before


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-300])


def repaint(path: Path) -> None:
    """Another picture under the record of this one."""
    picture = imagefile.read(path)
    imagefile.write(path, 1 - picture.rgb, record=imagefile.read_record(path))


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("spoil", [Path.unlink, empty, cut, repaint])
def test_only_what_is_not_whole_is_made_again(pictures, out, spoil, finished):
    before = times(out)
    spoil(out / "coffee--irises--cmd.png")
    assert main([*grid(pictures, out), "--quiet"]) == 0
    changed = {name for name, when in times(out).items() if before[name] != when}
    # The record tells how long it took, so the records change too; the rest is as it was.
    assert changed == {"coffee--irises--cmd.png", "records.jsonl"}
    assert pixels(out) == pixels(finished)


def test_only_what_follows_from_another_input_is_made_again(own, tmp_path, out):
    assert main([*grid(own, out), "--quiet"]) == 0
    before = times(out)
    path = own / "paintings" / "irises.png"
    imagefile.write(path, imagefile.read(path).rgb[::-1])
    assert main([*grid(own, out), "--quiet"]) == 0
    changed = {name for name, when in times(out).items() if before[name] != when}
    made = {name for name in changed if name.endswith(".png")}
    assert made == {f"{c}--irises--{m}.png" for c in PHOTOS for m in ("cmd", "gram")}


def test_another_recipe_is_made_again(pictures, out, finished):
    assert main([*grid(pictures, out, "cmd"), "--alpha", "0.5", "--quiet"]) == 0
    now, then = pixels(out), pixels(finished)
    assert all((now[name] != then[name]) == name.endswith("cmd") for name in then)


def test_pictures_that_were_not_scored_are_scored_without_painting(pictures, out, tmp_path):
    before = times(out)
    shutil.rmtree(out / "scores")
    (out / "scores.csv").unlink()
    assert main([*grid(pictures, out), "--score", "--quiet"]) == 0
    after = times(out)
    assert after.keys() == before.keys()
    assert all(after[name] == before[name] for name in after if name.endswith(".png"))


def test_a_result_never_replaces_a_picture_that_is_read(own, capsys):
    before = times(own)
    words = grid(own, own / "photos")
    assert main(words) == 1
    assert "choose another folder" in capsys.readouterr().err
    (own / "photos" / "jobs.csv").write_text(
        "content,style,name\ncoffee.png,../paintings/irises.png,coffee\n"
    )
    assert main(["batch", "--jobs", str(own / "photos" / "jobs.csv"), "-o", words[2], *TINY]) == 1
    assert "coffee.png would be replaced" in capsys.readouterr().err
    assert {name: when for name, when in times(own).items() if name in before} == before


def test_network_and_style_are_loaded_once(pictures, tmp_path, monkeypatch):
    """Eight jobs of two styles and two methods: one network, two styles, four summaries."""
    counts: dict[str, int] = {}

    def counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*words: Any) -> Any:
            label = f"{name} {words[1]}" if name == "read" else name
            counts[label] = counts.get(label, 0) + 1
            return function(*words)

        return call

    monkeypatch.setattr(api, "load_encoder", counted("network", api.load_encoder))
    monkeypatch.setattr(api, "read_picture", counted("read", api.read_picture))
    summarize = counted("summary", impasto.objective.summarize_style)
    monkeypatch.setattr(impasto.objective, "summarize_style", summarize)
    assert main([*grid(pictures, tmp_path / "out"), "--quiet"]) == 0
    assert counts == {"network": 1, "read style": 2, "read content": 8, "summary": 4}


def test_the_last_few_are_remembered():
    recent, made = worker.Recent(2), []
    for key in "aabacab":
        recent.get(key, lambda key=key: made.append(key))
    assert made == ["a", "b", "c", "b"]


def test_decoders_are_loaded_once_and_pixels_are_those_of_the_library(
    pictures, tmp_path, monkeypatch
):
    loaded = []

    def load(name: str, device: str, original: Any = api.load_decoder) -> Any:
        loaded.append(name)
        return original(name, device)

    monkeypatch.setattr(api, "load_decoder", load)
    ours = ("--decoder", "impasto", "--quiet")
    assert main([*grid(pictures, tmp_path / "out", "adain"), *ours]) == 0
    assert loaded == ["impasto"]
    torch.set_num_threads(1)
    alone = impasto.stylize(
        pictures / "photos" / "coffee.png",
        pictures / "paintings" / "irises.png",
        method="adain",
        decoder="impasto",
        size=48,
        memory="4GB",
    )
    together = imagefile.read(tmp_path / "out" / "coffee--irises--adain.png").rgb
    assert np.array_equal(alone.array, imagefile.to_8bit(together))


def test_large_styles_are_not_kept_and_give_the_same(pictures, tmp_path, finished, monkeypatch):
    monkeypatch.setattr(worker, "KEPT_PICTURE", 1)
    monkeypatch.setattr(worker, "KEPT_SUMMARY", 1)
    assert main([*grid(pictures, tmp_path / "out", "cmd"), "--quiet"]) == 0
    assert pixels(tmp_path / "out").items() <= pixels(finished).items()


# --- What goes wrong


def test_a_broken_picture_costs_its_own_jobs_alone(own, tmp_path, capsys):
    (own / "photos" / "broken.jpg").write_bytes(b"\xff\xd8\xff\xe0 not much of a picture")
    out = tmp_path / "out"
    assert main(grid(own, out, "cmd")) == 3
    assert "2 of 6 jobs failed" in capsys.readouterr().err
    failures = rows(out / "failures.csv")
    assert {row["name"] for row in failures} == {f"broken--{s}--cmd" for s in PAINTINGS}
    assert all("broken.jpg is damaged" in row["reason"] for row in failures)
    assert len(list(out.glob("*.png"))) == 4
    shutil.copy(own / "photos" / "coffee.png", own / "photos" / "broken.jpg")
    before = times(out)
    assert main(grid(own, out, "cmd")) == 0
    after = times(out)
    assert not (out / "failures.csv").exists()
    kept = [name for name in before if name.endswith(".png")]
    assert len(kept) == 4
    assert all(after[name] == before[name] for name in kept)
    assert len(list(out.glob("*.png"))) == 6


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """A disk of a given size, which can be made larger."""
    place = tmp_path / "disk"
    place.mkdir()

    def sized(size: str) -> Path:
        again = "remount," if os.path.ismount(place) else ""
        options = ["-t", "tmpfs", "-o", f"{again}size={size}", "tmpfs", str(place)]
        done = subprocess.run(["mount", *options], capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"a small disk needs the right to mount: {done.stderr.strip()}")
        return place

    yield sized
    if os.path.ismount(place):
        subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_costs_only_what_did_not_fit(pictures, small_disk, finished, capsys):
    out = small_disk("60k") / "out"
    assert main(grid(pictures, out)) == 3
    made = pixels(out)
    assert 0 < len(made) < 8
    assert made.items() <= pixels(finished).items()
    assert "pace left" in capsys.readouterr().err
    assert not list(out.rglob(".impasto-*"))  # no draft stays behind
    small_disk("10m")
    assert main([*grid(pictures, out), "--score", "--quiet"]) == 0
    assert pixels(out) == pixels(finished)
    assert times(out).keys() == times(finished).keys()


def test_a_limit_on_files_is_reported_like_a_full_disk(pictures, tmp_path):
    """Where nothing may be written, the reasons are on the screen."""
    script = (
        "import resource, sys; from impasto.cli import main; from impasto.batch import tables; "
        "write = tables.write_jobs\n"
        "def then_limit(*words):\n"
        "    write(*words); resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "tables.write_jobs = then_limit; sys.exit(main(sys.argv[1:]))"
    )
    words = grid(pictures, tmp_path / "out", "cmd")
    done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True)
    assert done.returncode == 3, done.stderr
    assert "4 of 4 jobs failed" in done.stderr
    assert "File too large" in done.stderr
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["jobs.json"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_was_ended_goes_on_where_it_was(pictures, tmp_path, finished, number):
    out = tmp_path / "out"
    words = [sys.executable, "-m", "impasto", *grid(pictures, out)]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + PATIENCE
    while len(list(out.glob("*.png"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(number)
    said = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == (-9 if number == signal.SIGKILL else 130)
    if number != signal.SIGKILL:
        assert "the same command goes on" in said
        assert "Traceback" not in said
    made = times(out)
    count = sum(name.endswith(".png") for name in made)
    assert 2 <= count < 8
    assert main([*grid(pictures, out), "--quiet"]) == 0
    assert all(times(out)[name] == made[name] for name in made if name.endswith(".png"))
    assert pixels(out) == pixels(finished)
    assert times(out).keys() == {name for name in times(finished) if "scores" not in name}


def test_what_is_known_of_failures_survives_an_early_end(own, tmp_path, monkeypatch, capsys):
    """An interrupt before anything was tried says nothing new; the death of all workers does."""
    (own / "photos" / "broken.png").write_bytes(b"no picture")
    out = tmp_path / "out"
    assert main([*grid(own, out), "--quiet"]) == 3
    before = (out / "failures.csv").read_bytes()
    (out / "contact-sheet-mine.png").write_bytes(b"precious")

    def stop(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as early:
        early.setattr(batch.State, "survey", stop)
        assert main([*grid(own, out), "--quiet"]) == 130
    assert (out / "failures.csv").read_bytes() == before

    def dies(*_, **__):
        yield worker.Outcome(name="broken--irises--cmd", reason="lost")
        raise ImpastoError("no worker is left: all died")

    with monkeypatch.context() as dead:
        dead.setattr(batch, "_outcomes", dies)
        assert main([*grid(own, out), "--quiet"]) == 1
    assert "lost" in (out / "failures.csv").read_text()
    assert (out / "contact-sheet-mine.png").exists()


def test_drafts_of_killed_writers_are_cleared_and_fresh_ones_stay(tmp_path):
    old, new = (tmp_path / f".impasto-{name}.tmp" for name in ("old", "new"))
    for path in (old, new):
        path.touch()
    os.utime(old, (time.time() - 3600,) * 2)
    storage.make_folder(str(tmp_path))
    assert not old.exists()
    assert new.exists()


class StandIn:
    """As much of Ray as sharing out needs; workers die at the jobs they are told to die at."""

    class exceptions:
        class RayError(Exception):
            pass

    def __init__(self) -> None:
        self.answers: dict[int, Any] = {}

    def call(self, answer: Any) -> int:
        self.answers[len(self.answers)] = answer
        return len(self.answers) - 1

    def wait(self, references: list[int], timeout: float) -> tuple[list[int], list[int]]:
        return references[:1], references[1:]

    def get(self, reference: int) -> Any:
        answer = self.answers[reference]
        if isinstance(answer, Exception):
            raise answer
        return answer


class Method:
    def __init__(self, function: Callable[..., int]) -> None:
        self.remote = function


class Mortal:
    """A worker that dies at its n-th job: for good, or to rise again."""

    def __init__(self, ray: StandIn, dies_at: int, *, rises: bool) -> None:
        self.ray, self.left, self.rises, self.dead = ray, dies_at, rises, dies_at == 0
        self.ready = Method(lambda: ray.call(self._answer(None)))
        self.perform = Method(self._perform)

    def _perform(self, task: tasks.Task) -> int:
        self.left -= 1
        self.dead = self.dead or self.left == 0
        reference = self.ray.call(self._answer(worker.Outcome(name=task.name)))
        self.dead = self.dead and not self.rises
        return reference

    def _answer(self, answer: Any) -> Any:
        return StandIn.exceptions.RayError("first\nthe actor died") if self.dead else answer


@given(
    deaths=st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=4),
    count=st.integers(1, 9),
)
def test_every_job_has_one_outcome_and_the_dead_get_none(deaths, count):
    """One worker that dies for good must not eat the jobs of all others."""
    ray = StandIn()
    workers = [Mortal(ray, at, rises=rises and at > 0) for at, rises in deaths]
    workers.append(Mortal(ray, -1, rises=False))  # lives
    recipe = Recipe()
    jobs = [
        tasks.Task(name=str(number), label="", content="", style="", recipe=recipe)
        for number in range(count)
    ]
    outcomes = [each for each in engines._share_out(ray, workers, jobs) if each is not None]
    assert sorted(each.name for each in outcomes) == sorted(task.name for task in jobs)
    assert sum(bool(each.reason) for each in outcomes) <= sum(at > 0 for at, _ in deaths)


def test_without_a_worker_it_ends_in_a_sentence():
    ray = StandIn()
    task = tasks.Task(name="a", label="", content="", style="", recipe=Recipe())
    with pytest.raises(ImpastoError, match="no worker is left: the actor died"):
        list(engines._share_out(ray, [Mortal(ray, 0, rises=False)], [task]))


# --- Storage by URL


@pytest.fixture
def memory(pictures: Path) -> Iterator[str]:
    """A storage in memory that holds the pictures."""
    system = fsspec.filesystem("memory")
    system.store.clear()
    for path in pictures.rglob("*.png"):
        system.pipe_file(f"/lab/{path.relative_to(pictures)}", path.read_bytes())
    yield "memory://lab"
    system.store.clear()


def test_inputs_and_outputs_by_url(memory, finished, capsys):
    folders = ["--contents", f"{memory}/photos", "--styles", f"{memory}/paintings"]
    words = ["batch", *folders, "--methods", "cmd,gram", "-o", f"{memory}/out", *TINY, "--score"]
    assert main(words) == 0
    system = fsspec.filesystem("memory")
    made = {
        name.removesuffix(".png"): imagefile.pixels_sha256(
            imagefile.read(storage.read(f"{memory}/out/{name}")).rgb
        )
        for name in storage.listing(f"{memory}/out")
        if name.endswith(".png")
    }
    assert made == pixels(finished)
    before = {name: system.modified(name) for name in system.find("/lab/out")}
    capsys.readouterr()
    assert main(words) == 0
    assert "8 done before, 0 to do" in capsys.readouterr().err
    assert {name: system.modified(name) for name in system.find("/lab/out")} == before
    record = json.loads(storage.read(f"{memory}/out/records.jsonl").splitlines()[0])
    content = record["inputs"]["content"]
    assert content["path"].startswith("memory://lab/photos/")
    assert content["sha256"] == hashlib.sha256(storage.read(content["path"])).hexdigest()


def test_a_url_of_files_is_the_folder_itself(pictures, out):
    before = times(out)
    assert main([*grid(pictures, f"file://{out}"), "--quiet"]) == 0
    assert times(out) == before


def test_a_storage_that_is_not_known_is_said(pictures, capsys):
    assert main(grid(pictures, "nowhere://bucket/out")) == 1
    assert "nowhere" in capsys.readouterr().err


def test_a_picture_without_a_record_is_no_result(pictures, tmp_path):
    task = tasks.grid(str(pictures / "photos"), str(pictures / "paintings"), ["cmd"])[0]
    folder = Folder(place=str(tmp_path))
    for content in (b"", b"x", (pictures / "photos" / "coffee.png").read_bytes()):
        Path(folder.picture(task)).write_bytes(content)
        assert folder.record_of(task) is None
