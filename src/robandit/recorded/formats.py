"""The format of a file, by its first bytes and its ending."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from robandit.errors import CorruptFile, FileError, InvalidInput
from robandit.recorded.csv_table import CsvReader
from robandit.recorded.frames import read_parquet
from robandit.recorded.json_lines import JsonReader
from robandit.recorded.reader import Reader, first_bytes

__all__ = ["read_file"]

ENDINGS = {
    **dict.fromkeys((".csv", ".tsv", ".tab"), "CSV"),
    **dict.fromkeys((".parquet", ".pq"), "Parquet"),
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), "JSON lines"),
}
UTF_16 = "text in UTF-16: convert it, for example with iconv -f UTF-16 -t UTF-8"
UNREADABLE = {
    b"PK\x03\x04": "a ZIP archive or a spreadsheet: unzip it, or save the sheet as CSV",
    b"\xd0\xcf\x11\xe0": "a spreadsheet: save the sheet as CSV",
    b"ARROW1": "an Arrow file: write it as Parquet",
    b"BZh": "compressed with bzip2: decompress it first",
    b"\xfd7zXZ": "compressed with xz: decompress it first",
    b"SQLite format 3": "a database: export the table as CSV",
    b"%PDF": "a PDF",
    b"\xff\xfe": UTF_16,
    b"\xfe\xff": UTF_16,
}


def read_file(path: Path, source: str, delimiter: str | None, columns: Sequence[str]) -> Reader:
    """Return a reader of a file; ``columns`` are the names by which the delimiter of a CSV file is recognised."""
    if path.is_dir():
        raise FileError(f"{source} is a folder: name a file in it")
    try:
        with path.open("rb") as file:
            start = file.read(64)
    except OSError as error:
        raise FileError(f"{source} cannot be read: {error.strerror}") from error
    if not start:
        raise InvalidInput(f"{source} is empty (0 bytes): it must hold a header and rows")
    compression = {b"\x1f\x8b": "gzip", b"\x28\xb5": "zstd"}.get(start[:2])
    if compression == "gzip":
        start = first_bytes(path, compression, 64, source)
        if not start:
            raise InvalidInput(f"{source} is empty once decompressed: it must hold a header and rows")
    for magic, description in UNREADABLE.items():
        if start.startswith(magic):
            raise InvalidInput(f"{source} is {description}; CSV, Parquet and JSON lines can be read")
    ending = next((ENDINGS[each.lower()] for each in reversed(path.suffixes) if each.lower() in ENDINGS), None)
    if start.startswith(b"PAR1"):
        if compression:
            raise InvalidInput(f"{source} is a compressed Parquet file: decompress it first")
        if delimiter is not None:
            raise InvalidInput(f"{source} is a Parquet file, which has no delimiter: omit delimiter= (--delimiter)")
        return read_parquet(path, source)
    if ending == "Parquet":
        raise CorruptFile(f"{source} is not a Parquet file: its first bytes differ")
    content = start.lstrip(b"\xef\xbb\xbf \t\r\n")
    if delimiter is None and (ending == "JSON lines" or (ending is None and content[:1] in (b"{", b"["))):
        if compression == "zstd":
            raise InvalidInput(f"{source} is compressed with zstd, which only CSV may be: decompress it first (unzstd)")
        if content.startswith(b"["):
            raise CorruptFile(
                f"{source} is a JSON array: write one object per line, in pandas with to_json(orient='records', lines=True)"
            )
        return JsonReader(path, source, compression)
    return CsvReader(path, source, compression, delimiter, columns)
