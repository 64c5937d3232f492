"""The whole road on digits: what the shortcut does to plain training, and what mixing does about it."""

from pathlib import Path

import unskew
from unskew.commands import say, show, tell
from unskew.engine.inference import pick_device
from unskew.results import write_results
from unskew.run_folder import METRICS, REPORT, RESULTS, MetricsFile, begin, saved_config
from unskew.training import Run

METHODS = ("erm", "smix", "lmix")


def run_demo(out: Path, *, seed: int = 0, device: str = "auto", command: str = "") -> list[Run]:
    """Identify once, train three times, and leave the debiased model, the results and a report in ``out``."""
    data, test = unskew.load("digits"), unskew.load("digits", split="test")
    say(f"{data.name}: {len(data)} handwritten digits, 95% of each class on a background of its own colour.")
    pick_device(device)
    begin(out, {"data": "digits", "method": {"name": "lmix"}, "seed": seed, "device": device}, resume=False)
    shared = {"progress": True, "listeners": [MetricsFile(out / METRICS)], "seed": seed, "device": device}
    partition = unskew.identify(data, out=out, **shared)
    tell(partition.notes)
    runs = [unskew.train(data, partition, method, test=test, **shared) for method in METHODS]
    runs[-1].save(out)
    write_results(out / RESULTS, [run.result for run in runs])
    unskew.report(data, partition, runs, out / REPORT, test=test, command=command, config=saved_config(out))
    say("\nAccuracy on the test digits, whose colours say nothing about the digit:")
    show(runs)
    say(f"Written: {out / REPORT}, {out / RESULTS}, {out / 'model.safetensors'}")
    return runs
