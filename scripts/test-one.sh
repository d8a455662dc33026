#!/usr/bin/env bash
# Runs one test on a server of its own, and prints TAP: scripts/tap.pl calls it, in a stage that scripts/test.sh has made.
#
#   scripts/test-one.sh FILE        test/*/*.t, or pgTAP: test/pgtap/*.sql
#   scripts/test-one.sh regress     pg_regress with the tests that REGRESS_TESTS names
#   scripts/test-one.sh isolation   pg_isolation_regress with the specs that ISOLATION_TESTS names
#   scripts/test-one.sh library     what was built; without a server
#
# TEST_TIMEOUT is how many seconds it may take, and a *.t file ends itself after TEST_SECONDS. Standard error becomes comments that begin with "#!".
set -euo pipefail
exec 2> >(exec sed -u 's/^/#! /')
# shellcheck source=scripts/server.sh
. "$(dirname "${BASH_SOURCE[0]}")/server.sh"

export TEST_SECONDS=${TEST_SECONDS:-$TEST_TIMEOUT}
number=0

limited() { server_run timeout --kill-after=10 "$TEST_TIMEOUT" "$@"; }

comments() { sed 's/^/# /' "$@"; }

# ---- The library --------------------------------------------------------------------------------------

# It must load into a server without a C++ run-time library. (__cxa_finalize belongs to the C library and is in every library.)
test_library() {
    local library
    library=$ADVISORY_EXT_STAGE$("$PG_CONFIG" --pkglibdir)/$EXTENSION.so
    expect_nothing "no symbols of a C++ run-time library" \
        "$(nm -D --undefined-only "$library" | grep -E ' (_Z|__gxx|__cxa_)' | grep -v ' __cxa_finalize' || true)"
    expect_nothing "not linked with a C++ run-time library" "$(ldd "$library" | grep -E 'libstdc\+\+|libc\+\+' || true)"
    expect_nothing "includes point downward only (scripts/layers.pl)" "$(perl scripts/layers.pl 2>&1 || true)"
    expect_nothing "timeouts in documents and examples have a unit (scripts/timeouts.pl)" "$(perl scripts/timeouts.pl 2>&1 || true)"
    expect_nothing "META.json is as PGXN wants it, and agrees with the tree (scripts/meta.pl)" "$(perl scripts/meta.pl 2>&1 || true)"
    expect_nothing "make uninstall removes all that make install has installed" "$(left_by_uninstall)"
    say "1..$number"
}

# In a stage of its own. A folder that the server itself is in does not count.
left_by_uninstall() {
    local stage=$server_dir/uninstall path binaries
    binaries=$("${PG_CONFIG:-pg_config}" --bindir)
    { run_make install DESTDIR="$stage" && run_make uninstall DESTDIR="$stage"; } >"$server_dir/uninstall.log" 2>&1 || cat "$server_dir/uninstall.log"
    find "$stage" -iname "*$EXTENSION*" | sed "s|^$stage||" |
        while read -r path; do [[ $binaries/ == "$path"/* ]] || say "$path"; done
}

expect_nothing() {
    number=$((number + 1))
    if [ -z "$2" ]; then
        say "ok $number - $1"
    else
        say "not ok $number - $1"
        comments <<<"$2"
    fi
}

# ---- pg_regress and pg_isolation_regress ------------------------------------------------------------

# installcheck DIFFS VARIABLE…: make installcheck, as TAP. The form of pg_regress's lines changed with 16.
installcheck() {
    local diffs=$1 output=$server_dir/installcheck.out status=0 line
    shift
    rm -f "$diffs"
    limited make --no-print-directory PG_CONFIG="$PG_CONFIG" "$@" installcheck >"$output" 2>&1 || status=$?
    while IFS= read -r line; do
        number=$((number + 1))
        say "${line/ok/ok $number -}"
    done < <(sed -nE 's/^test ([^ ]+) +\.\.\. ok .*/ok \1/p; s/^test ([^ ]+) +\.\.\. (FAILED|failed).*/not ok \1/p;
        s/^(ok|not ok) [0-9]+ +[-+] ([^ ]+).*/\1 \2/p' "$output")
    say "1..$number"
    [ "$status" -ne 0 ] || return 0
    comments "$output"
    [ ! -s "$diffs" ] || comments "$diffs"
    return "$status"
}

# ---- pgTAP ------------------------------------------------------------------------------------------

# In a database with both extensions.
test_pgtap() {
    if ! has_server_file "$PG_CONFIG" extension/pgtap.control; then
        say "1..0 # SKIP there is no pgTAP for PostgreSQL $(pg_major "$PG_CONFIG") here"
        return
    fi
    psql -XqAt -v ON_ERROR_STOP=1 -c 'CREATE EXTENSION pgtap' -c "CREATE EXTENSION $EXTENSION" || return
    limited psql -XqAt -v ON_ERROR_STOP=1 -P pager=off -f "$1"
}

# ---- All together -----------------------------------------------------------------------------------

# Tests that crash a server on purpose start another one.
look_for_crash() {
    if grep -qE 'was terminated by signal|PANIC:|TRAP:' "$ADVISORY_EXT_LOG" || ! psql -XqAtc 'SELECT 1' >/dev/null; then
        say "# The server crashed. The end of its log:"
        server_log 60 | comments
        return 1
    fi
}

main() {
    local status=0
    cd "$REPOSITORY"
    server_open
    PG_CONFIG=$(find_pg_config)
    server_stage
    if [ "$1" = library ]; then
        test_library
        return
    fi
    server_start
    case $1 in
        regress)    installcheck regression.diffs REGRESS="$REGRESS_TESTS" ISOLATION= || status=$? ;;
        isolation)  installcheck output_iso/regression.diffs ISOLATION="$ISOLATION_TESTS" REGRESS= || status=$? ;;
        *.sql)      test_pgtap "$1" || status=$? ;;
        *)          limited perl "$1" || status=$? ;;
    esac
    [ "$status" -ne 124 ] || say "# It took longer than $TEST_TIMEOUT s."
    look_for_crash || [ "$status" -ne 0 ] || status=1
    return "$status"
}

main "$@"
