#!/usr/bin/env bash
# The tests under tools that check the extension's use of memory: `make sanitize`.
#
#   TOOLS="compiled valgrind"   only one of them
#   PARTS, TESTS, TEST_TIMEOUT  as for scripts/test.sh (TEST_TIMEOUT: default 1200)
#
# compiled: the extension is compiled with AddressSanitizer and UndefinedBehaviorSanitizer, and the
# server loads their libraries first. The parts are regress, isolation, pgtap and tap. valgrind:
# valgrind's memcheck runs the server with the usual extension. Because that is slow, the only part
# is regress, and there is no JIT, which would compile for more than half an hour. The tools write
# reports into files, which must be empty at the end.
#
# The last line is "N passed, N failed".
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

TOOLS=${TOOLS:-compiled valgrind}

passed=0 failed=0 skipped=0
reports=        # a directory that every server can write into
log=
failures=       # the lines that name what failed

# watched TITLE DEFAULT_PARTS: runs the tests, and then checks the reports of the tools.
watched() {
    local status=0 good bad aside found
    printf '\n==== %s\n' "$1"
    PARTS=${PARTS:-$2} TEST_TIMEOUT=${TEST_TIMEOUT:-1200} \
        bash "$REPOSITORY/scripts/test.sh" 2>&1 | tee "$log" || status=$?
    read -r good bad aside < <(read_counts "$log" "$status")
    [ "$bad" -eq 0 ] || read_failures "$1" "$log" >>"$failures"
    passed=$((passed + good)) failed=$((failed + bad)) skipped=$((skipped + aside))
    found=$(reported)
    if [ -z "$found" ]; then
        say "ok - nothing is reported"
        passed=$((passed + 1))
    else
        say "FAILED - reported:" "$found"
        failed=$((failed + 1))
        say "failed: $1: there are reports" >>"$failures"
    fi
    rm -f "$reports"/*
}

# All reports of the sanitizers. Of valgrind's reports, those with the extension on the stack, or at
# the origin of an uninitialized value. The other reports are about the packaged server, which does
# not tell valgrind that padding bytes may be uninitialized. If the extension flushes WAL with such
# bytes, that is no error of the extension either, so there only the origin counts.
reported() {
    local file
    for file in "$reports"/*; do
        [ -s "$file" ] || continue
        # shellcheck disable=SC2016 # Perl's variables
        perl -ne 'if ($ARGV !~ m{/valgrind\.[^/]*$}) { print; next }
            if (!/^==\d+== *$/) { $block .= $_; next unless eof }
            $cause = $block;
            $cause =~ s/^.*Uninitialised value was created//s if $block =~ /XLogFlush/;
            print $block if $cause =~ /advisory_ext\w*\.so|\.cpp:\d/;
            $block = ""' "$file"
    done
}

under_sanitizers() {
    local asan ubsan
    asan=$(realpath "$(g++ -print-file-name=libasan.so)")
    ubsan=$(realpath "$(g++ -print-file-name=libubsan.so)")
    gcc -shared -fPIC -o "$reports.so" \
        -DREPORTS="\"$reports\"" -DASAN="\"$asan\"" -DUBSAN="\"$ubsan\"" \
        "$REPOSITORY/test/sanitizers.c"
    CXX="g++ -fsanitize=address,undefined -fno-sanitize=vptr -fno-omit-frame-pointer" \
    ADVISORY_EXT_UNDER="env LD_PRELOAD=$reports.so:$asan:$ubsan:\$LD_PRELOAD" \
        watched "AddressSanitizer and UndefinedBehaviorSanitizer" \
            "regress isolation pgtap tap races"
}

under_valgrind() {
    local under="valgrind --quiet --leak-check=no --error-limit=no --track-origins=yes"
    ADVISORY_EXT_SETTINGS="${ADVISORY_EXT_SETTINGS:+$ADVISORY_EXT_SETTINGS; }jit_provider=none" \
    ADVISORY_EXT_UNDER="$under --log-file=$reports/valgrind.%p" \
        watched "valgrind's memcheck" regress
}

main() {
    local tool
    bash "$REPOSITORY/scripts/packages.sh" sanitize
    reports=$(mktemp -d "${TMPDIR:-/tmp}/$EXTENSION-sanitize.XXXXXX")
    log=$(mktemp)
    failures=$(mktemp)
    trap 'rm -rf "$reports" "$reports.so" "$log" "$failures"' EXIT
    chmod 1777 "$reports"
    say "With a packaged server the tools do not see where one piece of the server's memory" \
        "(palloc) ends and the next begins, only the blocks that these are cut from; nor what" \
        "the server itself does wrong. 'make test-assert' checks the pieces."
    for tool in $TOOLS; do
        case $tool in
            compiled) under_sanitizers ;;
            valgrind) under_valgrind ;;
            *)        die "there is no tool '$tool': choose of compiled valgrind" ;;
        esac
    done
    printf '\n'
    cat "$failures"
    say_counts "$passed" "$failed" "$skipped"
    [ "$failed" -eq 0 ]
}

main
