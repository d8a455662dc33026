-- Slots that outlive a session, with what only the extension has. (49_lease_slots: what both
-- editions have.)
\pset format unaligned \pset tuples_only on

-- Without a name the locks of slots, and their queue, are shown by the key of the name.
SELECT n, advisory_internal.unnamed(n, 1, 2, NULL, NULL) FROM unnest('{16379,16380,16381,32384,
        32385,32768,32769,48768,48769}'::int[]) AS n;
--> 16379|1, 2 (objsubid 16379)
--> 16380|4294967298
--> 16381|4294967298
--> 32384|4294967298
--> 32385|1, 2 (objsubid 32385)
--> 32768|1, 2 (objsubid 32768)
--> 32769|4294967298
--> 48768|4294967298
--> 48769|1, 2 (objsubid 48769)
