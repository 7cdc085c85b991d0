/** A job that waits for a worker. */
interface WaitingJob {
  readonly id: string;
  readonly priority: number;
  /** The job's rank among jobs of the same priority. Lower ranks are taken first. */
  readonly order: number;
}

/** The lists of a run's jobs. The jobs themselves are hashes. */
interface JobLists {
  /** Jobs that lost their worker. They are taken first, from the end. */
  readonly wait: string[];
  /** Sorted by priority and order. */
  readonly prioritized: WaitingJob[];
  readonly active: Set<string>;
  /** Active jobs that the last check for lost workers has seen. */
  stalled: Set<string>;
  checkedUntilMs: number;
}

/** A change of a job that the hand-out is notified about. */
export type JobEvent =
  | { readonly event: "active"; readonly jobId: string }
  | { readonly event: "completed"; readonly jobId: string; readonly returnvalue: string };

/** A job to add. JSON-able. */
export interface NewJob {
  readonly name: string;
  readonly data: unknown;
  readonly opts: { readonly jobId: string; readonly priority: number };
}

/** A job that a worker has taken. JSON-able. */
export interface TakenJob {
  readonly id: string;
  /** The job's data as JSON. */
  readonly data: string;
  readonly attemptsStarted: number;
}

/** BullMQ's codes for the calls that its scripts refuse. */
const refused = { missingJob: -1, missingLock: -2, notActive: -3, otherLock: -6 } as const;

/**
 * The queue's store in the memory of the hand-out's process. It has the commands of Redis and the
 * scripts of BullMQ that a queue needs; each is atomic. `local-store.test.ts` checks it and a real
 * store for the same behaviour.
 */
export class LocalStore {
  readonly #now: () => number;
  readonly #wallNow: () => number;
  readonly #texts = new Map<string, { readonly value: string; readonly dueMs: number }>();
  readonly #hashes = new Map<string, Map<string, string>>();
  readonly #sets = new Map<string, Set<string>>();
  readonly #jobs = new Map<string, JobLists>();
  readonly #listeners = new Set<(channel: string, text: string) => void>();
  readonly #watchers = new Map<string, Set<(event: JobEvent) => void>>();
  #orderCount = 0;

  /** @param clock - `now` never decreases; `wallNow` is in milliseconds since the epoch. */
  constructor(clock: { readonly now: () => number; readonly wallNow: () => number }) {
    this.#now = clock.now;
    this.#wallNow = clock.wallNow;
  }

  /** Removes all keys. */
  clear(): void {
    for (const kept of [this.#texts, this.#hashes, this.#sets, this.#jobs]) kept.clear();
  }

  /** The names of all keys, sorted. */
  get keys(): readonly string[] {
    const texts = [...this.#texts.keys()].filter((key) => this.get(key) !== null);
    const jobs = [...this.#jobs].flatMap(([base, { active, prioritized, wait }]) =>
      active.size + prioritized.length + wait.length === 0 ? [] : [base],
    );
    return [...texts, ...this.#hashes.keys(), ...this.#sets.keys(), ...jobs].toSorted();
  }

  /** Returns the wall-clock time as Redis does: seconds and microseconds. */
  time(): readonly [seconds: string, microseconds: string] {
    const ms = this.#wallNow();
    return [String(Math.floor(ms / 1_000)), String(Math.floor((ms % 1_000) * 1_000))];
  }

  get(key: string): string | null {
    const found = this.#texts.get(key);
    if (found === undefined) return null;
    if (found.dueMs > this.#now()) return found.value;
    this.#texts.delete(key);
    return null;
  }

  mget(keys: readonly string[]): readonly (string | null)[] {
    return keys.map((key) => this.get(key));
  }

  exists(key: string): 0 | 1 {
    return this.get(key) === null ? 0 : 1;
  }

  /**
   * Sets a key.
   * @param options - `livesMs` is the lifetime in milliseconds. Default: unlimited. `isRenewal`:
   *   sets the key only if it exists.
   */
  set(
    key: string,
    value: string,
    {
      livesMs,
      isRenewal = false,
    }: { readonly livesMs?: number; readonly isRenewal?: boolean } = {},
  ): "OK" | null {
    if (isRenewal && this.get(key) === null) return null;
    this.#texts.set(key, { value, dueMs: this.#now() + (livesMs ?? Infinity) });
    return "OK";
  }

  /** See `holdScript`. */
  hold(key: string, token: string, livesMs: number): 0 | 1 {
    if ((this.get(key) ?? token) !== token) return 0;
    this.set(key, token, { livesMs });
    return 1;
  }

  /** See `leaveScript`. */
  leave(key: string, token: string): number {
    return this.get(key) === token ? this.del(key) : 0;
  }

  /** See `takeOutScript`. */
  takeOut(key: string, aliveKeys: readonly string[], workers: readonly string[]): number {
    const dead = workers.filter((_, index) => this.get(aliveKeys[index]!) === null);
    this.hdel(key, ...dead);
    return dead.length;
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

  /** Calls the listener with each notification. Returns a function that removes the listener. */
  subscribe(listener: (channel: string, text: string) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Calls the watcher with each change of a run's jobs. Returns a function that removes the watcher. */
  watch(base: string, watcher: (event: JobEvent) => void): () => void {
    const watchers = this.#watchers.get(base) ?? new Set();
    this.#watchers.set(base, watchers);
    watchers.add(watcher);
    return () => void watchers.delete(watcher);
  }

  // The scripts of BullMQ. `base` is the prefix of the names of a run's jobs.

  /** Adds jobs. A job that already exists is not changed. */
  addJobs(base: string, jobs: readonly NewJob[]): void {
    for (const { name, data, opts } of jobs) {
      const { jobId, priority } = opts;
      const key = `${base}:${jobId}`;
      if (this.#hashes.has(key)) continue;
      this.hset(key, "name", name);
      this.hset(key, "data", JSON.stringify(data));
      this.hset(key, "priority", priority);
      this.#enqueue(base, jobId, priority);
    }
  }

  /** Removes a job. Returns 0 if a worker has it. */
  removeJob(base: string, id: string): 0 | 1 {
    if (this.get(`${base}:${id}:lock`) !== null) return 0;
    this.#hashes.delete(`${base}:${id}`);
    const lists = this.#listsOf(base);
    this.#unlist(lists, id);
    lists.active.delete(id);
    return 1;
  }

  changePriority(base: string, id: string, priority: number): void {
    const key = `${base}:${id}`;
    if (!this.#hashes.has(key)) throw codeError(refused.missingJob, `Missing key for job ${id}`);
    if (this.#unlist(this.#listsOf(base), id)) this.#enqueue(base, id, priority);
    this.hset(key, "priority", priority);
  }

  /** Takes the next job and locks it. Returns `null` if no job waits. */
  takeJob(
    base: string,
    { token, lockMs }: { readonly token: string; readonly lockMs: number },
  ): TakenJob | null {
    const lists = this.#listsOf(base);
    const id = lists.wait.pop() ?? lists.prioritized.shift()?.id;
    if (id === undefined) return null;
    lists.active.add(id);
    const key = `${base}:${id}`;
    this.set(`${key}:lock`, token, { livesMs: lockMs });
    this.#report(base, { event: "active", jobId: id });
    const attemptsStarted = Number(this.hget(key, "ats")) + 1;
    this.hset(key, "ats", attemptsStarted);
    return { id, data: this.hget(key, "data") ?? "{}", attemptsStarted };
  }

  /** Renews locks. Returns the jobs with a lock that is missing or held by another token. */
  extendLocks(
    base: string,
    ids: readonly string[],
    { tokens, lockMs }: { readonly tokens: readonly string[]; readonly lockMs: number },
  ): readonly string[] {
    return ids.filter((id, index) => {
      const key = `${base}:${id}:lock`;
      const token = tokens[index];
      if (token === undefined || this.get(key) !== token) return true;
      this.set(key, token, { livesMs: lockMs });
      this.#listsOf(base).stalled.delete(id);
      return false;
    });
  }

  /** Ends a job with its answer, if the token has the job's lock. */
  completeJob(base: string, id: string, { token, value }: { token: string; value: unknown }): void {
    this.#unlock(base, id, token);
    if (!this.#listsOf(base).active.delete(id)) {
      throw codeError(refused.notActive, `Job ${id} is not active`);
    }
    const returnvalue = JSON.stringify(value);
    this.hset(`${base}:${id}`, "returnvalue", returnvalue);
    this.hset(`${base}:${id}`, "finishedOn", this.#now());
    this.#report(base, { event: "completed", jobId: id, returnvalue });
  }

  /** Returns a job to the queue. Workers take it before all other jobs of its priority. */
  returnJob(base: string, id: string, token: string): void {
    this.#unlock(base, id, token);
    const lists = this.#listsOf(base);
    if (!lists.active.delete(id)) return;
    const priority = Number(this.hget(`${base}:${id}`, "priority"));
    if (priority === 0) lists.wait.push(id);
    else insert(lists.prioritized, { id, priority, order: -(this.#orderCount += 1) });
  }

  /** Returns jobs to the queue that had no lock in this check and in the previous one. */
  returnStalled(base: string, checkMs: number): readonly string[] {
    const lists = this.#listsOf(base);
    if (this.#now() < lists.checkedUntilMs) return [];
    lists.checkedUntilMs = this.#now() + checkMs;
    const lost = [...lists.stalled].filter(
      (id) => this.get(`${base}:${id}:lock`) === null && lists.active.has(id),
    );
    for (const id of lost) this.#returnLost(base, id);
    lists.stalled = new Set(lists.active);
    return lost;
  }

  /** Returns a job to the queue immediately, because the process of its worker has ended. */
  returnLost(base: string, id: string, token: string): void {
    const key = `${base}:${id}:lock`;
    if (this.get(key) !== token || !this.#listsOf(base).active.has(id)) return;
    this.del(key);
    this.#returnLost(base, id);
  }

  /** Removes a run's jobs. */
  obliterate(base: string): void {
    for (const key of Array.from(this.#hashes.keys())) {
      if (!key.startsWith(`${base}:`)) continue;
      this.#hashes.delete(key);
      this.del(`${key}:lock`);
    }
    this.#jobs.delete(base);
  }

  #returnLost(base: string, id: string): void {
    const lists = this.#listsOf(base);
    lists.active.delete(id);
    lists.stalled.delete(id);
    this.hset(`${base}:${id}`, "stc", Number(this.hget(`${base}:${id}`, "stc")) + 1);
    lists.wait.push(id);
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

  /** Removes a job from the waiting ones. Returns true if it was one. */
  #unlist({ prioritized, wait }: JobLists, id: string): boolean {
    const inWait = wait.indexOf(id);
    if (inWait >= 0) wait.splice(inWait, 1);
    const inPrioritized = prioritized.findIndex((waiting) => waiting.id === id);
    if (inPrioritized >= 0) prioritized.splice(inPrioritized, 1);
    return inWait >= 0 || inPrioritized >= 0;
  }

  #enqueue(base: string, id: string, priority: number): void {
    const lists = this.#listsOf(base);
    if (priority === 0) lists.wait.unshift(id);
    else insert(lists.prioritized, { id, priority, order: (this.#orderCount += 1) });
  }

  #listsOf(base: string): JobLists {
    let lists = this.#jobs.get(base);
    if (lists === undefined) {
      lists = {
        wait: [],
        prioritized: [],
        active: new Set(),
        stalled: new Set(),
        checkedUntilMs: 0,
      };
      this.#jobs.set(base, lists);
    }
    return lists;
  }

  #report(base: string, event: JobEvent): void {
    for (const watcher of this.#watchers.get(base) ?? []) watcher(event);
  }
}

/** Inserts a job into a sorted list. Most jobs belong near its end. */
function insert(list: WaitingJob[], job: WaitingJob): void {
  const isAfter = (other: WaitingJob): boolean =>
    other.priority === job.priority ? other.order < job.order : other.priority < job.priority;
  list.splice(list.findLastIndex(isAfter) + 1, 0, job);
}

function codeError(code: number, message: string): Error {
  return Object.assign(new Error(message), { code });
}
