#!/usr/bin/env bash
# Follows the section "Install" of README.md on a clean Debian, as a new user does: from source, as
# a Debian package. And CONTRIBUTING.md's way to try the archive for PGXN. To be run as root in a
# chroot that is thrown away afterwards, from a copy of the tree (scripts/test-packages.sh does):
#
#   bash test/packages/readme.sh MAJOR
#
# Each line that begins with "ok" or "FAILED" is one test.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=test/packages/common.sh
. test/packages/common.sh

major=$1
export PGUSER=postgres PGHOST=/var/run/postgresql
export PATH=$PATH:/usr/lib/postgresql/$major/bin

# The blocks of shell commands of the section, one a number from 1.
block() {
    awk -v wanted="$1" '/^## / { inside = ($0 == "## Install") }
        /^```$/ { shown = 0 }
        shown { print }
        inside && /^```sh$/ { shown = (++number == wanted) }' README.md
}

# A chroot has no sudo, and its user is root anyway. Nobody is there to answer apt's questions.
follow() {
    # shellcheck disable=SC2317 # the block calls it
    sudo() { if [ "$1" = -u ]; then runuser -u "$2" -- "${@:3}"; else "$@"; fi; }
    set -x
    # shellcheck disable=SC1090 # a block of README.md
    . <(block "$1" | sed 's/apt install/apt install -y/')
}

# What `make` comes from, for a start, and the server, which in a chroot no package may start.
prerequisites() { apt_install make "postgresql-$major"; }

names_show() {
    local seen
    seen=$(psql -XAtq -d yourdb -c 'CREATE EXTENSION IF NOT EXISTS advisory_ext' \
        -c "SELECT advisory.try_lock('billing', 'invoice:42')" \
        -c 'SELECT lock FROM advisory.activity')
    if [ "$seen" != $'t\nbilling/invoice:42' ]; then
        echo "instead of true and the lock: $seen"
        return 1
    fi
    psql -Xq -d yourdb -c 'DROP EXTENSION advisory_ext'
}

has_two_blocks() { [ -n "$(block 2)" ] && [ -z "$(block 3)" ]; }

no_files() {
    local left
    left=$(find /usr/lib /usr/share /usr/local -iname '*advisory_ext*')
    [ -z "$left" ] || { echo "$left"; return 1; }
}

from_archive() {
    make dist
    pgxn install --yes ./advisory_ext-*.zip
}

keep_services_quiet
check "README.md has two ways to install" has_two_blocks
check "PostgreSQL can be installed" prerequisites
check "a server starts" make_server "$major" readme
check "from source" follow 1
check "activity shows the name of a lock" names_show
check "make uninstall" make uninstall
check "it leaves nothing" no_files
check "as a Debian package" follow 2
check "activity shows the name of a lock" names_show
check "the package can be removed" apt-get -qq purge -y "postgresql-$major-advisory-ext"
check "pgxnclient can be installed" apt_install pgxnclient
check "from the archive for PGXN" from_archive
check "activity shows the name of a lock" names_show
pg_ctlcluster "$major" readme stop -m fast
