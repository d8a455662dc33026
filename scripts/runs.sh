# shellcheck shell=bash
# Several runs of the tests side by side, and the table of their results. To be sourced after
# chroots.sh. The caller sets `work` to a temporary directory.

# A temporary directory: for each run its log, its line of the table, its counts and its failures.
work=

# ---- One run -------------------------------------------------------------------------------------

# A run's line of the table, and its counts, are in files, because each run is in a process of its
# own.
record_skip() {
    say "0 0 1" >"$work/$1.counts"
    printf '%-10s skipped: %s\n' "$1" "$2" >"$work/$1.line"
    say "$1 | skipped: $2"
}

# record_no_chroot NAME [CHROOT]: skips the run because of what the log of the chroot's setup says.
record_no_chroot() {
    local log=$work/${2:-$1}.setup
    [ ! -s "$log" ] || tail -n 20 "$log" | sed "s/^/$1 | /"
    record_skip "$1" "$(reason "$log")"
}

# record NAME WHERE LOG STATUS SECONDS
record() {
    local name=$1 where=$2 log=$3 status=$4 seconds=$5 good bad aside
    read -r good bad aside < <(read_counts "$log" "$status")
    say "$good $bad $aside" >"$work/$name.counts"
    [ "$bad" -eq 0 ] || read_failures "$name" "$log" >"$work/$name.failures"
    printf '%-10s %-42s %6s %6s %7s  %5s s\n' "$name" "$where" "$good" "$bad" "$aside" "$seconds" \
        >"$work/$name.line"
}

# ---- All together --------------------------------------------------------------------------------

# run_side_by_side COMMAND NAME…: calls the command with each of the names, JOBS at the same time.
run_side_by_side() {
    local command=$1 name
    shift
    for name in "$@"; do
        wait_for_runs "${JOBS:-$(($(nproc) < 2 ? 1 : 2))}"
        printf '\n== %s\n' "$name"
        (
            trap end_child EXIT
            "$command" "$name"
        ) &
    done
    wait_for_runs 1
}

# Waits until fewer than this many are running.
wait_for_runs() {
    while [ "$(jobs -rp | wc -l)" -ge "$1" ]; do
        wait -n || true
    done
}

# show_table REMARK NAME…: prints the table, and fails unless all tests have passed. A run without
# counts was interrupted.
show_table() {
    local remark=$1 name good bad aside passed=0 failed=0 skipped=0
    shift
    printf '\n%-10s %-42s %6s %6s %7s  %7s\n' run where passed failed skipped time
    for name in "$@"; do
        good=0 bad=1 aside=0
        [ ! -e "$work/$name.counts" ] || read -r good bad aside <"$work/$name.counts"
        passed=$((passed + good)) failed=$((failed + bad)) skipped=$((skipped + aside))
        if [ ! -e "$work/$name.line" ]; then
            printf '%-10s broken off\n' "$name"
            say "failed: $name: it broke off" >"$work/$name.failures"
        else
            cat "$work/$name.line"
        fi
    done
    [ -z "$remark" ] || say "$remark"
    printf '\n'
    cat "$work"/*.failures 2>/dev/null || true
    say_counts "$passed" "$failed" "$skipped"
    # What was skipped for time has not failed, also if that is all.
    [ "$failed" -eq 0 ] && [ $((passed + skipped)) -gt 0 ]
}

# Ends the processes that the runs have started.
end_runs() {
    local runs
    trap '' HUP INT PIPE TERM
    runs=$(jobs -p)
    # shellcheck disable=SC2086 # numbers
    [ -z "$runs" ] || { kill $runs && wait; } 2>/dev/null || true
    [ -z "$work" ] || rm -rf "$work"
}

# begin_runs NAME: what a script does before its first run. Two scripts must not make, or use, one
# chroot at the same time.
begin_runs() {
    trap end_runs EXIT
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 141' PIPE
    trap 'exit 143' TERM
    work=$(mktemp -d "${TMPDIR:-/tmp}/$EXTENSION-$1.XXXXXX")
    bash "$REPOSITORY/scripts/packages.sh" "$1"
    mkdir -p "$CACHE"
    exec 9>"$CACHE/lock"
    flock 9
}
