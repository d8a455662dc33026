-- The lock table.

-- The server's own formula for what surely fits.  How much more does before 19 cannot be seen.
CREATE OR REPLACE VIEW advisory.pressure AS
    SELECT CASE WHEN percent >= 75 THEN 'critical'
                WHEN percent >= 50 THEN 'warning'
                ELSE 'ok' END AS status,
           CASE WHEN fixed > 0 THEN percent END AS percent_used,
           fixed - locks AS headroom,
           locks AS locks_used,
           fixed AS locks_estimated,
           guaranteed AS locks_guaranteed,
           percent AS percent_of_guaranteed,
           holders AS holders_used,
           2 * guaranteed AS holders_guaranteed,
           greatest(per_process,
                    CASE WHEN percent >= 50 THEN ceil(percent * per_process / 50) + 1 END)::integer
               AS recommended_max_locks_per_transaction,
           fixed IS NOT NULL AS exact,
           2 * fixed AS holders_estimated
    FROM (SELECT count(DISTINCT tag) AS locks,
                 count(DISTINCT (tag, pid, virtualtransaction)) AS holders
          FROM pg_locks,
               LATERAL (SELECT (locktype, database, relation, page, tuple, virtualxid,
                                transactionid, classid, objid, objsubid)::text) AS t (tag)
          WHERE NOT fastpath AND mode <> 'SIReadLock') AS used,
         -- Where there is no autovacuum_worker_slots, before 18, there are so many workers.
         (SELECT current_setting('max_locks_per_transaction')::bigint AS per_process,
                 sum(coalesce(current_setting(s, true),
                              current_setting('autovacuum_max_workers'))::bigint)::bigint
                     + 1 + current_setting('server_version_num')::integer / 170000 AS processes
          FROM unnest('{max_connections,max_prepared_transactions,max_worker_processes,'
                      'max_wal_senders,autovacuum_worker_slots}'::text[]) AS s) AS p,
         LATERAL (SELECT per_process * processes) AS g (guaranteed),
         LATERAL (SELECT CASE WHEN current_setting('server_version_num')::integer >= 190000
                              THEN guaranteed END,
                         round(100.0 * greatest(locks, holders / 2.0) / guaranteed, 2)
                             ::double precision) AS f (fixed, percent);
COMMENT ON VIEW advisory.pressure IS 'how full the server''s lock table is; one row';
