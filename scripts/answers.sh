#!/usr/bin/env bash
# The answers that an SQL test expects stand in the test, in comments: a short one behind its
# statement, other lines below it.
#
#   SELECT advisory.unlock('ns', 'name');
#   --extension> WARNING:  …        only the extension says this
#   --portable> WARNING:  …         only the portable edition says this
#   --> f                           both say this
#   SELECT advisory.lock('ns', 'name'); --> t
#
#   scripts/answers.sh part EDITION FOLDER FILE…   for pg_regress: FOLDER/sql has the tests without
#                                                  their answers, FOLDER/expected has what psql
#                                                  prints
#   scripts/answers.sh accept FILE…                writes what psql has printed into the tests:
#                                                  results/NAME.out, results/portable/NAME.out
set -euo pipefail

statements() { sed -E '/^--[a-z]*>/d; s/; -->.*/;/' "$1"; }

# psql prints the statements as well, but not each blank line: they are left out.
part() {
    local edition=$1 folder=$2 file name
    shift 2
    rm -rf "$folder/sql" "$folder/expected"
    mkdir -p "$folder/sql" "$folder/expected"
    for file in "$@"; do
        name=$(basename "$file" .sql)
        statements "$file" | sed '/^$/d' >"$folder/sql/$name.sql"
        sed -E "/^$/d; s/; --> ?/;\\
/; s/^--($edition)?> ?//; /^--[a-z]+>/d" "$file" >"$folder/expected/$name.out"
    done
}

# mark STATEMENTS PRINTED: what psql has printed for the statements becomes comments among them.
mark() {
    { diff --minimal --unchanged-line-format='%L' \
        --old-line-format='--> %L' --new-line-format='%L' \
        "$2" <(sed 's/^$/--blank/' "$1") || true; } | sed 's/^--> $/-->/; s/^--blank$//'
}

accept() {
    local file name work
    work=$(mktemp -d)
    for file in "$@"; do
        name=$(basename "$file" .sql)
        statements "$file" >"$work/sql"
        mark "$work/sql" "results/$name.out" >"$work/extension"
        cp "$work/extension" "$work/portable"
        [ ! -e "results/portable/$name.out" ] ||
            mark "$work/sql" "results/portable/$name.out" >"$work/portable"
        { diff --old-line-format='--extension%L' --new-line-format='--portable%L' \
            --unchanged-line-format='%L' "$work/extension" "$work/portable" || true; } |
            sed -E 's/^(--[a-z]+)--/\1/' >"$file"
        # The only line of an answer stands behind its statement, if there is room.
        perl -0777 -CSD -pi -e 's{^(?!--)(.*;)\n(-->.*)\n(?!--[a-z]*>)}
            {length "$1$2" < 100 ? "$1 $2\n" : $&}gemx' "$file"
    done
    rm -rf "$work"
}

"$@"
