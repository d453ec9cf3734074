"""The encoder against a plain VGG-19 that shares no code with it, and its convolution."""

import pytest
import torch
import torch.nn.functional as F

from impasto.evaluation import saturation
from impasto.networks import checkpoints, convolution, vgg
from impasto.recipe import CHANNELS, LAYERS

from .conftest import sample


def plain(checkpoint, image):
    """All taps by the ordinary convolution, written down without cleverness."""
    x = (image - torch.tensor(checkpoint.mean)[:, None, None]) / torch.tensor(checkpoint.std)[
        :, None, None
    ]
    x, taps = x[None], {}
    for name, (kernel, bias) in checkpoint.kernels.items():
        if name in ("conv2_1", "conv3_1", "conv4_1", "conv5_1"):
            x = F.max_pool2d(x, 2)
        x = F.conv2d(x, kernel, bias, padding=1)
        taps[name] = x
        x = x.clamp_min(0)
        taps[name.replace("conv", "relu")] = x
    return taps


def test_every_tap_is_that_of_a_plain_network(encoder, photo):
    expected = plain(checkpoints.load(), photo)
    found = encoder(photo, LAYERS)
    assert set(found) == set(expected)
    for name, x in expected.items():
        assert torch.allclose(found[name], x, atol=1e-3 * x.abs().max().item()), name


@pytest.mark.parametrize("taps", [["conv1_1"], ["relu2_1"], ["conv1_1", "conv3_2"], []])
def test_nothing_is_computed_beyond_the_deepest_tap(encoder, photo, taps, monkeypatch):
    count = []
    monkeypatch.setattr(
        vgg, "convolve", lambda *inputs: count.append(1) or convolution.convolve(*inputs)
    )
    encoder(photo, taps)
    deepest = max((list(CHANNELS).index(tap.replace("relu", "conv")) for tap in taps), default=-1)
    assert len(count) == deepest + 1


def test_a_tap_is_not_changed_by_the_rectification_behind_it(encoder, photo):
    taps = encoder(photo, ["conv2_1", "relu2_1", "conv3_1"])
    assert taps["conv2_1"].min() < 0
    assert torch.equal(taps["conv2_1"].clamp_min(0), taps["relu2_1"])


@pytest.mark.parametrize("name", ["coffee", "chelsea", "cypresses", "jatte"])
def test_the_sigmoid_of_cmd_does_not_saturate(encoder, name):
    """The raw network has 80 to 99 % of its features beyond ±6; then CMD only counts signs."""
    shares = saturation(encoder, sample(name, 160))
    assert max(shares.values()) < 0.3, shares
    raw = checkpoints.Checkpoint(
        name="raw",
        sha256="",
        kernels=checkpoints.raw_oxford(),
        mean=checkpoints.OXFORD_MEAN,
        std=(1.0, 1.0, 1.0),
    )
    unscaled = saturation(vgg.build(raw), sample(name, 160))
    assert min(unscaled.values()) > 0.7, unscaled


def test_rescaling_changes_units_and_nothing_else(encoder, photo):
    raw = plain(
        checkpoints.Checkpoint(
            name="raw",
            sha256="",
            kernels=checkpoints.raw_oxford(),
            mean=checkpoints.OXFORD_MEAN,
            std=(1.0, 1.0, 1.0),
        ),
        photo,
    )
    scales = checkpoints.oxford_scales()
    for name, x in encoder(photo, ["conv1_1", "conv3_1", "conv5_1"]).items():
        back = x * scales[name][None, :, None, None]
        assert torch.allclose(back, raw[name], atol=2e-3 * raw[name].abs().max().item())


@pytest.mark.parametrize("shape", [(3, 64, 50, 41), (64, 64, 40, 40), (64, 128, 47, 90)])
@pytest.mark.parametrize("native", [True, False])
def test_convolution_and_its_gradient(shape, native, monkeypatch):
    if not native:
        monkeypatch.setattr(convolution, "winograd", lambda: None)
    incoming, outgoing, height, width = shape
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(1, incoming, height, width, generator=generator, requires_grad=True)
    kernel = torch.randn(outgoing, incoming, 3, 3, generator=generator) * 0.1
    bias = torch.randn(outgoing, generator=generator)
    wanted = torch.randn(1, outgoing, height, width, generator=generator)
    y = convolution.convolve(x, kernel, convolution.flip(kernel), bias)
    (gradient,) = torch.autograd.grad(y, x, wanted)
    expected = F.conv2d(x, kernel, bias, padding=1)
    (other,) = torch.autograd.grad(expected, x, wanted)
    for ours, theirs in ((y, expected), (gradient, other)):
        assert (ours - theirs).norm() < 1e-4 * theirs.norm()


def test_the_fast_route_is_left_alone_where_it_is_wrong_or_absent(monkeypatch):
    convolution.winograd.cache_clear()
    try:
        monkeypatch.setattr(
            torch, "_nnpack_spatial_convolution", lambda x, w, *rest: x.new_zeros(1, 5, 24, 19)
        )
        assert convolution.winograd() is None
        convolution.winograd.cache_clear()
        monkeypatch.delattr(torch, "_nnpack_spatial_convolution")
        assert convolution.winograd() is None
    finally:
        convolution.winograd.cache_clear()


def test_double_precision_takes_the_ordinary_route():
    x = torch.randn(1, 4, 48, 48, dtype=torch.float64)
    kernel, bias = torch.randn(4, 4, 3, 3).double(), torch.zeros(4).double()
    y = convolution.convolve(x, kernel, convolution.flip(kernel), bias)
    assert torch.equal(y, F.conv2d(x, kernel, bias, padding=1))
