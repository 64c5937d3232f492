"""Typed options: dataclass fields with a default and a line of help, and their validation at the boundary."""

import operator
from dataclasses import MISSING, field, fields
from typing import Any, TypeVar

from unskew.errors import UnskewError, nearest

T = TypeVar("T")


def option(
    default: Any,
    help: str,
    *,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
    below: float | None = None,
) -> Any:
    """A dataclass field that explains itself, and knows its range."""
    limits = {"at least": least, "above": above, "at most": most, "below": below}
    return field(default=default, metadata={"help": help, "limits": limits})


def names(config: type) -> list[str]:
    return [f.name for f in fields(config)]


def help_of(config: type) -> dict[str, tuple[Any, str]]:
    """Default and help of each option."""
    return {f.name: (None if f.default is MISSING else f.default, f.metadata.get("help", "")) for f in fields(config)}


def build(config: type[T], values: dict[str, Any], where: str) -> T:
    """Make ``config`` from untrusted values, or say in one sentence which one is wrong."""
    from pydantic import TypeAdapter, ValidationError

    for name in values:
        if name not in names(config):
            raise UnskewError(f"{where} has no option {name!r}; {nearest(name, names(config))}")
    try:
        built = TypeAdapter(config).validate_python(values)
    except ValidationError as error:
        first = error.errors()[0]
        option_name = ".".join(str(part) for part in first["loc"][:1])
        message = first["msg"].removeprefix("Value error, ").rstrip(".")
        raise UnskewError(f"{where}: {option_name} = {first['input']!r} is not valid: {message}.") from None
    _within_limits(built, where)
    for name, value in values.items():
        if isinstance(value, bool) and not isinstance(getattr(built, name), bool):  # not the numbers 0 and 1
            raise UnskewError(f"{where}: {name} needs a value of its own, not {str(value).lower()}.")
    return built


def _within_limits(built: Any, where: str) -> None:
    holds = {"at least": operator.ge, "above": operator.gt, "at most": operator.le, "below": operator.lt}
    for f in fields(built):
        value = getattr(built, f.name)
        for words, limit in f.metadata.get("limits", {}).items():
            if value is not None and limit is not None and not holds[words](value, limit):
                raise UnskewError(f"{where}: {f.name} must be {words} {limit:g}, not {value:g}.")


def split(values: dict[str, Any], *configs: type, where: str) -> list[dict[str, Any]]:
    """Deal ``values`` out to the configs that know them, so that a call can take all options side by side."""
    known = [set(names(config)) for config in configs]
    for name in values:
        if not any(name in some for some in known):
            raise UnskewError(f"{where} has no option {name!r}; {nearest(name, set().union(*known))}")
    return [{name: value for name, value in values.items() if name in some} for some in known]
