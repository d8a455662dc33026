#!/usr/bin/env bash
# Tests on servers of their own: `make test`, `make test-all`.
#
#   PG_CONFIG=…            the server's version
#   PARTS="regress tap"    these of: library regress isolation pgtap portable tap races integration
#                          faults. Without it all but the last two.
#                          (portable: the portable edition, with the tests that both editions share,
#                          and those in test/portable.)
#                          (races, faults: with the library that make FAULTS=1 builds.)
#                          (integration: with pg_cron, PgBouncer, Patroni, Node, Python, Java, Ruby
#                          and migration tools, from packages.) PARTS=all: also integration.
#   TESTS="10_keys names"  only the tests of these names, in whatever part they are (with or without
#                          path and ending)
#   TEST_JOBS=4            how many run at the same time (default: three for each processor)
#   TEST_TIMEOUT=600       seconds that one *.t file, or one of the other parts, may take (with JIT
#                          3000)
#   TEST_UNTIL=…           from this time on, in seconds since 1970, no test begins: those that are
#                          left are skipped, and named
#   TEST_TWICE=yes         a test that fails is run once more, alone; what failed first is named
#   TEST_ONCE=no           without the tests that say in a line "# Runs once: …" why the server's
#                          version does not matter for them
#
# Each *.t file and each other part has a server of its own, so they run side by side. Those that
# measure time say so in a line "# Runs alone: …", and run one after the other when all others have
# ended.
#
# The last line is "N passed, N failed", and ", N skipped" where some were. It counts single tests:
# a pg_regress test and an isolation spec as one each, TAP by its assertions. Each line "failed: …"
# before it names a test that has failed.
set -euo pipefail
# shellcheck source=scripts/server.sh
. "$(dirname "${BASH_SOURCE[0]}")/server.sh"

QUICK_PARTS="library regress isolation pgtap portable tap races"
PARTS=${PARTS:-$QUICK_PARTS}
[ "$PARTS" != all ] || PARTS="integration $QUICK_PARTS"
TESTS=${TESTS:-}
TEST_JOBS=${TEST_JOBS:-$((3 * $(nproc)))}
# What is compiled takes its time.
[ -z "${ADVISORY_EXT_JIT:-}" ] || TEST_TIMEOUT=${TEST_TIMEOUT:-3000}
export TEST_TIMEOUT=${TEST_TIMEOUT:-600}

tests=()        # what scripts/tap.pl is to run

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

chosen_names() {
    local file
    chosen "$@" | while IFS= read -r file; do printf '%s ' "$(bare_name "$file")"; done
}

# Those of the named files that test both editions, one a line: their first line says so.
shared() { awk 'FNR == 1 && /^(--|#) Editions: both\./ { print FILENAME }' "$@"; }

# Appends what is chosen of a part to the tests.
choose_part() {
    case $1 in
        library)
            [ -n "$TESTS" ] || tests+=(library) ;;
        regress)
            REGRESS_TESTS=$(chosen_names test/sql/*.sql)
            export REGRESS_TESTS
            [ -z "$REGRESS_TESTS" ] || tests+=(regress) ;;
        isolation)
            ISOLATION_TESTS=$(chosen_names test/isolation/specs/*.spec)
            export ISOLATION_TESTS
            [ -z "$ISOLATION_TESTS" ] || tests+=(isolation) ;;
        pgtap)
            choose_files test/pgtap/*.sql ;;
        portable)
            local sql specs pgtap
            mapfile -t sql < <(shared test/sql/*.sql)
            mapfile -t specs < <(shared test/isolation/specs/*.spec)
            mapfile -t pgtap < <(shared test/pgtap/*.sql)
            PORTABLE_REGRESS=$(chosen_names ${sql[@]+"${sql[@]}"})
            PORTABLE_ISOLATION=$(chosen_names ${specs[@]+"${specs[@]}"})
            export PORTABLE_REGRESS PORTABLE_ISOLATION
            [ -z "$PORTABLE_REGRESS$PORTABLE_ISOLATION" ] || tests+=(portable)
            mapfile -t -O "${#tests[@]}" tests < <(chosen ${pgtap[@]+"${pgtap[@]}"} |
                sed 's/^/portable:/')
            choose_files test/portable/*.t ;;
        tap)
            choose_files test/t/*.t ;;
        races | integration | faults)
            choose_files "test/$1"/*.t ;;
        *)
            die "there is no part '$1': choose of $QUICK_PARTS integration faults" ;;
    esac
}

choose_files() { mapfile -t -O "${#tests[@]}" tests < <(chosen "$@" | left_here); }

# Of the files in standard input those that are to run with this version.
left_here() {
    local file
    while IFS= read -r file; do
        if [ "${TEST_ONCE:-}" != no ] || ! grep -q '^# Runs once: ' "$file"; then say "$file"; fi
    done
}

# Builds the library with stop points and faults, and installs it beside the other one, if a test
# uses it.
stage_faults() {
    case " ${tests[*]}" in
        *" test/races/"* | *" test/faults/"*) ;;
        *) return 0 ;;
    esac
    run_make FAULTS=1 install-lib DESTDIR="$ADVISORY_EXT_STAGE" >"$server_dir/build.log" 2>&1 ||
        { cat "$server_dir/build.log" >&2; die "the library with stop points could not be built"; }
}

# The process IDs of what the tests have started and that is still there: their environment names
# this run. The last ones may need a moment.
left_running() {
    local last=$((SECONDS + 20)) found
    while :; do
        found=$(by_each_owner grep -lszxF "ADVISORY_EXT_RUN=$server_dir" /proc/[0-9]*/environ)
        if [ -z "$found" ] || [ "$SECONDS" -ge "$last" ]; then break; fi
        sleep 0.2
    done
    sed -E 's|^/proc/([0-9]+)/.*|\1|' <<<"$found" | sort -u
}

# Runs a command as this user, and as the servers' owner. In a container root may not read the
# environments of other users' processes.
by_each_owner() {
    "$@" 2>/dev/null || true
    as_server "$@" 2>/dev/null || true
}

# end_left PID: ends it, and says which test has left it.
end_left() {
    local test command
    command=$(tr '\0\n' '  ' <"/proc/$1/cmdline") || return 0
    test=$(by_each_owner sed -nz 's/^ADVISORY_EXT_TEST=//p' "/proc/$1/environ" | tr '\0' '\n' |
        head -n 1)
    say "failed: $test left running: ${command% }"
    kill -KILL "$1" 2>/dev/null || true
}

main() {
    local part result status=0 passed=0 failed=0 skipped=0 pid
    cd "$REPOSITORY"
    for part in $PARTS; do choose_part "$part"; done
    if [ "${#tests[@]}" -eq 0 ]; then
        say "nothing ran: TESTS='$TESTS' PARTS='$PARTS' choose no test"
        say_counts 0 1 0
        return 1
    fi
    case " $PARTS " in
        *" integration "*) bash scripts/packages.sh integration ;;
        *) bash scripts/packages.sh test ;;
    esac
    [ -z "${ADVISORY_EXT_JIT:-}" ] || bash scripts/packages.sh jit
    PG_CONFIG=$(find_pg_config) || die "found no PostgreSQL: say PG_CONFIG=/path/to/pg_config"
    server_open
    say "building for $("$PG_CONFIG" --version)"
    server_stage
    stage_faults
    result=$server_dir/result
    export ADVISORY_EXT_RUN=$server_dir
    server_run perl scripts/tap.pl "$result" "$TEST_JOBS" "${tests[@]}" || status=$?
    if [ -s "$result" ]; then
        read -r passed failed skipped <"$result"
        printf '\n'
        sed '1d; s/^/failed: /' "$result"
    else
        failed=1
        printf '\nfailed: scripts/tap.pl, exit code %s\n' "$status"
    fi
    for pid in $(left_running); do
        end_left "$pid"
        failed=$((failed + 1))
    done
    say_counts "$passed" "$failed" "$skipped"
    [ "$failed" -eq 0 ]
}

main
