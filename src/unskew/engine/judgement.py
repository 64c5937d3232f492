"""A model's answer on every training sample, each process judging its share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from unskew.engine.inference import logits_of
from unskew.engine.method import losses
from unskew.engine.processes import rank_rows

if TYPE_CHECKING:
    from unskew.engine.engine import Engine


@dataclass(frozen=True)
class Judgement:
    predictions: Tensor
    losses: Tensor


def judge(engine: Engine, model: nn.Module) -> Judgement:
    data, store, device = engine.data, engine.store, engine.device
    share = rank_rows(len(data), engine.fabric)
    found = torch.zeros(share.length, 2, device=device)
    for part, logits in logits_of(model, store.pixels, device, share.rows, engine.settings.precision, data.size):
        here = slice(part.start - share.rows.start, part.stop - share.rows.start)
        found[here, 0] = logits.argmax(1).float()
        found[here, 1] = losses(logits, store.labels[part])
    found = engine.gather(found)[: len(data)]
    return Judgement(found[:, 0].long(), found[:, 1].contiguous())
