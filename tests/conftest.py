"""Real pictures, small, and the real network."""

import os
import signal

from impasto import process

process.tune()  # as the command line does, before torch is loaded
# A job in the background of a shell ignores Ctrl-C, and so would all that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

import numpy as np
import pytest
import torch
from hypothesis import settings

from impasto import imagefile
from impasto.maths.raster import fit
from impasto.networks import checkpoints, vgg
from impasto.samples import locate
from impasto.types import Picture

# The same examples at every run: a failure is about the change at hand. No deadlines: the machine
# may be busy. HYPOTHESIS_PROFILE=explore looks further.
settings.register_profile("default", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def sample(name: str, side: int) -> torch.Tensor:
    """A sample picture (3, H, W) with its long side as wanted."""
    return fit(torch.from_numpy(imagefile.read(locate(name)).rgb).permute(2, 0, 1), side)


def picture(image: torch.Tensor, alpha: np.ndarray | None = None) -> Picture:
    """An image as it would be read from a file."""
    return Picture(np.ascontiguousarray(image.permute(1, 2, 0).numpy()), alpha)


@pytest.fixture(scope="session")
def encoder() -> vgg.Encoder:
    """The embedded VGG-19."""
    return vgg.build(checkpoints.load())


@pytest.fixture(scope="session")
def photo() -> torch.Tensor:
    """A photo of 64 × 43 pixels."""
    return sample("coffee", 64)


@pytest.fixture(scope="session")
def painting() -> torch.Tensor:
    """A painting of 64 × 51 pixels."""
    return sample("cypresses", 64)


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The same as files: content and style."""
    folder = tmp_path_factory.mktemp("pictures")
    paths = {}
    for name, picture in {"content": "coffee", "style": "cypresses"}.items():
        paths[name] = str(folder / f"{name}.png")
        imagefile.write(paths[name], sample(picture, 96).permute(1, 2, 0).numpy())
    return paths
