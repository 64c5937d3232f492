"""unskew: find the shortcut in a labelled image set, and train a model that does not take it.

>>> import unskew
>>> data = unskew.load("photos/")                 # doctest: +SKIP
>>> partition = unskew.identify(data)             # doctest: +SKIP
>>> run = unskew.train(data, partition)           # doctest: +SKIP
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from unskew.data import Dataset, load, load_splits
    from unskew.data.partition import Partition
    from unskew.engine.method import Batch, Method, losses
    from unskew.engine.streams import Stream, Streams
    from unskew.errors import UnskewError
    from unskew.export import export_onnx, export_safetensors
    from unskew.identifiers import identify
    from unskew.identifiers.history import PredictionHistory
    from unskew.identifiers.labels import check_labels
    from unskew.methods import METHODS
    from unskew.methods.learnable import LearnableMix
    from unskew.models import load_model
    from unskew.pages import report
    from unskew.results import Result
    from unskew.scores import Scores, evaluate
    from unskew.training import Run, train

# Imported when first asked for, so that `unskew --help` need not wait for torch.
_HOME = {
    **dict.fromkeys(("load", "load_splits", "Dataset"), "unskew.data"),
    "Partition": "unskew.data.partition",
    **dict.fromkeys(("Batch", "Method", "losses"), "unskew.engine.method"),
    **dict.fromkeys(("Stream", "Streams"), "unskew.engine.streams"),
    "UnskewError": "unskew.errors",
    **dict.fromkeys(("export_onnx", "export_safetensors"), "unskew.export"),
    "identify": "unskew.identifiers",
    "PredictionHistory": "unskew.identifiers.history",
    "check_labels": "unskew.identifiers.labels",
    "METHODS": "unskew.methods",
    "LearnableMix": "unskew.methods.learnable",
    "load_model": "unskew.models",
    "report": "unskew.pages",
    "Result": "unskew.results",
    **dict.fromkeys(("Scores", "evaluate"), "unskew.scores"),
    **dict.fromkeys(("Run", "train"), "unskew.training"),
}
__all__ = [
    "METHODS", "Batch", "Dataset", "LearnableMix", "Method", "Partition", "PredictionHistory", "Result", "Run",
    "Scores", "Stream", "Streams", "UnskewError", "check_labels", "evaluate", "export_onnx", "export_safetensors",
    "identify", "load", "load_model", "load_splits", "losses", "report", "train",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'unskew' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
