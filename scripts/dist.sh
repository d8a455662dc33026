#!/usr/bin/env bash
# The archive for PGXN: `make dist` writes advisory_ext-X.Y.Z.zip into this folder, and its checksum
# into advisory_ext-X.Y.Z.zip.sha256.
#
# It has the files of the last commit (`git archive`), under a folder of the same name, and the
# install script, which make joins from sql and which META.json names. Without git, as in an
# unpacked distribution, it has the files of this tree.
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

work=

# Copies what belongs into the distribution to a folder.
copy_sources() {
    if is_clone; then
        git archive HEAD | tar -x -C "$1"
    else
        tar -c --exclude='./*.zip' --exclude='./*.zip.sha256' --exclude=./results \
            --exclude=./.git . | tar -x -C "$1"
        make --no-print-directory -C "$1" clean >/dev/null
    fi
}

# An unpacked distribution may be inside somebody else's clone.
is_clone() { have git && [ "$(git rev-parse --show-toplevel 2>/dev/null)" = "$REPOSITORY" ]; }

# A clone that git cannot read would be packed with all that lies around in it.
check_clone() {
    if [ -e .git ] && ! is_clone; then
        ! have git || git rev-parse || die "git cannot read this clone, see above"
        die "this is a clone: install git, which knows the files"
    fi
}

meta() {
    # shellcheck disable=SC2016 # Perl's variables
    perl -MJSON::PP -0777 -ne '$meta = decode_json($_); print $meta->{$ENV{FIELD}}' "$1/META.json"
}

# pack TREE ARCHIVE: the same files give the same bytes, whenever, wherever and by whomever they are
# packed. Each file has the date of debian/changelog.
pack() {
    local tree=$1 name=${2%.zip} date
    date=$(sed -n 's/^ -- .*>  //p' "$tree/debian/changelog" | head -n 1)
    mv "$tree" "$work/$name"
    rm -f "$2"
    (
        cd "$work"
        chmod -R u=rwX,go=rX "$name"
        find "$name" -type f -exec touch --date="$date" {} +
        find "$name" -type f | LC_ALL=C sort | TZ=UTC zip -qX "$REPOSITORY/$2" -@
    )
    sha256sum "$2" >"$2.sha256"
}

main() {
    local tree name version script mistakes
    cd "$REPOSITORY"
    check_clone
    bash scripts/packages.sh dist
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    tree=$work/tree
    mkdir "$tree"
    copy_sources "$tree"
    ! is_clone || git diff --quiet HEAD || warn "changes that are not committed are left out"
    name=$EXTENSION-$(FIELD=version meta "$tree")
    version=$(sed -n "s/^default_version *= *'\([^']*\)'.*/\1/p" "$tree/$EXTENSION.control")
    script=sql/$EXTENSION--$version.sql
    make --no-print-directory --silent -C "$tree" PG_CONFIG=none "$script" >/dev/null
    mistakes=$(perl "$tree/scripts/meta.pl" --dist "$tree" &&
        perl "$tree/scripts/addresses.pl" "$tree") || die "$mistakes"
    pack "$tree" "$name.zip"
    say "$name.zip.sha256"
    say "$name.zip"
}

main
