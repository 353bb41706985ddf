"""The first example of the guide, and its snippets for looking at the results."""

# ruff: noqa
import cv2
import json
from pathlib import Path

import torchstone.aliases
from core.enhanced_tracer import EnhancedTracer
from optimizer import OptimizerManager
from migration import PipelineMigrator

# ========== 定义数据处理管道 ==========
def image_pipeline(images):
    """图像处理管道"""
    results = []
    for img in images:
        # 这些操作会被追踪
        resized = cv2.resize(img, (224, 224))
        rgb = cv2.cvtColor(resized, cv2.COLOR_BGR2RGB)
        normalized = resized / 255.0
        results.append(normalized)
    return results

# ========== 阶段1: 追踪 ==========
tracer = EnhancedTracer(max_depth=8, track_memory=True)

# 准备测试数据
import numpy as np
test_images = [np.random.rand(100, 100, 3).astype(np.float32) for _ in range(10)]

# 追踪执行
with tracer.tracing_context():
    result = image_pipeline(test_images)

# 导出数据流图
output_dir = Path("output")
output_dir.mkdir(exist_ok=True)

dataflow = tracer.export_dataflow_graph()
with open(output_dir / "dataflow.json", "w") as f:
    json.dump(dataflow, f, indent=2)

tracer.export_visualization(str(output_dir / "dataflow.svg"))

# ========== 阶段2: 优化 ==========
dag = tracer.dag_builder.dag

optimizer = OptimizerManager(
    k=2,                    # 2个分区
    coarsen_max_depth=5,
    max_iterations=100
)

# 执行优化并导出各阶段结果
result = optimizer.optimize(dag, export_dir=str(output_dir))

stats = result['statistics']
print(f"粗化: {stats['coarsening']}")
print(f"划分: {stats['partitioning']}")
print(f"优化: {stats['iteration']}")

# 生成迁移计划
migration_plan = optimizer.get_migration_plan(
    partitions=result['optimized_partitions'],
    dag=result['coarsened_dag'],
    gpu_count=1
)

with open(output_dir / "migration_plan.json", "w") as f:
    json.dump(migration_plan, f, indent=2)

# ========== 阶段3: 迁移执行 ==========
migrator = PipelineMigrator.from_plan(migration_plan)

# 应用迁移
stats = migrator.apply()
print(f"迁移状态: {stats}")

# 执行迁移后的管道 (自动使用GPU)
with migrator:
    gpu_result = image_pipeline(test_images)

# 验证结果
print(f"GPU 结果数量: {len(gpu_result)}")
print(f"结果设备: {gpu_result[0].device if hasattr(gpu_result[0], 'device') else 'numpy'}")
import logging

# 设置日志级别
logging.basicConfig(level=logging.DEBUG)

# 或针对特定模块
logging.getLogger('optimizer').setLevel(logging.DEBUG)
logging.getLogger('migration').setLevel(logging.DEBUG)
# 查看追踪到的节点
for node_id, node in tracer.dag_builder.dag.nodes.items():
    print(f"Node {node_id}: {node.name} ({node.node_type})")
    print(f"  Performance: {node.performance}")

# 查看边
for src, tgt, etype in tracer.dag_builder.dag.edges:
    print(f"Edge: {src} --{etype}--> {tgt}")
# 查看分区
for partition in result['optimized_partitions']:
    print(f"Partition {partition.id}:")
    print(f"  Center: {partition.center}")
    print(f"  Nodes: {len(partition.nodes)}")
    print(f"  Load: {partition.total_compute}")

# 查看统计
print(f"Load balance: {result['statistics']['partitioning']['load_balance']}")
# 列出支持的函数
from migration import list_supported_functions
supported = list_supported_functions()
for strategy, funcs in supported.items():
    print(f"{strategy}: {len(funcs)} functions")

# 检查迁移器状态
print(f"Applied: {migrator.is_applied()}")
print(f"Stats: {migrator.get_stats()}")
