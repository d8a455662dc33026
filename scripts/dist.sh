#!/usr/bin/env bash
# The archive for PGXN: `make dist` writes advisory_ext-X.Y.Z.zip into this folder.
#
# It has the files of the last commit (`git archive`), under a folder of the same name, and the install script, which make joins from
# sql/parts and which META.json names. Without git, as in an unpacked distribution, it has the files of this tree.
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

work=

# Copies what belongs into the distribution to a folder.
copy_sources() {
    if is_clone; then
        git archive HEAD | tar -x -C "$1"
    else
        tar -c --exclude='./*.zip' --exclude=./results --exclude=./.git . | tar -x -C "$1"
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

# pack TREE NAME SCRIPT: both ways give the same files.
pack() {
    local tree=$1 name=$2 script=$3
    rm -f "$name.zip"
    if is_clone; then
        git archive --format=zip --prefix="$name/sql/" --add-file="$tree/$script" --prefix="$name/" --output="$name.zip" HEAD
    else
        mv "$tree" "$work/$name"
        (cd "$work" && zip -qrX "$REPOSITORY/$name.zip" "$name")
    fi
}

main() {
    local tree name mistakes
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
    local script
    script=sql/$EXTENSION--$(sed -n "s/^default_version *= *'\([^']*\)'.*/\1/p" "$tree/$EXTENSION.control").sql
    make --no-print-directory --silent -C "$tree" PG_CONFIG=none "$script" >/dev/null
    mistakes=$(perl "$tree/scripts/meta.pl" --dist "$tree") || die "META.json is wrong:" "$mistakes"
    pack "$tree" "$name" "$script"
    say "$name.zip"
}

main
