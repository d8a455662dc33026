-- Takes a lock and keeps it until the DBA has seen enough.
SELECT advisory.lock('billing', 'invoices:2026-12') \g /dev/null
CALL meet('held', 'holder', 1);
CALL meet('seen enough', 'holder', 2);
SELECT advisory.unlock('billing', 'invoices:2026-12') \g /dev/null
