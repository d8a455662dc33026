# shellcheck shell=bash
# Functions that every script here needs: messages, and the choice of the PostgreSQL version. To be
# sourced.

EXTENSION=advisory_ext
REPOSITORY=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)

# The scripts pass the variables that a sub-make needs by name. The pipes of a job server cannot be
# passed on.
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES

# CI may start the scripts without standard input; child processes need one.
{ true 3<&0; } 2>/dev/null || exec </dev/null

say()  { printf '%s\n' "$*"; }
warn() { printf '%s: %s\n' "$EXTENSION" "$*" >&2; }
die()  { warn "$@"; exit 1; }

# say_counts PASSED FAILED SKIPPED: the closing line of everything that tests.
say_counts() {
    if [ "$3" -gt 0 ]; then
        say "$1 passed, $2 failed, $3 skipped"
    else
        say "$1 passed, $2 failed"
    fi
}

# read_counts LOG STATUS: "passed failed skipped" of the closing line in a log. A run without that
# line, or with an exit code that contradicts it, has failed.
read_counts() {
    local passed=0 failed=1 skipped=0 line
    line=$(grep -aE '^[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?$' "$1" | tail -n 1 || true)
    [ -z "$line" ] || read -r passed failed skipped < <(tr -c '0-9\n' ' ' <<<"$line")
    [ "$2" -eq 0 ] || [ "$failed" -gt 0 ] || failed=1
    say "$passed $failed ${skipped:-0}"
}

# read_failures WHAT LOG: the lines of a log that name what failed, which come before the closing
# line; each says of WHAT.
read_failures() {
    grep -a '^failed: ' "$2" | sed "s|^failed: |failed: $1: |" || say "failed: $1: it broke off"
}

have() { command -v "$1" >/dev/null 2>&1; }

is_root() { [ "$(id -u)" -eq 0 ]; }

# pg_config's answer to one question, or nothing.
pg_ask() { "$1" "$2" 2>/dev/null || true; }

pg_major() { pg_ask "$1" --version | sed -n 's/^PostgreSQL \([0-9]*\).*/\1/p'; }

has_server() { local dir; dir=$(pg_ask "$1" --bindir); [ -n "$dir" ] && [ -x "$dir/postgres" ]; }

has_server_file() { local dir; dir=$(pg_ask "$1" --sharedir); [ -n "$dir" ] && [ -e "$dir/$2" ]; }

# Debian's client package already has PGXS, but not the headers that it needs.
has_server_dev() {
    local makefile headers
    makefile=$(pg_ask "$1" --pgxs) headers=$(pg_ask "$1" --includedir-server)
    [ -f "${makefile:-/none}" ] && [ -f "${headers:-/none}/postgres.h" ]
}

# The newest PostgreSQL among Debian's version directories that has all the named programs.
newest_debian_pg() {
    local dir program
    for dir in $(printf '%s\n' /usr/lib/postgresql/*/bin | sort -rV); do
        for program in "$@"; do
            [ -x "$dir/$program" ] || continue 2
        done
        say "$dir/pg_config"
        return
    done
    return 1
}

# The pg_config to use: PG_CONFIG if it is set; else the one on PATH, if its server is installed
# (libpq-dev also has a pg_config, perhaps of a version without a server); else that of the newest
# server on this machine.
find_pg_config() {
    if [ -n "${PG_CONFIG:-}" ] && [ "$PG_CONFIG" != pg_config ]; then
        say "$PG_CONFIG"
    elif have pg_config && has_server pg_config && has_server_dev pg_config; then
        say "$(pg_config --bindir)/pg_config"
    else
        newest_debian_pg postgres pg_config || newest_debian_pg postgres
    fi
}

# Runs make on this tree, for the chosen server. The options of the calling make come from the
# environment.
run_make() {
    make --no-print-directory -C "$REPOSITORY" -j "$(nproc)" PG_CONFIG="$PG_CONFIG" \
        ${CXX:+CXX="$CXX"} "$@"
}
