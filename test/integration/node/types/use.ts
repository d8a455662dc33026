// Calls of clients/node as its types allow them, and some that they refuse. client_node.t compiles
// this.
import { Pool, PoolClient } from 'pg';
import { Advisory, AdvisoryError, LeaseLost, NotAvailable, key } from 'advisory-ext';

const advisory = new Advisory(new Pool());
const own: bigint = key('a', 'b');

async function main(): Promise<void> {
    const paid: number = await advisory.withLock('a', 1, {
        timeout: '5s', shared: true,
    }, async (client) => {
        const { rows } = await client.query<{ n: number }>('SELECT 1 AS n');
        return rows[0].n;
    });
    const slot: number = await advisory.withSlot(
        'a', 'b', 3, async (client: PoolClient, slot) => slot);
    const token: bigint = await advisory.withLease('a', 'b', {
        ttl: 1000, timeout: null,
    }, (lease, signal) => {
        signal.throwIfAborted();
        lease.check();
        return lease.token;
    });
    const leased: number = await advisory.withSlot('a', 'b', 3, {
        ttl: '30s', maxHold: '1 hour', owner: 'me',
    }, (lease, signal) => signal.aborted ? 0 : lease.slot);
    const day: Date | null = await advisory.claim('a', 'b', '1 day', { timeZone: 'UTC' });
    // @ts-expect-error a lease needs its TTL
    await advisory.withLease('a', 'b', {}, () => {});
    // @ts-expect-error a slot with a TTL has no scope
    await advisory.withSlot('a', 'b', 3, { ttl: '30s', scope: 'session' }, () => {});
    // @ts-expect-error there is no such option
    await advisory.withLock('a', 'b', { timout: 5 }, () => {});
    // @ts-expect-error nor such a scope
    await advisory.withLock('a', 'b', { scope: 'sessions' }, () => {});
    console.log(own, paid, slot, token, leased, day);
}

main().catch((error: unknown) => {
    if (error instanceof NotAvailable) console.log(error.holder.pid, error.remedy, error.lockName);
    else if (error instanceof LeaseLost || error instanceof AdvisoryError) console.log(error.cause);
});
