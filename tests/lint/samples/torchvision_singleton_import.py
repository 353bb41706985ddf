"""More samples of torchvision-singleton-import."""

BAD = (
    """\
import torchvision.transforms as transforms, os
""",
)

GOOD = (
    """\
import torchvision.models as tvm
""",
    """\
import torchvision.models
""",
)

FIXED = ("",)
