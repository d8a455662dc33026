           -- What a lock is known as.  uses: labels and programs.  is_anybodys: some program uses
           -- this small number, but this database has no table of it (only_with).
           CASE WHEN cardinality(uses) > 0 THEN uses
                WHEN is_anybodys THEN ARRAY['several programs use it'] END
