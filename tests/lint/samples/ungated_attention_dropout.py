"""More samples of ungated-attention-dropout."""

BAD = (
    """\
from torch import nn
from transformers.modeling_flash_attention_utils import _flash_attention_forward

class M2M100FlashAttention2(nn.Module):
    def forward(self, q, k, v, mask, length):
        return _flash_attention_forward(
            q, k, v, mask, length, dropout=self.dropout, is_causal=self.is_causal
        )
""",
    """\
from flash_attn import flash_attn_func
from torch import nn

class Attention(nn.Module):
    def forward(self, q, k, v):
        rate = self.drop.p
        return flash_attn_func(q, k, v, rate, causal=True)
""",
)

GOOD = (
    """\
import torch.nn.functional as F
from torch import nn

class Attention(nn.Module):
    def forward(self, q, k, v):
        p = self.dropout if self.training else 0.0
        return F.scaled_dot_product_attention(q, k, v, dropout_p=p)
""",
    """\
import torch.nn.functional as F
from torch import nn

class Attention(nn.Module):
    def forward(self, q, k, v, dropout=0.0):
        return F.scaled_dot_product_attention(q, k, v, dropout_p=dropout)
""",
    """\
import torch.nn.functional as F
from torch import nn

class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.dropout = 0.0

    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout)
""",
    """\
import torch.nn.functional as F
from torch import nn

class Attention(nn.Module):
    def forward(self, q, k, v):
        rate = self.dropout
        if not self.training:
            rate = 0.0
        return F.scaled_dot_product_attention(q, k, v, None, rate)
""",
)

FIXED = (
    """\
@@ -7 +7 @@
-            q, k, v, mask, length, dropout=self.dropout, is_causal=self.is_causal
+            q, k, v, mask, length, dropout=self.dropout if self.training else 0.0, is_causal=self.is_causal
""",
    """\
@@ -7 +7 @@
-        return flash_attn_func(q, k, v, rate, causal=True)
+        return flash_attn_func(q, k, v, rate if self.training else 0.0, causal=True)
""",
)
