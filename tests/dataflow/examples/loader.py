"""The second example of the guide: a DataLoader."""

# ruff: noqa
from torch.utils.data import Dataset, DataLoader
import torchstone.aliases
from core.enhanced_tracer import EnhancedTracer
from optimizer import OptimizerManager
from migration import PipelineMigrator

class ImageDataset(Dataset):
    def __init__(self, size=100):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, idx):
        # 模拟图像加载和处理
        image = self.load_image(idx)
        image = self.preprocess(image)
        return image

    def load_image(self, idx):
        import numpy as np
        return np.random.rand(256, 256, 3).astype(np.float32)

    def preprocess(self, image):
        import cv2
        image = cv2.resize(image, (224, 224))
        image = cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
        return image

# 追踪
tracer = EnhancedTracer(max_depth=10)
dataset = ImageDataset(size=16)
dataloader = DataLoader(dataset, batch_size=4, num_workers=0)

with tracer.tracing_context():
    for batch in dataloader:
        break  # 只追踪一个 batch

# 优化
dag = tracer.dag_builder.dag
optimizer = OptimizerManager(k=2)
result = optimizer.optimize(dag)

# 迁移
plan = optimizer.get_migration_plan(result['optimized_partitions'], result['coarsened_dag'], gpu_count=1)
migrator = PipelineMigrator.from_plan(plan)

# 使用迁移后的数据加载
with migrator:
    for batch in dataloader:
        # batch 的预处理现在在 GPU 上执行
        print(f"Batch shape: {batch.shape}")
        break
