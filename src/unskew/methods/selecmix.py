"""SelecMix (Hwang et al., NeurIPS 2022, arXiv 2211.02291): mix each sample with one that contradicts it."""

from dataclasses import dataclass, fields
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unskew.engine.engine import Engine
from unskew.engine.method import Batch, Loss, Method, Samples, losses
from unskew.engine.streams import Stream, Streams
from unskew.methods.mixing import mix
from unskew.models.network import Network
from unskew.options import option


class SelecMix(Method):
    """An auxiliary network learns a biased embedding (contrastive, easy pairs favoured as the generalised cross-entropy
    does). A coin decides for the whole batch: partners of the same label, the least similar, or of another label, the
    most similar. The classifier learns only λ·x + (1 − λ)·partner, λ ~ U(0, ½), as the partner's label.

    Partners come from the batch; updates are made on ``minibatch`` samples at a time, as in the release.
    Departures: pairs that the coin does not allow are left out of the search (the release gives them similarity 0
    or 1), and the factor q of its contrastive loss is left out.
    """

    @dataclass(frozen=True)
    class Config:
        temperature: float = option(0.2, "τ of the contrastive loss", above=0)
        q: float = option(0.7, "how much the auxiliary network favours easy pairs", least=0, most=1)
        embedding: int = option(128, "width of the embedding", least=2)
        minibatch: int = option(256, "samples an update; partners are looked for in the whole batch", least=2)

    config: Config
    model: Network
    source = "Hwang et al. 2022"
    cost = "2.3"
    recordable = True
    coupled = True

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        auxiliary = self.make_model()
        assert isinstance(auxiliary, Network)
        width = auxiliary.feature_width
        auxiliary.head = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, self.config.embedding))
        self.auxiliary = auxiliary

    def streams(self) -> Streams:
        return Streams({"all": Stream(torch.arange(len(self.data)), noise=1)}, samples=len(self.data), noise=1)

    def param_groups(self) -> list[dict[str, Any]]:
        embedding = {"params": list(self.auxiliary.parameters()), "weight_decay": 1e-4}
        return [{"params": list(self.model.parameters())}, embedding]

    def train_step(self, engine: Engine, batch: Batch) -> Loss:
        samples = batch["all"]
        with engine.fabric.autocast():
            chosen = self.partners(samples, batch.noise)
        partner = Samples(samples.x[chosen], samples.y[chosen], samples.index[chosen], samples.noise)
        total = torch.zeros((), device=samples.x.device)
        updates = max(len(samples.y) // self.config.minibatch, 1)
        for part in torch.arange(len(samples.y), device=samples.x.device).chunk(updates):
            some = {name: _rows(of, part) for name, of in (("all", samples), ("partner", partner))}
            loss, _ = engine.forward(Batch(some, batch.noise))
            engine.backward(loss)
            engine.step()
            total = total + loss.detach() / updates
        return total, {}

    @torch.no_grad()
    def partners(self, samples: Samples, coin: Tensor) -> Tensor:
        """For each sample the row of its partner; its own where the batch has none."""
        return choose_partners(similarities(self.auxiliary(samples.x)), samples.y, coin[0] > 0.5)

    def forward(self, batch: Batch) -> Loss:
        samples, partner = batch["all"], batch["partner"]
        lam = samples.noise[:, 0] / 2
        mixed = losses(self.model(mix(lam, samples.x, partner.x)), partner.y).mean()
        alike = similarities(self.auxiliary(samples.x))
        return mixed + contrastive_loss(alike, samples.y, self.config.temperature, self.config.q), {}


def similarities(embedded: Tensor) -> Tensor:
    """Cosine of every two rows, in full precision: bfloat16 has two digits, and every pair would be a little alike."""
    with torch.autocast(embedded.device.type, enabled=False):
        unit = F.normalize(embedded.float(), dim=1)
        return unit @ unit.T


def choose_partners(similarity: Tensor, labels: Tensor, same_label: Tensor) -> Tensor:
    """The least similar of the same label, or the most similar of another."""
    alike = labels[:, None] == labels[None, :]
    least = similarity.masked_fill(~alike, torch.inf).argmin(1)
    most = similarity.masked_fill(alike, -torch.inf).argmax(1)
    own = torch.arange(len(labels), device=labels.device)
    most = torch.where(alike.all(1), own, most)
    return torch.where(same_label, least, most)


def contrastive_loss(similarity: Tensor, labels: Tensor, temperature: float, q: float) -> Tensor:
    """Supervised contrastive loss in which a pair of probability p weighs p^q."""
    scaled = similarity / temperature
    own = torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    log_p = scaled - scaled.masked_fill(own, -torch.inf).logsumexp(1, keepdim=True)
    positive = ((labels[:, None] == labels[None, :]) & ~own).float()
    weighted = log_p.detach().exp() ** q * log_p * positive
    return -(weighted.sum(1) / positive.sum(1).clamp(min=1)).mean()


def _rows(samples: Samples, rows: Tensor) -> Samples:
    return Samples(*(getattr(samples, field.name)[rows] for field in fields(samples)))
