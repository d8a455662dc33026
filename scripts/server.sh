#!/usr/bin/env bash
# A throw-away PostgreSQL server that has this extension, for the demo and the tests.
#
# As a command:
#   scripts/server.sh run [--conf 'name=value']… -- COMMAND [ARGUMENT]…
#       starts a new server, runs the command with it, removes the server, returns the command's
#       exit code
#   scripts/server.sh ctl restart -m immediate
#       pg_ctl, from within such a command, on the server that it was given
#   scripts/server.sh as COMMAND [ARGUMENT]…
#       runs something else as the server's owner, in ADVISORY_EXT_TMP
#
# To be sourced: server_open, server_stage, server_start [name=value]…, server_run COMMAND… (see
# there).
#
# The command's environment:
#   PGHOST PGPORT PGUSER PGDATABASE  lead every client to the server (a superuser, in a private
#                                    directory's socket)
#   PG_CONFIG PG_BINDIR PATH         of the server's version
#   ADVISORY_EXT_DATADIR, _LOG       the server's files
#   ADVISORY_EXT_TMP                 belongs to the server's owner; a cluster made in here (by
#                                    pg_basebackup, say) is stopped and removed with everything else
#   ADVISORY_EXT_STAGE               the shadow installation; a further `run` uses it again
#
# With ADVISORY_EXT_ENCODING the clusters have that encoding (otherwise UTF8), and with
# ADVISORY_EXT_SETTINGS='name=value; name=value' all servers have these settings. With
# ADVISORY_EXT_JIT=inline they compile every statement, and copy into it what they have as bitcode;
# with ADVISORY_EXT_JIT=optimize they also optimize all of that, which takes five times as long.
# With ADVISORY_EXT_UNDER='valgrind …' another program runs the server. With
# ADVISORY_EXT_OWN_IDENTIFIER=1 the server has a system identifier of its own; others have that of
# the cluster which all servers of a stage are copies of.
#
# Nothing is written into the system. The extension goes into a shadow installation in the temporary
# directory, which consists of links to the server's own files. Only the server's programs are
# copied, because PostgreSQL finds its files relative to its own program. A copy of the extension
# that is installed in the system is neither used nor changed.
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

SERVER_SH=$REPOSITORY/scripts/server.sh
server_dir=         # all our files: stage/ and run/
watchdog=           # the process that removes them if this script is killed
server_child=       # the command that server_run waits for

# ---- Who, and where -----------------------------------------------------------------------------

# A server refuses to run as root, so root needs another user. All other users run the server
# themselves.
choose_server_user() {
    ADVISORY_EXT_SERVER_USER=
    is_root || return 0
    local user
    for user in postgres nobody; do
        id "$user" >/dev/null 2>&1 || continue
        ADVISORY_EXT_SERVER_USER=$user
        return
    done
    die "a server cannot run as root, and there is neither a user postgres nor nobody"
}

# Runs a command as the server's owner, from a directory that this user can enter.
as_server() (
    cd "${ADVISORY_EXT_TMP:-$server_dir}"
    [ -n "${ADVISORY_EXT_SERVER_USER:-}" ] || exec "$@"
    HOME=$PWD exec setpriv --reuid "$ADVISORY_EXT_SERVER_USER" \
        --regid "$(id -g "$ADVISORY_EXT_SERVER_USER")" \
        --init-groups -- "$@"
)

# The server's owner must be able to enter the directory. It also holds sockets, whose paths may
# have at most 107 bytes.
make_server_dir() {
    local base
    for base in "${TMPDIR:-/tmp}" /tmp; do
        # PGXS does not quote where it installs to.
        [[ $base != *[[:space:]]* ]] || continue
        server_dir=$(mktemp -d "$base/$EXTENSION.XXXXXX")
        server_dir=$(cd "$server_dir" && pwd -P)
        mkdir "$server_dir/run"
        if is_root; then
            chmod 755 "$server_dir"
            chown "$ADVISORY_EXT_SERVER_USER" "$server_dir/run"
        fi
        if [ "${#server_dir}" -le 80 ] &&
            ADVISORY_EXT_TMP=$server_dir as_server test -x "$server_dir/run"; then
            return
        fi
        rm -rf "$server_dir"
    done
    die "found no directory for a server's files: set TMPDIR to a short path that" \
        "${ADVISORY_EXT_SERVER_USER:-you} can enter"
}

# Settings for the caller's own server must not reach any client.
forget_client_settings() {
    local name
    for name in $(compgen -A export PG); do
        [ "$name" = PG_CONFIG ] || unset "$name"
    done
}

# server_open: call it first. From here on everything is cleaned up when this process ends, in
# whatever way.
server_open() {
    choose_server_user
    # The servers' owner reads what root makes here.
    ! is_root || umask 022
    forget_client_settings
    trap server_close EXIT
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 141' PIPE
    trap 'exit 143' TERM
    make_server_dir
    # Traps do not run after kill -9. So another process watches this one, and the one whose stage
    # this one uses.
    setsid bash "$SERVER_SH" watch "$server_dir" "$$" ${ADVISORY_EXT_WATCH:+"$ADVISORY_EXT_WATCH"} \
        </dev/null >/dev/null 2>&1 &
    watchdog=$!
    ADVISORY_EXT_WATCH=$$
    ADVISORY_EXT_TMP=$server_dir/run
    export ADVISORY_EXT_SERVER_USER ADVISORY_EXT_TMP ADVISORY_EXT_WATCH
}

# ---- The shadow installation ---------------------------------------------------------------------

# server_stage: builds the extension and installs it beside the server's own files, for PG_CONFIG's
# version. If a caller has already done this, uses the caller's installation.
server_stage() {
    if [ ! -d "${ADVISORY_EXT_STAGE:-}" ]; then
        ADVISORY_EXT_STAGE=$server_dir/stage
        link_server_files
        stage_extension
        make_template
    fi
    PG_BINDIR=$ADVISORY_EXT_STAGE$("$PG_CONFIG" --bindir)
    PATH=$PG_BINDIR:$PATH
    export ADVISORY_EXT_STAGE PG_CONFIG PG_BINDIR PATH
}

link_server_files() {
    local dir
    for dir in "$("$PG_CONFIG" --sharedir)" "$("$PG_CONFIG" --pkglibdir)"; do
        mkdir -p "$ADVISORY_EXT_STAGE$dir"
        [ -d "${dir:-/nowhere}" ] || die "'$PG_CONFIG' does not say where its server's files are"
        cp -rs "$dir/." "$ADVISORY_EXT_STAGE$dir/"
        # Without an installed copy of this extension, and its old install scripts.
        find "$ADVISORY_EXT_STAGE$dir" -name "$EXTENSION*" -prune -exec rm -rf {} +
    done
    dir=$("$PG_CONFIG" --bindir)
    mkdir -p "$ADVISORY_EXT_STAGE$dir"
    cp -rL "$dir/." "$ADVISORY_EXT_STAGE$dir/"
    [ -z "${ADVISORY_EXT_UNDER:-}" ] ||
        run_under "$ADVISORY_EXT_UNDER" "$ADVISORY_EXT_STAGE$dir/postgres"
}

# Lets another program run the server, but not the short runs of initdb and pg_ctl.
run_under() {
    mv "$2" "$2.server"
    # shellcheck disable=SC2016 # expanded by that shell
    printf '%s\n' '#!/bin/sh' "case \$1 in -D*) exec $1 \"\$0.server\" \"\$@\" ;; esac" \
        'exec "$0.server" "$@"' >"$2"
    chmod 755 "$2"
}

# Prints nothing but compiler warnings if the build succeeds; otherwise the log without the
# compiler's command lines.
stage_extension() {
    local log=$server_dir/build.log
    if ! run_make install DESTDIR="$ADVISORY_EXT_STAGE" >"$log" 2>&1; then
        grep -vE '^[^ ]*(g\+\+|gcc|clang)[^ ]* -' "$log" >&2 || true
        die "the extension could not be built"
    fi
    grep -A 4 'warning:' "$log" || true
}

# A new cluster, which every server copies. That is quicker than an initdb for each.
make_template() {
    local template=$ADVISORY_EXT_STAGE/template
    mkdir "$template"
    [ -z "$ADVISORY_EXT_SERVER_USER" ] || chown "$ADVISORY_EXT_SERVER_USER" "$template"
    init_cluster "$ADVISORY_EXT_STAGE$("$PG_CONFIG" --bindir)/initdb" "$template"
}

# init_cluster INITDB DIRECTORY
init_cluster() {
    as_server "$1" --pgdata="$2" --username=postgres --auth=trust \
        --encoding="${ADVISORY_EXT_ENCODING:-UTF8}" --locale=C --no-sync --no-instructions \
        >"$server_dir/initdb.log" 2>&1 || { cat "$server_dir/initdb.log" >&2; die "initdb failed"; }
}

# ---- The server ----------------------------------------------------------------------------------

# server_start [name=value]…: a new cluster with these settings, and its server.
server_start() {
    ADVISORY_EXT_DATADIR=$ADVISORY_EXT_TMP/data
    ADVISORY_EXT_LOG=$ADVISORY_EXT_TMP/log
    PGHOST=$ADVISORY_EXT_TMP PGPORT=5432 PGUSER=postgres PGDATABASE=postgres
    local setting
    for setting in "$@"; do
        case $setting in port=*) PGPORT=${setting#*=} ;; esac
    done
    export ADVISORY_EXT_DATADIR ADVISORY_EXT_LOG PGHOST PGPORT PGUSER PGDATABASE
    if [ -n "${ADVISORY_EXT_OWN_IDENTIFIER:-}" ]; then
        init_cluster "$PG_BINDIR/initdb" "$ADVISORY_EXT_DATADIR"
    else
        as_server cp -a "$ADVISORY_EXT_STAGE/template" "$ADVISORY_EXT_DATADIR"
    fi
    server_settings "$@" | as_server tee -a "$ADVISORY_EXT_DATADIR/postgresql.conf" >/dev/null
    server_ctl start >/dev/null || { server_log 30 >&2; die "the server did not start"; }
    [ -z "${ADVISORY_EXT_JIT:-}" ] || server_compiles ||
        die "the server cannot compile statements: it has no JIT (postgresql-NN-jit)"
}

server_compiles() { [ "$(PGOPTIONS='-c jit=on' psql -XAtc 'SELECT pg_jit_available()')" = t ]; }

# A container's /dev/shm may have 64 MB, which one server with a full table fills. Then the servers
# keep such memory in files.
has_little_shared_memory() {
    [ "$(df -k --output=size /dev/shm 2>/dev/null | tail -n 1)" -lt 1000000 ] 2>/dev/null
}

# These settings make the server fast, but not crash-safe.
server_settings() {
    local setting name value everywhere
    IFS=';' read -r -a everywhere <<<"${ADVISORY_EXT_SETTINGS:-}"
    ! has_little_shared_memory || everywhere+=(dynamic_shared_memory_type=mmap)
    case ${ADVISORY_EXT_JIT:-} in
        # The compiler is loaded once, not by each session: that is a fifth of the time.
        ?*)
            everywhere+=(shared_preload_libraries=llvmjit)
            everywhere+=(jit=on jit_above_cost=0 jit_inline_above_cost=0) ;;&
        optimize) everywhere+=(jit_optimize_above_cost=0) ;;
        '' | inline) ;;
        *) die "ADVISORY_EXT_JIT is inline or optimize" ;;
    esac
    for setting in listen_addresses= "unix_socket_directories=$PGHOST" "port=$PGPORT" \
        fsync=off full_page_writes=off timezone=UTC log_timezone=UTC \
        max_connections=100 max_prepared_transactions=10 'log_line_prefix=%m [%p] %q%u@%d/%a ' \
        ${everywhere[@]+"${everywhere[@]}"} "$@"; do
        name=${setting%%=*} value=${setting#*=}
        printf "%s = '%s'\n" "${name// /}" "${value//\'/\'\'}"
    done
}

# (With -p a restart also runs the program of ADVISORY_EXT_UNDER.)
server_ctl() {
    as_server "$PG_BINDIR/pg_ctl" "$@" -p "$PG_BINDIR/postgres" --pgdata="$ADVISORY_EXT_DATADIR" \
        --log="$ADVISORY_EXT_LOG" --wait --silent
}

server_log() { tail -n "${1:-50}" "$ADVISORY_EXT_LOG" 2>/dev/null || true; }

# server_run COMMAND…: runs it and returns its exit code. The command runs in the background,
# because the shell handles signals immediately only while it waits. If this shell is killed, the
# command gets a signal.
server_run() {
    local status=0
    setpriv --pdeathsig TERM -- "$@" <&0 &
    server_child=$!
    wait "$server_child" || status=$?
    server_child=
    return "$status"
}

# ---- The end -------------------------------------------------------------------------------------

server_close() {
    trap '' HUP INT PIPE TERM
    if [ -n "$server_child" ]; then
        kill "$server_child" 2>/dev/null || true
        wait "$server_child" 2>/dev/null || true
    fi
    [ -z "$server_dir" ] || remove_server_dir "$server_dir"
    # None of our processes may outlive this one. If the directory could not be removed, the
    # watchdog goes on trying.
    [ -z "$watchdog" ] || [ -d "$server_dir" ] ||
        { kill "$watchdog" && wait "$watchdog"; } 2>/dev/null || true
}

# Stops every server that runs on files in this directory, then removes it.
remove_server_dir() {
    local file attempt
    for file in "$1"/run/*/postmaster.pid; do
        [ ! -e "$file" ] || stop_postmaster "$(dirname "$file")" "$(head -n 1 "$file")"
    done
    # An initdb that was broken off may still be writing.
    for attempt in 1 2 3 4 5; do
        rm -rf "$1" 2>/dev/null && return
        sleep "$attempt"
    done
    warn "could not remove $1"
}

# First a fast stop, then an immediate one, then SIGKILL. The command line of a server names its
# data directory, which distinguishes it from another process that has got the same process ID
# since. (In a container root may not see the working directories of other users' processes.)
stop_postmaster() {
    local data=$1 pid=$2 signal tenth
    for signal in INT QUIT KILL; do
        for tenth in {1..50}; do
            grep -qszxF -- "$data" "/proc/$pid/cmdline" || return 0
            [ "$tenth" -ne 1 ] || kill -s "$signal" "$pid" 2>/dev/null || true
            sleep 0.1
        done
    done
}

# The watchdog: ends as soon as the directory is gone, or removes the directory when one of the
# processes is gone.
watch_server_dir() {
    local dir=$1 pid
    shift
    cd /
    # Nothing ever comes from here: a read that times out is a sleep without a process of its own.
    exec 4<> <(:)
    while [ -d "$dir" ]; do
        for pid in "$@"; do
            # One that has ended, but for which nobody has waited yet, has no command line any more.
            # (In a container only that file is everybody's.)
            { read -r -d '' -n 1 <"/proc/$pid/cmdline"; } 2>/dev/null ||
                { remove_server_dir "$dir"; return; }
        done
        read -r -t 0.2 -u 4 || true
    done
}

# ---- As a command --------------------------------------------------------------------------------

run_with_server() {
    local settings=()
    while [ "${1:-}" = --conf ]; do
        settings+=("${2:?--conf needs name=value}")
        shift 2
    done
    [ "${1:-}" != -- ] || shift
    [ $# -gt 0 ] || die "usage: scripts/server.sh run [--conf 'name=value']… -- COMMAND [ARGUMENT]…"
    server_open
    PG_CONFIG=$(find_pg_config) || die "found no PostgreSQL: say PG_CONFIG=/path/to/pg_config"
    server_stage
    server_start ${settings[@]+"${settings[@]}"}
    server_run "$@"
}

server_main() {
    local command=${1:-}
    shift || true
    case $command in
        run)   run_with_server "$@" ;;
        ctl)   server_ctl "$@" ;;
        as)    as_server "$@" ;;
        watch) watch_server_dir "$@" ;;
        *)     die "usage: scripts/server.sh run|ctl|as … (see the head of this file)" ;;
    esac
}

[ "${BASH_SOURCE[0]}" != "$0" ] || server_main "$@"
