"""Whatever is wrong: one sentence on stderr, exit status 2, and no traceback."""

import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from command_line import MODEL, QUICK, files

pytestmark = pytest.mark.usefixtures("photos_here")


@pytest.fixture
def refused(cli) -> Callable[..., None]:
    """The command must be refused in one sentence that has these words in it."""

    def refused(*arguments: object, told: str) -> None:
        outcome = cli(*arguments)
        assert (outcome.status, outcome.err.count("\n")) == (2, 1), outcome.err
        assert outcome.err.startswith("unskew: ")
        assert told in outcome.err, outcome.err

    return refused


@pytest.fixture
def trained(run) -> Path:
    run("train", "photos", *QUICK, "--out", "trained")
    return Path("trained")


class Evil:
    """What a pickle can do to whoever opens it."""

    def __reduce__(self):
        return os.mkdir, ("it ran code",)


def table(name: str, *lines: str) -> str:
    Path(name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return name


# What is typed


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("train", "which data? Give a folder, a file or a name"),
        ("identify", "which data?"),
        ("trian photos", 'Did you mean "train"?'),
        ("evaluate", "RUN requires an argument"),
        ("predict trained", "DATA requires an argument"),
        ("export trained", "say --onnx FILE or --safetensors FILE"),
        ("train photos dogs", "train has no use for dogs"),
        ("train digitz", "did you mean digits?"),
        ("train nowhere", "there is no file or folder nowhere"),
        ("train photos --method lmx", "no method 'lmx'; did you mean lmix"),
        ("train photos --identify phh", "no identifier or file 'phh'; did you mean ph?"),
        ("train photos --model resnet8", "did you mean resnet18"),
        ("train photos --lrr 3", "Unknown option: --lrr. Did you mean --lr?"),
        ("train photos --optimizer adm", 'Did you mean "adam"?'),
        ("train photos --log paper", '"tensorboard", "wandb"'),
        ("train photos --method.omgea 3", "'lmix' has no option 'omgea'; did you mean omega?"),
        ("train photos --identify.windw 3", "'ph' has no option 'windw'; did you mean window?"),
        ("train photos --identify random --identify.windw 3", "'random' has no option 'windw'"),
        ("train photos --method.lr 3", "'lmix' has no option 'lr'"),
        ("train photos --method.out here", "'lmix' has no option 'out'"),
        ("train photos --identify.name 5", "identify: the name must be a word, not 5"),
        ("identify photos --method.omega 3", "Unknown option: --method.omega"),
        ("demo --identify.epochs 3", "Unknown option: --identify.epochs"),
        ("evaluate trained photos --method.omega 3", "Unknown option: --method.omega"),
        ("train photos --lr abc", "--lr"),
        ("train photos --lr nan", "lr must be above 0"),
        ("train photos --lr", "--lr requires an argument"),
        ("train photos --epochs 0", "epochs must be at least 1, not 0"),
        ("train photos --epochs 1.5", "--epochs: 1.5 is not a whole number"),
        ("train photos --identify.epochs 1.5", "'ph': epochs = 1.5 is not valid"),
        ("demo --seed many", "--seed: many is not a whole number"),
        ("train photos --batch-size -3", "batch_size must be at least 1, not -3"),
        ("train photos --size -5", "size must be above 0, not -5"),
        ("train photos --size 4", "8 px is the least"),
        ("train photos --warmup 2", "warmup must be below 1, not 2"),
        ("train photos --method.omega x", "'lmix': omega = 'x' is not valid"),
        ("train photos --method.omega", "omega needs a value of its own"),
        ("train photos --method.pairing apart", "'aligned+conflicting'"),
        ("train photos --device tpu7", "no device 'tpu7': use auto, cpu"),
        ("train photos --device cuda:77", "use --device cpu"),
        ("train photos --stem photo --model cnn", "goes with resnet18 and resnet50"),
        ("train photos --partition nowhere.csv", "nowhere.csv"),
        ("train photos --partition p.csv --identify sp", "--partition or --identify, not both"),
        ("train photos --identify oracle", "needs bias labels"),
        ("train photos --config nowhere.yaml", "nowhere.yaml cannot be read: No such file"),
        ("train photos --config photos", "photos cannot be read: Is a directory"),
        ("evaluate nowhere photos", "nowhere cannot be read: No such file"),
        ("evaluate photos photos", "photos/model.safetensors cannot be read"),
        ("predict photos/cat/00.png photos", "is damaged, or is no safetensors file"),
    ],
)
def test_the_line_is_wrong(refused, line, told):
    refused(*line.split(), told=told)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("epochs: [", "is not YAML"),
        ("- epochs", "must be a mapping of options"),
        ("epochz: 3", "has no option 'epochz'; did you mean epochs?"),
        ("3: 4", "has no option '3'"),
        ("omega: 3", "omega goes under method"),
        ("window: 3", "window goes under identify"),
        ("out: here", "out is said on the command line, as --out"),
        ("method: 5", "method must be a name, or a mapping"),
        ("identify: {name: [1]}", "identify: the name must be a word"),
        ("method: {name: lmix, epochs: 3}", "'lmix' has no option 'epochs'"),
        ("size: large", "size = 'large' is not valid"),
        ("skip_bad: 3", "skip_bad = 3 is not valid"),
        ("epochs: many", "epochs = 'many' is not valid"),
        ("epochs: true", "epochs needs a value of its own, not true"),
        ("augment: flip", "augment = 'flip' is not valid"),
    ],
)
def test_the_config_is_wrong(refused, text, told):
    Path("c.yaml").write_text(text)
    refused("train", "photos", "--config", "c.yaml", told=told)


def test_debug_shows_where_and_keeps_the_status(cli):
    outcome = cli("train", "nowhere", "--debug")
    assert outcome.status == 2
    assert outcome.err.startswith("Traceback")
    assert outcome.err.splitlines()[-1].startswith("unskew: there is no file or folder nowhere")


def test_a_real_process_says_it_on_stderr_only(environment):
    command = [sys.executable, "-m", "unskew", "train", "nowhere"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"unskew: there is no file or folder nowhere.*\n", done.stderr)


# What is in the data


def test_folders(refused, run, pictures):
    Path("empty").mkdir()
    refused("train", "empty", told="empty/ holds no images")
    refused("identify", pictures(Path("single"), "cat"), told="a single class to learn, cat")
    pictures(Path("rare"))
    pictures(Path("rare"), "emu", each=1)
    refused("train", "rare", told="class emu has one image only")
    pictures(Path("apart/train"))
    pictures(Path("apart/test"), "cat", "fox", each=2)
    refused("train", "apart", told="class fox has images outside train, such as test/fox/00.png")
    pictures(Path("flat"), "below", each=2).joinpath("below").rename("unsorted")
    refused("train", "unsorted", told="holds 2 images but no class folders")
    refused("train", "photos/cat/00.png", told="is of an unknown type")


def test_images_that_cannot_be_read_are_named_or_skipped(refused, run):
    image = Path("photos/cat/03.png")
    image.write_bytes(image.read_bytes()[:200])
    Path("photos/dog/05.png").write_text("no image")
    for verb in (("train", "photos", *QUICK), ("identify", "photos", *MODEL)):
        refused(*verb, told="2 of 24 images cannot be read, first photos/cat/03.png (image file is truncated)")
    screen = run("train", "photos", *QUICK, "--skip-bad", "--out", "out").out
    assert "note: 2 of 24 images cannot be read, first photos/cat/03.png" in screen
    assert "photos: 18 images" in screen
    assert "2 of 24 images cannot be read" in Path("out/report.html").read_text(encoding="utf-8")
    for verb in ("evaluate", "predict"):
        refused(verb, "out", "photos", told="pass --skip-bad")
        run(verb, "out", "photos", "--skip-bad")
    assert run("evaluate", "out", "photos", "--skip-bad", "--json").out.startswith("{"), "notes are not JSON"
    assert len(Path("predictions.csv").read_text().splitlines()) == 23


def test_tables(refused):
    good = "photos/cat/00.png,cat"
    refused("train", table("a.csv", "file,label", good), told="a.csv has no column 'path'")
    refused("train", table("b.csv", "path,class", good), told="b.csv has no column 'label'")
    refused("train", table("c.csv", "path,label", good, "photos/cat/x.png,dog"), told="photos/cat/x.png (row 3)")
    refused("train", table("d.csv", "path,label", good, "photos/dog/00.png,7"), told="mixed label types")
    refused("train", table("e.csv", "path,label"), told="e.csv lists no images")
    refused("train", table("f.csv", "path,label", good, good), told="twice, in row 2 and row 3")


def test_arrays(refused):
    images, labels = np.random.default_rng(0).random((24, 16, 16, 3), np.float32), np.arange(24) % 2
    holes = images.copy()
    holes[3, 0, 0] = np.nan
    for name, told, arrays in [
        ("nan", "image 3 has NaN pixels", {"images": holes, "labels": labels}),
        ("shape", "their shape is (24, 16, 16, 2)", {"images": images[..., :2], "labels": labels}),
        ("length", "20 labels for 24 images", {"images": images, "labels": labels[:20]}),
        ("lacks", "has no labels or y", {"images": images}),
        ("code", "cannot be read as .npz", {"images": images, "labels": np.array([Evil()] * 24)}),
    ]:
        np.savez(f"{name}.npz", **arrays)
        refused("train", f"{name}.npz", told=told)
    Path("junk.npz").write_bytes(b"junk")
    refused("train", "junk.npz", told="junk.npz cannot be read as .npz")
    assert not Path("it ran code").exists()


def test_other_classes_than_the_models(refused, pictures, trained):
    pictures(Path("others"), "cat", "yak", each=2)
    refused("evaluate", trained, "others", told="class 'yak', which is not one of cat, dog")


# What earlier runs left, or somebody changed


def test_partitions(refused, run, pictures):
    given = ("train", "photos", "--epochs", 1, *MODEL, "--out", "out", "--partition")
    ids = [path.relative_to("photos").as_posix() for path in sorted(Path("photos").rglob("*.png"))]

    def marked(name: str, *marks: object) -> str:
        return table(name, "id,conflicting", *(f"{i},{marks[k % len(marks)]}" for k, i in enumerate(ids)))

    refused(*given, table("a.csv", "name,conflicting", "x,1"), told="no column 'id'; it has name, conflicting")
    refused(*given, table("b.csv", "id,conflicting", f"{ids[0]},1"), told="does not match photos: it lacks 19 of 20")
    refused(*given, marked("c.csv", 1, "maybe"), told="line 3: conflicting is 'maybe'; write 1 or 0")
    refused(*given, marked("d.csv", 0), told="calls 0 of the 20 training samples conflicting")
    refused(*given, marked("e.csv", 1), told="calls 20 of the 20 training samples conflicting")
    other = table("f.csv", "id,label,conflicting", *(f"{i},bird,{k % 2}" for k, i in enumerate(ids)))
    refused(*given, other, told="is 'bird' there and 'cat' in the data")
    assert not Path("out").exists()
    run(*given, marked("g.csv", "yes", "No"))


def test_nothing_found_conflicting(refused):
    """Images that say their class outright: stage 1 is right about all of them from the first epoch."""
    images = np.zeros((400, 16, 16, 3), np.uint8)
    images[::2] = 255
    np.savez("plain.npz", images=images, labels=np.arange(400) % 2)
    options = ("--identify.epochs", 1, "--identify.batch_size", 16, "--identify.lr", 0.01)
    refused("train", "plain.npz", "--epochs", 1, *options, *MODEL, told="nothing was found conflicting")


def test_checkpoints(refused, run, trained):
    again = ("train", "photos", *QUICK, "--out", trained, "--resume")
    checkpoint = trained / "checkpoint.pt"
    whole, before = checkpoint.read_bytes(), files(trained)
    run("train", "photos", "--method", "erm", "--epochs", 2, *MODEL, "--out", "erm")
    for content, told in [
        (whole[: len(whole) // 2], "is damaged"),
        (b"", "is damaged"),
        (Path("erm/checkpoint.pt").read_bytes(), "is of another run"),
        (pickle.dumps(Evil(), protocol=2), "is not a checkpoint of unskew's: it holds more than weights"),
    ]:
        checkpoint.write_bytes(content)
        refused(*again, told=f"{checkpoint} {told}")
        assert files(trained) == before | {"checkpoint.pt": content}
    torch.save({"format": 1, "method": Evil()}, checkpoint)
    refused(*again, told="holds more than weights and was not opened")
    assert not Path("it ran code").exists()
    checkpoint.unlink()
    run(*again)
    assert (trained / "model.safetensors").read_bytes() == before["model.safetensors"]


def test_weights_and_models(refused, trained):
    torch.save(Evil(), "evil.pth")
    Path("evil.pkl").write_bytes(pickle.dumps(Evil()))
    torch.save({"conv1.weight": torch.zeros(64, 3, 7, 7)}, "other.pth")
    whole = (trained / "model.safetensors").read_bytes()
    Path("half.safetensors").write_bytes(whole[: len(whole) // 2])
    for name, told in [
        ("evil.pth", "those could run code"),
        ("evil.pkl", "those could run code"),
        ("other.pth", "other.pth does not fit the model"),
        ("half.safetensors", "half.safetensors is damaged"),
        ("nowhere.pth", "nowhere.pth cannot be read: No such file"),
    ]:
        refused("train", "photos", *QUICK, "--weights", name, told=told)
    for name in ("half.safetensors", "evil.pth"):
        refused("evaluate", name, "photos", told=f"{name} is damaged, or is no safetensors file")
    assert not Path("it ran code").exists()


def test_the_run_folder_is_a_file_or_was_edited(refused, trained):
    Path("file").write_text("mine")
    for verb in (("train", "photos", *QUICK), ("identify", "photos", *MODEL), ("demo",)):
        refused(*verb, "--out", "file", told="file cannot be used as the run folder")
    refused("identify", "photos", *MODEL, "--out", "file", "--log", "tensorboard", told="cannot be used as")
    assert Path("file").read_text() == "mine"
    refused("predict", trained, "photos", "--out", trained, told="could not be written (Is a directory)")
    for name, content in [("metrics.csv", b"a,b\n1,2\n"), ("config.yaml", b"{{{"), ("config.yaml", b"\xff\xfe")]:
        (trained / name).write_bytes(content)
        refused("train", "photos", *QUICK, "--out", trained, "--resume", told=f"trained/{name} cannot be read")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--identify.window", "0"], "window must be at least 1"),
        (["--identify", "sp", "--identify.checks", "0"], "checks must be at least 1"),
        (["--identify", "sp", "--identify.gamma", "7"], "gamma must be at most 1"),
        (["--method.mixer_lr", "-1"], "mixer_lr must be above 0"),
        (["--method.target", "5"], "target must be at most 1"),
        (["--method", "smix", "--method.beta_a", "-1"], "beta_a must be at least 0.1"),
        (["--method", "smix", "--method.zeta", "-1"], "zeta must be at least 0"),
        (["--method", "mixup", "--method.mix_alpha", "0"], "mix_alpha must be at least 0.1"),
    ],
)
def test_values_out_of_range(refused, options, told):
    refused("train", "digits", *options, told=told)


@pytest.mark.skipif(sys.platform != "linux", reason="file names are bytes on Linux alone")
def test_a_file_name_that_is_not_utf8(refused, photos_here):
    photo = next(Path("photos").rglob("*.png"))
    Path(os.fsdecode(os.fsencode(photo.parent) + b"/caf\xe9.png")).write_bytes(photo.read_bytes())
    refused("identify", "photos", told="not UTF-8")
