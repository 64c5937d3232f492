"""A YAML file, the command line, and dotted options, put together: the later ones win."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unskew.engine.settings import Settings
from unskew.errors import UnskewError, nearest
from unskew.options import names, option

NESTED = {"method": "lmix", "identify": "ph"}  # sections with a name, here the default, and options of their own
ON_THE_LINE = ("out", "resume", "log", "config", "debug")  # said on the command line only


@dataclass(frozen=True)
class Loading:
    """Where the images are, and how they are read."""

    data: str = option("", "a folder, a file or a name")
    data_dir: str | None = option(None, "where a data set with a name lies")
    size: int | None = option(None, "working size in pixels")
    skip_bad: bool = option(False, "leave out images that cannot be read")

    def __post_init__(self) -> None:
        if self.size is not None and self.size < 1:
            raise UnskewError(f"size must be above 0, not {self.size}.")


def combine(file: Path | None, flags: Mapping[str, Any], dots: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """One flat dict, with ``method`` and ``identify`` as ``{"name": …, option: value}``."""
    values = read(file) if file is not None else {}
    for name, value in flags.items():
        if name in NESTED:
            said = values.get(name, {})
            values[name] = {**(said if said.get("name", NESTED[name]) == value else {}), "name": value}
        else:
            values[name] = value
    for section, options in dots.items():
        values[section] = {**values.get(section, {}), **options}
    for section in NESTED:
        name = values.get(section, {}).get("name", "")
        if not isinstance(name, str):
            raise UnskewError(f"{section}: the name must be a word, not {name!r}.")
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
    for name in values:
        _refuse_unknown(str(name), file)
    if "partition" in values:
        values["identify"] = values.pop("partition")
    for name in NESTED:
        if isinstance(values.get(name), str):
            values[name] = {"name": values[name]}
        elif not isinstance(values.get(name, {}), dict):
            raise UnskewError(f"the config {file}: {name} must be a name, or a mapping with a name and options.")
    return values


def _refuse_unknown(name: str, file: Path) -> None:
    from unskew.identifiers import IDENTIFIERS
    from unskew.methods import METHODS

    known = [*names(Loading), "partition", "corrections", *NESTED, *names(Settings)]
    if name in known:
        return
    if name in ON_THE_LINE:
        raise UnskewError(f"the config {file}: {name} is said on the command line, as --{name}, not in the file.")
    for section, registry in (("method", METHODS), ("identify", IDENTIFIERS)):
        if any(name in names(cls.Config) for cls in registry.values()):
            raise UnskewError(f"the config {file}: {name} goes under {section}, as {section}: {{{name}: …}}.")
    raise UnskewError(f"the config {file} has no option {name!r}; {nearest(name, known)}")


def dotted(tokens: list[str], sections: Collection[str]) -> tuple[list[str], dict[str, dict[str, Any]]]:
    """Take ``--method.omega 0.01`` (or ``=0.01``, or a bare flag) out of the tokens."""
    import yaml

    rest: list[str] = []
    found: dict[str, dict[str, Any]] = {}
    waiting = list(tokens)
    while waiting:
        token = waiting.pop(0)
        key, has_value, value = token.partition("=")
        section, dot, name = key.removeprefix("--").partition(".")
        if not (token.startswith("--") and dot and section in sections):
            rest.append(token)
            continue
        if not has_value:
            value = waiting.pop(0) if waiting and not waiting[0].startswith("--") else "true"
        try:
            found.setdefault(section, {})[name.replace("-", "_")] = yaml.safe_load(value)
        except yaml.YAMLError:
            raise UnskewError(f"{key}: {value!r} is not a value.") from None
    return rest, found
