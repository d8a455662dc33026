#!/usr/bin/env bash
# Follows README.md on a clean Debian, as a new user does: its first screen, up to the error that
# names the holder, where it counts the lines that are typed, and the time; then the section
# "Install". And CONTRIBUTING.md's way to try the archive for PGXN. To be run as root in a chroot
# that is thrown away afterwards, from a copy of the tree (scripts/test-packages.sh does):
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

# The most that it may take to the error: lines, and seconds. The seconds are those of processors,
# since this machine may be busy. A machine is slow on which the installation of PostgreSQL itself
# takes a minute of them; there, all the rest may take one and a half times as long as that.
MOST_LINES=8
MOST_SECONDS=180
SLOW_SECONDS=60
CLONE=/root/advisory_ext

# block CHAPTER LANGUAGE NUMBER: a block of the page.
block() {
    awk -v chapter="## $1" -v fence="\`\`\`$2" -v wanted="$3" '
        /^## / { inside = ($0 == chapter) }
        /^```$/ { shown = 0 }
        shown { print }
        inside && $0 == fence { shown = (++number == wanted) }' README.md
}

# A chroot has no sudo, and its user is root anyway. Nobody is there to answer apt's questions.
sudo() { if [ "$1" = -u ]; then runuser -u "$2" -- "${@:3}"; else "$@"; fi; }
answered() { sed 's/apt install [.]/apt install -y ./'; }

follow() {
    set -x
    # shellcheck disable=SC1090 # a block of README.md
    . <(block "$@" | answered)
}

# The address that is cloned stands for this tree.
stand_for_address() {
    local address
    address=$(sed -n 's/^repository *= *//p' project.conf)
    git config --global init.defaultBranch main
    git init -q /root/origin
    cp -a . /root/origin/
    git -C /root/origin add --all
    git -C /root/origin -c user.name=test -c user.email=test@localhost commit -q -m tree
    git config --global url.file:///root/origin.insteadOf "$address.git"
}

# Its output is the error.
first_screen() {
    local before shell statements waits line begun=$SECONDS one installing=0
    mapfile -t shell < <(block "Getting started" sh 1 | answered)
    mapfile -t statements < <(block "Getting started" sql 1)
    waits=$(block "Getting started" sql 2 | sed '/;/q')
    before=$PWD
    cd "${CLONE%/*}"
    for line in "${shell[@]}"; do
        case $line in
            *" psql") break ;;
            "git "*) (cd "$before" && stand_for_address) ;;&
            *) eval "$line" ;;
        esac
        case $line in *"apt install"*) times >/tmp/times && installing=$(processor_seconds) ;; esac
        # Packages start the server, but not in a chroot.
        [ -d "/etc/postgresql/$major/readme" ] || make_server "$major" readme
    done
    # Two terminals. The first one stays open.
    mkfifo /tmp/terminal
    eval "$line -X" </tmp/terminal >/tmp/one 2>&1 &
    one=$!
    exec 3>/tmp/terminal
    printf '%s\n' "${statements[@]}" >&3
    until grep -q '^ [tf]$\|ERROR' /tmp/one || ! kill -0 "$one"; do sleep 0.1; done
    eval "$line -X" <<<"$waits" >/tmp/two 2>&1 || true
    exec 3>&-
    wait "$one"
    cat /tmp/one /tmp/two
    # With the line that opens terminal 2.
    times >/tmp/times
    echo $((${#shell[@]} + ${#statements[@]} + 1 + $(wc -l <<<"$waits"))) $((SECONDS - begun)) \
        "$(processor_seconds)" "$installing" >/root/measured
    grep -q '^DETAIL:  Process .* holds it' /tmp/two
}

# Of all programs that have ended: the second line of what the shell's "times" has written.
processor_seconds() {
    awk 'NR == 2 {
        for (i = 1; i <= 2; i++) { split($i, part, /[ms]/); sum += 60 * part[1] + part[2] }
        printf "%d", sum }' /tmp/times
}

is_quick() {
    local most=$MOST_SECONDS
    [ "$installing" -le "$SLOW_SECONDS" ] || most=$((installing * 5 / 2))
    [ "$lines" -le "$MOST_LINES" ] && [ "$busy" -le "$most" ]
}

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

has_two_blocks() { [ -n "$(block Install sh 2)" ] && [ -z "$(block Install sh 3)" ]; }

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
check "README.md's section Install has two blocks" has_two_blocks
check "the first screen ends with the error that names the holder" first_screen
read -r lines elapsed busy installing </root/measured || true
took="$elapsed s ($busy s of processors, $installing for PostgreSQL)"
check "that is after $lines lines and $took" is_quick
check "in a database of one's own" follow Install sh 1
check "every function and view survives the server's JIT" survives_jit "$major" psql -d yourdb
check "activity shows the name of a lock" names_show
check "make uninstall" make -C "$CLONE" uninstall
check "it leaves nothing" no_files
check "as a Debian package" follow Install sh 2
check "activity shows the name of a lock" names_show
check "the package can be removed" apt-get -qq purge -y "postgresql-$major-advisory-ext"
check "pgxnclient can be installed" apt_install pgxnclient
check "from the archive for PGXN" from_archive
check "activity shows the name of a lock" names_show
pg_ctlcluster "$major" readme stop -m fast
