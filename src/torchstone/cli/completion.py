"""Completion scripts for shells, made from the commands and their flags."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module

from torchstone.cli.common import CommonOptions
from torchstone.core.options import options_of
from torchstone.core.registry import names_in

SHELLS = ("bash", "zsh", "fish")
_COMMANDS = "torchstone.cli.commands"


def words_by_command() -> dict[str, list[str]]:
    """What may follow each command: its parts, or its flags; "" is the program itself."""
    found: dict[str, list[str]] = {"": [*names_in(_COMMANDS), "help", "--version", "--help"]}
    for name in names_in(_COMMANDS):
        module = import_module(f"{_COMMANDS}.{name}")
        parts = getattr(module, "SUBCOMMANDS", {})
        if parts:
            found[name] = list(parts)
            for key, part in parts.items():
                found[f"{name} {key}"] = list(_flags(part.options))
        else:
            found[name] = list(_flags(getattr(module, "OPTIONS", None)))
    return found


def _flags(options: type | None) -> Iterator[str]:
    for cls in (options, CommonOptions):
        for item in options_of(cls) if cls is not None else ():
            if not item.about.positional:
                yield item.flag
    yield "--help"


def script(shell: str, words: Mapping[str, Sequence[str]]) -> str:
    """The script of one shell."""
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](words)


def _cases(words: Mapping[str, Sequence[str]]) -> str:
    return "\n".join(f'    "{key}") words="{" ".join(values)}" ;;' for key, values in words.items())


def _bash(words: Mapping[str, Sequence[str]]) -> str:
    return f"""# torchstone completion bash > ~/.local/share/bash-completion/completions/torchstone
_torchstone() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" first="" second="" words=""
  [ "$COMP_CWORD" -gt 1 ] && first="${{COMP_WORDS[1]}}"
  [ "$COMP_CWORD" -gt 2 ] && second="${{COMP_WORDS[2]}}"
  for key in "$first $second" "$first"; do
    case "$key" in
{_cases(words)}
    esac
    [ -n "$words" ] && break
  done
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  [ "${{current#-}}" = "$current" ] && COMPREPLY+=($(compgen -f -- "$current"))
}}
complete -o filenames -F _torchstone torchstone
"""


def _zsh(words: Mapping[str, Sequence[str]]) -> str:
    return f"""#compdef torchstone
# torchstone completion zsh > ~/.zfunc/_torchstone   (with fpath+=~/.zfunc before compinit)
_torchstone() {{
  local first="" second="" words_found=""
  (( CURRENT > 2 )) && first="$words[2]"
  (( CURRENT > 3 )) && second="$words[3]"
  local key
  for key in "$first $second" "$first"; do
    local words=""
    case "$key" in
{_cases(words)}
    esac
    words_found="$words"
    [ -n "$words_found" ] && break
  done
  compadd -- ${{=words_found}}
  _files
}}
compdef _torchstone torchstone
"""


def _fish(words: Mapping[str, Sequence[str]]) -> str:
    lines = ["# torchstone completion fish > ~/.config/fish/completions/torchstone.fish"]
    for key, values in words.items():
        first, _, second = key.partition(" ")
        seen = f"__fish_seen_subcommand_from {first}" if first else "__fish_use_subcommand"
        seen += f"; and __fish_seen_subcommand_from {second}" if second else ""
        for value in values:
            kind = f"-l {value[2:]}" if value.startswith("--") else f"-a {value}"
            lines.append(f"complete -c torchstone -n '{seen}' {kind}")
    return "\n".join(lines) + "\n"
