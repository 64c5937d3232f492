"""``unskew check-labels``: the wrong labels among a run's suspects, proposed as corrections."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from unskew.flags import Flags

# What the network of stage 1 was told, unless said otherwise here.
TAKEN_OVER = ("model", "weights", "stem", "augment", "batch_size", "precision", "seed")


def check_labels(
    folder: Annotated[Path, Parameter(name="DIR", help="A run folder of identify or train.")],
    /,
    *,
    data: Annotated[str | None, Parameter(help="Where the images are now, if not where config.yaml says.")] = None,
    data_dir: Annotated[Path | None, Parameter(help="Where a data set with a name lies.")] = None,
    resume: Annotated[bool, Parameter(help="Go on from the checkpoint in DIR.", negative="")] = False,
    training: Annotated[Flags | None, Parameter(name="*")] = None,  # type: ignore[valid-type]
) -> None:
    """Find wrong labels among the suspects, and mark them in corrections.csv for `unskew view` and `unskew train`."""
    import unskew
    from unskew.commands import say
    from unskew.engine.processes import is_main
    from unskew.run_folder import CORRECTIONS, LABELS_CHECKPOINT, saved_config
    from unskew.view.marks import Marks
    from unskew.view.samples import in_both, read_run

    images, partition, _, _ = read_run(folder, data, data_dir)
    keep, rows = in_both(partition, images)
    learnt, partition = images.subset(rows), partition.at(keep)
    stage1 = saved_config(folder).get("identify") or {}
    options: dict[str, Any] = {name: stage1.get(name) for name in TAKEN_OVER}
    options |= {name: value for name, value in asdict(training or Flags()).items() if value is not None}
    checkpoint = folder / LABELS_CHECKPOINT
    check = unskew.check_labels(learnt, partition, checkpoint=checkpoint, resume=resume, progress=True, **options)
    if not is_main():
        return
    marks = Marks(folder / CORRECTIONS)
    before = len(marks.current())
    added = len(marks.propose(check.marks)) - before if check.marks else 0
    checkpoint.unlink(missing_ok=True)
    share = f"{check.share:.0%} (± {100 * check.error:.0f})"
    say(f"By their content, about {share} of the {check.judged:,} suspects have a wrong label.")
    if not check.marks:
        say("None of them is more likely mislabelled than not: nothing was marked.")
        return
    say(f"{len(check.marks):,} are more likely mislabelled than not; {added:,} marks were added to {marks.path}")
    say(f"Look at them with: unskew view {folder}; train without them with --partition {folder} --corrections {folder}")
