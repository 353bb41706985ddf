#!/usr/bin/env bash
# Every tool once, a screenful each, on what lies in examples/; the pages are listed at the end.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

pages=build/demo
rm -rf "$pages"
mkdir -p "$pages"

# Shows a command and its output. Exit 1 means findings, which is what a demo wants; anything else
# above 0 is a failure.
show() {
    local code=0
    printf '\n$ %s\n' "$*"
    ".venv/bin/$1" "${@:2}" || code=$?
    ((code <= 1)) || { echo "demo: exit code $code, expected 0 or 1" >&2; exit "$code"; }
}
# The same once more as a page, in silence.
page() {
    local code=0
    .venv/bin/torchstone "$2" --output "$pages/$1.html" --quiet "${@:3}" 2>"$pages/errors.txt" || code=$?
    ((code <= 1)) || { cat "$pages/errors.txt" >&2; exit "$code"; }
    rm -f "$pages/errors.txt"
}

project=examples/train_project
show torchstone check "$project" --format concise --select precision,distributed
page check check "$project"

model=(cost hf:deepseek_v3 --dtype bf16 --train --device h100)
plan=(--plan data=64,tensor=8,expert=64,zero=3,checkpoint=full)
show torchstone "${model[@]}" "${plan[@]}"
page cost "${model[@]}" "${plan[@]}"

show torchstone dryrun examples/wrong_shapes.py -- --batch-size 64
page dryrun dryrun examples/wrong_shapes.py -- --batch-size 64

show python examples/watched_training.py "$pages/watched"
show torchstone watch "$pages/watched"
page watch watch "$pages/watched"

kernel=(kernel verify linear_recurrence examples/recurrence_kernel.py --impl c)
show torchstone "${kernel[@]}"
page kernel kernel verify --impl c linear_recurrence examples/recurrence_kernel.py

printf '\nPages, to be opened in a browser:\n'
printf '  %s\n' "$PWD/$pages"/*.html
