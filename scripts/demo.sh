#!/usr/bin/env bash
# The main job on an example project, then every other tool in a line or a few; pages are listed at the end.
set -euo pipefail
# shellcheck disable=SC2046  # the words of `to` are flags
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
# The same once more as a page, in silence: `to NAME` are the flags for it.
to() { echo "--quiet --output $pages/$1.html"; }
page() {
    local code=0
    .venv/bin/torchstone "$@" 2>"$pages/errors.txt" || code=$?
    ((code <= 1)) || { cat "$pages/errors.txt" >&2; exit "$code"; }
    rm -f "$pages/errors.txt"
}

printf 'A review runs the project several times in a sandbox and tries every patch: one to three minutes.\n'
show torchstone review examples/review/amp --output "$pages/review"
cp "$pages/review/report.html" "$pages/review.html"

project=examples/train_project
show torchstone check "$project/model.py" --select TS102,TS206,TS216 --format concise --quiet
page check "$project" $(to check)

model=(cost hf:deepseek_v3 --dtype bf16 --train --device h100)
plan=(--plan data=64,tensor=8,expert=64,zero=3,checkpoint=full)
show torchstone "${model[@]}" "${plan[@]}" --quiet
page "${model[@]}" "${plan[@]}" $(to cost)

show torchstone dryrun examples/wrong_shapes.py --quiet -- --batch-size 64
page dryrun examples/wrong_shapes.py $(to dryrun) -- --batch-size 64

page flow trace examples/prepare_images.py --save "$pages/trace.json" $(to flow) -- 20 # the page of the plan replaces it
show torchstone flow plan "$pages/trace.json" --save "$pages/plan.json" --quiet
page flow plan "$pages/trace.json" --save "$pages/plan.json" $(to flow)

.venv/bin/python -c "import numpy as np; np.save('$pages/bbox_pred.npy', np.random.default_rng(0).normal(size=(4096, 4)) * [1000, 500, 1, 2])"
show torchstone tensor "$pages/bbox_pred.npy" --quiet
page tensor "$pages/bbox_pred.npy" $(to tensor)

printf '\n$ python examples/watched_training.py %s   # all it prints: %s\n' "$pages/watched" "$pages/training.txt"
.venv/bin/python examples/watched_training.py "$pages/watched" >"$pages/training.txt" 2>&1 || { cat "$pages/training.txt"; exit 1; }
grep -A 1 -F '[ALERT]' "$pages/training.txt"
show torchstone watch "$pages/watched" --quiet
page watch "$pages/watched" $(to watch)

kernel=(kernel verify examples/recurrence_kernel.py)
show torchstone "${kernel[@]}" --quiet
page "${kernel[@]}" $(to kernel)

printf '\nPages, to be opened in a browser:\n'
printf '  %s\n' "$PWD/$pages"/*.html
