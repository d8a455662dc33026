# shellcheck shell=bash
# What every script here needs: how to speak, and which PostgreSQL is meant. To be sourced.

EXTENSION=advisory_ext
REPOSITORY=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)

# The scripts hand on what a sub-make needs by name; a job server's pipes would not survive the way.
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES

# CI may start us without any standard input, which then could not be handed on.
{ true 3<&0; } 2>/dev/null || exec </dev/null

say()  { printf '%s\n' "$*"; }
warn() { printf '%s: %s\n' "$EXTENSION" "$*" >&2; }
die()  { warn "$@"; exit 1; }

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

# The pg_config to use: the one asked for; else the one on PATH, if there is a server to it (libpq-dev brings a
# pg_config too, which may speak of a version that has none); else the newest server there is.
find_pg_config() {
    if [ -n "${PG_CONFIG:-}" ] && [ "$PG_CONFIG" != pg_config ]; then
        say "$PG_CONFIG"
    elif have pg_config && has_server pg_config && has_server_dev pg_config; then
        say "$(pg_config --bindir)/pg_config"
    else
        newest_debian_pg postgres pg_config || newest_debian_pg postgres
    fi
}

# Runs make on this tree, for the chosen server. What its caller's make was told to build comes from the environment.
run_make() {
    make --no-print-directory -C "$REPOSITORY" -j "$(nproc)" PG_CONFIG="$PG_CONFIG" \
        ${with_llvm:+with_llvm="$with_llvm"} ${CXX:+CXX="$CXX"} ${FAULTS:+FAULTS="$FAULTS"} "$@"
}
