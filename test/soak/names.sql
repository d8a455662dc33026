-- A session remembers names that it has used. So it first uses as many as it remembers.
\if :next = 0
\set many 20000
\set next 1
\else
\set many 10
\endif
\set first random(0, 999999)
SELECT soak.use_names(:first, :many);
