"""The words of the HTTP API: what it is asked and what it answers."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

ID = r"^[0-9a-z]{1,32}$"


class Problem(BaseModel):
    """What went wrong, as a sentence."""

    detail: str


class PictureOut(BaseModel):
    """A picture that can be painted, or painted with."""

    id: str
    name: str
    width: int
    height: int
    title: str = Field("", description="of a sample")
    license: str = Field("", description="of a sample")


class SamplesOut(BaseModel):
    """The pictures that come along."""

    photos: list[PictureOut]
    paintings: list[PictureOut]


class Painting(BaseModel):
    """What to paint: two pictures, and settings on top of a preset."""

    content: str = Field(pattern=ID, description="id of the picture to paint")
    style: str = Field(pattern=ID, description="id of the picture to paint like")
    preset: str = Field("", max_length=32, description="settings to begin with")
    settings: dict[str, Any] = Field(default_factory=dict, description="see /api/settings")


class RunOut(BaseModel):
    """A painting: wanted, at work or finished."""

    id: str
    state: str = Field(description="waiting, painting, done, failed or interrupted")
    created: float = Field(description="seconds since 1970")
    content: PictureOut | None = Field(description="null when it has been deleted")
    style: PictureOut | None
    recipe: dict[str, Any]
    error: str
    place: int = Field(description="how many come before it")
    width: int
    height: int
    steps: int
    seconds: float
    reason: str = Field(description="why it ended: steps, flat, budget, stopped, …")
    history: list[tuple[float, float, int]] = Field(
        description="per step: style loss, content loss, and the number of style layers they are of"
    )


class RunsOut(BaseModel):
    """A page of the history, the newest first."""

    runs: list[RunOut]
    more: bool
