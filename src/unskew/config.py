"""A YAML file, the command line, and dotted options, put together: the later ones win."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unskew.errors import UnskewError

NESTED = ("method", "identify")  # sections with a name and options of their own


def combine(file: Path | None, flags: Mapping[str, Any], dots: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """One flat dict, with ``method`` and ``identify`` as ``{"name": …, option: value}``."""
    values = read(file) if file is not None else {}
    for name, value in flags.items():
        if name in NESTED:
            same = values.get(name, {}).get("name") == value
            values[name] = {**(values[name] if same else {}), "name": value}
        else:
            values[name] = value
    for section, options in dots.items():
        values[section] = {**values.get(section, {}), **options}
    return values


def read(file: Path) -> dict[str, Any]:
    import yaml

    try:
        values = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UnskewError(f"the config {file} cannot be read: {error.strerror}.") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UnskewError(f"the config {file} is not YAML: {' '.join(str(error).split())}.") from error
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise UnskewError(f"the config {file} must be a mapping of options, like `epochs: 30`.")
    for name in NESTED:
        if isinstance(values.get(name), str):
            values[name] = {"name": values[name]}
        elif not isinstance(values.get(name, {}), dict):
            raise UnskewError(f"the config {file}: {name} must be a name, or a mapping with a name and options.")
    return values


def dotted(tokens: list[str]) -> tuple[list[str], dict[str, dict[str, Any]]]:
    """Take ``--method.omega 0.01`` (or ``=0.01``, or a bare flag) out of the tokens."""
    import yaml

    rest: list[str] = []
    found: dict[str, dict[str, Any]] = {}
    waiting = list(tokens)
    while waiting:
        token = waiting.pop(0)
        key, has_value, value = token.partition("=")
        section, dot, name = key.removeprefix("--").partition(".")
        if not (token.startswith("--") and dot and section in NESTED):
            rest.append(token)
            continue
        if not has_value:
            value = waiting.pop(0) if waiting and not waiting[0].startswith("--") else "true"
        try:
            found.setdefault(section, {})[name.replace("-", "_")] = yaml.safe_load(value)
        except yaml.YAMLError:
            raise UnskewError(f"{key}: {value!r} is not a value.") from None
    return rest, found
