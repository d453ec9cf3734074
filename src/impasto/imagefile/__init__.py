"""Images in files and in memory: the one room that knows formats, profiles and transparency."""

from impasto.imagefile.reading import MAX_BYTES, MAX_PIXELS, read, read_record, read_whole
from impasto.imagefile.writing import check_writable, encode, pixels_sha256, to_8bit, write

__all__ = [
    "MAX_BYTES",
    "MAX_PIXELS",
    "check_writable",
    "encode",
    "pixels_sha256",
    "read",
    "read_record",
    "read_whole",
    "to_8bit",
    "write",
]
