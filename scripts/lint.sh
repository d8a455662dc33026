#!/usr/bin/env bash
# Checks the sources with tools that do not run them: `make lint`.
#
# The tools are compilers with -Werror, clang-tidy (.clang-tidy), cppcheck, shellcheck, perlcritic
# (.perlcriticrc), and checks of the layout: blanks by .gitattributes, and the length of lines by
# .editorconfig. (Not clang-format: it does not know PostgreSQL's columns, and would change half of
# all lines.) Docker's files are checked if npx and docker-compose are available. A wrong finding is
# suppressed at its place, with the reason. The last line is "N passed, N failed", and ", N skipped"
# if checks were skipped.
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

DOCKERFILE_LINTER=dockerfile-utils@0.16.3
CODE='c|cpp|h|pml|sql|psql|spec|t|pm|pl|sh|awk|py|js|ts|java'

passed=0 failed=0 skipped=0

# check TITLE COMMAND…
check() {
    local title=$1 output started=$SECONDS
    shift
    if output=$("$@" 2>&1); then
        say "ok - $title ($((SECONDS - started)) s)"
        passed=$((passed + 1))
    else
        say "FAILED - $title:" "$output"
        failed=$((failed + 1))
    fi
}

# The Makefile has -Wall and -Wextra. Bitcode is not asked for: it is the same source.
compiles_with() { CXX="$* -Werror" run_make --silent all; }

sources() { git ls-files 'src/*.cpp'; }

# (It also says how many warnings it does not show.)
clang_tidy() {
    # shellcheck disable=SC2016 # expanded by the inner shell
    sources | xargs -P "$(nproc)" -n 4 \
        sh -c 'clang-tidy --quiet "$@" -- -isystem "$0" 2>&1' "$includes" |
        { grep -vE '^[0-9]+ warnings? (generated|treated as error)' || true; }
}

# With the server's headers, which define the macros, but without findings in these headers.
cpp_check() {
    cppcheck -j "$(nproc)" --quiet --error-exitcode=1 --std=c++17 --language=c++ --inline-suppr \
        --enable=warning,performance,portability --suppress="*:$includes/*" \
        --suppress=normalCheckLevelMaxBranches `# a newer one says where it stops` \
        --suppress=constStatement `# it takes the type in "for (Mode mode : …)" for a statement` \
        --suppress=uninitMemberVar:src/core/notavailable.cpp `# it does not know initStringInfo()` \
        -I src -I "$includes" -D ADVISORY_EXT_VERSION='""' src
}

# check_with PROGRAM TITLE COMMAND…: a check that is skipped where this machine does not have the
# program.
check_with() {
    if have "$1"; then
        check "${@:2}"
    else
        say "skipped: $2 (there is no $1)"
        skipped=$((skipped + 1))
    fi
}

# npx has it from npm's registry.
dockerfile_lint() {
    npx --yes "$DOCKERFILE_LINTER" lint Dockerfile &&
        npx --yes "$DOCKERFILE_LINTER" lint docker/extension/Dockerfile
}

is_good_compose_file() {
    POSTGRES_PASSWORD=one ADVISORY_MONITOR_PASSWORD=another \
        docker-compose --file compose.yaml config --quiet
}

shell_scripts() {
    git grep -lE '^#!.*\<(ba)?sh$'
    printf "%s\n" scripts/common.sh scripts/chroots.sh scripts/runs.sh
}

has_good_blanks() { git diff --check "$(git hash-object -t tree /dev/null)"; }

# Answers of tests may be longer: they are as psql prints them.
has_short_lines() {
    # shellcheck disable=SC2016,SC2046 # Perl's variables; no file's name has blanks
    LONGEST=$(sed -n 's/^max_line_length *= *//p' .editorconfig | head -n 1) perl -CSD -ne '
        ($line = $_) =~ s/\n//;
        1 while $line =~ s/^([^\t]*)\t/$1 . " " x (4 - length($1) % 4)/e;
        if (length $line > $ENV{LONGEST} && $line !~ /^--(extension|portable)?> /) {
            print "$ARGV:$.: ", length $line, " characters\n";
            $bad = 1;
        }
        close ARGV if eof;
        END { $? = $bad }' $(code)
}

# Our own code, in whatever language.
code() {
    { git ls-files | grep -E "\.($CODE)$|(^|/)(Makefile|Dockerfile)$|^sql/surface$" &&
        shell_scripts; } | sort -u
}

main() {
    cd "$REPOSITORY"
    git rev-parse --is-inside-work-tree >/dev/null ||
        die "make lint needs a clone, since it asks git for the files"
    bash scripts/packages.sh lint
    PG_CONFIG=$(find_pg_config)
    includes=$("$PG_CONFIG" --includedir-server)
    check "blanks" has_good_blanks
    check "lines of code are short" has_short_lines
    # shellcheck disable=SC2046 # no file's name has blanks
    check "shellcheck" shellcheck -x $(shell_scripts)
    # shellcheck disable=SC2046
    check "perlcritic" \
        perlcritic --quiet --profile .perlcriticrc $(git ls-files '*.pl' '*.pm' '*.t')
    check_with npx "Dockerfiles" dockerfile_lint
    check_with docker-compose "compose.yaml" is_good_compose_file
    check "g++ -Wall -Wextra -Werror" compiles_with g++
    # The server's headers are written for gcc: another compiler knows neither all its options nor
    # all its attributes.
    check "clang++ -Wall -Wextra -Werror" \
        compiles_with clang++ -Wno-unknown-warning-option -Wno-ignored-attributes
    check "cppcheck" cpp_check
    check "clang-tidy" clang_tidy
    printf '\n'
    say_counts "$passed" "$failed" "$skipped"
    [ "$failed" -eq 0 ]
}

main
