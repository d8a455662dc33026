#!/usr/bin/env perl
# Ruby: ActiveRecord's query cache answers a second try_lock() with what the first one returned, and
# the function of doc/drivers.md asks the server.
use AdvisoryTest;
use FindBin;
use Launch;
use Page;
use Programs;

system(q(ruby -e 'require "active_record"; require "pg"' >/dev/null 2>&1)) == 0
    or plan skip_all => 'Ruby with ActiveRecord and its driver for PostgreSQL is not here';

my $page = Page->new("$FindBin::Bin/../../doc/drivers.md");
my @shown = grep { $_->{language} eq 'ruby' && $_->{text} =~ /ActiveRecord/ } $page->others;
is(scalar @shown, 1, 'drivers.md has one program for ActiveRecord');

create_database();
session()->run('CREATE TABLE item (id int, n int)', 'INSERT INTO item VALUES (1, 1)');
my $program = spew(scratch() . '/program.rb', <<"RUBY" . $shown[0]{text} . <<'RUBY');
require 'active_record'
require 'pg'
ActiveRecord::Base.establish_connection(
  adapter: 'postgresql', host: ENV['PGHOST'], port: ENV['PGPORT'], username: ENV['PGUSER'],
  database: ENV['PGDATABASE'])
RUBY
here = ActiveRecord::Base.connection
other = PG.connect(dbname: ENV['PGDATABASE'])
take = "SELECT advisory.try_lock('job', 'nightly')"
give = "SELECT advisory.unlock('job', 'nightly')"
read = 'SELECT n FROM item WHERE id = 1'
ActiveRecord::Base.cache do
  here.select_value(take)
  here.select_value(give)
  other.exec(take)
  puts "cached: #{here.select_value(take)}"
  puts "uncached: #{here.uncached { here.select_value(take) }}"
  puts "execute: #{here.execute(take).getvalue(0, 0)}"
  puts "exec_query: #{here.exec_query(take).rows[0][0]}"
  puts "taken: #{with_try_lock('job', 'nightly') { puts 'never' }}"
  other.exec(give)
  puts "read: #{here.select_value(read)}"
  other.exec('UPDATE item SET n = 2')
  puts "cached read: #{here.select_value(read)}"
  2.times do
    mine = with_try_lock('job', 'nightly') do
      puts "read under the lock: #{here.select_value(read)}"
      puts "held: #{!other.exec(take).getvalue(0, 0).eql?('t')}"
    end
    puts "mine: #{mine}"
  end
  other.exec(take)
  puts "taken again: #{with_try_lock('job', 'nightly') { puts 'never' }}"
end
RUBY
launch('ruby', $program)->ends(0, <<'SAID', 'what ActiveRecord says');
cached: true
uncached: false
execute: false
exec_query: false
taken: false
read: 1
cached read: 1
read under the lock: 2
held: true
mine: true
read under the lock: 2
held: true
mine: true
taken again: false
SAID
done_testing();
