#!/usr/bin/env bash
# Checks the example project three ways: findings, fixes as a diff, and an HTML page.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

project=examples/train_project
page=build/demo/report.html

# Exit 1 means findings, which is what a demo wants; anything else above 0 is a failure.
check() {
    local code=0
    printf '\n$ torchstone check %s\n\n' "$*"
    .venv/bin/torchstone check "$@" || code=$?
    if ((code > 1)); then
        echo "demo: torchstone check ended with exit code $code, expected 0 or 1" >&2
        exit "$code"
    fi
}

mkdir -p "$(dirname "$page")"
check "$project" --format text
check "$project" --diff
check "$project" --format html --output "$page"
printf '\nThe page is %s: open it in a browser.\n' "$PWD/$page"
