-- Settings.

CREATE FUNCTION advisory_internal.settings()
    RETURNS TABLE (
        name text,
        setting text,
        unit text,
        default_setting text,
        context text,
        description text)
    AS 'MODULE_PATHNAME', 'advisory_settings'
    LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 ROWS 10;
COMMENT ON FUNCTION advisory_internal.settings() IS 'rows of advisory.settings';

CREATE VIEW advisory.settings AS
    SELECT name, setting, unit, default_setting, context, description
    FROM advisory_internal.settings();
COMMENT ON VIEW advisory.settings IS
    'the settings of advisory_ext, even before the session has loaded the library';
COMMENT ON COLUMN advisory.settings.name IS 'name of the setting';
COMMENT ON COLUMN advisory.settings.setting IS 'current value';
COMMENT ON COLUMN advisory.settings.unit IS 'unit of the value';
COMMENT ON COLUMN advisory.settings.default_setting IS 'default value';
COMMENT ON COLUMN advisory.settings.context IS 'context required to set it, as in pg_settings';
COMMENT ON COLUMN advisory.settings.description IS 'what it does';
GRANT SELECT ON advisory.settings TO PUBLIC;
