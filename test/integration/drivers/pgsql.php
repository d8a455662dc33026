<?php
// PHP's pgsql.
require 'lines.php';

$db = pg_connect('');
run(function (string $sql, array $values) use ($db): array {
    pg_send_query_params($db, $sql, $values);
    $result = pg_get_result($db);
    while (pg_get_result($db)) {
        continue;
    }
    $state = pg_result_error_field($result, PGSQL_DIAG_SQLSTATE);
    if (!$state) {
        return ['rows' => pg_fetch_all($result, PGSQL_NUM)];
    }
    return ['error' => [$state, ...array_map(fn ($field) => pg_result_error_field($result, $field),
        [PGSQL_DIAG_MESSAGE_DETAIL, PGSQL_DIAG_MESSAGE_HINT, PGSQL_DIAG_SCHEMA_NAME,
            PGSQL_DIAG_CONSTRAINT_NAME])]];
}, function () use ($db): array {
    $notices = pg_last_notice($db, PGSQL_NOTICE_ALL);
    pg_last_notice($db, PGSQL_NOTICE_CLEAR);
    return $notices;
});
