<?php
// Runs the calls that driver_calls.t writes, and says what came of each; see README.md here.

// A value of the list, as a program has it. PHP's drivers have no lists and no durations.
function value_of(string $text): mixed
{
    [$kind, $value] = explode(':', $text, 2);
    return match (true) {
        $kind === 'null' => null,
        $kind === 'integer', $kind === 'bigint' => (int) $value,
        str_ends_with($kind, '[]') => "{{$value}}",
        default => $value,
    };
}

function shown(mixed $value): string
{
    return is_string($value) ? "'$value'" : strtolower(var_export($value, true));
}

// $query returns the rows, or what an error says: [SQLSTATE, DETAIL, HINT, namespace, name]. What
// $notices() returns comes last.
function run(callable $query, callable $notices): void
{
    foreach (file($GLOBALS['argv'][1], FILE_IGNORE_NEW_LINES) as $line) {
        $columns = explode("\t", $line);
        $said = $query($columns[0], array_map('value_of', array_slice($columns, 1)));
        if (isset($said['error'])) {
            $said = ['error ' . $said['error'][0], ...array_slice($said['error'], 1)];
        } else {
            $rows = array_map(fn ($row) => implode('|', array_map('shown', $row)), $said['rows']);
            $said = [implode(' ', $rows), '', '', '', ''];
        }
        $said = array_map(fn ($one) => preg_replace('/\s+/', ' ', $one ?? ''),
            [...$said, ...$notices()]);
        echo implode("\t", $said), "\n";
    }
}
