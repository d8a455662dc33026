#!/usr/bin/env bash
# The tests on other processors, in other encodings and with settings that change how the server
# works: `make test-platforms`. Needs root, on a Debian machine.
#
#   PLATFORMS="i386 latin1"     only these of: i386 arm64 s390x latin1 euc_jp sql_ascii parallel
#                               generic preload caches jit jit_optimized
#   JOBS=1                      how many are tested at the same time (default: 2, if there are as
#                               many processors)
#   ADVISORY_EXT_MATRIX_DIR=…   where the chroots are kept (default: under XDG_CACHE_HOME or
#                               /var/cache); remove a platform's directory in there to have it made
#                               anew
#   PARTS, TESTS, TEST_JOBS, TEST_TIMEOUT, TEST_UNTIL, TEST_TWICE  as for scripts/test.sh
#
# i386, arm64 and s390x are chroots of this machine's Debian release, with its PostgreSQL; qemu runs
# what this processor cannot. i386 has Datums of 4 bytes, s390x is big-endian. All other platforms
# are servers of this machine. The last line has the totals, and the lines before it name what
# failed.
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=scripts/chroots.sh
. "$(dirname "${BASH_SOURCE[0]}")/chroots.sh"
# shellcheck source=scripts/runs.sh
. "$(dirname "${BASH_SOURCE[0]}")/runs.sh"

ALL_PLATFORMS="s390x arm64 i386 latin1 euc_jp sql_ascii parallel generic preload caches"
ALL_PLATFORMS="$ALL_PLATFORMS jit jit_optimized"
SLOW_TIMEOUT=3000       # seconds for each part, with qemu or without caches

# ---- What the platforms are ----------------------------------------------------------------------

parts_of() {
    case $1 in
        arm64 | s390x) say regress ;;
        i386)          say library regress isolation pgtap ;;
        caches)        say regress ;;
        *)             say regress isolation pgtap ;;
    esac
}

# Rebuilding all caches each time takes about a hundred times as long.
tests_of() {
    case $1 in
        caches) say 00_install 20_locks 35_semaphores 46_tokens 48_leases ;;
    esac
}

encoding_of() {
    case $1 in
        latin1 | euc_jp | sql_ascii) say "${1^^}" ;;
        *) say UTF8 ;;
    esac
}

# The tests are files in UTF-8.
settings_of() {
    local parallel=debug_parallel_query
    [ "$major" -ge 16 ] || parallel=force_parallel_mode
    case $1 in
        latin1 | euc_jp) say client_encoding=UTF8 ;;
        parallel)        say $parallel=regress ;;
        generic)         say plan_cache_mode=force_generic_plan ;;
        preload)         say shared_preload_libraries=$EXTENSION ;;
        caches)          say debug_discard_caches=1 ;;
    esac
}

jit_of() {
    case $1 in
        jit)           say inline ;;
        jit_optimized) say optimize ;;
    esac
}

is_other_processor() { case $1 in i386 | arm64 | s390x) ;; *) return 1 ;; esac; }

# ---- Other processors ----------------------------------------------------------------------------

# obtain_platform ARCHITECTURE LOG: leaves a complete chroot in the cache, or fails with the reason
# in the log. It has only the headers of the server's development package, not the other compiler on
# which that depends.
obtain_platform() {
    local name=$1 log=$2 root=$CACHE/$1
    [ ! -d "$root" ] || return 0
    say "$name | making a chroot, once (kept in $CACHE)"
    make_chroot "$(debian_codename)" "$root.partial" "$log" "$name" || return 1
    # shellcheck disable=SC2016 # expanded by the inner shell
    in_chroot "" "$log" "$root.partial" bash -euc '
        mkdir -p /etc/postgresql-common/createcluster.d
        echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.d/none.conf
        cd /tmp
        apt-get -qq update
        DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends \
            g++ make libssl-dev binutils libdbd-pg-perl "postgresql-$1" "postgresql-$1-pgtap"
        apt-get -qq download "postgresql-server-dev-$1"
        dpkg-deb --extract postgresql-server-dev-*.deb /
        apt-get clean' setup "$major" || return 1
    mv "$root.partial" "$root"
}

test_in_platform() {
    local name=$1 log=$2 root=$CACHE/$1
    copy_tree "$root$CHROOT_TREE"
    in_chroot "$name | " "$log" "$root" \
        make --no-print-directory -C "$CHROOT_TREE" test \
        PG_CONFIG="/usr/lib/postgresql/$major/bin/pg_config"
}

# ---- This processor ------------------------------------------------------------------------------

# All of them use what was built once.
build_here() {
    copy_tree "$work/built"
    (REPOSITORY=$work/built && run_make all) >"$work/build.log" 2>&1 ||
        { cat "$work/build.log"; die "the extension could not be built"; }
}

# Only a server with assertions can discard its caches.
test_here() {
    local name=$1 log=$2 script=test.sh
    cp -a "$work/built" "$work/$name.tree"
    [ "$name" != caches ] || script=assert.sh
    ADVISORY_EXT_ENCODING=$(encoding_of "$name") ADVISORY_EXT_SETTINGS=$(settings_of "$name") \
        ADVISORY_EXT_JIT=$(jit_of "$name") \
        run_shown "$name | " "$log" bash "$work/$name.tree/scripts/$script"
}

# ---- All together --------------------------------------------------------------------------------

test_platform() {
    local name=$1 log=$work/$1.log status=0 where started=$SECONDS
    PARTS=${PARTS:-$(parts_of "$name")}
    TESTS=${TESTS:-$(tests_of "$name")}
    case $name in arm64 | s390x | caches) export TEST_TIMEOUT=${TEST_TIMEOUT:-$SLOW_TIMEOUT} ;; esac
    export PARTS TESTS
    if is_other_processor "$name"; then
        where="Debian $(debian_codename)"
        obtain_platform "$name" "$work/$name.setup" || { record_no_chroot "$name"; return; }
        started=$SECONDS
        test_in_platform "$name" "$log" || status=$?
    else
        where="$(encoding_of "$name") $(settings_of "$name")$(jit_of "$name")"
        test_here "$name" "$log" || status=$?
    fi
    record "$name" "$where" "$log" "$status" "$((SECONDS - started))"
}

main() {
    local name is_here=
    is_root ||
        die "other processors are tested in chroots, and that needs root ('make test' does not)"
    PLATFORMS=${PLATFORMS:-$ALL_PLATFORMS}
    for name in $PLATFORMS; do
        case " $ALL_PLATFORMS " in
            *" $name "*) is_other_processor "$name" || is_here=1 ;;
            *) die "there is no platform '$name': choose of $ALL_PLATFORMS" ;;
        esac
    done
    begin_runs platforms
    PG_CONFIG=$(find_pg_config)
    export PG_CONFIG
    major=$(pg_major "$PG_CONFIG")
    case " $PLATFORMS " in *" arm64 "* | *" s390x "*) call_qemu ;; esac
    [ -z "$is_here" ] || build_here
    # shellcheck disable=SC2086 # names
    run_side_by_side test_platform $PLATFORMS
    # shellcheck disable=SC2086
    show_table "" $PLATFORMS
}

main
