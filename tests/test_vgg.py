"""The encoder against a plain VGG-19 that shares no code with it, and its convolution."""

import shutil

import pytest
import torch
import torch.nn.functional as F

from impasto import native
from impasto.evaluation import saturation
from impasto.maths.raster import is_interleaved, laid
from impasto.networks import checkpoints, colors, convolution, pooling, vgg, winograd
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
    seen = set()

    def counted(function):
        return lambda layer, *inputs, **rest: seen.add(layer) or function(layer, *inputs, **rest)

    for name in ("__call__", "halved"):
        monkeypatch.setattr(convolution.Frozen, name, counted(getattr(convolution.Frozen, name)))
    encoder(photo, taps)
    deepest = max((list(CHANNELS).index(tap.replace("relu", "conv")) for tap in taps), default=-1)
    assert seen == {layer for _, layer in encoder.layers[: deepest + 1]}


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


@pytest.mark.parametrize(
    "shape",
    [
        (3, 64, 50, 41),
        (64, 64, 40, 40),
        (64, 128, 47, 90),
        (256, 264, 12, 12),
        (260, 256, 17, 38),
        (256, 256, 11, 13),
        (256, 256, 9, 9),
    ],
)
@pytest.mark.parametrize("interleaved", [True, False])
@pytest.mark.parametrize("native", [True, False])
def test_convolution_and_its_gradient(shape, native, interleaved, monkeypatch):
    if not native:
        monkeypatch.setattr(convolution, "winograd", lambda: None)
    incoming, outgoing, height, width = shape
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(1, incoming, height, width, generator=generator, requires_grad=True)
    kernel = torch.randn(outgoing, incoming, 3, 3, generator=generator) * 0.1
    bias = torch.randn(outgoing, generator=generator)
    wanted = torch.randn(1, outgoing, height, width, generator=generator)
    layer = convolution.Frozen(laid(kernel, interleaved), bias)
    y = layer(laid(x.detach(), interleaved))
    gradient = layer.back(laid(wanted, interleaved))
    expected = F.conv2d(x, kernel, bias, padding=1)
    (other,) = torch.autograd.grad(expected, x, wanted)
    for ours, theirs in ((y, expected), (gradient, other)):
        assert (ours - theirs).norm() < 1e-4 * theirs.norm()


@pytest.mark.parametrize("native", [True, False])
def test_the_convolution_of_what_is_rectified_by_bands(native, monkeypatch):
    monkeypatch.setattr(convolution, "LARGEST_BAND", 13 * 500)  # a dozen rows at a time
    monkeypatch.setattr(convolution, "FEWEST_ROWS", 6)
    if not native:
        monkeypatch.setattr(convolution, "winograd", lambda: None)
    generator = torch.Generator().manual_seed(4)
    x = torch.randn(1, 8, 50, 41, generator=generator)
    kernel = torch.randn(5, 8, 3, 3, generator=generator)
    bias = torch.randn(5, generator=generator)
    before = x.clone()
    found = convolution.Frozen(kernel, bias)(x, rectify=True)
    expected = F.conv2d(x.clamp_min(0), kernel, bias, padding=1)
    assert (found - expected).norm() < 1e-4 * expected.norm()
    assert torch.equal(x, before)


@pytest.mark.parametrize("size", [(50, 41), (49, 40), (53, 44), (8, 6)])
@pytest.mark.parametrize("rectify", [True, False])
@pytest.mark.parametrize("interleaved", [True, False])
def test_halved_by_bands_is_the_same_there_and_back(size, rectify, interleaved, monkeypatch):
    generator = torch.Generator().manual_seed(5)
    x = laid(torch.randn(1, 8, *size, generator=generator), interleaved)
    kernel = laid(torch.randn(5, 8, 3, 3, generator=generator), interleaved)
    layer = convolution.Frozen(kernel, torch.randn(5, generator=generator))
    expected, choice = pooling.halve(layer(x, rectify=rectify))
    wanted = torch.randn(expected.shape, generator=generator)
    slope = layer.back(pooling.halve_back(wanted, choice))
    monkeypatch.setattr(convolution, "LARGEST_BAND", 13 * 500)  # a dozen rows at a time
    monkeypatch.setattr(convolution, "FEWEST_ROWS", 6)
    found, found_choice = layer.halved(x, rectify=rectify)
    assert found_choice.size == choice.size
    for ours, theirs in ((found, expected), (layer.back(wanted, choice), slope)):
        assert (ours - theirs).norm() < 1e-4 * theirs.norm()
    # Where two are nearly equal, rounding may choose the other.
    assert (found_choice.which != choice.which).float().mean() < 0.01


@pytest.mark.parametrize("height", [36, 37, 38])
def test_bands_are_joined_as_they_lie(height, monkeypatch):
    monkeypatch.setattr(convolution, "LARGEST_BAND", 384 * 22 * 12)
    monkeypatch.setattr(convolution, "FEWEST_ROWS", 12)
    generator = torch.Generator().manual_seed(9)
    kernel = laid(torch.randn(256, 128, 3, 3, generator=generator), True)
    layer = convolution.Frozen(kernel, torch.randn(256, generator=generator))
    x = laid(torch.randn(1, 128, height, 22, generator=generator), True)
    halved, choice = layer.halved(x)
    assert halved.shape == (1, 256, height // 2, 11)
    assert choice.size == (height, 22)
    assert all(is_interleaved(each) for each in (halved, choice.which))
    assert torch.allclose(pooling.halve(layer(x))[0], halved, atol=1e-4)


@pytest.mark.parametrize("rows", [(0, 9), (0, 4), (3, 8), (4, 9), (8, 9), (5, 6)])
def test_some_rows_of_the_way_back_from_halving(rows):
    generator = torch.Generator().manual_seed(6)
    halved, choice = pooling.halve(torch.randn(1, 3, 9, 7, generator=generator))
    whole = pooling.halve_back(halved, choice)
    assert whole.shape == (1, 3, 9, 7)
    part = pooling.halve_back(halved, choice, rows)
    assert torch.equal(part, whole[:, :, slice(*rows)])


def test_bands_of_a_large_map_are_of_about_the_same_height(monkeypatch):
    seen = []
    monkeypatch.setattr(convolution, "LARGEST_BAND", 16 * 50 * 40 // 2)
    monkeypatch.setattr(convolution, "FEWEST_ROWS", 6)
    native = convolution.winograd()
    if native is None:
        pytest.skip("this build of torch has no NNPACK")

    def counting(x, *rest):
        seen.append(x.shape[2])
        return native(x, *rest)

    monkeypatch.setattr(convolution, "winograd", lambda: counting)
    convolution.Frozen(torch.randn(8, 8, 3, 3), torch.zeros(8))(torch.randn(1, 8, 50, 40))
    assert seen == [32, 22]  # of 30 and 20 rows, and two beyond


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
    y = convolution.Frozen(kernel, bias)(x)
    assert torch.equal(y, F.conv2d(x, kernel, bias, padding=1))


@pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang")))
    or torch.backends.cpu.get_cpu_capability() not in native.KINDS,
    reason="there is no compiler here, or there are no loops for such a processor",
)
def test_where_there_is_a_compiler_the_loops_are_compiled_and_right():
    """Without this, a build that fails would pass: the tests of the loops would be left out."""
    assert native.library() is not None
    assert winograd.available()
    assert colors.suits(checkpoints.load().kernels["conv1_1"][0])


compiled = pytest.mark.skipif(native.library() is None, reason="nothing was compiled")


@compiled
@pytest.mark.parametrize("size", [(1, 1), (3, 2), (4, 4), (6, 7), (13, 5), (50, 41)])
@pytest.mark.parametrize("channels", [(64, 64), (64, 128), (512, 256), (256, 512)])
def test_loops_are_a_convolution_and_its_transpose(size, channels):
    generator = torch.Generator().manual_seed(2)
    incoming, outgoing = channels
    x = torch.randn(1, incoming, *size, generator=generator, requires_grad=True)
    kernel = torch.randn(outgoing, incoming, 3, 3, generator=generator)
    wanted = torch.randn(1, outgoing, *size, generator=generator)
    bias = torch.randn(outgoing, generator=generator)
    transformed = winograd.Kernel.of(kernel)
    for rectify in (False, True):
        seen = x.clamp_min(0) if rectify else x
        expected = F.conv2d(seen.double(), kernel.double(), bias.double(), padding=1)
        (slope,) = torch.autograd.grad(expected, x, wanted.double())
        sign = x.detach() if rectify else None
        there = transformed.convolve(x.detach(), bias, rectify=rectify)
        assert (there - expected).norm() < 3e-5 * expected.norm()
        for kind in (sign, None if sign is None else sign > 0):  # numbers or bools
            back = transformed.back(wanted, kind)
            assert is_interleaved(back) or back.shape[1:] == (1, 1, 1)
            assert (back - slope).norm() < 3e-5 * slope.norm() + 1e-12
    if size[0] > 2:  # the rows from the third on
        below = transformed.convolve(x.detach()[:, :, 1:], bias, edges=(0, 1))
        plain = F.conv2d(x, kernel, bias, padding=1)
        assert (below - plain[:, :, 2:]).norm() < 3e-5 * plain.norm()


@compiled
def test_as_many_threads_as_there_are_make_the_same_numbers():
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(1, 64, 70, 90, generator=generator)
    kernel = winograd.Kernel.of(torch.randn(64, 64, 3, 3, generator=generator))
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            found.append((kernel.convolve(x, None), *pooling.halve(laid(x, True))))
    finally:
        torch.set_num_threads(before)
    for each in found[1:]:
        assert torch.equal(each[0], found[0][0])
        assert torch.equal(each[1], found[0][1])
        assert torch.equal(each[2].which, found[0][2].which)


@compiled
def test_loops_that_compute_the_wrong_thing_are_left_alone(monkeypatch):
    def wrong(self, x, *rest, **named):
        return torch.zeros_like(x)

    winograd.available.cache_clear()
    try:
        monkeypatch.setattr(winograd.Kernel, "back", wrong)
        assert not winograd.available()
        winograd.available.cache_clear()
        monkeypatch.setattr(native, "library", lambda: None)
        assert not winograd.available()
    finally:
        winograd.available.cache_clear()


@compiled
def test_loops_of_other_sources_are_left_alone(monkeypatch):
    """Compiled before the jobs were what they are now, they would write anywhere."""
    native.library.cache_clear()
    try:
        monkeypatch.setattr(native, "LAYOUT", native.LAYOUT + 1)
        assert native.library() is None
    finally:
        native.library.cache_clear()


@compiled
def test_loops_hide_no_nan():
    x = torch.randn(1, 64, 9, 9)
    x[0, 3, 4, 4] = torch.nan
    kernel = winograd.Kernel.of(torch.randn(64, 64, 3, 3))
    assert kernel.convolve(x, None, rectify=True)[0, :, 4, 4].isnan().all()


@compiled
def test_no_memory_to_work_in_is_an_error():
    job = pooling._Job()
    with pytest.raises(MemoryError, match="--memory"):
        native.run(lambda *_: 1, job)


@compiled
@pytest.mark.parametrize("size", [(8, 6), (9, 7), (1, 5), (50, 41)])
def test_halving_by_loops_is_that_of_torch(size):
    x = torch.randn(1, 32, *size, generator=torch.Generator().manual_seed(8))
    x[:, :16] = x[:, :16].round()  # with equal ones
    x[:, 16:] = torch.randperm(x[:, 16:].numel()).view(x[:, 16:].shape) / 100  # without
    halved, choice = pooling.halve(laid(x, True))
    expected, other = pooling.halve(x)
    assert torch.equal(halved, expected)
    assert torch.equal(choice.which, other.which)
    back = pooling.halve_back(laid(expected, True), choice)
    assert torch.equal(back, pooling.halve_back(expected, other))
    if min(size) > 1:
        leaf = x.clone().requires_grad_()
        F.max_pool2d(leaf, 2).backward(expected)
        assert torch.equal(back[:, 16:], leaf.grad[:, 16:])  # of equal ones it may take another


@compiled
@pytest.mark.parametrize("size", [(1, 1), (2, 2), (3, 8), (9, 7), (37, 22), (50, 41)])
@pytest.mark.parametrize("channels", [(64, 128), (256, 512)])
def test_halved_on_the_way_is_halved_afterwards(size, channels):
    generator = torch.Generator().manual_seed(11)
    incoming, outgoing = channels
    kernel = winograd.Kernel.of(torch.randn(outgoing, incoming, 3, 3, generator=generator))
    x = laid(torch.randn(1, incoming, *size, generator=generator), True)
    bias = torch.randn(outgoing, generator=generator)
    expected, choice = pooling.halve(kernel.convolve(x, bias, rectify=True))
    halved, other = kernel.halved(x, bias, rectify=True)
    assert torch.equal(halved, expected)
    assert torch.equal(other.which, choice.which)
    assert other.size == size
    slope = laid(torch.randn(expected.shape, generator=generator), True)
    back = kernel.back(pooling.halve_back(slope, choice), x)
    assert torch.equal(kernel.back(slope, x, choice=choice), back)
    top = min(2, size[0] - 1) // 2 * 2
    part = kernel.back(slope, x[:, :, top:], choice=choice, rows=(top, size[0]))
    assert (part - back[:, :, top:]).norm() <= 3e-5 * back.norm()


@compiled
def test_bands_of_loops_are_the_whole(monkeypatch):
    generator = torch.Generator().manual_seed(7)
    kernel = laid(torch.randn(256, 128, 3, 3, generator=generator), True)
    layer = convolution.Frozen(kernel, torch.randn(256, generator=generator))
    x = laid(torch.randn(1, 128, 37, 22, generator=generator), True)
    halved, choice = layer.halved(x, rectify=True)
    back = layer.back(halved, choice)
    monkeypatch.setattr(convolution, "LARGEST_BAND", 384 * 22 * 12)
    monkeypatch.setattr(convolution, "FEWEST_ROWS", 12)
    parts = list(layer.bands_halved(convolution._rows_of(x, True)))
    assert len(parts) == 4
    assert torch.equal(pooling.join(parts)[0], halved)
    assert torch.equal(torch.cat(list(layer.bands_back(halved, choice)), 2), back)
    slope = layer(x, rectify=True)
    assert torch.equal(torch.cat(list(layer.bands_back(slope, None)), 2), layer.back(slope))


@pytest.mark.parametrize("size", [(1, 1), (2, 5), (20, 17), (40, 33)])
@pytest.mark.parametrize("interleaved", [True, False])
def test_the_gradient_in_an_image_from_bands(size, interleaved):
    generator = torch.Generator().manual_seed(12)
    kernel = torch.randn(64, 3, 3, 3, generator=generator)
    image = torch.randn(1, 3, *size, generator=generator, requires_grad=True)
    wanted = torch.randn(1, 64, *size, generator=generator)
    (slope,) = torch.autograd.grad(F.conv2d(image, kernel, padding=1), image, wanted)
    layer = convolution.Frozen(laid(kernel, interleaved), torch.zeros(64))
    bands = (laid(band, interleaved) for band in wanted.split(12, 2))
    assert (layer.to_few(bands, size) - slope).norm() < 1e-5 * slope.norm()


def test_the_encoder_is_the_same_however_its_maps_lie():
    image = sample("astronaut", 100)
    taps = ["conv1_1", "relu2_1", "conv4_1", "relu5_1"]
    checkpoint = checkpoints.load()
    found, slopes = [], []
    for interleaved in (True, False):
        network = vgg.build(checkpoint, interleaved=interleaved)
        leaf = image.clone().requires_grad_()
        maps = network(leaf, taps)
        assert all(is_interleaved(x) == interleaved for x in maps.values())
        found.append([x.detach() for x in maps.values()])
        slopes.append(torch.autograd.grad(sum(x.square().mean() for x in maps.values()), leaf)[0])
    for ours, theirs in zip(*found, strict=True):
        assert (ours - theirs).norm() < 1e-4 * theirs.norm()
    # Rounding may choose between nearly equal maxima, but hardly does.
    assert (slopes[0] - slopes[1]).norm() < 0.005 * slopes[0].norm()


@pytest.mark.parametrize("size", [(8, 8), (7, 10), (10, 7), (9, 9), (2, 2)])
def test_halving_is_the_maximum_and_its_way_back(size):
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(1, 4, *size, generator=generator, requires_grad=True)
    expected = F.max_pool2d(x, 2)
    wanted = torch.randn(expected.shape, generator=generator)
    (slope,) = torch.autograd.grad(expected, x, wanted)
    found, choice = pooling.halve(x.detach())
    assert torch.equal(found, expected)
    assert torch.equal(pooling.halve_back(wanted, choice), slope)


def test_of_equal_values_one_gets_the_gradient():
    found, choice = pooling.halve(torch.ones(1, 1, 4, 4))
    back = pooling.halve_back(torch.ones_like(found), choice)
    assert back.sum() == 4
    assert set(back.unique().tolist()) == {0.0, 1.0}


def test_what_is_halved_is_not_rectified_before(encoder, photo, monkeypatch):
    """Positions that are 0 because they do not count would be nearly equal to small maxima."""
    seen = []
    monkeypatch.setattr(vgg, "halve", lambda x: seen.append(x.min()) or pooling.halve(x))
    taps = encoder(photo, ["relu1_2", "conv2_1"])
    assert len(seen) == 1
    assert seen[0] < 0
    assert taps["relu1_2"].min() == 0


def test_of_nearly_equal_values_the_first_gets_the_gradient():
    """Rounding is another in a block than in the whole; in double precision there is hardly any."""
    x = torch.tensor([[1.0, 1.0 + 1e-6], [1.0 - 1e-6, 0.5]])[None, None]
    for form in (x, x.expand(1, 64, 2, 2).contiguous(memory_format=torch.channels_last)):
        most, choice = pooling.halve(form)
        assert (most == x.max()).all()
        assert (choice.which == 0).all()
    assert pooling.halve(x.double())[1].which == 1


@pytest.mark.parametrize(
    "taps",
    [
        ["conv1_1", "conv2_1", "conv3_1", "conv4_1", "conv5_1"],
        ["relu1_1", "relu2_1", "relu3_1"],
        ["conv1_2", "relu1_2", "conv2_1", "relu2_1"],
        ["relu2_2"],
    ],
)
def test_the_way_back_is_that_of_autograd(taps):
    """In double precision, on a network of small width and random kernels."""
    generator = torch.Generator().manual_seed(4)
    widths = {name: 3 + index % 4 for index, name in enumerate(CHANNELS)}
    incoming, kernels = 3, {}
    for name, width in widths.items():
        kernel = torch.randn(width, incoming, 3, 3, generator=generator).double() * 0.5
        kernels[name] = (kernel, torch.randn(width, generator=generator).double())
        incoming = width
    checkpoint = checkpoints.Checkpoint(
        name="small", sha256="", kernels=kernels, mean=(0.4, 0.5, 0.6), std=(0.2, 0.3, 0.4)
    )
    small = vgg.build(checkpoint)
    image = torch.rand(3, 37, 50, generator=generator).double().requires_grad_()
    shape = {tap: x.shape for tap, x in plain(checkpoint, image.detach()).items()}
    weights = {tap: torch.randn(shape[tap], generator=generator).double() for tap in taps}

    def slope(features):
        return torch.autograd.grad(sum((features[tap] * weights[tap]).sum() for tap in taps), image)

    (ours,), (theirs,) = slope(small(image, taps)), slope(plain(checkpoint, image))
    assert torch.allclose(ours, theirs, rtol=1e-6, atol=1e-8 * theirs.abs().max().item())


def test_a_gradient_that_was_given_is_not_changed(encoder):
    image = torch.rand(3, 32, 32, generator=torch.Generator().manual_seed(5)).requires_grad_()
    taps = encoder(image, ["conv1_1", "relu1_1"])
    given = [torch.ones_like(x) for x in taps.values()]
    torch.autograd.grad(list(taps.values()), image, given)
    assert all(torch.equal(each, torch.ones_like(each)) for each in given)
