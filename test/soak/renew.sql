-- Each of 20 sessions renews 500 leases by turns.
\set next (:next + 1) % 500
\set n :client_id * 500 + :next
SELECT soak.renew(:n);
