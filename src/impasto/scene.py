"""The pictures of a job, and how they are looked at: at which sizes, as a whole or in blocks."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import torch
from torch import Tensor

from impasto import blocks, blockwise, feedforward, heap, objective, room
from impasto.discrepancies.styles import style_of
from impasto.maths.linalg import flat
from impasto.maths.raster import resize, scaled
from impasto.maths.transport import transport_gaussian
from impasto.networks.decoder import Decoder
from impasto.networks.vgg import Encoder
from impasto.optimize import OPTIMIZERS, Evaluate, Stage
from impasto.recipe import CHANNELS, FEED_FORWARD, Recipe, convolution
from impasto.room import Division
from impasto.types import Additive, Image, ImpastoError, Picture

SMALLEST_SIDE = 32  # conv5_1 sees it as 2 × 2
COARSE = 512  # the long side to begin near, where nothing else was said
IMAGES = 6  # that a feed-forward pass makes of a picture
LEVELS = 255.0  # of 8 bits
ROWS = 1024  # of an image that are worked on at a time, where a whole one more is too many
NOISE = (2 / 255) ** 2  # variance that 8 bits and a sensor make: not to be stretched into color


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
        return self.division_at(self.size) is not None

    def style_size_at(self, size: tuple[int, int]) -> tuple[int, int]:
        """The size of the style beside a coarser content: shrunk as much."""
        height, width = self.style_size
        smallest = min(1.0, SMALLEST_SIDE / min(height, width))
        factor = max(max(size) / max(self.size), smallest)
        return max(1, round(height * factor)), max(1, round(width * factor))

    def division_at(self, size: tuple[int, int]) -> Division | None:
        """The blocks in which to look at a size; None where it fits as a whole."""
        recipe, style_size = self.recipe, self.style_size_at(size)
        left = self.memory * (1 - room.RESERVE) - room.BASE_BYTES - self.kept_at(size)
        if recipe.passes:
            look = block = partial(operator.mul, feedforward.BYTES)
            return room.divide(size, style_size, left, look=look, block=block)
        more = room.MORE_BYTES.get(recipe.method, 0.0)
        look, block = partial(room.look_bytes, more=more), partial(room.block_bytes, more=more)
        taps = {*recipe.style_layers, recipe.content_layer}
        return room.divide(size, style_size, left, look=look, block=block, taps=taps)

    def kept_at(self, size: tuple[int, int]) -> float:
        """Bytes that stay where they are while an image of a size is looked at."""
        recipe, pixels = self.recipe, math.prod(size)
        pictures = sum(float(each.pixels.nbytes) for each in self._originals)
        if recipe.passes:
            return pictures + IMAGES * 12.0 * pixels
        layer = recipe.content_layer
        features = 4.0 * CHANNELS[convolution(layer)] / blocks.stride_of(layer) ** 2
        if recipe.tv or recipe.laplacian:
            features += room.SMOOTH_BYTES
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
        coarse, division = self.style_size_at(size), self.division_at(size)
        run = feedforward.Passes(
            recipe=self.recipe,
            encoder=self.encoder,
            decoders=self.decoders,
            style=resize(self.style, coarse),
            visible_style=_resized_mask(self.visible_style, coarse),
            side=division.side if division else None,
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
            if early and self.division_at(stage.size) is not None:
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
        division = self.division_at(size)
        heap.trim()  # what the size before has left
        build: Callable[..., Evaluate] = partial(objective.build, summarize=self.summarize)
        if recipe.method in FEED_FORWARD:
            build = feedforward.build
        elif division is not None:
            build = partial(blockwise.build, side=division.side, trails=division.trails)
        built = build(
            recipe,
            self.encoder,
            *pictures,
            visible=_resized_mask(self.visible, size),
            visible_style=_resized_mask(self.visible_style, coarse),
        )
        heap.trim()  # what only the building needed
        return built


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
