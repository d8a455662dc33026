#!/usr/bin/env bash
# Debian packages of the extension: `make deb` leaves them in results/deb.
#
#   PG_SUPPORTED_VERSIONS="15 17"   for these servers only (default: those whose development files
#                                   are installed)
#   DEB_BUILD_OPTIONS=…             as for dpkg-buildpackage (default: all processors, and nocheck,
#                                   since the tests need postgresql-all)
#   DEB_DIR=…                       where they are left
#
# They are built from a copy of the work tree as it is now, by debian/rules.
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=scripts/chroots.sh
. "$(dirname "${BASH_SOURCE[0]}")/chroots.sh"

work=

# Debian's tools want the upstream sources in an archive of their own, next to the folder.
make_source() {
    local version=$1 folder=$2
    copy_tree "$folder"
    make --no-print-directory -C "$folder" PG_CONFIG=none clean >/dev/null
    tar -C "$work" -c --sort=name --owner=0 --group=0 --numeric-owner \
        --exclude="${folder##*/}/debian" "${folder##*/}" |
        xz -T0 -1 >"$work/advisory-ext_$version.orig.tar.xz"
}

main() {
    local version target=${DEB_DIR:-$REPOSITORY/results/deb} log
    bash "$REPOSITORY/scripts/packages.sh" deb
    work=$(mktemp -d "${TMPDIR:-/tmp}/$EXTENSION-deb.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    chmod 755 "$work"    # if the package is tested, another user's server reads it here
    log=$work/log
    version=$(cd "$REPOSITORY" && dpkg-parsechangelog --show-field Version)
    make_source "${version%-*}" "$work/advisory-ext-${version%-*}"
    cd "$work/advisory-ext-${version%-*}"
    export PG_SUPPORTED_VERSIONS=${PG_SUPPORTED_VERSIONS:-installed}
    export DEB_BUILD_OPTIONS=${DEB_BUILD_OPTIONS-nocheck parallel=$(nproc)}
    case " $DEB_BUILD_OPTIONS " in
        *" nocheck "*)
            export DEB_BUILD_PROFILES="${DEB_BUILD_PROFILES:+$DEB_BUILD_PROFILES }nocheck" ;;
    esac
    pg_buildext updatecontrol
    say "Debian packages for the PostgreSQL versions whose development files are installed" \
        "(PG_SUPPORTED_VERSIONS selects others)"
    say "building $(sed -n 's/^Package: //p' debian/control | paste -sd ' ')"
    dpkg-buildpackage --unsigned-source --unsigned-changes >"$log" 2>&1 ||
        { cat "$log" >&2; die "the packages could not be built"; }
    grep -A 4 'warning:' "$log" || true
    mkdir -p "$target"
    rm -f "$target"/advisory-ext_* "$target"/postgresql-*-advisory-ext*
    find "$work" -maxdepth 1 -type f ! -name log -exec cp {} "$target/" \;
    say "in $target:"
    cd "$target"
    ls -- *.deb
}

main
