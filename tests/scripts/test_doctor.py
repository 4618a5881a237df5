"""The doctor must work on the sick, too."""

import json

import pytest

from scripts import doctor
from scripts.cli import main


def test_json_has_every_section(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert set(report) == set(doctor.SECTIONS)
    assert report["versions"]["torch"]
    assert not any("failed" in section for section in report.values() if isinstance(section, dict))


def test_table_names_the_extras(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    installed = doctor._version
    monkeypatch.setattr(doctor, "_version", lambda name: None if name == "matplotlib" else installed(name))
    assert main(["doctor"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "matplotlib" in out and "ranvier[train]" in out


def test_a_failing_section_does_not_hide_the_others(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise RuntimeError("no driver")

    monkeypatch.setitem(doctor.SECTIONS, "devices", broken)
    assert main(["doctor", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["devices"] == {"failed": "RuntimeError: no driver"}
    assert report["versions"]["ranvier"]


def test_data_trees_are_found_by_their_names(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "b25" / "hdf5_data_final" / "t15.2023.08.13").mkdir(parents=True)
    (tmp_path / "b25" / "hdf5_data_final" / "t15.2023.08.13" / "data_train.hdf5").touch()
    (tmp_path / "competitionData" / "train").mkdir(parents=True)
    (tmp_path / "competitionData" / "train" / "t12.2022.04.28.mat").touch()
    monkeypatch.setenv("RANVIER_DATA", str(tmp_path))
    report = doctor.data()
    assert "'25" in report[str(tmp_path / "b25" / "hdf5_data_final")]
    assert "'24" in report[str(tmp_path / "competitionData")]


def test_a_named_folder_that_is_gone_is_reported(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANVIER_DATA", str(tmp_path / "gone"))
    assert doctor.data()[str(tmp_path / "gone")] == "MISSING"
