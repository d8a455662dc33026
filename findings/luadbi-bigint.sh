#!/usr/bin/env bash
# What LuaDBI makes of a bigint
#
# The guess: with Lua 5.4, whose integers have 64 bits, a bigint comes back whole; with Lua 5.1,
# whose numbers are doubles, it is right up to 2^53.
#
# Seen on 2026-11-28 (lua-dbi-postgresql 0.7.2-4 of Debian 12, Lua 5.1.5 and 5.4.4, PostgreSQL 15):
# with both, only the lower 32 bits come back, as a number and without an error. 4294967297 is 1,
# 5000000000 is 705032704. As a text it is whole. A parameter of that size arrives whole, so what is
# written cannot be read again.
#
# Needs apt, and a PostgreSQL server with initdb (Debian: postgresql-15); it starts one of its own
# in a temporary folder.
set -euo pipefail

work=$(mktemp -d)
bin=${PG_BIN:-/usr/lib/postgresql/15/bin}
as_user=()
if [ "$(id -u)" -eq 0 ]; then
    as_user=(setpriv --reuid postgres --regid postgres --clear-groups --)
    chmod 755 "$work"
fi
end() {
    "${as_user[@]}" "$bin/pg_ctl" -D "$work/data/server" -m immediate -w stop >/dev/null 2>&1 ||
        true
    rm -rf "$work"
}
trap end EXIT

mkdir "$work/data"
[ "${#as_user[@]}" -eq 0 ] || chown postgres "$work/data"
"${as_user[@]}" "$bin/initdb" -D "$work/data/server" -A trust -U tester >/dev/null
port=$((20000 + RANDOM % 20000))
"${as_user[@]}" "$bin/pg_ctl" -D "$work/data/server" -w -l "$work/data/log" \
    -o "-c listen_addresses=127.0.0.1 -c port=$port -k $work/data" start >/dev/null

cd "$work"
apt-get -qq download lua-dbi-postgresql=0.7.2-4 lua-dbi-common=0.7.2-4 \
    lua5.1=5.1.5-9 liblua5.1-0=5.1.5-9 lua5.4=5.4.4-3+deb12u1 liblua5.4-0=5.4.4-3+deb12u1
for package in ./*.deb; do dpkg -x "$package" root; done

cat >seen.lua <<'LUA'
local DBI = require 'DBI'
local port = tonumber(arg[1])
local db = assert(DBI.Connect('PostgreSQL', 'postgres', 'tester', '', '127.0.0.1', port))

local function ask(statement, ...)
    local handle = assert(db:prepare(statement))
    assert(handle:execute(...))
    local value = handle:fetch(false)[1]
    print(_VERSION, statement, type(value), value)
end

ask('SELECT 2147483647::bigint')
ask('SELECT 4294967297::bigint')
ask('SELECT 5000000000::bigint')
ask('SELECT 5000000000::bigint::text')
ask('SELECT $1::bigint::text', 5000000000)
LUA
library=$(echo "$work"/root/usr/lib/*-linux-gnu)
for version in 5.1 5.4; do
    LD_LIBRARY_PATH=$library LUA_PATH="$work/root/usr/share/lua/$version/?.lua" \
        LUA_CPATH="$library/lua/$version/?.so" "root/usr/bin/lua$version" seen.lua "$port"
done | tee seen.txt
diff seen.txt - <<'SEEN' && echo "as seen before"
Lua 5.1	SELECT 2147483647::bigint	number	2147483647
Lua 5.1	SELECT 4294967297::bigint	number	1
Lua 5.1	SELECT 5000000000::bigint	number	705032704
Lua 5.1	SELECT 5000000000::bigint::text	string	5000000000
Lua 5.1	SELECT $1::bigint::text	string	5000000000
Lua 5.4	SELECT 2147483647::bigint	number	2147483647
Lua 5.4	SELECT 4294967297::bigint	number	1
Lua 5.4	SELECT 5000000000::bigint	number	705032704
Lua 5.4	SELECT 5000000000::bigint::text	string	5000000000
Lua 5.4	SELECT $1::bigint::text	string	5000000000
SEEN
