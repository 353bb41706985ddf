"""A comment that silences nothing hides the next real finding."""

from torchstone.core.text import Text
from torchstone.lint.rule import LOW, Rule

# the engine fires this rule itself: only it knows which comments were needed
RULE = Rule(
    "TS001",
    "unused-ignore",
    severity=LOW,
    say=Text(en="`{comment}` silences nothing", zh="`{comment}` 没有屏蔽任何问题"),
    why=Text(
        en="left in place, it would hide the next real finding on this line",
        zh="保留它会掩盖该行以后出现的真实问题",
    ),
    suggest=Text(en="delete the comment", zh="删除该注释"),
    bad="import torch  # torchstone: ignore[TS101] no longer needed\n",
    fixed="""\
@@ -1 +1 @@
-import torch  # torchstone: ignore[TS101] no longer needed
+import torch
""",
    title=Text(en="An ignore comment silences nothing", zh="忽略注释没有屏蔽任何问题"),
    page=Text(
        en="Write `# torchstone: ignore[rule] reason` at the end of a finding's line, or alone on the "
        "line above it; `# torchstone: ignore-file[rule] reason` speaks for the whole file. The rule "
        "must be named, by code or name: a comment without one silences nothing and is reported "
        "here.",
        zh="在问题所在行末尾，或单独写在其上一行：`# torchstone: ignore[规则] 原因`；"
        "`# torchstone: ignore-file[规则] 原因` 对整个文件生效。必须写明规则的代码或名称：不写规则的注释不起作用，"
        "并会在此被报告。",
    ),
)
