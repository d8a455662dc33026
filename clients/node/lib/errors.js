'use strict';

// What this package raises. Every other error is the driver's or the work's own, and comes through
// unchanged.
class AdvisoryError extends Error {
    constructor(message, [namespace, name] = [], cause = undefined) {
        super(message, cause === undefined ? undefined : { cause });
        this.namespace = namespace;
        this.lockName = name;           // name is the name of the class
    }

    get name() { return this.constructor.name; }
}

// Somebody else has it, for as long as we were willing to wait.
//
// holder: { pid, role, application, text }; remedy: the statement that ends the holder, or null.
class NotAvailable extends AdvisoryError {}

// The work is done, but the lock was not held until its end: somebody else may have worked at the
// same time.
class LockLost extends AdvisoryError {}

// Somebody else may have the lease: the work has to stop, and what it did last may have to be
// undone.
class LeaseLost extends AdvisoryError {}

// A session-level lock behind a pooler that gives each transaction another session.
class TransactionPooler extends AdvisoryError {}

// Whoever holds it comes first in DETAIL, and after that those who wait. A line for each. An
// application may have a name that looks like the rest of its line, so the last one counts.
const LINE = new RegExp(String.raw`^Process (\d+)(?: of role "(.*?)")?(?:, application "(.*)",)?`
    + ' (?:(waits)|holds|has) ', 'gm');

const REMEDY = new RegExp(String.raw`(?:: (SELECT advisory\.terminate_holder.*)`
    + String.raw`| COMMIT PREPARED (.*) or (ROLLBACK PREPARED \2))\.$`, 's');

// A driver's error of a call that takes something: NotAvailable if it is that, else the same error.
function asNotAvailable(error, message = error.message) {
    if (error.code !== '55P03' || error.schema === undefined || error.constraint === undefined) {
        return error;
    }
    const text = error.detail ?? '';
    const [, pid, role = null, app = null] = [...text.matchAll(LINE)].find((it) => !it[4]) ?? [];
    const [, end, , rollback] = (error.hint ?? '').match(REMEDY) ?? [];
    return Object.assign(new NotAvailable(message, [error.schema, error.constraint], error), {
        holder: { pid: pid === undefined ? null : Number(pid), role, application: app, text },
        remedy: end ?? rollback ?? null,
    });
}

module.exports = {
    AdvisoryError, NotAvailable, LockLost, LeaseLost, TransactionPooler, asNotAvailable,
};
