<?php
// PDO.
require 'lines.php';

$db = new PDO('pgsql:', options: [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION]);
run(function (string $sql, array $values) use ($db): array {
    try {
        $statement = $db->prepare($sql);
        $statement->execute($values);
        return ['rows' => $statement->fetchAll(PDO::FETCH_NUM)];
    } catch (PDOException $error) {
        [$state, , $text] = $error->errorInfo;
        $has = fn ($field) => str_contains($text, $field) ? $text : '';
        return ['error' => [$state, $has('DETAIL:'), $has('HINT:'), $has('SCHEMA'),
            $has('CONSTRAINT')]];
    }
}, fn () => []);
