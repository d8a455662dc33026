"""Named locks, semaphores, leases and claims of advisory_ext, for psycopg 3 and psycopg2. README.md
has an example of each.
"""

from ._advisory import Advisory
from ._errors import AdvisoryError, Holder, LeaseLost, LockLost, NotAvailable, TransactionPooler
from ._lease import Lease
from ._values import key

__all__ = [
    'Advisory', 'AdvisoryError', 'Holder', 'Lease', 'LeaseLost', 'LockLost', 'NotAvailable',
    'TransactionPooler', 'key']

for _error in (AdvisoryError, LeaseLost, LockLost, NotAvailable, TransactionPooler):
    _error.__module__ = __name__            # as tracebacks show them
