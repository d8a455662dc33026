#!/usr/bin/env perl
# doc/recipes.md: the test runs every block of SQL as it is there, in sessions of psql, and checks
# the claims of the recipe while other sessions run it, too. test/portable/recipes.t runs it with
# the portable edition.
# Runs first: each recipe waits for what it shows.
# Runs once: the recipes are the same for each version, and what they call is tested with each.
use FindBin;
use lib "$FindBin::Bin/lib", "$FindBin::Bin/../integration/lib";
use AdvisoryTest;
use List::Util qw(sum0);
use Programs;
use Recipes;
use Replica;
use Socket qw(SOL_SOCKET);

use constant { JOBS => 40, WORKERS => 4, VANISHED_S => 20, SO_ATTACH_FILTER => 26 };

document("$FindBin::Bin/../../doc/recipes.md");

# Is the lock free for another session? (It takes each form for a transaction, which ends
# immediately.)
sub is_free ($namespace, $name, $what = "$namespace/$name is free") {
    return look->shows('SELECT advisory.try_xact_lock(?, ?::text)', 1, $what, $namespace, $name);
}

sub is_taken ($namespace, $name, $what = "$namespace/$name is taken") {
    return look->shows('SELECT advisory.try_xact_lock(?, ?::text)', 0, $what, $namespace, $name);
}

# How often work() was done, and how many were at it at the same time.
sub worked { return look->value('SELECT count(*) FROM worked') }

sub at_once {
    return look->value(
        'SELECT max((SELECT count(*) FROM worked b WHERE b.began <= a.began AND a.began < b.ended))
            FROM worked a');
}

# ---- Singleton job -------------------------------------------------------------------------------

recipe 'Singleton job' => sub {
    my ($one, $other) = sessions(2);
    my $job = gate();
    start_block(1, $one);
    $job->inside($one);
    like(block(1, $other), qr/^f$/m, 'in one line: while it runs, another one is skipped');
    $job->open;
    like(finished($one), qr/^t$/m, 'in one line: the first one ran it');
    is(worked(), 1, 'in one line: once');
    like(block(1, $other), qr/^t$/m, 'in one line: when it has ended, the other one can');
    block(2, $one);
    my $gate = gate();
    start_block(3, $one);
    $gate->inside($one);
    like(block(3, $other), qr/^f$/, 'while it runs, another one is told so, at once');
    $gate->open;
    like(finished($one), qr/^t$/, 'the first one ran it');
    is(worked(), 3, 'once');
    like(block(3, $other), qr/^t$/, 'when it has ended, the other one can');

    # One that is ended in the middle of it.
    $gate = gate();
    start_block(3, $one);
    $gate->inside($one);
    look->shows('SELECT pg_terminate_backend(?, 10000)', 1, 'a job is ended', $one->pid);
    like(broken($one), qr/FATAL:/, 'in the middle of it');
    $gate->open;
    is(worked(), 4, 'it leaves nothing done');
    like(block(3, $other), qr/^t$/, 'and nothing locked');
};

# ---- Migration guard -----------------------------------------------------------------------------

recipe 'Migration guard' => sub {
    my ($first, $second) = sessions(2);
    block(1, $first);
    look->run('INSERT INTO item SELECT generate_series(1, 100)');
    block(2, $first);
    start_block(2, $second);
    waits_for($second, 'migration', 'app');
    # (It builds an index concurrently: if the second one waited with a snapshot, this was a
    # deadlock.)
    like(block(3, $first), qr/^t$/, 'the first one migrates, and releases');
    look->shows("SELECT indisvalid FROM pg_index WHERE indexrelid = 'item_id'::regclass", 1,
        'the index was built');
    finished($second);
    like(block(3, $second), qr/^t$/, 'the second one gets the lock, and finds nothing to do');
    look->shows('SELECT version FROM migration', 7, 'migrated once');
    is_free('migration', 'app');
};

# ---- Refresh a materialized view -----------------------------------------------------------------

recipe 'Refresh a materialized view, unless somebody does' => sub {
    my ($one, $other) = sessions(2);
    my $amount = sub { look->value('SELECT sum(amount) FROM daily_sales') };
    block(1, $one);
    look->run("INSERT INTO sale VALUES ('2026-01-01', 10)");
    block(2, $one);
    is($amount->(), 10, 'it is refreshed');

    look->run("INSERT INTO sale VALUES ('2026-01-02', 5)");
    $other->run("BEGIN; SELECT advisory.xact_lock('refresh', 'daily_sales');");
    block(2, $one);
    is($amount->(), 10, 'while another one has the lock, it is skipped');
    $other->run('COMMIT;');
    block(2, $one);
    is($amount->(), 15, 'then it is refreshed again');

    # A real refresh that is held up in the middle, by a lock on what it reads.
    my $keeper = session(database => database())->run('BEGIN', 'LOCK TABLE sale');
    start_block(2, $other);
    look->wait_until('the refresh has begun',
        'SELECT count(*) FROM pg_locks WHERE pid = ? AND NOT granted', $other->pid);
    block(2, $one);
    pass('nor does it wait while one is running');
    $keeper->run('COMMIT');
    finished($other);
};

# ---- At most K -----------------------------------------------------------------------------------

recipe 'At most K at once' => sub {
    my @sessions = sessions(5);
    my ($fourth, $fifth) = @sessions[3, 4];
    my @inside = @sessions[0 .. 2];
    block(1, $_) for @inside;
    is_deeply([ map { $_->run('\echo :slot') } @inside ], [ map { "$_\n" } 1 .. 3 ],
        'three get the slots 1, 2 and 3');
    start_block(1, $fourth);
    waits_for($fourth, 'workers', 'embedding');
    look->shows(q{SELECT count(*) FILTER (WHERE granted), count(*)
            FILTER (WHERE NOT granted) FROM advisory.holders('workers', 'embedding')}, '3|1',
            'the fourth waits');
    like(block(2, $inside[1]), qr/^t$/m, 'one works, and releases');
    finished($fourth);
    is($fourth->run('\echo :slot'), "2\n", 'the fourth gets that slot');
    block(2, $_) for $fourth, @inside[0, 2];
    is(worked(), 4, 'all four worked');

    my $gate = gate();
    start_block(3, $_) for @sessions[0 .. 2];
    $gate->inside(@sessions[0 .. 2]);
    start_block(3, $_) for $fourth, $fifth;
    waits_for($_, 'workers', 'embedding') for $fourth, $fifth;
    $gate->inside(@sessions[0 .. 2]);
    $gate->open;
    finished($_) for @sessions;
    is(worked(), 9, 'for a transaction: all five worked');
    is(at_once(), 3, 'and three at the same time');
    look->shows('SELECT count(*) FROM advisory.locks', 0, 'nothing is left to release');
};

# ---- For each tenant -----------------------------------------------------------------------------

recipe 'One at a time for each tenant' => sub {
    my ($one, $two, $other, $both) = sessions(4);
    $_->run('\set tenant 42') for $one, $two;
    $other->run('\set tenant 7');
    $both->run("\\set tenant 42\n\\set other 7");
    my $gate = gate();
    start_block(1, $one);
    $gate->inside($one);
    start_block(1, $_) for $two, $other;
    waits_for($two, 'tenant', 42);
    $gate->inside($one, $other);
    start_block(2, $both);
    waits_for($both, 'tenant', $_) for 42;
    $gate->open;
    finished($_) for $one, $two, $other, $both;
    is(worked(), 4, 'in the end everybody worked');
    is(at_once(), 2, 'two at most at the same time, of different tenants');
    look->shows('SELECT count(*) FROM worked a JOIN worked b ON a.pid <> b.pid
            AND a.began < b.ended AND b.began < a.ended WHERE a.pid = ?', 0,
            'and nobody while somebody worked on both', $both->pid);

    # The same two in the other order, by many at once: no deadlock.
    my @all = sessions(6);
    $all[$_]->run($_ % 2 ? "\\set tenant 7\n\\set other 42" : "\\set tenant 42\n\\set other 7")
        for 0 .. $#all;
    for (1 .. 10) {
        start_block(2, $_) for @all;
        finished($_) for @all;
    }
    is(worked(), 64, 'in whatever order they name the two, there is no deadlock');
};

# ---- Leader election -----------------------------------------------------------------------------

recipe 'Leader election' => sub {
    my ($first, $second, $third) = sessions(3);
    block(1, $first);
    block(2, $first);
    start_block(2, $second);
    waits_for($second, 'leader', 'scheduler');
    look->shows('SELECT backend_xmin, backend_xid FROM pg_stat_activity WHERE pid = ?', 'NULL|NULL',
        'a waiter has no snapshot', $second->pid) unless portable();
    like(block(3, $first), qr/^t$/, 'the first one leads');
    like(block(4, $third), portable() ? qr/^${\$first->pid}\|session 1\|$/m
        : qr/^${\$first->pid}\|session 1\|\d\d:\d\d:\d\d/m, 'as anybody can see');
    look->shows('SELECT term FROM leader', 1, 'in its first term');

    # The leader's program crashes.
    $first->quit('KILL');
    finished($second);
    like(block(3, $second), qr/^t$/, 'the next one leads when the leader is gone');
    look->shows('SELECT term FROM leader', 2, 'and the term is another');
    is($second->run('\echo :term'), "2\n", 'which it knows');
    like(block(3, $third), qr/^f$/, 'a process that does not lead knows that, too');

    start_block(2, $third);
    waits_for($third, 'leader', 'scheduler');
    like(block(5, $second), qr/^t$/, 'the leader steps down');
    finished($third);
    like(block(3, $third), qr/^t$/, 'the next one leads');
    like(block(3, $second), qr/^f$/, 'and the former one knows that it does not');
};

# ---- Bounded waits -------------------------------------------------------------------------------

recipe 'Wait, but not for ever' => sub {
    my ($one, $other, $holder) = sessions(3);
    look->run("CREATE TABLE request (id bigint, state text DEFAULT 'new')");
    $holder->run("SELECT advisory.lock('export', 7);");
    start_block(1, $one, error => qr/within 2 s$/m);
    start_block(2, $other);
    finished($one);
    finished($other);
    look->shows('SELECT id, state FROM request', '7|later',
        'after the wait the transaction goes on, and commits');
    is(worked(), 0, 'without the work');
    look->shows("SELECT pid FROM advisory.holders('export', 7)", $holder->pid,
        'neither holds or awaits anything');

    $holder->run("SELECT advisory.unlock('export', 7);");
    block(2, $other);
    is(worked(), 1, 'with the lock, it works');
    like(block(1, $one), qr/^t$/, 'and a free lock is had at once');
};

# ---- Work queue ----------------------------------------------------------------------------------

recipe 'Work queue' => sub {
    my @workers = sessions(WORKERS);
    block(1, $workers[0]);
    look->run('INSERT INTO job SELECT FROM generate_series(1, ' . JOBS . ')',
        # Who did what.
        'CREATE TABLE did (id bigint, pid integer)',
        'CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO did
            VALUES (NEW.id, pg_backend_pid()); RETURN NULL; END $$',
        'CREATE TRIGGER note AFTER UPDATE ON job FOR EACH ROW EXECUTE FUNCTION note()');
    block(2, $_) for @workers;
    is_deeply([ map { 0 + $_->run('\echo :id') } @workers ], [ 1 .. WORKERS ],
        'everybody takes another job');
    is_deeply(look->rows("SELECT pid, count(*) FROM pg_locks WHERE locktype = 'advisory'
            GROUP BY pid ORDER BY pid"),
        [ map { [ $_, 1 ] } sort { $a <=> $b } map { $_->pid } @workers ], 'and locks just that');

    # One of them dies with its job; the others go on until there is nothing left.
    my $dead = shift(@workers);
    $dead->quit('KILL');
    look->wait_until('its session is gone',
        'SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = ?', $dead->pid);
    my %left = map { $_ => $_ } 0 .. $#workers;
    start_block(3, $_) for @workers;
    my @step = (3) x @workers;
    while (%left) {
        for my $i (sort keys %left) {
            $workers[$i]->is_done(0.01) or next;
            finished($workers[$i]);
            if ($step[$i] == 2 && $workers[$i]->run('\echo :{?id}') =~ /FALSE/) { delete $left{$i} }
            else { start_block($step[$i] = 5 - $step[$i], $workers[$i]) }
        }
    }
    is_deeply(look->rows('SELECT id, count(*) FROM did GROUP BY id ORDER BY id'),
        [ map { [ $_, 1 ] } 1 .. JOBS ],
        'every job is done once, also that of a worker that died');
    cmp_ok(look->value('SELECT count(DISTINCT pid) FROM did'), '>', 1, 'by several');
    look->shows('SELECT count(*) FROM job WHERE done IS NULL', 0, 'and none is left');
    look->shows("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'", 0, 'nor locked');

    # The list is older than the lock: another worker has done the job and released it in between.
    look->run('ALTER TABLE job DISABLE TRIGGER note', 'UPDATE job SET done = NULL WHERE id <= 2');
    my $slow = session(database => database());
    my $stale = $slow->value(
        "SELECT string_agg(replace(prosrc, 'advisory.try_lock_any', 'late_try_lock_any'), '')
            FROM pg_proc WHERE proname = 'take_job'");
    look->run("CREATE FUNCTION late_try_lock_any(text, bigint[]) RETURNS SETOF bigint
            LANGUAGE plpgsql AS \$\$ BEGIN LOCK TABLE gate IN ROW SHARE MODE;
            RETURN QUERY SELECT * FROM advisory.try_lock_any(\$1, \$2); END \$\$",
        "CREATE FUNCTION late_take_job() RETURNS SETOF job
            LANGUAGE plpgsql AS \$take\$$stale\$take\$");
    my $gate = gate();
    $slow->start('SELECT id FROM late_take_job()');
    $gate->inside($slow);
    look->run('UPDATE job SET done = now() WHERE id = 1');
    $gate->open;
    $slow->returns(2, 'what was done since the list was read is not done again');
    $slow->shows(q{SELECT key = advisory.key('job', 2) FROM advisory.locks WHERE pid = ?}, 1,
        'and not kept locked', $slow->pid);
};

# ---- Work queue with a limit for each tenant -----------------------------------------------------

recipe 'Work queue with a limit for each tenant' => sub {
    my @workers = sessions(6);
    my $sql = (block_sql(2))[0] =~ s/^ *\\.*\n//gmr;
    is(scalar(() = $sql =~ /;$|\\gset$/gm), 3, 'three statements for each job');
    block(1, $workers[0]);
    is(block(2, $workers[0]), '', 'nothing to do');
    look->run(q{INSERT INTO tenant (name) VALUES ('big'), ('middle'), ('small')},
        q{INSERT INTO tenant_job (tenant) SELECT 'big' FROM generate_series(1, 20)},
        q{INSERT INTO tenant_job (tenant) VALUES ('middle'), ('middle'), ('middle'), ('small')});
    # All at work: two of each tenant, and one of that which has only one.
    my $gate = gate();
    for my $last (0 .. 4) { start_block(2, $workers[$last]); $gate->inside(@workers[0 .. $last]) }
    my $in_use = sub {
        look->rows(q{SELECT name, count(*) FROM tenant, advisory.holders('tenant', name) AS h
                WHERE h.granted GROUP BY name ORDER BY name})
    };
    is_deeply($in_use->(), [ [ 'big', 2 ], [ 'middle', 2 ], [ 'small', 1 ] ],
        'at most two of a tenant');
    # A sixth one gets a slot of the tenant whose only job is worked on, and finds nothing; nor does
    # a later turn of it keep others waiting.
    is(block(2, $workers[5]) =~ tr/\n//, 1, 'one more finds nothing to do, and releases its slot');
    # One is killed.
    look->value('SELECT pg_terminate_backend(?, 5000)', $workers[0]->pid);
    broken($workers[0]);
    is(sum0(map { $_->[1] } @{ $in_use->() }), 4, 'the slot of a worker that is killed is free');
    $gate->open;
    finished($_) for @workers[1 .. 4];
    # The others' jobs are not behind the many of the big one.
    my @turns;
    for (1 .. 40) {
        block(2, $workers[1]);
        push @turns,
            look->value(
                q{SELECT string_agg(tenant || n, ' ' ORDER BY tenant)
                    FROM (SELECT tenant, count(*) AS n FROM tenant_job GROUP BY 1) AS t});
        last if !defined $turns[-1];
    }
    is($turns[-1], undef, 'all jobs are done');
    cmp_ok((grep { !defined || !/middle|small/ } @turns) + 0, '>=', 15,
        'those of small tenants first') or diag explain \@turns;
    is(worked(), 24, 'each once');
    is_deeply($in_use->(), [], 'no slot is left');
};

# ---- Readers and a writer ------------------------------------------------------------------------

recipe 'Readers and a writer' => sub {
    my ($one, $two, $writer, $late) = sessions(4);
    look->run('CREATE TABLE price (item bigint, amount numeric)',
        'INSERT INTO price VALUES (1, 100)');
    my $gate = gate();
    start_block(1, $_) for $one, $two;
    $gate->inside($one, $two);
    start_block(2, $writer);
    waits_for($writer, 'prices', 'import');
    start_block(1, $late);
    waits_for($late, 'prices', 'import');
    $gate->inside($one, $two);
    look->shows('SELECT count(*) FROM price', 1, 'two read at once, and nobody writes meanwhile');
    $gate->open;
    my ($seen_by_one, $seen_late) = map { finished($_) } $one, $late;
    finished($_) for $two, $writer;
    like($seen_by_one, qr/^1$/m, 'the first session has read what was there');
    like($seen_late, qr/^3$/m, 'a session after the writer reads what it wrote');
};

# ---- Barrier -------------------------------------------------------------------------------------

recipe 'Barrier' => sub {
    my ($one, $two, $barrier, $late) = sessions(4);
    my $gate = gate();
    start_block(1, $_) for $one, $two;
    $gate->inside($one, $two);
    start_block(2, $barrier);
    waits_for($barrier, 'orders', 'writers');
    start_block(1, $late);
    waits_for($late, 'orders', 'writers');
    $gate->inside($one, $two);
    $gate->open;
    finished($_) for $one, $two;
    unlike(finished($barrier), qr/WARNING/, 'it waits for those who write, without a warning');
    finished($late);
    is(worked(), 3, 'a writer who comes meanwhile works when it has ended');
    look->shows('SELECT count(*) FROM advisory.locks', 0, 'nothing is left');
    my $alone = $barrier->run((block_sql(2))[0] =~ s/^(?:BEGIN|COMMIT);\n//gmr);
    is($alone =~ /HINT: .*BEGIN and COMMIT around it: recipe "Barrier"/ ? 1 : 0, portable() ? 0 : 1,
        'the SELECT alone gets a hint that names this recipe');
};

# ---- Pause the workers ---------------------------------------------------------------------------

recipe 'Pause the workers' => sub {
    my ($one, $admin, $late, $new) = sessions(4);
    my $gate = gate();
    start_block(1, $one);
    $gate->inside($one);
    start_block(2, $admin);
    waits_for($admin, 'workers', 'pause');
    my $comes_late = sub {
        start_block(1, $late);
        waits_for($late, 'workers', 'pause');
    };
    # The portable await_lock() lets in who comes between two of its waits.
    $comes_late->() unless portable();
    $gate->open;
    finished($_) for $one, $admin;
    $comes_late->() if portable();
    look->shows('SELECT count(*) FROM worked', 1, 'work that has begun ends before the pause');
    start_block(1, $new);
    waits_for($new, 'workers', 'pause');
    like(block(3, $admin), qr/^t$/m, 'the pause ends');
    finished($_) for $late, $new;
    is(worked(), 3, 'who has come meanwhile works then, and a new worker');

    # Work that has begun before the lease goes on.
    $gate = gate();
    start_block(1, $one);
    $gate->inside($one);
    block(4, $admin);
    block(1, $new);
    is(worked(), 3, 'with a lease a new worker does nothing');
    like(block(5, $late), qr/^alice: new disks\|/m, 'and everybody can see why');
    start_block(2, $admin);
    waits_for($admin, 'workers', 'pause');
    $gate->open;
    finished($_) for $one, $admin;
    is(worked(), 4, 'work that has begun before it ends, and the lock waits for that');
    block(3, $admin);
    block(1, $one);
    is(worked(), 4, 'nobody works then');
    like(block(6, $admin), qr/^t$/m, 'the pause ends');
    block(1, $one);
    is(worked(), 5, 'and who comes works again');
};

# ---- Look first, then write ----------------------------------------------------------------------

recipe 'Look first, then write' => sub {
    my ($one, $two, $reader) = sessions(3);
    look->run('CREATE TABLE price (item bigint, amount numeric)');
    my $gate = gate();
    start_block(1, $one);
    $gate->inside($one);
    start_block(1, $two);
    waits_for($two, 'prices', 'import intent');
    $reader->run(q{BEGIN; SELECT advisory.xact_lock_shared('prices', 'import', '0');});
    $gate->open;
    waits_for($one, 'prices', 'import');
    look->shows('SELECT count(*) FROM price', 0, 'it writes nothing beside a session that looks');
    $reader->run('COMMIT;');
    finished($_) for $one, $two;
    look->shows('SELECT count(*) FROM price', 1,
        'the second one saw what the first one wrote, without a deadlock');
};

# ---- A batch -------------------------------------------------------------------------------------

recipe 'A batch in which one may fail' => sub {
    my ($batch, $busy) = sessions(2);
    block(1, $batch);
    $busy->run("SELECT advisory.lock('account', 3);");
    $batch->run('BEGIN;');
    my $printed = block(2, $batch);
    like($printed, qr/account 2 skipped: .*check constraint/, 'one that fails is skipped');
    like($printed, qr/account 3 skipped: could not obtain advisory lock/,
        'one that is in use is skipped');
    is_taken('account', 1, 'in the middle of it, what went well is locked');
    is_free('account', 2, 'what failed is not');
    $busy->run("SELECT advisory.unlock('account', 3);");
    is_free('account', 3, 'nor what was not got');
    $batch->run('COMMIT;');
    look->shows('SELECT id, balance FROM account ORDER BY id', [ '1|90', '2|3', '3|100' ],
        'what went well is kept');
    is_free('account', 1, 'in the end nothing is locked');

    block(3, $batch);
    is_taken('account', 1, 'with a savepoint: what was taken before it is locked');
    is_free('account', 2, 'what was taken after it is not');
    block(4, $batch);
    is_free('account', 1, 'and at the end neither is');
};

# ---- Cleaning up ---------------------------------------------------------------------------------

recipe 'Cleaning up' => sub {
    my ($one, $pooled) = sessions(2);
    my $take = "SELECT advisory.lock('export', 7); SELECT advisory.lock('export', 7);
            SELECT advisory.lock_shared('export', 7);";
    $one->run($take);
    is(block(1, $one), "3\n", 'every hold, in both modes');
    is(block(1, $one), "0\n", 'none, and no warning');
    $one->run("SELECT pg_advisory_lock(4711);");
    $one->run($take . "SELECT advisory.lock('export', 8);");
    if (not_here(2, $one)) { $one->run(q{SELECT advisory.unlock_all('export', '{7,8}'::text[]);}) }
    else                   { is(block(2, $one), "4\n", 'all of the namespace') }
    is_free('export', $_) for 7, 8;
    look->shows('SELECT count(*) FROM pg_locks WHERE pid = ? AND locktype = ?', 1,
        'and what is not of it stays', $one->pid,
        'advisory');
    $one->run('SELECT pg_advisory_unlock(4711);');

    # Forgotten by a program, and its pool has given the connection to another.
    $pooled->run("SET application_name = 'exporter'; SELECT advisory.lock('export', 7);
            SET application_name = 'web';");
    if (!not_here(3, $one)) {
        my $leak;
        wait_until('the leak shows',
            sub { ($leak) = grep { /^${\$pooled->pid}\|/ } split /\n/, block(3, $one) });
        like($leak, qr/\|export\|7\|exporter\|.*\w/,
            'a leak is shown, with its role and application and the reason');
    }
    $one->run('\set pid ' . $pooled->pid);
    like(block(4, $one), qr/^t$/, 'that session is ended');
    is_free('export', 7);
    like(block(4, $one), qr/^WARNING:.*\nf$/m, 'once: then it does not hold it');
    is($one->run('SELECT count(*) FROM advisory.leaks;'), "0\n", 'no leak is left')
        unless portable();
};

# ---- Once per window -----------------------------------------------------------------------------

recipe 'Once per time window' => sub {
    my ($one, $two, $three) = sessions(3);
    # Not where an hour ends meanwhile, which is a minute before: then some of this was of the next
    # hour.
    my $hour = sub {
        return look->value(q{SELECT date_trunc('hour', clock_timestamp() + interval '1 minute')})
    };
    wait_until('the end of the hour is not near', sub {
        look->value(
            q{SELECT extract(epoch FROM clock_timestamp())::int % 3600 NOT BETWEEN 3480 AND 3540})
    }, 90);
    my $began = $hour->();
    my $gate = gate();
    start_block(1, $one);
    $gate->inside($one);
    like(block(1, $two), qr/is taken.*^f$/ms, 'a session that comes while it runs does nothing');
    $gate->open;
    like(finished($one), qr/^t$/m, 'the first one has done it');
    is_free('report', 'hourly', 'the lock is free afterwards');
    like(block(1, $_), qr/is already claimed.*^f$/ms,
        'and a session that comes late still does nothing') for $two, $three;
    is(worked(), 1, 'it was done once');
    look->run('DELETE FROM advisory._claims', 'ALTER TABLE worked RENAME TO broken');
    block(1, $one, error => qr/relation "worked" does not exist/);
    look->run('ALTER TABLE broken RENAME TO worked');
    like(block(1, $two), qr/is already claimed.*^f$/ms, 'what fails is not tried again');

    # In the transaction of the work.
    look->run('DELETE FROM advisory._claims');
    $gate = gate();
    start_block(2, $one);
    $gate->inside($one);
    start_block(2, $two);
    wait_until('another one waits', sub {
        look->value(
            'SELECT count(*) FROM pg_stat_activity WHERE pg_blocking_pids(pid) = ARRAY[?::int]',
            $one->pid) == 1
    });
    $gate->open;
    finished($_) for $one, $two;
    block(2, $three);
    is(worked(), 2, 'in the transaction of the work: done once');
    look->run('DELETE FROM advisory._claims', 'ALTER TABLE worked RENAME TO broken');
    block(2, $one, error => qr/relation "worked" does not exist/);
    look->run('ALTER TABLE broken RENAME TO worked');
    block(2, $two);
    is(worked(), 3, 'what failed is done by the next one');
    is($hour->(), $began, 'all within one window');

    like(block(3, $one), qr/^t$/m, 'once a day in Prague');
    like(block(4, $one), qr/^t$/m, 'once a month');
    like(block(4, $two), qr/is already claimed.*^f$/ms, 'and not twice');
    look->shows("SELECT count(DISTINCT date_trunc('month', t + interval '1 minute'))
            FROM unnest(ARRAY[timestamptz '2026-01-31 23:59:58', '2026-02-01 00:00:02']) t", 1,
            'a clock that is early does it for the same month');
    is(block(5, $one), '', 'all have finished');
    look->run(q{SELECT advisory.unclaim('report', 'monthly', (SELECT last_window
            FROM advisory.claims WHERE name = 'monthly'))}, 'ALTER TABLE worked RENAME TO broken');
    my ($call) = block_sql(4);
    like($two->run($call), qr/relation "worked" does not exist/, 'a report fails');
    look->run('ALTER TABLE broken RENAME TO worked');
    like(block(5, $one), qr/^monthly\|/, 'which is shown');
    like(block(6, $one), qr/^t$/m, 'its claim is taken back');
    like(block(4, $two), qr/^t$/m, 'and it can run again');
};

# ---- A pool that waits ---------------------------------------------------------------------------

recipe 'A pool of connections that all wait' => sub {
    my @pool = sessions(5);
    for my $form (1, 2) {
        my $gate = gate();
        start_block($form, $_) for @pool[0 .. 2];
        my @in_front = @pool[0 .. 2];
        wait_until('two wait', sub {
            look->value("SELECT count(*) FROM advisory.holders('export', 7) WHERE NOT granted") == 2
        });
        for my $more (@pool[3, 4]) {
            if ($form == 1) {
                like(block($form, $more), qr/^busy$/m, 'the fourth session is told so at once')
            }
            else {
                block($form, $more,
                    error => qr{could\ not\ obtain\ a\ slot\ of\ semaphore\ "front\ of\ export/7"
                        |could\ not\ obtain\ .*"front\ of\ export/7".*\ within\ 200\ ms}x)
            }
        }
        look->shows("SELECT granted, count(*) FROM advisory.holders('export', 7)
            GROUP BY 1 ORDER BY 1", [ '0|2', '1|1' ],
            'one has the lock, two wait for it, and the other connections are free');
        $gate->open;
        finished($_) for @pool[0 .. 2];
        is(worked(), 3 * $form, 'and those three work');
        is(at_once(), 1, 'one after the other');
    }
};

# ---- Servers of one's own ------------------------------------------------------------------------

my $port = free_port();
my $primary = own_server('listen_addresses=127.0.0.1', "port=$port");

# Takes all that comes for this connection out of its way, acknowledgements included, as if its
# machine were gone: a filter on the client's socket that lets nothing pass. False if there is no
# such thing here.
sub vanish ($session) {
    my $drop_all = pack 'SCCL', 0x06, 0, 0, 0;
    return setsockopt $session->{socket} = socket_of($session), SOL_SOCKET, SO_ATTACH_FILTER,
        pack('S x![P] P', 1, $drop_all);
}

# (A descriptor of its own, so that closing it leaves the session's alone.)
sub socket_of ($session) {
    open my $socket, '+<&', $session->dbh->{pg_socket} or die "no socket: $!\n";
    return $socket;
}

recipe 'A holder whose machine vanished' => sub {
    look->run('CREATE ROLE worker LOGIN');
    my $tcp = { %$primary, PGHOST => '127.0.0.1', PGUSER => 'worker' };
    block(1, sessions(1));
    my $worker = Psql->new(server => $tcp, database => database());
    is(block(2, $worker), <<~'END', 'the settings are those of new sessions');
        tcp_keepalives_count|3|
        tcp_keepalives_idle|30|s
        tcp_keepalives_interval|10|s
        tcp_user_timeout|60000|ms
        END
    is_deeply(look->rows('SELECT unnest(setconfig) FROM pg_db_role_setting ORDER BY 1'),
        [ map { [$_] } (
            'client_connection_check_interval=10s', 'idle_in_transaction_session_timeout=5min',
            'tcp_keepalives_count=3',
            'tcp_keepalives_idle=30s', 'tcp_keepalives_interval=10s', 'tcp_user_timeout=1min') ],
            'and the rest, too');
    $worker->quit;

    # The same settings with less patience; with the server's own, a control.
    my @quick = ('SET tcp_keepalives_idle = 1', 'SET tcp_keepalives_interval = 1',
        'SET tcp_keepalives_count = 2', "SET tcp_user_timeout = '3s'",
        "SET client_connection_check_interval = '1s'");
    my @default = map { "SET $_ = 0" } qw(tcp_keepalives_idle tcp_keepalives_interval
        tcp_keepalives_count tcp_user_timeout client_connection_check_interval);
    my %holder = (
        idle     => [ \@quick, '' ],
        working  => [ \@quick, 'SELECT pg_sleep(3600)' ],
        stuck    => [ [ @default, "SET idle_in_transaction_session_timeout = '2s'", 'BEGIN' ], '' ],
        unheeded => [ \@default, '' ],
        unasked  => [
            [ @quick, 'SET client_connection_check_interval = 0' ], 'SELECT pg_sleep(3600)' ],
    );
    my %session;
    SKIP: {
        for my $name (sort keys %holder) {
            my ($settings, $query) = @{ $holder{$name} };
            $session{$name} = session(server => $tcp, database => database())
                ->run(@$settings, "SELECT advisory.lock('vanished', '$name')");
            $session{$name}->start($query) if $query;
            vanish($session{$name}) or skip "sockets cannot be filtered here: $!", 3;
        }
        look->shows("SELECT advisory.lock_all('vanished', '{idle,working,stuck}', '" . VANISHED_S
                . "s')", 1, 'the locks of holders that are idle, in a query, or stuck in a '
                . 'transaction are free '
                . 'when the server has noticed');
        is_taken('vanished', 'unheeded', 'it does not without keepalives');
        is_taken('vanished', 'unasked', 'nor in the middle of a query if it does not look');
    }
    # What is left of the client would wait for answers that do not come.
    shutdown $_->{socket}, 2 for values %session;
    look->run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'worker'");
}, server => $primary;

recipe 'After a failover' => sub {
    my $standby = replica($primary);
    my ($one, $other) = sessions(2);
    $_->run('\set payment 4711') for $one, $other;
    block(1, $one);
    my $gate = gate();
    start_block(2, $one);
    $gate->inside($one);
    start_block(2, $other);
    waits_for($other, 'payment', 4711);
    $gate->open;
    finished($_) for $one, $other;
    is(worked(), 1, 'it is done once');

    # The primary is lost while a session of it has a lock, and while another is in the middle of
    # the work.
    my $holder = session(server => $primary, database => database())
        ->run("SELECT advisory.lock('payment', 'held')");
    my $after = session(server => $standby, database => database());
    caught_up(look, $standby);
    my $shut = gate();
    $one->run('\set payment 4712');
    start_block(2, $one);
    $shut->inside($one);
    $primary->ctl('stop', '-m', 'immediate');
    broken($one);
    $after->value('SELECT pg_promote()');
    $after->shows("SELECT * FROM advisory.holders('payment', 'held')", [],
        'the new primary has none of the locks of the old one');

    my $new = Psql->new(server => $standby, database => database());
    for my $payment (4711, 4712) {
        $new->run("\\set payment $payment");
        block(2, $new);
    }
    $after->shows('SELECT payment FROM payment_done ORDER BY payment', [ 4711, 4712 ],
        'what was not finished is done there, what was is not done again');
    $after->shows('SELECT count(*) FROM worked', 2, 'each of them once');
    $new->quit;
}, server => $primary;

all_recipes_checked();
done_testing();
