# Common code of the integration tests: the places of the programs that they use, and files.
package Programs;

use AdvisoryTest;
use Cwd qw(abs_path);
use Exporter 'import';
use Fcntl qw(LOCK_EX LOCK_NB);
use File::Basename qw(dirname);
use File::Copy qw(copy);
use File::Path qw(make_path);

our @EXPORT = qw(examples calls client_node node_modules python pgbouncer pgpool free_port as_user
    slurp spew);

my $repository = abs_path(dirname(__FILE__) . '/../../..');

# examples('node/worker.js'): the path of an example.
sub examples { return "$repository/examples/$_[0]" }

# The list of calls that all drivers make.
sub calls { return "$repository/test/t/lib/calls.tsv" }

# The same for the package for Node, in which the examples find it as 'advisory-ext'.
sub client_node { return "$repository/clients/node/$_[0]" }

sub slurp ($name, $layer = ':encoding(UTF-8)') {
    open my $file, "<$layer", $name or die "$name: $!\n";
    local $/ = undef;
    return <$file> // '';
}

sub spew ($name, $text) {
    open my $file, '>:encoding(UTF-8)', $name or die "$name: $!\n";
    print {$file} $text;
    close $file or die "$name: $!\n";
    return $name;
}

# A directory with the Node modules that a package.json names (by default the examples'), by npm
# where it is there; those of the examples else from Debian; nothing if there is neither. They are
# for NODE_PATH.
my %modules;
sub node_modules ($package = examples('migration/node/package.json')) {
    my $of_examples = examples('migration/node/package.json');
    return $modules{$package} if defined $modules{$package};
    system('node -e 0 >/dev/null 2>&1') == 0 or return $modules{$package} = '';
    # The first test that needs them installs them for all, beside the server's files, which end
    # with the run.
    my $dir = "$ENV{ADVISORY_EXT_STAGE}/node/" . $package =~ tr{/}{_}r;
    make_path($dir, { mode => oct 755 });
    open my $lock, '>', "$dir/lock" or die "$dir/lock: $!\n";
    flock $lock, LOCK_EX;
    if (!-e "$dir/npm.log") {
        copy($package, "$dir/package.json") or die "cannot copy $package: $!\n";
        # (What a module needs beside itself, its peers, is named there, too, where it is used.)
        system("cd '$dir' && npm install --no-package-lock --no-audit --no-fund --loglevel=error "
            . "--legacy-peer-deps >npm.log 2>&1 && touch complete");
    }
    return $modules{$package} = "$dir/node_modules" if -e "$dir/complete";
    return $modules{$package} = $package eq $of_examples && -e '/usr/share/nodejs/pg'
        ? '/usr/share/nodejs' : '';
}

# Debian's Python, if it has all of these modules; else nothing.
sub python {
    my $imports = join '; ', map { "import $_" } @_;
    return system("/usr/bin/python3 -c '$imports' >/dev/null 2>&1") == 0
        ? '/usr/bin/python3' : undef;
}

sub pgbouncer { return daemon('pgbouncer') }
sub pgpool { return daemon('pgpool') }

# A program that may be where only root's PATH leads.
sub daemon ($name) {
    return (grep { -x } map { "$_/$name" } split(/:/, $ENV{PATH}), '/usr/sbin')[0];
}

# A port of loopback that is free at the moment, below those that the system gives to outgoing
# connections: a server that starts again finds it free again. Each is given once, also by tests
# that run beside this one, as long as this one runs.
my @given;
sub free_port {
    require IO::Socket::INET;
    make_path("$ENV{ADVISORY_EXT_STAGE}/ports");
    for (1 .. 100) {
        my $port = 20000 + int rand 12000;
        open my $given, '>', "$ENV{ADVISORY_EXT_STAGE}/ports/$port"
            or die "cannot note port $port: $!\n";
        next unless flock $given, LOCK_EX | LOCK_NB;
        push @given, $given;
        return $port
            if IO::Socket::INET->new(
                LocalAddr => '127.0.0.1', LocalPort => $port, Proto => 'tcp', Listen => 1);
    }
    die "no free port: $!\n";
}

# The start of a command line that runs a program as the server's owner, since some refuse to run as
# root.
sub as_user {
    my $user = $ENV{ADVISORY_EXT_SERVER_USER} or return;
    my (undef, undef, $uid, $gid) = getpwnam $user or die "there is no user $user\n";
    return ('setpriv', '--reuid', $uid, '--regid', $gid, '--clear-groups', '--');
}

1;
