"""An environment from requirements: what is installed, and how a failure is told."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from torchstone.core.errors import InputError
from torchstone.starting.building import Finished, build_environment
from torchstone.starting.interpreters import find_interpreter
from torchstone.starting.requirements import (
    Requirement,
    declared_requirements,
    wanted_packages,
)

VERSION = f"python{sys.version_info[0]}.{sys.version_info[1]}"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / ".git").mkdir()
    (root / "requirements.txt").write_text(
        "torch==1.2\npandas>=1.0,<2  # tables\n-e git+https://example.com/x.git\nhttps://example.com/y.whl\n"
        "--index-url https://evil.example\n../local\n"
    )
    (root / "train.py").write_text(
        "import cv2, os, tools\ntry:\n    import apex\nexcept ImportError:\n    pass\n"
    )
    (root / "tools.py").write_text("")
    return root


def test_names_and_versions_only(project: Path) -> None:
    assert wanted_packages(project) == (
        Requirement("opencv-python-headless"), Requirement("pandas", ">=1.0,<2"), Requirement("setuptools", "<81"),
    )  # fmt: skip


def test_other_files_with_requirements(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "environment.yml").write_text(
        "name: x\ndependencies:\n  - python=3.7\n  - scipy=1.2\n  - pip:\n    - tqdm==4.1\n"
    )
    (tmp_path / "setup.py").write_text(
        "setup(name='x', license='MIT', install_requires=['einops>=0.3', \"rich\"])"
    )
    (tmp_path / "Dockerfile").write_text("RUN apt install vim\n")
    (tmp_path / "pyproject.toml").write_text("[project]\nname='x'\ndependencies=['pyyaml~=6.0']\n")
    found = {str(item) for item in declared_requirements(tmp_path)}
    assert found == {"scipy==1.2.*", "tqdm==4.1", "einops>=0.3", "rich", "pyyaml~=6.0"}


class Client:
    """Answers as pip does: one requirement has no wheel, one no wheel of its version, one conflicts."""

    def __init__(self) -> None:
        self.commands: list[Sequence[str]] = []

    def __call__(self, command: Sequence[str]) -> Finished:
        self.commands.append(command)
        if "--dry-run" not in command:
            return Finished(0)
        if "opencv-python-headless" in command:
            return Finished(
                1, "", "ERROR: No matching distribution found for opencv-python-headless"
            )
        if "pandas>=1.0,<2" in command:
            return Finished(
                1,
                "",
                "ERROR: Cannot install other and pandas because these package versions have conflicting dependencies.",
            )
        names = ("pandas", "torch", "nvidia-cublas")
        rows = [
            {
                "metadata": {"name": name, "version": "9"},
                "download_info": {"url": f"file:///{name}.whl"},
            }
            for name in names
        ]
        return Finished(0, json.dumps({"install": rows}))


def test_wheels_only_above_our_torch_and_outside_the_project(project: Path, tmp_path: Path) -> None:
    client = Client()
    built = build_environment(project, tmp_path / "cache", client)
    assert built.failed == ("opencv-python-headless",)
    assert built.installed == ("pandas",)  # torch is ours
    assert all("--only-binary" in command and "-I" in command for command in client.commands)
    assert client.commands[-1][-1] == "file:///pandas.whl"
    assert "--no-deps" in client.commands[-1]
    assert Path(built.prefix).is_relative_to(tmp_path / "cache")
    limits = (Path(built.prefix) / "constraints.txt").read_text()
    assert f"torch=={torch.__version__.partition('+')[0]}\n" in limits
    assert build_environment(project, tmp_path / "cache", lambda _: Finished(1)) == built
    found = find_interpreter(built.prefix, project)
    assert found.executable == ""  # ours, with these packages before its own
    assert found.packages == (str(Path(built.prefix) / "lib" / VERSION / "site-packages"),)


@pytest.mark.parametrize(
    ("stated", "installed"), [("==1.5.6", ">=1.5.6,<2"), ("~=1.2", ">=1.2,<2"), (">=1.0,<2", "")]
)
def test_a_version_without_a_wheel_becomes_a_later_one_of_its_major_number(
    stated: str, installed: str, tmp_path: Path
) -> None:
    (tmp_path / "requirements.txt").write_text(f"lightning{stated}\n")
    tried: list[str] = []

    def client(command: Sequence[str]) -> Finished:
        tried.extend(word for word in command if word.startswith("lightning"))
        if f"lightning{stated}" in command:
            return Finished(1, "", f"ERROR: No matching distribution found for lightning{stated}")
        return Finished(0, json.dumps({"install": []}))

    build_environment(tmp_path, tmp_path / "cache", client)
    assert tried == [f"lightning{stated}", f"lightning{installed}"]


def test_what_cannot_be_installed_is_an_error_of_the_input(project: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no route to host"):
        build_environment(
            project, tmp_path / "cache", lambda _: Finished(1, "", "no route to host")
        )


@pytest.mark.parametrize(
    "said", ["ERROR: No matching distribution found for visdom (from torchnet)", "ERROR: no idea"]
)
def test_one_package_that_cannot_be_had_does_not_refuse_the_others(
    said: str, tmp_path: Path
) -> None:
    (tmp_path / "requirements.txt").write_text("torchnet\npandas\n")

    def client(command: Sequence[str]) -> Finished:
        if "torchnet" in command:
            return Finished(1, "", said)
        rows = [
            {"metadata": {"name": name, "version": "9"}, "download_info": {"url": f"{name}.whl"}}
            for name in ("pandas",)
            if "pandas" in command
        ]
        return Finished(0, json.dumps({"install": rows}))

    built = build_environment(tmp_path, tmp_path / "cache", client)
    assert (built.installed, built.failed) == (("pandas",), ("torchnet",))
