"""psqlodbc, by pyodbc."""
import os
import sys

import lines
import pyodbc

connection = pyodbc.connect(
    f"Driver={sys.argv[2]};Servername={os.environ['PGHOST']};Port={os.environ['PGPORT']};"
    f"Database={os.environ['PGDATABASE']};Username={os.environ['PGUSER']}", autocommit=True)


def bound(value):
    """It has no lists."""
    return '{' + ','.join(map(str, value)) + '}' if isinstance(value, list) else value


for sql, values in lines.calls():
    cursor = connection.cursor()
    try:
        cursor.execute(sql, list(map(bound, values)))
        lines.say(cursor.fetchall() if cursor.description else [],
                  [text for _, text in getattr(cursor, 'messages', None) or []])
    except pyodbc.Error as error:
        if 'HY105' in error.args:
            lines.refuse(error)
        else:
            lines.fail(error.args[0], lines.named_in(error.args[1]))
    cursor.close()
