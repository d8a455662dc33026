#!/usr/bin/env bash
# Every test there is, on a server of its own: `make test`.
#
#   PG_CONFIG=…            the server's version
#   PARTS="regress tap"    only these of: library regress isolation pgtap tap integration
#                          (integration: with pg_cron, PgBouncer, Patroni, Node, Python, Java and migration tools, from packages);
#                          or faults, which needs FAULTS=1
#   TESTS="keys 10-api"    only the tests of these names, in whatever part they are (with or without path and ending)
#   TEST_TIMEOUT=900       seconds that one part may take; a single *.t file may take a third of it
#
# The last line is "N passed, N failed", and ", N skipped" where some were. It counts single tests: a pg_regress test
# and an isolation spec as one each, TAP by its assertions.
set -euo pipefail
# shellcheck source=scripts/server.sh
. "$(dirname "${BASH_SOURCE[0]}")/server.sh"

ALL_PARTS="library regress isolation pgtap tap integration"
PARTS=${PARTS:-$ALL_PARTS}
TESTS=${TESTS:-}
TEST_TIMEOUT=${TEST_TIMEOUT:-900}

passed=0 failed=0 skipped=0
crashes_seen=0

count() { passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + ${3:-0})); }

title() { printf '\n== %s\n' "$*"; }

# Runs one part's command under the time limit, and returns its exit code.
limited() { server_run timeout --kill-after=20 "$TEST_TIMEOUT" "$@"; }

bare_name() { local name=${1##*/}; say "${name%.*}"; }

# The named files that TESTS chooses, one a line; all without TESTS.
chosen() {
    local file wanted
    for file in "$@"; do
        [ -e "$file" ] || continue
        [ -n "$TESTS" ] || { say "$file"; continue; }
        for wanted in $TESTS; do
            if [ "$(bare_name "$file")" = "$(bare_name "$wanted")" ]; then say "$file"; break; fi
        done
    done
}

# begin TITLE FILE…: reads the part's files into the array `files`. Without any, the part has failed, unless TESTS
# chose others.
begin() {
    mapfile -t files < <(chosen "${@:2}")
    if [ "${#files[@]}" -gt 0 ]; then
        title "$1"
        return 0
    elif [ -z "$TESTS" ]; then
        title "$1"
        say "FAILED: there are no tests in $(dirname "$2")"
        count 0 1
    fi
    return 1
}

# ---- The parts --------------------------------------------------------------------------------------

# The library must load into a server without a C++ run-time library. (__cxa_finalize belongs to the C library and is in
# every library.)
test_library() {
    local library
    [ -z "$TESTS" ] || return 0
    title "library: what was built"
    library=$ADVISORY_EXT_STAGE$("$PG_CONFIG" --pkglibdir)/$EXTENSION.so
    expect_nothing "no symbols of a C++ run-time library" \
        "$(nm -D --undefined-only "$library" | grep -E ' (_Z|__gxx|__cxa_)' | grep -v ' __cxa_finalize' || true)"
    expect_nothing "not linked with a C++ run-time library" "$(ldd "$library" | grep -E 'libstdc\+\+|libc\+\+' || true)"
    expect_nothing "includes point downward only (scripts/layers.pl)" "$(perl scripts/layers.pl || true)"
    expect_nothing "timeouts in documents and examples have a unit (scripts/timeouts.pl)" "$(perl scripts/timeouts.pl || true)"
    expect_nothing "META.json is as PGXN wants it, and agrees with the tree (scripts/meta.pl)" "$(perl scripts/meta.pl || true)"
    expect_nothing "make uninstall removes all that make install has installed" "$(left_by_uninstall)"
}

# In a stage of its own.
left_by_uninstall() {
    local stage=$server_dir/uninstall
    { run_make install DESTDIR="$stage" && run_make uninstall DESTDIR="$stage"; } >"$server_dir/uninstall.log" 2>&1 || cat "$server_dir/uninstall.log"
    find "$stage" -iname "*$EXTENSION*" | sed "s|^$stage||"
}

expect_nothing() {
    if [ -z "$2" ]; then
        say "ok - $1"
        count 1 0
    else
        say "FAILED - $1:" "$2"
        count 0 1
    fi
}

test_regress() {
    local files
    begin "regress: results (pg_regress)" test/sql/*.sql || return 0
    installcheck regression.diffs REGRESS="$(bare_names "${files[@]}")" ISOLATION=
}

test_isolation() {
    local files
    begin "isolation: interleavings of sessions (pg_isolation_regress)" test/isolation/specs/*.spec || return 0
    installcheck output_iso/regression.diffs ISOLATION="$(bare_names "${files[@]}")" REGRESS=
}

bare_names() {
    local file
    for file in "$@"; do printf '%s ' "$(bare_name "$file")"; done
}

# installcheck DIFFS VARIABLE…: runs make installcheck, and counts pg_regress's lines, whose form changed with 16.
installcheck() {
    local diffs=$1 output=$server_dir/installcheck.out status=0 good bad
    shift
    rm -f "$diffs"
    limited make --no-print-directory PG_CONFIG="$PG_CONFIG" "$@" installcheck >"$output" 2>&1 || status=$?
    grep -E '^(test .* \.\.\. |ok |not ok )' "$output" || true
    good=$(grep -cE '^(test .* \.\.\. ok|ok )' "$output" || true)
    bad=$(grep -cE '^(test .* \.\.\. (FAILED|failed)|not ok )' "$output" || true)
    if [ "$status" -ne 0 ]; then
        [ "$bad" -gt 0 ] || { bad=1; say "FAILED: make installcheck ($(exit_reason "$status"))"; cat "$output"; }
        [ ! -s "$diffs" ] || cat "$diffs"
    fi
    count "$good" "$bad"
}

exit_reason() {
    if [ "$1" -eq 124 ]; then say "took longer than $TEST_TIMEOUT s"; else say "exit code $1"; fi
}

# The pgTAP files share a database with both extensions, and must not leave changes in it.
test_pgtap() {
    local files
    begin "pgtap: the shape of the API, privileges, behaviour" test/pgtap/*.sql || return 0
    if ! has_server_file "$PG_CONFIG" extension/pgtap.control; then
        say "skipped: there is no pgTAP for PostgreSQL $(pg_major "$PG_CONFIG") here"
        count 0 0 "${#files[@]}"
        return
    fi
    if ! psql -XqAt -v ON_ERROR_STOP=1 -c 'CREATE DATABASE advisory_pgtap' -c '\connect advisory_pgtap' \
        -c 'CREATE EXTENSION pgtap' -c "CREATE EXTENSION $EXTENSION"; then
        say "FAILED: a database with both extensions could not be made"
        count 0 1
        return
    fi
    PGDATABASE=advisory_pgtap run_tap "${files[@]}"
}

test_tap() {
    local files
    begin "tap: what one server session cannot show (restarts, crashes, poolers)" test/t/*.t || return 0
    run_tap "${files[@]}"
}

test_integration() {
    local files
    begin "integration: the programs that it is used with" test/integration/*.t || return 0
    run_tap "${files[@]}"
}

test_faults() {
    local files
    begin "faults: requests for memory that fail" test/faults/*.t || return 0
    run_tap "${files[@]}"
}

run_tap() {
    local counts=$server_dir/tap.counts status=0
    rm -f "$counts"
    limited perl scripts/tap.pl "$counts" "$((TEST_TIMEOUT / 3))" "$@" || status=$?
    if [ -s "$counts" ]; then
        # shellcheck disable=SC2046 # three numbers
        count $(cat "$counts")
    else
        say "FAILED: the test runner itself ($(exit_reason "$status"))"
        count 0 1
    fi
}

# ---- All together -----------------------------------------------------------------------------------

# Nothing here crashes the shared server on purpose: tests that crash one start their own.
look_for_crash() {
    local crashes
    crashes=$(grep -cE 'was terminated by signal|PANIC:|TRAP:' "$ADVISORY_EXT_LOG" || true)
    if [ "$crashes" -gt "$crashes_seen" ]; then
        say "FAILED: the server crashed during '$1'. The end of its log:"
        server_log 60
        count 0 1
        crashes_seen=$crashes
    fi
}

wait_for_server() {
    local second
    for second in {1..30}; do
        ! psql -XqAtc 'SELECT 1' >/dev/null 2>&1 || return 0
        sleep 1
    done
    say "FAILED: the server is gone (after $second s). The end of its log:"
    server_log 60
    count 0 1
    return 1
}

check_arguments() {
    local part
    for part in $PARTS; do
        case " $ALL_PARTS faults " in
            *" $part "*) ;;
            *) die "there is no part '$part': choose of $ALL_PARTS faults" ;;
        esac
    done
}

closing_line() {
    printf '\n'
    if [ $((passed + failed)) -eq 0 ]; then
        say "nothing ran: TESTS='$TESTS' PARTS='$PARTS' choose no test"
        failed=1
    fi
    say_counts "$passed" "$failed" "$skipped"
}

main() {
    local part
    cd "$REPOSITORY"
    check_arguments
    case " $PARTS " in
        *" integration "*) bash scripts/packages.sh integration ;;
        *) bash scripts/packages.sh test ;;
    esac
    PG_CONFIG=$(find_pg_config) || die "found no PostgreSQL: say PG_CONFIG=/path/to/pg_config"
    server_open
    say "building for $("$PG_CONFIG" --version)"
    server_stage
    server_start
    for part in $PARTS; do
        "test_$part"
        look_for_crash "$part"
        wait_for_server || break
    done
    closing_line
    [ "$failed" -eq 0 ]
}

main
