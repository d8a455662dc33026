#!/usr/bin/env bash
# When Lua's drivers begin a transaction
#
# The guess: a new connection is idle, as with any driver; with autocommit off the first statement
# begins a transaction, and after a commit the session is idle again.
#
# Seen on 2026-11-29 (lua-dbi-postgresql 0.7.2-4 and lua-sql-postgres 2.6.0-2 of Debian 12, Lua 5.1,
# PostgreSQL 15): LuaDBI's connect() begins a transaction before any statement, because autocommit
# is off by default; its commit() ends one and begins the next, as LuaSQL's does after
# setautocommit(false). So a program that does nothing is "idle in transaction" all the time:
# idle_in_transaction_session_timeout ends each connection that is not used for so long, now() is
# the time of the last commit, and a pooler in transaction mode has no server to spare.
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
    -o "-c listen_addresses=127.0.0.1 -c port=$port -k $work/data" \
    start >/dev/null
"$bin/postgres" --version

cd "$work"
apt-get -qq download lua-sql-postgres=2.6.0-2 lua-dbi-postgresql=0.7.2-4 lua-dbi-common=0.7.2-4 \
    lua5.1=5.1.5-9 liblua5.1-0=5.1.5-9
ls ./*.deb
for package in ./*.deb; do dpkg -x "$package" root; done

cat >seen.lua <<'LUA'
local port = arg[1]

-- The state of the driver's session, as another session sees it; how old its now() is.
local function watch(driver, what)
    os.execute('sleep 0.3')
    local pipe = io.popen(string.format([[psql -X -At -h 127.0.0.1 -p %s -U tester postgres -c "
        SELECT state, clock_timestamp() - xact_start > '0.2 s' FROM pg_stat_activity
        WHERE datname = 'postgres' AND pid <> pg_backend_pid()"]], port))
    print(driver, what, pipe:read('*l'))
    pipe:close()
end

local DBI = require 'DBI'
local db = assert(DBI.Connect('PostgreSQL', 'postgres', 'tester', '', '127.0.0.1', tonumber(port)))
watch('LuaDBI', 'connect')
local statement = db:prepare('SELECT 1')
statement:execute()
statement:close()
db:commit()
watch('LuaDBI', 'commit')
db:autocommit(true)
watch('LuaDBI', 'autocommit(true)')
db:close()
os.execute('sleep 0.3')

local environment = require('luasql.postgres').postgres()
local sql = assert(environment:connect('host=127.0.0.1 user=tester dbname=postgres port=' .. port))
watch('LuaSQL', 'connect')
sql:setautocommit(false)
watch('LuaSQL', 'setautocommit(false)')
sql:execute('SELECT 1'):close()
sql:commit()
watch('LuaSQL', 'commit')
sql:close()
LUA
library=$(echo "$work"/root/usr/lib/*-linux-gnu)
PATH=$bin:$PATH LD_LIBRARY_PATH=$library LUA_PATH="$work/root/usr/share/lua/5.1/?.lua" \
    LUA_CPATH="$library/lua/5.1/?.so" root/usr/bin/lua5.1 seen.lua "$port" | tee seen.txt
diff seen.txt - <<'SEEN' && echo "as seen before"
LuaDBI	connect	idle in transaction|t
LuaDBI	commit	idle in transaction|t
LuaDBI	autocommit(true)	idle|
LuaSQL	connect	idle|
LuaSQL	setautocommit(false)	idle in transaction|t
LuaSQL	commit	idle in transaction|t
SEEN
