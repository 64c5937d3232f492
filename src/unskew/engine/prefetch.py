"""Images that do not fit the device, fetched ahead of the step that needs them.

A thread gathers the rows of a batch from the host (a memory map, often) into a pinned buffer; a side stream copies that
to the device while the batches before are trained on. Buffers are made once and go round.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from queue import SimpleQueue
from threading import Thread

import torch
from torch import Tensor

from unskew.data.mapping import ask_for

AHEAD = 3  # batches in the making: one is trained on, one is copied, one is gathered


class _Slot:
    """One pair of buffers, and how far the device is with them."""

    def __init__(self, pixels: Tensor, rows: int, device: torch.device) -> None:
        cuda = device.type == "cuda"
        shape = (rows, *pixels.shape[1:])
        with torch.inference_mode(False):  # another thread writes to them, whatever mode this one is in
            self.host = torch.empty(shape, dtype=pixels.dtype, pin_memory=cuda)
            self.there = self.host if device.type == "cpu" else torch.empty(shape, dtype=pixels.dtype, device=device)
        self.copied = torch.cuda.Event() if cuda else None
        self.used = torch.cuda.Event() if cuda else None


class Prefetch:
    """``for batch in Prefetch(pixels, device)(indices)``: the rows of each index tensor, on the device, in order.

    A batch is valid until the next one is asked for.
    """

    def __init__(self, pixels: Tensor, device: torch.device) -> None:
        self.pixels, self.device = pixels, device
        self._side = torch.cuda.Stream(device) if device.type == "cuda" else None
        self._slots: list[_Slot] = []

    def __call__(self, indices: Sequence[Tensor]) -> Generator[Tensor]:
        rows = max((len(index) for index in indices), default=0)
        if not self._slots or len(self._slots[0].host) < rows:
            self._slots = [_Slot(self.pixels, rows, self.device) for _ in range(AHEAD)]
        free: SimpleQueue[_Slot | None] = SimpleQueue()
        ready: SimpleQueue[_Slot | BaseException] = SimpleQueue()
        for slot in self._slots:
            free.put(slot)
        thread = Thread(target=self._work, args=(indices, free, ready), name="unskew prefetch", daemon=True)
        thread.start()
        try:
            for index in indices:
                slot = ready.get()
                if isinstance(slot, BaseException):
                    raise slot
                if slot.copied is not None:
                    torch.cuda.current_stream(self.device).wait_event(slot.copied)
                try:
                    yield slot.there[: len(index)]
                finally:
                    if slot.used is not None:
                        slot.used.record(torch.cuda.current_stream(self.device))
                free.put(slot)
        finally:
            free.put(None)
            thread.join()

    def _work(self, indices: Sequence[Tensor], free: SimpleQueue, ready: SimpleQueue) -> None:
        try:
            for index in indices:
                slot = free.get()
                if slot is None:  # nobody takes the rest
                    return
                self._fetch(slot, index)
                ready.put(slot)
        except BaseException as error:  # a disk that fails, say: raised where the batch was asked for
            ready.put(error)

    def _fetch(self, slot: _Slot, index: Tensor) -> None:
        here = slot.host[: len(index)]
        ask_for(self.pixels, index)
        if slot.copied is None or slot.used is None or self._side is None:
            torch.index_select(self.pixels, 0, index, out=here)
            if slot.there is not slot.host:
                slot.there[: len(index)].copy_(here)
            return
        slot.copied.synchronize()  # until the copy before has left the pinned buffer
        torch.index_select(self.pixels, 0, index, out=here)
        with torch.cuda.stream(self._side):
            self._side.wait_event(slot.used)
            slot.there[: len(index)].copy_(here, non_blocking=True)
            slot.copied.record(self._side)
