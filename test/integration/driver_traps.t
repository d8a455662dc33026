#!/usr/bin/env perl
# The chapters "Lists that become one name" and "Answers that are silently wrong" of doc/drivers.md,
# for the drivers that are here: what goes wrong, and that the cure works.
use AdvisoryTest;
use FindBin;
use Launch;
use Programs;

create_database();
my $look = session();
my $holder = session(application => 'holder')->run(q{SELECT advisory.lock('taken', 'x')});

# A program that is written here, and what it prints.
sub prints ($what, $command, $name, $text, $said) {
    my ($environment, @command) = ref $command->[0] ? @$command : ({}, @$command);
    return launch($environment, @command, spew(scratch() . "/$name", $text))->ends(0, $said, $what);
}

SKIP: {
    skip 'ECPG is not here', 1 unless program('ecpg') && program('gcc');
    my ($source, $c, $built) = map { scratch() . "/traps.$_" } qw(pgc c out);
    spew($source, <<'PGC');
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define SAY(what) printf("%s %ld\n", what, sqlca.sqlcode)

int main(void)
{
    EXEC SQL BEGIN DECLARE SECTION;
    int number = 0;
    int is_null = 0;
    bool mine = false;
    const char *call = "CALL advisory.await_acquire('ecpg', 'two', 3)";
    EXEC SQL END DECLARE SECTION;

    EXEC SQL CONNECT TO DEFAULT;
    EXEC SQL SET AUTOCOMMIT = ON;
    EXEC SQL SELECT advisory.try_lock('ecpg', 'x') INTO :number;
    SAY("int");
    EXEC SQL SELECT advisory.hold_count('ecpg', 'x') INTO :number;
    printf("taken %d\n", number);
    EXEC SQL SELECT advisory.try_lock('ecpg', 'x') INTO :mine;
    SAY(mine ? "bool" : "false");
    EXEC SQL CALL advisory.await_acquire('ecpg', 'one', 3);
    SAY("CALL");
    EXEC SQL SELECT in_use::integer INTO :number FROM advisory.semaphores WHERE name = 'one';
    printf("taken %d\n", number);
    EXEC SQL PREPARE prepared FROM :call;
    EXEC SQL EXECUTE prepared INTO :number;
    SAY("EXECUTE");
    printf("slot %d\n", number);
    EXEC SQL SELECT NULL::integer INTO :number;
    SAY("NULL");
    EXEC SQL SELECT NULL::integer INTO :number :is_null;
    SAY(is_null == -1 ? "indicator" : "none");
    return 0;
}
PGC
    my ($said, $code) = run_program('ecpg', '-o', $c, $source);
    ($said, $code) = run_program('gcc', '-I/usr/include/postgresql', '-o', $built, $c, '-lecpg')
        unless $code;
    is($code, 0, 'ECPG: it is compiled') or diag($said);
    launch($built)->ends(0, <<'SAID', 'ECPG: what fails after it ran, and what to call instead');
int -204
taken 1
bool 0
CALL -202
taken 1
EXECUTE 0
slot 1
NULL -213
indicator 0
SAID
}

SKIP: {
    my ($units) = glob '/usr/lib/*/fpc/*/units/*/fcl-db/pqconnection.ppu';
    skip 'Free Pascal or its units for databases are not here', 1 unless program('fpc') && $units;
    my $source = spew(scratch() . '/traps.pas', <<'PASCAL');
{$mode objfpc}{$H+}
uses Classes, db, sqldb, pqconnection, SysUtils;
var
  Server: TPQConnection;
  Query: TSQLQuery;

procedure Ask(const Statement: string);
begin
  Query.Close;
  Query.SQL.Text := Statement;
  Query.Open;
end;

begin
  Server := TPQConnection.Create(nil);
  Server.DatabaseName := GetEnvironmentVariable('PGDATABASE');
  Server.UserName := GetEnvironmentVariable('PGUSER');
  Server.Transaction := TSQLTransaction.Create(nil);
  Query := TSQLQuery.Create(nil);
  Query.Database := Server;
  Ask('SELECT advisory.try_lock(''taken'', ''x'')');
  WriteLn(Query.Fields[0].AsBoolean);
  Ask('SELECT 1 WHERE advisory.try_lock(''taken'', ''x'')');
  WriteLn(Query.EOF);
  Ask('CALL advisory.run(''taken'', ''x'', ''SELECT 1'')');
  WriteLn(Query.Fields[0].AsBoolean);
  Ask('CALL advisory.await_acquire(''pascal'', ''slots'', 1)');
  WriteLn(Query.Fields[0].AsInteger = 1);
  Ask('SELECT advisory.release(''pascal'', ''slots'')');
  WriteLn(Query.Fields[0].AsBoolean);
  Ask('SELECT advisory.acquire(''pascal'', ''slots'', 1)');
  WriteLn(Query.Fields[0].AsInteger);
  try
    Query.Close;
    Query.SQL.Text := 'CALL advisory.run(''taken'', ''x'', ''SELECT 1'', if_busy => ''error'')';
    Query.ExecSQL;
  except
    on Busy: EPQDatabaseError do WriteLn(Busy.SQLSTATE);
  end;
end.
PASCAL
    my ($said, $code) = launch('fpc', '-v0', '-o' . scratch() . '/pascal', $source)->finish(600);
    is($code, 0, 'Free Pascal: it is compiled') or diag($said);
    my ($seen) = launch(scratch() . '/pascal')->finish;
    is($seen =~ s/^(?:NOTICE|DETAIL):.*\n//gmr, <<'SAID',
FALSE
TRUE
TRUE
FALSE
TRUE
1
55P03
SAID
        'Free Pascal: what a CALL returns is wrong, and what a SELECT returns is right');
}

SKIP: {
    skip 'Tcl or tdbc is not here', 1 unless program('tclsh')
        && qx(echo 'puts [catch {package require tdbc::postgres}]' | tclsh) =~ /^0/;
    prints('tdbc: a list is one name, a variable without a value is NULL', ['tclsh'], 'traps.tcl',
        <<'TCL', "f 0\n2\n22004\n");
package require tdbc::postgres
tdbc::postgres::connection create db -host $env(PGHOST) -port $env(PGPORT) -user $env(PGUSER) \
    -database $env(PGDATABASE)
db allrows {SELECT advisory.lock_all('tcl', '{x,y}')}
set names [list x y]
set answers [db allrows -as lists {SELECT advisory.holds('tcl', :names),
    advisory.unlock_all('tcl', :names)}]
puts [lindex $answers 0]
set names "{[join $names ,]}"
puts [db allrows -as lists {SELECT advisory.unlock_all('tcl', :names::text[])}]
catch {db allrows {SELECT advisory.lock('tcl', :unset)}}
puts [lindex $::errorCode 2]
TCL
}

SKIP: {
    skip 'PHP or its driver is not here', 1
        unless program('php') && qx(php -m 2>/dev/null) =~ /^pdo_pgsql$/m;
    prints("PHP: a list is one name, and 'f' counts as true", ['php'], 'traps.php', <<'PHP',
<?php
$db = new PDO('pgsql:', options: [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION]);
$db->query("SELECT advisory.lock_all('php', '{x,y}')");
$release = $db->prepare("SELECT advisory.unlock_all('php', ?)");
@$release->execute([['x', 'y']]);
echo $release->fetchColumn(), "\n";
$release = $db->prepare("SELECT advisory.unlock_all('php', ?::text[])");
$release->execute(['{x,y}']);
echo $release->fetchColumn(), "\n";
pg_connect('');
$false = pg_fetch_result(pg_query("SELECT advisory.try_lock('taken', 'x')"), 0, 0);
echo $false ? 'true' : 'false', ' ', $false === 't' ? 'true' : 'false', ' ',
    pg_num_rows(pg_query("SELECT 1 WHERE advisory.try_lock('taken', 'x')")), "\n";
PHP
        "0\n2\ntrue false 0\n");
}

SKIP: {
    skip 'Ruby or pg is not here', 1 if system(q(ruby -e 'require "pg"' 2>/dev/null));
    prints("Ruby's pg: with a type map, a list is a list and false is false", ['ruby'], 'traps.rb',
        <<'RUBY', "f true\nfalse true 2\n");
require 'pg'
connection = PG.connect(dbname: ENV.fetch('PGDATABASE'))
mine = connection.exec("SELECT advisory.try_lock('taken', 'x')").getvalue(0, 0)
puts "#{mine} #{mine ? true : false}"
connection.type_map_for_queries = PG::BasicTypeMapForQueries.new(connection)
connection.type_map_for_results = PG::BasicTypeMapForResults.new(connection)
ask = ->(sql, *values) { connection.exec_params(sql, values).getvalue(0, 0) }
puts [ask.call("SELECT advisory.try_lock('taken', 'x')"),
      ask.call('SELECT advisory.lock_all($1, $2)', 'ruby', %w[x y]),
      ask.call('SELECT advisory.unlock_all($1, $2::text[])', 'ruby', %w[x y])].join(' ')
RUBY
}

SKIP: {
    my $modules = node_modules("$FindBin::Bin/drivers/package.json")
        or skip 'Node or its drivers are not here', 1;
    prints('JavaScript: undefined is NULL for pg, and refused by the others',
        [ { NODE_PATH => $modules }, 'node' ], 'traps.js', <<'JS', <<'SAID');
const { Client } = require('pg');
const postgres = require('postgres');

async function main() {
    const client = new Client();
    await client.connect();
    const { rows } = await client.query('SELECT $1::interval IS NULL AS is_null', [undefined]);
    console.log(rows[0].is_null);
    await client.end();
    const sql = postgres({ host: process.env.PGHOST, port: process.env.PGPORT,
        database: process.env.PGDATABASE, username: process.env.PGUSER });
    await sql`SELECT ${undefined}::interval`.catch((error) => console.log(error.code));
    await sql.end();
}
main();
JS
true
UNDEFINED_VALUE
SAID
}

SKIP: {
    my $modules = node_modules("$FindBin::Bin/drivers/package.json")
        or skip 'Node or its drivers are not here', 1;
    prints('slonik: its timeouts, and the errors it throws as they are, or as a cause',
        [ { NODE_PATH => $modules }, 'node' ], 'slonik.js', <<'JS', <<'SAID');
const { createPool, sql } = require('slonik');

const { PGHOST, PGPORT, PGUSER, PGDATABASE } = process.env;
const server = `postgresql://${PGUSER}@${encodeURIComponent(PGHOST)}:${PGPORT}/${PGDATABASE}`;

async function tries(lock, options) {
    const pool = await createPool(server, options);
    console.log(await pool.one(sql.unsafe`SELECT
        current_setting('idle_in_transaction_session_timeout') AS idle,
        current_setting('statement_timeout') AS statement`));
    await pool.query(lock).catch((error) => console.log(error.code, error.cause?.code));
    await pool.end();
}

async function main() {
    await tries(sql.unsafe`SELECT advisory.lock('taken', 'x', '10 ms')`);
    await tries(sql.unsafe`SELECT advisory.lock('taken', 'x')`,
        { idleInTransactionSessionTimeout: 'DISABLE_TIMEOUT', statementTimeout: 100 });
}
main();
JS
{ idle: '1min', statement: '1min' }
55P03 undefined
{ idle: '0', statement: '100ms' }
undefined 57014
SAID
}

SKIP: {
    my $python = python('asyncpg') or skip 'Python or asyncpg is not here', 1;
    prints('asyncpg: its pool releases what a connection holds when it gets it back', [$python],
        'traps.py', <<'PYTHON', "True False\nTrue\n");
import asyncio

import asyncpg


async def main():
    async with asyncpg.create_pool() as pool:
        mine = await pool.fetchval("SELECT advisory.try_lock('pool', 'x')")
        print(mine, await pool.fetchval("SELECT advisory.is_locked('pool', 'x')"))
        async with pool.acquire() as connection:
            await connection.fetchval("SELECT advisory.try_lock('pool', 'x')")
            print(await pool.fetchval("SELECT advisory.is_locked('pool', 'x')"))

asyncio.run(main())
PYTHON
}

SKIP: {
    my $gopath = '/usr/share/gocode';
    skip 'Go or lib/pq is not here', 1 unless program('go') && -d "$gopath/src/github.com/lib/pq";
    my $source = spew(scratch() . '/traps.go', <<'GO');
package main

import (
    "context"
    "database/sql"
    "fmt"
    "time"

    _ "github.com/lib/pq"
)

func main() {
    db, _ := sql.Open("postgres", "")
    connection, err := db.Conn(context.Background())
    if err != nil {
        panic(err)
    }
    ask := func(ctx context.Context, text string) (answer string, err error) {
        err = connection.QueryRowContext(ctx, text).Scan(&answer)
        return
    }
    fmt.Println(ask(context.Background(), "SELECT advisory.lock('go', 'kept')"))
    fmt.Println(ask(context.Background(), "SELECT advisory.try_lock('taken', 'x', '50 ms')"))
    fmt.Println(ask(context.Background(), "SELECT advisory.holds('go', 'kept')"))
    ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
    defer cancel()
    _, err = ask(ctx, "SELECT advisory.lock('taken', 'x')")
    fmt.Println(err != nil)
    _, err = ask(context.Background(), "SELECT advisory.holds('go', 'kept')")
    fmt.Println(err)
}
GO
    my $go = {
        GO111MODULE => 'off', GOPATH => $gopath, GOCACHE => "$ENV{ADVISORY_EXT_STAGE}/go" };
    my ($said, $code) =
        launch($go, 'go', 'build', '-o', scratch() . '/traps', $source)->finish(600);
    is($code, 0, 'lib/pq: it is compiled') or diag($said);
    launch(scratch() . '/traps')->ends(0, <<'SAID',
true <nil>
false <nil>
true <nil>
true
driver: bad connection
SAID
        'lib/pq: the end of a context ends the session, and the timeout of the lock does not');
}
done_testing();
