"""The commands end to end: the installed package, the real network, small real pictures."""

from __future__ import annotations

import functools
import io
import itertools
import json
import os
import pickle
import re
import resource
import select
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import PIL.Image
import pytest
import torch

from impasto import imagefile
from impasto.cli import COMMANDS, main, painting
from impasto.cli.progress import Progress
from impasto.networks import checkpoints
from impasto.recipe import EVERY_METHOD, FEED_FORWARD, METHODS
from impasto.samples import PAINTINGS, PHOTOS

SMALL = ("--size", "64", "--steps", "2", "--shallow", "0")  # losses that compare
UTF8 = {**os.environ, "PYTHONIOENCODING": "utf-8"}
PATIENCE = 300  # seconds after which a process hangs
MODULE = (sys.executable, "-m", "impasto")


class Outcome(NamedTuple):
    """How a command ended and what it said."""

    code: int
    out: str
    err: str


def run(*words: Any, program: tuple[str, ...] = MODULE, **options: Any) -> Outcome:
    """A command as a process of its own."""
    done = subprocess.run(
        [*program, *map(str, words)],
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        env=options.pop("env", UTF8),
        **options,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def impasto(capsys) -> Callable[..., Outcome]:
    """A command in this process, which need not load torch anew."""

    def call(*words: Any) -> Outcome:
        capsys.readouterr()
        try:
            code = main([str(word) for word in words])
        except SystemExit as end:  # argparse
            code = end.code
        said = capsys.readouterr()
        return Outcome(code, said.out, said.err)

    return call


@pytest.fixture(autouse=True)
def _signals() -> Iterator[None]:
    """Whatever a command does about signals ends with its test."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@dataclass(frozen=True)
class Painted:
    """A picture that the installed command made, and all that it left behind."""

    outcome: Outcome
    picture: Path
    report: dict[str, Any]


@pytest.fixture(scope="session")
def painted(files, tmp_path_factory) -> Painted:
    folder = tmp_path_factory.mktemp("painted")
    script = shutil.which("impasto", path=str(Path(sys.executable).parent))
    assert script is not None
    outcome = run(
        "stylize", files["content"], files["style"], "-o", folder / "out.png",
        "--report", folder / "out.json", "--size", "64", "--steps", "5", "--seed", "7",
        program=(script,),
    )  # fmt: skip
    report = json.loads((folder / "out.json").read_text())
    return Painted(outcome, folder / "out.png", report)


def pixels(path: Any) -> np.ndarray:
    with PIL.Image.open(path) as image:
        return np.asarray(image).astype(int)


def opened(path: Any, *, side: int | None = None) -> PIL.Image.Image:
    """A picture as Pillow reads and, where wanted, shrinks it."""
    with PIL.Image.open(path) as image:
        rgb = image.convert("RGB")
    if side is None:
        return rgb
    factor = side / max(rgb.size)
    return rgb.resize([round(length * factor) for length in rgb.size], PIL.Image.Resampling.BICUBIC)


def losses(path: Any, when: str = "end") -> dict[str, float]:
    return imagefile.read_record(path)["losses"][when]


def assert_complaint(outcome: Outcome, *words: str) -> None:
    """One line on stderr, of ours, and nothing else."""
    assert outcome.code == 1
    assert outcome.out == ""
    assert outcome.err.startswith("impasto: ")
    assert outcome.err.count("\n") == 1
    assert "Traceback" not in outcome.err
    for word in words:
        assert word in outcome.err


# ── Help and wrong usage ─────────────────────────────────────────────────────────────────────────


def test_help_of_everything_needs_no_torch():
    """Torch takes seconds to load; whoever asks for help, or mistypes, does not wait for it."""
    script = f"""
import contextlib, io, sys
from impasto.cli import main
for words in ([], ["--help"], ["--version"], *([name, "--help"] for name in {list(COMMANDS)})):
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        try:
            code = main(words)
        except SystemExit as end:
            code = end.code
    assert code == (0 if words else 2), (words, code)
    assert "impasto" in text.getvalue(), words
for words in (["stylize"], ["stylize", "--nonsense"], ["nonsense"], ["score"], ["demo", "x"]):
    with contextlib.redirect_stderr(io.StringIO()):
        try:
            main(words)
        except SystemExit as end:
            assert end.code == 2, words
        else:
            raise AssertionError(words)
for words in ("stylize a b -o c.png --alpha 2".split(), "resume nowhere -o c.png".split()):
    with contextlib.redirect_stderr(io.StringIO()):
        assert main(words) == 1, words
assert "torch" not in sys.modules
"""
    assert run("-c", script, program=(sys.executable,)) == (0, "", "")


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command(name, impasto):
    outcome = impasto(name, "--help")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith(f"usage: impasto {name}")
    assert COMMANDS[name] in outcome.out.replace(COMMANDS[name].capitalize(), COMMANDS[name])


def test_no_command_is_wrong_usage_and_shows_the_help():
    outcome = run()
    assert outcome.code == 2
    assert all(name in outcome.out for name in COMMANDS)


def test_help_in_a_terminal_that_only_knows_ascii():
    for name in COMMANDS:
        outcome = run(name, "--help", env={**os.environ, "PYTHONIOENCODING": "ascii"})
        assert outcome.code == 0, name
        assert outcome.err == ""


@pytest.mark.parametrize(
    "words",
    [
        "--nonsense",
        "--method nonsense",
        "--kernel nonsense",
        "--preset nonsense",
        "--optimizer nonsense",
        "--stop nonsense",
        "--decay nonsense",
        "--layer-weights -1,1,1,1,1",  # argparse takes it for a flag
        "--alpha",
        "a-third-picture.png",
    ],
)
def test_wrong_usage(words, files, tmp_path, impasto):
    output = tmp_path / "out.png"
    outcome = impasto("stylize", files["content"], files["style"], "-o", output, *words.split())
    assert outcome.code == 2
    assert "usage: impasto" in outcome.err
    assert not any(tmp_path.iterdir())


# ── stylize ──────────────────────────────────────────────────────────────────────────────────────


def test_stylize_paints(painted):
    outcome = painted.outcome
    assert (outcome.code, outcome.out) == (0, "")
    assert pixels(painted.picture).shape == (43, 64, 3)
    assert losses(painted.picture)["style"] < losses(painted.picture, "start")["style"]
    assert losses(painted.picture)["total"] < losses(painted.picture, "start")["total"]


def test_stylize_tells_how_far_it_is(painted):
    lines = painted.outcome.err.splitlines()
    assert "step 0/5" in lines[0]
    assert "step 5/5" in lines[-2]
    assert "100%" in lines[-2]
    assert str(painted.picture) in lines[-1]
    assert "\r" not in painted.outcome.err  # nobody rewrites a line of a log file


def test_the_record_tells_what_made_the_picture(painted, files):
    record = imagefile.read_record(painted.picture)
    assert record["recipe"]["method"] == "cmd"
    assert record["recipe"]["seed"] == 7
    assert record["recipe"]["size"] == 64
    assert record["network"] == {"name": "oxford", "sha256": checkpoints.OXFORD_SHA256}
    assert record["machine"]["torch"] == torch.__version__
    assert record["machine"]["numpy"] == np.__version__
    assert record["machine"]["pillow"] == PIL.__version__
    assert record["impasto"]
    assert record["machine"]["python"]
    assert record["inputs"]["content"]["path"] == files["content"]
    assert record["inputs"]["style"]["size"] == [*opened(files["style"]).size]
    assert record["steps"] == {"planned": 5, "done": 5, "reason": "steps"}
    assert record["losses"]["end"]["layers"].keys() == {f"conv{block}_1" for block in range(1, 6)}
    assert 0 < record["seconds"] < PATIENCE
    assert record["pixels"] == imagefile.pixels_sha256(pixels(painted.picture).astype(np.uint8))


def test_the_report_is_the_record_with_all_losses(painted):
    report = dict(painted.report)
    history = report.pop("history")
    assert report == imagefile.read_record(painted.picture)
    assert len(history) == 1 + 5
    assert history[0] == report["losses"]["start"]
    assert min(history, key=lambda each: each["total"]) == report["losses"]["end"]


def test_quiet_says_nothing(files, tmp_path):
    output = tmp_path / "out.png"
    said = run("stylize", files["content"], files["style"], "-o", output, *SMALL, "--quiet")
    assert said == (0, "", "")
    assert pixels(output).shape == (43, 64, 3)


@pytest.mark.parametrize(
    ("suffix", "kind"),
    [
        (".png", "PNG"),
        (".jpg", "JPEG"),
        (".jpeg", "JPEG"),
        (".webp", "WEBP"),
        (".tif", "TIFF"),
        (".TIFF", "TIFF"),
    ],
)
def test_every_format_holds_picture_and_record(suffix, kind, files, tmp_path, impasto):
    output = tmp_path / f"ein schönes Bild{suffix}"
    assert impasto("stylize", files["content"], files["style"], "-o", output, *SMALL).code == 0
    with PIL.Image.open(output) as image:
        assert (image.format, image.size) == (kind, (64, 43))
    record = imagefile.read_record(output)
    assert record["recipe"]["steps"] == 2
    again = impasto("rerun", output)
    assert again.out == "every pixel is the same\n"  # the record knows them, lossy or not


@pytest.mark.parametrize("method", METHODS)
def test_every_method_lowers_its_loss(method, files, tmp_path, impasto):
    output = tmp_path / "out.png"
    outcome = impasto(
        "stylize", files["content"], files["style"], "-o", output, *SMALL, "--method", method
    )
    assert outcome.code == 0
    assert imagefile.read_record(output)["recipe"]["method"] == method
    assert losses(output)["total"] < losses(output, "start")["total"]


@pytest.mark.parametrize("method", FEED_FORWARD)
def test_feed_forward_and_again(method, files, tmp_path, impasto):
    output = tmp_path / "out.png"
    outcome = impasto(
        "stylize", files["content"], files["style"], "-o", output, "--size", 64,
        "--method", method, "--layer-weights", "", "--steps", "9",
    )  # fmt: skip
    assert outcome.code == 0
    assert f"without effect on method '{method}': --layer-weights, --steps\n" in outcome.err
    assert "pass" in outcome.err
    assert impasto("rerun", output).out == "every pixel is the same\n"
    assert np.abs(pixels(output) - pixels(files["content"]).mean()).max() > 10


@pytest.mark.parametrize("kernel", ["linear", "polynomial"])
def test_every_kernel_lowers_its_loss(kernel, files, tmp_path, impasto):
    output = tmp_path / "out.png"
    words = ("--method", "mmd", "--kernel", kernel)
    assert (
        impasto("stylize", files["content"], files["style"], "-o", output, *SMALL, *words).code == 0
    )
    assert losses(output)["total"] < losses(output, "start")["total"]


@pytest.mark.parametrize(
    "words",
    [
        "--optimizer adam",
        "--optimizer lbfgs",
        "--optimizer adam --decay none --learning-rate 0.01",
        "--start content",
        "--start color",
        "--start noise",
        "--start STYLE",
        "--alpha 0",
        "--alpha 0.5 --tv 0.1 --laplacian 1",
        "--order 2 --moment-weights 1,0.5",
        "--layers conv1_1,relu3_2 --layer-weights 1,0.01 --content-layer relu4_2",
        "--method swd --projections 8 --seed 3",
        "--style-size original",
        "--style-size 48",
        "--stop never --scales 1",
        "--preset paper --steps 2",
    ],
)
def test_settings_paint(words, files, tmp_path, impasto):
    output = tmp_path / "out.png"
    outcome = impasto(
        "stylize", files["content"], files["style"], "-o", output, *SMALL,
        *words.replace("STYLE", files["style"]).split(),
    )  # fmt: skip
    assert outcome.code == 0
    assert pixels(output).shape == (43, 64, 3)
    assert losses(output)["total"] < losses(output, "start")["total"]


def test_a_flag_changes_a_preset(files, tmp_path, impasto):
    output = tmp_path / "out.png"
    words = ("--preset", "paper", "--steps", "1", "--alpha", "0.5")
    impasto("stylize", files["content"], files["style"], "-o", output, "--size", 64, *words)
    recipe = imagefile.read_record(output)["recipe"]
    assert (recipe["optimizer"], recipe["start"]) == ("adam", "content")
    assert (recipe["steps"], recipe["alpha"]) == (1, 0.5)


@pytest.mark.parametrize("shape", [(90, 40), (50, 300), (64, 64), (37, 41)])
def test_content_and_style_of_any_two_shapes(shape, files, tmp_path, impasto):
    """The result has the shape of the content, whichever of the two is the odd one."""
    odd, output = tmp_path / "odd.png", tmp_path / "out.png"
    opened(files["style"]).resize(shape).save(odd)
    long_side = 224 if max(shape) > 6 * min(shape) - 1 else 80
    for content, style in [(odd, files["style"]), (files["content"], odd)]:
        assert (
            impasto(
                "stylize", content, style, "-o", output, "--steps", "1", "--size", long_side,
                "--style-size", long_side,
            ).code
            == 0
        )  # fmt: skip
        width, height = opened(content).size
        factor = long_side / max(width, height)
        assert pixels(output).shape == (round(height * factor), round(width * factor), 3)


def test_original_size_is_that_of_the_content(files, tmp_path, impasto):
    output = tmp_path / "out.png"
    words = ("--size", "original", "--steps", "1")
    assert impasto("stylize", files["content"], files["style"], "-o", output, *words).code == 0
    assert opened(output).size == opened(files["content"]).size


def test_a_budget_ends_in_time_with_a_picture(files, tmp_path):
    output = tmp_path / "out.png"
    outcome = run(
        "stylize", files["content"], files["style"], "-o", output, "--size", "64",
        "--budget", "20s", "--steps", "6",
    )  # fmt: skip
    assert outcome.code == 0
    record = imagefile.read_record(output)
    assert record["recipe"]["budget"] == 20
    assert record["steps"]["reason"] in ("steps", "budget")
    assert record["steps"]["done"] >= 1
    assert losses(output)["style"] < losses(output, "start")["style"]


@pytest.mark.parametrize("optimizer", ["adam", "lbfgs"])
def test_a_picture_of_a_budget_can_be_made_again(optimizer, files, tmp_path, impasto):
    """However long the second time takes: the record holds what the time allowed."""
    output = tmp_path / "out.png"
    words = ("--size", 64, "--budget", "6s", "--steps", 9999, "--optimizer", optimizer)
    assert impasto("stylize", files["content"], files["style"], "-o", output, *words).code == 0
    steps = imagefile.read_record(output)["steps"]
    assert steps["reason"] in ("steps", "budget", "flat")
    assert 1 <= steps["done"] <= steps["planned"]
    assert steps["done"] < 9999
    assert impasto("rerun", output).out == "every pixel is the same\n"


@pytest.mark.parametrize("start", ["color", "content", "noise", "STYLE"])
def test_alpha_one_returns_the_content(start, files, tmp_path, impasto):
    output = tmp_path / "out.png"
    start = start.replace("STYLE", files["style"])
    words = ("--alpha", 1, "--start", start, "--steps", 5)
    for side in (64, 96):
        outcome = impasto(
            "stylize", files["content"], files["style"], "-o", output, "--size", side, *words
        )
        assert outcome.code == 0
        expected = np.asarray(opened(files["content"], side=side)).astype(int)
        assert np.abs(pixels(output) - expected).max() <= 1
        assert losses(output)["content"] == 0


@pytest.mark.parametrize("method", METHODS)
def test_content_as_style_stays_as_it_is(method, files, tmp_path, impasto):
    output = tmp_path / "out.png"
    words = ("--size", "original", "--steps", 1, "--method", method)
    assert impasto("stylize", files["content"], files["content"], "-o", output, *words).code == 0
    assert losses(output)["total"] < 1e-6
    assert np.abs(pixels(output) - np.asarray(opened(files["content"]))).max() <= 1


# ── Pictures that are odd, yet pictures ──────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("role", "color"),
    [
        ("content", (0, 0, 0)),
        ("content", (255, 255, 255)),
        ("style", (0, 0, 0)),
        ("style", (200, 10, 30)),
        ("both", (200, 10, 30)),
    ],
)
def test_one_color_gives_a_finite_picture(role, color, files, tmp_path, impasto):
    flat, output = tmp_path / "flat.png", tmp_path / "out.png"
    PIL.Image.new("RGB", (80, 60), color).save(flat)
    content = files["content"] if role == "style" else flat
    style = files["style"] if role == "content" else flat
    assert impasto("stylize", content, style, "-o", output, *SMALL).code == 0
    assert np.isfinite([losses(output, when)["total"] for when in ("start", "end")]).all()
    if role == "both":
        assert np.abs(pixels(output) - color).max() <= 1


@pytest.mark.parametrize("method", METHODS)
def test_one_color_is_no_trap_for_any_method(method, files, tmp_path, impasto):
    flat, output = tmp_path / "flat.png", tmp_path / "out.png"
    PIL.Image.new("RGB", (80, 60), (120, 120, 120)).save(flat)
    words = (*SMALL, "--method", method)
    assert impasto("stylize", flat, files["style"], "-o", output, *words).code == 0
    assert losses(output)["total"] < losses(output, "start")["total"]


@pytest.mark.parametrize("role", ["content", "style"])
def test_a_single_pixel_is_a_picture(role, files, tmp_path, impasto):
    dot, output = tmp_path / "dot.png", tmp_path / "out.png"
    PIL.Image.new("RGB", (1, 1), (200, 10, 30)).save(dot)
    words = {**files, role: dot}
    assert impasto("stylize", words["content"], words["style"], "-o", output, *SMALL).code == 0
    assert np.isfinite(losses(output)["total"])


def with_hole(path: Any, folder: Path, name: str, fill: int) -> Path:
    """The picture with its left part transparent, and a color there that nobody sees."""
    rgb = np.array(opened(path))
    alpha = np.full(rgb.shape[:2], 255, np.uint8)
    alpha[:, :40] = 0
    rgb[alpha == 0] = fill
    PIL.Image.fromarray(np.dstack([rgb, alpha])).save(folder / name)
    return folder / name


@pytest.mark.parametrize("suffix", [".png", ".webp"])
def test_transparency_survives_and_hides_what_it_hides(suffix, files, tmp_path, impasto):
    results = []
    for fill in (0, 255):
        content = with_hole(files["content"], tmp_path, f"{fill}.png", fill)
        output = tmp_path / f"out-{fill}{suffix}"
        words = ("--size", "original", "--steps", 2)
        assert impasto("stylize", content, files["style"], "-o", output, *words).code == 0
        results.append(pixels(output))
    first, second = results
    assert np.array_equal(first[..., 3], pixels(content)[..., 3])
    assert np.array_equal(first, second)


def test_transparency_stands_on_white_where_the_format_has_none(files, tmp_path, impasto):
    content, output = with_hole(files["content"], tmp_path, "in.png", 0), tmp_path / "out.jpg"
    words = ("--size", "original", "--steps", 1)
    assert impasto("stylize", content, files["style"], "-o", output, *words).code == 0
    assert pixels(output)[:, :32].min() > 240


def test_a_transparent_style_counts_where_it_is_seen(files, tmp_path, impasto):
    results = []
    for fill in (0, 255):
        style = with_hole(files["style"], tmp_path, f"{fill}.png", fill)
        output = tmp_path / f"out-{fill}.png"
        assert impasto("stylize", files["content"], style, "-o", output, *SMALL).code == 0
        results.append(pixels(output))
    assert np.array_equal(*results)


# ── Bad input ────────────────────────────────────────────────────────────────────────────────────


def bomb(side: int) -> bytes:
    """A PNG of a hundred bytes that claims to be a wall."""
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(bytes(99))), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )


def encoded(image: PIL.Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


BAD_PICTURES: dict[str, Callable[[Path], Any]] = {
    "missing.png": lambda path: None,
    "empty.png": lambda path: path.write_bytes(b""),
    "text.jpg": lambda path: path.write_text("I am no picture.\n"),
    "truncated.png": lambda path: path.write_bytes(
        encoded(PIL.Image.effect_noise((90, 90), 90))[:2000]
    ),
    "bomb.png": lambda path: path.write_bytes(bomb(60_000)),
    "thin.png": lambda path: PIL.Image.new("RGB", (1, 5000)).save(path),
    "flat.png": lambda path: PIL.Image.new("RGB", (5000, 1)).save(path),
    "folder.png": lambda path: path.mkdir(),
    "invisible.png": lambda path: PIL.Image.new("RGBA", (60, 60)).save(path),
    "two\nlines.png": lambda path: None,
}


@pytest.fixture
def kept(tmp_path) -> Iterator[Path]:
    """An output that is there already, and that no failure may change or surround with litter."""
    folder = tmp_path / "results"
    folder.mkdir()
    output = folder / "out.png"
    output.write_bytes(b"the work of a night")
    yield output
    assert [each.name for each in folder.iterdir()] == ["out.png"]
    assert output.read_bytes() == b"the work of a night"


THIN = ("thin.png", "flat.png")  # a start is stretched to the content: there, any shape will do
BAD_ROLES = [
    (name, role)
    for name in BAD_PICTURES
    for role in ("content", "style", "start")
    if name not in THIN or role != "start"
]


@pytest.mark.parametrize(("name", "role"), BAD_ROLES)
def test_a_bad_picture_is_one_line(name, role, files, tmp_path, kept, impasto):
    path = tmp_path / name
    BAD_PICTURES[name](path)
    given = {**files, "start": "content", role: path}
    words = ("-o", kept, *SMALL, "--start", given["start"])
    outcome = impasto("stylize", given["content"], given["style"], *words)
    named = f"the {role} image" if name in THIN else " ".join(str(path).split())
    assert_complaint(outcome, named)


def test_a_bad_picture_is_one_line_of_the_installed_command(files, tmp_path, kept):
    outcome = run("stylize", tmp_path / "nowhere.png", files["style"], "-o", kept, *SMALL)
    assert_complaint(outcome, "nowhere.png")


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("--alpha 1.5", "alpha"),
        ("--alpha -0.1", "alpha"),
        ("--alpha nan", "alpha"),
        ("--alpha inf", "alpha"),
        ("--alpha much", "alpha"),
        ("--layer-weights=-1,1,1,1,1", "layer_weights"),
        ("--layer-weights 1,2", "layer_weights"),
        ("--layer-weights 1,2,nan,4,5", "layer_weights"),
        ("--moment-weights=-1,1,1,1,1", "moment_weights"),
        ("--moment-weights 1,2", "moment_weights"),
        ("--tv=-1", "tv"),
        ("--laplacian=-1", "laplacian"),
        ("--layers nonsense", "layers"),
        ("--layers conv1_1,conv1_1", "layers"),
        ("--content-layer nonsense", "content_layer"),
        ("--margin=-1", "margin"),
        ("--order 0", "order"),
        ("--projections 0", "projections"),
        ("--size 3", "size"),
        ("--size 40000", "size"),
        ("--size huge", "size"),
        ("--size 40", "size"),  # the short side would be 27 pixels
        ("--style-size 5", "style_size"),
        ("--steps 0", "steps"),
        ("--steps 1.5", "steps"),
        (f"--steps {'9' * 400}", "steps"),
        ("--scales 9", "scales"),
        ("--learning-rate 0", "learning_rate"),
        ("--budget soon", "budget"),
        ("--budget=-5s", "budget"),
        ("--seed=-1", "seed"),
        ("--start nowhere.png", "nowhere.png"),
        ("--device nonsense", "nonsense"),
        ("--device cuda:99", "cuda:99"),
        ("--device meta", "meta"),  # torch knows it, but it holds no numbers
        ("--weights nowhere.pth", "nowhere.pth"),
        ("--weights CONTENT", "content.png"),
        ("--tv 1e300", "loss"),
        ("--report nowhere/out.json", "nowhere"),
        ("--checkpoint nowhere/run.ckpt", "nowhere"),
        ("--report .", "."),
    ],
)
def test_a_bad_setting_is_one_line(words, named, files, kept, impasto):
    outcome = impasto(
        "stylize", files["content"], files["style"], "-o", kept, *SMALL,
        *words.replace("CONTENT", files["content"]).split(), "--quiet",
    )  # fmt: skip
    assert_complaint(outcome, named)


@pytest.mark.parametrize(
    "name",
    ["nowhere/out.png", "out.gif", "out", ".png", "out.png/out.png", "out.png ", "folder.png"],
)
def test_a_bad_output_is_refused_before_any_work(name, files, kept, impasto, monkeypatch):
    monkeypatch.setattr(checkpoints, "load", lambda name: pytest.fail("it began to work"))
    folder = kept.parent.parent / "folder.png"
    folder.mkdir()
    output = folder if name == "folder.png" else kept.parent / name
    assert_complaint(impasto("stylize", files["content"], files["style"], "-o", output, *SMALL))
    assert not any(folder.iterdir())


@pytest.mark.parametrize("flags", ["-o --report", "-o --checkpoint", "--report --checkpoint"])
def test_two_results_need_two_files(flags, files, tmp_path, impasto):
    words = {"-o": tmp_path / "out.png", **dict.fromkeys(flags.split(), tmp_path / "one.png")}
    outcome = impasto(
        "stylize", files["content"], files["style"], *SMALL, "--quiet",
        *itertools.chain.from_iterable(words.items()),
    )  # fmt: skip
    assert_complaint(outcome, "one.png")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("flag", ["--checkpoint", "--report"])
@pytest.mark.parametrize("role", ["content", "style"])
def test_a_picture_that_is_read_is_not_written(role, flag, files, tmp_path, impasto):
    """A word too few, and the photo itself would be the file to write, or to remove."""
    given = {name: shutil.copy(path, tmp_path) for name, path in files.items()}
    words = ("-o", tmp_path / "out.png", flag, given[role], *SMALL, "--quiet")
    assert_complaint(impasto("stylize", given["content"], given["style"], *words), f"{role}.png")
    assert Path(given[role]).read_bytes() == Path(files[role]).read_bytes()


def test_a_file_that_is_no_checkpoint_is_not_replaced_by_one(files, tmp_path, impasto):
    diary = tmp_path / "diary.txt"
    diary.write_text("Today I painted.")
    words = ("-o", tmp_path / "out.png", "--checkpoint", diary, *SMALL, "--quiet")
    assert_complaint(impasto("stylize", files["content"], files["style"], *words), "diary.txt")
    assert diary.read_text() == "Today I painted."


LIMITED = """
import resource, sys
resource.setrlimit(resource.{limit}, ({value}, {value}))
from impasto.cli import main
sys.exit(main(sys.argv[1:]))
"""


def limited(limit: str, value: int, *words: Any) -> Outcome:
    """A command on a machine that has less of something."""
    assert hasattr(resource, limit)
    script = LIMITED.format(limit=limit, value=value)
    return run("-c", script, *words, program=(sys.executable,))


def test_a_full_disk_is_one_line(files, kept):
    outcome = limited(
        "RLIMIT_FSIZE", 2000,
        "stylize", files["content"], files["style"], "-o", kept, *SMALL, "--quiet",
    )  # fmt: skip
    assert_complaint(outcome, "out.png")


def test_too_little_memory_is_one_line(files, kept):
    outcome = limited(
        "RLIMIT_AS", 4 * 2**30,
        "stylize", files["content"], files["style"], "-o", kept, "--size", 30_000, "--quiet",
    )  # fmt: skip
    assert_complaint(outcome, "memory")


# ── The same again ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("words", ["--start noise --method swd", "--optimizer adam"])
def test_the_same_recipe_gives_the_same_pixels(words, files, tmp_path, impasto):
    outputs = [tmp_path / "one.png", tmp_path / "two.png"]
    for output in outputs:
        impasto("stylize", files["content"], files["style"], "-o", output, *SMALL, *words.split())
    assert np.array_equal(*map(pixels, outputs))
    one, two = map(imagefile.read_record, outputs)
    assert one["pixels"] == two["pixels"]
    assert {**one, "seconds": 0} == {**two, "seconds": 0}


def test_another_seed_gives_another_picture(files, tmp_path, impasto):
    outputs = [tmp_path / "one.png", tmp_path / "two.png"]
    for seed, output in enumerate(outputs):
        words = (*SMALL, "--start", "noise", "--seed", seed)
        impasto("stylize", files["content"], files["style"], "-o", output, *words)
    assert not np.array_equal(*map(pixels, outputs))


def test_rerun_makes_every_pixel_again(painted):
    outcome = run("rerun", painted.picture)
    assert (outcome.code, outcome.out) == (0, "every pixel is the same\n")
    again = painted.picture.with_name("out-again.png")
    assert np.array_equal(pixels(again), pixels(painted.picture))
    assert (
        imagefile.read_record(again)["pixels"] == imagefile.read_record(painted.picture)["pixels"]
    )


@pytest.fixture
def traveled(files, tmp_path, impasto) -> Path:
    """A picture whose content and start have since moved to ``new``."""
    for name in ("content", "start"):
        shutil.copy(files["content"], tmp_path / f"{name}.png")
    words = (*SMALL, "--start", tmp_path / "start.png")
    output = tmp_path / "out.png"
    assert (
        impasto("stylize", tmp_path / "content.png", files["style"], "-o", output, *words).code == 0
    )
    (tmp_path / "new").mkdir()
    for name in ("content", "start"):
        (tmp_path / f"{name}.png").rename(tmp_path / "new" / f"{name}.png")
    return output


def test_rerun_with_pictures_that_have_moved(traveled, impasto):
    folder = traveled.parent
    outcome = impasto("rerun", traveled)
    assert_complaint(outcome, "content", "--content")
    outcome = impasto("rerun", traveled, "--content", folder / "new" / "content.png")
    assert_complaint(outcome, "start", "--start")
    assert not (folder / "out-again.png").exists()
    outcome = impasto(
        "rerun", traveled, "-o", folder / "again.jpg", "--content", folder / "new" / "content.png",
        "--start", folder / "new" / "start.png",
    )  # fmt: skip
    assert (outcome.code, outcome.out) == (0, "every pixel is the same\n")
    assert "not the same" not in outcome.err


def test_rerun_with_another_picture_warns_and_tells_the_difference(painted, files, impasto):
    outcome = impasto("rerun", painted.picture, "--content", files["style"])
    assert outcome.code == 0
    assert "not the same content" in outcome.err
    assert outcome.out.startswith("pixels differ")


def test_rerun_of_a_picture_without_a_record(files, tmp_path, impasto):
    assert_complaint(impasto("rerun", files["content"], "-o", tmp_path / "out.png"), "record")
    assert_complaint(impasto("rerun", tmp_path / "nowhere.png"), "nowhere.png")
    assert not any(tmp_path.iterdir())


SPOILS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "no recipe": lambda record: record.pop("recipe"),
    "no inputs": lambda record: record.pop("inputs"),
    "no style": lambda record: record["inputs"].pop("style"),
    "no steps": lambda record: record.pop("steps"),
    "not planned": lambda record: record["steps"].pop("planned"),
    "not done": lambda record: record["steps"].pop("done"),
    "done in words": lambda record: record["steps"].update(done="x"),
    "planned in words": lambda record: record["steps"].update(planned="x"),
    "steps in words": lambda record: record.update(steps="x"),
    "recipe in words": lambda record: record.update(recipe="x"),
    "wrong recipe": lambda record: record["recipe"].update(alpha=7),
    "unknown setting": lambda record: record["recipe"].update(x=7),
    "inputs in a list": lambda record: record.update(inputs=["content", "style"]),
    "input in words": lambda record: record["inputs"].update(content="x"),
    "no path": lambda record: record["inputs"]["content"].pop("path"),
    "number for a path": lambda record: record["inputs"]["content"].update(path=5),
    "unknown input": lambda record: record["inputs"].update(x=record["inputs"]["content"]),
    "all": lambda record: record.clear(),
}


@pytest.mark.parametrize("name", SPOILS)
def test_rerun_of_a_spoiled_record_is_one_line(name, painted, kept, tmp_path, impasto):
    """A picture may come from a stranger; a record may have been cut or edited on its way."""
    record = imagefile.read_record(painted.picture)
    SPOILS[name](record)
    picture = tmp_path / "spoiled.png"
    imagefile.write(picture, np.zeros((40, 40, 3)), record=record)
    assert_complaint(impasto("rerun", picture, "-o", kept, "--quiet"))


# ── Interrupted ──────────────────────────────────────────────────────────────────────────────────


class Terminal:
    """A run that is watched in a terminal, where progress is shown at once."""

    def __init__(self, *words: Any) -> None:
        self.end, theirs = os.openpty()
        self.text = ""
        self.process = subprocess.Popen(
            [*MODULE, *map(str, words)], stdout=subprocess.DEVNULL, stderr=theirs, env=UTF8
        )
        os.close(theirs)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *problem: object) -> None:
        self.process.kill()  # where a test failed; it has ended otherwise
        self.process.wait()
        os.close(self.end)

    def read(self) -> bool:
        """Wait for more text; false at the end."""
        assert select.select([self.end], [], [], PATIENCE)[0], "it hangs"
        try:
            data = os.read(self.end, 4096)
        except OSError:  # Linux says so when the other side is closed
            data = b""
        self.text += data.decode(errors="replace")
        return bool(data)

    def wait_for_step(self, index: int) -> None:
        while not any(int(found) >= index for found in re.findall(r"step (\d+)/", self.text)):
            assert self.read(), self.text

    def finish(self) -> int:
        while self.read():
            pass
        return self.process.wait(PATIENCE)


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (signal.SIGINT, "--size 64 --steps 60 --stop never --optimizer lbfgs"),
        (signal.SIGTERM, "--size 192 --steps 6 --optimizer adam --scales 2"),
    ],
)
def test_an_interrupted_run_goes_on_to_the_same_pixels(number, words, files, tmp_path):
    stopped, resumed, whole = (tmp_path / f"{name}.png" for name in ("stopped", "resumed", "whole"))
    checkpoint = tmp_path / "run.ckpt"
    job = ("stylize", files["content"], files["style"], *words.split())
    with Terminal(*job, "-o", stopped, "--checkpoint", checkpoint) as terminal:
        terminal.wait_for_step(2)
        terminal.process.send_signal(number)
        assert terminal.finish() == 130
    assert "Traceback" not in terminal.text
    assert "resume" in terminal.text
    record = imagefile.read_record(stopped)
    assert record["steps"]["reason"] == "stopped"
    assert 2 <= record["steps"]["done"] < record["steps"]["planned"]
    assert checkpoint.exists()
    assert run("resume", checkpoint, "-o", resumed, "--report", tmp_path / "a.json").code == 0
    assert run(*job, "-o", whole, "--report", tmp_path / "b.json").code == 0
    assert pixels(stopped).shape == pixels(whole).shape
    assert np.array_equal(pixels(resumed), pixels(whole))
    a, b = (json.loads((tmp_path / name).read_text()) for name in ("a.json", "b.json"))
    assert a["history"] == b["history"]
    assert {**a, "seconds": 0} == {**b, "seconds": 0}


def interrupt(patch: pytest.MonkeyPatch, index: int, number: int = signal.SIGINT) -> None:
    """Send a signal to this process right after a step was shown."""
    show = Progress.show

    def shown(self: Progress, share: float, text: str, *, last: bool = False) -> None:
        show(self, share, text, last=last)
        if f"step {index}/" in text:
            signal.raise_signal(number)

    patch.setattr(Progress, "show", shown)


@pytest.fixture
def stop_at(files, tmp_path, impasto) -> Callable[..., Outcome]:
    """A run that is interrupted at a step: it leaves stopped.png and run.ckpt."""

    def stopped(index: int, *words: Any, number: int = signal.SIGINT) -> Outcome:
        with pytest.MonkeyPatch.context() as patch:
            interrupt(patch, index, number)
            return impasto(
                "stylize", files["content"], files["style"], "-o", tmp_path / "stopped.png",
                "--checkpoint", tmp_path / "run.ckpt", *words,
            )  # fmt: skip

    return stopped


@pytest.fixture(scope="session")
def whole(files, tmp_path_factory) -> Callable[..., Path]:
    """The result of a run that nobody interrupts, made once."""
    folder = tmp_path_factory.mktemp("whole")

    @functools.cache
    def made(*words: Any) -> Path:
        output = folder / f"{hash(words)}.png"
        job = ("stylize", files["content"], files["style"], "-o", str(output), "--quiet")
        assert main([*job, *map(str, words)]) == 0
        return output

    return made


@pytest.mark.parametrize("index", range(4))
@pytest.mark.parametrize(
    "words",
    ["--optimizer lbfgs --method cmd-joint --start noise", "--optimizer adam", "--preset paper"],
)
def test_a_run_may_be_interrupted_at_any_step(words, index, tmp_path, whole, stop_at, impasto):
    words = (*words.split(), "--size", "64", "--steps", "4")
    assert stop_at(index, *words).code == 130
    resumed = tmp_path / "resumed.png"
    assert impasto("resume", tmp_path / "run.ckpt", "-o", resumed).code == 0
    assert imagefile.read_record(resumed)["steps"] == imagefile.read_record(whole(*words))["steps"]
    assert np.array_equal(pixels(resumed), pixels(whole(*words)))


def test_a_run_may_be_interrupted_more_than_once(tmp_path, whole, stop_at, impasto):
    resumed = tmp_path / "resumed.png"
    words = ("--size", "64", "--steps", "4")
    assert stop_at(1, *words).code == 130
    with pytest.MonkeyPatch.context() as patch:
        interrupt(patch, 3)
        assert impasto("resume", tmp_path / "run.ckpt", "-o", resumed).code == 130
    assert impasto("resume", tmp_path / "run.ckpt", "-o", resumed).code == 0
    assert np.array_equal(pixels(resumed), pixels(whole(*words)))
    assert not (tmp_path / "run.ckpt").exists()  # nothing is left to resume


def test_what_was_saved_on_ctrl_c_is_the_best_so_far_and_can_be_made_again(
    tmp_path, stop_at, impasto
):
    outcome = stop_at(2, "--size", "64", "--steps", "4")
    assert (outcome.code, outcome.out) == (130, "")
    output = tmp_path / "stopped.png"
    assert imagefile.read_record(output)["steps"] == {"planned": 4, "done": 2, "reason": "stopped"}
    assert losses(output)["total"] < losses(output, "start")["total"]
    assert impasto("rerun", output).out == "every pixel is the same\n"


def test_the_command_that_is_offered_after_ctrl_c_works(stop_at, impasto):
    outcome = stop_at(2, "--size", "64", "--steps", "3")
    offered = re.search(r"go on with: impasto (.*)", outcome.err)
    assert offered
    assert impasto(*shlex.split(offered[1])).code == 0


@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_does_not_spoil_what_the_first_one_saves(
    second, tmp_path, stop_at, monkeypatch
):
    write = imagefile.write

    def disturbed(*words: Any, **options: Any) -> None:
        signal.raise_signal(second)
        write(*words, **options)

    monkeypatch.setattr(imagefile, "write", disturbed)
    assert stop_at(1, "--size", "64", "--steps", "3").code == 130
    assert pixels(tmp_path / "stopped.png").shape == (43, 64, 3)


def test_signals_are_as_they_were_afterwards(files, tmp_path, impasto):
    """Whoever calls `main` from a program of their own keeps their handlers."""
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    impasto("stylize", files["content"], files["style"], "-o", tmp_path / "out.png", *SMALL)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_ctrl_c_before_the_first_step_writes_nothing(files, kept, impasto, monkeypatch):
    def interrupted(name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(checkpoints, "load", interrupted)
    outcome = impasto("stylize", files["content"], files["style"], "-o", kept, *SMALL)
    assert outcome == (130, "", "impasto: interrupted\n")


def test_a_killed_run_leaves_nothing(files, kept):
    job = ("stylize", files["content"], files["style"], "-o", kept, "--size", 64, "--steps", 999)
    with Terminal(*job, "--stop", "never") as terminal:
        terminal.wait_for_step(1)
        terminal.process.kill()
        assert terminal.finish() == -signal.SIGKILL


def test_a_run_that_is_killed_while_it_saves_keeps_the_old_picture(files, tmp_path):
    """The moment before the new bytes are on the disk."""
    output = tmp_path / "out.png"
    output.write_bytes(b"the work of a night")
    script = """
import os, signal, sys
from impasto.cli import main
os.fsync = lambda number: os.kill(os.getpid(), signal.SIGKILL)
main(sys.argv[1:])
"""
    words = ("stylize", files["content"], files["style"], "-o", output, *SMALL)
    assert run("-c", script, *words, program=(sys.executable,)).code == -signal.SIGKILL
    assert output.read_bytes() == b"the work of a night"


def test_a_crash_can_be_resumed_from_the_last_checkpoint(
    files, tmp_path, whole, impasto, monkeypatch
):
    """A power cut gives no signal: checkpoints are written meanwhile."""

    class PowerCut(Exception):
        pass

    def shown(self: Progress, share: float, text: str, *, last: bool = False) -> None:
        if "step 3/" in text:
            raise PowerCut

    words, resumed = ("--size", "64", "--steps", "4"), tmp_path / "resumed.png"
    job = ("-o", resumed, "--checkpoint", tmp_path / "run.ckpt", *words)
    monkeypatch.setattr(painting, "BETWEEN_CHECKPOINTS", 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Progress, "show", shown)
        with pytest.raises(PowerCut):
            impasto("stylize", files["content"], files["style"], *job)
    assert not resumed.exists()
    assert impasto("resume", tmp_path / "run.ckpt", "-o", resumed).code == 0
    assert np.array_equal(pixels(resumed), pixels(whole(*words)))


class Trap:
    """What a stranger may put into a file that is unpickled freely."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("kind", ["missing", "empty", "text", "cut", "other", "trap", "folder"])
def test_resume_from_garbage_is_one_line(kind, kept, tmp_path, stop_at, impasto):
    checkpoint, sprung = tmp_path / "run.ckpt", tmp_path / "sprung"
    if kind == "empty":
        checkpoint.write_bytes(b"")
    elif kind == "text":
        checkpoint.write_text("I am no checkpoint.\n")
    elif kind == "cut":
        stop_at(0, *SMALL)
        checkpoint.write_bytes(checkpoint.read_bytes()[:-500])
    elif kind == "other":
        torch.save({"kind": "a network", "state": {}}, checkpoint)
    elif kind == "trap":
        checkpoint.write_bytes(pickle.dumps(Trap(sprung)))
    elif kind == "folder":
        checkpoint.mkdir()
    assert_complaint(impasto("resume", checkpoint, "-o", kept, "--quiet"), "run.ckpt")
    assert not sprung.exists()


def test_resume_with_a_content_of_another_shape_is_one_line(
    files, kept, tmp_path, stop_at, impasto
):
    stop_at(1, *SMALL)
    turned = tmp_path / "turned.png"
    opened(files["content"]).rotate(90, expand=True).save(turned)
    outcome = impasto("resume", tmp_path / "run.ckpt", "-o", kept, "--content", turned, "--quiet")
    assert outcome.code == 1
    assert "content" in outcome.err
    assert outcome.err.startswith("impasto: ")


# ── score ────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def score(files, impasto) -> Callable[..., dict[str, Any]]:
    def scored(image: Any, *words: Any, content: Any = files["content"]) -> dict[str, Any]:
        outcome = impasto(
            "score", image, "--content", content, "--style", files["style"], "--json", *words
        )
        assert (outcome.code, outcome.err) == (0, "")
        return json.loads(outcome.out)

    return scored


def test_score_as_a_table(painted, files):
    outcome = run(
        "score", painted.picture, "--content", files["content"], "--style", files["style"]
    )
    assert (outcome.code, outcome.err) == (0, "")
    rows = [line.split()[0] for line in outcome.out.splitlines()]
    assert rows == ["method", *METHODS, "content", "ssim", "held", "measured"]


def test_painting_brings_the_style_and_costs_content(painted, files, score):
    before, after = score(files["content"], "--size", 64), score(painted.picture)
    assert after["style"].keys() == METHODS.keys()
    assert all(after["style"][name] < before["style"][name] for name in METHODS)
    assert all(after["held_out"][layer] < before["held_out"][layer] for layer in after["held_out"])
    assert after["content"] > before["content"]
    assert after["ssim"] < before["ssim"]


def test_the_score_is_the_loss_that_was_descended_on(painted, score):
    """Up to the 8 bits of the file."""
    found, recorded = score(painted.picture), losses(painted.picture)
    assert found["style"]["cmd"] == pytest.approx(recorded["style"], rel=0.02)
    assert found["content"] == pytest.approx(recorded["content"], rel=0.02)


def test_a_picture_has_its_own_content_and_style(files, score):
    itself = score(files["content"])
    assert itself["content"] == 0
    assert itself["ssim"] == pytest.approx(1)
    style = score(files["style"], content=files["style"])
    assert all(value == pytest.approx(0, abs=1e-6) for value in style["style"].values())
    assert all(value == pytest.approx(0, abs=1e-6) for value in style["held_out"].values())


@pytest.mark.parametrize("name", ["other.jpg", "other.gif", "other.bmp", "other.tif"])
def test_score_of_the_work_of_another_tool(name, files, tmp_path, score):
    opened(files["content"]).resize((80, 60)).save(tmp_path / name)
    found = score(tmp_path / name)
    assert found["size"] == [80, 60]
    assert 0.5 < found["ssim"] < 1
    assert score(tmp_path / name, "--size", 64)["size"] == [64, 48]


@pytest.mark.parametrize("role", ["image", "content", "style"])
def test_score_of_a_bad_picture_is_one_line(role, files, tmp_path, impasto):
    given = {"image": files["content"], **files, role: tmp_path / "nowhere.png"}
    outcome = impasto(
        "score", given["image"], "--content", given["content"], "--style", given["style"]
    )
    assert_complaint(outcome, "nowhere.png")


# ── methods, weights, doctor, demo ───────────────────────────────────────────────────────────────


def test_methods():
    outcome = run("methods")
    assert (outcome.code, outcome.err) == (0, "")
    assert [line.split()[0] for line in outcome.out.splitlines()] == list(EVERY_METHOD)


def test_methods_for_programs(impasto):
    table = json.loads(impasto("methods", "--json").out)
    assert list(table) == list(EVERY_METHOD)
    assert all(row["description"] and row["layers"] for row in table.values())


def test_weights():
    outcome = run("weights")
    assert (outcome.code, outcome.err) == (0, "")
    assert "oxford: verified" in outcome.out
    assert checkpoints.OXFORD_SHA256 in outcome.out
    assert "license" in outcome.out


def test_doctor():
    outcome = run("doctor")
    assert (outcome.code, outcome.err) == (0, "")
    names = [line.split()[0] for line in outcome.out.splitlines()]
    assert names == [
        "versions", "device", "memory", "weights", "saturation", "speed", "self-test", "all",
    ]  # fmt: skip
    assert "PROBLEM" not in outcome.out


def test_doctor_for_programs(impasto):
    outcome = impasto("doctor", "--json", "--device", "cpu")
    assert (outcome.code, outcome.err) == (0, "")
    findings = json.loads(outcome.out)
    assert findings["problems"] == []
    assert findings["versions"]["torch"] == torch.__version__
    assert findings["self-test"] == "passed"


@pytest.mark.parametrize("words", ["--device nonsense", "--weights nowhere.pth"])
def test_doctor_finds_what_is_wrong(words, impasto):
    outcome = impasto("doctor", "--json", *words.split())
    assert (outcome.code, outcome.err) == (1, "")
    findings = json.loads(outcome.out)
    assert findings["problems"]
    assert "versions" not in findings["problems"]
    assert all(words.split()[1] in findings[name] for name in findings["problems"])


def test_demo_names_its_pictures():
    outcome = run("demo", "--help")
    assert outcome.code == 0
    assert all(name in outcome.out for name in (*PHOTOS, *PAINTINGS))
    assert run("demo", "nonsense").code == 2


def test_demo_with_a_bad_output_is_one_line(kept, impasto):
    assert_complaint(impasto("demo", "-o", kept.parent / "nowhere" / "demo.png"), "nowhere")
