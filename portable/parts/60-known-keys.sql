-- Labels and known keys.

CREATE TABLE IF NOT EXISTS advisory.key_labels (
    key bigint,
    key1 integer,
    key2 integer,
    label text NOT NULL CONSTRAINT key_labels_label_length CHECK (length(label) BETWEEN 1 AND 200),
    note text CONSTRAINT key_labels_note_length CHECK (length(note) BETWEEN 1 AND 1000),
    CONSTRAINT key_labels_one_form
        CHECK ((key IS NULL) = (key1 IS NOT NULL) AND (key1 IS NULL) = (key2 IS NULL)));

CREATE UNIQUE INDEX IF NOT EXISTS key_labels_unique ON advisory.key_labels
    ((key IS NULL), coalesce(key, 0), coalesce(key1, 0), coalesce(key2, 0), label);

-- It has no primary key.  FULL lets rows be changed where all tables are published.
ALTER TABLE advisory.key_labels REPLICA IDENTITY FULL;
COMMENT ON TABLE key_labels IS 'labels that users give to keys; for locks.known_as and known_keys';

-- Labels, and keys of programs.  After key2: which locks are meant; a pair is one key there.
CREATE OR REPLACE VIEW advisory._uses AS
    SELECT _printable(label) AS tool,
           _printable(note) AS purpose,
           CASE WHEN key IS NULL THEN 'int4 pair' ELSE 'bigint' END AS form,
           NULL AS scope,
           'exact' AS match,
           coalesce(key::text, format('(%s, %s)', key1, key2)) AS rule,
           'advisory.key_labels' AS source,
           key,
           key1,
           key2,
           number AS first_key,
           number AS last_key,
           CASE WHEN key IS NULL THEN 2 ELSE 1 END AS objsubid,
           true AS is_label,
           NULL::name AS only_with
    FROM advisory.key_labels,
         LATERAL (SELECT coalesce(key, (key1::bigint << 32) | (key2 & 4294967295))) AS n (number)
    UNION ALL
    SELECT tool, purpose, 'bigint', scope, match, rule, source,
           CASE WHEN first_key = last_key THEN first_key END, NULL, NULL, first_key, last_key, 1,
           false, only_with
    FROM (
@sql/known-keys.sql
    ) AS fact
    UNION ALL
    SELECT tool, purpose, form, scope, match, rule, source, NULL, NULL, NULL, first_key, last_key,
           objsubid, false, only_with
    FROM (
@sql/known-ranges.sql
    ) AS range
    UNION ALL
    SELECT 'Citus', 'distributed execution', 'objsubid 4-16', 'any', 'class', 'objsubid',
           'citusdata/citus', NULL, NULL, NULL, -1::bigint << 63, ~(-1::bigint << 63), 4, false,
           NULL;

CREATE OR REPLACE VIEW advisory.known_keys AS
    SELECT tool, purpose, form, scope, match, rule, source, key, key1, key2
    FROM _uses;
COMMENT ON VIEW known_keys IS 'well-known keys, and those of key_labels; candidates, not proof';
