"""``ranvier simulate``: files that open, a note that they are simulated, unknown words reported and never dropped."""

from __future__ import annotations

import json

import pytest

from neuro import open_recordings
from neuro.simulate import FORMS, Participant
from scripts import cli, simulate

SMALL = ["--sessions", "2", "--trials", "8", "--setting", "easy"]


@pytest.mark.parametrize("form", FORMS)
def test_written_files_hold_the_participant(form, tmp_path, capsys):
    folder = tmp_path / "sim"
    assert cli.main(["simulate", str(folder), "--format", form, *SMALL, "--seed", "3"]) == 0
    assert "simulated" in capsys.readouterr().out.lower()
    info = json.loads((folder / "simulation.json").read_text())
    assert info["simulated"] is True and info["seed"] == 3 and info["setting"]["name"] == "easy"
    readme = (folder / "README.md").read_text()
    assert "simulated" in readme and "--seed 3" in readme
    recordings = open_recordings(folder)
    participant = Participant(form, sessions=2, trials=8, seed=3, setting="easy")
    assert recordings.sessions == participant.sessions and len(recordings) == len(participant)
    mine = {(t.session, t.sentence): t for t in participant if t.split == "val"}
    read = [recordings.split("val")[i] for i in range(len(recordings.split("val")))]
    assert read and all(
        trial.phonemes.tolist() == mine[trial.session, trial.sentence].phonemes.tolist() for trial in read
    )
    assert all(len(trial.features) == len(mine[trial.session, trial.sentence].power) for trial in read)


def test_the_same_command_writes_the_same_data(tmp_path, capsys):
    folders = [tmp_path / name for name in ("a", "b")]
    for folder in folders:
        assert cli.main(["simulate", str(folder), *SMALL, "--json"]) == 0
    summary = json.loads(capsys.readouterr().out.split("\n}\n")[0] + "\n}")
    assert summary["simulated"] and summary["summary"]["trials"] == 16
    first, second = (open_recordings(folder) for folder in folders)
    assert all((first[i].features == second[i].features).all() for i in range(0, 16, 5))


def test_an_existing_folder_stays(tmp_path, capsys):
    folder = tmp_path / "precious"
    folder.mkdir()
    (folder / "thesis.txt").write_text("do not touch")
    assert cli.main(["simulate", str(folder), *SMALL]) == 2
    assert str(folder) in capsys.readouterr().err
    assert (folder / "thesis.txt").read_text() == "do not touch"


@pytest.fixture
def text(tmp_path):
    file = tmp_path / "mine.txt"
    file.write_text("We see a dog.\nThe blorptang is here.\n\nI like zzyqx and blorptang.\nWe need water.\n")
    return file


def test_unknown_words_stop_the_command(text, tmp_path, capsys):
    assert cli.main(["simulate", str(tmp_path / "sim"), *SMALL, "--text", str(text)]) == 2
    error = capsys.readouterr().err
    for word, sentence in (
        ("blorptang", "The blorptang is here."),
        ("zzyqx", "I like zzyqx and blorptang."),
        ("blorptang", "I like zzyqx and blorptang."),
    ):
        assert any(word in line and sentence in line for line in error.splitlines())
    assert "2 of 4 sentences" in error
    assert not (tmp_path / "sim").exists()


def test_unknown_words_skipped_on_demand(text, tmp_path, capsys):
    assert cli.main(["simulate", str(tmp_path / "sim"), *SMALL, "--text", str(text), "--unknown", "skip"]) == 0
    assert "left out the sentences above: 2 of 4" in capsys.readouterr().err
    said = {open_recordings(tmp_path / "sim")[i].sentence for i in range(16)}
    assert said - {None} == {"We see a dog.", "We need water."}


def test_own_dictionary_adds_words(text, tmp_path):
    dictionary = tmp_path / "own.dict"
    dictionary.write_text("BLORPTANG  B L AO R P T AE NG\nZZYQX  Z IH K S\n")
    command = ["simulate", str(tmp_path / "sim"), *SMALL, "--text", str(text), "--lexicon", str(dictionary)]
    assert cli.main(command) == 0
    assert len({open_recordings(tmp_path / "sim")[i].sentence for i in range(16)} - {None}) == 4


def test_faulty_requests(tmp_path, capsys):
    empty = tmp_path / "empty.txt"
    empty.write_text("\n\n")
    for extra in (
        ["--text", str(empty)],
        ["--text", str(tmp_path / "absent.txt")],
        ["--trials", "2"],
        ["--seed", "-1"],
    ):
        assert cli.main(["simulate", str(tmp_path / "sim"), *SMALL, *extra]) == 2
        message = capsys.readouterr().err.strip().splitlines()
        assert len([line for line in message if line.startswith("ranvier")]) == 1
        assert not (tmp_path / "sim").exists()


@pytest.mark.parametrize("name", ["switchboard", "harvard"])
def test_prompt_files_to_try(shared_data, name, tmp_path, capsys):
    file = shared_data / "prompts" / f"{name}.txt"
    command = ["simulate", str(tmp_path / "sim"), *SMALL, "--text", str(file), "--unknown", "skip"]
    assert cli.main(command) == 0
    kept = json.loads((tmp_path / "sim" / "simulation.json").read_text())
    assert kept["sentences_left_out"] < 0.05 * sum(bool(line.strip()) for line in file.read_text().splitlines())


def test_help_says_simulated():
    assert "simulated" in simulate.HELP
