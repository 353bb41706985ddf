"""A file that Python cannot parse: nothing in it was checked, and it cannot run either."""

from torchstone.core.text import Text
from torchstone.lint.rule import MEDIUM, Rule

# the engine fires this rule itself: there is no syntax tree to look at
RULE = Rule(
    "TS002",
    "unparsable-file",
    severity=MEDIUM,
    say=Text(en="the file {problem}", zh="文件{problem}"),
    why=Text(
        en="no rule could look at it, and an import of it fails",
        zh="所有规则都无法检查它，导入它也会失败",
    ),
    suggest=Text(
        en="run `{close}`, or leave it out with --exclude", zh="运行 `{close}`，或用 --exclude 排除"
    ),
    bad="import torch\n\n\ndef loss(:\n    return 0\n",
    good="import torch\n\n\ndef loss():\n    return 0\n",
    title=Text(en="A file cannot be parsed", zh="文件无法解析"),
    page=Text(
        en="Syntax that this Python does not know (Python 2, a newer Python, a template), null bytes, an "
        "encoding other than the declared one, a notebook that is no JSON or has a broken cell. Run "
        "`check` with the Python version that the project uses. The finding counts as any other: "
        "`--fail-on` applies.",
        zh="当前 Python 不认识的语法（Python 2、更新的 Python、模板文件）、空字节、与声明不符的编码、不是 JSON 或含有损坏单元格的 "
        "notebook。请使用项目所用的 Python 版本运行 `check`。该问题与其他问题同样计入，`--fail-on` 照常生效。",
    ),
)
