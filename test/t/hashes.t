#!/usr/bin/env perl
# The hashes by which a session finds its names, keys and locks: no two of many similar names have
# the same one for any secrets, however a text is divided into namespace and name, and keys are not
# taken for others, with another role or mode. SQL cannot show that: what has equal hashes is only
# found more slowly.
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
# is before and after the border, or in bytes that are zero; and keys that differ by a little, in
# the upper half, or by the number beside them. How many pairs are equal, of how many names; how
# many hashes the fullest of 4096 buckets has; and the same of keys.
my $program = <<'CPP';
#include "base/pg.h"
#include "base/hash.h"

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
	size_t		equal = 0, count = 0, fullest = 0, equal_keys = 0, fullest_keys = 0;
	std::set<std::pair<int64, uint32>> keys;
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
	for (int64 i = 0; i < 1000; i++)
		for (uint32 besides : {0, 1, 2, 10})
			for (int64 key : {i, -1 - i, i << 32, i << 12, i << 32 | (i ^ besides), i - besides})
				keys.emplace(key, besides);
	for (int round = 0; round < 20; round++)
	{
		std::vector<uint64> hashes;
		std::vector<uint32> key_hashes;
		std::vector<size_t> buckets(4096), key_buckets(4096);

		for (uint64 *secret = reinterpret_cast<uint64 *>(&advisory::hash_secrets);
			 secret != reinterpret_cast<uint64 *>(&advisory::hash_secrets + 1); secret++)
			*secret = random();
		advisory::hash_secrets.factor |= 1;
		for (const auto &[role, ns, name] : names)
			hashes.push_back(advisory::hash_of_texts(role, ns, name));
		std::sort(hashes.begin(), hashes.end());
		for (size_t i = 0; i < hashes.size(); i++)
		{
			equal += i > 0 && hashes[i] == hashes[i - 1];
			fullest = std::max(fullest, ++buckets[hashes[i] >> 52]);
		}
		count = hashes.size();
		for (const auto &[key, besides] : keys)
			key_hashes.push_back(advisory::hash_of_key(key, besides));
		std::sort(key_hashes.begin(), key_hashes.end());
		for (size_t i = 0; i < key_hashes.size(); i++)
		{
			equal_keys += i > 0 && key_hashes[i] == key_hashes[i - 1];
			fullest_keys = std::max(fullest_keys, ++key_buckets[key_hashes[i] & 4095]);
		}
	}
	std::printf("%zu %zu %zu %zu %zu\n", equal, count, fullest, equal_keys, fullest_keys);
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
my ($equal, $count, $fullest, $equal_keys, $fullest_keys) = split ' ', qx{'$directory/hash'};
cmp_ok($count, '>', 10_000, 'of many similar names');
is($equal, 0, 'no two have the same hash, for any of the secrets');
cmp_ok($fullest, '<', 40, 'and they are in different buckets');
cmp_ok($equal_keys,   '<', 20, 'of 20 times as many keys only as many are equal as by chance');
cmp_ok($fullest_keys, '<', 40, '... and they are in different buckets, too');

done_testing();
