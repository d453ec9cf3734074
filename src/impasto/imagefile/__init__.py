"""Images in files and in memory: the one room that knows formats, profiles and transparency."""

from impasto.imagefile.reading import MAX_BYTES, MAX_PIXELS, read, read_record
from impasto.imagefile.writing import check_writable, pixels_sha256, to_8bit, write

__all__ = [
    "MAX_BYTES",
    "MAX_PIXELS",
    "check_writable",
    "pixels_sha256",
    "read",
    "read_record",
    "to_8bit",
    "write",
]
