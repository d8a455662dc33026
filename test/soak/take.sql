-- A session of those that wait for each other. It holds what it gets for a second.
\set n :client_id % :places
SELECT soak.take(:kind, :n) AS got \gset
\sleep 1 s
CALL soak.give(:kind, :n, :got);
