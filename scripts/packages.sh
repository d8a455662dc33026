#!/usr/bin/env bash
# Lists the packages that the demo, the tests or the other tools need and that are missing, and
# installs them with apt.
#
#   scripts/packages.sh PURPOSE     (one of those below)
#
# The script looks for programs, files and Perl modules, not for package names, so software that was
# installed in another way counts, too. If nothing is missing it changes nothing.
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

missing=()      # package names
optional=()     # packages without which some tests are skipped
no_cluster=     # our files that keep Debian's packages from starting a server
no_services=
services_before=

PURPOSES="demo test jit integration matrix platforms qemu bench plots model lint sanitize assert"
PURPOSES="$PURPOSES dist deb packages"

purpose=${1:-}
case " $PURPOSES " in
    *" ${purpose:-none} "*) ;;
    *) die "usage: scripts/packages.sh ${PURPOSES// /|}" ;;
esac

# need PACKAGE REASON TEST…: notes the package as missing unless the test succeeds.
need() {
    local package=$1 reason=$2
    shift 2
    if ! "$@" >/dev/null 2>&1; then
        say "missing: $package ($reason)"
        missing+=("$package")
    fi
}

has_perl() { perl -M"$1" -e 1; }
has_ruby() { ruby -e "require '$1'"; }

# ---- Which PostgreSQL ---------------------------------------------------------------------------

distribution_major() {
    apt-cache show postgresql 2>/dev/null |
        sed -n 's/^Depends:.*postgresql-\([0-9][0-9]*\).*/\1/p' | head -n 1
}

# The PostgreSQL version: that of the pg_config in use; or that in the requested path, even if
# nothing is there yet; or the distribution's own.
wanted_major() {
    local config major=
    config=$(find_pg_config) || config=
    [ -z "$config" ] || major=$(pg_major "$config")
    [ -n "$major" ] || major=$(sed -n 's|^/usr/lib/postgresql/\([0-9]*\)/bin/.*|\1|p' <<<"$config")
    if [ -z "$major" ] && [ -n "${PG_CONFIG:-}" ] && [ "$PG_CONFIG" != pg_config ]; then
        die "PG_CONFIG=$PG_CONFIG does not run"
    fi
    [ -n "$major" ] || major=$(distribution_major)
    if [ -z "$major" ] && have apt-get; then
        refresh_lists
        major=$(distribution_major)
    fi
    [ -n "$major" ] ||
        die "found no PostgreSQL, and no apt to install one: say PG_CONFIG=/path/to/pg_config"
    say "$major"
}

# Sets major and config.
look_for_server() {
    major=$(wanted_major)
    config=$(find_pg_config) || config=/usr/lib/postgresql/$major/bin/pg_config
    need g++ "the extension is written in C++" have g++
    need make "builds it" have make
    need "postgresql-$major" "the server to try it on" has_server "$config"
    need "postgresql-server-dev-$major" "the server's headers and build rules" \
        has_server_dev "$config"
}

look_for_sessions() {
    look_for_server
    need libdbd-pg-perl "sessions of the tests and the bench" has_perl DBD::Pg
}

look_for_bench() {
    look_for_sessions
    need valgrind "counts instructions" have valgrind
}

look_for_plots() {
    need gnuplot-nox "draws the bench's results" have gnuplot
}

look_for_model() {
    need spin "searches models of the protocols" have spin
    need gcc "compiles its searches" have gcc
    need libc6-dev "their headers" test -e /usr/include/stdio.h
}

look_for_tests() {
    look_for_sessions
    need libio-pty-perl "a terminal in which psql runs" has_perl IO::Pty
    need less "the pager of psql there" have less
    need binutils "nm, to look into the built library" have nm
    look_for_pgtap "$major" "$config"
}

# Debian has it in a package of its own from 18 on.
look_for_jit() {
    look_for_tests
    need "postgresql-$major-jit" "compiles statements in the server" has_jit
}

has_jit() { local dir; dir=$(pg_ask "$config" --pkglibdir); [ -e "${dir:-/none}/llvmjit.so" ]; }

# The real programs for the part integration. If a program is not available, its tests are skipped
# and say so.
look_for_integration() {
    look_for_tests
    want pgbouncer "a pooler" has_program pgbouncer
    want pgpool2 "a pooler that sends reads to standbys" has_program pgpool
    want "postgresql-$major-cron" "scheduled jobs" \
        has_server_file "$config" extension/pg_cron.control
    want "postgresql-$major-repack" "rebuilds tables" \
        has_server_file "$config" extension/pg_repack.control
    want "postgresql-$major-partman" "partitions" \
        has_server_file "$config" extension/pg_partman.control
    want pgbackrest "backups" have pgbackrest
    want sqitch "a migration tool" have sqitch
    want patroni "clusters that fail over" have patroni
    want etcd-server "where Patroni keeps what its members agree on" have etcd
    want python3-etcd "Patroni's client for etcd" has_python etcd
    want python3-psycopg2 "Python's client" has_python psycopg2
    want python3-psycopg "its successor, psycopg 3" has_python psycopg
    want python3-psycopg-pool "its pool of connections" has_python psycopg_pool
    want python3-pip "packs and installs the package for Python" has_python pip
    want python3-wheel "the form in which it is packed" has_python wheel
    want alembic "a migration tool in Python" has_python alembic
    want default-jdk-headless "Java" have javac
    want libpostgresql-jdbc-java "Java's client" test -e /usr/share/java/postgresql.jar
    want nodejs "Node" have node
    want ruby-pg "Ruby's client" has_ruby pg
    look_for_drivers
    want "postgresql-plperl-$major" "functions in Perl" \
        has_server_file "$config" extension/plperl.control
    want "postgresql-pltcl-$major" "functions in Tcl" \
        has_server_file "$config" extension/pltcl.control
    want ruby-activerecord "Ruby's ORM, which caches what it reads" has_ruby active_record
    want prometheus "monitoring: scrapes, alerts" have_both prometheus promtool
    want prometheus-postgres-exporter "an exporter for it" have prometheus-postgres-exporter
    want prometheus-sql-exporter "another exporter for it" have prometheus-sql-exporter
    want check-postgres "checks for Nagios and others" have check_postgres
    want pg-activity "a top for PostgreSQL" have pg_activity
    want pandoc "reads the documents, whose links are followed" have pandoc
    want librsvg2-bin "draws the documents' pictures" have rsvg-convert
    want npm "brings Node's modules from its registry" have npm
    # Where there is npm, the tests have what they need from there.
    have npm || want node-pg "Node's client" test -e /usr/share/nodejs/pg
}

# Those that test/integration/driver_calls.t runs, besides the above.
look_for_drivers() {
    want python3-asyncpg "another client for Python" has_python asyncpg
    want python3-pyodbc "ODBC for Python" has_python pyodbc
    want odbc-postgresql "PostgreSQL's driver for ODBC" has_file '/usr/lib/*/odbc/psqlodbcw.so'
    want golang-go "Go" have go
    want golang-github-lib-pq-dev "a client for Go" \
        test -e /usr/share/gocode/src/github.com/lib/pq
    want golang-github-jackc-pgx-v4-dev "another client for Go" \
        test -e /usr/share/gocode/src/github.com/jackc/pgx/v4
    want php-cli "PHP" have php
    want php-pgsql "PHP's clients" has_php pdo_pgsql
    want tcl "Tcl" have tclsh
    want tcl8.6-tdbc-postgres "Tcl's client" has_tcl tdbc::postgres
    want libpqxx-dev "a client for C++" test -e /usr/include/pqxx/pqxx
    want libecpg-dev "embedded SQL in C" have ecpg
}

has_file() { compgen -G "$1"; }
has_php() { php -m | grep -Fx "$1"; }
has_tcl() { [ "$(echo "puts [catch {package require $1}]" | tclsh)" = 0 ]; }

# want PACKAGE REASON TEST…: as need, but if the package is not available the tests run without it.
want() {
    "${@:3}" >/dev/null 2>&1 && return
    if have apt-cache && ! is_available "$1"; then
        refresh_lists
        is_available "$1" ||
            { say "not to be had: $1 ($2; tests with it will be skipped)"; return; }
    fi
    say "missing: $1 ($2)"
    optional+=("$1")
}

have_both() { have "$1" && have "$2"; }

has_program() { have "$1" || [ -x "/usr/sbin/$1" ]; }

# Debian's own Python, which is the one that has Debian's modules.
has_python() { /usr/bin/python3 -c "import $1"; }

# A PostgreSQL before its release has no pgTAP package yet: the tests then say that they skipped
# those files.
look_for_pgtap() {
    has_server_file "$2" extension/pgtap.control && return
    if have apt-cache && ! is_available "postgresql-$1-pgtap"; then
        refresh_lists
        is_available "postgresql-$1-pgtap" || {
            say "not to be had: postgresql-$1-pgtap (tests in SQL will be skipped)"
            return
        }
    fi
    need "postgresql-$1-pgtap" "tests in SQL" false
}

is_available() { apt-cache show "$1" >/dev/null 2>&1; }

look_for_matrix() {
    need debootstrap "makes the chroots of other Debian releases" have debootstrap
    need util-linux "unshare, so that mounts end with their user" have unshare
}

look_for_platforms() {
    look_for_tests
    look_for_matrix
}

look_for_qemu() {
    need qemu-user-static "runs the programs of other processors" \
        have_both qemu-aarch64-static qemu-s390x-static
    need binfmt-support "makes the kernel call it" have update-binfmts
}

look_for_dist() {
    need make "joins the install script" have make
    need zip "packs the archive" have zip
}

# With Debian's own build rules for extensions, which build for every server whose development files
# are here.
look_for_deb() {
    need build-essential "what Debian takes for granted" is_installed build-essential
    need debhelper "does most of the work for debian/rules" have dh
    need postgresql-server-dev-all "builds an extension for several servers" \
        is_installed postgresql-server-dev-all
}

is_installed() { [ "$(dpkg-query --show --showformat='${db:Status-Status}' "$1")" = installed ]; }

look_for_packages() {
    look_for_server
    look_for_matrix
    need unzip "unpacks the archive for PGXN" have unzip
    want rpm "builds and reads RPM packages" have rpmbuild
}

look_for_lint() {
    look_for_server
    need git "knows the files" have git
    need clang "a second compiler's warnings" have clang++
    need clang-tidy "finds bugs in C++" have clang-tidy
    need cppcheck "finds others" have cppcheck
    need shellcheck "finds bugs in shell scripts" have shellcheck
    need libperl-critic-perl "finds bugs in Perl" have perlcritic
    want docker-compose "knows what may be in compose.yaml" have docker-compose
}

look_for_sanitize() {
    look_for_tests
    need valgrind "checks every access to memory" have valgrind
}

look_for_assert() {
    look_for_tests
    need dpkg-dev "unpacks Debian's source packages" have dpkg-source
    need libssl-dev "the server's headers for TLS and random numbers" \
        test -e /usr/include/openssl/ssl.h
    need patch "applies Debian's changes" have patch
    need bzip2 "unpacks the source" have bzip2
    need xz-utils "unpacks Debian's changes" have xz
    need bison "makes the server's parsers, from 17 on" have bison
    need flex "makes its scanners" have flex
}

# ---- Installing ----------------------------------------------------------------------------------

as_root() {
    if is_root; then "$@"; else sudo "$@"; fi
}

# sudo without a password, or with a terminal to type one.
may_become_root() {
    is_root && return
    have sudo || return
    sudo -n true 2>/dev/null || [ -t 0 ]
}

apt_get() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=600 \
        -o Dpkg::Use-Pty=0 "$@" >"$log" 2>&1
}

lists_refreshed=
refresh_lists() {
    [ -z "$lists_refreshed" ] || return 0
    lists_refreshed=1
    may_become_root || return 0
    apt_get update ||
        { cat "$log" >&2; warn "apt-get update failed; trying with the lists there are"; }
}

lists_are_old() {
    local lists=/var/lib/apt/lists
    [ -z "$(find $lists -maxdepth 1 -name '*_Packages*' -ctime -7 -print -quit 2>/dev/null)" ]
}

# Debian's packages start the services that they install, and those of PostgreSQL create a cluster.
# The tests do not need that, so the script forbids it, also for the next start of the machine. If
# this script is killed, the policy that it leaves behind no longer forbids anything.
forbid_services() {
    [ -z "$no_cluster" ] || return 0
    local dir=/etc/postgresql-common/createcluster.d policy=/usr/sbin/policy-rc.d
    no_cluster=$dir/$EXTENSION-setup.conf
    services_before=$(registered_services)
    as_root mkdir -p "$dir"
    say 'create_main_cluster = false' | as_root tee "$no_cluster" >/dev/null
    [ ! -e "$policy" ] || return 0
    no_services=$policy
    printf '#!/bin/sh\n[ ! -d /proc/%s ] || exit 101\n' $$ | as_root tee "$policy" >/dev/null
    as_root chmod 755 "$policy"
}

# The services that Debian's packages have registered for the next start of the machine.
registered_services() {
    find /etc/systemd/system -path '*.wants/*' -name '*.service' ! -name 'postgresql*' 2>/dev/null |
        sort
}

cleanup() {
    if [ -n "$no_cluster" ]; then
        comm -13 <(say "$services_before") <(registered_services) |
            while IFS= read -r link; do as_root rm -f "$link"; done
        as_root rm -f "$no_cluster" ${no_services:+"$no_services"}
        as_root rmdir --ignore-fail-on-non-empty "$(dirname "$no_cluster")"
    fi
    rm -f "$log"
}

install_missing() {
    local line="apt-get install -y --no-install-recommends ${missing[*]}"
    have apt-get ||
        die "no apt here: please install the above with this system's own means, then try again"
    if ! may_become_root; then
        warn "neither root nor sudo: please have this run, then try again:"
        printf '    %s\n' "$line" >&2
        warn "(Debian's server packages also start a cluster of their own, unless a file in" \
            "/etc/postgresql-common/createcluster.d/ that ends in .conf says" \
            "create_main_cluster = false)"
        exit 1
    fi
    say "running: $line"
    forbid_services
    ! lists_are_old || refresh_lists
    apt_get install -y --no-install-recommends "${missing[@]}" && return
    refresh_lists
    apt_get install -y --no-install-recommends "${missing[@]}" ||
        { cat "$log" >&2; die "apt could not install it"; }
}

install_optional() {
    local line="apt-get install -y --no-install-recommends ${optional[*]}"
    if have apt-get && may_become_root; then
        say "running: $line"
        forbid_services
        ! lists_are_old || refresh_lists
        apt_get install -y --no-install-recommends "${optional[@]}" && return
        refresh_lists
        apt_get install -y --no-install-recommends "${optional[@]}" && return
        cat "$log" >&2
    fi
    warn "the tests with these will be skipped; to have them: $line"
}

log=$(mktemp)
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

case $purpose in
    demo) look_for_server ;;
    test) look_for_tests ;;
    *)    "look_for_$purpose" ;;
esac
[ "${#missing[@]}" -eq 0 ] || install_missing
[ "${#optional[@]}" -eq 0 ] || install_optional
