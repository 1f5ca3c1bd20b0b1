"""Settings come from the environment, are overridden per thread, and refuse nonsense."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pyrelay import config
from pyrelay.errors import ConfigError


def test_an_empty_environment_gives_the_defaults() -> None:
    assert config.from_environment({}) == config.Config()


@pytest.mark.parametrize(
    ("variable", "text", "field", "value"),
    [
        ("PYRELAY_DEVICE", "CUDA", "device", "cuda"),
        ("PYRELAY_NUM_THREADS", "4", "num_threads", 4),
        ("PYRELAY_VERIFY", "yes", "verify", True),
        ("PYRELAY_CACHE", "0", "cache", False),
        ("PYRELAY_CACHE_SIZE", "1.5GB", "cache_size", 1_500_000_000),
        ("PYRELAY_CACHE_SIZE", "4096", "cache_size", 4096),
        ("PYRELAY_DUMP", "infer, fuse", "dump", ("infer", "fuse")),
        ("PYRELAY_DUMP", "all", "dump", config.STAGES),
        ("PYRELAY_CACHE_DIR", "/some/where", "cache_dir", "/some/where"),
    ],
)
def test_each_variable_sets_its_field(variable: str, text: str, field: str, value: object) -> None:
    assert getattr(config.from_environment({variable: text}), field) == value


@pytest.mark.parametrize(
    ("variable", "text", "words"),
    [
        ("PYRELAY_DEVICE", "tpu", "use one of cpu, cuda, cuda_emulator"),
        ("PYRELAY_NUM_THREADS", "many", "use a whole number"),
        ("PYRELAY_NUM_THREADS", "-1", "at least 0"),
        ("PYRELAY_VERIFY", "perhaps", "use 1 or 0"),
        ("PYRELAY_CACHE_SIZE", "2 parsecs", "such as 500MB"),
        ("PYRELAY_CACHE_SIZE", "nan", "such as 500MB"),
        ("PYRELAY_CACHE_SIZE", "-1GB", "at least 0"),
        ("PYRELAY_DUMP", "infer,fusion", "no stage is called 'fusion'"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_with_what_can(
    variable: str, text: str, words: str
) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        config.from_environment({variable: text})
    assert variable in str(caught.value)


def test_a_misspelt_variable_is_refused() -> None:
    with pytest.raises(ConfigError, match="PYRELAY_DEVISE") as caught:
        config.from_environment({"PYRELAY_DEVISE": "cpu"})
    assert "PYRELAY_DEVICE" in str(caught.value)


def test_a_bad_variable_is_an_error_in_a_fresh_process_too() -> None:
    run = subprocess.run(
        [sys.executable, "-c", "from pyrelay import config; config.current()"],
        env={**os.environ, "PYRELAY_NUM_THREADS": "x"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1
    assert "pyrelay.ConfigError: PYRELAY_NUM_THREADS='x' cannot be used" in run.stderr


def test_an_override_holds_inside_its_block_and_nests() -> None:
    before = config.current()
    with config.override(num_threads=3) as outer:
        assert config.current() is outer
        with config.override(verify=not outer.verify):
            assert config.current().num_threads == 3
            assert config.current().verify is not outer.verify
        assert config.current() is outer
    assert config.current() == before


def test_an_override_ends_when_its_block_raises() -> None:
    before = config.current()
    with pytest.raises(KeyError), config.override(num_threads=3):
        raise KeyError
    assert config.current() == before


def test_an_override_is_not_seen_by_another_thread() -> None:
    seen: list[int] = []
    with config.override(num_threads=7):
        thread = threading.Thread(target=lambda: seen.append(config.current().num_threads))
        thread.start()
        thread.join()
    assert seen == [config.Config().num_threads]


def test_an_override_takes_values_as_they_stand_in_config_or_as_text(tmp_path: Path) -> None:
    with config.override(dump=("infer",), cache_size="2GB", cache_dir=tmp_path) as chosen:
        assert chosen.dump == ("infer",)
        assert chosen.cache_size == 2 * 10**9
        assert chosen.cache_dir == str(tmp_path)
    with config.override(dump="infer,plan", verify=False) as chosen:
        assert chosen.dump == ("infer", "plan")
        assert chosen.verify is False


@pytest.mark.parametrize(
    "settings", [{"devise": "cpu"}, {"device": "tpu"}, {"num_threads": 1.5}, {"device": 3}]
)
def test_an_override_refuses_what_the_environment_would_not_take(
    settings: dict[str, object],
) -> None:
    with pytest.raises(ConfigError), config.override(**settings):
        pass


def test_the_table_lists_every_setting() -> None:
    rows = config.table().splitlines()
    names = ["PYRELAY_" + field.name.upper() for field in dataclasses.fields(config.Config)]
    assert [row.split()[0] for row in rows] == names


@pytest.mark.parametrize("name", ["num_thread", "cach"])
def test_a_setting_that_is_misspelled_is_guessed(name: str) -> None:
    with pytest.raises(ConfigError, match=r"did you mean (num_threads|cache)\?"):
        config.checked(name, 1)
    with pytest.raises(ConfigError, match=r"did you mean PYRELAY_(NUM_THREADS|CACHE)\?"):
        config.from_environment({f"PYRELAY_{name.upper()}": "1"})
