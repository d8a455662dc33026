#!/usr/bin/env perl
# Jobs of the real pg_cron that run their command by advisory.run(). pg_cron starts jobs at full
# minutes, so all of this is scheduled for one minute and looked at in the next.
use FindBin;
use lib "$FindBin::Bin/../t/lib", "$FindBin::Bin/lib";
use AdvisoryTest;
use Time::HiRes qw(sleep time);

# How long a job works, so that those of one minute would overlap.
use constant { WORK_S => 2, ALL_DONE_S => 40 };

my $share = `"$ENV{PG_BINDIR}/pg_config" --sharedir 2>/dev/null`;
chomp $share;
-e "$share/extension/pg_cron.control" or plan skip_all => 'pg_cron is not installed';

my $server = own_server('shared_preload_libraries=pg_cron', 'cron.database_name=postgres',
    'cron.use_background_workers=on',
    'cron.max_running_jobs=25', 'max_worker_processes=40', 'cron.log_run=on');
my $look = session(server => $server)->run('CREATE EXTENSION advisory_ext')
    ->run('CREATE EXTENSION pg_cron');
$look->run(<<'SQL');
CREATE TABLE work (job text, lock text, began timestamptz, ended timestamptz);
CREATE FUNCTION work(job text, lock text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    began timestamptz := clock_timestamp();
BEGIN
    PERFORM pg_sleep(2);
    INSERT INTO work VALUES (job, lock, began, clock_timestamp());
END $$;
CREATE PROCEDURE steps(job text, lock text) LANGUAGE plpgsql AS $$
BEGIN
    FOR step IN 1..2 LOOP
        PERFORM work(job || ' step ' || step, lock);
        COMMIT;
    END LOOP;
END $$;
CREATE TABLE later (job text, lock text);
CREATE FUNCTION later() RETURNS trigger LANGUAGE plpgsql
AS $$ BEGIN PERFORM work(NEW.job || ' deferred', NEW.lock); RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER later AFTER INSERT
ON later DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION later();
SQL

# job => [lock, command, more arguments]
my %jobs = (
    (map { ("pair $_" => ['pair', q{SELECT work('JOB', 'LOCK')}, '']) } 1, 2),
    (map {
        ("strict $_" => ['strict', q{SELECT work('JOB', 'LOCK')}, q{, if_busy => 'error'}])
    } 1, 2),
    (map { ("slots $_" => ['slots', q{SELECT work('JOB', 'LOCK')}, ', slots => 2']) } 1 .. 3),
    (map { ("steps $_" => ['steps', q{CALL steps('JOB', 'LOCK')}, '']) } 1, 2),
    (map { ("deferred $_" => ['deferred', q{INSERT INTO later VALUES ('JOB', 'LOCK')}, '']) } 1, 2),
    (map {
        ("once $_" => [
            'once', q{SELECT work('JOB', 'LOCK')}, q{, timeout => '30 s', once_per => '1 hour'}])
    } 1, 2),
    'fails' => ['fails', 'SELECT 1/0', ''],
    'killed' => ['killed', 'SELECT pg_sleep(600)', ''],
    'waits 1' => ['waits', q{SELECT work('JOB', 'LOCK')}, q{, timeout => '30 s'}],
    'waits 2' => ['waits', q{SELECT work('JOB', 'LOCK')}, q{, timeout => '30 s'}],
);
my $seconds = $look->value('SELECT extract(second FROM clock_timestamp())::float8');
sleep 61 - $seconds if $seconds > 55;    # not across the minute
for my $job (sort keys %jobs) {
    my ($lock, $command, $more) = @{ $jobs{$job} };
    $command =~ s/JOB/$job/;
    $command =~ s/LOCK/$lock/;
    $look->value('SELECT cron.schedule(?, ?, ?)', $job, '* * * * *',
        "CALL advisory.run('cron', '$lock', \$\$$command\$\$$more)");
}
my $number = keys %jobs;

sub details ($what, $job) {
    return $look->value("SELECT $what FROM cron.job_run_details d JOIN cron.job j USING (jobid)
        WHERE jobname LIKE ?", $job);
}

# Once: after the first start they are unscheduled, and go on to their ends.
wait_until('pg_cron has started all jobs', sub {
    $look->value(
        q{SELECT count(*) FROM cron.job_run_details WHERE status NOT IN ('starting')}) >= $number
}, 90);
# Not by deactivating them, which ends those that run.
$look->run(q{SELECT cron.alter_job(jobid, schedule => '0 0 1 1 *') FROM cron.job});
pass("pg_cron has started $number jobs");

# One is killed while it runs.
wait_until('the job to be killed has its lock',
    sub { $look->value(q{SELECT advisory.is_locked('cron', 'killed')}) });
is($look->value(q{SELECT advisory.terminate_holder('cron', 'killed', pid)
        FROM advisory.holders('cron', 'killed')}), 1, 'a job is killed');
ok(wait_until('its lock is free',
    sub { !$look->value(q{SELECT advisory.is_locked('cron', 'killed')}) }),
    'and its lock is free');

wait_until('all jobs are done', sub {
    $look->value(q{SELECT count(*) FROM advisory.locks WHERE namespace = 'cron'}) == 0
        && $look->value(
            q{SELECT count(*) FROM cron.job_run_details WHERE status IN ('starting', 'running')
                AND jobid <> (SELECT jobid FROM cron.job WHERE jobname = 'killed')}) == 0
}, ALL_DONE_S);

# Overlaps of two jobs' work under one lock, by the work's own record.
my $OVERLAPS = q{SELECT count(*) FROM work a JOIN work b ON a.lock = b.lock
        AND split_part(a.job, ' step', 1) < split_part(b.job, ' step', 1)
    AND a.began < b.ended AND b.began < a.ended WHERE a.lock = ?};
is($look->value($OVERLAPS, $_), 0, "$_: two jobs never overlap")
    for qw(pair strict steps deferred waits);
is($look->value('SELECT count(*) FROM work WHERE lock = ?', 'pair'), 1, 'pair: one has run');
is(details('count(*)', 'pair%'), 2, 'pair: both were started');
is(details(q{count(*) FILTER (WHERE status = 'succeeded')}, 'pair%'), 2,
    'pair: a run that skips has succeeded');
is($look->value(q{SELECT skipped FROM advisory.stats WHERE namespace = 'cron' AND name = 'pair'}),
    1, 'pair: and is counted');
is(details(q{string_agg(status, ',' ORDER BY status)}, 'strict%'), 'failed,succeeded',
    'strict: a run that finds the lock taken has failed');
like(details(q{string_agg(return_message, ',') FILTER (WHERE status = 'failed')}, 'strict%'),
    qr{could not obtain advisory lock "cron/strict"}, 'strict: and pg_cron knows why');
is(details('status', 'fails'), 'failed', 'fails: a failing command is recorded');
like(details('return_message', 'fails'), qr/division by zero/, 'fails: with its error');
is($look->value(q{SELECT count(DISTINCT job) FROM work WHERE lock = 'slots'}), 2,
    'slots: exactly two have run');
is($look->value($OVERLAPS, 'slots'), 1, 'slots: at the same time');
is($look->value(q{SELECT count(*) FROM work WHERE lock = 'steps'}), 2,
    'steps: a command that commits does all its steps');
is($look->value(
    q{SELECT count(DISTINCT split_part(job, ' step', 1)) FROM work WHERE lock = 'steps'}), 1,
    'steps: and nobody comes in between');
is($look->value(q{SELECT count(*) FROM work WHERE lock = 'deferred'}), 1,
    'deferred: what is deferred to the commit runs under the lock');
is($look->value(q{SELECT count(*) FROM work WHERE lock = 'waits'}), 2,
    'waits: with a timeout the second runs after the first');
is($look->value(q{SELECT count(*) FROM work WHERE lock = 'once'}), 1,
    'once: the second one waits for the first, and does not run in the same hour');
is(details(q{count(*) FILTER (WHERE status = 'succeeded')}, 'once%'), 2,
    'once: both have succeeded');
is($look->value(q{SELECT count(*) FROM advisory.locks WHERE kind IN ('lock', 'semaphore', 'queue')
        AND namespace IS NOT NULL}), 0, 'nothing is left locked');
done_testing();
