#!/usr/bin/env bash
# Makes .venv with everything that the demo, the tests and the checks need.
# A second call does nothing until pyproject.toml, constraints.txt or this file changes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf 'setup: %s\n' "$*" >&2; }
fail() { say "error: $*"; exit 1; }

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() {
    local candidate
    for candidate in python3.11 python3; do
        if new_enough "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    fail "no Python 3.11 or newer as python3.11 or python3 on PATH" \
        "(found: $(python3 --version 2>/dev/null || echo none)); install Python 3.11 and run make setup again"
}

sha256() { if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi; }

# -qq keeps errors and drops the chatter; the lines of this script show the progress.
pip() { .venv/bin/python -m pip --disable-pip-version-check -qq "$@"; }

install_python_parts() {
    if ! new_enough .venv/bin/python; then
        local python
        python="$(find_python)"
        say "making .venv with $("$python" --version)"
        "$python" -m venv --clear .venv ||
            fail "$python could not make .venv; on Debian and Ubuntu: apt-get install python3-venv"
    fi
    # Dependency groups need pip 25.1; the pip that comes with Python 3.11 is older.
    pip install -c constraints.txt pip || fail "pip could not be updated"

    # torch comes first and pinned, so that nothing below chooses a build of its own.
    local torch
    torch="$(grep '^torch==' constraints.txt)" || fail "constraints.txt has no line torch==VERSION"
    say "installing $torch (1 of 3, a minute or two)"
    pip install -c constraints.txt "$torch" || fail "$torch could not be installed; see pip's message above"
    say "installing the development tools (2 of 3)"
    pip install -c constraints.txt --group dev ||
        fail "the dev group of pyproject.toml could not be installed; see pip's message above"
    say "installing torchstone in place (3 of 3)"
    pip install -c constraints.txt --no-build-isolation --editable . ||
        fail "torchstone could not be installed; see pip's message above"
    # An installed wheel comes compiled; without this, every start would compile all rules anew
    # wherever PYTHONDONTWRITEBYTECODE is set.
    .venv/bin/python -m compileall -q src
}

# The HTML pages are tested in a real browser, and Chinese needs a font to be seen.
install_browser() {
    local name
    for name in chromium chromium-browser google-chrome; do
        if command -v "$name" >/dev/null; then return; fi
    done
    if [[ "$(id -u)" == 0 ]] && command -v apt-get >/dev/null; then
        say "installing chromium and fonts-noto-cjk with apt-get"
        if apt-get -qq update &&
            DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends \
                chromium fonts-noto-cjk >/dev/null; then
            return
        fi
        say "warning: apt-get could not install chromium; see its message above"
    fi
    # Only the browser tests need it: the demo and all other tests go on.
    say "warning: no chromium found, so the browser tests are skipped (in CI they fail); to get it:"
    say "    Debian, Ubuntu: sudo apt-get install chromium fonts-noto-cjk"
    say "    elsewhere: install Chromium or Google Chrome and put it on PATH"
}

stamp=.venv/.setup-stamp
wanted="$(cat pyproject.toml constraints.txt scripts/setup.sh | sha256)"
if [[ ! -x .venv/bin/python || "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]]; then
    install_python_parts
    printf '%s\n' "$wanted" >"$stamp"
    say "done"
fi
install_browser
