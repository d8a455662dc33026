"""psycopg 3."""
import lines
import psycopg

connection = psycopg.connect('', autocommit=True)
notices = []
connection.add_notice_handler(lambda notice: notices.append(notice.message_primary))
for sql, values in lines.calls():
    notices.clear()
    try:
        cursor = connection.execute(sql.replace('?', '%s'), values)
        lines.say(cursor.fetchall() if cursor.description else [], notices)
    except psycopg.errors.Error as error:
        diag = error.diag
        if error.sqlstate:
            lines.fail(error.sqlstate, (diag.message_detail, diag.message_hint, diag.schema_name,
                                        diag.constraint_name), notices)
        else:
            lines.refuse(error)
