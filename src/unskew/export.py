"""Trained models for other programs: ONNX, checked against torch, and plain safetensors."""

import contextlib
import copy
import io
import json
import logging
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from unskew.errors import UnskewError
from unskew.files import replacing
from unskew.models.network import Network
from unskew.models.saved import write_safetensors


def export_onnx(network: Network, path: str | Path, size: int, *, tolerance: float = 1e-4) -> float:
    """Write the network as one ONNX file, once it has been seen to give torch's logits.

    The file takes ``images``, float in [0, 1] and N×3×size×size for any N, and gives ``logits``.

    Parameters
    ----------
    network : Network
        Left as it is: a copy is exported, on the CPU and in eval mode.
    path : path
    size : int
        Pixels on a side.
    tolerance : float
        The largest difference of a logit that is let through.

    Returns
    -------
    float
        The largest difference between the logits of torch and of onnxruntime, on random images.
    """
    try:
        import onnxruntime
        import onnxscript  # noqa: F401  (torch's exporter needs it)
    except ImportError as error:
        raise UnskewError(f"ONNX export is not installed ({error}): pip install 'unskew[export]'.") from error

    network = copy.deepcopy(network).cpu().float().eval()
    images = torch.rand(6, 3, size, size, generator=torch.Generator().manual_seed(0))
    with replacing(path) as temporary:
        _write(network, images[:2], temporary)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # no pinning of threads to cores, which complains in containers
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(temporary, options, providers=["CPUExecutionProvider"])
        difference = max(_difference(network, session, batch) for batch in (images[:1], images[1:]))
        if not difference <= tolerance:  # not ">": a NaN must not pass
            raise UnskewError(
                f"The ONNX model's logits differ from torch's by {difference:.2g}, more than {tolerance:g}; "
                f"{path} was not written."
            )
    return difference


def export_safetensors(network: Network, path: str | Path) -> None:
    """Write plain weights: the backbone's under its own names (torchvision's for a ResNet), and ``head.*``.

    The metadata holds, under "normalisation", the mean and std that the network takes off its images.
    """
    tensors = network.backbone.state_dict()
    head = {f"head.{name}": value for name, value in network.head.state_dict().items()}
    if clash := sorted(tensors.keys() & head.keys()):
        raise UnskewError(f"The backbone has a {clash[0]} of its own, which the file needs for the head's.")
    normalisation = {"mean": network.mean.flatten().tolist(), "std": network.std.flatten().tolist()}
    write_safetensors(path, tensors | head, {"normalisation": json.dumps(normalisation)})


def _write(network: Network, images: torch.Tensor, path: Path) -> None:
    try:
        with _quiet():
            program: Any = torch.onnx.export(
                network,
                (images,),
                dynamo=True,
                input_names=["images"],
                output_names=["logits"],
                dynamic_shapes=({0: torch.export.Dim("batch")},),
                verbose=False,
            )
    except Exception as error:  # the exporter's own kinds, and whatever tracing someone's module may raise
        reason = str(error).strip().partition("\n")[0]
        raise UnskewError(f"The network could not be exported to ONNX: {reason}") from error
    for node in program.model.graph:
        node.metadata_props.clear()  # stack traces: the paths of whoever exported it
    program.save(path, external_data=False)


def _difference(network: Network, session: Any, images: torch.Tensor) -> float:
    with torch.no_grad():
        expected = network(images)
    (found,) = session.run(["logits"], {"images": images.numpy()})
    return (torch.from_numpy(found) - expected).abs().max().item()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """The exporter talks by every channel there is; what matters comes as an exception."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
