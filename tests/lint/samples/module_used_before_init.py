"""More samples of module-used-before-init."""

BAD = (
    """\
import torch

class Net(torch.nn.Module):
    def __init__(self, width):
        \"\"\"A net.\"\"\"
        self.width = width
        self.w = torch.nn.Parameter(torch.zeros(width))
""",
)

GOOD = (
    """\
from torch import nn

class Net(nn.Module):
    def __init__(self, width):
        self.width = width
        super().__init__()
        self.fc = nn.Linear(8, width)
""",
    """\
from torch import nn

class Net(nn.Module):
    def __init__(self, width):
        super(Net, self).__init__()
        self.fc = nn.Linear(8, width)

class Other(nn.Module):
    def __init__(self, width):
        nn.Module.__init__(self)
        self.fc = nn.Linear(8, width)
""",
    """\
from torch import nn

class Net(nn.Module):
    def __init__(self, width):
        head = nn.Linear(8, width)
        super().__init__()
        self.head = head
""",
    """\
from torch import nn

class Base(nn.Module):
    def __init__(self):
        super().__init__()

class Net(Base):
    def __init__(self, width):
        Base.__init__(self)
        self.fc = nn.Linear(8, width)
""",
)

FIXED = (
    """\
@@ -5,0 +6 @@
+        super().__init__()
""",
)
