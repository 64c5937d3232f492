"""Plain training (empirical risk minimisation): what takes the shortcut."""

from unskew.engine.method import Batch, Loss, Method, losses


class ERM(Method):
    """Mean cross-entropy over all samples."""

    recordable = True

    def forward(self, batch: Batch) -> Loss:
        samples = batch["all"]
        logits = self.model(samples.x)
        right = (logits.argmax(1) == samples.y).float().mean()
        return losses(logits, samples.y).mean(), {"train_accuracy": right}
