"""asyncpg."""
import asyncio

import asyncpg
import lines


async def main():
    connection = await asyncpg.connect()
    notices = []
    connection.add_log_listener(lambda _, message: notices.append(message.message))
    for sql, values in lines.calls():
        notices.clear()
        try:
            rows = await connection.fetch(sql, *values)
            await asyncio.sleep(0)          # it calls the listener in the next turn of the loop
            lines.say([list(row.values()) for row in rows], notices)
        except asyncpg.PostgresError as error:
            if error.severity is None:
                lines.refuse(error)         # its own, with the SQLSTATE 22000
                continue
            lines.fail(error.sqlstate, (error.detail, error.hint, error.schema_name,
                                        error.constraint_name), notices)
    await connection.close()

asyncio.run(main())
