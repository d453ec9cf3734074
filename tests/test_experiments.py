"""The experiments of the paper: their laws on small samples, and real runs of the commands."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import PIL.Image
import pytest
import scipy.stats
import torch
from hypothesis import given
from hypothesis import strategies as st

from impasto.cli import main
from impasto.experiments import (
    EXPERIMENTS,
    ablation,
    alignment,
    convergence,
    distances,
    experiment,
    figures,
    inspection,
    listed,
    report,
    toy,
    votes,
)
from impasto.experiments.plan import (
    SYSTEMS,
    Order,
    Plan,
    Source,
    combined,
    folder_pairs,
    sample_pairs,
)
from impasto.experiments.reproduction import REPORT, Reproduction, chosen
from impasto.optimize import PAPER_DIFFERENCE, is_settled
from impasto.recipe import EVERY_METHOD
from impasto.types import ImpastoError


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory, files: dict[str, str]) -> dict[str, str]:
    """A folder with a photo, and one with a painting."""
    made = {}
    for name in ("content", "style"):
        folder = tmp_path_factory.mktemp(name)
        (folder / f"{name}.png").write_bytes(Path(files[name]).read_bytes())
        made[name] = str(folder)
    return made


@pytest.fixture(scope="module")
def plan(folders: dict[str, str]) -> Plan:
    """The smallest plan that means something."""
    return Plan(
        pairs=folder_pairs(folders["content"], folders["style"]),
        size=64,
        steps=2,
        paper_steps=3,
        toy_steps=5,
        timed_size=64,
        timed_steps=1,
        timed_runs=1,
        settings=(("decoder", "impasto"),),  # the one that needs no download
    )


@pytest.fixture(scope="module")
def everything(plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of all experiments."""
    folder = tmp_path_factory.mktemp("everything")
    ticks = list(Reproduction(plan=plan, folder=folder).run(list(EXPERIMENTS)))
    shares = [tick.share for tick in ticks]
    assert shares == sorted(shares)
    assert 0 <= shares[0] <= shares[-1] <= 1
    return folder


def aligned(name: str, *, count: int = 1000, steps: int = 500) -> torch.Tensor:
    source, target = (points[:count] for points in toy.samples())
    *_, (_, points) = toy.aligned(source, target, toy.LOSSES[name], steps=steps)
    return points


def impasto(*words: Any) -> subprocess.CompletedProcess[str]:
    """A command as a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "impasto", *map(str, words)],
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )


class TestToy:
    """What the paper's figure 2 claims."""

    def test_second_orders_do_not_align_and_central_moments_do(self) -> None:
        target = toy.samples()[1][:1000]
        distance = {
            name: scipy.stats.wasserstein_distance(aligned(name).flatten(), target.flatten())
            for name in ("MMD", "MM", "OT", "CMD, K = 5", "CMD, K = 50")
        }
        assert 5 * distance["CMD, K = 5"] < distance["MM"] < distance["MMD"]
        assert distance["CMD, K = 50"] < distance["CMD, K = 5"]
        assert distance["OT"] == pytest.approx(distance["MM"], rel=0.05)  # the same on the line

    def test_the_samples_have_the_moments_of_their_laws(self) -> None:
        for points, law in zip(toy.samples(), (toy.SOURCE, toy.TARGET), strict=True):
            mean, variance = scipy.stats.beta.stats(*law)
            assert points.mean().item() == pytest.approx(float(mean), abs=0.01)
            assert points.var().item() == pytest.approx(float(variance), abs=0.005)

    @given(st.lists(st.tuples(st.floats(-5, 5), st.floats(-5, 5)), min_size=1))
    def test_distance_is_that_of_scipy(self, values: list[tuple[float, float]]) -> None:
        x, y = torch.tensor(values, dtype=torch.float64).T
        assert toy.wasserstein1(x, y) == pytest.approx(scipy.stats.wasserstein_distance(x, y))

    def test_caption_follows_the_data(self, plan: Plan, tmp_path: Path) -> None:
        data = finished("toy", plan, tmp_path)
        law = data["laws"]
        assert f"{law['MM']['wasserstein1']:.3f} by MM" in toy.caption(data).seen
        law["CMD, K = 5"]["wasserstein1"] = 1.0  # as if it had failed
        assert "not the paper's" in toy.caption(data).differs
        for name, value in {"CMD, K = 5": 0.01, "CMD, K = 50": 0.001}.items():
            law[name]["wasserstein1"] = value
        assert "None in the order" in toy.caption(data).differs


def finished(name: str, plan: Plan, folder: Path) -> dict[str, Any]:
    """The data of an experiment after a run."""
    list(Reproduction(plan=plan, folder=folder).run([name]))
    return json.loads((folder / f"{name}.json").read_bytes())["data"]


class TestPlan:
    """Pairs, names, numbers."""

    @given(st.integers(1, 7), st.integers(1, 7))
    def test_all_pairs_come_once_and_the_first_differ(self, n: int, m: int) -> None:
        contents, styles = (
            [Source(name=f"{kind}{k}", path="", sha256=f"{kind}{k}") for k in range(count)]
            for kind, count in (("c", n), ("s", m))
        )
        pairs = combined(contents, styles)
        assert len(set(pairs)) == len(pairs) == n * m
        first = pairs[: min(n, m)]
        assert len({pair.content for pair in first}) == len({p.style for p in first}) == len(first)

    def test_samples_are_enough_for_the_paper(self) -> None:
        pairs = sample_pairs()
        assert len(pairs) >= 12
        assert len({pair.content.name for pair in pairs[:7]}) >= 6

    def test_name_tells_the_pixels_and_not_the_place(self, plan: Plan) -> None:
        order = Order(pair=plan.pairs[0], recipe=plan.recipe())
        moved = replace(order.pair, content=replace(order.pair.content, path="/elsewhere.png"))
        other = replace(order.pair, content=replace(order.pair.content, sha256="0"))
        assert Order(pair=moved, recipe=order.recipe).name == order.name
        assert Order(pair=other, recipe=order.recipe).name != order.name
        assert Order(pair=order.pair, recipe=order.recipe.but(seed=1)).name != order.name

    def test_systems_are_methods_or_said_to_be_missing(self) -> None:
        from impasto.experiments.plan import extensions, missing, systems

        assert {*systems(), *missing()} == set(SYSTEMS)
        assert {*systems().values(), *extensions()} == set(EVERY_METHOD)

    def test_paper_procedure_is_the_preset(self, plan: Plan) -> None:
        recipe = plan.recipe("paper")
        assert (recipe.optimizer, recipe.learning_rate, recipe.alpha) == ("adam", 0.0225, 0.0)
        assert recipe.steps == plan.paper_steps

    def test_unknown_experiment_is_named(self) -> None:
        with pytest.raises(ImpastoError, match=r"'toys'.*known: toy"):
            chosen("toys")
        assert chosen("") == list(EXPERIMENTS)
        assert chosen("votes, toy") == ["toy", "votes"]


class TestDistances:
    """Measures on the features of real pictures and on samples with a known answer."""

    def test_zero_on_itself(self, encoder: Any, painting: torch.Tensor) -> None:
        features = distances.features_of(encoder, painting)
        assert max(distances.sliced(features, features).values()) == 0
        assert max(map(max, distances.moment_errors(features, features).values())) == 0
        assert max(distances.correlation_errors(features, features).values()) == 0

    def test_classifier_cannot_tell_a_picture_from_itself(
        self, encoder: Any, painting: torch.Tensor
    ) -> None:
        features = distances.features_of(encoder, painting)
        assert set(distances.classifier_errors(features, features).values()) == {0.5}

    def test_classifier_knows_what_can_be_known(self) -> None:
        generator = torch.Generator().manual_seed(0)
        normal = [torch.randn(2000, 8, generator=generator) for _ in range(4)]
        shift = torch.tensor([2.0] + [0.0] * 7)
        known, asked = (normal[0], normal[1] + shift), (normal[2], normal[3] + shift)
        best = scipy.stats.norm.cdf(-1)  # no rule is better than the middle between the means
        assert best - 0.02 < distances.classifier_error(known, asked) < best + 0.06
        assert distances.classifier_error((normal[0], normal[1]), (normal[2], normal[3])) > 0.44

    def test_classifier_sees_more_than_means(self) -> None:
        generator = torch.Generator().manual_seed(0)
        normal = [torch.randn(2000, 4, generator=generator) for _ in range(4)]
        wide = [each * torch.tensor([3.0, 3.0, 3.0, 3.0]) for each in normal[2:]]
        assert distances.classifier_error((normal[0], wide[0]), (normal[1], wide[1])) < 0.2

    def test_moment_errors_are_those_of_scipy(
        self, encoder: Any, painting: torch.Tensor, photo: torch.Tensor
    ) -> None:
        ours, theirs = (distances.features_of(encoder, one) for one in (photo, painting))
        found = distances.moment_errors(ours, theirs)["conv2_1"]
        points = [
            side["conv2_1"][0].flatten(1).double().sigmoid().numpy() for side in (ours, theirs)
        ]
        assert found[0] == pytest.approx(
            float(np.linalg.norm(points[0].mean(1) - points[1].mean(1))), rel=1e-4
        )
        for order in range(2, 9):
            moments = [scipy.stats.moment(side, order, axis=1) for side in points]
            wanted = float(np.linalg.norm(moments[0] - moments[1]))
            assert found[order - 1] == pytest.approx(wanted, rel=1e-3)


class Sources(HTMLParser):
    """Everything that a page asks for, its ids and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = {name: value or "" for name, value in attrs}
        self.loaded += [told["src"]] if "src" in told else []
        self.links += [told["href"]] if "href" in told else []
        self.ids |= {told["id"]} if "id" in told else set()
        assert tag not in ("link", "script", "iframe")
        assert tag != "img" or told["alt"]

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


class TestAblation:
    """The triangle of figure 4."""

    def test_weights_are_those_of_the_text(self) -> None:
        assert ablation.weights(2, 2) == (0, 1, 0, 0, 0)
        assert ablation.weights(2, 4) == (0, 1, 1, 1, 0)
        assert len(set(ablation.CELLS)) == 15

    def test_changes_tell_one_from_another(self, photo: torch.Tensor) -> None:
        photo = 0.2 + 0.5 * photo
        assert set(ablation.changes(photo, photo).values()) == {0.0}
        lighter = ablation.changes(photo + 0.1, photo)
        assert lighter["brightness"] > 0.1
        assert max(lighter[kind] for kind in ("contrast", "color")) < 1e-4
        luma = torch.einsum("chw,c->hw", photo, torch.tensor(ablation.LUMA))
        gray = ablation.changes(luma.expand(3, -1, -1), photo)
        assert gray["color"] > 0.1
        assert max(value for kind, value in gray.items() if kind != "color") < 1e-4


class TestConvergence:
    """The stop rule, looked at from outside."""

    @given(st.lists(st.floats(0.001, 10), min_size=2, max_size=40))
    def test_rule_fires_where_the_gap_closes(self, styles: list[float]) -> None:
        closed = [
            step for step, gap in enumerate(convergence.gaps(styles)) if gap <= PAPER_DIFFERENCE
        ]
        fired = convergence.first(is_settled, styles)
        assert fired == min((step for step in closed if step), default=None)

    def test_a_rule_that_never_fires(self) -> None:
        assert convergence.first(lambda losses: False, [1.0, 2.0]) is None


class TestAlignment:
    """Scores, intervals, verdicts."""

    def test_content_is_one_and_style_is_zero(
        self, encoder: Any, painting: torch.Tensor, photo: torch.Tensor
    ) -> None:
        style, content = (distances.features_of(encoder, one) for one in (painting, photo))
        before = alignment.measured(content, style)
        same = alignment.scores(before, before)
        assert same.pop("classifier") > 0.2
        assert list(same.values()) == pytest.approx([1.0] * len(same))
        there = alignment.scores(alignment.measured(style, style), before)
        assert max(there.values()) < 1e-6

    @given(st.lists(st.floats(-5, 5), min_size=2, max_size=20))
    def test_interval_holds_the_mean(self, values: list[float]) -> None:
        told = alignment.summary(values)
        assert told.mean == pytest.approx(np.mean(values), abs=1e-12)
        assert min(values) - 1e-9 <= told.interval.low <= told.mean + 1e-9
        assert told.mean - 1e-9 <= told.interval.high <= max(values) + 1e-9

    def test_interval_is_that_of_scipy(self) -> None:
        values = np.random.default_rng(1).gamma(2, size=12)
        other = scipy.stats.bootstrap((values,), np.mean, method="percentile", rng=3)
        found = alignment.summary(values.tolist()).interval
        assert found == pytest.approx(tuple(other.confidence_interval), rel=0.05)

    def test_verdict_tells_clear_leads_only(self) -> None:
        found = {
            "cmd": {"x": [0.2, 0.3, 0.25]},
            "gram": {"x": [0.6, 0.6, 0.7]},
            "mm": {"x": [0.1, 0.5, 0.2]},
            "wct": {"x": [0.1, 0.1, 0.1]},
        }
        text, wins = alignment.verdict(found, "x", ["gram", "mm", "wct"])
        assert "less than Gatys (0.63)" in text
        assert "more than WCT (0.10)" in text
        assert "MM" not in text
        assert not wins
        assert alignment.verdict(found, "x", ["gram"])[1]

    def test_better_ones_are_told(self) -> None:
        equal = {name: [0.3, 0.2, 0.25] for name in alignment.SCORES}
        found = {"cmd": equal, "swd": {**equal, "correlations": [0.1, 0.1, 0.1]}, "mmd": equal}
        assert alignment.better_ones(found).endswith("than CMD: swd by correlations. ")
        assert not alignment.better_ones({"cmd": equal, "mmd": equal})


class TestVotes:
    """The paper's table, checked by another library."""

    def test_numbers_are_those_of_scipy(self, plan: Plan, tmp_path: Path) -> None:
        data = finished("votes", plan, tmp_path)
        leads = {each["over"]: each for each in data["leads"]}
        assert data["total"] == 2704
        assert leads["Gatys"]["lead"] == pytest.approx(54 / 2704)
        assert leads["Gatys"]["p"] == pytest.approx(scipy.stats.binomtest(587, 1120).pvalue)
        counts = list(votes.VOTES.values())
        assert data["equal"] == pytest.approx(scipy.stats.chisquare(counts).pvalue, rel=1e-6)
        assert "54 votes" in votes.caption(data).seen
        assert "not of Gatys and OST" in votes.caption(data).seen


class TestInspection:
    """One picture in the light of feature distributions."""

    def test_described_is_what_scipy_says(self) -> None:
        generator = torch.Generator().manual_seed(0)
        before, target = (torch.randn(500, 3, generator=generator) + k for k in (0, 1))
        data = inspection.described({"before": before, "after": target, "target": target})
        assert data["residuals"]["after"] == [0.0] * inspection.MOMENTS
        moments = [
            scipy.stats.moment(side.double().sigmoid().numpy(), 3, axis=0)
            for side in (before, target)
        ]
        wanted = float(np.linalg.norm(moments[0] - moments[1]))
        assert data["residuals"]["before"][2] == pytest.approx(wanted, rel=1e-3)
        for histogram in data["histograms"].values():
            assert sum(histogram) / len(histogram) == pytest.approx(1)  # a density on [0, 1]
        shift = (before.sigmoid().mean(0) - target.sigmoid().mean(0)).abs()
        assert data["channel"]["index"] == int(shift.argmax())

    def test_transparent_parts_do_not_count(self, files: dict[str, str]) -> None:
        picture = PIL.Image.open(files["content"]).convert("RGBA")
        spoiled = picture.copy()
        spoiled.paste((255, 0, 0, 0), (0, 0, picture.width // 2, picture.height))
        whole, half = (
            inspection.inspect(each, each, files["style"]) for each in (picture, spoiled)
        )
        assert whole["layers"]["conv1_1"]["histograms"] != half["layers"]["conv1_1"]["histograms"]
        for each in half["layers"].values():
            assert each["residuals"]["before"] == each["residuals"]["after"]

    def test_command_draws_and_tells(self, files: dict[str, str], tmp_path: Path) -> None:
        figure, numbers = tmp_path / "f.svg", tmp_path / "f.json"
        sources = ("--content", files["content"], "--style", files["style"])
        done = impasto("inspect", files["style"], *sources, "-o", figure, "--json", numbers)
        assert (done.returncode, done.stderr) == (0, "")
        assert "conv1_1 0%" in done.stdout  # the style itself is aligned with the style
        ElementTree.parse(figure)
        assert set(json.loads(numbers.read_bytes())["layers"]) == set(inspection.LAYERS)

    def test_wrong_words_are_told_in_a_line(
        self, files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        sources = [files["content"], "--content", files["content"], "--style", files["style"]]
        out, same = str(tmp_path / "out.png"), files["content"]
        for words, told in {
            ("-o", str(tmp_path / "out.gif")): "must end in .png or .svg",
            ("-o", same): "is used twice",
            ("-o", out, "--json", out): "is used twice",
            ("-o", str(tmp_path / "no" / "out.png")): "does not exist",
            ("-o", out, "--size", "8"): "must be between 32",
        }.items():
            assert main(["inspect", *sources, *words]) == 1
            assert told in capsys.readouterr().err
        assert not list(tmp_path.iterdir())


class TestReport:
    """One page with everything in it."""

    def test_foreign_words_stay_words(self) -> None:
        section = report.Section(
            name="toy",
            title="<b>&",
            caption=figures_caption('"><script>'),
            rows=[{"<i>": 1.23456, "b": None}],
            figure=figures_png(),
            made="<u>",
        )
        page = Sources(report.page([section], about={"<s>": "&"}))
        assert {"<i>", "1.235", "–"} <= set(page.texts)
        assert any('"><script>' in text for text in page.texts)

    @pytest.mark.parametrize("words", [["a"], ["a", "b"], ["a", "b", "c"]])
    def test_lists_read_as_sentences(self, words: list[str]) -> None:
        assert listed(words) == {1: "a", 2: "a and b", 3: "a, b and c"}[len(words)]


def figures_caption(text: str) -> Any:
    from impasto.experiments import Caption

    return Caption(paper=text, seen=text, differs=text)


def figures_png() -> bytes:
    with figures.look():
        return figures.rendered(figures.blank(1, 1))[".png"]


class TestRuns:
    """Real runs with the real network."""

    def test_all_experiments_share_their_pictures(self, everything: Path, plan: Plan) -> None:
        check_folder(everything, list(EXPERIMENTS))
        wanted = [order.name for name in EXPERIMENTS for order in experiment(name).orders(plan)]
        made = {path.stem for path in (everything / "pictures").glob("*.png")}
        assert made == set(wanted)
        assert len(made) < len(wanted)
        assert list(Reproduction(plan=plan, folder=everything).run(list(EXPERIMENTS))) == []

    def test_a_figure_is_drawn_again_without_measuring(self, everything: Path, plan: Plan) -> None:
        figure = everything / "convergence.svg"
        before = figure.read_bytes()
        figure.unlink()
        assert list(Reproduction(plan=plan, folder=everything).run(["convergence"])) == []
        assert figure.read_bytes() == before

    def test_captions_are_computed(self, everything: Path) -> None:
        """A caption that stayed the same whatever was measured would be written by hand."""
        for name in EXPERIMENTS:
            data = json.loads((everything / f"{name}.json").read_bytes())["data"]
            module = experiment(name)
            other = module.caption(spoiled(data))
            assert module.caption(data).seen != other.seen
            assert module.caption(data).paper == other.paper or name == "votes"

    def test_ratios_are_to_gatys(self, everything: Path) -> None:
        table = list(csv.DictReader((everything / "runtime.csv").read_text().splitlines()))
        ratios = {row["method"]: float(row["ratio to Gatys"]) for row in table}
        assert ratios["Gatys"] == 1
        assert len(ratios) == len(EVERY_METHOD)

    def test_an_interrupted_run_goes_on(self, plan: Plan, tmp_path: Path) -> None:
        run = Reproduction(plan=plan, folder=tmp_path).run(["strength"])
        pictures = tmp_path / "pictures"
        while len(list(pictures.glob("*.png"))) < 2:
            next(run)
        run.close()
        before = {path: path.stat().st_mtime_ns for path in pictures.glob("*.png")}
        assert not (tmp_path / REPORT).exists()
        finished("strength", plan, tmp_path)
        assert all(path.stat().st_mtime_ns == time for path, time in before.items())
        assert len(list(pictures.glob("*.png"))) == len(experiment("strength").orders(plan))
        assert not list(tmp_path.rglob("*.tmp"))

    def test_a_picture_that_is_broken_is_painted_again(self, plan: Plan, tmp_path: Path) -> None:
        made = Reproduction(plan=plan, folder=tmp_path)
        order = experiment("comparison").orders(plan)[0]
        made.gallery.folder.mkdir()
        made.gallery.path(order).write_bytes(b"half a pict")
        assert not made.gallery.has(order)
        list(made.gallery.paint(order))
        assert made.gallery.has(order)

    def test_a_picture_of_another_version_is_painted_again(
        self, plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made = Reproduction(plan=plan, folder=tmp_path)
        order = experiment("comparison").orders(plan)[0]
        made.gallery.folder.mkdir()
        list(made.gallery.paint(order))
        monkeypatch.setattr("impasto.__version__", "0.0.1")
        assert not made.gallery.has(order)

    def test_command_makes_a_report_and_then_nothing(
        self, folders: dict[str, str], tmp_path: Path
    ) -> None:
        words = (
            "paper",
            "-o",
            tmp_path / "out",
            "--only",
            "votes,strength",
            "--size",
            64,
            "--steps",
            1,
        )
        words += ("--contents", folders["content"], "--styles", folders["style"])
        first = impasto(*words)
        assert (first.returncode, first.stdout.strip()) == (
            0,
            f"the report is {tmp_path / 'out' / REPORT}",
        )
        check_folder(tmp_path / "out", ["strength", "votes"])
        before = state(tmp_path)
        assert impasto(*words).returncode == 0
        assert state(tmp_path) == before

    def test_wrong_words_are_told_in_a_line(
        self, folders: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        taken, broken = tmp_path / "file", tmp_path / "broken"
        taken.write_text("")
        broken.mkdir()
        (broken / "half.png").write_bytes(b"\x89PNG half a picture")
        cases = {
            ("-o", str(tmp_path), "--only", "nothing"): "unknown experiment 'nothing'",
            ("-o", str(tmp_path), "--contents", folders["content"]): "come together",
            ("-o", str(tmp_path), "--size", "8"): "size is 8",
            ("-o", str(taken)): "cannot be a folder",
            ("-o", str(tmp_path), "--contents", str(taken), "--styles", str(taken)): "not a folder",
            ("-o", str(tmp_path / "a"), "--contents", str(broken), "--styles", str(broken)): "half",
            ("-o", str(tmp_path), "--contents", str(tmp_path), "--styles", str(broken)): "holds no",
        }
        for words, told in cases.items():
            assert main(["paper", *words]) == 1
            assert told in capsys.readouterr().err


def spoiled(data: Any) -> Any:
    """The same data with every number squared that was measured."""
    if isinstance(data, dict):
        given = ("rate", "alpha")
        return {key: value if key in given else spoiled(value) for key, value in data.items()}
    if isinstance(data, list):
        return [spoiled(value) for value in data]
    return data * data if isinstance(data, float) else data


def state(folder: Path) -> dict[Path, tuple[int, bytes]]:
    return {
        path: (path.stat().st_mtime_ns, path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    }


def check_folder(folder: Path, names: list[str]) -> None:
    """All files of a run are there, whole, and the page needs no other."""
    for name in names:
        json.loads((folder / f"{name}.json").read_bytes())
        table = list(csv.DictReader((folder / f"{name}.csv").read_text().splitlines()))
        assert table
        assert all(None not in row and None not in row.values() for row in table)
        with PIL.Image.open(folder / f"{name}.png") as image:
            assert min(image.size) > 200
        ElementTree.parse(folder / f"{name}.svg")
    page = Sources((folder / REPORT).read_text())
    assert len(page.loaded) == len(names)
    assert all(source.startswith("data:image/webp;base64,") for source in page.loaded)
    for link in page.links:
        assert link[1:] in page.ids if link.startswith("#") else (folder / link).exists()
