"""What README.md shows: each block runs after the one before it, and prints what is below it."""
import contextlib
import io
import os
import re
import traceback
import unittest

from support import IS_PSYCOPG3, Case, connect, execute

README = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'README.md')


def blocks():
    """Language, text, and the comment above it."""
    with open(README, encoding='utf-8') as file:
        return re.findall(
            r'^(?:<!-- ([^\n]*) -->\n)?```(\w*)\n(.*?)^```$', file.read(), re.M | re.S)


def comparable(text):
    text = re.sub(r'\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[.\d]*\+\d\d', 'TIME', text)
    return re.sub(
        r'(?<=rocess )\d+|(?<=invoice:42\', )\d+', 'PID', re.sub(r'role "\w+"', 'role "app"', text))


@unittest.skipUnless(IS_PSYCOPG3, 'README.md uses psycopg 3')
class Readme(Case):
    def test_blocks(self):
        execute(self.look, 'CREATE TABLE IF NOT EXISTS invoice (id int PRIMARY KEY, paid boolean)')
        execute(self.look, 'INSERT INTO invoice VALUES (42) ON CONFLICT DO NOTHING')
        variables = {}
        printed, compared = '', 0
        for comment, language, text in blocks():
            if language == 'python':
                self.assertEqual(
                    printed, '', 'the block before it printed more than README.md shows')
                printed = self.run_block(
                    text.replace('dbname=shop ', ''), variables, is_locked=bool(comment))
            elif language == '':
                self.assertEqual(comparable(printed), comparable(text))
                printed = ''
                compared += 1
        self.assertEqual(compared, 8)

    def run_block(self, text, variables, is_locked):
        output = io.StringIO()
        with contextlib.ExitStack() as stack:
            if is_locked:
                other = stack.enter_context(connect(application_name='worker'))
                execute(other, "SELECT advisory.xact_lock('billing', 'invoice:42')")
            with contextlib.redirect_stdout(output):
                try:
                    exec(compile(text, 'README.md', 'exec'), variables)
                except Exception as error:
                    print(''.join(traceback.format_exception_only(type(error), error)), end='')
        return output.getvalue()


if __name__ == '__main__':
    unittest.main()
