import type { CallForm } from "../call-form.ts";
import type { ReplyEvent, ReplyPart } from "../conversation.ts";
import type { MintId } from "../mint-id.ts";

/** Makes ids for the parts of a reply. */
export interface PartIds {
  readonly mint: MintId;
  /** What the ids of calls begin with, such as `call_`. */
  readonly callPrefix: string;
}

/**
 * Makes one sequence of events out of what a turn brings: a part is begun when its first text comes, and
 * ended when another kind of text follows, so that every dialect can be written from it.
 */
export class ReplySequencer {
  readonly #ids: PartIds;
  readonly #parts: ReplyPart[] = [];
  #open: { readonly part: ReplyPart; readonly texts: string[] } | undefined;

  constructor(ids: PartIds) {
    this.#ids = ids;
  }

  /** The parts that are whole. */
  get parts(): readonly ReplyPart[] {
    return this.#parts;
  }

  reasoning(text: string): readonly ReplyEvent[] {
    const { mint } = this.#ids;
    return this.#grow("reasoning", text, () => {
      return { type: "reasoning", id: mint("rs_"), signature: mint("tw"), text: "" };
    });
  }

  text(text: string): readonly ReplyEvent[] {
    return this.#grow("text", text, () => ({ type: "text", id: this.#ids.mint("msg_"), text: "" }));
  }

  /**
   * A call with its arguments, a JSON object.
   *
   * @param form - How it goes to the client; absent for a function with a JSON object.
   */
  call(name: string, argumentsText: string, form?: CallForm): readonly ReplyEvent[] {
    const { mint, callPrefix } = this.#ids;
    // Older functions have no ids: their results name the function.
    const callId = form === "function-call" ? name : mint(callPrefix);
    const ended = this.end();
    const id = mint(form === undefined ? "fc_" : itemPrefixes[form]);
    const part: ReplyPart = {
      type: "call",
      id,
      callId,
      name,
      text: "",
      ...(form !== undefined && { form }),
    };
    return [...ended, ...this.#begin(part), ...this.#add(argumentsText), ...this.end()];
  }

  /** Ends the part that is open. */
  end(): readonly ReplyEvent[] {
    if (this.#open === undefined) return [];
    const { part, texts } = this.#open;
    this.#open = undefined;
    const whole = { ...part, text: texts.join("") };
    this.#parts.push(whole);
    return [{ type: "part-end", index: this.#parts.length - 1, part: whole }];
  }

  #grow(type: ReplyPart["type"], text: string, createPart: () => ReplyPart): readonly ReplyEvent[] {
    if (text === "") return [];
    if (this.#open?.part.type === type) return this.#add(text);
    return [...this.end(), ...this.#begin(createPart()), ...this.#add(text)];
  }

  #begin(part: ReplyPart): readonly ReplyEvent[] {
    this.#open = { part, texts: [] };
    return [{ type: "part-start", index: this.#parts.length, part }];
  }

  #add(text: string): readonly ReplyEvent[] {
    this.#open?.texts.push(text);
    return [{ type: "part-delta", index: this.#parts.length, text }];
  }
}

/** The beginnings of the ids of items that hold a call. */
const itemPrefixes: Readonly<Record<CallForm, string>> = {
  custom: "ctc_",
  "function-call": "fc_",
  "local-shell": "lsh_",
  shell: "sh_",
  "apply-patch": "apc_",
};
