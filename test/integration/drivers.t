#!/usr/bin/env perl
# The functions that doc/drivers.md shows for some drivers and the shell, as they stand there. Each
# does its work under the lock, and fails as it says while another session has the lock.
use AdvisoryTest;
use FindBin;
use Launch;
use Page;
use Programs;

my $page = Page->new("$FindBin::Bin/../../doc/drivers.md");

# The function of a language, in a program that calls it for the invoice in its arguments.
sub program_of ($language, $name, $before, $after) {
    my @shown =
        grep { $_->{language} eq $language && $_->{text} =~ /\bpay\b/ } $page->others;
    is(scalar @shown, 1, "$language: the page shows one function");
    # Its reader waits for 5 seconds; the test does not.
    my $text = $shown[0]{text};
    is($text =~ s/5s/50ms/g, 1, '... with one timeout');
    return spew(scratch() . "/$name", $before . $text . $after);
}

my %PROGRAMS = (
    ruby => sub {
        return unless program('ruby') && system(q(ruby -e 'require "pg"' >/dev/null 2>&1)) == 0;
        return ({}, 'ruby', program_of('ruby', 'pay.rb', "require 'pg'\n", <<'RUBY'));
begin
  pay(PG.connect(dbname: ENV['PGDATABASE']), Integer(ARGV[0]))
rescue PG::Error => e
  names = [PG::PG_DIAG_SQLSTATE, PG::PG_DIAG_SCHEMA_NAME, PG::PG_DIAG_CONSTRAINT_NAME]
  puts names.map { |name| e.result.error_field(name) }.join(' ')
  exit 3
end
RUBY
    },
    python => sub {
        my $python = python('asyncpg') or return;
        return ({}, $python,
            program_of('python', 'pay.py', "import asyncio\nimport sys\n\nimport asyncpg\n\n",
                <<'PYTHON'));


async def main():
    try:
        await pay(await asyncpg.connect(), int(sys.argv[1]))
    except asyncpg.LockNotAvailableError as error:
        print(error.detail)
        print(error.sqlstate, error.schema_name, error.constraint_name)
        sys.exit(3)

asyncio.run(main())
PYTHON
    },
    php => sub {
        return unless program('php') && qx(php -m 2>/dev/null) =~ /^pdo_pgsql$/m;
        return ({}, 'php', program_of('php', 'pay.php', "<?php\n", <<'PHP'));

try {
    pay(new PDO('pgsql:'), (int) $argv[1]);
} catch (PDOException $e) {
    echo $e->errorInfo[0], ' ', $e->getMessage();
    exit(3);
}
PHP
    },
    # Debian's golang-github-lib-pq-dev.
    go => sub {
        my $library = '/usr/share/gocode';
        return unless program('go') && -d "$library/src/github.com/lib/pq";
        my $source = program_of('go', 'pay.go', <<'GO', <<'MAIN');
package main

import (
    "context"
    "database/sql"
    "errors"
    "fmt"
    "os"
    "strconv"

    "github.com/lib/pq"
)

GO

func main() {
    db, err := sql.Open("postgres", "")
    if err != nil {
        panic(err)
    }
    id, _ := strconv.Atoi(os.Args[1])
    err = pay(context.Background(), db, id)
    var refused *pq.Error
    if errors.As(err, &refused) {
        fmt.Println(refused.Detail)
        fmt.Println(refused.Code, refused.Schema, refused.Constraint)
        os.Exit(3)
    }
    if err != nil {
        panic(err)
    }
}
MAIN
        my $go = {
            GO111MODULE => 'off', GOPATH => $library, GOCACHE => "$ENV{ADVISORY_EXT_STAGE}/go" };
        my $built = scratch() . '/pay';
        launch($go, 'go', 'build', '-o', $built, $source)->ends(0, '', 'go: it is compiled');
        return ({}, $built);
    },
    sh => sub {
        return ({}, 'sh',
            program_of('sh', 'pay.sh', '', qq(pay "\$1"\n)));
    },
);

create_database();
my $session = session();
my $other = session(application => 'holder');
$session->run('CREATE TABLE invoice (id int PRIMARY KEY, paid boolean)');

for my $language (sort keys %PROGRAMS) {
    SKIP: {
        my ($environment, @program) = $PROGRAMS{$language}->()
            or skip "$language or its driver is not here", 1;
        $session->run('TRUNCATE invoice', 'INSERT INTO invoice VALUES (42, false)');
        $other->run('BEGIN', q{SELECT advisory.xact_lock('billing', 'invoice:42')});
        launch($environment, @program, 42)->ends(3,
            $language eq 'php' ? qr/^55P03 .*"billing.invoice:42"(?s:.*)"holder", holds it/
            : $language eq 'sh'
            ? qr{could\ not\ obtain\ advisory\ lock\ "billing/invoice:42"\ within\ 50\ ms\n
                DETAIL:\ +Process\ \d+\ .*"holder",\ holds\ it}x
            : qr{Process \d+ .*"holder", holds it(?s:.*)\n55P03 billing invoice:42\n},
            "$language: while another session has the lock, it fails, and says who has it");
        $session->shows('SELECT paid FROM invoice', 0, '... and does nothing');
        $other->run('COMMIT');
        launch($environment, @program, 42)->ends(0, '', '... then it does its work');
        $session->shows('SELECT paid FROM invoice', 1, '... in the transaction');
        is($session->value(q{SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'}), 0,
            '... and the lock is free');
    }
}
done_testing();
