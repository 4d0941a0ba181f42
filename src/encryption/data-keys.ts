import { createSecretKey, randomBytes } from 'node:crypto';
import { assert } from '../domain/assert.js';
import type { Sql } from '../persistence/database.js';
import { monotonicMs, wallMs } from '../platform/clock.js';
import { newUuid } from '../platform/ids.js';
import { findDataKeyOfMonth, findDataKeys, insertDataKey, type DataKeyRow } from './data-key.store.js';
import type { KeyEncryption } from './key-encryption.js';
import type { KeyRing, RingKey } from './key-ring.js';
import { KeyFileBehind } from './key-file-behind.js';
import { DataKeyDeleted, UnknownKey } from './unreadable.js';

/** Where a cipher finds its keys. */
export interface SealingKeys {
  /** The key that seals for this tenant now. @throws faults of storage, KeyFileBehind among them. */
  current(tenant: string): Promise<RingKey>;
  /** The key of this id. @throws UnknownKey, DataKeyDeleted when there is none for this tenant. */
  find(tenant: string, keyId: string): Promise<RingKey>;
}

export interface DataKeysParts {
  /** Wraps and unwraps what the database stores. */
  readonly kek: KeyEncryption;
  /** Keys of rows that were sealed under the key file itself, before there were data keys. */
  readonly direct: KeyRing;
  /** The way to one tenant's keys. One object for several tenants joins their reads into one statement. */
  readonly sqlOf: (tenant: string) => Sql;
  /** This host's key file is behind: nothing can be sealed until it is brought up to date. Must not throw. */
  readonly onKeyFileBehind?: (fault: KeyFileBehind) => void;
  readonly wallMs?: () => number;
  readonly monotonicMs?: () => number;
}

/** Ids of data keys; ids of the key file never hold an underscore. */
const DATA_KEY = /^dk_/;
/** Keys in memory at once; past it the one that was read longest ago goes. */
const CACHE_SIZE = 8_192;
/** Older than this, a key is read again beside its use, so that a deleted one leaves memory (ms). */
const FRESH_MS = 60_000;
/** Older than this, a key is not used before it was read again (ms). */
const LIFE_MS = 300_000;
/** Keys read by one statement. */
const BATCH = 500;
/** A data key is wrapped again when its key was retired meanwhile; more than once takes two rotations at once. */
const MOST_WRAPS = 3;

interface Cached {
  readonly key: RingKey;
  readonly loadedAtMs: number;
}

interface Wanted {
  readonly tenant: string;
  readonly id: string;
  readonly resolve: (row: DataKeyRow | null) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * One data key per tenant and month, made on first use, unwrapped once and kept in memory for minutes:
 * what is cached costs no round trip, and misses of one turn of the event loop share a statement.
 * Processes that make a month's key at once agree on the one that was committed first.
 */
export class DataKeys implements SealingKeys {
  readonly #cache = new Map<string, Cached>();
  readonly #loading = new Map<string, Promise<RingKey>>();
  #wanted: Wanted[] = [];
  readonly #wallMs: () => number;
  readonly #monotonicMs: () => number;

  constructor(private readonly parts: DataKeysParts) {
    this.#wallMs = parts.wallMs ?? wallMs;
    this.#monotonicMs = parts.monotonicMs ?? monotonicMs;
  }

  /**
   * The tenant's key of this month on this machine's clock; which month it is only limits how much one
   * key seals. @throws faults of storage, KeyFileBehind among them; NotAuthentic when its row does not unwrap.
   */
  current(tenant: string): Promise<RingKey> {
    const month = new Date(this.#wallMs()).toISOString().slice(0, 7);
    return this.#through(`month ${month} ${tenant}`, async () => {
      try {
        return await this.#ofMonth(tenant, month);
      } catch (error) {
        if (error instanceof KeyFileBehind) this.parts.onKeyFileBehind?.(error);
        throw error;
      }
    });
  }

  find(tenant: string, keyId: string): Promise<RingKey> {
    if (!DATA_KEY.test(keyId)) return Promise.resolve().then(() => this.parts.direct.find(keyId));
    return this.#through(`id ${keyId} ${tenant}`, async () => {
      const row = await this.#read(tenant, keyId);
      // Another tenant's key opens nothing here, whatever a moved row names.
      if (row === null || row.tenant_id !== tenant) throw new DataKeyDeleted();
      return this.#unwrapped(row);
    });
  }

  /** From memory, else by `load`; callers of one name share its load. */
  #through(name: string, load: () => Promise<RingKey>): Promise<RingKey> {
    const hit = this.#cache.get(name);
    const ageMs = hit === undefined ? Infinity : this.#monotonicMs() - hit.loadedAtMs;
    if (hit !== undefined && ageMs < FRESH_MS) return Promise.resolve(hit.key);
    const loading = this.#loading.get(name) ?? this.#load(name, load);
    if (hit === undefined || ageMs >= LIFE_MS) return loading;
    // Whoever uses it when its life is over hears of the fault.
    loading.catch(() => undefined);
    return Promise.resolve(hit.key);
  }

  #load(name: string, load: () => Promise<RingKey>): Promise<RingKey> {
    const loading = load()
      .then((key) => {
        this.#keep(name, key);
        return key;
      })
      .catch((error: unknown) => {
        if (error instanceof DataKeyDeleted) this.#cache.delete(name);
        throw error;
      })
      .finally(() => this.#loading.delete(name));
    this.#loading.set(name, loading);
    return loading;
  }

  #keep(name: string, key: RingKey): void {
    this.#cache.delete(name);
    this.#cache.set(name, { key, loadedAtMs: this.#monotonicMs() });
    if (this.#cache.size <= CACHE_SIZE) return;
    for (const oldest of this.#cache.keys()) {
      this.#cache.delete(oldest);
      return;
    }
  }

  async #ofMonth(tenant: string, month: string): Promise<RingKey> {
    const sql = this.parts.sqlOf(tenant);
    const found = await findDataKeyOfMonth(sql, tenant, month);
    if (found) return this.#forSealing(found);
    await this.#make(sql, tenant, month);
    // Ours, or that of whoever was first: what is committed counts, and what is read back opens.
    const stored = await findDataKeyOfMonth(sql, tenant, month);
    if (!stored) throw new DataKeyDeleted();
    return this.#forSealing(stored);
  }

  /** A rotation may retire the key that wraps here before this process has heard of the next one. */
  async #make(sql: Sql, tenant: string, month: string): Promise<void> {
    const { kek } = this.parts;
    const place = { id: `dk_${newUuid(this.#wallMs())}`, tenant, month };
    for (let wraps = 1; ; wraps++) {
      const { kekId, wrapped } = await kek.wrap(place, randomBytes(32));
      const row = { id: place.id, tenant_id: tenant, month, wrapped, kek_id: kekId };
      if ((await insertDataKey(sql, row)) === 'stored') return;
      await kek.refresh();
      if (kek.activeId === kekId || wraps === MOST_WRAPS) throw new KeyFileBehind('retired', kekId);
    }
  }

  /** Of a row that another host made or wrapped again with a key that this one was not given yet. */
  async #forSealing(row: DataKeyRow): Promise<RingKey> {
    try {
      return await this.#unwrapped(row);
    } catch (error) {
      if (!(error instanceof UnknownKey)) throw error;
      throw new KeyFileBehind('missing', row.kek_id, { cause: error });
    }
  }

  async #unwrapped(row: DataKeyRow): Promise<RingKey> {
    const { id, tenant_id: tenant, month, kek_id: kekId, wrapped } = row;
    const bytes = await this.parts.kek.unwrap({ id, tenant, month }, { kekId, wrapped });
    assert(bytes.length === 32, `data key ${id} has 32 bytes`);
    const key = createSecretKey(bytes);
    bytes.fill(0);
    return Object.freeze({ id, key });
  }

  #read(tenant: string, id: string): Promise<DataKeyRow | null> {
    return new Promise((resolve, reject) => {
      if (this.#wanted.push({ tenant, id, resolve, reject }) > 1) return;
      setImmediate(() => {
        const wanted = this.#wanted;
        this.#wanted = [];
        const ways = new Map(wanted.map((one) => [one.tenant, this.parts.sqlOf(one.tenant)]));
        for (const [sql, some] of Map.groupBy(wanted, (one) => ways.get(one.tenant) as Sql)) {
          for (let at = 0; at < some.length; at += BATCH) void answer(sql, some.slice(at, at + BATCH));
        }
      });
    });
  }
}

async function answer(sql: Sql, wanted: readonly Wanted[]): Promise<void> {
  try {
    const rows = await findDataKeys(
      sql,
      wanted.map((one) => one.id),
    );
    const byId = new Map(rows.map((row) => [row.id, row]));
    for (const one of wanted) one.resolve(byId.get(one.id) ?? null);
  } catch (error) {
    for (const one of wanted) one.reject(error);
  }
}
