"""The training command: recipes, folders, Ctrl-C."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
import yaml

pytest.importorskip("pytorch_lightning", reason="training needs the extra `train`")

from decoders.training import PhonemeTask
from neuro import DataError
from scripts import cli, train
from tests.decoders.training.tiny import write_recording

TINY = [
    "--trainer.accelerator=cpu",
    "--trainer.max_steps=4",
    "--trainer.val_check_interval=2",
    "--trainer.log_every_n_steps=1",
    "--trainer.logger=false",
    "--data.batch_size=4",
]
QUICK = [*TINY, "--model.budget=null", "--model.width=8", "--model.smoothing=null"]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_recording(tmp_path_factory.mktemp("data") / "recording", channels=8)


@pytest.fixture(scope="module")
def long_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trials long enough for every recipe's patches."""
    folder = tmp_path_factory.mktemp("long") / "recording"
    return write_recording(folder, channels=8, bins_per_phoneme=(24, 28), sessions=("t15.2023.08.11",))


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_help_teaches(capsys: pytest.CaptureFixture) -> None:
    assert cli.main(["train", "--help"]) == 0
    text = capsys.readouterr().out
    assert "--resume" in text and "--model.budget" in text
    for name in train.recipes():
        assert name in text
    assert cli.main(["train"]) == 0


def test_every_option_is_listed(capsys: pytest.CaptureFixture) -> None:
    assert cli.main(["train", "fit", "--help"]) == 0
    text = capsys.readouterr().out
    for option in (
        "--model.core",
        "--model.rate_weight",
        "--data.path",
        "--checkpoint.every_minutes",
        "--run",
        "--resume",
    ):
        assert option in text
    assert "Spikes per neuron and bin" in text  # the docstring's words


def small(name: str, path: Path) -> list[str]:
    """What makes a recipe's model small enough for a test."""
    core = yaml.safe_load(path.read_text()).get("model", {}).get("core", "residual_snn")
    return ["--model.budget=null", f"--model.width={16 if core == 'transformer' else 8}"]


@pytest.mark.parametrize("name", train.recipes())
def test_every_recipe_trains(name: str, long_data: Path, tmp_path: Path) -> None:
    path = train.recipes()[name]
    argv = ["train", "fit", "--config", name, "--data.path", str(long_data), *TINY, *small(name, path)]
    assert cli.main([*argv, "--data.days_per_batch=null"]) == 0
    task = PhonemeTask.load(tmp_path / "runs" / name / "checkpoints" / "last.ckpt")
    assert task.recordings["n_channels"] == 8 and 0 < task.latest["train_loss"] < 1e3


BUDGETS = {"500k": 500_000, "2M": 2_000_000, "5M": 5_000_000}


@pytest.mark.parametrize("name", [name for name in train.recipes() if name != train.BASE])
@pytest.mark.parametrize("channels", [256, 512])
def test_every_recipe_builds_at_its_size(name: str, channels: int) -> None:
    options = yaml.safe_load(train.recipes()[name].read_text())["model"]
    with torch.device("meta"):
        counts = PhonemeTask(channels, 24, **options).decoder.parameter_counts()
    for suffix, budget in BUDGETS.items():
        if name.endswith(suffix):
            assert counts["core"] == pytest.approx(budget, rel=0.02)
    if name.endswith("demo"):
        assert counts["core"] == pytest.approx(65_000, rel=0.02)


@pytest.mark.parametrize("name", ["gru_500k", "lstm_500k", "tcn_500k", "mlp_500k", "transformer_500k"])
@pytest.mark.parametrize("budget", ["2M", "5M"])
def test_baselines_reach_the_larger_budgets_by_one_override(name: str, budget: str) -> None:
    options = {**yaml.safe_load(train.recipes()[name].read_text())["model"], "budget": budget}
    with torch.device("meta"):
        counts = PhonemeTask(512, 45, **options).decoder.parameter_counts()
    assert counts["core"] == pytest.approx(BUDGETS[budget], rel=0.02)


def test_delays_cost_no_parameters() -> None:
    for suffix in BUDGETS:
        sizes = []
        for name in (f"residual_snn_{suffix}", f"residual_snn_nodelay_{suffix}"):
            options = yaml.safe_load(train.recipes()[name].read_text())["model"]
            with torch.device("meta"):
                sizes.append(PhonemeTask(512, 45, **options).decoder.parameter_counts()["total"])
        assert sizes[0] == sizes[1]


def test_a_run_resumes_from_its_folder_alone(data: Path, tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    start = ["train", "fit", "--config", "residual_snn_demo", "--data.path", str(data), *QUICK, "--trainer.max_steps=6"]
    assert cli.main([*start, "--run", "whole"]) == 0
    said = capfd.readouterr().err
    assert "best validation PER" in said and "ranvier evaluate whole" in said
    assert "GPU available" not in said and "Tip" not in said
    saved = yaml.safe_load((tmp_path / "whole" / "config.yaml").read_text())
    assert saved["model"]["width"] == 8 and "run" not in saved and "resume" not in saved

    assert cli.main([*start, "--run", "part", "--trainer.max_steps=3", "--model.schedule=constant"]) == 0
    assert cli.main(["train", "fit", "--run", "part", "--resume", "--trainer.max_steps=6"]) == 0
    ends = [torch.load(tmp_path / run / "checkpoints/last.ckpt", weights_only=True) for run in ("whole", "part")]
    assert [end["global_step"] for end in ends] == [6, 6]

    capfd.readouterr()
    assert cli.main(["train", "validate", "--run", "whole"]) == 0
    assert "val_per" in capfd.readouterr().err


def test_an_existing_folder_is_refused_at_once(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    (tmp_path / "runs" / "gru_demo").mkdir(parents=True)
    (tmp_path / "runs" / "gru_demo" / "notes.txt").write_text("precious")
    assert cli.main(["train", "fit", "--config", "gru_demo", "--data.path", str(data), *QUICK]) == 2
    said = capsys.readouterr().err
    assert "exists already" in said and "--resume" in said and len(said.splitlines()) == 1
    assert [file.name for file in (tmp_path / "runs" / "gru_demo").iterdir()] == ["notes.txt"]


def test_resume_without_a_checkpoint_starts_from_the_beginning(data: Path, capfd: pytest.CaptureFixture) -> None:
    argv = ["train", "fit", "--config", "gru_demo", "--data.path", str(data), *QUICK, "--resume"]
    assert cli.main(argv) == 0
    assert "no checkpoint was written yet" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["fit"], "name a recipe"),
        (["fit", "--config", "residual_500k"], "no such recipe.*residual_snn_500k"),
        (["fit", "--run", "nowhere", "--resume"], "no run in this folder"),
        (["validate", "--run", "nowhere"], "no run in this folder"),
        (["fit", "--config", "gru_demo", "--data.path", "absent"], "no such file or folder"),
        (["fit", "--config", "gru_demo", "--data.path", "DATA", "--model.core", "gruu"], "unknown core"),
    ],
)
def test_mistakes_get_one_sentence(argv: list[str], words: str, data: Path, capfd: pytest.CaptureFixture) -> None:
    argv = [str(data) if argument == "DATA" else argument for argument in argv]
    assert cli.main(["train", *argv]) == 2
    said = capfd.readouterr().err
    import re

    assert re.search(words, said) and "Traceback" not in said
    assert not Path("runs").exists()


@pytest.mark.parametrize("argv", [["--model.lr", "fast"], ["--model.corre", "gru"], ["--model.schedule", "sine"]])
def test_options_of_the_wrong_type_are_refused(argv: list[str], data: Path, capfd: pytest.CaptureFixture) -> None:
    assert cli.main(["train", "fit", "--config", "gru_demo", "--data.path", str(data), *argv]) == 2
    said = capfd.readouterr().err
    assert argv[0].lstrip("-").split(".")[1] in said
    assert len(said.splitlines()) == 1, "one sentence, not the whole usage"


def test_recipes_may_be_files_names_or_several(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("model: {lr: 1.0e-3}\n")
    request = train.read_request(["fit", "--config", "gru_500k", "--config=mine.yaml", "--model.lr", "2e-3"])
    assert request.argv[:5] == ["fit", "--config", str(train.recipes()["gru_500k"]), "--config", "mine.yaml"]
    assert request.argv[5:] == ["--model.lr", "2e-3"] and request.run == Path("runs/mine")
    with pytest.raises(DataError, match="no such recipe"):
        train.find_recipe("nothing")


def test_ctrl_c_saves_says_how_to_go_on_and_exits_130(data: Path, tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    argv = ["train", "fit", "--config", "gru_demo", "--data.path", str(data), *QUICK, "--trainer.max_steps=100000"]
    argv += ["--trainer.limit_val_batches=0"]
    process = subprocess.Popen(
        [sys.executable, "-m", "scripts.cli", *argv],
        env={**os.environ, "PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"},
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    curve = tmp_path / "runs" / "gru_demo" / "learning_curve.csv"
    deadline = time.monotonic() + 600
    while not curve.exists():
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=600)[1]
    assert process.returncode == 130, said
    assert "resume with: ranvier train fit --run runs/gru_demo --resume" in said and "Traceback" not in said
    assert (tmp_path / "runs" / "gru_demo" / "checkpoints" / "last.ckpt").exists()


def test_a_refused_resume_leaves_the_recipe_as_it_was(data: Path, tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    start = ["train", "fit", "--config", "gru_demo", "--data.path", str(data), *QUICK, "--run", "mine"]
    assert cli.main(start) == 0
    saved = (tmp_path / "mine" / "config.yaml").read_text()
    capfd.readouterr()
    assert cli.main(["train", "fit", "--run", "mine", "--resume", "--model.width", "11"]) == 2
    said = capfd.readouterr().err
    assert "cannot start with these options" in said and "Traceback" not in said
    assert (tmp_path / "mine" / "config.yaml").read_text() == saved
    assert cli.main(["train", "fit", "--run", "mine", "--resume"]) == 0
    assert "nothing left to do" in capfd.readouterr().err


def test_two_trainings_never_share_a_folder(data: Path, tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    from scripts.output import only_one

    argv = ["train", "fit", "--config", "gru_demo", "--data.path", str(data), *QUICK, "--run", "mine"]
    with only_one(tmp_path / "mine", "held"):
        assert cli.main(argv) == 2
    assert "another training is at work" in capfd.readouterr().err
    assert not (tmp_path / "mine").exists()  # nothing came of it
    assert cli.main(argv) == 0


@pytest.mark.parametrize("options", [["--model.lr", "-1"], ["--data.num_workers", "-1"]], ids=str)
def test_options_that_fail_before_the_first_update_are_one_sentence(
    options: list[str], data: Path, capfd: pytest.CaptureFixture
) -> None:
    argv = ["train", "fit", "--config", "gru_demo", "--data.path", str(data), *QUICK, "--run", "mine"]
    assert cli.main([*argv, *options]) == 2
    said = capfd.readouterr().err
    assert f"(field {options[0].lstrip('-')}): found -1" in said and "Traceback" not in said
    assert cli.main(argv) == 0, "the name is free again"


def test_so_are_those_that_would_fail_in_the_first_update(data: Path, capfd: pytest.CaptureFixture) -> None:
    argv = ["train", "fit", "--config", "gru_demo", "--data.path", str(data), *QUICK, "--trainer.val_check_interval=0"]
    assert cli.main(argv) == 2
    said = capfd.readouterr().err
    assert "(field trainer.val_check_interval): found 0" in said and "Traceback" not in said
