-- A session that does not use the extension, to compare its memory.
SELECT 1;
