"""The main job: one picture's content in another's style, as steps."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial

import torch
from torch import Tensor

from impasto import blocks, blockwise, feedforward, heap, objective
from impasto.discrepancies.styles import style_of
from impasto.maths.linalg import flat
from impasto.maths.raster import resize, scaled
from impasto.maths.transport import transport_gaussian
from impasto.networks.decoder import Decoder
from impasto.networks.vgg import Encoder
from impasto.optimize import OPTIMIZERS, Evaluate, Stage, State, descend
from impasto.recipe import CHANNELS, FEED_FORWARD, Recipe, convolution
from impasto.types import UNKNOWN, Additive, Image, ImpastoError, Picture, Step

SMALLEST_SIDE = 32  # conv5_1 sees it as 2 × 2
SMALLEST_COARSE_SIDE = 64  # a coarser start than this has lost the content
# Bytes of the program with its network and, per pixel, of a look with its gradient, of a look at
# the style and of terms that look at the pixels themselves (from benchmarks/memory.py).
BASE_BYTES, LOOK_BYTES, STYLE_BYTES, SMOOTH_BYTES = 0.6e9, 2500.0, 1500.0, 120.0
COARSE = 512  # the long side to begin near, where nothing else was said
LARGEST_BLOCK = 1024  # beyond, halos cost little and memory much
IMAGES = 6  # that a feed-forward pass makes of a picture
IN_BLOCKS = 2.0  # what a step in blocks costs, in steps of the same picture as a whole
LEVELS = 255.0  # of 8 bits
ROWS = 1024  # of an image that are worked on at a time, where a whole one more is too many
NOISE = (2 / 255) ** 2  # variance that 8 bits and a sensor make: not to be stretched into color
RESERVE = 0.06  # of a budget is kept for what cannot be measured before: enlarging, saving


@dataclass(frozen=True, kw_only=True, eq=False)
class Original:
    """A picture as it was given; the image of it is made when asked for, and not kept."""

    pixels: Tensor  # (H, W, 3): floats, or their levels in 8 bits where these say the same
    size: tuple[int, int]  # of the image
    device: torch.device

    @property
    def image(self) -> Image:
        """The image on the device."""
        whole = self.pixels if self.pixels.is_floating_point() else self.pixels.float().div_(LEVELS)
        return resize(whole.permute(2, 0, 1), self.size).contiguous().to(self.device)


@dataclass(frozen=True, kw_only=True, eq=False)
class Scene:
    """The pictures of a job, at the size of the result where they are looked at."""

    recipe: Recipe
    encoder: Encoder
    content_picture: Original
    style_picture: Original
    visible: Tensor | None = None  # (H, W): opacity of the content
    visible_style: Tensor | None = None
    given: Original | None = None  # the start, where it is a picture
    memory: float = math.inf  # bytes to work in
    summarize: objective.Summarize = objective.summarize_style
    decoders: Mapping[int, Decoder] = field(default_factory=dict)  # by level, where one is needed

    @property
    def content(self) -> Image:
        """The content at the size of the result."""
        return self.content_picture.image

    @property
    def style(self) -> Image:
        """The style beside the content."""
        return self.style_picture.image

    @property
    def start(self) -> Image:
        """The image that the first step looks at."""
        if self.recipe.alpha == 1:
            return self.content  # it is the answer
        if self.given is not None:
            return self.given.image
        if self.recipe.start == "content":
            return self.content
        if self.recipe.start == "noise":
            generator = torch.Generator().manual_seed(self.recipe.seed)
            noise = torch.randn((3, *self.size), generator=generator) * 0.15 + 0.5
            return noise.clamp(0, 1).to(self.device)
        return recolor(self.content, self.style, self.visible, self.visible_style)

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of the result."""
        return self.content_picture.size

    @property
    def style_size(self) -> tuple[int, int]:
        """Height and width of the style beside it."""
        return self.style_picture.size

    @property
    def device(self) -> torch.device:
        """Where the network is."""
        return self.encoder.mean.device

    @property
    def in_blocks(self) -> bool:
        """Whether the result is too large to be looked at as a whole."""
        return self.side_at(self.size) is not None

    def style_size_at(self, size: tuple[int, int]) -> tuple[int, int]:
        """The size of the style beside a coarser content: shrunk as much."""
        height, width = self.style_size
        smallest = min(1.0, SMALLEST_SIDE / min(height, width))
        factor = max(max(size) / max(self.size), smallest)
        return max(1, round(height * factor)), max(1, round(width * factor))

    def side_at(self, size: tuple[int, int]) -> int | None:
        """The side of the blocks in which to look at a size; None where it fits as a whole."""
        per_pixel = feedforward.BYTES if self.recipe.passes else LOOK_BYTES
        left = self.memory * (1 - RESERVE) - BASE_BYTES - self.kept_at(size)
        return block_side(size, self.style_size_at(size), left, per_pixel)

    def kept_at(self, size: tuple[int, int]) -> float:
        """Bytes that stay where they are while an image of a size is looked at."""
        recipe, pixels = self.recipe, math.prod(size)
        pictures = sum(float(each.pixels.nbytes) for each in self._originals)
        if recipe.passes:
            return pictures + IMAGES * 12.0 * pixels
        layer = recipe.content_layer
        features = 4.0 * CHANNELS[convolution(layer)] / blocks.stride_of(layer) ** 2
        if recipe.tv or recipe.laplacian:
            features += SMOOTH_BYTES
        return pictures + features * pixels + OPTIMIZERS[recipe.optimizer].bytes(3 * pixels)

    @property
    def _originals(self) -> list[Original]:
        return [each for each in (self.content_picture, self.style_picture, self.given) if each]

    def enlarge(self, image: Image, size: tuple[int, int]) -> Image:
        """A coarse result at a finer size, with the detail of the start that it cannot hold."""
        if self.recipe.start == "noise":
            return resize(image, size)
        fine = resize(self.start, size)
        coarse = (image.shape[-2], image.shape[-1])
        detail = fine - resize(resize(fine, coarse), size)
        del fine
        return detail.add_(resize(image, size)).clamp_(0, 1)

    def passes(
        self, size: tuple[int, int], *, done: int = 0, image: Image | None = None
    ) -> Iterator[Image]:
        """The passes of a feed-forward method at a size, from an image on."""
        coarse = self.style_size_at(size)
        run = feedforward.Passes(
            recipe=self.recipe,
            encoder=self.encoder,
            decoders=self.decoders,
            style=resize(self.style, coarse),
            visible_style=_resized_mask(self.visible_style, coarse),
            side=self.side_at(size),
        )
        return run(
            resize(self.content if image is None else image, size),
            visible=_resized_mask(self.visible, size),
            done=done,
        )

    def objectives(self) -> Callable[[Stage], Evaluate]:
        """The objective of every stage; those of one size look at the pictures once."""
        built: dict[tuple[int, int], Evaluate] = {}

        def objective_of(stage: Stage) -> Evaluate:
            early = self.recipe.early if stage.shallow else None
            if early and self.side_at(stage.size) is not None:
                return self.objective_at(stage.size, early)
            if stage.size not in built:
                built.clear()  # there may be no room for both
                built[stage.size] = self.objective_at(stage.size)
            whole = built[stage.size]
            return whole.of(early) if early and isinstance(whole, objective.Objective) else whole

        return objective_of

    def objective_at(self, size: tuple[int, int], recipe: Recipe | None = None) -> Evaluate:
        """The objective at a coarser size, the style shrunk as much as the content."""
        recipe = recipe or self.recipe
        coarse = self.style_size_at(size)
        pictures = resize(self.content, size), resize(self.style, coarse)
        side = self.side_at(size)
        heap.trim()  # what the size before has left
        build: Callable[..., Evaluate] = partial(objective.build, summarize=self.summarize)
        if recipe.method in FEED_FORWARD:
            build = feedforward.build
        elif side is not None:
            build = partial(blockwise.build, side=side)
        built = build(
            recipe,
            self.encoder,
            *pictures,
            visible=_resized_mask(self.visible, size),
            visible_style=_resized_mask(self.visible_style, coarse),
        )
        heap.trim()  # what only the building needed
        return built


def block_side(
    size: tuple[int, int],
    style_size: tuple[int, int],
    memory: float,
    per_pixel: float = LOOK_BYTES,
) -> int | None:
    """The side of the blocks in which to look within a memory; None where all fits as a whole."""
    if max(math.prod(size) * per_pixel, math.prod(style_size) * STYLE_BYTES) <= memory:
        return None
    side = int(math.sqrt(max(0.0, memory) / per_pixel)) - 2 * blocks.halo_of(["conv5_1"])
    return min(max(blocks.SMALLEST_BLOCK, side), LARGEST_BLOCK)


def arrange(
    recipe: Recipe,
    encoder: Encoder,
    content: Picture,
    style: Picture,
    start: Picture | None = None,
    *,
    called: str = "content",
    memory: float = math.inf,
    summarize: objective.Summarize = objective.summarize_style,
    decoders: Mapping[int, Decoder] | None = None,
) -> Scene:
    """The scene of three pictures of any size."""
    device = encoder.mean.device
    size = _target(content, recipe.size, called)
    wanted = recipe.style_size or max(size)
    style_size = _target(style, wanted, "style")
    scene = Scene(
        recipe=recipe,
        encoder=encoder,
        content_picture=original(content, size, device),
        style_picture=original(style, style_size, device),
        visible=_mask(content, size, device),
        visible_style=_mask(style, style_size, device),
        given=None if start is None else original(start, size, device),
        memory=memory,
        summarize=summarize,
        decoders=decoders or {},
    )
    if recipe.start in FEED_FORWARD:
        coarse = _forward_start(scene).permute(1, 2, 0)
        scene = replace(scene, given=Original(pixels=coarse, size=size, device=device))
    if scene.in_blocks and not recipe.passes and not _is_additive(recipe):
        raise ImpastoError(
            f"method '{recipe.method}' needs a picture of this size in memory as a whole; choose "
            f"a smaller size, another method, or more --memory"
        )
    return scene


def paint(
    scene: Scene,
    *,
    state: State | None = None,
    until: int | None = None,
    began: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[tuple[Step, State]]:
    """Steps of a scene from its start or from a state.

    A budget counts from ``began``; it shortens a plan of several sizes or of a decaying rate by
    what a step at the coarsest size takes, and it ends the run before a step that would not fit.
    """
    with heap.apart() if scene.in_blocks else nullcontext():
        yield from _paint(scene, state, until, clock() if began is None else began, clock)


def _paint(
    scene: Scene,
    state: State | None,
    until: int | None,
    began: float,
    clock: Callable[[], float],
) -> Iterator[tuple[Step, State]]:
    recipe = scene.recipe
    if recipe.passes:
        yield from _forward(scene, state or State(scene.content), until or len(recipe.passes))
        return
    deadline = began + recipe.budget * (1 - RESERVE) if recipe.budget else None
    stages = plan(scene.size, recipe)
    if deadline is not None and (len(stages) > 1 or recipe.optimizer == "adam"):
        stages = _within(scene, stages, deadline, clock)  # the others need no plan to end well
    state = state or State(resize(scene.start, stages[0].size))
    last = clock()
    ends = {sum(stage.steps for stage in stages[: k + 1]) for k in range(len(stages) - 1)}
    for step, after in descend(
        state,
        recipe=recipe,
        stages=stages,
        objective=scene.objectives(),
        enlarge=scene.enlarge,
        until=until,
    ):
        now = clock()
        next_takes = (now - last) * (5 if step.index + 1 in ends else 1)  # then four times as large
        if deadline is not None and not step.reason and now + next_takes > deadline:
            yield replace(step, reason="budget"), after
            return
        yield step, after
        last = now


def _forward(scene: Scene, state: State, until: int) -> Iterator[tuple[Step, State]]:
    """The passes of a feed-forward method as steps; nothing is measured on the way."""
    levels, index = scene.recipe.passes, state.index
    for image in scene.passes(scene.size, done=index, image=state.image):
        index += 1
        step = Step(
            index=index,
            steps=len(levels),
            losses=UNKNOWN,
            image=image,
            best=image,
            best_losses=UNKNOWN,
            progress=index / len(levels),
            reason="done" if index >= min(until, len(levels)) else "",
        )
        yield step, State(image, index=index)
        if step.reason:
            return


def _forward_start(scene: Scene) -> Image:
    """What a feed-forward method makes of the scene, at a size that is quickly done."""
    recipe = scene.recipe.but(method=scene.recipe.start, start="color", layers=(), layer_weights=())
    size = min(scene.size, scaled(scene.size, COARSE))
    *_, image = replace(scene, recipe=recipe.but(decode="network")).passes(size)
    return image


def _is_additive(recipe: Recipe) -> bool:
    return recipe.method not in FEED_FORWARD and isinstance(
        style_of(recipe).build(recipe), Additive
    )


def plan(size: tuple[int, int], recipe: Recipe, steps: int = 0) -> list[Stage]:
    """Sizes from coarse to fine, each twice the one before, and the updates made at each.

    The first ones at the coarsest size are shallow. In all there are those of the recipe, or as
    many as are asked for.
    """
    steps = steps or recipe.steps
    scales = recipe.scales or 1 + max(0, round(math.log2(max(size) / COARSE)))
    sizes = [size]
    while len(sizes) < min(scales, steps):
        half = scaled(size, round(max(size) / 2 ** len(sizes)))
        if min(half) < SMALLEST_COARSE_SIDE:
            break
        sizes.append(half)
    counts, left = [], steps
    for number in range(len(sizes)):  # each size gets half the steps of the coarser one before it
        rest = len(sizes) - number - 1
        counts.append(min(max(1, round(left / (2 - 0.5**rest))), left - rest))
        left -= counts[-1]
    stages = [Stage(size, count) for size, count in zip(reversed(sizes), counts, strict=True)]
    first = stages[0]
    shallow = min(recipe.shallow, first.steps * 2 // 3) if recipe.early else 0
    if shallow:
        early, late = Stage(first.size, shallow, shallow=True), first.steps - shallow
        stages[:1] = [early, replace(first, steps=late)]
    return stages


def forecast(scene: Scene, clock: Callable[[], float] = time.monotonic) -> float:
    """The seconds that the plan of a scene will take, judged by a step at its coarsest size."""
    if scene.recipe.passes:
        size = min(scene.size, scaled(scene.size, COARSE))
        before = clock()
        for _ in scene.passes(size):
            pass
        return (clock() - before) * math.prod(scene.size) / math.prod(size)
    stages = plan(scene.size, scene.recipe)
    return _pace(scene, stages[0].size, clock) * _work(scene, stages)


def recolor(
    content: Image, style: Image, visible: Tensor | None = None, visible_style: Tensor | None = None
) -> Image:
    """The content in the colors of the style: Gaussian optimal transport of its pixels."""
    moved = transport_gaussian(
        flat(objective.points_of(content[None])),
        objective.points_of(content[None], visible),
        objective.points_of(style[None], visible_style),
        ridge=NOISE,
    )
    return moved.T.reshape(content.shape).clamp_(0, 1)


def _within(
    scene: Scene, stages: list[Stage], deadline: float, clock: Callable[[], float]
) -> list[Stage]:
    """The longest plan that ends before the deadline, judged by one step at the coarsest size."""
    recipe = scene.recipe
    pace = _pace(scene, stages[0].size, clock)
    left = deadline - clock()
    for steps in range(recipe.steps, len(stages) - 1, -1):
        shorter = plan(scene.size, recipe, steps)
        if _work(scene, shorter) * pace <= left:
            return shorter
    # Not even a step at the final size: the deadline ends it before, and the coarse is enlarged.
    return stages


def _pace(scene: Scene, size: tuple[int, int], clock: Callable[[], float]) -> float:
    """The seconds that a step takes per pixel."""
    evaluate, start = scene.objective_at(size), resize(scene.start, size)
    evaluate(start)  # the first one also warms up
    before = clock()
    evaluate(start)
    return (clock() - before) / math.prod(size) / (IN_BLOCKS if scene.side_at(size) else 1)


def _work(scene: Scene, stages: list[Stage]) -> float:
    """What a plan costs, in pixels that are looked at as a whole.

    A build costs about a step: content and style are encoded once per size.
    """
    return sum(
        (stage.steps + 1) * stage.work * (IN_BLOCKS if scene.side_at(stage.size) else 1)
        for stage in stages
    )


def _target(picture: Picture, wanted: int | str, name: str) -> tuple[int, int]:
    """Height and width at the wanted long side."""
    width, height = picture.size
    long_side = max(width, height) if wanted == "original" else int(wanted)
    size = scaled((height, width), long_side)
    if min(size) < SMALLEST_SIDE:
        raise ImpastoError(
            f"the {name} image is {width}×{height}: with a long side of {long_side} its short side "
            f"would be {min(size)} pixels, and {SMALLEST_SIDE} are needed; crop it or choose a "
            f"larger size"
        )
    return size


def original(picture: Picture, size: tuple[int, int], device: torch.device) -> Original:
    """A picture for images of a given height and width, in as little memory as says it all."""
    pixels = torch.from_numpy(picture.rgb)
    if pixels.numel() > 4 * 3 * math.prod(size):  # even as levels it is more than the image
        pixels = to_image(picture, size, device).permute(1, 2, 0)
    return Original(pixels=_levels(pixels), size=size, device=device)


def _levels(pixels: Tensor) -> Tensor:
    """Pixels (H, W, 3) in 8 bits where nothing is lost by it, else as they are."""
    levels = torch.empty(pixels.shape, dtype=torch.uint8, device=pixels.device)
    for part, whole in zip(levels.split(ROWS), pixels.split(ROWS), strict=True):
        part.copy_((whole * LEVELS).round_())
        if not torch.equal(part.float().div_(LEVELS), whole):
            return pixels
    return levels


def to_image(picture: Picture, size: tuple[int, int], device: torch.device) -> Image:
    """A picture as a tensor of a given height and width."""
    return resize(torch.from_numpy(picture.rgb).permute(2, 0, 1), size).contiguous().to(device)


def _mask(picture: Picture, size: tuple[int, int], device: torch.device) -> Tensor | None:
    if picture.alpha is None:
        return None
    return resize(torch.from_numpy(picture.alpha)[None], size)[0].to(device)


def _resized_mask(mask: Tensor | None, size: tuple[int, int]) -> Tensor | None:
    return None if mask is None else resize(mask[None], size)[0]
