-- The same as take.sql with a built-in lock, which nobody else wants, to compare the memory of the
-- sessions.
SELECT soak.take('plain', :client_id);
CALL soak.give('plain', :client_id, 0);
