import { isNumberedId, numberedId, type CallHabits } from "./call-habits.ts";

/** Chooses ids that the chat template accepts for calls that the client did not sample here. */
export class CallNamer {
  readonly #habits: CallHabits;
  readonly #sampledIds: ReadonlyMap<string, string>;
  readonly #prefix: string;
  readonly #callIdsBefore: () => Iterable<string>;
  #usedIds: Set<string> | undefined;
  #callCount = 0;
  #madeCount = 0;

  /**
   * @param options.sampledIds - The policy's ids of sampled calls, by the client's ids.
   * @param options.depth - Number of earlier turns. It makes the new ids differ from theirs.
   * @param options.callIdsBefore - Returns the ids in the conversation so far. Called when the
   *   first id is chosen.
   */
  constructor(
    habits: CallHabits,
    options: {
      readonly sampledIds: ReadonlyMap<string, string>;
      readonly depth: number;
      readonly callIdsBefore: () => Iterable<string>;
    },
  ) {
    this.#habits = habits;
    this.#sampledIds = options.sampledIds;
    this.#prefix = `f${base36(options.depth)}`;
    this.#callIdsBefore = options.callIdsBefore;
  }

  /** Returns unique ids for a turn's calls, in order. */
  nameCalls(calls: readonly { readonly id: string; readonly name: string }[]): readonly string[] {
    if (this.#habits.numbersCalls) return calls.map(({ name }, place) => numberedId(name, place));
    const own = new Set<string>();
    return calls.map(({ id, name }) => {
      const wanted = this.#sampledIds.get(id) ?? id;
      const chosen = this.#habits.namesByIds
        ? this.#numberOne(wanted, name)
        : this.#nameOne(wanted, own);
      own.add(chosen);
      return chosen;
    });
  }

  /** Returns the id for a result without a call. */
  nameOrphan(id: string): string {
    return this.#nameOne(id, new Set());
  }

  get #allIds(): Set<string> {
    if (this.#usedIds === undefined) {
      const before = [...this.#callIdsBefore()];
      this.#usedIds = new Set(before);
      this.#callCount = before.length;
    }
    return this.#usedIds;
  }

  /** Returns an id with the tool's name and a number. Keeps the wanted id if it has this form and is free. */
  #numberOne(wanted: string, name: string): string {
    const taken = this.#allIds;
    let number = this.#callCount++;
    let chosen = isNumberedId(wanted, name) ? wanted : numberedId(name, number);
    while (taken.has(chosen)) chosen = numberedId(name, number++);
    taken.add(chosen);
    return chosen;
  }

  #nameOne(wanted: string, own: ReadonlySet<string>): string {
    const { takesAnyId, looksUpIds } = this.#habits;
    const isFit = (takesAnyId ? plainId : nineSigns).test(wanted);
    const isTaken = own.has(wanted) || (looksUpIds && this.#allIds.has(wanted));
    const chosen = isFit && !isTaken ? wanted : this.#makeId();
    this.#allIds.add(chosen);
    return chosen;
  }

  #makeId(): string {
    for (;;) {
      const made = `${this.#prefix}${base36(this.#madeCount++)}`;
      if (!this.#allIds.has(made)) return made;
    }
  }
}

/** Characters that cannot form a control token. */
const plainId = /^[\w.:-]{1,64}$/;

const nineSigns = /^[A-Za-z0-9]{9}$/;

/** Returns the number as four letters and digits. */
function base36(value: number): string {
  return value.toString(36).padStart(4, "0");
}
