-- Settings.

CREATE VIEW advisory.settings AS
    SELECT name, setting, unit, boot_val AS default_setting, context, short_desc AS description
    FROM pg_catalog.pg_settings
    -- The call, which the planner makes, loads the library, and that defines the settings.
    WHERE pg_catalog.starts_with(name, 'advisory_ext.') AND advisory_internal.crc32('') OPERATOR(pg_catalog.=) 0;
COMMENT ON VIEW advisory.settings IS 'the settings of advisory_ext, also before the library is loaded';
COMMENT ON COLUMN advisory.settings.name IS 'name of the setting';
COMMENT ON COLUMN advisory.settings.setting IS 'current value';
COMMENT ON COLUMN advisory.settings.unit IS 'unit of the value';
COMMENT ON COLUMN advisory.settings.default_setting IS 'default value';
COMMENT ON COLUMN advisory.settings.context IS 'context required to set it, as in pg_settings';
COMMENT ON COLUMN advisory.settings.description IS 'what it does';
