import type { PoolClient } from 'pg';

/** Milliseconds, or a string with a unit as PostgreSQL reads it: `'5s'`, `'2 min'`. */
export type Time = number | string;

export type Name = string | number | bigint;

/** What `new Advisory()` needs of a pool: a `pg.Pool` has it. */
export interface Connectable {
    connect(): Promise<PoolClient>;
}

export interface WaitOptions {
    /** How long to wait; `null`: without limit. Default 0: not at all. */
    timeout?: Time | null;
}

export interface SlotOptions extends WaitOptions {
    /** Until the transaction ends (default), or without a transaction. */
    scope?: 'transaction' | 'session';
}

export interface LockOptions extends SlotOptions {
    /** Several may hold it in shared mode at the same time. */
    shared?: boolean;
}

export interface LeaseSlotOptions extends WaitOptions {
    /** How long the lease outlives its last renewal. */
    ttl: Time;
    /** How the view `advisory.leases` calls the owner. */
    owner?: string | null;
    /** How long it may be renewed at all; `null`: without limit (default). */
    maxHold?: Time | null;
}

export interface LeaseOptions extends LeaseSlotOptions {
    /** How long nobody gets a lease that has expired. */
    lockDelay?: Time;
}

export interface ClaimOptions {
    /** The window that begins at this time; default: the present one. */
    windowStart?: Date | string | null;
    /** Days begin at midnight there, as in `'America/New_York'`. */
    timeZone?: string | null;
    /** Claims in the transaction of this client. */
    client?: { query: PoolClient['query'] } | null;
}

export interface Lease {
    /** Greater than those of all earlier holders. */
    readonly token: bigint;
    readonly expiresAt: Date;
    /** Throws LeaseLost if it is lost. */
    check(): void;
}

/** A lease that has one of several slots. */
export interface LeaseSlot extends Lease {
    /** From 1 on. */
    readonly slot: number;
}

export interface Holder {
    pid: number | null;
    role: string | null;
    application: string | null;
    /** What the server says of all that hold it or wait for it. */
    text: string;
}

/** The key of a name, as `advisory.key()` computes it on the server. */
export function key(name: Name): bigint;
export function key(namespace: Name, name: Name): bigint;

export class Advisory {
    constructor(pool: Connectable);

    withLock<T>(namespace: Name, name: Name,
        work: (client: PoolClient) => T | Promise<T>): Promise<T>;
    withLock<T>(namespace: Name, name: Name, options: LockOptions,
        work: (client: PoolClient) => T | Promise<T>): Promise<T>;

    withSlot<T>(namespace: Name, name: Name, slots: number,
        work: (client: PoolClient, slot: number) => T | Promise<T>): Promise<T>;
    withSlot<T>(namespace: Name, name: Name, slots: number, options: SlotOptions,
        work: (client: PoolClient, slot: number) => T | Promise<T>): Promise<T>;

    /** With a `ttl`, the slot outlives the session, as a lease does. */
    withSlot<T>(namespace: Name, name: Name, slots: number, options: LeaseSlotOptions,
        work: (lease: LeaseSlot, signal: AbortSignal) => T | Promise<T>): Promise<T>;

    withLease<T>(namespace: Name, name: Name, options: LeaseOptions,
        work: (lease: Lease, signal: AbortSignal) => T | Promise<T>): Promise<T>;

    claim(namespace: Name, name: Name, every: Time, options?: ClaimOptions): Promise<Date | null>;
}

export class AdvisoryError extends Error {
    readonly namespace: string | undefined;
    /** The name of the lock, semaphore or lease. */
    readonly lockName: string | undefined;
    readonly cause?: unknown;
}

export class NotAvailable extends AdvisoryError {
    readonly holder: Holder;
    /** The statement that ends the holder, if there is one. */
    readonly remedy: string | null;
}

export class LockLost extends AdvisoryError {}
export class LeaseLost extends AdvisoryError {}
export class TransactionPooler extends AdvisoryError {}
