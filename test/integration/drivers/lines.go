// Runs the calls that driver_calls.t writes, and says what came of each; see README.md here.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Runs a statement with its values, and returns the rows.
type query func(string, []interface{}) ([][]interface{}, error)

// What an error of the server says: the SQLSTATE, DETAIL, HINT, namespace, name.
type fields []string

// A value of the list, as a program has it.
func valueOf(text string) interface{} {
	kind, value, _ := strings.Cut(text, ":")
	switch {
	case kind == "null":
		return nil
	case kind == "integer" || kind == "bigint":
		number, _ := strconv.ParseInt(value, 10, 64)
		return number
	case kind == "interval":
		duration, _ := time.ParseDuration(strings.Replace(
			strings.Replace(value, " min", "m", 1), " s", "s", 1))
		return duration
	case strings.HasSuffix(kind, "[]"):
		list := []string{}
		for _, one := range strings.Split(value, ",") {
			if one != "" {
				list = append(list, one)
			}
		}
		return list
	}
	return value
}

func shown(value interface{}) string {
	switch value := value.(type) {
	case nil:
		return "null"
	case string:
		return "'" + value + "'"
	case []byte:
		return "bytes '" + string(value) + "'"
	case bool, int16, int32, int64:
		return fmt.Sprint(value)
	}
	return fmt.Sprintf("%T %v", value, value)
}

func main() {
	ctx := context.Background()
	file, err := os.Open(os.Args[1])
	if err != nil {
		panic(err)
	}
	run, notices := connect(ctx)
	for lines := bufio.NewScanner(file); lines.Scan(); {
		*notices = nil
		columns := strings.Split(lines.Text(), "\t")
		var values []interface{}
		for _, value := range columns[1:] {
			values = append(values, valueOf(value))
		}
		rows, err := run(columns[0], values)
		said := make([]string, 5)
		if err != nil {
			if said = fieldsOf(err); said == nil {
				said = []string{"refused " + err.Error()}
			} else {
				said[0] = "error " + said[0]
			}
		} else {
			for number, row := range rows {
				if number > 0 {
					said[0] += " "
				}
				for column, value := range row {
					if column > 0 {
						said[0] += "|"
					}
					said[0] += shown(value)
				}
			}
		}
		for number, one := range append(said, *notices...) {
			if number > 0 {
				fmt.Print("\t")
			}
			fmt.Print(strings.Join(strings.Fields(one), " "))
		}
		fmt.Println()
	}
}
