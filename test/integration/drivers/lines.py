"""Runs the calls that driver_calls.t writes, and says what came of each; see README.md here."""
import datetime
import sys


def interval(text):
    number, unit = text.split()
    return datetime.timedelta(**{{'s': 'seconds', 'min': 'minutes'}[unit]: int(number)})


def value_of(text):
    """A value of the list, as a program has it."""
    kind, text = text.split(':', 1)
    if kind.endswith('[]'):
        return [value_of(f'{kind[:-2]}:{element}') for element in text.split(',') if element]
    return {'null': lambda _: None, 'integer': int, 'bigint': int, 'interval': interval}.get(
        kind, str)(text)


def calls():
    with open(sys.argv[1], encoding='utf-8') as lines:
        for line in lines:
            sql, *values = line.rstrip('\n').split('\t')
            yield sql, [value_of(value) for value in values]


def shown(value):
    if value is None:
        return 'null'
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"'{value}'"
    if isinstance(value, int):
        return str(value)
    return f'{type(value).__name__} {value}'


def say(rows, notices=()):
    tell([' '.join('|'.join(map(shown, row)) for row in rows), '', '', '', '', *notices])


def fail(state, fields=('', '', '', ''), notices=()):
    """The SQLSTATE; DETAIL, HINT, namespace and name."""
    tell([f'error {state}', *(field or '' for field in fields), *notices])


def named_in(message):
    """Where a driver has no fields: the message, for each field that it tells."""
    return [message if field in message else ''
            for field in ('DETAIL:', 'HINT:', 'SCHEMA', 'CONSTRAINT')]


def refuse(error):
    """The driver itself did not send it."""
    tell([f'refused {error}'])


def tell(columns):
    print('\t'.join(' '.join(str(column).split()) for column in columns), flush=True)
