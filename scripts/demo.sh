#!/usr/bin/env bash
# Checks the example project three ways (findings, fixes as a diff, an HTML page), then counts what a
# training step of DeepSeek-V3 costs.
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
cost=build/demo/cost.html
target="hf:deepseek_v3 --dtype bf16 --train --device h100 --plan data=64,tensor=8,expert=64,zero=3,checkpoint=full"
printf '\n$ torchstone cost %s\n\n' "$target"
# shellcheck disable=SC2086  # the words of the command
.venv/bin/torchstone cost $target
# shellcheck disable=SC2086
.venv/bin/torchstone cost $target --output "$cost"
watch=build/demo/watch.html
run=build/demo/watched
rm -rf "$run"
printf '\n$ python examples/watched_training.py %s\n\n' "$run"
.venv/bin/python examples/watched_training.py "$run"
printf '\n$ torchstone watch %s --output %s\n\n' "$run" "$watch"
# Exit 1 means that the run had alerts, which it must have.
.venv/bin/torchstone watch "$run" --output "$watch" || (($? == 1))
printf '\n$ torchstone kernel verify relu examples/relu_kernel.py --impl c\n\n'
.venv/bin/torchstone kernel verify relu examples/relu_kernel.py --impl c
printf '\nThe pages are %s, %s and %s: open them in a browser.\n' "$PWD/$page" "$PWD/$cost" "$PWD/$watch"
