"""More samples of adam-on-float16."""

BAD = (
    """\
import torch

def build(model):
    model.to("cuda", torch.float16)
    return torch.optim.AdamW(model.parameters(), lr=1e-4, eps=1e-8)
""",
    """\
import torch
from transformers import AutoModel

model = AutoModel.from_pretrained("some/model", torch_dtype=torch.float16).to("cuda")
model.train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
""",
)

GOOD = (
    """\
import torch

model = Net().half()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, eps=1e-4)
""",
    """\
import torch

model = Net().half()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
""",
    """\
import torch

model = Net().bfloat16()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
""",
    """\
import torch

teacher = Net().half()
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)
""",
    """\
import torch
from peft import get_peft_model
from transformers import AutoModel

model = AutoModel.from_pretrained("some/model", dtype=torch.float16)
model = get_peft_model(model, config)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
""",
    """\
import torch
from transformers import AutoModel

model = AutoModel.from_pretrained("some/model", dtype=torch.float16)
for p in model.parameters():
    p.data = p.data.float()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
""",
    """\
import torch
from transformers import AutoModel

model = AutoModel.from_pretrained("some/model", dtype=torch.bfloat16)
teacher = AutoModel.from_pretrained("some/model", dtype=torch.float16)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
""",
)
