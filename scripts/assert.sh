#!/usr/bin/env bash
# The tests on a server that checks itself: `make test-assert`. Builds PostgreSQL with
# --enable-cassert from Debian's source package, once, and runs scripts/test.sh on it.
#
#   ADVISORY_EXT_ASSERT_DIR=…   where the server is kept (default: under XDG_CACHE_HOME or
#                               /var/cache; without root, ~/.cache); remove it to have it built anew
#   PARTS, TESTS, TEST_TIMEOUT  as for scripts/test.sh
#
# Such a server stops if one of its assertions fails. It overwrites memory that is freed, and
# detects writes beyond the end of an allocation. It has the version of the packaged server, and all
# extensions that are installed there.
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

work=           # our temporary directory, beside the result

# The sources of the version, unpacked into $work/source. apt searches this machine's own package
# sources, turned into deb-src entries, and keeps its files in our directory. A mirror may list
# versions that it no longer has.
fetch_source() {
    local major=$1 file version
    mkdir -p "$work/apt/lists/partial"
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list \
        /etc/apt/sources.list.d/*.sources; do
        [ ! -e "$file" ] || sed -E 's/^deb /deb-src /; s/^(Types:).*/\1 deb-src/' "$file" \
            >"$work/apt/${file##*/}"
    done
    local apt=(-qq -o APT::Sandbox::User= -o Dir::Etc::SourceList=/dev/null
        -o Dir::Etc::SourceParts="$work/apt"
        -o Dir::State::Lists="$work/apt/lists" -o Dir::Cache="$work/apt")
    cd "$work"
    apt-get "${apt[@]}" update >"$log" 2>&1 || true
    for version in $(apt-cache "${apt[@]}" showsrc "postgresql-$major" 2>/dev/null |
        sed -n 's/^Version: //p' | sort -urV); do
        if apt-get "${apt[@]}" source --download-only "postgresql-$major=$version" \
            >>"$log" 2>&1; then
            say "source: postgresql-$major $version"
            dpkg-source --extract "postgresql-${major}_$version.dsc" source >>"$log" 2>&1
            return
        fi
    done
    cat "$log" >&2
    die "this machine's package sources have no source of PostgreSQL $major"
}

# Quick to compile, with symbols for gdb.
build() {
    local target=$1
    cd "$work/source"
    say "building it with --enable-cassert, which takes some minutes (kept in $CACHE)"
    {
        ./configure --prefix="$target" --enable-cassert --enable-debug CFLAGS=-O1 --with-openssl \
            --without-readline --without-zlib --without-icu &&
            nice make -s -j "$(nproc)" && make -s install
    } >"$log" 2>&1 || { tail -n 40 "$log" >&2; die "PostgreSQL could not be built"; }
}

# The extensions of the packaged server, such as pgTAP: those in C work with a server with
# assertions, too. And its psql, which has readline: the pages are typed into that.
borrow() {
    local packaged=$1 built=$2 dir
    for dir in --sharedir --pkglibdir; do
        cp -rs --no-clobber "$("$packaged" "$dir")/." "$("$built" "$dir")/"
    done
    ln -sf "$("$packaged" --bindir)/psql" "$("$built" --bindir)/psql"
}

main() {
    local packaged major built
    bash "$REPOSITORY/scripts/packages.sh" assert
    have apt-get || die "make test-assert takes PostgreSQL's source from apt, which is not here"
    packaged=$(find_pg_config)
    major=$(pg_major "$packaged")
    CACHE=${XDG_CACHE_HOME:-$(if is_root; then say /var/cache; else say ~/.cache; fi)}
    CACHE=${ADVISORY_EXT_ASSERT_DIR:-$CACHE/$EXTENSION/assert}
    built=$CACHE/$major/bin/pg_config
    mkdir -p "$CACHE"
    exec 9>"$CACHE/lock"
    flock 9     # two runs must not build at the same time
    if [ ! -e "$CACHE/$major/complete" ]; then
        work=$CACHE/build log=$CACHE/build/log
        rm -rf "$work" "${CACHE:?}/$major"
        mkdir "$work"
        (fetch_source "$major")
        (build "$CACHE/$major")
        touch "$CACHE/$major/complete"
        rm -rf "$work"
    fi
    borrow "$packaged" "$built"
    exec 9>&-
    # Everything takes longer on that server.
    PG_CONFIG=$built TEST_TIMEOUT=${TEST_TIMEOUT:-900} exec bash "$REPOSITORY/scripts/test.sh"
}

main
