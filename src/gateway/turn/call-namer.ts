import { numberedId, type CallHabits } from "./call-habits.ts";

/** Names the calls that were not sampled where they stand, as the chat template needs it. */
export class CallNamer {
  readonly #habits: CallHabits;
  readonly #sampledIds: ReadonlyMap<string, string>;
  readonly #prefix: string;
  readonly #callIdsBefore: () => Iterable<string>;
  #known: Set<string> | undefined;
  #madeCount = 0;

  /**
   * @param options.sampledIds - Ids under which the policy knows calls that it made, by the clients' ids.
   * @param options.depth - Number of turns before; what is named there has other names.
   * @param options.callIdsBefore - Ids that the conversation has already; asked for once a call is named.
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

  /** The ids of a turn's calls, in their order. No two are alike. */
  nameCalls(calls: readonly { readonly id: string; readonly name: string }[]): readonly string[] {
    if (this.#habits.numbersCalls) return calls.map(({ name }, place) => numberedId(name, place));
    const own = new Set<string>();
    return calls.map(({ id }) => {
      const chosen = this.#nameOne(this.#sampledIds.get(id) ?? id, own);
      own.add(chosen);
      return chosen;
    });
  }

  /** The id of a result that belongs to no call. */
  nameOrphan(id: string): string {
    return this.#nameOne(id, new Set());
  }

  get #taken(): Set<string> {
    return (this.#known ??= new Set(this.#callIdsBefore()));
  }

  #nameOne(wanted: string, own: ReadonlySet<string>): string {
    const { takesAnyId, looksUpIds } = this.#habits;
    const isFit = (takesAnyId ? plainId : nineSigns).test(wanted);
    const isTaken = own.has(wanted) || (looksUpIds && this.#taken.has(wanted));
    const chosen = isFit && !isTaken ? wanted : this.#makeId();
    this.#taken.add(chosen);
    return chosen;
  }

  #makeId(): string {
    for (;;) {
      const made = `${this.#prefix}${base36(this.#madeCount++)}`;
      if (!this.#taken.has(made)) return made;
    }
  }
}

/** Nothing that could be read as a control token. */
const plainId = /^[\w.:-]{1,64}$/;

const nineSigns = /^[A-Za-z0-9]{9}$/;

/** Four letters and digits. */
function base36(value: number): string {
  return value.toString(36).padStart(4, "0");
}
