"""The aligned samples that the run's network finds most like a given one."""

from pathlib import Path
from threading import Lock, Thread
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from unskew.engine.augment import batch_of
from unskew.engine.inference import NO_DRAWS, default_batch, pick_device
from unskew.engine.random import generator
from unskew.errors import UnskewError
from unskew.models.network import Network
from unskew.models.saved import load_model
from unskew.run_folder import MODEL, STAGE1_MODEL
from unskew.view.samples import Samples

COUNT = 8
CANDIDATES = 20_000  # of more aligned samples than this, so many are drawn


class Neighbours:
    """Features are computed once, when somebody first asks, beside the pages that are served.

    The network is built here and not in that thread: building one draws from torch's generator, which is the process's.
    """

    def __init__(self, samples: Samples, folder: Path, device: str = "auto") -> None:
        self.samples, self.folder, self.device = samples, folder, device
        self.failed, self.done = "", 0.0
        self._thread: Thread | None = None
        self._lock = Lock()
        self._features: Tensor | None = None
        self._network: Network | None = None
        try:
            self._network = self._load()
        except UnskewError as error:
            self.failed = str(error)

    def find(self, place: int) -> dict[str, Any]:
        """``{"state": "ready", "places": […]}``, or how far it is, or why there are none."""
        with self._lock:
            if self._thread is None and self._network is not None:
                self._thread = Thread(target=self._work, daemon=True)
                self._thread.start()
        if self.failed:
            return {"state": "none", "why": self.failed}
        if self._features is None:
            return {"state": "working", "done": self.done}
        query = self._of(np.array([place]))
        like = (self._features @ query[0]).topk(min(COUNT + 1, len(self._features)))
        pairs = zip(self.candidates[like.indices.numpy()].tolist(), like.values.tolist())
        found = [(other, near) for other, near in pairs if other != place][:COUNT]
        of = "" if len(self.candidates) == self.aligned else f"of {len(self.candidates):,} drawn from {self.aligned:,}"
        return {"state": "ready", "near": found, "of": of}

    def _work(self) -> None:
        try:
            self._prepare()
        except UnskewError as error:
            self.failed = str(error)
        except Exception as error:  # a network of somebody else's, a device that is full
            self.failed = f"The features could not be computed: {error}"

    def _load(self) -> Network:
        path = self.folder / MODEL
        path = path if path.is_file() else self.folder / STAGE1_MODEL
        if not path.is_file():
            raise UnskewError("The run folder holds no network to compare images by.")
        network, card = load_model(path)
        if card.size != self.samples.size:
            raise UnskewError(f"The network was trained on images of {card.size} px, and these are of another size.")
        self.where = pick_device(self.device)
        return network.to(self.where)

    def _prepare(self) -> None:
        candidates = np.flatnonzero(~self.samples.conflicting)
        self.aligned = len(candidates)
        if len(candidates) > CANDIDATES:
            drawn = torch.randperm(len(candidates), generator=generator(0, "neighbours"))[:CANDIDATES]
            candidates = candidates[np.sort(drawn.numpy())]
        if not len(candidates):
            raise UnskewError("No sample is called aligned.")
        self.candidates = candidates
        batch, parts = default_batch(self.samples.size, self.where), []
        for start in range(0, len(candidates), batch):
            parts.append(self._of(candidates[start : start + batch]))
            self.done = min(start + batch, len(candidates)) / len(candidates)
        self._features = torch.cat(parts)

    @torch.inference_mode()
    def _of(self, places: np.ndarray) -> Tensor:
        """Features of length one, so that products are cosines."""
        assert self._network is not None
        rows = torch.from_numpy(self.samples.rows[places])
        pixels = self.samples.pixels[rows].to(self.where)
        images = batch_of(pixels, torch.arange(len(rows)), "none", NO_DRAWS, self.samples.size)
        return F.normalize(self._network.features(images).float(), dim=1).cpu()
