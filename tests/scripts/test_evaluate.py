"""Scoring a checkpoint: the figures, the files, and what is refused."""

from __future__ import annotations

import csv
import importlib.util
import json
import sys
from pathlib import Path

import pytest
import torch

pytest.importorskip("pytorch_lightning", reason="checkpoints need ranvier[train]")

from decoders.edits import edit_distance
from neuro import DataError, open_recordings
from scripts import cli
from scripts.evaluation.checkpoint import find_checkpoint
from scripts.output import MARKER, new_folder


def _load_tiny():
    # Test folders are no packages, so a helper beside the tests is loaded by its path.
    spec = importlib.util.spec_from_file_location("tiny", Path(__file__).with_name("tiny.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["tiny"] = module
    spec.loader.exec_module(module)
    return module


tiny = _load_tiny()


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.write_tree(tmp_path_factory.mktemp("data") / "tree")


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tiny.write_checkpoint(tmp_path_factory.mktemp("run") / "my_run" / "checkpoints" / "best.ckpt")
    log = path.parent.parent / "learning_curve.csv"
    log.write_text("update,epoch,train_loss,val_per\n1,0,4.0,\n5,0,,1.0\n")
    return path


def evaluate(capsys, *arguments: object) -> dict:
    assert cli.main(["evaluate", *map(str, arguments), "--json"]) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def refusal(capsys, *arguments: object) -> str:
    assert cli.main(["evaluate", *map(str, arguments)]) == 2
    err = capsys.readouterr().err.strip()
    assert err.startswith("ranvier evaluate: ") and len(err.splitlines()) == 1
    return err


def test_figures_and_files(checkpoint: Path, tree: Path, tmp_path: Path, capsys) -> None:
    summary = evaluate(capsys, checkpoint, "--data", tree, "--out", tmp_path / "out")
    out = tmp_path / "out"
    wanted = {MARKER, "summary.json", "sessions.csv", "trials.csv"}
    wanted |= {"confusion.png", "trial.png", "learning_curve.png", "boundary_entropy.png"}
    assert {path.name for path in out.iterdir()} == wanted
    rows = list(csv.DictReader((out / "trials.csv").open()))
    val = open_recordings(tree).split("val")
    assert [row["key"] for row in rows] == sorted(ref.key for ref in val.refs)
    # Counted again from the file that a reader sees.
    edits = [edit_by_hand(row["reference"].split(), row["hypothesis"].split()) for row in rows]
    assert edits == [int(row["edits"]) for row in rows]
    assert summary["per"] == pytest.approx(sum(edits) / sum(len(row["reference"].split()) for row in rows))
    assert summary["per_low"] <= summary["per"] <= summary["per_high"]
    assert summary["source"] == "simulated participant"
    assert summary["chance"]["empty"] == 1.0
    # Every sentence is the same, so the best constant answer is right.
    assert summary["chance"]["best_constant"] == 0.0
    assert 0 <= summary["spike_rate"] <= 1
    assert summary["parameters"]["total"] > summary["parameters"]["core"]
    assert summary["seconds"]["total"] >= summary["seconds"]["decoding"] > 0
    assert json.loads((out / "summary.json").read_text())["per"] == summary["per"]
    sessions = list(csv.DictReader((out / "sessions.csv").open()))
    assert [row["session"] for row in sessions] == list(tiny.SESSIONS)


def edit_by_hand(reference: list[str], hypothesis: list[str]) -> int:
    names = sorted({*reference, *hypothesis})
    return edit_distance([names.index(n) for n in reference], [names.index(n) for n in hypothesis])


def test_the_batch_size_changes_nothing(checkpoint: Path, tree: Path, tmp_path: Path, capsys) -> None:
    for size in (1, 5):
        evaluate(capsys, checkpoint, "--data", tree, "--out", tmp_path / str(size), "--batch-size", size, "--no-plots")
    texts = [(tmp_path / size / "trials.csv").read_text() for size in ("1", "5")]
    assert texts[0] == texts[1]


def test_the_table_names_model_split_source_and_chance(checkpoint: Path, tree: Path, tmp_path: Path, capsys) -> None:
    assert cli.main(["evaluate", str(checkpoint), "--data", str(tree), "--out", str(tmp_path / "o"), "--no-plots"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    for words in (
        "residual_snn",
        "val split",
        "simulated participant",
        "chance",
        "empty output",
        "95 %",
        "neurons active",
    ):
        assert words in out


def test_a_model_without_spikes(tree: Path, tmp_path: Path, capsys) -> None:
    path = tiny.write_checkpoint(tmp_path / "gru" / "best.ckpt", core="gru")
    summary = evaluate(capsys, path, "--data", tree, "--out", tmp_path / "out")
    assert summary["spike_rate"] is None and summary["spike_rate_layers"] == {}
    assert (tmp_path / "out" / "trial.png").is_file()


def test_a_run_folder_stands_for_its_best_checkpoint(checkpoint: Path, tree: Path, capsys) -> None:
    run = checkpoint.parent.parent
    summary = evaluate(capsys, run, "--data", tree, "--no-plots", "--overwrite")
    assert Path(summary["folder"]) == run / "evaluation-val"
    assert summary["checkpoint"] == str(checkpoint)


def test_a_folder_without_a_best_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "epoch=1.ckpt").touch()
    with pytest.raises(DataError, match=r"no best checkpoint.*epoch=1"):
        find_checkpoint(tmp_path)


def test_an_existing_folder_is_kept(checkpoint: Path, tree: Path, tmp_path: Path, capsys) -> None:
    out = tmp_path / "precious"
    out.mkdir()
    (out / "thesis.txt").write_text("mine")
    assert "exists already" in refusal(capsys, checkpoint, "--data", tree, "--out", out)
    assert "was not" in refusal(capsys, checkpoint, "--data", tree, "--out", out, "--overwrite")
    assert (out / "thesis.txt").read_text() == "mine"


def test_its_own_folder_is_replaced_when_asked(checkpoint: Path, tree: Path, tmp_path: Path, capsys) -> None:
    out = tmp_path / "out"
    evaluate(capsys, checkpoint, "--data", tree, "--out", out, "--no-plots")
    (out / "old.txt").touch()
    assert "exists already" in refusal(capsys, checkpoint, "--data", tree, "--out", out)
    evaluate(capsys, checkpoint, "--data", tree, "--out", out, "--no-plots", "--overwrite")
    assert not (out / "old.txt").exists() and (out / "summary.json").is_file()


def test_nothing_is_left_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="full"), new_folder(tmp_path / "out") as folder:
        (folder / "half.csv").write_text("a")
        raise OSError("full")
    assert list(tmp_path.iterdir()) == []


def test_new_sessions_are_named_and_may_borrow(tree: Path, tmp_path: Path, capsys) -> None:
    path = tiny.write_checkpoint(tmp_path / "best.ckpt", sessions=tiny.SESSIONS[:1])
    assert tiny.SESSIONS[1] in refusal(capsys, path, "--data", tree, "--out", tmp_path / "a")
    arguments = (path, "--data", tree, "--out", tmp_path / "b", "--no-plots", "--new-sessions", "previous")
    summary = evaluate(capsys, *arguments)
    assert any(tiny.SESSIONS[1] in note and tiny.SESSIONS[0] in note for note in summary["warnings"])


def test_borrowing_needs_an_earlier_session(tree: Path, tmp_path: Path, capsys) -> None:
    path = tiny.write_checkpoint(tmp_path / "best.ckpt", sessions=tiny.SESSIONS[1:])
    err = refusal(capsys, path, "--data", tree, "--out", tmp_path / "a", "--new-sessions", "previous")
    assert tiny.SESSIONS[0] in err


def test_days_follow_the_checkpoint_not_the_data(tmp_path: Path, capsys) -> None:
    # The second session alone: its position in the data is 0, in the checkpoint 1.
    both = tiny.write_tree(tmp_path / "both")
    path = tiny.write_checkpoint(tmp_path / "best.ckpt")
    content = torch.load(path, weights_only=True)
    content["state_dict"]["decoder.day_layers.biases"][1] += 3.0
    torch.save(content, path)
    one = tmp_path / "one"
    (one / "hdf5_data_final").mkdir(parents=True)
    (both / "hdf5_data_final" / tiny.SESSIONS[1]).rename(one / "hdf5_data_final" / tiny.SESSIONS[1])
    both = tiny.write_tree(tmp_path / "again")
    alone = evaluate(capsys, path, "--data", one, "--out", tmp_path / "a", "--no-plots")
    evaluate(capsys, path, "--data", both, "--out", tmp_path / "b", "--no-plots")
    with_other = json.loads((tmp_path / "b" / "summary.json").read_text())["sessions"][tiny.SESSIONS[1]]
    assert alone["per"] == with_other["per"]
    rows = [list(csv.DictReader((tmp_path / name / "trials.csv").open())) for name in ("a", "b")]
    wanted = [row for row in rows[1] if row["session"] == tiny.SESSIONS[1]]
    assert [row["hypothesis"] for row in rows[0]] == [row["hypothesis"] for row in wanted]


def test_other_channels_are_refused(tree: Path, tmp_path: Path, capsys) -> None:
    path = tiny.write_checkpoint(tmp_path / "best.ckpt", n_channels=10)
    err = refusal(capsys, path, "--data", tree, "--out", tmp_path / "out")
    assert "channels" in err and "found 8, expected 10" in err


def test_a_split_without_labels_is_refused(checkpoint: Path, tree: Path, tmp_path: Path, capsys) -> None:
    err = refusal(capsys, checkpoint, "--data", tree, "--out", tmp_path / "out", "--split", "test")
    assert "no labels" in err and "train, val" in err
    assert not (tmp_path / "out").exists()


def test_a_file_that_is_no_checkpoint_is_refused(tree: Path, tmp_path: Path, capsys) -> None:
    path = tmp_path / "best.ckpt"
    path.write_bytes(b"not a checkpoint")
    assert "best.ckpt" in refusal(capsys, path, "--data", tree)


def test_a_missing_checkpoint_is_named(tree: Path, capsys) -> None:
    assert "nowhere" in refusal(capsys, "nowhere", "--data", tree)


def test_an_unknown_device_is_explained(checkpoint: Path, tree: Path, tmp_path: Path, capsys) -> None:
    err = refusal(capsys, checkpoint, "--data", tree, "--out", tmp_path / "o", "--device", "abacus")
    assert "abacus" in err and "ranvier doctor" in err
