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
 * The calls of a conversation so far. A result belongs to the call that has its id, wherever that stands: of
 * several with one id, to one of the newest turn that used it, and there to the first without a result.
 */
export class OpenCalls<Call> {
  readonly #byId = new Map<string, OpenCall<Call>[]>();
  /** Calls of the newest turn, the last first. */
  #newest: OpenCall<Call>[] = [];

  /** Enters the calls of the next turn, in their order. */
  addTurn(calls: readonly { readonly id: string; readonly call: Call }[]): void {
    const entries = calls.map(({ call }): OpenCall<Call> => ({ call, isAnswered: false }));
    const own = new Map<string, OpenCall<Call>[]>();
    calls.forEach(({ id }, place) => {
      const known = own.get(id);
      if (known === undefined) own.set(id, [entries[place]!]);
      else known.push(entries[place]!);
    });
    // The last of a list is the next to be answered.
    for (const [id, list] of own) this.#byId.set(id, list.toReversed());
    this.#newest = entries.toReversed();
  }

  /** Takes the call with the id of a result; `undefined` where no call has that id. */
  answer(id: string): Answer<Call> | undefined {
    const named = this.#byId.get(id);
    if (named === undefined) return undefined;
    while (named.length > 1 && named.at(-1)!.isAnswered) named.pop();
    const found = named.at(-1)!;
    const isFirst = !found.isAnswered;
    found.isAnswered = true;
    return { call: found.call, isFirst };
  }

  /** Takes the first call of the newest turn that has no result. */
  answerNext(): Call | undefined {
    const next = this.#nextOpen();
    if (next !== undefined) next.isAnswered = true;
    return next?.call;
  }

  /** The calls of the newest turn that have no result, in their order. */
  get open(): readonly Call[] {
    return this.#newest.flatMap(({ call, isAnswered }) => (isAnswered ? [] : [call])).toReversed();
  }

  /** True where a call of the newest turn has no result. */
  get hasOpen(): boolean {
    return this.#nextOpen() !== undefined;
  }

  #nextOpen(): OpenCall<Call> | undefined {
    while (this.#newest.at(-1)?.isAnswered === true) this.#newest.pop();
    return this.#newest.at(-1);
  }
}
