/** Maximum number of remembered sessions. Sessions of finished episodes do not return. */
const MAX_SESSIONS = 65_536;

/**
 * Assigns calls to threads. A session stays on its thread, where its earlier turns are cached,
 * unless that thread has far more calls than another one.
 */
export class SessionPlacement {
  readonly #loads: number[];
  readonly #sessionCounts: number[];
  readonly #homes = new Map<string, number>();

  constructor(threadCount: number) {
    this.#loads = Array.from({ length: threadCount }, () => 0);
    this.#sessionCounts = [...this.#loads];
  }

  /** Returns the number of pending calls of a thread. */
  loadOf(thread: number): number {
    return this.#loads[thread] ?? 0;
  }

  /** Returns the thread for a call. Call `leave()` when the call has ended. */
  enter(sessionId: string): number {
    const home = this.#homes.get(sessionId);
    const idlest = this.#findIdlest();
    const stays = home !== undefined && this.loadOf(home) <= 2 * this.loadOf(idlest) + 1;
    const thread = stays ? home : idlest;
    this.#setHome(sessionId, thread);
    this.#loads[thread] = this.loadOf(thread) + 1;
    return thread;
  }

  leave(thread: number): void {
    this.#loads[thread] = this.loadOf(thread) - 1;
  }

  #findIdlest(): number {
    let idlest = 0;
    for (let thread = 1; thread < this.#loads.length; thread++) {
      const byLoad = this.loadOf(thread) - this.loadOf(idlest);
      const bySessions = (this.#sessionCounts[thread] ?? 0) - (this.#sessionCounts[idlest] ?? 0);
      if (byLoad < 0 || (byLoad === 0 && bySessions < 0)) idlest = thread;
    }
    return idlest;
  }

  /** Sets the session's thread and marks the session as the most recently used. */
  #setHome(sessionId: string, thread: number): void {
    this.#forget(sessionId);
    this.#homes.set(sessionId, thread);
    this.#sessionCounts[thread] = (this.#sessionCounts[thread] ?? 0) + 1;
    const [oldest] = this.#homes.keys();
    if (this.#homes.size > MAX_SESSIONS && oldest !== undefined) this.#forget(oldest);
  }

  #forget(sessionId: string): void {
    const home = this.#homes.get(sessionId);
    if (home === undefined) return;
    this.#homes.delete(sessionId);
    this.#sessionCounts[home] = (this.#sessionCounts[home] ?? 0) - 1;
  }
}
