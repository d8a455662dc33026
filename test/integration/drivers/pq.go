// lib/pq, by database/sql.
package main

import (
	"context"
	"database/sql"
	"errors"

	"github.com/lib/pq"
)

func connect(ctx context.Context) (query, *[]string) {
	var notices []string
	connector, err := pq.NewConnector("")
	if err != nil {
		panic(err)
	}
	connection, err := sql.OpenDB(pq.ConnectorWithNoticeHandler(connector, func(notice *pq.Error) {
		notices = append(notices, notice.Message)
	})).Conn(ctx)
	if err != nil {
		panic(err)
	}
	return func(text string, values []interface{}) ([][]interface{}, error) {
		for number, value := range values {
			if list, ok := value.([]string); ok {
				values[number] = pq.Array(list)
			}
		}
		rows, err := connection.QueryContext(ctx, text, values...)
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		columns, _ := rows.Columns()
		var result [][]interface{}
		for rows.Next() {
			row, into := make([]interface{}, len(columns)), make([]interface{}, len(columns))
			for number := range row {
				into[number] = &row[number]
			}
			if err := rows.Scan(into...); err != nil {
				return nil, err
			}
			result = append(result, row)
		}
		return result, rows.Err()
	}, &notices
}

func fieldsOf(err error) fields {
	var refused *pq.Error
	if !errors.As(err, &refused) {
		return nil
	}
	return fields{string(refused.Code), refused.Detail, refused.Hint, refused.Schema,
		refused.Constraint}
}
