"""Decode the bodies of requests, and name the field and the rule that a body breaks."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Annotated, Any, NoReturn, TypeVar

import msgspec
from msgspec import Meta

from robandit.errors import formatted
from robandit.hints import unknown
from robandit.kernel.loops import SMALLEST_REWARD
from robandit.service.bodies import LONGEST_CONTEXT, MOST_ITEMS, RULES, ArmName, Name, NewGuardrail, Request, Scope
from robandit.service.problems import Refusal

MOST_COMMAS = 40_000
"""The most commas of a body, or of an item: to decode as many names takes about 30 ms, in which nothing else is answered."""
LONGEST_QUOTE = 60
ITEMS_RULE = f"an array of 1 to {MOST_ITEMS:,} objects"
_ELEMENTS: dict[str, Any] = {
    "arms": ArmName,
    "among": ArmName,
    "experiments": Name,
    "scopes": Scope,
    "guardrails": NewGuardrail,
}
"""The type of the elements of the fields that are arrays."""
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

Body = TypeVar("Body", bound=msgspec.Struct)
_raw_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_raw_elements = msgspec.json.Decoder(list[msgspec.Raw]).decode


# Like an array of at most `MOST_ITEMS` values. Of an array that is longer, msgspec would first decode all items, which takes 0.4 s
# for 4 MiB; here it stops at the first one that is too many.
_Some = msgspec.defstruct(
    "_Some",
    [(f"item_{i}", msgspec.Raw | msgspec.UnsetType, msgspec.UNSET) for i in range(MOST_ITEMS)],
    array_like=True,
    forbid_unknown_fields=True,
)


class _Items(Request):
    """A batch whose items are decoded one by one, so that a wrong one does not spoil the others."""

    items: _Some  # type: ignore[valid-type]


class _ShortItems(Request):
    """The same, in a body so short that the number of items is no trouble. It is decoded faster."""

    items: Annotated[list[msgspec.Raw], Meta(min_length=1, max_length=MOST_ITEMS)]


def decoder(kind: type[Body]) -> Callable[[Any], Body]:
    """Return a function that decodes the body of a request, and refuses one that does not fit."""
    decode = msgspec.json.Decoder(kind).decode
    fields = msgspec.structs.fields(kind)
    known = tuple(field.encode_name for field in fields)
    fewest = max(1, sum(field.required for field in fields))
    numbers = tuple(field.encode_name for field in fields if "float" in repr(field.type))
    texts = tuple((field.encode_name, field.type) for field in fields if "pattern=" in repr(field.type))
    only = b'"%b"' % known[0].encode() if len(known) == 1 else b""

    def decoded(body: Any) -> Body:
        written = bytes(body)  # an item of a batch is a msgspec.Raw
        size = len(written)
        if size > 2 * MOST_COMMAS and kind is not _Items and written.count(b",") > MOST_COMMAS:
            rule = f"at most {MOST_COMMAS:,} commas"
            raise Refusal("too-large", f"A call in {size:,} bytes of JSON may have {rule}: send less", rule=rule)
        try:
            given = decode(written)
        except msgspec.ValidationError:
            raise _broken_rule(written, kind) from None
        except _UNREADABLE as error:
            raise _malformed(written, error) from None
        if written.count(b":") > fewest and not (only and written.count(only) == 1 and b"\\u" not in written):
            _check_fields(written)  # which takes 20 ms for a batch of 4 MiB
        for name in numbers:
            if getattr(given, name) == 0.0:
                _check_zero(name, written)
        for name, rule_of in texts:  # the end of a pattern also matches before a line break
            text = getattr(given, name)
            if type(text) is str and text[-1:] == "\n":
                raise _breaks(name, _raw_fields(written)[name], _rule(rule_of))
        return given

    return decoded


def _malformed(body: bytes, error: Exception) -> Refusal:
    """Return why a body is not JSON."""
    if not body:
        return Refusal("malformed", "The body is empty: this call needs JSON")
    if isinstance(error, UnicodeDecodeError):
        return Refusal("malformed", "The body is not valid UTF-8: send JSON in UTF-8")
    if isinstance(error, RecursionError):
        return Refusal("malformed", "The body is nested too deeply: send flatter JSON")
    if body.count(b",") <= MOST_COMMAS:
        with suppress(ValueError, RecursionError):
            json.loads(body, parse_constant=_refuse_constant)
    return Refusal("malformed", f"The body is not valid JSON: {str(error)[:200]}")


def _refuse_constant(name: str) -> NoReturn:
    """Refuse NaN and infinity by their rule. They are not JSON, but Python and others write them."""
    hint = "Skip such a reward, or send a finite cost"
    text = f"{name} is not a number in JSON: each number must be finite. {hint}"
    raise Refusal("invalid", text, rule="a finite number")


def _broken_rule(body: bytes, kind: type[msgspec.Struct]) -> Refusal:
    """Return which field of a body breaks which rule. msgspec says this only in words."""
    try:
        given = _raw_fields(body)
    except msgspec.ValidationError:
        return Refusal("invalid", "the body must be an object", rule="an object")
    except _UNREADABLE as error:  # after the field that breaks a rule
        return _malformed(body, error)
    fields = msgspec.structs.fields(kind)
    known = [field.encode_name for field in fields]
    extra = next((name[:100] for name in given if name not in known), None)  # a name may have 4 MiB
    if extra is not None:
        text = unknown(f"field {formatted(extra)}", extra, known)
        return Refusal("invalid", text, parameter=extra, rule="a known field")
    for field in fields:
        name = field.encode_name
        if name not in given:
            if field.required:
                return Refusal("invalid", f"{name} is missing: this call needs it", parameter=name, rule="given")
            continue
        if _fits(given[name], field.type):
            continue
        if name == "items":
            return _breaks(name, given[name], ITEMS_RULE)
        if name in _ELEMENTS and _fits(given[name], list[msgspec.Raw]):
            for i, element in enumerate(_raw_elements(given[name])[:MOST_ITEMS]):
                if not _fits(element, _ELEMENTS[name]):
                    if name == "guardrails" and bytes(element).startswith(b"{"):
                        inner = _broken_rule(bytes(element), NewGuardrail).problem
                        text = f"{name}[{i}]: {inner.detail}"
                        return Refusal("invalid", text, parameter=f"{name}[{i}]", rule=inner.rule)
                    return _breaks(f"{name}[{i}]", element, _rule(_ELEMENTS[name]))
        return _breaks(name, given[name], _rule(field.type))
    _check_fields(body)  # of a field that is given twice, the first value may be wrong
    return Refusal("invalid", "the body does not fit this call: GET /docs lists its fields")


def _fits(raw: msgspec.Raw, kind: Any) -> bool:
    try:
        msgspec.json.decode(raw, type=kind)
    except _UNREADABLE:
        return False
    return True


def _breaks(name: str, raw: msgspec.Raw, rule: str) -> Refusal:
    text = bytes(raw)[: 4 * LONGEST_QUOTE].decode("utf-8", "replace")
    quoted = text if len(text) <= LONGEST_QUOTE else f"{text[: LONGEST_QUOTE - 4]} ..."
    return Refusal("invalid", f"{name} = {quoted} must be {rule}", parameter=name, rule=rule)


def _rule(kind: Any) -> str:
    words = kind_of(msgspec.json.schema(kind))
    return words if words.startswith('"') else f"{'an' if words[0] in 'aio' else 'a'} {words}"


def _check_fields(body: bytes) -> None:
    """Refuse a field that is given twice, of which msgspec takes the last. Colons within the values are not counted."""
    values = [bytes(value) for value in _raw_fields(body).values()]
    if body.count(b":") - sum(value.count(b":") for value in values) == len(values):
        return
    twice = None
    if len(body) <= LONGEST_CONTEXT:  # to decode 4 MiB takes too long
        with suppress(ValueError, RecursionError):
            names = [name for name, _ in json.loads(body, object_pairs_hook=list)]
            twice = next((name for name in names if names.count(name) > 1), None)
    text = f"{twice or 'a field'} is given twice: send each field once"
    raise Refusal("invalid", text, parameter=twice, rule="given once")


def check_context(context: bytes) -> None:
    """Refuse a context in which a field is given twice: the policy would learn from the last one."""
    if context.lstrip().startswith(b"{"):
        _check_fields(context)


def _check_zero(name: str, body: bytes) -> None:
    """Refuse a number that is not 0 but became 0, because it is too small for a float."""
    written = bytes(_raw_fields(body).get(name, b"0")).decode()
    if written.lower().partition("e")[0].strip("-0."):
        rule = f"0 or at least {SMALLEST_REWARD:g} in size"
        raise Refusal("invalid", f"{name} = {written[:40]} must be {rule}", parameter=name, rule=rule)


_decoded_items = decoder(_Items)
_decoded_short = decoder(_ShortItems)


def items_of(body: bytes) -> list[msgspec.Raw]:
    """Return the items of a batch, each of which is still JSON."""
    if len(body) <= LONGEST_CONTEXT:
        return _decoded_short(body).items
    found = msgspec.structs.astuple(_decoded_items(body).items)
    items = [item for item in found if item is not msgspec.UNSET]
    if not items:
        raise Refusal("invalid", f"items must be {ITEMS_RULE}", parameter="items", rule=ITEMS_RULE)
    return items


def kind_of(schema: Mapping[str, Any], link: Callable[[str], str] = str, text: Callable[[str], str] = str) -> str:
    """Return the type of a field in words. ``link`` formats the name of another type, and ``text`` all other words.

    >>> kind_of({"type": "array", "items": {"$ref": "#/components/schemas/Arm"}, "minItems": 1, "maxItems": 9})
    'array (1 to 9 items) of Arm'
    """
    if "$ref" in schema:
        return link(schema["$ref"].rpartition("/")[2])
    if "anyOf" in schema:
        return text(" or ").join(kind_of(each, link, text) for each in schema["anyOf"])
    if "enum" in schema:
        *others, last = (f'"{value}"' for value in schema["enum"])
        return text(f"{', '.join(others)} or {last}" if others else last)
    kind = schema.get("type", "any JSON")
    if kind == "array":
        low, high = schema.get("minItems"), schema.get("maxItems")
        size = f" ({low:,} to {high:,} items)" if high is not None else ""
        return text(f"array{size} of ") + kind_of(schema["items"], link, text)
    if kind == "object" and isinstance(schema.get("additionalProperties"), Mapping):
        return text("object whose values are ") + kind_of(schema["additionalProperties"], link, text)
    return text(f"{kind}{_limits(schema)}")


def _limits(schema: Mapping[str, Any]) -> str:
    if "pattern" in schema:
        return f" ({RULES[schema['pattern']]})" if schema["pattern"] in RULES else ""
    if "maxLength" in schema:
        return f" ({schema.get('minLength', 0)} to {schema['maxLength']} characters)"
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        return f" ({_number(low)} to {_number(high)})"
    if high is not None:
        return f" (> {_number(schema['exclusiveMinimum'])}, <= {_number(high)})"
    if "exclusiveMaximum" in schema:
        return f" (> {_number(schema['exclusiveMinimum'])}, < {_number(schema['exclusiveMaximum'])})"
    return "" if low is None else f" (>= {_number(low)})"


def _number(value: float) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.0f}" if 1 <= abs(value) < 1e15 else f"{value:g}".replace("e+", "e")
