"""Several processes on one NVIDIA GPU: with MPS their kernels run side by side, without it in turns."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress

CONTROL = "nvidia-cuda-mps-control"


@contextmanager
def shared_gpu() -> Iterator[dict[str, str]]:
    """What to add to the environment of the processes; MPS runs as long as this does.

    Empty where there is no MPS, or the user runs one already.
    """
    program = shutil.which(CONTROL)
    if program is None or "CUDA_MPS_PIPE_DIRECTORY" in os.environ or os.path.exists("/tmp/nvidia-mps/control"):
        yield {}
        return
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        ours = {"CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}
        environment = {**os.environ, **ours}
        started = subprocess.run([program, "-d"], env=environment, capture_output=True)
        if started.returncode:
            yield {}
            return
        try:
            yield ours
        finally:
            with suppress(subprocess.TimeoutExpired):
                subprocess.run([program], input=b"quit\n", env=environment, capture_output=True, timeout=30)
