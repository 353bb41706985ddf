"""An environment from requirements: what is installed, and how a failure is told."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from torchstone.core.errors import InputError
from torchstone.starting.building import build_environment, wanted_packages
from torchstone.starting.requirements import Requirement, declared_requirements


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
        Requirement("numpy"), Requirement("opencv-python-headless"), Requirement("pandas", ">=1.0,<2"),
        Requirement("torch"),
    )  # fmt: skip


def test_other_files_with_requirements(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "environment.yml").write_text(
        "name: x\ndependencies:\n  - python=3.7\n  - scipy=1.2\n  - pip:\n    - tqdm==4.1\n"
    )
    (tmp_path / "setup.py").write_text("setup(install_requires=['einops>=0.3', \"rich\"])")
    (tmp_path / "pyproject.toml").write_text("[project]\nname='x'\ndependencies=['pyyaml~=6.0']\n")
    found = {str(item) for item in declared_requirements(tmp_path)}
    assert found == {"scipy==1.2.*", "tqdm==4.1", "einops>=0.3", "rich", "pyyaml~=6.0"}


def test_wheels_only_and_outside_the_project(project: Path, tmp_path: Path) -> None:
    commands: list[Sequence[str]] = []

    def run(command: Sequence[str]) -> int:
        commands.append(command)
        return 0 if len(commands) > 3 and "opencv-python-headless" not in command else 1

    built = build_environment(project, tmp_path / "cache", run)
    assert built.failed == ("numpy", "opencv-python-headless")
    assert "pandas>=1.0,<2" in commands[0]
    assert "pandas" in commands[1]
    assert all("--only-binary" in command and "-I" in command for command in commands)
    assert (Path(built.prefix) / "bin/python").exists()
    assert Path(built.prefix).is_relative_to(tmp_path / "cache")
    again = build_environment(project, tmp_path / "cache", lambda _: 1)
    assert again == built


def test_nothing_runs_without_torch(project: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="torch could not be installed"):
        build_environment(project, tmp_path / "cache", lambda _: 1)
