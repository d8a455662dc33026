#!/usr/bin/env perl
# Jobs of the real pg_cron that run their command by advisory.run(). pg_cron starts jobs at full
# minutes, so all of this is scheduled for one minute and looked at in the next.
use AdvisoryTest;
use FindBin;
use List::Util qw(sum);
use Page;
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

my $WORK = q{SELECT work('JOB', 'LOCK')};
my @jobs = (
    # lock, how many jobs, command, more arguments
    [ 'pair',     2, $WORK ],
    [ 'strict',   2, $WORK, q{, if_busy => 'error'} ],
    [ 'slots',    3, $WORK, ', slots => 2' ],
    [ 'steps',    2, q{CALL steps('JOB', 'LOCK')} ],
    [ 'deferred', 2, q{INSERT INTO later VALUES ('JOB', 'LOCK')} ],
    [ 'once',     2, $WORK, q{, timeout => '30 s', once_per => '1 hour'} ],
    [ 'waits',    2, $WORK, q{, timeout => '30 s'} ],
    [ 'fails',    1, 'SELECT 1/0' ],
    [ 'killed',   1, 'SELECT pg_sleep(600)' ],
);
my $seconds = $look->value('SELECT extract(second FROM clock_timestamp())::float8');
sleep 61 - $seconds if $seconds > 55;    # not across the minute
for my $job (@jobs) {
    my ($lock, $many, $command, $more) = (@$job, '');
    for my $name (map { "$lock $_" } 1 .. $many) {
        my $for_it = $command =~ s/JOB/$name/r =~ s/LOCK/$lock/r;
        $look->value('SELECT cron.schedule(?, ?, ?)', $name, '* * * * *',
            "CALL advisory.run('cron', '$lock', \$\$$for_it\$\$$more)");
    }
}
my $number = sum(map { $_->[1] } @jobs);

# What doc/jobs.md shows, but in the next minute, as all others.
my ($schedule, $details) = map { $_->{text} } grep { ($_->{run_by} // '') =~ /cron[.]t$/ }
    Page->new("$FindBin::Bin/../../doc/jobs.md")->others;
$look->run('CREATE TABLE made (at timestamptz)', q(CREATE PROCEDURE run_invoices() LANGUAGE sql
    AS 'INSERT INTO made VALUES (now())'), $schedule =~ s/'0 3 /'* * /r);
$number++;

# Once: after the first start they are unscheduled, and go on to their ends.
wait_until('pg_cron has started all jobs', sub {
    $look->value(q{SELECT count(*) FROM cron.job_run_details WHERE status <> 'starting'}) >= $number
}, 90);
# Not by deactivating them, which ends those that run.
$look->run(q{SELECT cron.alter_job(jobid, schedule => '0 0 1 1 *') FROM cron.job});
pass("pg_cron has started $number jobs");

# One is killed while it runs.
my $IS_LOCKED = q{SELECT advisory.is_locked('cron', 'killed')};
$look->wait_until('the job to be killed has its lock', $IS_LOCKED);
$look->shows(q{SELECT advisory.terminate_holder('cron', 'killed', pid)
    FROM advisory.holders('cron', 'killed')}, 1, 'a job is killed');
$look->wait_until('its lock is free', "SELECT NOT ($IS_LOCKED)");

wait_until('all jobs are done', sub {
    $look->value(q{SELECT count(*) FROM advisory.locks WHERE namespace = 'cron'}) == 0
        && $look->value(
            q{SELECT count(*) FROM cron.job_run_details WHERE status IN ('starting', 'running')
                AND jobid <> (SELECT jobid FROM cron.job WHERE jobname = 'killed 1')}) == 0
}, ALL_DONE_S);

# Overlaps of two jobs' work under one lock, by the work's own record.
my $OVERLAPS = q{SELECT count(*) FROM work a JOIN work b ON a.lock = b.lock
        AND split_part(a.job, ' step', 1) < split_part(b.job, ' step', 1)
    AND a.began < b.ended AND b.began < a.ended WHERE a.lock = ?};
$look->shows($OVERLAPS, 0, "$_: two jobs never overlap", $_)
    for qw(pair strict steps deferred waits);
$look->shows($OVERLAPS, 1, 'slots: two run at the same time', 'slots');
for my $case (
    # lock, jobs that worked, pieces of work, how pg_cron's runs ended
    [ 'pair',     1, 1, 'succeeded,succeeded',
        'one has run, and the one that skips has succeeded' ],
    [ 'strict',   1, 1, 'failed,succeeded',    'a run that finds the lock taken has failed' ],
    [ 'slots',    2, 2, 'succeeded,succeeded,succeeded', 'exactly two have run' ],
    [ 'steps',    1, 2, 'succeeded,succeeded',
        'a command that commits does all its steps, and nobody comes in between' ],
    [ 'deferred', 1, 1, 'succeeded,succeeded',
        'what is deferred to the commit runs under the lock' ],
    [ 'waits',    2, 2, 'succeeded,succeeded', 'with a timeout the second runs after the first' ],
    [ 'once',     1, 1, 'succeeded,succeeded',
        'the second one waits for the first, and does not run in the same hour' ],
    [ 'fails',    0, 0, 'failed',              'a failing command is recorded' ],
) {
    my ($lock, $jobs, $pieces, $ends, $what) = @$case;
    $look->shows(q{SELECT count(DISTINCT split_part(job, ' step', 1)), count(*),
        (SELECT string_agg(status, ',' ORDER BY status) FROM cron.job_run_details
            JOIN cron.job USING (jobid) WHERE jobname LIKE $1 || ' %')
        FROM work WHERE lock = $1}, "$jobs|$pieces|$ends", "$lock: $what", $lock);
}
$look->shows(q{SELECT skipped FROM advisory.stats WHERE namespace = 'cron' AND name = 'pair'}, 1,
    'pair: a run that skips is counted');
for my $case ([ 'strict', qr{could not obtain advisory lock "cron/strict"} ],
    [ 'fails', qr/division by zero/ ]) {
    my ($lock, $why) = @$case;
    like($look->value(q{SELECT return_message FROM cron.job_run_details JOIN cron.job USING (jobid)
        WHERE jobname LIKE ? AND status = 'failed'}, "$lock %"), $why, "$lock: pg_cron knows why");
}
$look->shows($details =~ s/start_time/start_time IS NOT NULL/r, '1|succeeded|CALL',
    "the page's job has run, and the page says where to look");
$look->shows(q{SELECT count(*), (SELECT state FROM advisory.claims WHERE name = 'nightly')
    FROM made}, '1|done', '... once in its window');
$look->shows(q{SELECT count(*) FROM advisory.locks WHERE kind IN ('lock', 'semaphore', 'queue')
        AND namespace IS NOT NULL}, 0, 'nothing is left locked');
done_testing();
