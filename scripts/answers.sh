#!/usr/bin/env bash
# The answers that an SQL test expects stand in the test, each line in a comment below its statement:
#
#   SELECT advisory.unlock('ns', 'name');
#   --extension> WARNING:  …        only the extension says this
#   --portable> WARNING:  …         only the portable edition says this
#   --> f                           both say this
#
#   scripts/answers.sh part EDITION FOLDER FILE…   for pg_regress: FOLDER/sql has the tests without
#                                                  their answers, FOLDER/expected has what psql prints
#   scripts/answers.sh accept FILE…                writes what psql has printed into the tests:
#                                                  results/NAME.out, results/portable/NAME.out
set -euo pipefail

# psql prints the statements as well, but not each blank line: they are left out.
part() {
    local edition=$1 folder=$2 file name
    shift 2
    rm -rf "$folder/sql" "$folder/expected"
    mkdir -p "$folder/sql" "$folder/expected"
    for file in "$@"; do
        name=$(basename "$file" .sql)
        sed -E '/^(--[a-z]*>.*)?$/d' "$file" >"$folder/sql/$name.sql"
        sed -E "/^$/d; s/^--($edition)?> ?//; /^--[a-z]+>/d" "$file" >"$folder/expected/$name.out"
        # Some tests still have their answers in a file of their own.
        [ ! -e "expected/$name.out" ] || cp "expected/$name.out" "$folder/expected/"
    done
}

# mark STATEMENTS PRINTED: what psql has printed for the statements becomes comments among them.
mark() {
    { diff --minimal --old-line-format='--> %L' --new-line-format='%L' --unchanged-line-format='%L' \
        "$2" <(sed 's/^$/--blank/' "$1") || true; } | sed 's/^--> $/-->/; s/^--blank$//'
}

accept() {
    local file name work
    work=$(mktemp -d)
    for file in "$@"; do
        name=$(basename "$file" .sql)
        sed -E '/^--[a-z]*>/d' "$file" >"$work/sql"
        mark "$work/sql" "results/$name.out" >"$work/extension"
        cp "$work/extension" "$work/portable"
        [ ! -e "results/portable/$name.out" ] ||
            mark "$work/sql" "results/portable/$name.out" >"$work/portable"
        { diff --old-line-format='--extension%L' --new-line-format='--portable%L' \
            --unchanged-line-format='%L' "$work/extension" "$work/portable" || true; } |
            sed -E 's/^(--[a-z]+)--/\1/' >"$file"
    done
    rm -rf "$work"
}

"$@"
