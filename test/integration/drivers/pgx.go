// pgx.
package main

import (
	"context"
	"errors"

	"github.com/jackc/pgconn"
	"github.com/jackc/pgx/v4"
)

func connect(ctx context.Context) (query, *[]string) {
	var notices []string
	config, err := pgx.ParseConfig("")
	if err != nil {
		panic(err)
	}
	config.OnNotice = func(_ *pgconn.PgConn, notice *pgconn.Notice) {
		notices = append(notices, notice.Message)
	}
	connection, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		panic(err)
	}
	return func(text string, values []interface{}) ([][]interface{}, error) {
		rows, err := connection.Query(ctx, text, values...)
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		var result [][]interface{}
		for rows.Next() {
			row, err := rows.Values()
			if err != nil {
				return nil, err
			}
			result = append(result, row)
		}
		return result, rows.Err()
	}, &notices
}

func fieldsOf(err error) fields {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		return nil
	}
	return fields{refused.Code, refused.Detail, refused.Hint, refused.SchemaName,
		refused.ConstraintName}
}
