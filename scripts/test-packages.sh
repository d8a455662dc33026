#!/usr/bin/env bash
# Builds the packages, installs them where nothing else is, tests them and removes them:
# `make test-packages`. Needs root.
#
#   PACKAGES="dist deb"             only these of: dist deb readme rpm (readme needs what deb has
#                                   built)
#   RELEASES="bookworm trixie sid"  the Debian releases for deb
#   ARCHITECTURES="i386 s390x"      the processors for deb (default: this machine's); qemu runs what
#                                   this one cannot
#   TEST_UNTIL=…                    from this time on, in seconds since 1970, less five minutes,
#                                   neither deb nor readme begins
#   ADVISORY_EXT_MATRIX_DIR=…       where the chroots are kept (see scripts/chroots.sh), in the
#                                   folder "packages"; remove a release's folders in there to have
#                                   them made anew
#
# dist: the archive for PGXN (the last commit) is unpacked, built, installed beside a throw-away
# server and tested with it.
# deb: for each release, a chroot that is kept builds and checks the Debian package of the work tree
# as it is; a fresh copy of a minimal chroot installs it with apt, and test/packages/installed.sh
# goes on there. readme: in another copy test/packages/readme.sh follows README.md. For another
# processor, lintian and README.md are left out: they would say the same, slowly. rpm: the RPM
# package is built and installed into a folder here.
#
# The packages stay in results/packages. A release that is not available counts as skipped. The last
# line is "N passed, N failed", and ", N skipped" if there were any.
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=scripts/chroots.sh
. "$(dirname "${BASH_SOURCE[0]}")/chroots.sh"

PACKAGES=${PACKAGES:-dist deb readme rpm}
RELEASES=${RELEASES:-bookworm trixie sid}
CACHE=$CACHE/packages
NATIVE=$(dpkg --print-architecture 2>/dev/null || true)
ARCHITECTURES=${ARCHITECTURES:-$NATIVE}

passed=0 failed=0 skipped=0
failures=()     # what failed
work=           # our temporary directory
fresh=          # a chroot to be thrown away

title() { printf '\n== %s\n' "$*"; }

# tally LOG WHAT: counts the lines of a log that are results of tests of WHAT.
tally() {
    local good bad
    good=$(grep -c '^ok - ' "$1" || true)
    bad=$(grep -c '^FAILED - ' "$1" || true)
    passed=$((passed + good)) failed=$((failed + bad))
    [ "$bad" -eq 0 ] ||
        mapfile -t -O "${#failures[@]}" failures < <(sed -n "s/^FAILED - /$2: /p" "$1")
}

# check TITLE COMMAND…: runs a test, and shows its output if it fails.
check() {
    local title=$1 log=$work/check.log started=$SECONDS
    shift
    if "$@" >"$log" 2>&1; then
        say "ok - $title ($((SECONDS - started)) s)"
        passed=$((passed + 1))
    else
        say "FAILED - $title:"
        tail -n 100 "$log"
        failed=$((failed + 1))
        failures+=("$title")
        return 1
    fi
}

# keep FOLDER FILE…: leaves built packages in results/packages.
keep() {
    local folder=$REPOSITORY/results/packages/$1
    rm -rf "$folder"
    mkdir -p "$folder"
    cp "${@:2}" "$folder/"
}

skip() {
    say "skipped: $*"
    skipped=$((skipped + 1))
}

# ---- The archive for PGXN ------------------------------------------------------------------------

test_dist() {
    local archive tree
    title "dist: the archive for PGXN"
    # An unpacked distribution has the name of its archive, too.
    check "make dist" make --no-print-directory -C "$REPOSITORY" dist || return 0
    archive=$REPOSITORY/$(grep -E '\.zip$' "$work/check.log" | tail -n 1)
    check "it has one folder, of the same name" has_one_folder "$archive" || return 0
    keep pgxn "$archive"
    (cd "$work" && unzip -q "$archive")
    tree=$work/$(basename "$archive" .zip)
    check "META.json agrees with the files (scripts/meta.pl)" \
        perl "$tree/scripts/meta.pl" --dist "$tree" || true
    check "nothing is in it that make would build, but the install script" \
        has_only_sources "$tree" || true
    check "it makes the install script that it has" makes_its_script "$tree" || true
    check "it builds, installs, and passes make installcheck" env -u ADVISORY_EXT_STAGE \
        bash "$tree/scripts/server.sh" run -- make --no-print-directory -C "$tree" installcheck \
        ${PG_CONFIG:+PG_CONFIG="$PG_CONFIG"} || true
    check "its checksum is beside it" \
        in_folder "${archive%/*}" sha256sum --check --strict "${archive##*/}.sha256" || true
    check "make dist gives the same bytes in it, later, elsewhere and under another umask" \
        repeats_itself "$tree" "$archive" || true
}

has_one_folder() {
    local folder others
    folder=$(basename "$1" .zip)
    others=$(unzip -Z1 "$1" | grep -v "^$folder/" || true)
    [ -z "$others" ] || { say "$others"; return 1; }
}

has_only_sources() {
    local built
    built=$(find "$1" -name '*.o' -o -name '*.so' -o -name '*.bc' -o -name '*.gch' \
        -o -name '*.d' -type f -o -name results -o -name .git)
    [ -z "$built" ] || { say "$built"; return 1; }
}

makes_its_script() {
    local script
    script=$(cd "$1" && find sql -name '*--*.sql' ! -name '*--*--*.sql')
    mv "$1/$script" "$work/script.sql" &&
        make --no-print-directory -C "$1" PG_CONFIG=none "$script" &&
        cmp "$1/$script" "$work/script.sql"
}

in_folder() { (cd "$1" && "${@:2}"); }

repeats_itself() {
    local again
    again=$1/$(basename "$2")
    find "$1" -exec touch {} +
    (umask 077 && TZ=Asia/Tokyo LC_ALL=C.UTF-8 make --no-print-directory -C "$1" dist) &&
        cmp "$2" "$again"
}

# ---- Debian packages -----------------------------------------------------------------------------

# obtain PLACE LOG: leaves two complete chroots in the cache, a minimal one and one that can build
# packages. A place is a release, followed by -ARCHITECTURE for another processor. A chroot gets its
# name when it is complete, so that an incomplete one is never used.
obtain() {
    local place=$1 log=$2 clean=$CACHE/$1 builder=$CACHE/$1-build architecture=
    ! is_foreign "$place" || architecture=${place#*-}
    if [ ! -d "$clean" ]; then
        say "making a chroot of Debian $place, once (kept in $CACHE)"
        make_chroot "${place%%-*}" "$clean.partial" "$log" "$architecture" || return 1
        mv "$clean.partial" "$clean"
    fi
    [ ! -d "$builder" ] || return 0
    say "making another one that can build packages"
    rm -rf "$builder.partial"
    cp -a "$clean" "$builder.partial"
    copy_tree "$builder.partial$CHROOT_TREE"
    # shellcheck disable=SC2016 # expanded by the inner shell
    in_chroot "" "$log" "$builder.partial" bash -euc '
        apt-get -qq update
        bash "$1/scripts/packages.sh" deb
        [ -n "$2" ] ||
            DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends lintian
        apt-get clean' setup "$CHROOT_TREE" "$architecture" || return 1
    mv "$builder.partial" "$builder"
}

is_foreign() { [[ $1 == *-* ]]; }

test_deb() { in_places deb build_and_install; }

test_readme() { in_places readme follow_readme; }

# in_places PACKAGE COMMAND: calls the command with each place, when its chroots are there.
in_places() {
    local release architecture place
    is_root || { skip "$1: chroots need root"; return; }
    bash "$REPOSITORY/scripts/packages.sh" matrix
    mkdir -p "$CACHE"
    exec 9>"$CACHE/lock"
    flock 9     # two runs must not make, or use, one chroot at the same time
    if [ -n "${TEST_UNTIL:-}" ] && [ "$(date +%s)" -ge $((TEST_UNTIL - 300)) ]; then
        skip "$1: there is no time left for it"
        exec 9>&-
        return
    fi
    [ "$ARCHITECTURES" = "$NATIVE" ] || call_qemu
    for release in $RELEASES; do
        for architecture in $ARCHITECTURES; do
            place=$release
            [ "$architecture" = "$NATIVE" ] || place+=-$architecture
            title "$1: Debian $place"
            if obtain "$place" "$work/$place.setup"; then
                "$2" "$place"
            else
                tail -n 20 "$work/$place.setup"
                skip "Debian $place: $(reason "$work/$place.setup")"
            fi
        done
    done
    exec 9>&-
}

build_and_install() {
    local place=$1 builder=$CACHE/$1-build packages deb
    packages=$builder$CHROOT_TREE/results/deb
    rm -rf "$REPOSITORY/results/packages/$place"
    copy_tree "$builder$CHROOT_TREE"
    check "make deb" in_chroot "" "$work/build" "$builder" \
        make --no-print-directory -C "$CHROOT_TREE" deb ||
        { cat "$work/build"; return 0; }
    keep "$place" "$packages"/*
    deb=$(built_package "$place")
    in_fresh_chroot "$place" installed.sh "$(major_of "$deb")" "/root/$deb"
    ! is_foreign "$place" || return 0
    lint_packages "$place" "$builder" || true
    [ "$place" != sid ] || check "debian/control is what debian/control.in makes of it there" \
        cmp "$REPOSITORY/debian/control" \
        <(tar -xOf "$packages"/advisory-ext_*.debian.tar.xz debian/control) || true
}

# The package for the newest server.
built_package() {
    { find "$REPOSITORY/results/packages/$1" -name 'postgresql-*-advisory-ext_*.deb' \
        -printf '%f\n' 2>/dev/null || true; } |
        sort -V | tail -n 1
}

major_of() { sed -n 's/^postgresql-\([0-9]*\)-.*/\1/p' <<<"$1"; }

follow_readme() {
    local deb
    ! is_foreign "$1" || return 0
    deb=$(built_package "$1")
    if [ -n "$deb" ]; then
        say "with $deb of $(date -r "$REPOSITORY/results/packages/$1/$deb" '+%F %T')"
        in_fresh_chroot "$1" readme.sh "$(major_of "$deb")"
    else
        skip "readme.sh on Debian $1: no package was built for it"
    fi
}

# Two warnings are expected: no bug report has asked for the package, and an older lintian does not
# know newer standards.
lint_packages() {
    # shellcheck disable=SC2016 # expanded by the inner shell
    check "lintian has no error and no warning" in_chroot "" "$work/lintian" "$2" bash -c '
        lintian --allow-root --fail-on error,warning \
            --suppress-tags initial-upload-closes-no-bugs,newer-standards-version \
            "$1"/results/deb/*.changes' lint "$CHROOT_TREE" || { cat "$work/lintian"; return 1; }
}

# in_fresh_chroot PLACE SCRIPT ARGUMENT…: runs a script of test/packages in a copy of the minimal
# chroot. The packages that were built are in its /root.
in_fresh_chroot() {
    local place=$1 script=$2 status=0
    fresh=$CACHE/$place.fresh
    rm -rf "$fresh"
    cp -a "$CACHE/$place" "$fresh"
    copy_tree "$fresh$CHROOT_TREE"
    cp "$REPOSITORY/results/packages/$place"/*.deb "$fresh/root/"
    if ! in_chroot "" "$work/update" "$fresh" apt-get -qq update; then
        cat "$work/update"
        skip "$script on Debian $place: $(reason "$work/update")"
    else
        in_chroot "" "$work/script" "$fresh" \
            bash "$CHROOT_TREE/test/packages/$script" "${@:3}" || status=$?
        cat "$work/script"
        tally "$work/script" "$script on $place"
        if [ "$status" -ne 0 ]; then
            say "FAILED - test/packages/$script ended early (exit code $status)"
            failed=$((failed + 1))
            failures+=("$script on $place: it ended early")
        fi
    fi
    rm -rf "$fresh"
    fresh=
}

# ---- RPM packages --------------------------------------------------------------------------------

# With Debian's server and Debian's rpm, which knows nothing of the packages that the spec file asks
# for.
test_rpm() {
    local top=$work/rpm root=$work/root major archive rpm
    title "rpm: the RPM package"
    have rpmbuild || { skip "rpm: there is no rpmbuild"; return; }
    PG_CONFIG=$(find_pg_config)
    major=$(pg_major "$PG_CONFIG")
    check "make dist" make --no-print-directory -C "$REPOSITORY" dist || return 0
    archive=$REPOSITORY/$(grep -E '\.zip$' "$work/check.log" | tail -n 1)
    mkdir -p "$top/SOURCES" "$root"
    cp "$archive" "$top/SOURCES/"
    check "rpmbuild" rpmbuild -bb --nodeps \
        --define "_topdir $top" --define "pgmajorversion $major" \
        --define "pg_config $PG_CONFIG" "$REPOSITORY/rpm/$EXTENSION.spec" || return 0
    rpm=$(find "$top/RPMS" -name "${EXTENSION}_$major-*.rpm")
    keep rpm "$rpm"
    check "it can be installed" install_rpm "$root" "$rpm" || return 0
    check "every file that make installs is there" diff <(installed_by_make) \
        <(cd "$root" && find . -path '*/*rpmdb' -prune -o -path ./var -prune \
            -o -path '*/.build-id' -prune -o -path './usr/share/licenses' -prune \
            -o -type f -print | sort) || true
    check "it can be removed" rpm --root "$root" --erase "${EXTENSION}_$major" || true
    check "nothing of it remains" nothing_remains "$root" || true
}

install_rpm() {
    rpm --root "$1" --initdb && rpm --root "$1" --install --nodeps "$2"
}

installed_by_make() {
    run_make install DESTDIR="$work/made" >"$work/make.log" 2>&1 || cat "$work/make.log"
    (cd "$work/made" && find . -type f | sort)
}

nothing_remains() {
    local left
    left=$(find "$1" -iname "*advisory*")
    [ -z "$left" ] || { say "$left"; return 1; }
}

# ---- All together --------------------------------------------------------------------------------

cleanup() {
    trap '' HUP INT PIPE TERM
    end_child
    [ -z "$fresh" ] || rm -rf "$fresh"
    [ -z "$work" ] || rm -rf "$work"
}

main() {
    local package
    for package in $PACKAGES; do
        case $package in
            dist | deb | readme | rpm) ;;
            *) die "there is no package '$package': choose of dist deb readme rpm" ;;
        esac
    done
    bash "$REPOSITORY/scripts/packages.sh" packages
    trap cleanup EXIT
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 141' PIPE
    trap 'exit 143' TERM
    work=$(mktemp -d "${TMPDIR:-/tmp}/$EXTENSION-packages.XXXXXX")
    chmod 755 "$work"
    for package in $PACKAGES; do
        "test_$package"
    done
    printf '\n'
    [ "${#failures[@]}" -eq 0 ] || printf 'failed: %s\n' "${failures[@]%:}"
    say_counts "$passed" "$failed" "$skipped"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}

main
