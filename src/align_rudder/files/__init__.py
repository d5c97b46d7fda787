"""The one door for files: written whole or not at all; read with limits and checks, no pickle."""

from align_rudder.files.arrays import Array, Bytes, Flags, Floats, Ints, check_arrays
from align_rudder.files.formats import Contents, Format
from align_rudder.files.kinds import (
    LARGEST,
    Anything,
    Choice,
    Each,
    Flag,
    Kind,
    Many,
    Maybe,
    Number,
    Table,
    Text,
    Whole,
    shown,
)
from align_rudder.files.npz import Archive, load_npz, npz_trouble, read_header, save_npz
from align_rudder.files.reading import check_file, parse_json, read_json, read_text, said_of
from align_rudder.files.symbols import decode_symbol, decode_symbols, encode_symbol
from align_rudder.files.writing import (
    check_outputs,
    check_writable,
    write_figure,
    write_json,
    write_text,
    write_whole,
)

__all__ = [
    "LARGEST",
    "Anything",
    "Archive",
    "Array",
    "Bytes",
    "Choice",
    "Contents",
    "Each",
    "Flag",
    "Flags",
    "Floats",
    "Format",
    "Ints",
    "Kind",
    "Many",
    "Maybe",
    "Number",
    "Table",
    "Text",
    "Whole",
    "check_arrays",
    "check_file",
    "check_outputs",
    "check_writable",
    "decode_symbol",
    "decode_symbols",
    "encode_symbol",
    "load_npz",
    "npz_trouble",
    "parse_json",
    "read_header",
    "read_json",
    "read_text",
    "said_of",
    "save_npz",
    "shown",
    "write_figure",
    "write_json",
    "write_text",
    "write_whole",
]
