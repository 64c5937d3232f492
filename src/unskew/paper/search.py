"""Points that a Gaussian process chooses, one after another: what runs behind a figure over a plane of options."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from unskew.errors import UnskewError
from unskew.paper.rows import Table
from unskew.paper.runner import Outcome, run_all
from unskew.paper.spec import Spec
from unskew.paper.store import FILE, read_lines

TINY_TRIALS = 4
Line = Mapping[str, Any]


def run_search(
    table: Table,
    results: Path,
    scale: str,
    workers: int,
    say: Callable[[str], None],
    minutes: float | None = None,
    **run: Any,
) -> Outcome:
    """Until the results hold all trials; what they hold already is what the next points are chosen by."""
    assert table.search is not None
    whole = TINY_TRIALS if scale == "tiny" else table.search.trials
    outcome, started = Outcome(), time.monotonic()
    while not outcome.failed and not outcome.left:
        there = trials(table, read_lines(results / FILE)[0], scale)
        left = whole - len(there)
        say(f"{table.name}: {len(there)} of {whole} points")
        if left <= 0:
            break
        specs = _propose(table, there, min(workers, left), scale)
        over = None if minutes is None else minutes - (time.monotonic() - started) / 60
        some = run_all(specs, results, workers=workers, say=say, minutes=over, **run)
        outcome.done += some.done
        outcome.failed += some.failed
        outcome.left += some.left
    return outcome


def trials(table: Table, lines: Sequence[Line], scale: str) -> list[Line]:
    """The lines that are points of this search, under the recipe as it is."""
    assert table.search is not None
    base = _base(table, scale).to_dict()
    free = set(table.search.space)

    def fixed(spec: Mapping[str, Any]) -> dict[str, Any]:
        return {**spec, "options": {k: v for k, v in spec["options"].items() if k not in free}}

    return [
        line
        for line in lines
        if free <= line.get("spec", {}).get("options", {}).keys() and fixed(line["spec"]) == fixed(base)
    ]


def _base(table: Table, scale: str) -> Spec:
    return next(iter(table.specs(table.ratios, table.rows, 1, scale)))[2]


def _propose(table: Table, there: Sequence[Line], count: int, scale: str) -> list[Spec]:
    """Several points at once: each is taken to have turned out average while the next is chosen."""
    try:
        import optuna
    except ImportError:
        raise UnskewError(f"{table.name} is a search by optuna: pip install 'unskew[sweep]'") from None
    import warnings

    assert table.search is not None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        study = optuna.create_study(direction="maximize", sampler=optuna.samplers.GPSampler(seed=len(there)))
    space: dict[str, optuna.distributions.BaseDistribution] = {
        name: optuna.distributions.FloatDistribution(low, high, log=True)
        for name, (low, high) in table.search.space.items()
    }
    for line in there:
        point = {name: line["spec"]["options"][name] for name in space}
        value = line["validation"]["balanced"]
        study.add_trial(optuna.trial.create_trial(params=point, distributions=space, value=value))
    average = sum(line["validation"]["balanced"] for line in there) / max(len(there), 1)
    base, specs = _base(table, scale), []
    for _ in range(count):
        trial = study.ask(space)
        study.tell(trial, average)
        point = {name: min(max(float(f"{value:.3g}"), low), high)
                 for (name, (low, high)), value in zip(table.search.space.items(), trial.params.values())}  # fmt: skip
        specs.append(replace(base, options={**base.options, **point}))
    return specs
