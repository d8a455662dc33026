# shellcheck shell=bash
# What the tests of packages share, which run in a chroot.

log=/tmp/log
export DEBIAN_FRONTEND=noninteractive

# check TITLE COMMAND…: runs a test, and shows its output if it fails. A function fails with the
# first of its commands that fails.
check() {
    local title=$1 started=$SECONDS status
    shift
    set +e
    (set -e; "$@") >"$log" 2>&1
    status=$?
    set -e
    if [ "$status" -eq 0 ]; then
        printf 'ok - %s (%d s)\n' "$title" "$((SECONDS - started))"
    else
        printf 'FAILED - %s:\n' "$title"
        tail -n 60 "$log"
    fi
}

# This script starts servers; the installation of packages must not.
keep_services_quiet() {
    printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
    chmod 755 /usr/sbin/policy-rc.d
    mkdir -p /etc/postgresql-common/createcluster.d
    echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.d/none.conf
}

apt_install() { apt-get -qq -o Dpkg::Use-Pty=0 install -y --no-install-recommends "$@"; }

# survives_jit MAJOR PSQL…: calls every function and view, while the server compiles what it can:
# test/sql/90_jit.sql. From 18 on Debian has the compiler in a package of its own.
survives_jit() {
    [ -e "/usr/lib/postgresql/$1/lib/llvmjit.so" ] || apt_install "postgresql-$1-jit"
    shift
    [ "$("$@" -XAtqc 'SET jit = on' -c 'SELECT pg_jit_available()')" = t ]
    bash scripts/answers.sh part extension /tmp/jit test/sql/90_jit.sql
    "$@" -Xaq </tmp/jit/sql/90_jit.sql 2>&1 | diff /tmp/jit/expected/90_jit.out -
}

# make_server MAJOR CLUSTER: everybody may connect, and only by the socket, since the machine
# outside of the chroot may have a server at the same port.
make_server() {
    pg_createcluster --port 5432 -o listen_addresses= "$1" "$2" -- --auth=trust
    pg_ctlcluster "$1" "$2" start
}
