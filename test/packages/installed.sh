#!/usr/bin/env bash
# Installs a package on a clean Debian, uses it, runs the tests with it, and removes it. To be run
# as root in a chroot that is thrown away afterwards, from a copy of the tree
# (scripts/test-packages.sh does):
#
#   bash test/packages/installed.sh MAJOR postgresql-NN-advisory-ext_….deb
#
# Each line that begins with "ok" or "FAILED" is one test.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=test/packages/common.sh
. test/packages/common.sh

major=$1
deb=$2
package=postgresql-$major-advisory-ext
documents=/usr/share/doc/$package
extensions=/usr/share/postgresql/$major/extension

our_files() {
    find / -xdev \( -path "$PWD" -o -path /tmp \) -prune -o -iname '*advisory*' -print | sort
}

# ---- What the package has ------------------------------------------------------------------------

has_files() {
    local file missing=0
    while read -r file; do
        [ -s "$file" ] || { echo "missing: $file"; missing=1; }
    done < <(expected_files)
    return "$missing"
}

# The list comes from the tree, and not from the Makefile, because this tests the Makefile.
expected_files() {
    printf '%s\n' "/usr/lib/postgresql/$major/lib/advisory_ext.so" \
        "/usr/share/doc/$package/copyright" "/usr/share/doc/$package/changelog.Debian.gz" \
        "$documents/LICENSE" "$extensions/advisory_ext.control" \
        "$extensions/advisory_ext--$(version).sql"
    find README.md CHANGELOG.md SECURITY.md doc examples monitoring portable/*.sql -type f \
        2>/dev/null | sed "s|^|$documents/|"
}

version() { sed -n "s/^default_version *= *'\(.*\)'.*/\1/p" advisory_ext.control; }

# ---- Use -----------------------------------------------------------------------------------------

client=(runuser -u postgres -- psql --cluster "$major/packages")
sql() { "${client[@]}" -XAtq -v ON_ERROR_STOP=1 "$@"; }

creates_extension() {
    local made
    sql -c 'CREATE EXTENSION advisory_ext'
    made=$(sql -c "SELECT extversion FROM pg_extension WHERE extname = 'advisory_ext'")
    [ "$made" = "$(version)" ] || { echo "CREATE EXTENSION made version $made"; return 1; }
}

# Two sessions: the second one does not get what the first one holds.
takes_locks() {
    local both lock="SELECT advisory.try_lock('package', 'one')"
    both=$(sql -c "$lock" -c "\\! psql --cluster $major/packages -XAtq -c \"$lock\"")
    [ "$both" = $'t\nf' ] || { echo "instead of t and f: $both"; return 1; }
}

# Debian's own test of the package, for which only the files of some packages are needed, and not
# the compilers that they depend on.
bring_test_tools() {
    local name
    apt_install make
    cd /tmp
    for name in "postgresql-server-dev-$major" postgresql-server-dev-all postgresql-common-dev; do
        if apt-cache show "$name" >/dev/null 2>&1; then apt-get -qq download "$name"; fi
    done
    for name in /tmp/postgresql-*.deb; do
        dpkg-deb --extract "$name" /
    done
}

# Its lines "ok …" and "not ok …", whose form changed with PostgreSQL 16.
run_installcheck() {
    local status=0 output=/tmp/installcheck
    bash debian/tests/installcheck >"$output" 2>&1 || status=$?
    sed -nE -e 's/^test (.*[^ ]) +\.\.\. ok +.*/ok - \1/p' \
        -e 's/^ok [0-9]+ +[-+] (.*[^ ]) +[0-9]+ ms$/ok - \1/p' "$output"
    sed -nE 's/^(test .* \.\.\. FAILED.*|not ok .*)/FAILED - \1/p' "$output"
    check "Debian's test of the package (debian/tests/installcheck)" \
        show_installcheck "$status" "$output"
}

show_installcheck() {
    [ "$1" -eq 0 ] || { cat "$2"; return 1; }
}

# ---- The end -------------------------------------------------------------------------------------

removes() {
    apt-get -qq -o Dpkg::Use-Pty=0 purge -y "$package"
    if dpkg-query --show "$package" 2>/dev/null; then return 1; fi
}

nothing_remains() {
    local left
    left=$(comm -13 /tmp/before <(our_files))
    [ -z "$left" ] || { echo "left:" "$left"; return 1; }
}

is_gone() {
    local answer
    answer=$(sql -c 'DROP EXTENSION advisory_ext' -c 'CREATE EXTENSION advisory_ext' 2>&1 || true)
    [[ $answer == *'is not available'* ]] || { echo "CREATE EXTENSION says: $answer"; return 1; }
}

keep_services_quiet
our_files >/tmp/before
check "apt install ./${deb##*/}" apt_install "$deb"
check "every file is there" has_files
check "a server starts" make_server "$major" packages
check "CREATE EXTENSION" creates_extension
check "a lock of one session keeps another session out" takes_locks
check "every function and view survives the server's JIT" survives_jit "$major" "${client[@]}"
check "the tools of the tests can be installed" bring_test_tools
run_installcheck
check "the package can be removed" removes
check "nothing of it remains" nothing_remains
check "the server does not know the extension any more" is_gone
pg_ctlcluster "$major" packages stop -m fast
