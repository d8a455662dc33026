"""What the tests have in common.

They connect as PGHOST and the like say, to a database that has the extension or the portable
edition, as a superuser. With ADVISORY_TEST_DRIVER=psycopg2 they use psycopg2. Some need more, and
are skipped without it:

ADVISORY_TEST_POOLERS   a JSON object: the connection strings of three PgBouncers, by name
                        (test_pooler.py)
ADVISORY_TEST_CTL       the beginning of a command, pg_ctl in effect, for a server that can be
                        killed (test_server_killed.py)
"""
import importlib
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

import advisory_ext

DRIVER = os.environ.get('ADVISORY_TEST_DRIVER', 'psycopg')
IS_PSYCOPG3 = DRIVER == 'psycopg'
driver = importlib.import_module(DRIVER)
if IS_PSYCOPG3:
    from psycopg.errors import LockNotAvailable, QueryCanceled
else:
    from psycopg2.errors import LockNotAvailable, QueryCanceled  # noqa: F401

PATIENCE = 30       # seconds; a busy machine takes longer than one would think


def connect(conninfo='', **more):
    return driver.connect(conninfo, **{'application_name': 'work', **more})


def execute(connection, statement, *values):
    """The rows, if there are any."""
    cursor = connection.cursor()
    cursor.execute(statement, values)
    return cursor.fetchall() if cursor.description else []


def wait_until(what, condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f'gave up waiting until {what}')
        time.sleep(0.01)


class Case(unittest.TestCase):
    """Has an Advisory, a namespace of its own, and a session that looks from outside."""

    def setUp(self):
        self.advisory = advisory_ext.Advisory(connect)
        self.namespace = self.id()
        self.look = connect(application_name='look')
        self.look.autocommit = True
        self.addCleanup(self.look.close)

    def ask(self, statement, *values):
        return execute(self.look, statement, *values)[0][0]

    def is_locked(self, name):
        return self.ask('SELECT advisory.is_locked(%s, %s)', self.namespace, name)

    def waiters(self, application='work'):
        """Their processes."""
        return [pid for pid, in execute(
            self.look, 'SELECT pid FROM pg_stat_activity '
            'WHERE application_name = %s AND datname = current_database() '
            "AND (wait_event_type = 'Lock' "
            "OR state = 'active' AND query LIKE 'CALL advisory.await_%%')", application)]

    def in_thread(self, function):
        """Runs it beside the test. Returns a function that waits for what it returns or raises."""
        outcome = {}

        def run():
            try:
                outcome['value'] = function()
            except BaseException as error:
                outcome['error'] = error

        thread = threading.Thread(target=run, daemon=True)
        thread.start()

        def result():
            thread.join(PATIENCE)
            self.assertFalse(thread.is_alive(), 'it does not end')
            if 'error' in outcome:
                raise outcome['error']
            return outcome['value']

        result.is_running = thread.is_alive
        return result

    def program(self, text):
        """Another process that has advisory, connect and more; its output are lines."""
        process = subprocess.Popen(
            [sys.executable, '-u', '-c',
             f'from support import *\nadvisory = advisory_ext.Advisory(connect)\n{text}'],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            cwd=os.path.dirname(os.path.abspath(__file__)),
            # Whoever runs the tests in the background lets them ignore Ctrl-C.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))

        def stop():
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.communicate()

        self.addCleanup(stop)
        return process

    def interrupt(self, process):
        """Ctrl-C; after a while once more, as people do, since Python loses one that comes in a
        destructor. Returns its output.
        """
        process.send_signal(signal.SIGINT)
        try:
            return process.communicate(timeout=PATIENCE / 3)[0]
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            return process.communicate(timeout=PATIENCE)[0]


class Proxy:
    """Passes on what comes for a server, until it is frozen: then the connections stay open, and
    nothing comes through.
    """

    def __init__(self, host, port):
        self._server = (host, port)
        self._frozen = set()                    # sockets
        self._peers = {}
        self._freezes_new_ones = False
        self._is_closed = False
        self._listener = socket.create_server(('127.0.0.1', 0))
        self.port = self._listener.getsockname()[1]
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def freeze(self, new_ones_too):
        self._freezes_new_ones = new_ones_too
        self._frozen.update(self._peers)

    def close(self):
        self._is_closed = True
        self._thread.join()
        for one in (self._listener, *self._peers):
            one.close()

    def _run(self):
        while not self._is_closed:
            for key, _ in self._selector.select(0.1):
                if key.fileobj is self._listener:
                    self._accept()
                elif key.fileobj in self._frozen:
                    self._selector.unregister(key.fileobj)
                else:
                    self._pass_on(key.fileobj)

    def _accept(self):
        client, _ = self._listener.accept()
        host, port = self._server
        if host.startswith('/'):
            server = socket.socket(socket.AF_UNIX)
            server.connect(f'{host}/.s.PGSQL.{port}')
        else:
            server = socket.create_connection((host, port))
        self._peers.update({client: server, server: client})
        for one in (client, server):
            self._selector.register(one, selectors.EVENT_READ)
            if self._freezes_new_ones:
                self._frozen.add(one)

    def _pass_on(self, source):
        peer = self._peers[source]
        try:
            data = source.recv(65536)
            if data and peer not in self._frozen:
                peer.sendall(data)
                return
        except OSError:
            pass
        for one in (source, peer):
            if one in self._selector.get_map():
                self._selector.unregister(one)
            self._peers.pop(one, None)
            one.close()
