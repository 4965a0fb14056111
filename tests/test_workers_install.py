"""Making environments: with a stand-in for pip, so that nothing is fetched; half-made ones are never left."""

from __future__ import annotations

from pathlib import Path

import pytest
from heavy import environment, make_ready, stand_in

from hsdkit.components import Environment
from hsdkit.errors import ConfigError, PluginError
from hsdkit.workers import environments, install


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Environment:
    monkeypatch.setenv("HSDKIT_HOME", str(tmp_path / "home"))
    return environment(tmp_path)


def left() -> list[str]:
    """What is among the environments, the locks left out."""
    return sorted(p.name for p in environments.root().glob("[!.]*"))


def test_an_environment_is_made_and_kept(made: Environment, tmp_path: Path):
    said: list[str] = []
    place = install.install(made, said.append, base=stand_in(tmp_path))
    assert environments.state(made) == "ready"
    assert environments.installed_version(made) == "1.2"
    assert (place / "bin" / "python").exists()
    assert "Collecting fake==1.2" in said
    assert install.install(made, said.append, base="/nowhere") == place, "kept as it is"


def test_what_pip_says_is_the_error_and_nothing_is_left(made: Environment, tmp_path: Path):
    pip = "sys.exit('ERROR: No matching distribution found for fake==1.2')"
    with pytest.raises(PluginError, match="drafter 'fake': its packages cannot be installed: No matching distribution"):
        install.install(made, lambda line: None, base=stand_in(tmp_path, pip))
    assert environments.state(made) == "absent"
    assert left() == []


def test_ctrl_c_leaves_nothing(made: Environment, tmp_path: Path):
    def interrupted(line: str) -> None:
        if line.startswith("Collecting"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        install.install(made, interrupted, base=stand_in(tmp_path, "import time; time.sleep(60)"))
    assert left() == []


def test_a_python_that_is_not_there_is_told(made: Environment):
    with pytest.raises(PluginError, match="no virtual environment can be made: /no/python: No such file"):
        install.install(made, lambda line: None, base="/no/python")


def test_new_pins_make_a_new_one_and_a_failure_keeps_the_old(made: Environment, tmp_path: Path):
    old = install.install(made, lambda line: None, base=stand_in(tmp_path))
    made.requirements.write_text("fake==2", encoding="utf-8")
    assert environments.state(made) == "outdated"
    with pytest.raises(PluginError):
        install.install(made, lambda line: None, base=stand_in(tmp_path, "sys.exit(1)"))
    assert left() == [old.name]
    new = install.install(made, lambda line: None, base=stand_in(tmp_path))
    assert left() == [new.name]
    assert environments.state(made) == "ready"


def test_making_it_anew_keeps_the_old_one_until_it_is_made(made: Environment, tmp_path: Path):
    place = install.install(made, lambda line: None, base=stand_in(tmp_path))
    (place / "old").touch()
    aside = place.with_name(f".{place.name}.before")
    with pytest.raises(PluginError):
        install.install(made, lambda line: None, base=stand_in(tmp_path, "sys.exit(1)"), again=True)
    assert (place / "old").exists()
    assert environments.state(made) == "ready"
    place.rename(aside)  # as after a kill
    assert install.install(made, lambda line: None, base="/nowhere") == place
    assert (place / "old").exists()
    install.install(made, lambda line: None, base=stand_in(tmp_path), again=True)
    assert not (place / "old").exists()
    assert not aside.exists()
    place.rename(aside)
    assert install.remove(made)
    assert not aside.exists()


def test_a_full_disk_and_a_python_that_says_nothing_are_told(
    made: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def full(path: Path, *_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    mute = stand_in(tmp_path).replace("stand-in", "mute")
    Path(mute).write_text(Path(stand_in(tmp_path)).read_text().replace('print("1.2")', "pass"))
    Path(mute).chmod(0o755)
    with pytest.raises(PluginError, match="is no Python: asked for a version, it said nothing"):
        install.install(made, lambda line: None, base=mute)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", full)
        with pytest.raises(PluginError, match="cannot be written: No space left on device"):
            install.install(made, lambda line: None, base=str(tmp_path / "stand-in"))
    assert left() == []


def test_what_a_killed_installation_left_counts_as_nothing_and_goes(made: Environment, tmp_path: Path):
    make_ready(made)
    (environments.folder(made) / environments.MARKER).unlink()
    assert environments.state(made) == "absent"
    install.install(made, lambda line: None, base=stand_in(tmp_path))
    assert environments.state(made) == "ready"


def test_removing(made: Environment):
    make_ready(made)
    assert install.remove(made)
    assert left() == []
    assert not install.remove(made)


def test_one_installation_at_a_time(made: Environment, tmp_path: Path):
    with install._locked(made), pytest.raises(PluginError, match="is being installed or removed by another hsdkit"):
        install.install(made, lambda line: None, base=stand_in(tmp_path))


def test_a_disk_without_locks_is_no_other_installation(made: Environment, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("fcntl.flock", refuse)
    assert not install.remove(made)


def test_an_account_without_a_home_is_told_of_the_variable(made: Environment, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HSDKIT_HOME", "~surely-nobody/x")
    with pytest.raises(ConfigError, match="HSDKIT_HOME=FOLDER must name a folder: "):
        environments.root()


def test_a_home_that_cannot_be_written_is_told(made: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HSDKIT_HOME", str(tmp_path / "file"))
    with pytest.raises(PluginError, match="HSDKIT_HOME=FOLDER names another place"):
        install.install(made, lambda line: None)


def test_environments_of_similar_names_are_not_each_other_s(made: Environment, tmp_path: Path):
    other = Environment("fake-two", made.requirements, "x", "x")
    make_ready(other)
    assert environments.others(made) == []
    assert not install.remove(made)
    assert environments.state(other) == "ready"
