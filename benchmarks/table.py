"""The numbers of one JSON file as Markdown, for a person."""

from collections.abc import Mapping
from typing import Any


def markdown(found: Mapping[str, Any]) -> str:
    setup = found["setup"]
    stem = f", {setup['stem']} stem" if setup["stem"] else ""
    compiled = ", compiled" if setup["compile"] else ""
    what = (
        f"{setup['model']}{stem}, {setup['size']} px, {setup['samples']:,} images, batch {setup['batch_size']}, "
        f"{setup['precision']}{compiled}; {setup['device']}, torch {setup['versions']['torch']}"
    )
    return "\n".join([what, "", *_speeds(found), "", *_notes(found), ""])


def _speeds(found: Mapping[str, Any]) -> list[str]:
    lines = ["| | images/s | time ÷ bare loop | host syncs a step | GB at epoch 2 | 10 |", "|---|---|---|---|---|---|"]
    for name, speed in found["images_per_second"].items():
        ratio = found["ratios"].get(name)
        syncs = found["host_syncs_per_step"].get(name)
        memory = found["memory_gb"].get(name, {})
        cells = [f"{speed:,.0f}", _number(ratio, ".2f"), _number(syncs, "g")]
        cells += [_number(memory.get(f"epoch {epoch}"), ".3f") for epoch in (2, 10)]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    for cores, speed in found["decode"]["images_per_second_on_cores"].items():
        lines.append(f"| decode, {cores} core{'' if cores == '1' else 's'} | {speed:,.0f} | | | | |")
    return lines


def _notes(found: Mapping[str, Any]) -> list[str]:
    growth = found["against_samples"]
    lines = []
    for name, fit in growth.items():
        if isinstance(fit, Mapping):
            fewest, most = min(growth["samples"]), max(growth["samples"])
            lines.append(
                f"{name}, {fewest:,} to {most:,} images of {growth['size']} px: {fit['fixed_seconds']:.2f} s + "
                f"{fit['microseconds_each']:.1f} µs an image, R² = {fit['r_squared']:.5f}"
            )
    for name, shares in found["operator_shares"].items():
        largest = ", ".join(f"{key} {share:.0%}" for key, share in list(shares.items())[:5])
        lines.append(f"{name}'s time: {largest}")
    return ["\n".join(f"- {line}" for line in lines)]


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)
