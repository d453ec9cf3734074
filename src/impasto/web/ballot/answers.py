"""What the ballot's API takes and gives; nothing in it tells which method made a picture."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class Problem(BaseModel):
    """What is wrong."""

    detail: str


class Question(BaseModel):
    """What the study asks."""

    study: str = Field(description="its identity: another plan is another study")
    title: str
    question: str
    ballots: int = Field(description="that one participant gets")
    shown: int = Field(description="pictures to choose from")


class BallotOut(BaseModel):
    """One ballot; pictures are addresses."""

    position: int
    content: str
    style: str
    pictures: list[str]


class State(BaseModel):
    """How far a participant has come."""

    done: int
    total: int
    last: str | None = Field(description="key of the vote that can be taken back")
    ballot: BallotOut | None = Field(description="the next one; none when all are done")
    ahead: list[str] = Field(description="pictures of the one after, to be loaded meanwhile")


class VoteIn(BaseModel):
    """A choice."""

    model_config = ConfigDict(extra="forbid")

    position: int = Field(ge=0, le=1_000_000, description="of the ballot that is meant")
    place: int = Field(ge=0, le=8, description="of the picture on it, counted from 0")
