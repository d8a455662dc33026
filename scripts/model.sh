#!/usr/bin/env bash
# Searches the models of test/model with SPIN: `make model`.
#
# The head of a model lists the sizes at which all that can happen is searched; and its mutants,
# each with the error that SPIN must find in it, perhaps at a larger size: a variable of an
# assertion, or a deadlock. MODELS= selects models. The last line is "N passed, N failed"; the lines
# before it name what failed.
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

bash "$REPOSITORY/scripts/packages.sh" model

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# pan MODEL MUTANT SIZE OPTION…: what the search prints.
pan() {
    local dir options effort=-O2
    [ "$2" = none ] || effort=-O0   # it takes longer to compile than to find
    dir=$(mktemp -d -p "$work")
    cd "$dir"
    read -ra options <<<"$3"
    spin -a "-DMUTANT=$2" "${options[@]}" "$REPOSITORY/test/model/$1.pml"
    gcc "$effort" -w -DSAFETY -DCOLLAPSE -DMEMLIM=2000 -o pan pan.c
    ./pan -m100000 "${@:4}" | grep -v '^Depth='
    rm -r "$dir"
}

# search MODEL SIZE: is there no error?
search() {
    local output started=$SECONDS states
    output=$(pan "$1" none "$2" 2>&1) || true
    states=$(sed -n 's/^ *\([0-9]*\) states, stored.*/\1/p' <<<"$output")
    if grep -q 'errors: 0$' <<<"$output" &&
        ! grep -qE 'not completed|too small|BITSTATE' <<<"$output"; then
        say "ok - $1 $2: $states states ($((SECONDS - started)) s)"
    else
        say "$output"
        say "failed: $1 $2"
    fi
}

# find_error MODEL MUTANT ERROR: does SPIN find it, at one of the sizes?
find_error() {
    local output size sought="assertion violated .*\\<$3\\>"
    local option=-E         # no other kind of error
    [ "$3" != deadlock ] || sought="invalid end state" option=-A
    while read -r size; do
        output=$(pan "$1" "$2" "$size" $option 2>&1) || true
        if grep -q "^pan:1: $sought" <<<"$output"; then
            say "ok - $1, mutant $2: $3 ($size)"
            return
        fi
    done < <(sizes "$1" "size|larger")
    say "$output"
    say "failed: $1, mutant $2: not found: $3"
}

sizes() { sed -nE "s/^ \* ($2) //p" "$REPOSITORY/test/model/$1.pml"; }

mutants() { sed -nE 's/^ \* mutant ([a-z_]+).*: /\1 /p' "$REPOSITORY/test/model/$1.pml"; }

# The searches, a line each, what takes long first.
list() {
    local model
    for model in ${MODELS:-$(basename -s .pml -a "$REPOSITORY"/test/model/*.pml)}; do
        sizes "$model" size | tac | sed "s/^/search $model /"
        mutants "$model" | sed "s/^/find_error $model /"
    done
}

run_one() {
    local what model rest
    read -r what model rest <<<"$1"
    if [ "$what" = search ]; then
        search "$model" "$rest"
    else
        find_error "$model" "${rest%% *}" "${rest#* }"
    fi
}

export -f pan search find_error sizes run_one say
export work REPOSITORY
# shellcheck disable=SC2016 # expanded by the inner shell
list | xargs -d '\n' -P "$(nproc)" -n 1 bash -c 'run_one "$1"' model | tee "$work/log"
passed=$(grep -c '^ok - ' "$work/log") || true
failed=$(grep -c '^failed: ' "$work/log") || true
grep '^failed: ' "$work/log" || true
say_counts "$passed" "$failed" 0
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
