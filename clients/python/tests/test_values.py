"""Keys, names and times, without a server; and that the server has the same keys."""
import random
import unittest
from datetime import timedelta
from enum import Enum
from uuid import UUID

from support import Case

from advisory_ext import key
from advisory_ext._values import check_time


class Values(unittest.TestCase):
    def test_published_keys(self):
        for names, value in {
                ('invoice-generation',): -8670053900832782221,
                ('billing', 'invoice:42'): 1572001551135567388,
                ('user', 42): 8907056734076048704,
                ('größe', 'naïve ☃'): 733500587011654506,
                ('order', UUID('00000000-0000-0000-0000-000000000001')): -3943673449234501271,
        }.items():
            self.assertEqual(key(*names), value, names)

    def test_enum(self):
        class Number(int, Enum):
            SEVEN = 7

        class Text(str, Enum):
            SEVEN = '7'

        self.assertEqual({key('user', 7)}, {key('user', Number.SEVEN), key('user', Text.SEVEN)})

    def test_names(self):
        for name in ('', 'a\0b', '\ud83d'):
            with self.assertRaises(ValueError):
                key('billing', name)
        for name in (None, True, 4.2, b'bytes'):
            with self.assertRaises(TypeError):
                key('billing', name)
        with self.assertRaises(TypeError):
            key()
        with self.assertRaises(TypeError):
            key('a', 'b', 'c')

    def test_times(self):
        for value, text in {
                0: '0 ms', 5: '5000 ms', 0.25: '250 ms', 1.1: '1100 ms',
                timedelta(days=1): '86400000 ms',
                timedelta(microseconds=1): '1 ms', '5s': '5s', '1 day': '1 day',
        }.items():
            self.assertEqual(check_time(value, 'timeout'), text)
        for value in ('5000', ' 5 ', '1e3', '', True, None, b'5s'):
            with self.assertRaisesRegex(
                    TypeError, 'timeout is a timedelta, a number of seconds, or a str with a unit'):
                check_time(value, 'timeout')
        for value in (-1, float('nan'), float('inf'), timedelta(seconds=-1)):
            with self.assertRaises(ValueError):
                check_time(value, 'timeout')


class OnServer(Case):
    def test_random_keys(self):
        seed = random.randrange(2 ** 32)
        generator = random.Random(seed)
        alphabet = 'abcXYZ019:/.-_\'"\\$ %{}äßñøЖあ漢字😀🔒𝄞é‍'
        for _ in range(100):
            names = [
                ''.join(generator.choices(alphabet, k=generator.randint(1, 40))) for _ in range(2)]
            self.assertEqual(key(*names), self.ask(
                'SELECT advisory.key(%s::text, %s::text)', *names), f'seed {seed}')
            self.assertEqual(
                key(names[0]), self.ask('SELECT advisory.key(%s::text)', names[0]), f'seed {seed}')


if __name__ == '__main__':
    unittest.main()
