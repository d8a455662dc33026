#!/usr/bin/env bash
# Runs one test on a server of its own, and prints TAP: scripts/tap.pl calls it, in a stage that
# scripts/test.sh has made.
#
#   scripts/test-one.sh FILE        test/*/*.t, or pgTAP: test/pgtap/*.sql
#   scripts/test-one.sh regress     pg_regress with the tests that REGRESS_TESTS names
#   scripts/test-one.sh isolation   pg_isolation_regress with the specs that ISOLATION_TESTS names
#   scripts/test-one.sh portable    both, on the portable edition, with those that PORTABLE_REGRESS
#                                   and PORTABLE_ISOLATION name
#   scripts/test-one.sh portable:FILE   pgTAP, on the portable edition
#   scripts/test-one.sh library     what was built; without a server
#
# TEST_TIMEOUT is how many seconds it may take, and a *.t file ends itself after TEST_SECONDS.
# Standard error becomes comments that begin with "#!".
set -euo pipefail
exec 2> >(exec sed -u 's/^/#! /')
# shellcheck source=scripts/server.sh
. "$(dirname "${BASH_SOURCE[0]}")/server.sh"

export ADVISORY_EXT_TEST=$1      # tells whose process it is that is left running
export TEST_SECONDS=${TEST_SECONDS:-$TEST_TIMEOUT}
export PERL5LIB=$REPOSITORY/test/t/lib:$REPOSITORY/test/integration/lib${PERL5LIB:+:$PERL5LIB}
number=0

limited() { server_run timeout --kill-after=10 "$TEST_TIMEOUT" "$@"; }

comments() { sed 's/^/# /' "$@"; }

# ---- The library ---------------------------------------------------------------------------------

# It must load into a server without a C++ run-time library. (__cxa_finalize belongs to the C
# library and is in every library.)
test_library() {
    local library
    library=$ADVISORY_EXT_STAGE$("$PG_CONFIG" --pkglibdir)/$EXTENSION.so
    expect_nothing "no symbols of a C++ run-time library" \
        "$(nm -D --undefined-only "$library" | grep -E ' (_Z|__gxx|__cxa_)' |
            grep -v ' __cxa_finalize' || true)"
    expect_nothing "not linked with a C++ run-time library" \
        "$(ldd "$library" | grep -E 'libstdc\+\+|libc\+\+' || true)"
    expect_nothing \
        "no trace of the points at which tests stop a session (src/base/stoppoint.h)" \
        "$(grep -ao stop_point "$library" || true)"
    expect_nothing "includes point downward only (scripts/layers.pl)" \
        "$(perl scripts/layers.pl 2>&1 || true)"
    expect_nothing "timeouts in documents and examples have a unit (scripts/timeouts.pl)" \
        "$(perl scripts/timeouts.pl 2>&1 || true)"
    expect_nothing "portable/advisory.sql is what its parts give (make portable)" \
        "$(sh scripts/join.sh portable | diff portable/advisory.sql - | head -n 20)"
    expect_nothing "the tree says one version (scripts/meta.pl)" \
        "$(perl scripts/meta.pl 2>&1 || true)"
    expect_nothing "make install leaves no bitcode, not even what an earlier state has left" \
        "$(installed_bitcode)"
    expect_nothing "make uninstall removes all that make install has installed" \
        "$(left_by_uninstall)"
    say "1..$number"
}

# The server's JIT would copy from it (see the Makefile).
installed_bitcode() {
    local stage=$server_dir/uninstall log=$server_dir/install.log folder
    folder=$stage$("$PG_CONFIG" --pkglibdir)/bitcode
    mkdir -p "$folder/$EXTENSION/src"
    touch "$folder/$EXTENSION.index.bc" "$folder/$EXTENSION/src/$EXTENSION.bc" \
        "$folder/other.index.bc"
    run_make install with_llvm=yes DESTDIR="$stage" >"$log" 2>&1 || cat "$log"
    [ -e "$folder/other.index.bc" ] || say "other.index.bc has gone, too"
    find "$stage" -name "*.bc" ! -name other.index.bc
}

# In the stage of installed_bitcode. A folder that the server itself is in does not count.
left_by_uninstall() {
    local stage=$server_dir/uninstall log=$server_dir/uninstall.log path binaries
    binaries=$("${PG_CONFIG:-pg_config}" --bindir)
    run_make uninstall DESTDIR="$stage" >"$log" 2>&1 || cat "$log"
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

# ---- pg_regress and pg_isolation_regress ---------------------------------------------------------

# regress DIFFS COMMAND…: runs one of them by a command, and prints its results as TAP without the
# plan. The form of their lines changed with 16.
regress() {
    local diffs=$1 output=$server_dir/regress.out status=0 line
    shift
    rm -f "$diffs"
    limited "$@" >"$output" 2>&1 || status=$?
    while IFS= read -r line; do
        number=$((number + 1))
        say "${line/ok/ok $number -}"
    done < <(sed -nE -e 's/^test ([^ ]+) +\.\.\. ok .*/ok \1/p' \
        -e 's/^test ([^ ]+) +\.\.\. (FAILED|failed).*/not ok \1/p' \
        -e 's/^(ok|not ok) [0-9]+ +[-+] ([^ ]+).*/\1 \2/p' "$output")
    [ "$status" -ne 0 ] || return 0
    comments "$output"
    [ ! -s "$diffs" ] || comments "$diffs"
    return "$status"
}

# installcheck DIFFS VARIABLE…: make installcheck, as TAP.
installcheck() {
    local diffs=$1 status=0
    shift
    regress "$diffs" make --no-print-directory PG_CONFIG="$PG_CONFIG" "$@" installcheck || status=$?
    say "1..$number"
    return "$status"
}

# ---- pgTAP ---------------------------------------------------------------------------------------

# In a database with pgTAP and the edition that the second argument names.
test_pgtap() {
    if ! has_server_file "$PG_CONFIG" extension/pgtap.control; then
        say "1..0 # SKIP there is no pgTAP for PostgreSQL $(pg_major "$PG_CONFIG") here"
        return
    fi
    "install_$2" || return
    PGUSER=postgres run_psql -c 'CREATE EXTENSION pgtap' || return
    limited psql -XqAt -v ON_ERROR_STOP=1 -P pager=off -f "$1"
}

run_psql() { psql -XqAt -v ON_ERROR_STOP=1 "$@"; }

install_extension() { run_psql -c "CREATE EXTENSION $EXTENSION"; }

# ---- The portable edition ------------------------------------------------------------------------

# The owner of a database, without any other privilege, loads the file, and once more. All clients
# are this role from then on.
install_portable() {
    run_psql -c 'CREATE ROLE portable_owner LOGIN' \
        -c 'CREATE DATABASE portable OWNER portable_owner' || return
    # The specs set it.
    run_psql -c 'GRANT SET ON PARAMETER deadlock_timeout TO portable_owner' || return
    export PGUSER=portable_owner PGDATABASE=portable
    load_portable && load_portable
}

load_portable() {
    PGOPTIONS='-c client_min_messages=warning' run_psql -o /dev/null -f portable/advisory.sql
}

# The tests that both editions share. What psql has printed is left in results/portable.
test_portable() {
    local status=0 tests=$server_dir/portable programs
    programs=$(dirname "$("$PG_CONFIG" --pgxs)")/../test
    install_portable || status=$?
    expect_nothing "portable/advisory.sql can be loaded, and again" \
        "$([ "$status" -eq 0 ] || say "exit code $status")"
    # shellcheck disable=SC2046,SC2086 # names
    [ -z "$PORTABLE_REGRESS" ] ||
        bash scripts/answers.sh part portable "$tests/regress" \
            $(printf 'test/sql/%s.sql ' $PORTABLE_REGRESS)
    mkdir -p "$tests/isolation"
    ln -s "$REPOSITORY"/test/isolation/{specs,expected} "$tests/isolation"
    # Errors of PL/pgSQL functions have a CONTEXT, those of the library's have none.
    if [ -n "$PORTABLE_REGRESS" ]; then
        # shellcheck disable=SC2016 # expanded by that shell
        shared_tests regress "$programs/regress/pg_regress" \
            --launcher="sh -c 'exec \"\$0\" -v SHOW_CONTEXT=never \"\$@\"'" || status=$?
        mkdir -p results/portable
        cp "$tests/regress/results/"*.out results/portable
    fi
    [ -z "$PORTABLE_ISOLATION" ] ||
        shared_tests isolation "$programs/isolation/pg_isolation_regress" || status=$?
    say "1..$number"
    return "$status"
}

# shared_tests FOLDER PROGRAM…: every version looks for tests and for answers in the folder that it
# runs in.
shared_tests() {
    local folder=$server_dir/portable/$1 names=$PORTABLE_REGRESS
    [ "$1" = regress ] || names=$PORTABLE_ISOLATION
    shift
    # shellcheck disable=SC2086 # names
    regress "$folder/regression.diffs" env -C "$folder" "$@" \
        --bindir="$PG_BINDIR" --use-existing --dbname=portable $names
}

# ---- All together --------------------------------------------------------------------------------

# Tests that crash a server on purpose start another one.
look_for_crash() {
    if grep -qE 'was terminated by signal|PANIC:|TRAP:' "$ADVISORY_EXT_LOG" ||
        ! psql -XqAtc 'SELECT 1' >/dev/null; then
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
        regress)
            installcheck regression.diffs REGRESS="$REGRESS_TESTS" ISOLATION= || status=$? ;;
        isolation)
            installcheck output_iso/regression.diffs ISOLATION="$ISOLATION_TESTS" REGRESS= ||
                status=$? ;;
        portable)   test_portable || status=$? ;;
        portable:*) test_pgtap "${1#portable:}" portable || status=$? ;;
        *.sql)      test_pgtap "$1" extension || status=$? ;;
        *)          limited perl "$1" || status=$? ;;
    esac
    [ "$status" -ne 124 ] || say "# It took longer than $TEST_TIMEOUT s."
    look_for_crash || [ "$status" -ne 0 ] || status=1
    return "$status"
}

main "$@"
