"""Once a day, on as many machines as you like, also behind PgBouncer: sums up yesterday.

    PGDATABASE=shop python3 daily_report.py     # from cron, every hour: it makes up for failed runs

The claim of the day is in the transaction of the work: if that fails, the day can be claimed again.

Tables: orders (paid_at timestamptz, amount numeric), report (day date, total numeric)
"""
import psycopg

from advisory_ext import Advisory

advisory = Advisory(lambda: psycopg.connect('', application_name='daily-report'))

REPORT = """
    INSERT INTO report SELECT day, coalesce(sum(amount), 0)
    FROM (SELECT (%s AT TIME ZONE 'Europe/Berlin')::date - 1 AS day) AS yesterday
    LEFT JOIN orders ON (paid_at AT TIME ZONE 'Europe/Berlin')::date = day GROUP BY day
"""


def main():
    with psycopg.connect('', application_name='daily-report') as connection:
        today = advisory.claim(
            'report', 'daily', '1 day', time_zone='Europe/Berlin', connection=connection)
        if today is None:
            print('skipped: the report of today is made, or is being made')
            return
        connection.execute(REPORT, [today])
    print('made the report')


if __name__ == '__main__':
    main()
