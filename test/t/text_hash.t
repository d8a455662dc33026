#!/usr/bin/env perl
# The hash by which a session finds its names: no two of many similar names have the same one for
# any secrets, however a text is divided into namespace and name. SQL cannot show that: names with
# equal hashes are only found more slowly.
# Runs once: no server is asked.
use strict;
use warnings;
use File::Temp qw(tempdir);
use FindBin;
use Test::More;

my $repository = "$FindBin::Bin/../..";
my $pg_config = $ENV{PG_CONFIG} // 'pg_config';
my $directory = tempdir(CLEANUP => 1);

# For 20 choices of the secrets: names that differ in one bit, in the role, in their order, in what
# is before and after the border, or in bytes that are zero. How many pairs are equal, of how many
# names; and how many hashes the fullest of 4096 buckets has.
my $program = <<'CPP';
#include "base/pg.h"
#include "base/texthash.h"

#include <algorithm>
#include <cstdio>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

int
main()
{
	std::mt19937_64 random(42);
	size_t		equal = 0, count = 0, fullest = 0;
	std::set<std::tuple<uint32, std::string, std::string>> names;
	auto		add_divided = [&](const std::string &text) {
		for (size_t i = 0; i <= text.size(); i++)
			for (uint32 role : {10u, 11u, 1u << 16, 1u << 31})
			{
				names.emplace(role, text.substr(0, i), text.substr(i));
				names.emplace(role, text.substr(i), text.substr(0, i));
			}
	};

	for (size_t length = 0; length <= 40; length++)
	{
		add_divided(std::string(length, '\0'));
		add_divided(std::string(length, 'x'));
		add_divided(std::string("billing/invoice:42 and whatever comes next").substr(0, length));
	}
	for (size_t bit = 0; bit < 8 * 256; bit += 5)
	{
		std::string text(256, 'y');

		text[bit / 8] ^= 1 << bit % 8;
		names.emplace(10, text, "z");
		names.emplace(10, "z", text);
	}
	for (int round = 0; round < 20; round++)
	{
		std::vector<uint64> hashes;
		std::vector<size_t> buckets(4096);

		for (uint64 *secret = reinterpret_cast<uint64 *>(&advisory::text_secrets);
			 secret != reinterpret_cast<uint64 *>(&advisory::text_secrets + 1); secret++)
			*secret = random();
		advisory::text_secrets.factor |= 1;
		for (const auto &[role, ns, name] : names)
			hashes.push_back(advisory::hash_of_texts(role, ns, name));
		std::sort(hashes.begin(), hashes.end());
		for (size_t i = 0; i < hashes.size(); i++)
		{
			equal += i > 0 && hashes[i] == hashes[i - 1];
			fullest = std::max(fullest, ++buckets[hashes[i] >> 52]);
		}
		count = hashes.size();
	}
	std::printf("%zu %zu %zu\n", equal, count, fullest);
}
CPP

open my $file, '>', "$directory/hash.cpp" or die "hash.cpp: $!\n";
print {$file} $program;
close $file or die "hash.cpp: $!\n";
chomp(my $includes = qx{'$pg_config' --includedir-server});
my $compiler = $ENV{CXX} // 'g++';
is(system("$compiler -std=c++17 -O1 -I'$repository/src' -isystem '$includes' "
            . "-o '$directory/hash' '$directory/hash.cpp' 2>'$directory/said'"), 0,
    'it is compiled') or diag qx{cat '$directory/said'};
my ($equal, $count, $fullest) = split ' ', qx{'$directory/hash'};
cmp_ok($count, '>', 10_000, 'of many similar names');
is($equal, 0, 'no two have the same hash, for any of the secrets');
cmp_ok($fullest, '<', 40, 'and they are in different buckets');

done_testing();
