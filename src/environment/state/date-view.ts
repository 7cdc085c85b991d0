import { rawOf, type Part, type StateDraft } from "./state-draft.ts";

/** The view of a Date that a tool gets. */
export class DateView extends Date {
  readonly #part: Part;
  readonly #draft: StateDraft;

  constructor(part: Part, draft: StateDraft) {
    super((rawOf(part) as Date).getTime());
    this.#part = part;
    this.#draft = draft;
  }

  /** Calls a method that only reads. */
  read(method: Method, given: unknown[]): unknown {
    return Reflect.apply(method, rawOf(this.#part), given);
  }

  /** Calls a method that writes. */
  write(method: Method, given: unknown[]): unknown {
    this.#draft.assertOpen();
    const own = this.#draft.own(this.#part) as Date;
    const before = own.getTime();
    this.#draft.note(() => this.#put(own, before));
    const answer: unknown = Reflect.apply(method, own, given);
    this.#put(own, own.getTime());
    return answer;
  }

  /** Also sets the view's own time, for readers that bypass its methods, such as `structuredClone()`. */
  #put(own: Date, time: number): void {
    for (const one of [own, this]) Reflect.apply(setTime, one, [time]);
  }
}

type Method = (...given: unknown[]) => unknown;

const methods = Reflect.ownKeys(Date.prototype).filter((name) => name !== "constructor");
const setTime = Reflect.get(Date.prototype, "setTime") as Method;

for (const name of methods) {
  const method = Reflect.get(Date.prototype, name) as Method;
  const isWriting = typeof name === "string" && name.startsWith("set");
  const value = function (this: DateView, ...given: unknown[]): unknown {
    return isWriting ? this.write(method, given) : this.read(method, given);
  };
  Object.defineProperty(DateView.prototype, name, { value, configurable: true, writable: true });
}
// Libraries copy a Date by its constructor.
Object.defineProperty(DateView.prototype, "constructor", { value: Date });
