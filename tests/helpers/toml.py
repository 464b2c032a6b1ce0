"""Write specs as TOML."""

import json
import re
from collections.abc import Mapping

import msgspec


def spec_text(spec):
    """Return a TOML text that reads back equal. Defaults are omitted."""
    data = msgspec.to_builtins(spec, builtin_types=())
    text = []
    for key, value in data.items():
        if key in ("problems", "policies"):
            text.append(f"{key} = [\n{''.join(f'    {toml_value(each)},{chr(10)}' for each in value)}]")
        else:
            text.append(f"{key} = {toml_value(value)}")
    return "\n".join(text) + "\n"


def toml_value(value):
    """Return a value as TOML on one line."""
    if isinstance(value, Mapping):
        keys = [key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else toml_value(key) for key in value]
        pairs = [f"{key} = {toml_value(each)}" for key, each in zip(keys, value.values(), strict=True)]
        return f"{{ {', '.join(pairs)} }}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, str):
        if '"' in value and "'" not in value and value.isprintable():
            return f"'{value}'"  # without escapes
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # JSON's escapes are TOML's
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value)
