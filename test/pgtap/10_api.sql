-- The API's shape, as the reference documents it: a change here is a change for every caller.
BEGIN;
SET LOCAL intervalstyle = postgres;
SELECT plan(49);

---- Every function: name, arguments with their names and defaults, result

CREATE TEMP TABLE expected (name text, arguments text, result text);

-- How a lock is named, and what the functions that take one make of their timeout.
CREATE TEMP TABLE forms (argument text);
INSERT INTO forms VALUES ('name text'), ('id bigint'), ('id uuid');
CREATE TEMP TABLE lists (argument text, element text);
INSERT INTO lists VALUES ('names text[]', 'text'), ('ids bigint[]', 'bigint'),
    ('ids uuid[]', 'uuid');
CREATE FUNCTION pg_temp.timeout_of(name text) RETURNS text LANGUAGE sql RETURN
    CASE WHEN name LIKE 'try%' THEN '''00:00:00''::interval' ELSE 'NULL::interval' END;
CREATE TEMP TABLE takers AS
    SELECT name, pg_temp.timeout_of(name) AS timeout
    FROM unnest(ARRAY['lock', 'lock_shared', 'xact_lock', 'xact_lock_shared', 'try_lock',
                      'try_lock_shared', 'try_xact_lock', 'try_xact_lock_shared']) AS name;
CREATE TEMP TABLE holder (columns text);
INSERT INTO holder VALUES
    ('TABLE(pid integer, database text, role text, application_name text, client_addr inet, '
     'state text, kind text, slot integer, mode text, scope text, '
     'granted boolean, wait_start timestamp with time zone, waited interval, '
     'acquired_at timestamp with time zone, held interval, '
     'blocked_by integer[], gid text, query text, slots integer)');

-- Of each kind of name: %s is how the lock is named.
INSERT INTO expected
    SELECT name, format(arguments, argument), result
    FROM forms, (VALUES
        ('key', 'namespace text, %s', 'bigint'),
        ('unlock', 'namespace text, %s', 'boolean'),
        ('unlock_shared', 'namespace text, %s', 'boolean'),
        ('unlock_all', 'namespace text, %s', 'integer'),
        ('holds', 'namespace text, %s', 'boolean'),
        ('hold_count', 'namespace text, %s', 'integer'),
        ('is_locked', 'namespace text, %s', 'boolean'),
        ('terminate_holder', 'namespace text, %s, pid integer, '
            'timeout interval DEFAULT ''00:00:05''::interval, kind text DEFAULT NULL::text',
            'boolean'),
        ('await_lock', 'IN namespace text, IN %s, '
            'IN timeout interval DEFAULT NULL::interval', NULL),
        ('await_lock_shared', 'IN namespace text, IN %s, '
            'IN timeout interval DEFAULT NULL::interval', NULL),
        ('release', 'namespace text, %s, slot integer DEFAULT NULL::integer', 'boolean'),
        ('release_many', 'namespace text, %s, slots integer[]', 'integer'),
        ('await_acquire', 'IN namespace text, IN %s, IN slots integer, '
            'IN timeout interval DEFAULT NULL::interval, '
            'INOUT slot integer DEFAULT NULL::integer', NULL),
        ('run', 'IN namespace text, IN %s, IN command text, '
            'IN timeout interval DEFAULT ''00:00:00''::interval, '
            'IN slots integer DEFAULT NULL::integer, IN if_busy text DEFAULT ''skip''::text, '
            'INOUT ran boolean DEFAULT NULL::boolean, IN once_per interval DEFAULT NULL::interval, '
            'IN once_window timestamp with time zone DEFAULT NULL::timestamp with time zone, '
            'IN time_zone text DEFAULT NULL::text, IN apart interval DEFAULT NULL::interval', NULL),
        ('token', 'namespace text, %s', 'bigint'),
        ('token', 'namespace text, %s, slot integer', 'bigint'),
        ('check_token', 'namespace text, %s, token bigint', 'boolean'),
        ('await_lease', 'IN namespace text, IN %s, IN ttl interval, '
            'IN timeout interval DEFAULT NULL::interval, IN owner text DEFAULT NULL::text, '
            'IN lock_delay interval DEFAULT ''00:00:00''::interval, '
            'IN max_hold interval DEFAULT NULL::interval, '
            'INOUT token bigint DEFAULT NULL::bigint, INOUT expires_at timestamp with time zone '
            'DEFAULT NULL::timestamp with time zone', NULL),
        ('await_lease_slot', 'IN namespace text, IN %s, IN slots integer, IN ttl interval, '
            'IN timeout interval DEFAULT NULL::interval, IN owner text DEFAULT NULL::text, '
            'IN max_hold interval DEFAULT NULL::interval, '
            'INOUT slot integer DEFAULT NULL::integer, INOUT token bigint DEFAULT NULL::bigint, '
            'INOUT expires_at timestamp with time zone DEFAULT NULL::timestamp with time zone, '
            'INOUT remaining interval DEFAULT NULL::interval', NULL),
        ('is_leased', 'namespace text, %s', 'boolean'),
        ('leased_slots', 'namespace text, %s', 'integer'),
        ('renew_lease', 'namespace text, %s, token bigint, '
            'ttl interval DEFAULT NULL::interval', 'timestamp with time zone'),
        ('end_lease', 'namespace text, %s, token bigint', 'boolean'),
        ('check_lease', 'namespace text, %s, token bigint', 'boolean'),
        ('break_lease', 'namespace text, %s, token bigint DEFAULT NULL::bigint', 'boolean'),
        ('claim', 'namespace text, %s, every interval, window_start timestamp with time zone '
            'DEFAULT NULL::timestamp with time zone, time_zone text DEFAULT NULL::text',
            'timestamp with time zone'),
        ('claim_apart', 'namespace text, %s, apart interval', 'timestamp with time zone'),
        ('unclaim', 'namespace text, %s, window_start timestamp with time zone', 'boolean')
    ) AS f(name, arguments, result);
INSERT INTO expected SELECT 'holders', 'namespace text, ' || argument, columns FROM forms, holder;
INSERT INTO expected SELECT 'holders_key', 'key bigint', columns FROM holder;
-- What takes a lock, a slot or a lease: also how long it waits by default.
INSERT INTO expected
    SELECT name, format('namespace text, %s, timeout interval DEFAULT %s', argument, timeout),
           'boolean'
    FROM takers, forms
    UNION ALL SELECT name || '_key', format('key bigint, timeout interval DEFAULT %s, '
                                            'label text DEFAULT NULL::text', timeout), 'boolean'
    FROM takers
    UNION ALL SELECT name, format('namespace text, %s, slots integer, timeout interval DEFAULT %s',
                                  argument, pg_temp.timeout_of(name)), 'integer'
    FROM unnest(ARRAY['acquire', 'try_acquire', 'xact_acquire', 'try_xact_acquire']) AS name, forms
    UNION ALL SELECT name || '_many', format('namespace text, %s, slots integer, wanted integer, '
                                             'timeout interval DEFAULT %s',
                                             argument, pg_temp.timeout_of(name)), 'integer[]'
    FROM unnest(ARRAY['acquire', 'try_acquire', 'xact_acquire', 'try_xact_acquire']) AS name, forms
    UNION ALL SELECT name, format('namespace text, %s, ttl interval, timeout interval DEFAULT %s, '
        'owner text DEFAULT NULL::text, lock_delay interval DEFAULT ''00:00:00''::interval, '
        'max_hold interval DEFAULT NULL::interval, '
        'OUT token bigint, OUT expires_at timestamp with time zone',
        argument, pg_temp.timeout_of(name)), 'record'
    FROM unnest(ARRAY['lease', 'try_lease']) AS name, forms
    UNION ALL SELECT name || '_slot', format('namespace text, %s, slots integer, ttl interval, '
        'timeout interval DEFAULT %s, owner text DEFAULT NULL::text, '
        'max_hold interval DEFAULT NULL::interval, OUT slot integer, OUT token bigint, '
        'OUT expires_at timestamp with time zone, OUT remaining interval',
        argument, pg_temp.timeout_of(name)), 'record'
    FROM unnest(ARRAY['lease', 'try_lease']) AS name, forms;
-- Of a list, which may also come untyped, as text.
INSERT INTO expected SELECT 'unlock_all', 'namespace text, ' || argument, 'integer' FROM lists;
INSERT INTO lists VALUES ('names text', 'text');
INSERT INTO expected
    SELECT name, format('namespace text, %s, timeout interval DEFAULT %s', argument,
                        pg_temp.timeout_of(name)), 'boolean'
    FROM unnest(ARRAY['lock_all', 'try_lock_all', 'xact_lock_all', 'try_xact_lock_all']) AS name,
         lists
    UNION ALL SELECT name, format('namespace text, %s, wanted integer DEFAULT 1', argument),
                     'SETOF ' || element
    FROM unnest(ARRAY['try_lock_any', 'try_xact_lock_any']) AS name, lists
    UNION ALL SELECT name,
        format('namespace text, %s, slots integer, wanted integer DEFAULT 1', argument),
        format('TABLE(%s %s, slot integer)', CASE element WHEN 'text' THEN 'name' ELSE 'id' END,
               element)
    FROM unnest(ARRAY['try_acquire_any', 'try_xact_acquire_any']) AS name, lists
    UNION ALL SELECT name,
           format('namespace text, %s, slots integer[], timeout interval DEFAULT %s',
                  argument, pg_temp.timeout_of(name)), 'integer[]'
    FROM unnest(ARRAY['acquire_all', 'try_acquire_all', 'xact_acquire_all',
                      'try_xact_acquire_all']) AS name, lists;
INSERT INTO expected VALUES
    ('key', 'name text', 'bigint'), ('unlock_key', 'key bigint', 'boolean'),
    ('unlock_shared_key', 'key bigint', 'boolean'), ('holds_key', 'key bigint', 'boolean'),
    ('is_locked_key', 'key bigint', 'boolean'), ('unlock_all', 'namespace text', 'integer'),
    ('terminate_holder_key', 'key bigint, pid integer, '
        'timeout interval DEFAULT ''00:00:05''::interval, kind text DEFAULT NULL::text', 'boolean'),
    ('terminate_blocker', 'pid integer, lock text', 'boolean'),
    ('cancel_waiter', 'pid integer, lock text', 'boolean'),
    ('await_lock_key', 'IN key bigint, IN timeout interval DEFAULT NULL::interval, '
        'IN label text DEFAULT NULL::text', NULL),
    ('await_lock_shared_key', 'IN key bigint, IN timeout interval DEFAULT NULL::interval, '
        'IN label text DEFAULT NULL::text', NULL),
    ('token_key', 'key bigint', 'bigint'), ('tokens_above', 'token bigint', 'void'),
    ('fenced', '', 'trigger'), ('wait_tree', '', 'SETOF text'), ('stats_reset', '', 'void'),
    ('can_fit', 'n integer', 'boolean'), ('max_locks_for', 'n integer', 'integer'),
    ('edition', '', 'text'), ('version', '', 'text');

-- Functions that only the views use are in a schema of their own.  Here they have an underscore.
CREATE TEMP VIEW functions AS
    SELECT *, CASE pronamespace
        WHEN 'advisory'::regnamespace THEN proname::text ELSE '_' || proname END COLLATE "C" AS name
    FROM pg_proc
    WHERE pronamespace IN ('advisory'::regnamespace, 'advisory_internal'::regnamespace);
CREATE TEMP VIEW public_functions AS SELECT * FROM functions
    WHERE pronamespace = 'advisory'::regnamespace;
CREATE TEMP VIEW actual AS
    SELECT name, pg_get_function_arguments(oid) AS arguments, pg_get_function_result(oid) AS result
        FROM public_functions;

SELECT is_empty('SELECT * FROM expected EXCEPT ALL SELECT * FROM actual',
                'no function is missing or has changed');
SELECT is_empty('SELECT * FROM actual EXCEPT ALL SELECT * FROM expected',
                'there is no function more than is documented');
SELECT is_empty($$ SELECT name, arguments FROM actual
    WHERE arguments ~ '\$\d|(^|, )(text|bigint|uuid|interval)(,|$)' $$,
                'every argument has a name');
SELECT set_eq('SELECT name FROM public_functions WHERE prokind = ''p''',
              ARRAY['await_lock', 'await_lock_shared', 'await_lock_key', 'await_lock_shared_key',
                  'await_acquire', 'await_lease', 'await_lease_slot', 'run'],
              'the procedures are procedures, and all else functions');
SELECT is_empty('SELECT name FROM functions WHERE prokind NOT IN (''f'', ''p'')',
                'there are no aggregates or window functions');

---- How the planner may treat them

SELECT is_empty($$ SELECT oid::regprocedure FROM functions WHERE proisstrict
                   AND name NOT IN ('_window', '_role_name', '_shown', '_readable', '_crc32',
                       '_bytes_of', '_printable', '_key_labels', '_database_keys',
                       '_table_in_key', '_is_name', '_owners_here', '_has_table', '_range_uses',
                       '_role_here') $$,
                'no function is strict: a null is an error');
-- All others are volatile and parallel unsafe.
CREATE TEMP TABLE planned AS
    SELECT unnest(names) AS name, volatility, parallel FROM (VALUES
        ('i', 's', ARRAY['key', '_window', '_shown', 'edition', '_crc32', '_bytes_of', '_printable',
                         '_is_name', '_unnamed']),
        ('s', 'u', ARRAY['_key_labels', '_database_keys', '_table_in_key', '_owners_here',
                         '_has_table', '_range_uses', '_known_as']),
        ('s', 's', ARRAY['_cut', '_this_database', '_describe_claim', '_role_here', 'version']))
        AS p(volatility, parallel, names);
SELECT is_empty($$ SELECT oid::regprocedure FROM functions LEFT JOIN planned USING (name)
    WHERE (provolatile, proparallel) IS DISTINCT FROM
          (coalesce(volatility, 'v')::"char", coalesce(parallel, 'u')::"char") $$,
                'each function is as volatile and as parallel safe as planned');
SELECT is_empty($$ SELECT oid::regprocedure FROM functions
    WHERE name = '_known_as' AND procost > 100 $$, 'known_as() is cheap');
SELECT is_empty($$ SELECT oid::regprocedure FROM functions
    WHERE name NOT IN ('key', '_window', '_crc32', '_bytes_of', '_printable', '_this_database',
    '_is_name', '_shown', '_describe_claim', '_role_here', '_known_as', '_cut', '_locks_handler',
    'stats_reset', '_pressure', 'can_fit', 'max_locks_for', 'fenced', 'edition', 'version')
    AND prokind = 'f'
    AND procost <> 1000 $$,
                'whatever touches locks costs 1000, so that the planner filters first');
SELECT is_empty($$ SELECT oid::regprocedure FROM functions WHERE proleakproof $$,
                'nothing claims to be leakproof');

---- What they are made of

SELECT is_empty('SELECT oid::regprocedure FROM functions WHERE prosecdef',
                'nothing runs with its owner''s privileges');
SELECT is_empty('SELECT oid::regprocedure, proconfig FROM functions WHERE proconfig IS NOT NULL',
                'nothing has a SET clause, '
                'which would keep procedures from releasing their snapshot');
SELECT set_eq($$ SELECT DISTINCT probin FROM functions
                 WHERE prolang = (SELECT oid FROM pg_language WHERE lanname = 'c') $$,
              ARRAY['$libdir/advisory_ext'], 'C functions come from this library only');

SELECT is_empty($$ SELECT oid::regclass FROM pg_class WHERE relkind = 'v'
    AND relnamespace IN ('advisory'::regnamespace, 'advisory_internal'::regnamespace)
    AND pg_get_viewdef(oid) ~ '\mpg_lock(s|_status)\M' $$,
                'no view reads pg_locks, which would lock the whole lock table');

---- Views and their columns, in this order

SELECT set_eq($$ SELECT relname::text FROM pg_class
    WHERE relnamespace = 'advisory'::regnamespace AND relkind = 'v' $$,
              ARRAY['activity', 'blockers', 'locks', 'semaphores', 'waits', 'stats', 'leaks',
                  'pressure', 'pressure_by_backend', 'pressure_by_type', 'directory', 'known_keys',
                  'leases', 'claims', 'settings', '_unnamed_texts'],
              'the views are there, and no others but that which activity reads');
SELECT set_eq($$ SELECT relname::text FROM pg_class
    WHERE relnamespace = 'advisory'::regnamespace AND relkind NOT IN ('v', 'c', 'i', 'f') $$,
              ARRAY['key_labels', 'fences', '_claims', '_leases', '_era', '_era_began'],
              'there is nothing to be written to but labels, fences, claims, leases and the era');
SELECT set_eq($$ SELECT relname::text FROM pg_class
    WHERE relnamespace = 'advisory'::regnamespace AND relkind = 'f' $$,
              ARRAY['_locks'], 'there is one foreign table, that locks is read from');
SELECT is(pg_relation_is_updatable('advisory._locks', false), 0, 'which cannot be written to');
SELECT is_empty($$ SELECT relname FROM pg_class
    WHERE relnamespace = 'advisory'::regnamespace AND relkind = 'v' AND reloptions IS NOT NULL $$,
                'views have no options, such as security_invoker');

CREATE FUNCTION pg_temp.columns_of(view regclass) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' ORDER BY attnum)
    FROM pg_attribute WHERE attrelid = view AND attnum > 0 AND NOT attisdropped $$;
SELECT is(pg_temp.columns_of(('advisory.' || view)::regclass), columns, 'columns of ' || view)
FROM (VALUES
    ('locks', 'pid integer, database text, role text, application_name text, client_addr inet, '
        'state text, kind text, namespace text, name text, slot integer, key bigint, '
        'key1 integer, key2 integer, mode text, scope text, granted boolean, '
        'wait_start timestamp with time zone, waited interval, '
        'acquired_at timestamp with time zone, held interval, blocked_by integer[], '
        'known_as text[], gid text, query text, slots integer'),
    ('semaphores', 'namespace text, name text, key bigint, slots integer, in_use integer, '
        'free integer, waiting integer, holders integer[], slots_disagree boolean, '
        'slots_given text, slots_wanted integer'),
    ('waits', 'root_pid integer, depth integer, path integer[], pid integer, '
        'waits_for_pid integer, namespace text, name text, key bigint, mode text, '
        'waited interval, state text, application_name text, query text, key1 integer, '
        'key2 integer, objsubid integer'),
    ('activity', 'lock text, slot integer, mode text, pid integer, who text, state text, '
        'waiting interval, held interval, blocked_by text'),
    ('blockers', 'pid integer, who text, state text, since timestamp with time zone, lock text, '
        'waiters integer, longest_wait interval, remedy text, backend_type text, '
        'client_addr inet, query text'),
    ('stats', 'namespace text, name text, acquired bigint, contended bigint, failed bigint, '
        'timeouts bigint, skipped bigint, wait_total interval, wait_max interval, '
        'hold_total interval, hold_max interval, last_acquired_at timestamp with time zone, '
        'stats_since timestamp with time zone, key bigint, not_held bigint'),
    ('leaks', 'pid integer, database text, role text, application_name text, client_addr inet, '
        'state text, kind text, namespace text, name text, slot integer, key bigint, '
        'key1 integer, key2 integer, mode text, acquired_at timestamp with time zone, '
        'held interval, taken_by_role text, taken_by_application text, reason text, '
        'known_as text[], transactions bigint'),
    ('pressure', 'status text, percent_used double precision, headroom bigint, locks_used bigint, '
        'locks_estimated bigint, locks_guaranteed bigint, percent_of_guaranteed double precision, '
        'holders_used bigint, holders_guaranteed bigint, '
        'recommended_max_locks_per_transaction integer, exact boolean, holders_estimated bigint'),
    ('pressure_by_backend', 'pid integer, role text, application_name text, state text, '
        'locks bigint, advisory_locks bigint, session_locks bigint, statement_cost interval, '
        'gid text'),
    ('pressure_by_type', 'type text, locks bigint, holders bigint'),
    ('directory', 'available boolean, names bigint, max_names integer, evicted bigint, '
        'not_stored bigint, collisions bigint, reason text'),
    ('known_keys', 'tool text, purpose text, form text, scope text, match text, rule text, '
        'source text, key bigint, key1 integer, key2 integer'),
    ('key_labels', 'key bigint, key1 integer, key2 integer, label text, note text'),
    ('claims', 'namespace text, name text, key bigint, last_window timestamp with time zone, '
        'claimed_at timestamp with time zone, claimed_by text, '
        'finished_at timestamp with time zone, state text, every interval, overdue boolean, '
        'last_skipped_at timestamp with time zone'),
    ('settings', 'name text, setting text, unit text, default_setting text, context text, '
        'description text')
) AS v(view, columns);
SELECT is_empty($$ SELECT relname FROM pg_class
    WHERE oid = 'advisory.activity'::regclass AND length(pg_get_viewdef(oid)) > 300 $$,
    'the definition of activity is short');

---- Settings: name, default, context

SELECT results_eq($$ SELECT name, default_setting, context FROM advisory.settings
                     ORDER BY name COLLATE "C" $$,
                  $$ VALUES ('advisory_ext.idle_holder_timeout', '0', 'user'),
                            ('advisory_ext.leak_after', '600', 'user'),
                            ('advisory_ext.lease_sync', 'on', 'user'),
                            ('advisory_ext.log_hold', '-1', 'superuser'),
                            ('advisory_ext.log_wait', '-1', 'superuser'),
                            ('advisory_ext.max_names', '10000', 'sighup'),
                            ('advisory_ext.pool_limit', '90', 'superuser'),
                            ('advisory_ext.pressure_critical', '75', 'superuser'),
                            ('advisory_ext.pressure_warning', '50', 'superuser'),
                            ('advisory_ext.reentrant', 'on', 'user'),
                            ('advisory_ext.session_locks', 'on', 'user'),
                            ('advisory_ext.standby_locks', 'warn', 'user'),
                            ('advisory_ext.track', 'all', 'superuser'),
                            ('advisory_ext.unlock_before_commit', 'warn', 'user'),
                            ('advisory_ext.unlock_not_held', 'warn', 'user'),
                            ('advisory_ext.warn_no_transaction', 'on', 'user') $$,
                  'the settings and their defaults, and who may set them');

---- Everything is explained

SELECT isnt(obj_description('advisory'::regnamespace, 'pg_namespace'), NULL,
            'the schema has a comment');
SELECT is_empty($$ SELECT oid::regprocedure FROM functions
                   WHERE coalesce(obj_description(oid, 'pg_proc'), '') = '' $$,
                'every function has a comment');
SELECT is_empty($$ SELECT oid::regprocedure FROM functions
                   WHERE length(obj_description(oid, 'pg_proc')) > 70 $$,
                'of at most 70 characters');
SELECT is_empty($$ SELECT objoid::regclass, objsubid, description FROM pg_description
    JOIN pg_class ON classoid = 'pg_class'::regclass AND oid = objoid
                   WHERE relnamespace = 'advisory'::regnamespace AND length(description) > 70 $$,
                       'so is that of every relation and column');
SELECT is_empty($$ SELECT c.oid::regclass, a.attname FROM pg_class c
                       LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
                           AND NOT a.attisdropped
                   WHERE c.relnamespace = 'advisory'::regnamespace
                       AND (c.relkind = 'r' OR c.relkind = 'v' AND c.relname NOT LIKE '\_%')
                     AND (obj_description(c.oid, 'pg_class') IS NULL
                         OR col_description(c.oid, a.attnum) IS NULL) $$,
                'every view and table has a comment, and so has every column');
SELECT is_empty($$ SELECT oid::regprocedure FROM functions WHERE name LIKE 'is\_locked%'
                   AND obj_description(oid, 'pg_proc')
                       NOT LIKE '%an observation, never a guard%' $$,
                'is_locked() says that it is no guard');

SELECT is_empty($$ SELECT srvname, fdwname FROM pg_foreign_server s
    JOIN pg_foreign_data_wrapper w ON w.oid = srvfdw WHERE fdwname = 'advisory_ext'
                   AND (obj_description(s.oid, 'pg_foreign_server') IS NULL
                       OR obj_description(w.oid, 'pg_foreign_data_wrapper') IS NULL) $$,
                'so have the server and the wrapper');

---- The extension

SELECT is(extversion || ' ' || extrelocatable, default_version || ' false',
          'it is installed in its default version, and not relocatable')
    FROM pg_extension JOIN pg_available_extensions ON name = extname WHERE extname = 'advisory_ext';
SELECT is(advisory.version(), extversion,
          'version() says which it is')
    FROM pg_extension WHERE extname = 'advisory_ext';
SELECT is(advisory.edition(), 'extension', 'edition() that it is the extension');
SELECT ok(bool_and(trusted),
          'it is trusted')
    FROM pg_available_extension_versions WHERE name = 'advisory_ext';
SELECT is_empty($$ SELECT classid::regclass, objid FROM (
                       SELECT 'pg_proc'::regclass AS classid, oid AS objid FROM functions
                       UNION ALL SELECT 'pg_class'::regclass, oid FROM pg_class
                           WHERE relnamespace = 'advisory'::regnamespace AND relkind <> 'i'
                       UNION ALL SELECT 'pg_namespace'::regclass,
                           'advisory'::regnamespace) AS objects
                   WHERE NOT EXISTS (SELECT FROM pg_depend d
                       WHERE d.classid = objects.classid AND d.objid = objects.objid
                       AND deptype = 'e'
                       AND refobjid = (SELECT oid FROM pg_extension
                           WHERE extname = 'advisory_ext')) $$,
                'all of the schema belongs to the extension, and the schema too');
SELECT is(extconfig::regclass[]::text,
          '{advisory.key_labels,advisory._era,advisory.fences,advisory._leases,advisory._claims}',
          'pg_dump dumps labels, fences, claims, leases and the era')
    FROM pg_extension WHERE extname = 'advisory_ext';

SELECT * FROM finish();
ROLLBACK;
