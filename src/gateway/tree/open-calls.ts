interface OpenCall<Call> {
  readonly call: Call;
  isAnswered: boolean;
}

/** The call that a result answers. */
interface Answer<Call> {
  readonly call: Call;
  /** False for a second result of the same call. */
  readonly isFirst: boolean;
}

/**
 * The calls of a conversation so far. A result belongs to the call with its id. If several calls
 * share an id, it belongs to the newest turn that used the id, and there to the first call without
 * a result.
 */
export class OpenCalls<Call> {
  readonly #byId = new Map<string, OpenCall<Call>[]>();
  /** Calls of the newest turn, last first. */
  #newest: OpenCall<Call>[] = [];

  /** Adds the calls of the next turn, in order. */
  addTurn(calls: readonly { readonly id: string; readonly call: Call }[]): void {
    const entries = calls.map(({ call }): OpenCall<Call> => ({ call, isAnswered: false }));
    const own = new Map<string, OpenCall<Call>[]>();
    calls.forEach(({ id }, place) => {
      const entriesOfId = own.get(id);
      if (entriesOfId === undefined) own.set(id, [entries[place]!]);
      else entriesOfId.push(entries[place]!);
    });
    // Reversed, so that the next call to answer is last.
    for (const [id, list] of own) this.#byId.set(id, list.toReversed());
    this.#newest = entries.toReversed();
  }

  /** Marks the call with this id as answered. Returns `undefined` if no call has the id. */
  answer(id: string): Answer<Call> | undefined {
    const named = this.#byId.get(id);
    if (named === undefined) return undefined;
    while (named.length > 1 && named.at(-1)!.isAnswered) named.pop();
    const found = named.at(-1)!;
    const isFirst = !found.isAnswered;
    found.isAnswered = true;
    return { call: found.call, isFirst };
  }

  /** Marks the newest turn's first call without a result as answered, and returns it. */
  answerNext(): Call | undefined {
    const next = this.#nextOpen();
    if (next !== undefined) next.isAnswered = true;
    return next?.call;
  }

  /** The newest turn's calls without a result, in order. */
  get open(): readonly Call[] {
    return this.#newest.flatMap(({ call, isAnswered }) => (isAnswered ? [] : [call])).toReversed();
  }

  /** True if a call of the newest turn has no result. */
  get hasOpen(): boolean {
    return this.#nextOpen() !== undefined;
  }

  #nextOpen(): OpenCall<Call> | undefined {
    while (this.#newest.at(-1)?.isAnswered === true) this.#newest.pop();
    return this.#newest.at(-1);
  }
}
