# The locks and slots that the workers hold as far as they know, in a file outside the server that
# all of them share.
#
# A worker sets a mark for a lock after the server has granted it, and removes the mark before it
# asks the server to release the lock. So each mark exists for less time than the lock, and two
# conflicting marks prove that the server has granted two conflicting locks.
#
# A mark has one of three layers, by the event that ends it: SESSION and TRANSACTION, which both end
# with the session, and PREPARED, which does not. Marks of the layer TRANSACTION exist only while no
# statement of the worker runs, because any statement can fail, and then the server releases the
# transaction's locks before the worker gets the error.
#
# A process that ends a session from outside must first announce that here (doom). This removes the
# session's marks, and the worker sets no more marks until it has connected again.
package Stress::Model;

use AdvisoryTest;
use Exporter 'import';
use Fcntl qw(:flock :DEFAULT);
use List::Util qw(max min);
use Time::HiRes qw(time);

our @EXPORT_OK = qw(SESSION TRANSACTION PREPARED);

use constant { SESSION => 0, TRANSACTION => 1, PREPARED => 2, LAYERS => 3 };
use constant { NONE => "\0", DOOMED => 'd' };

# The file: the state of the run, the first violation's text, a record for each worker, a record of
# three bytes a worker for each resource, a record for each lease, the greatest token, a token for
# each fence, and the last operations of each worker.
use constant { STATE_AT => 0, VIOLATION_AT => 16, VIOLATION_BYTES => 3000, WORKERS_AT => 4096,
    WORKER_BYTES => 32, LEASE_BYTES => 24, NUMBER_BYTES => 8,
    OPERATIONS => 300, OPERATION_BYTES => 220 };

# Creates a file, or with path => … opens an existing one. Each process opens the file itself,
# because its locks belong to the open file.
sub new ($class, %how) {
    my $self = bless {%how}, $class;
    my $size = WORKERS_AT;
    my $part = sub ($bytes) { $size += $bytes; return $size - $bytes };
    $self->{worker_at}    = $part->($self->{workers} * WORKER_BYTES);
    $self->{resource_at}  = $part->($self->{resources} * $self->{workers} * LAYERS);
    $self->{lease_at}     = $part->($self->{leases} * LEASE_BYTES);
    $self->{token_at}     = $part->(NUMBER_BYTES);
    $self->{fence_at}     = $part->($self->{resources} * NUMBER_BYTES);
    $self->{operation_at} = $part->($self->{workers} * OPERATIONS * OPERATION_BYTES);
    sysopen $self->{file}, $self->{path}, O_RDWR | O_CREAT or die "$self->{path}: $!\n";
    if (-s $self->{file} != $size) {
        truncate $self->{file}, 0;
        truncate $self->{file}, $size or die "$self->{path}: $!\n";
    }
    return $self;
}

# The same file, for another process.
sub reopened ($self) {
    my %same = map { $_ => $self->{$_} } qw(path workers resources leases);
    return Stress::Model->new(%same, parent => getppid);
}

sub _read ($self, $at, $bytes) {
    sysseek $self->{file}, $at, 0;
    sysread $self->{file}, my ($text), $bytes;
    return $text;
}

sub _write ($self, $at, $text) {
    sysseek $self->{file}, $at, 0;
    syswrite $self->{file}, $text;
    return;
}

sub _number ($self, $at) {
    return unpack 'q', $self->_read($at, NUMBER_BYTES);
}

# Runs the code while no other process looks at the file or changes it.
sub _alone ($self, $code) {
    flock $self->{file}, LOCK_EX;
    my $result = $code->();
    flock $self->{file}, LOCK_UN;
    return $result;
}

# ---- The run -------------------------------------------------------------------------------------

# go, pause or end. It has ended, too, if the process that started this one is gone.
sub state ($self) {
    return 'end' if $self->{parent} && getppid != $self->{parent};
    my ($state) = $self->_read(STATE_AT, 8) =~ /^(\w+)/;
    return $state // 'go';
}

sub set_state ($self, $state) { $self->_write(STATE_AT, pack 'a8', $state); return }

# The first violation of the run, if there was one.
sub violation ($self) {
    my ($text) = $self->_read(VIOLATION_AT, VIOLATION_BYTES) =~ /^([^\0]*)/;
    return length $text ? $text : undef
}

# Notes a violation, ends the run, and dies.
sub violate ($self, $text) {
    utf8::encode($text);
    $self->_alone(sub {
        $self->_write(VIOLATION_AT, pack 'a' . VIOLATION_BYTES, substr $text, 0,
            VIOLATION_BYTES - 1) unless defined $self->violation;
        $self->set_state('end');
    });
    die "violated: $text\n";
}

# ---- Workers -------------------------------------------------------------------------------------

sub _worker_at ($self, $worker) { return $self->{worker_at} + $worker * WORKER_BYTES }

# A worker has connected. False if the run does not go on, when it must not keep the connection.
sub connected ($self, $worker, $pid) {
    return $self->_alone(sub {
        return 0 if $self->state ne 'go';
        $self->_write($self->_worker_at($worker), pack 'Naxxxd', $pid, NONE, time);
        return 1;
    });
}

# A worker has no connection any more.
sub disconnected ($self, $worker) {
    $self->_write($self->_worker_at($worker), pack 'N', 0);
    return
}

# A worker is alive, and now begins, or has ended, something that can take long.
sub touch ($self, $worker) {
    $self->_write($self->_worker_at($worker) + 8, pack 'd', time);
    return
}

sub last_touch ($self, $worker) {
    return unpack 'd', $self->_read($self->_worker_at($worker) + 8, 8)
}

sub is_doomed ($self, $worker) {
    return $self->_read($self->_worker_at($worker) + 4, 1) eq DOOMED
}

# The process of the worker's session; 0 if it has none.
sub pid ($self, $worker) { return unpack 'N', $self->_read($self->_worker_at($worker), 4) }

# The sessions of these workers are about to be ended, and with pause => 1 nobody is to connect.
# Returns their processes.
sub doom ($self, $workers, %how) {
    return @{ $self->_alone(sub {
        $self->set_state('pause') if $how{pause} && $self->state eq 'go';
        for my $worker (@$workers) {
            $self->_write($self->_worker_at($worker) + 4, DOOMED);
            for my $resource (0 .. $self->{resources} - 1) {
                $self->_write($self->_mark_at($resource, $_, $worker), NONE)
                    for SESSION, TRANSACTION;
            }
        }
        return [ map { $self->pid($_) } @$workers ];
    }) };
}

# The last operations of each worker, which help to find the reason of a violation.
sub note_operation ($self, $worker, $text) {
    utf8::encode($text);
    my $place = $self->{noted}++ % OPERATIONS;
    $self->_write($self->{operation_at} + ($worker * OPERATIONS + $place) * OPERATION_BYTES,
        pack 'A' . OPERATION_BYTES, sprintf '%.6f %s', time, substr $text =~ s/\s+/ /gr, 0,
        OPERATION_BYTES - 20);
    return;
}

sub operations ($self, $worker) {
    my $all = $self->_read($self->{operation_at} + $worker * OPERATIONS * OPERATION_BYTES,
        OPERATIONS * OPERATION_BYTES);
    my @texts = sort grep { /\S/ } map { s/[\0 ]+$//r } unpack '(a' . OPERATION_BYTES . ')*', $all;
    return @texts;
}

# ---- Marks ---------------------------------------------------------------------------------------

sub _mark_at ($self, $resource, $layer, $worker) {
    return $self->{resource_at} + ($resource * LAYERS + $layer) * $self->{workers} + $worker
}

# Sets marks of a worker: each is [resource, layer, 'X', 'S' or '' for none]. Returns a text if one
# of them conflicts with somebody else's.
sub mark ($self, $worker, @marks) {
    return $self->_alone(sub {
        my $is_doomed = $self->is_doomed($worker);
        my $conflict;
        for my $mark (@marks) {
            my ($resource, $layer, $mode) = @$mark;
            next if $is_doomed && $layer != PREPARED;
            if ($mode ne '') {
                my $others =
                    $self->_read($self->_mark_at($resource, 0, 0), LAYERS * $self->{workers});
                # Its own prepared transaction is somebody else.
                substr($others, $_ * $self->{workers} + $worker, 1) = NONE for SESSION, TRANSACTION,
                    $layer == PREPARED ? PREPARED : ();
                if ($others =~ ($mode eq 'X' ? qr/[XS]/ : qr/X/)) {
                    $conflict //=
                        "worker $worker has resource $resource in mode $mode while worker "
                            . $-[0] % $self->{workers}
                        . ' has it in mode ' . substr $others, $-[0], 1;
                }
            }
            $self->_write($self->_mark_at($resource, $layer, $worker), $mode || NONE);
        }
        return $conflict;
    });
}

# The modes in which prepared transactions hold a resource, such as 'X' or 'SS'.
sub prepared_marks ($self, $resource) {
    return $self->_read($self->_mark_at($resource, PREPARED, 0), $self->{workers}) =~ tr/\0//dr;
}

# ---- Leases --------------------------------------------------------------------------------------

# Of each lease the latest grant is kept: its token, and the microseconds from which and to which it
# is certainly held. Grants are in the order of their tokens, and each has to begin after the one
# before it has ended.

sub _lease_at ($self, $lease) { return $self->{lease_at} + $lease * LEASE_BYTES }

# (token, from, to) of the latest grant.
sub lease ($self, $lease) {
    return unpack 'q3', $self->_read($self->_lease_at($lease), LEASE_BYTES)
}

# A grant, or a renewal, that is committed. Returns a text if it overlaps another owner's time.
sub lease_held ($self, $lease, $token, $from, $to) {
    return $self->_alone(sub {
        my ($latest, $latest_from, $latest_to) = $self->lease($lease);
        if ($token < $latest) {
            return $to > $latest_from
                ? "lease $lease: $token is held until $to, but $latest was granted at $latest_from"
                : undef;
        }
        return "lease $lease: $token was granted at $from, but $latest is held until $latest_to"
            if $token > $latest && $from < $latest_to;
        $self->_write($self->_lease_at($lease), pack 'q3', $token, $token == $latest ? $latest_from
            : $from, $to);
        return;
    });
}

# Its owner is about to end it, or to renew it so that it may end as early as this.
sub lease_may_end ($self, $lease, $token, $at) {
    $self->_alone(sub {
        my ($latest, $from, $to) = $self->lease($lease);
        $self->_write($self->_lease_at($lease), pack 'q3', $token, $from, min($to, $at))
            if $token == $latest;
    });
    return;
}

# ---- Tokens --------------------------------------------------------------------------------------

# The greatest token that anybody was given.
sub greatest_token ($self) { return $self->_number($self->{token_at}) }

sub token_given ($self, $token) { return $self->_raise($self->{token_at}, $token) }

# The greatest token of a resource that was checked, in a transaction that is committed.
sub fence ($self, $resource) { return $self->_number($self->_fence_at($resource)) }

sub fence_checked ($self, $resource, $token) {
    return $self->_raise($self->_fence_at($resource), $token);
}

sub _fence_at ($self, $resource) { return $self->{fence_at} + $resource * NUMBER_BYTES }

# A number there is now at least this.
sub _raise ($self, $at, $number) {
    $self->_alone(sub { $self->_write($at, pack 'q', max($number, $self->_number($at))) });
    return;
}

1;
