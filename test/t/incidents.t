#!/usr/bin/env perl
# doc/incidents.md: each of its incidents is built, and solved by whoever has only the rights of the
# page, with at most three statements of the page, on a terminal of 80 columns. It takes 500
# sessions that wait, a full lock table, a failover, and what psql prints.
#
#   WRITE=1   where psql prints something else, write that into the page
use utf8;
use AdvisoryTest;
use Encode qw(decode_utf8);
use FindBin;
use Page;
use Psql;
use Replica;
use Screen;

use constant { WAITERS => 500, COLUMNS => 80, LINES => 50, STATEMENTS => 3 };

# What the page does not ask for, because it needs a wide terminal.
my $ACTIVITY = 'SELECT * FROM advisory.activity;';
my @WIDE = (120, 60);

my $page = Page->new("$FindBin::Bin/../../doc/incidents.md");
my %steps;
push @{ $steps{ $_->{chapter} // 'Rights' } }, $_ for $page->steps;
my %solved;

# The page's database, the sessions of programs, and whoever looks; admin is a superuser.
my ($server, $database, $admin, $oncall, $is_portable);

sub there ($application, @statements) {
    return session(server => $server, database => $database, role => 'app',
        application => $application)->run(@statements);
}

sub waiter ($application, $statement, %how) {
    my $waiter = session(server => $server, database => $database, role => 'app',
        application => $application, %how)->start($statement);
    $admin->wait_until("$statement waits", 'SELECT (SELECT count(*) FROM pg_locks
        WHERE pid = ? AND NOT granted) + (SELECT count(*) FROM advisory.locks WHERE pid = ?
        AND NOT granted)', $waiter->pid, $waiter->pid);
    return $waiter;
}

sub on_call ($role) {
    return Psql->new(server => $server, database => $database, role => $role,
        form => '-P pager=off -v SHOW_CONTEXT=never');
}

# A database of the server with an edition, and who is on call there.
sub begin ($edition) {
    $is_portable = $edition eq 'portable';
    $database = $is_portable ? 'portable' : 'postgres';
    my $root = session(server => $server);
    if ($is_portable) {
        $root->run('CREATE DATABASE portable');
        is(load_portable($database, $server->{PGUSER}, $server), '', 'the portable edition');
    } else {
        $root->run('CREATE EXTENSION advisory_ext',
            map { "CREATE ROLE $_ LOGIN" } qw(app shop oncall));
        # In a deadlock it is not this one that gets the error.
        $root->run(q(ALTER ROLE shop SET deadlock_timeout = '10min'));
    }
    $admin = session(server => $server, database => $database);
    $admin->run('CREATE TABLE item (id int PRIMARY KEY, n int)', 'INSERT INTO item VALUES (1, 0)',
        'GRANT ALL ON item TO app');
    $admin->run($_) for map { split /;\n/, $_->{sql} } @{ $steps{Rights} };
    $oncall = on_call('oncall');
    return;
}

# How wide a text is. The line of a remedy may wrap: it is copied as a whole. psql's line above a
# row is as wide as the widest one.
sub width ($text) { return columns($text =~ s/^(?:remedy +\||-\[ RECORD).*//gmr) }

# Runs a statement, whose output must have room on a terminal.
sub on_screen ($what, $sql, $columns, $lines, $psql = $oncall) {
    my $printed = decode_utf8($psql->run($sql));
    unlike($printed, qr/ERROR|WARNING|FATAL/, "$what: no error");
    cmp_ok(width($printed), '<=', $columns, "$what: it is not too wide") or diag $printed;
    cmp_ok($printed =~ tr/\n//, '<=', $lines, "$what: nor too long") or diag $printed;
    return $printed;
}

# Runs a step of the page, in which these sessions have the process IDs that the page shows; returns
# what is printed, with those.
sub type ($what, $step, $pids, $psql = $oncall) {
    my %real = map { $_ => $pids->{$_}->pid } keys %$pids;
    my $sql = $step->{sql} =~ s/\b(47\d\d)\b/$real{$1} \/\/ $1/ger;
    my $printed = on_screen($what, $sql, COLUMNS, LINES, $psql);
    my %shown = reverse %real;
    my $any = join '|', keys %shown;
    return $any ? $printed =~ s/\b($any)\b/$shown{$1}/gr : $printed;
}

# The statements of a chapter: those with an output must print it, the others are its remedies. They
# are run by whoever is on call; all by another psql with look, the remedies with by.
sub incident ($chapter, %how) {
    my $what = ($is_portable ? 'portable: ' : '') . $chapter;
    my @steps = @{ $steps{$chapter} };
    my $statements = () = map { $_->{sql} =~ /;$| \\gx$/mg } @steps;
    cmp_ok($statements, '<=', STATEMENTS, "$what: at most three statements");
    # Figures of some chapters are those of this server.
    my $plain = sub ($text) { return $how{figures} ? $text =~ s/\b\d{3,}\b/…/gr : $text };
    for my $step (@steps) {
        my $psql = $how{look} // (!$step->{shown} && $how{by} || $oncall);
        my $printed = type($what, $step, $how{pids} // {}, $psql);
        next if !$step->{shown} || $is_portable;
        my $shown = Page::pattern($plain->($step->{shown}));
        if ($ENV{WRITE} && Page::normal($printed) !~ $shown) {
            $step->{printed} = $printed;
        } else {
            like(Page::normal($printed), $shown, "$what: as the page shows")
                or diag $printed;
        }
    }
    $solved{$what}++;
    return;
}

# The first statements of "Something hangs", in another situation; then the remedy that they show.
sub hangs ($what, $shows, @waiters) {
    my $printed = type($what, $steps{'Something hangs'}[0], {});
    like($printed, $_, "$what: it shows $_") for @$shows;
    return if !@waiters;
    my ($remedy) = $printed =~ /^remedy +\| (.*)$/m or return;
    like($oncall->run($remedy), qr/^ t$/m, "$what: $remedy");
    $_->ends(undef, "$what: the remedy ends it") for @waiters;
    $solved{$what}++;
    return leave($admin, @waiters);
}

$server = own_server('max_connections=' . (WAITERS + 40), 'max_prepared_transactions=5',
    'deadlock_timeout=200ms', 'wal_level=replica');

for my $edition (qw(extension portable)) {
    begin($edition);
    {
        my $holder = there('worker', 'BEGIN',
            q(SELECT advisory.xact_lock('billing', 'invoice:42')));
        my $next = waiter('web', q(SELECT advisory.lock('billing', 'invoice:42')));
        incident('Something hangs', pids => { 4711 => $holder, 4712 => $next });
        $next->ends(undef, 'the remedy ends the wait');
        leave($admin, $next);
    }
    {
        my $one = there('one', q(SELECT advisory.lock('stock', 'item:7')));
        my $two = waiter('two', q(DO $$ BEGIN PERFORM advisory.lock('stock', 'item:8');
            PERFORM advisory.lock('stock', 'item:7'); END $$), role => 'shop');
        $one->fails(q(SELECT advisory.lock('stock', 'item:8')), '40P01', 'a deadlock');
        incident('A deadlock', pids => { 4711 => $one, 4712 => $two });
        $two->ends(undef, 'a deadlock: the other session goes on');
        leave($admin, $two);
    }
    {
        my @workers = map { there("render-$_", q(SELECT advisory.acquire('reports', 'render', 3))) }
            1 .. 3;
        my $try = there('render-4');
        my $acquire = q(SELECT advisory.try_acquire('reports', 'render', 3));
        $try->shows($acquire, 'NULL', 'no slot is free');
        my %pids = map { 4710 + $_ => $workers[ $_ - 1 ] } 1 .. 3;
        incident('A worker is frozen', pids => \%pids);
        $try->shows($acquire, 3, 'a frozen worker is ended');
        leave($admin, $try, @workers[ 0, 1 ]);
    }
    {
        my $owner = there('mailer',
            q(SELECT advisory.lease('leader', 'mailer', '1 hour', owner => 'worker-3')));
        leave($admin, $owner);
        my $next = there('mailer');
        my $lease = q(SELECT token IS NULL FROM advisory.try_lease('leader', 'mailer', '1h'));
        $next->shows($lease, 1, 'the lease is held');
        incident('A lease whose owner is gone');
        $next->shows($lease, 0, 'and then it can be had');
        $admin->run(q(SELECT advisory.break_lease('leader', 'mailer')));

        # A transaction that relies on it keeps it for longer than its TTL.
        my $token = $next->value(q(SELECT token FROM advisory.lease('leader', 'mailer', '1ms')));
        my $relies = there('mailer', 'BEGIN',
            "SELECT advisory.check_lease('leader', 'mailer', $token)");
        $next->run(q(SET lock_timeout = '1s'));
        $next->shows($lease, 1, 'the lease has expired, and nobody gets it');
        my ($shows, $end) = join('', @{ $page->{lines} }) =~ s/\s+/ /gr
            =~ /`(SELECT pid, state FROM [^`]*)`\): end it by `(terminate_holder\(.*?\))`/;
        like($oncall->run("$shows;"), qr/^ *${\$relies->pid} \| idle in transaction$/m, $shows);
        like($oncall->run("SELECT advisory.$end;" =~ s/4711/$relies->pid/er), qr/^ t$/m, $end);
        $next->shows($lease, 0, '... and ended, so the lease can be had');
        $admin->run(q(SELECT advisory.break_lease('leader', 'mailer')));
        leave($admin, $next);
    }
    {
        leave($admin, there('bank', 'BEGIN', q(SELECT advisory.xact_lock('payment', 7)),
            q(PREPARE TRANSACTION 'payment-7')));
        my $next = waiter('bank', q(SELECT advisory.lock('payment', 7)));
        incident('A prepared transaction', by => on_call($server->{PGUSER}));
        $next->ends(undef, 'the prepared transaction has gone');
        leave($admin, $next);
    }
    {
        my $run = q(CALL advisory.run('jobs', 'nightly', 'SELECT 1 / (SELECT %d)',
            once_per => '1 day', once_window => '2026-03-02 00:00+00'));
        my $scheduler = there('scheduler');
        $scheduler->fails(sprintf($run, 0), '22012', 'a job fails');
        my $lock = there('by-hand', q(SELECT advisory.lock('jobs', 'nightly')));
        $scheduler->query(sprintf $run, 1);
        incident('A job did not run', pids => { 4714 => $lock });
        $admin->value(q(SELECT advisory.terminate_holder('jobs', 'nightly', ?)), $lock->pid);
        is($scheduler->value(sprintf $run, 1), 1, 'the job can run again');
        leave($admin, $scheduler);
    }
    {
        my ($root, $holder) = map { there($_) } qw(root holder);
        $holder->run(q(SELECT advisory.lock('billing', 'invoice:42')));
        $root->run('BEGIN', 'UPDATE item SET n = 1');
        waits($admin, $holder, 'UPDATE item SET n = 2');
        my $next = waiter('web', q(SELECT advisory.lock('billing', 'invoice:42')));
        my ($pid, $middle) = ($root->pid, $holder->pid);
        hangs("$edition: a holder that waits for a row", [qr/^ $pid app\@root .*\n +$middle .*\n/m,
                qr/^waiters +\| 2$/m, qr/^remedy +\| .*terminate_blocker\($pid, '/m], $holder);
        $next->ends(undef, '... and then that of the others');
        leave($admin, $next);
    }
    {
        my $claim = q(SELECT advisory.claim('a', 'b', '365 days'));
        my $run = there('yearly', 'BEGIN', $claim);
        my $next = waiter('yearly', $claim);
        my $pid = $run->pid;
        if ($is_portable) {
            my ($statement) = map { /`(SELECT pid, pg_blocking_pids[^`]*)`/ } @{ $page->{lines} };
            like($oncall->run("$statement;"), qr/^ +${\$next->pid} \| \{$pid\}$/m, $statement);
            leave($admin, $run);
            $next->ends(undef, 'a waiter in claim()');
            leave($admin, $next);
        } else {
            hangs('a waiter in claim()', [qr/^ $pid .*\n.* waits for /m,
                    qr/^remedy +\| .*terminate_blocker\($pid, '/m], $next);
        }
    }
    {
        # Which is active: to cancel it is enough.
        my $holder = there('job', 'BEGIN', q(SELECT advisory.xact_lock('a', 'b')))
            ->start('SELECT pg_sleep(600)');
        my $next = waiter('web', q(SELECT advisory.lock('a', 'b')));
        my ($cancel) = map { /(SELECT pg_catalog.pg_cancel_backend\(4711\))/ } @{ $page->{lines} };
        hangs("$edition: an active holder", [qr/^state +\| active/m]);
        $oncall->run($cancel =~ s/4711/$holder->pid/er . ';');
        $holder->ends('57014', 'an active holder is canceled');
        $next->ends(undef, '... which ends the wait');
        leave($admin, $holder, $next);
    }
    {
        my $migration = session(server => $server, database => $database, role => 'app',
            application => 'prisma')->run('SELECT pg_advisory_lock(72707369)');
        my $next = waiter('prisma', 'SELECT pg_advisory_lock(72707369)');
        my $pid = $migration->pid;
        hangs("$edition: a stuck migration", [qr/^lock +\| .*Prisma Migrate/m,
                qr/terminate_holder_key\(72707369, $pid, kind => 'lock'\);/], $next);
    }
    next if $is_portable;
    {
        my $holder = there('worker', q(SELECT advisory.lock('billing', 'invoice:42')),
            q(SET application_name = 'web'));
        incident('Locks nobody releases', pids => { 4711 => $holder });
        $admin->shows(q(SELECT advisory.is_locked('billing', 'invoice:42')), 0, 'it is released');
    }
    {
        # They keep a whole pool, though nobody waits: others only try.
        my @idle = map { there('shop', 'BEGIN', "SELECT advisory.try_xact_lock('cart', $_)") }
            1 .. 20;
        my $failed = there('shop', 'SELECT pg_advisory_lock(4711)', 'BEGIN');
        $failed->query('SELECT 1/0');
        my $relies = there('shop');
        my $token = $relies->value(q(SELECT token FROM advisory.lease('leader', 'a', '1ms')));
        $relies->run('BEGIN', "SELECT advisory.check_lease('leader', 'a', $token)");
        $admin->run(q(SET advisory_ext.leak_after = '1ms'));
        my $key = sub ($name) { $admin->value(q(SELECT advisory.key(?, ?)), split m{/}, $name) };
        is_deeply($admin->rows(q(SELECT pid, kind, namespace, key, mode,
                reason ~ '^idle in a transaction for \d+ s$', state FROM advisory.leaks
                ORDER BY pid)),
            [ sort { $a->[0] <=> $b->[0] } (map { [ $idle[ $_ - 1 ]->pid, 'lock', 'cart',
                $key->("cart/$_"), 'exclusive', 1, 'idle in transaction' ] } 1 .. 20),
                [ $failed->pid, 'lock', undef, 4711, 'exclusive', 1,
                    'idle in transaction (aborted)' ],
                [ $relies->pid, 'lease', 'leader', $key->('leader/a'), 'shared', 1,
                    'idle in transaction' ] ],
            'leaks shows who is idle in a transaction, though nobody waits');
        my $busy = $idle[0]->start('SELECT pg_sleep(600)');
        $admin->wait_until('it works',
            q(SELECT state = 'active' FROM pg_stat_activity WHERE pid = ?), $busy->pid);
        $admin->shows('SELECT count(*) FROM advisory.leaks WHERE pid = ?', 0,
            '... but not who works', $busy->pid);
        $admin->run(q(SET advisory_ext.leak_after = '1h'));
        $admin->shows('SELECT count(*) FROM advisory.leaks', 0,
            '... nor who has just begun to be idle');
        $admin->run('RESET advisory_ext.leak_after');
        leave($admin, @idle, $failed, $relies);
        $admin->run(q(SELECT advisory.break_lease('leader', 'a')));
    }
    {
        my $owner = there('leader', q(SELECT advisory.lease('service', 'leader', '1 hour',
            owner => 'host-1')));
        leave($admin, $owner);
        my $next = waiter('leader', q(SELECT advisory.lease('service', 'leader', '1 hour')));
        like(on_screen('a wait for a lease', $ACTIVITY, @WIDE),
            qr/service\/leader +\| +\| lease .*host-1/, 'activity shows the lease');
        # Without the role's rights one does not see the token, and so no remedy.
        like(on_screen('a wait for a lease', $steps{'Something hangs'}[0]{sql}, @WIDE),
            qr/^who +\| host-1\n(?:.*\n)*remedy +\| *\n/m, 'blockers shows its owner');
        $admin->shows(q(SELECT remedy ~ '^SELECT advisory.break_lease..service., .leader., \d+.;$'
            FROM advisory.blockers), 1, '... and a superuser also the remedy');
        my $break = $steps{'A lease whose owner is gone'}[1]{sql} =~ s/leader/service/r
            =~ s/mailer/leader/r;
        like($oncall->run($break), qr/^ t$/m, $break);
        $next->ends(undef, 'a wait for a lease: break_lease ends it');
        leave($admin, $next);
        $admin->run(q(SELECT advisory.break_lease('service', 'leader')));
    }
    {
        leave($admin, there('scheduler', q(SELECT advisory.xact_lock('billing', 'report'))))
            for 1, 2;
        incident('A job ran twice');
    }
}

# The statements of its lines about the portable edition.
for my $statement (map { /`(SELECT (?:[*]|pid, )[^`]*)`/g } @{ $page->{lines} }) {
    like($oncall->run("$statement;"), qr/^\(\d+ rows?\)$/m, "portable: $statement");
}

# ---- 500 waiters ---------------------------------------------------------------------------------

($database, $is_portable) = ('postgres', 0);
$oncall = on_call('oncall');
$admin = session(server => $server, database => $database);
my @waiters = map { there(sprintf 'worker-%d', $_) } 1 .. WAITERS;

for my $case ([ q(advisory.lock('billing', 'invoice:42')), 1 ],
    [ q(advisory.acquire('workers', 'mail', 1)), 1 ],
    [ q(advisory.acquire('reports', 'render', 3)), 3 ]) {
    my ($lock, $places) = @$case;
    my @holders = map { there('worker-0', "SELECT $lock") } 1 .. $places;
    my @pids = sort { $a <=> $b } map { $_->pid } @holders;
    my $pids = join ',', @pids;
    $_->start("SELECT $lock") for @waiters;
    wait_until('all wait', sub { $admin->value('SELECT count(*) FROM advisory.locks
            WHERE wait_start IS NOT NULL') == WAITERS }, 120);
    my $printed = on_screen('500 waiters', $steps{'Something hangs'}[0]{sql},
        $places > 1 ? @WIDE : (COLUMNS, LINES));
    like($printed, $_, "500 waiters: it shows $_")
        for qr/and 490 more, the longest \d+ s/, $places > 1 ? qr/and 2 more holders/ : (),
        qr/(?:^waiters +\| 500\n(?:.*\n)*?){$places}/m,
        map { qr/^remedy +\| .*', $_, kind/m } @pids;
    like(on_screen('500 waiters', $ACTIVITY, @WIDE),
        qr/^ \(490 more\) .*\| $pids *$/m, '500 waiters: activity shows ten of them');
    $admin->run('SELECT count(pg_cancel_backend(pid)) FROM advisory.locks WHERE NOT granted');
    $_->finish for @waiters;
    leave($admin, @holders);
}
leave($admin, @waiters);

# ---- After a crash or a failover -----------------------------------------------------------------

{
    my $standby = replica($server);
    my $leader = there('mailer', q(SELECT advisory.lease('leader', 'mailer', '1h',
        owner => 'worker-3')));
    my $scheduler = session(server => $server, role => 'app', application => 'scheduler');
    $scheduler->start(q(CALL advisory.run('jobs', 'export', 'SELECT pg_sleep(600)',
        once_per => '1 day', once_window => '2026-03-03 00:00+00')));
    $admin->wait_until('it runs', q(SELECT count(*) FROM advisory.claims WHERE name = 'export'));
    caught_up($admin, $standby);
    $server->ctl('stop', '-m', 'immediate');
    $standby->ctl('promote');
    ($server, $database) = ($standby, 'postgres');
    $admin = session(server => $server);
    $admin->wait_until('it is the primary', 'SELECT NOT pg_is_in_recovery()');
    $oncall = on_call('oncall');
    incident('After a crash or a failover');
    $server->ctl('stop', '-m', 'immediate');
}

# ---- A full lock table ---------------------------------------------------------------------------

$server = own_server('max_connections=20', 'max_locks_per_transaction=10');
begin('extension');
{
    # Of two that are connected already, only one has done what the page advises.
    my ($open, $other) = map { on_call($server->{PGUSER}) } 1, 2;
    my ($advice) = map { /`(SELECT oid::regrole[^`]*)`/ } @{ $page->{lines} };
    like($open->run("$advice;"), qr/ app$/m, $advice);
    # The extension was used before. Else the memory that it then asks for may find no room.
    $open->run("SELECT advisory.try_xact_lock('used', 'before');");
    my $hog = there('import');
    $hog->fails('SELECT pg_advisory_lock(i) FROM generate_series(1, 100000) AS i', '53200',
        'a full lock table');
    like($other->run("SELECT pg_catalog.pg_terminate_backend(${\$hog->pid});"),
        qr/out of shared memory/, 'a session that does not know the role cannot end it');
    incident('The lock table is full', pids => { 4711 => $hog }, look => $open,
        figures => 1);
    wait_until('it has room',
        sub { $admin->value('SELECT status FROM advisory.pressure') eq 'ok' });
}

# ---- All of the page -----------------------------------------------------------------------------

is_deeply([ grep { !$solved{$_} } grep { $_ ne 'Rights' } sort keys %steps ], [],
    'each incident of the page was solved');
for my $step ($page->steps) {
    cmp_ok(width($step->{$_} // ''), '<=', COLUMNS, "line $step->{line}: not too wide")
        for qw(sql shown);
}
$page->write_page if $ENV{WRITE};
done_testing();
