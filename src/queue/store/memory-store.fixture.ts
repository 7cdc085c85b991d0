/** A job in a queue of the store, as BullMQ keeps it. */
interface Waiting {
  readonly id: string;
  readonly priority: number;
  readonly order: number;
}

/** The keys that BullMQ keeps for a queue besides the hashes of its jobs. */
interface QueueLists {
  /** Taken first, the last one before the others. */
  readonly wait: string[];
  prioritized: Waiting[];
  active: string[];
  stalled: Set<string>;
  checkedUntilMs: number;
}

/** An event of a queue. */
export type QueueEvent =
  | { readonly event: "active"; readonly jobId: string }
  | { readonly event: "completed"; readonly jobId: string; readonly returnvalue: string };

/** A new job of a queue. */
export interface NewJob {
  readonly name: string;
  readonly data: unknown;
  readonly opts: { readonly jobId: string; readonly priority: number };
}

/** A job as the worker that takes it receives it. */
export interface TakenJob {
  readonly id: string;
  readonly data: string;
  readonly attemptsStarted: number;
}

/** BullMQ's codes for the refusals of its scripts. */
const refused = { missingJob: -1, missingLock: -2, notActive: -3, otherLock: -6 } as const;

/**
 * A store in memory: the commands of Redis that a queue needs, and the scripts of BullMQ. Each runs
 * in one step. `memory-store.test.ts` compares it with a real one.
 */
export class MemoryStore {
  readonly #now: () => number;
  readonly #texts = new Map<string, { readonly value: string; readonly dueMs: number }>();
  readonly #hashes = new Map<string, Map<string, string>>();
  readonly #sets = new Map<string, Set<string>>();
  readonly #queues = new Map<string, QueueLists>();
  readonly #listeners = new Set<(channel: string, text: string) => void>();
  readonly #watchers = new Map<string, Set<(event: QueueEvent) => void>>();
  #orderCount = 0;
  /** The store is unreachable until then. */
  awayUntilMs = 0;
  /** It refuses writes until then. */
  refusesUntilMs = 0;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Deletes all data, as after a crash without a disk. */
  lose(): void {
    for (const kept of [this.#texts, this.#hashes, this.#sets, this.#queues]) kept.clear();
  }

  /** The names of all keys, in order. */
  get keys(): readonly string[] {
    const texts = [...this.#texts.keys()].filter((key) => this.get(key) !== null);
    const queues = [...this.#queues].flatMap(([base, { active, prioritized, wait }]) =>
      active.length + prioritized.length + wait.length === 0 ? [] : [base],
    );
    return [...texts, ...this.#hashes.keys(), ...this.#sets.keys(), ...queues].toSorted();
  }

  /** True while the store accepts writes; false as if it could not write to its disk. */
  get isWritable(): boolean {
    return this.#now() >= this.refusesUntilMs;
  }

  get(key: string): string | null {
    const found = this.#texts.get(key);
    if (found === undefined) return null;
    if (found.dueMs > this.#now()) return found.value;
    this.#texts.delete(key);
    return null;
  }

  set(key: string, value: string, livesMs = Infinity): "OK" {
    this.#texts.set(key, { value, dueMs: this.#now() + livesMs });
    return "OK";
  }

  /** See `holdScript`. */
  hold(key: string, token: string, livesMs: number): 0 | 1 {
    if ((this.get(key) ?? token) !== token) return 0;
    this.set(key, token, livesMs);
    return 1;
  }

  del(...keys: readonly string[]): number {
    let count = 0;
    for (const key of keys) {
      const kept = [this.#texts, this.#hashes, this.#sets];
      if (kept.some((map) => map.has(key))) count += 1;
      for (const map of kept) map.delete(key);
    }
    return count;
  }

  hset(key: string, field: string, value: string | number): number {
    const hash = this.#hashes.get(key) ?? new Map<string, string>();
    this.#hashes.set(key, hash);
    const isNew = !hash.has(field);
    hash.set(field, String(value));
    return isNew ? 1 : 0;
  }

  hget(key: string, field: string): string | null {
    return this.#hashes.get(key)?.get(field) ?? null;
  }

  hmget(key: string, ...fields: readonly string[]): readonly (string | null)[] {
    return fields.map((field) => this.hget(key, field));
  }

  hgetall(key: string): Record<string, string> {
    return Object.fromEntries(this.#hashes.get(key) ?? []);
  }

  hexists(key: string, field: string): number {
    return this.hget(key, field) === null ? 0 : 1;
  }

  hdel(key: string, ...fields: readonly string[]): number {
    const hash = this.#hashes.get(key);
    const count = fields.filter((field) => hash?.delete(field) === true).length;
    if (hash?.size === 0) this.#hashes.delete(key);
    return count;
  }

  sadd(key: string, ...members: readonly string[]): number {
    const set = this.#sets.get(key) ?? new Set<string>();
    this.#sets.set(key, set);
    const before = set.size;
    for (const member of members) set.add(member);
    return set.size - before;
  }

  srem(key: string, ...members: readonly string[]): number {
    const set = this.#sets.get(key);
    const count = members.filter((member) => set?.delete(member) === true).length;
    if (set?.size === 0) this.#sets.delete(key);
    return count;
  }

  smismember(key: string, ...members: readonly string[]): readonly number[] {
    return members.map((member) => (this.#sets.get(key)?.has(member) === true ? 1 : 0));
  }

  publish(channel: string, text: string): number {
    for (const listener of Array.from(this.#listeners)) listener(channel, text);
    return this.#listeners.size;
  }

  /** Subscribes to published messages; returns a function that ends the subscription. */
  subscribe(listener: (channel: string, text: string) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Subscribes to the events of a queue; returns a function that ends the subscription. */
  watch(base: string, watcher: (event: QueueEvent) => void): () => void {
    const watchers = this.#watchers.get(base) ?? new Set();
    this.#watchers.set(base, watchers);
    watchers.add(watcher);
    return () => void watchers.delete(watcher);
  }

  // The rest are BullMQ's scripts. `base` is the prefix of a queue's keys.

  /** A job that is there already stays as it is. */
  addJob(base: string, { name, data, opts }: NewJob): string {
    const { jobId, priority } = opts;
    const key = `${base}:${jobId}`;
    if (this.#hashes.has(key)) return jobId;
    this.hset(key, "name", name);
    this.hset(key, "data", JSON.stringify(data));
    this.hset(key, "priority", priority);
    this.#enqueue(base, jobId, priority);
    return jobId;
  }

  /** Removes an unlocked job; returns 0 if it is locked. */
  removeJob(base: string, id: string): 0 | 1 {
    if (this.get(`${base}:${id}:lock`) !== null) return 0;
    this.#dropJob(base, id);
    return 1;
  }

  changePriority(base: string, id: string, priority: number): void {
    const key = `${base}:${id}`;
    if (!this.#hashes.has(key)) throw codeError(refused.missingJob, `Missing key for job ${id}`);
    const lists = this.#listsOf(base);
    const isPrioritized = lists.prioritized.some((waiting) => waiting.id === id);
    const isWaiting = lists.wait.includes(id);
    this.#unlist(lists, id, { fromActive: false });
    if (isPrioritized || isWaiting) this.#enqueue(base, id, priority);
    this.hset(key, "priority", priority);
  }

  /** Takes the next job, and locks it. */
  takeJob(
    base: string,
    { token, lockMs }: { readonly token: string; readonly lockMs: number },
  ): TakenJob | undefined {
    const lists = this.#listsOf(base);
    const id = lists.wait.pop() ?? lists.prioritized.shift()?.id;
    if (id === undefined) return undefined;
    lists.active.unshift(id);
    const key = `${base}:${id}`;
    this.set(`${key}:lock`, token, lockMs);
    this.#tell(base, { event: "active", jobId: id });
    const attemptsStarted = Number(this.hget(key, "ats")) + 1;
    this.hset(key, "ats", attemptsStarted);
    return { id, data: this.hget(key, "data") ?? "{}", attemptsStarted };
  }

  /** Renews locks; returns the jobs that are locked by another owner or by none. */
  extendLocks(
    base: string,
    ids: readonly string[],
    { tokens, lockMs }: { readonly tokens: readonly string[]; readonly lockMs: number },
  ): readonly string[] {
    return ids.filter((id, index) => {
      const key = `${base}:${id}:lock`;
      if (this.get(key) !== tokens[index]) return true;
      this.set(key, tokens[index], lockMs);
      this.#listsOf(base).stalled.delete(id);
      return false;
    });
  }

  /** Ends a job with its result, as the owner of its lock. */
  completeJob(base: string, id: string, { token, value }: { token: string; value: unknown }): void {
    this.#unlock(base, id, token);
    const lists = this.#listsOf(base);
    if (!lists.active.includes(id)) throw codeError(refused.notActive, `Job ${id} is not active`);
    lists.active = lists.active.filter((active) => active !== id);
    const returnvalue = JSON.stringify(value);
    this.hset(`${base}:${id}`, "returnvalue", returnvalue);
    this.hset(`${base}:${id}`, "finishedOn", this.#now());
    this.#tell(base, { event: "completed", jobId: id, returnvalue });
  }

  /** Gives a job back, before all others of its priority. */
  returnJob(base: string, id: string, token: string): void {
    this.#unlock(base, id, token);
    const lists = this.#listsOf(base);
    if (!lists.active.includes(id)) return;
    lists.active = lists.active.filter((active) => active !== id);
    const priority = Number(this.hget(`${base}:${id}`, "priority"));
    if (priority === 0) lists.wait.push(id);
    else this.#insert(lists, { id, priority, order: -(this.#orderCount += 1) });
  }

  /** Requeues jobs that were seen twice without a lock. */
  returnStalled(base: string, checkMs: number): readonly string[] {
    const lists = this.#listsOf(base);
    if (this.#now() < lists.checkedUntilMs) return [];
    lists.checkedUntilMs = this.#now() + checkMs;
    const returned: string[] = [];
    for (const id of lists.stalled) {
      if (this.get(`${base}:${id}:lock`) !== null || !lists.active.includes(id)) continue;
      lists.active = lists.active.filter((active) => active !== id);
      this.hset(`${base}:${id}`, "stc", Number(this.hget(`${base}:${id}`, "stc")) + 1);
      lists.wait.push(id);
      returned.push(id);
    }
    lists.stalled = new Set(lists.active);
    return returned;
  }

  /** Takes a queue away with all of its jobs. */
  obliterate(base: string): void {
    for (const key of Array.from(this.#hashes.keys())) {
      if (!key.startsWith(`${base}:`)) continue;
      this.#hashes.delete(key);
      this.del(`${key}:lock`);
    }
    this.#queues.delete(base);
  }

  #unlock(base: string, id: string, token: string): void {
    if (!this.#hashes.has(`${base}:${id}`)) {
      throw codeError(refused.missingJob, `Missing key for job ${id}`);
    }
    const key = `${base}:${id}:lock`;
    const held = this.get(key);
    if (held === null) throw codeError(refused.missingLock, `Missing lock for job ${id}`);
    if (held !== token) throw codeError(refused.otherLock, `Lock mismatch for job ${id}`);
    this.del(key);
    this.#listsOf(base).stalled.delete(id);
  }

  #dropJob(base: string, id: string): void {
    this.#hashes.delete(`${base}:${id}`);
    this.#unlist(this.#listsOf(base), id, { fromActive: true });
  }

  #unlist(lists: QueueLists, id: string, { fromActive }: { readonly fromActive: boolean }): void {
    if (lists.wait.includes(id)) lists.wait.splice(lists.wait.indexOf(id), 1);
    lists.prioritized = lists.prioritized.filter((waiting) => waiting.id !== id);
    if (fromActive) lists.active = lists.active.filter((active) => active !== id);
  }

  #enqueue(base: string, id: string, priority: number): void {
    const lists = this.#listsOf(base);
    if (priority === 0) lists.wait.unshift(id);
    else this.#insert(lists, { id, priority, order: (this.#orderCount += 1) });
  }

  #insert(lists: QueueLists, waiting: Waiting): void {
    lists.prioritized = [...lists.prioritized, waiting].toSorted(
      (one, other) => one.priority - other.priority || one.order - other.order,
    );
  }

  #listsOf(base: string): QueueLists {
    let lists = this.#queues.get(base);
    if (lists === undefined) {
      lists = { wait: [], prioritized: [], active: [], stalled: new Set(), checkedUntilMs: 0 };
      this.#queues.set(base, lists);
    }
    return lists;
  }

  #tell(base: string, event: QueueEvent): void {
    for (const watcher of this.#watchers.get(base) ?? []) watcher(event);
  }
}

function codeError(code: number, message: string): Error {
  return Object.assign(new Error(message), { code });
}
