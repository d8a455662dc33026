#!/usr/bin/env bash
# `make test` for every server version that Debian has, on one Debian machine: `make test-matrix`.
# Needs root.
#
#   VERSIONS="17 19"            only these (default: this machine's own, and 15 17 18 19)
#   JOBS=1                      how many are tested at the same time (default: 2, if there are as
#                               many processors)
#   ADVISORY_EXT_MATRIX_DIR=…   where the chroots are kept (default: under XDG_CACHE_HOME or
#                               /var/cache); remove a version's directory in there to have it made
#                               anew
#   PROGRAMS=                   with which version the real programs are tested, too (default: 18;
#                               empty: with none)
#   RUNS="plain jit"            only one of the two runs (default: both; with PARTS or TESTS only
#                               plain)
#   JIT=optimize                what the servers of the run jit do (see ADVISORY_EXT_JIT in
#                               scripts/server.sh; default: inline)
#   PARTS, TESTS, TEST_JOBS, TEST_TIMEOUT, TEST_UNTIL, TEST_TWICE  as for scripts/test.sh
#
# This machine's own version is tested here, every other version in a chroot of the Debian release
# that has it. A copy of the present work tree in each of them runs the same `make test`, which
# installs what it needs by itself; with 18 it is `make test-all`. Tests that say in a line "# Runs
# once: …" why the server's version does not matter for them run here only. The run jit repeats
# regress, isolation and pgtap on servers that compile every statement (JIT). A version that is not
# available is reported as skipped. If the tests of one version fail, the run fails. The last line
# has the totals, and the lines before it name what failed.
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=scripts/chroots.sh
. "$(dirname "${BASH_SOURCE[0]}")/chroots.sh"
# shellcheck source=scripts/runs.sh
. "$(dirname "${BASH_SOURCE[0]}")/runs.sh"

# The Debian release that has a server version. 16 was in none.
release_of() {
    case $1 in
        15) say bookworm ;;
        17) say trixie ;;
        18 | 19) say sid ;;
        *) return 1 ;;
    esac
}

# The older server that a chroot has, too, as after an upgrade of Debian, for tests of pg_upgrade.
older_of() {
    case $1 in
        17) say 15 ;;
        *) return 1 ;;
    esac
}

# With the newest released version, the real programs are tested, too.
PROGRAMS=${PROGRAMS-18}
target_of() { if [ "$1" = "$PROGRAMS" ]; then say test-all; else say test; fi; }

[ -z "${PARTS:-}${TESTS:-}" ] || RUNS=${RUNS:-plain}
RUNS=${RUNS:-plain jit}
JIT=${JIT:-inline}

# The version that is tested without a chroot: that of the server here, or else that of the Debian
# release.
host_version() {
    local config version
    if config=$(find_pg_config) && version=$(pg_major "$config") && [ -n "$version" ]; then
        say "$version"
        return
    fi
    for version in 15 17; do
        [ "$(release_of "$version")" != "$(debian_codename)" ] || say "$version"
    done
}

# ---- Making a chroot -----------------------------------------------------------------------------

# obtain_chroot VERSION LOG: leaves a complete chroot in the cache, or fails with the reason in the
# log. The chroot gets its name when it is complete, so that an incomplete one is never used.
obtain_chroot() {
    local version=$1 log=$2 root=$CACHE/$1 release
    [ ! -d "$root" ] || return 0
    release=$(release_of "$version") ||
        { say "no Debian release has PostgreSQL $version" >"$log"; return 1; }
    say "$version | making a chroot of Debian $release, once (kept in $CACHE)"
    make_chroot "$release" "$root.partial" "$log" || return 1
    allow_experimental "$version" "$root.partial"
    copy_tree "$root.partial$CHROOT_TREE"
    # shellcheck disable=SC2016 # expanded by the inner shell
    in_chroot "$version | " "$log" "$root.partial" bash -euc '
        apt-get -qq update
        PG_CONFIG=$2 bash "$1/scripts/packages.sh" test
        apt-get clean' setup "$CHROOT_TREE" "$(chroot_pg_config "$version")" || return 1
    borrow_pgtap "$version" "$log" "$root.partial"
    mv "$root.partial" "$root"
}

chroot_pg_config() { say "/usr/lib/postgresql/$1/bin/pg_config"; }

# Before its release a server version is in experimental. Nothing else is wanted from there.
allow_experimental() {
    local version=$1 root=$2
    [ "$version" -ge 19 ] || return 0
    say "deb $(mirror) experimental main" >"$root/etc/apt/sources.list.d/experimental.list"
    printf '%s\n' "Package: src:postgresql-$version" 'Pin: release a=experimental' \
        'Pin-Priority: 500' \
        >"$root/etc/apt/preferences.d/postgresql"
}

# pgTAP is plain SQL: where a version has no package of its own yet, the files of the one before
# serve.
borrow_pgtap() {
    local version=$1 before=$(($1 - 1)) log=$2 root=$3
    [ ! -e "$root/usr/share/postgresql/$version/extension/pgtap.control" ] || return 0
    # shellcheck disable=SC2016 # expanded by the inner shell
    in_chroot "$version | " "$log.pgtap" "$root" bash -euc '
        cd /tmp
        apt-get -qq download "postgresql-$1-pgtap"
        dpkg-deb --extract postgresql-*-pgtap_*.deb pgtap
        cp "pgtap/usr/share/postgresql/$1/extension/"pgtap* "/usr/share/postgresql/$2/extension/"
        ' borrow "$before" "$version" || say "$version | pgTAP of $before could not be had either"
}

# If it is not available, its tests are skipped. Only the files of its headers are needed, not the
# compiler that they depend on.
bring_older_server() {
    local version=$1 log=$2 root=$CACHE/$1 older
    older=$(older_of "$version") || return 0
    [ ! -e "$root/usr/lib/postgresql/$older/complete" ] || return 0
    say "deb $(mirror) $(release_of "$older") main" >"$root/etc/apt/sources.list.d/older.list"
    printf '%s\n' 'Package: *' "Pin: release n=$(release_of "$older")" 'Pin-Priority: 100' \
        >"$root/etc/apt/preferences.d/older"
    # shellcheck disable=SC2016 # expanded by the inner shell
    in_chroot "$version | " "$log" "$root" bash -euc '
        cd /tmp
        apt-get -qq update
        mkdir -p /etc/postgresql-common/createcluster.d
        echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.d/none.conf
        DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends \
            "postgresql-$1" >/dev/null 2>&1
        apt-get -qq download "postgresql-server-dev-$1"
        dpkg-deb --extract postgresql-server-dev-*.deb /
        apt-get clean
        touch "/usr/lib/postgresql/$1/complete"
        ' older "$older" ||
        say "$version | PostgreSQL $older could not be had besides: $(reason "$log")"
}

# ---- Testing -------------------------------------------------------------------------------------

# A copy of the tree, in which both runs of a version build once.
copy_for() {
    if is_here "$1"; then copy_tree "$work/tree"; else copy_tree "$CACHE/$1$CHROOT_TREE"; fi
}

is_here() { [ "$1" = "$(host_version)" ]; }

# make_there VERSION LOG TARGET
make_there() {
    local version=$1 log=$2 target=$3 config
    if is_here "$version"; then
        config=$(find_pg_config) || config=$(chroot_pg_config "$version")
        run_shown "$version | " "$log" \
            make --no-print-directory -C "$work/tree" "$target" PG_CONFIG="$config"
        return
    fi
    export TEST_ONCE=no
    # One release is tested without terminals, as users' chroots and containers are.
    [ "$version" != 17 ] || export WITHOUT_TERMINALS=1
    in_chroot "$version | " "$log" "$CACHE/$version" \
        make --no-print-directory -C "$CHROOT_TREE" "$target" \
        PG_CONFIG="$(chroot_pg_config "$version")"
}

# run_tests NAME VERSION WHERE TARGET
run_tests() {
    local status=0 started=$SECONDS
    make_there "$2" "$work/$1.log" "$4" || status=$?
    record "$1" "$3" "$work/$1.log" "$status" "$((SECONDS - started))"
}

# The names of a version's runs.
runs_of() {
    local run
    for run in $RUNS; do
        case $run in
            plain) say "$1" ;;
            jit)   say "$1-jit" ;;
            *)     die "there is no run '$run': choose of plain jit" ;;
        esac
    done
}

test_version() {
    local version=$1 where=here run
    if ! is_here "$version"; then
        where="Debian $(release_of "$version" || true)"
        if ! obtain_chroot "$version" "$work/$version.setup"; then
            for run in $(runs_of "$version"); do record_no_chroot "$run" "$version"; done
            return
        fi
        bring_older_server "$version" "$work/$version.older"
    fi
    copy_for "$version"
    for run in $(runs_of "$version"); do
        case $run in
            *-jit) ADVISORY_EXT_JIT=$JIT PARTS=${PARTS:-regress isolation pgtap} \
                run_tests "$run" "$version" "$where, all compiled: $JIT" test ;;
            *)     run_tests "$run" "$version" "$where" "$(target_of "$version")" ;;
        esac
    done
}

main() {
    local version names=()
    is_root || die "the test matrix makes chroots, and that needs root ('make test' does not)"
    VERSIONS=${VERSIONS:-$(printf '%s\n' "$(host_version)" 15 17 18 19 | sort -un | tr '\n' ' ')}
    for version in $VERSIONS; do mapfile -t -O "${#names[@]}" names <<<"$(runs_of "$version")"; done
    begin_runs matrix
    # shellcheck disable=SC2086 # names
    run_side_by_side test_version $VERSIONS
    show_table "(16 is in no Debian release; elsewhere: make test PG_CONFIG=… with such a server)" \
        "${names[@]}"
}

main
