import pytest
import torch

import unskew
from unskew.engine import store
from unskew.engine.augment import batch_of
from unskew.engine.engine import Engine
from unskew.engine.fit import decide, fit
from unskew.engine.inference import default_batch, pick_device
from unskew.engine.method import Batch, Loss, losses
from unskew.engine.store import Store
from unskew.engine.streams import Stream, Streams
from unskew.errors import UnskewError
from unskew.methods.erm import ERM
from unskew.methods.lmix import LMix
from unskew.testing import TinyBackbone, tiny_data

QUICK = {"epochs": 2, "batch_size": 16, "device": "cpu"}


def weights(run: unskew.Run) -> list[torch.Tensor]:
    return [p.detach() for p in run.model.parameters()]


def same(a: unskew.Run, b: unskew.Run) -> bool:
    return all(torch.equal(x, y) for x, y in zip(weights(a), weights(b)))


@pytest.mark.parametrize("method", ["erm", "lmix"])
def test_a_seed_decides_the_weights(tiny, method):
    def go(seed):
        torch.rand(3)  # the caller's generator is nobody's business
        return unskew.train(tiny, unskew.identify(tiny, "oracle"), method, seed=seed, model="cnn", **QUICK)

    assert same(go(0), go(0))
    assert not same(go(0), go(1))


def test_noise_keeps_its_precision_under_bfloat16(tiny):
    """In bfloat16 one uniform number in 512 would be 1, and Beta samples would lie on a coarse grid."""
    seen: list[torch.Tensor] = []

    class Noisy(ERM):
        recordable = False

        def streams(self) -> Streams:
            return Streams({"all": Stream(torch.arange(len(self.data)), noise=200)}, samples=len(self.data), noise=9)

        def forward(self, batch: Batch) -> Loss:
            seen.extend([batch["all"].noise, batch["all"].x, batch.noise])
            return super().forward(batch)

    unskew.train(tiny, method=Noisy, model="cnn", precision="bfloat16", **QUICK)
    assert {each.dtype for each in seen} == {torch.float32}
    assert max(float(each.max()) for each in seen[::3]) < 1
    assert len(seen[0].unique()) > 0.99 * seen[0].numel()


def test_the_callers_generator_is_left_as_it_was(tiny):
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    unskew.train(tiny, method="erm", model="cnn", **QUICK)
    assert torch.equal(torch.rand(1), expected)


def test_it_learns(tiny):
    run = unskew.train(tiny, method="erm", test=tiny, model="cnn", lr=3e-3, augment="none", device="cpu", epochs=25)
    assert run.result.scores is not None
    assert run.result.scores.all > 0.95
    first, last = run.metrics[0]["loss"], run.metrics[-1]["loss"]
    assert last < first / 2


def test_judging_is_in_eval_mode_and_the_models_own_mode_comes_back(tiny):
    seen = []

    class Looks(ERM):
        def epoch_end(self, engine: Engine) -> None:
            found = engine.judge(self.model)
            seen.append((found, self.model.training))
            self.model.eval()
            with torch.no_grad():
                logits = self.model(tiny.images.float() / 255)
            self.model.train()
            assert torch.equal(found.predictions, logits.argmax(1))
            assert torch.allclose(found.losses, losses(logits, tiny.labels), atol=1e-5)

    unskew.train(tiny, method=Looks, model="cnn", precision="float32", **QUICK)
    assert [training for _, training in seen] == [True, True]


def test_averaged_weights_are_what_is_returned(tiny):
    """Against an average kept by hand, from the weights after every step."""
    kept: list[torch.Tensor] = []

    class Keeps(ERM):
        def after_step(self, engine, batch: Batch, out: Loss) -> None:
            kept.append(next(self.model.parameters()).detach().clone())

        def train_step(self, engine, batch: Batch) -> Loss:
            if not kept:
                kept.append(next(self.model.parameters()).detach().clone())
            return super().train_step(engine, batch)

    run = unskew.train(tiny, method=Keeps, model="cnn", ema=0.5, **QUICK)
    average = kept[0]
    for step, weights_ in enumerate(kept[1:], 1):
        decay = min(0.5, (1 + step) / (10 + step))
        average = decay * average + (1 - decay) * weights_
    assert torch.allclose(next(run.model.parameters()), average, atol=1e-6)
    assert all(p.requires_grad for p in run.model.parameters()), "it can be trained further"


class TurnsNaN(ERM):
    """Its loss is not a number from the second step of the second epoch on."""

    def forward(self, batch: Batch) -> Loss:
        loss, metrics = super().forward(batch)
        return (loss * float("nan") if self.broken else loss), metrics

    broken = False

    def train_step(self, engine, batch):
        self.broken = engine.epoch == 1 and self.step == 1
        self.step += 1
        return super().train_step(engine, batch)

    def epoch_end(self, engine):
        self.step = 0

    step = 0


def test_a_loss_that_turns_nan_stops_names_the_step_and_keeps_the_checkpoint(tiny, tmp_path):
    with pytest.raises(UnskewError, match=r"turned NaN at epoch 2, step 2: lower its learning rate .*epoch 1 is kept"):
        unskew.train(tiny, method=TurnsNaN, model=TinyBackbone(), out=tmp_path, **QUICK)
    state = torch.load(tmp_path / "checkpoint.pt", weights_only=True)
    assert state["epoch"] == 1
    assert all(torch.isfinite(v).all() for v in state["method"].values())


def test_weights_that_the_last_step_breaks_are_not_saved(tiny, tmp_path):
    with pytest.raises(UnskewError, match="turned NaN at epoch 1"):
        unskew.train(tiny, method="erm", model=TinyBackbone(), lr=1e30, out=tmp_path, batch_size=48, epochs=1)
    assert not (tmp_path / "model.safetensors").exists()


def test_out_of_memory_names_the_batch_size(tiny):
    class Greedy(ERM):
        def forward(self, batch: Batch) -> Loss:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 GiB")

    with pytest.raises(UnskewError, match="not enough for batch size 16 at 16 px: try --batch-size 8"):
        unskew.train(tiny, method=Greedy, model=TinyBackbone(), **QUICK)


def test_per_sample_losses_stay_per_sample():
    assert losses(torch.zeros(4, 3), torch.zeros(4, dtype=torch.int64)).shape == (4,)


@pytest.mark.parametrize(("name", "words"), [("cuda:7", "torch sees"), ("tpu-ish", "no device 'tpu-ish'")])
def test_a_device_that_is_not_there(name, words):
    with pytest.raises(UnskewError, match=words):
        pick_device(name)


def test_evaluation_batches_shrink_with_the_image():
    cpu, cuda = torch.device("cpu"), torch.device("cuda")
    assert default_batch(32, cuda) > default_batch(224, cuda) > default_batch(224, cpu) >= 8


def test_compiled_training_agrees_with_eager(tiny):
    """Compilation may reorder sums: close, not equal."""
    backbone, partition = TinyBackbone(), unskew.identify(tiny, "oracle")
    runs = [
        unskew.train(tiny, partition, "lmix", model=backbone, compile=c, precision="float32", **QUICK)
        for c in (False, True)
    ]
    for a, b in zip(*map(weights, runs)):
        assert torch.allclose(a, b, atol=1e-3)


def test_a_dataset_that_stays_on_the_host_gives_the_same_batches(monkeypatch):
    """What a GPU without room does: rows are gathered on the host, and augmented in their order on the device."""
    data = tiny_data()
    index, draws = torch.tensor([7, 3, 3, 40]), torch.rand(4, 5)
    there = batch_of(*Store(data, torch.device("cpu")).step({"all": index})["all"], "crop-flip", draws)
    monkeypatch.setattr(store, "_fits", lambda pixels, device: False)
    behind = Store(data, torch.device("cpu"))
    behind.begin({"all": index[None]})
    pixels, rows = behind.step({"all": index})["all"]
    assert (pixels.shape, rows.tolist()) == ((4, 16, 16, 3), [0, 1, 2, 3])
    assert torch.equal(there, batch_of(pixels, rows, "crop-flip", draws))
    behind.end()


@pytest.mark.parametrize("able", [True, False])
def test_by_default_a_cpu_that_has_bfloat16_uses_it(tiny, monkeypatch, able):
    """The result says what was used, and what is asked for goes before what the machine has."""
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": able, "avx2": True}, raising=False)
    dtypes: list[torch.dtype] = []

    class Looks(ERM):
        def forward(self, batch: Batch) -> Loss:
            dtypes.append(self.model(batch["all"].x).dtype)
            return super().forward(batch)

    kind = {True: torch.bfloat16, False: torch.float32}
    for precision, expected in (("auto", able), ("float32", False), ("bfloat16", True)):
        run = unskew.train(tiny, method=Looks, model="cnn", precision=precision, **QUICK)
        assert set(dtypes) == {kind[expected]}, precision
        assert ("bfloat16" in run.result.device) == expected
        dtypes.clear()


def test_bfloat16_gives_every_weight_a_gradient(tiny):
    """The pass without gradient that feeds h must not leave its casts to the pass that learns."""
    missing: list[str] = []

    class Looks(LMix):
        def train_step(self, engine, batch: Batch) -> Loss:
            loss, metrics = engine.forward(batch)
            engine.backward(loss)
            missing.extend(name for name, p in self.named_parameters() if p.grad is None)
            engine.step()
            return loss, metrics

    unskew.train(tiny, unskew.identify(tiny, "oracle"), Looks, model="cnn", precision="bfloat16", **QUICK)
    assert missing == []


def test_another_partition_of_the_same_size_is_another_run(tiny, tmp_path):
    one, two = (unskew.identify(tiny, "random", seed=seed) for seed in (0, 1))
    unskew.train(tiny, one, "smix", model=TinyBackbone(), out=tmp_path, **QUICK)
    with pytest.raises(UnskewError, match="of another run: partition"):
        unskew.train(tiny, two, "smix", model=TinyBackbone(), out=tmp_path, resume=True, **QUICK)


def test_scoring_leaves_the_model_where_it_was(tiny):
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(768, 3))
    before = [p.device for p in model.parameters()]
    unskew.evaluate(model, tiny)
    assert [p.device for p in model.parameters()] == before


def test_a_checkpoint_of_another_run_is_refused(tiny, tmp_path):
    job = decide("erm", ERM, tiny, QUICK, "cnn")
    fit(job, tiny, None, tmp_path / "c.pt")
    other = decide("erm", ERM, tiny, {**QUICK, "lr": 0.5}, "cnn")
    with pytest.raises(UnskewError, match=r"of another run: lr was 0.001 there and is 0.5 now"):
        fit(other, tiny, None, tmp_path / "c.pt", resume=True)
    smaller = decide("erm", ERM, tiny, QUICK, TinyBackbone())
    with pytest.raises(UnskewError, match="of another run: model was .cnn."):
        fit(smaller, tiny, None, tmp_path / "c.pt", resume=True)


def test_another_device_or_compilation_may_go_on(tiny, tmp_path):
    job = decide("erm", ERM, tiny, {**QUICK, "device": "cpu"}, TinyBackbone())
    fit(job, tiny, None, tmp_path / "c.pt")
    again = decide("erm", ERM, tiny, {**QUICK, "device": "auto"}, TinyBackbone())
    _, engine = fit(again, tiny, None, tmp_path / "c.pt", resume=True)
    assert engine.epoch == 2
