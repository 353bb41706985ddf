"""The complete example of an image pipeline, from a written plan to a proven result."""

# ruff: noqa: T201 - the lines of the guide print

from __future__ import annotations

import json

import cv2
import numpy as np
import pytest

from torchstone.dataflow import PipelineMigrator, list_supported_functions

PLAN = {
    "context_device_map": {
        "image_pipeline/cv2.resize": "cuda:0",
        "image_pipeline/cv2.cvtColor": "cuda:0",
    }
}


def image_pipeline(images):
    """图像处理管道"""
    results = []
    for img in images:
        # 这些操作会被追踪
        resized = cv2.resize(img, (224, 224))
        rgb = cv2.cvtColor(resized, cv2.COLOR_BGR2RGB)  # noqa: F841
        normalized = resized / 255.0
        results.append(normalized)
    return results


def test_example_with_a_written_plan(capsys: pytest.CaptureFixture[str]) -> None:
    test_images = [np.random.rand(100, 100, 3).astype(np.float32) for _ in range(10)]
    before = cv2.resize
    expected = image_pipeline(test_images)
    migration_plan = json.loads(json.dumps(PLAN))

    migrator = PipelineMigrator.from_plan(migration_plan, allow_rounding=True)

    # 应用迁移
    stats = migrator.apply()
    print(f"迁移状态: {stats}")

    # 执行迁移后的管道 (自动使用GPU)
    with migrator:
        gpu_result = image_pipeline(test_images)

    # 验证结果
    print(f"GPU 结果数量: {len(gpu_result)}")
    device = gpu_result[0].device if hasattr(gpu_result[0], "device") else "numpy"
    print(f"结果设备: {device}")

    assert capsys.readouterr().out.splitlines() == [
        "迁移状态: {'patched': 2, 'failed': 0, 'skipped': 0}",
        "GPU 结果数量: 10",
        "结果设备: cpu" if hasattr(np.ndarray, "device") else "结果设备: numpy",  # from numpy 2 on
    ]
    assert cv2.resize is before
    for one, other in zip(expected, gpu_result, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-6)
    report = migrator.get_stats()
    assert report["calls_migrated"] == 20
    assert report["calls_fallback"] == 0
    assert report["calls_verified"] >= 2
    assert json.loads(json.dumps(report)) == report


def test_uint8_images_are_equal_in_every_bit() -> None:
    images = [
        np.random.default_rng(i).integers(0, 256, (90 + i, 70, 3), np.uint8) for i in range(4)
    ]
    expected = image_pipeline(images)
    with PipelineMigrator.from_plan(PLAN) as migrator:
        got = image_pipeline(images)
    assert all(np.array_equal(one, other) for one, other in zip(expected, got, strict=True))
    assert migrator.get_stats()["functions"]["cv2.resize"]["migrated"] == 4


def test_state_and_supported_functions(capsys: pytest.CaptureFixture[str]) -> None:
    migrator = PipelineMigrator.from_plan(PLAN)

    # 列出支持的函数
    supported = list_supported_functions()
    for strategy, funcs in supported.items():
        print(f"{strategy}: {len(funcs)} functions")

    # 检查迁移器状态
    print(f"Applied: {migrator.is_applied()}")
    print(f"Stats: {migrator.get_stats()}")

    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        "MoveOnly", "StandardOp", "FactoryOp", "Applied", "Stats",
    ]  # fmt: skip
    assert all(int(line.split()[1]) > 0 for line in lines[:3])
    assert lines[3] == "Applied: False"
