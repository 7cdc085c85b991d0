import type { ClientAssistant, ClientMessage } from "../conversation.ts";

/** What the items of a conversation come to, as far as they are read. */
export interface History {
  readonly messages: readonly ClientMessage[];
  /** How many items were read. */
  readonly itemCount: number;
  /** A turn that is not among the messages yet: the next item may belong to it. */
  readonly openTurn?: ClientAssistant;
  /** True where the last item of that turn is a text. */
  readonly endsInText?: true;
  /** Tools that items of the conversation give, in their order; absent where none does. */
  readonly addedTools?: readonly AddedTool[];
}

/** A tool that an item of the conversation gives, and not the request's own list. */
export interface AddedTool {
  /** Its place in the body. */
  readonly place: string;
  readonly tool: unknown;
}

/** Before the first item. */
export const noHistory: History = { messages: [], itemCount: 0 };

/** The messages of a conversation that ends there. */
export function messagesOf({ messages, openTurn }: History): readonly ClientMessage[] {
  return openTurn === undefined ? messages : [...messages, openTurn];
}

/** The way in which a dialect spreads a turn over several items. */
interface TurnForm {
  /**
   * Decides for a turn that has made no call yet; one that has made a call is open until a result comes.
   *
   * @param last - The last mark and the last text of the turn.
   */
  readonly goesOn: (last: LastOfTurn, next: ClientAssistant) => boolean;
  /** Decides for a whole turn with others behind it whether nothing of it can be shown. Default: for none. */
  readonly isNothing?: (turn: ClientAssistant) => boolean;
  /** Text between the texts of two items with something else between them. Other texts stand on lines of their own. */
  readonly separator: string;
}

/** The end of a turn as far as it is read. */
export interface LastOfTurn {
  readonly mark: string | undefined;
  readonly text: string;
}

/**
 * Adds messages to a history. All that an assistant says and calls before the results of its calls come
 * is one turn: some clients send parallel calls back in messages of their own.
 *
 * @param items - The messages that each item comes to.
 */
export function extendHistory(
  { messages: before, itemCount, openTurn, endsInText }: History,
  items: readonly (readonly ClientMessage[])[],
  form: TurnForm,
): History {
  const messages = [...before];
  const turn = new TurnPieces(form);
  if (openTurn !== undefined) turn.add(openTurn, endsInText === true);
  for (const message of items.flat()) {
    if (message.role === "assistant" && turn.takes(message)) {
      turn.add(message);
      continue;
    }
    const ended = turn.end();
    if (ended !== undefined && form.isNothing?.(ended) !== true) messages.push(ended);
    if (message.role === "assistant") turn.add(message);
    else messages.push(message);
  }
  const isText = turn.endsInText;
  const open = turn.end();
  const history = { messages, itemCount: itemCount + items.length };
  if (open === undefined) return history;
  return { ...history, openTurn: open, ...(isText && { endsInText: true }) };
}

/** The pieces of a turn. They are put together once: a client may send thousands. */
class TurnPieces {
  readonly #form: TurnForm;
  #pieces: ClientAssistant[] = [];
  /** The texts, with what stands between them. */
  #texts: string[] = [];
  #endsInText = false;
  #hasCalls = false;
  #lastMark: string | undefined;
  #lastText = "";

  constructor(form: TurnForm) {
    this.#form = form;
  }

  /** True where the last piece that says anything is a text. */
  get endsInText(): boolean {
    return this.#endsInText;
  }

  takes(next: ClientAssistant): boolean {
    if (this.#pieces.length === 0) return false;
    return (
      this.#hasCalls || this.#form.goesOn({ mark: this.#lastMark, text: this.#lastText }, next)
    );
  }

  /** @param endsInText - Default: as the piece is, read as thought first, then said, then called. */
  add(piece: ClientAssistant, endsInText?: boolean): void {
    const { content, reasoning, calls, marks } = piece;
    this.#pieces.push(piece);
    if (content !== "") {
      const isNextText = this.#endsInText && reasoning === undefined;
      if (this.#texts.length > 0) this.#texts.push(isNextText ? "\n" : this.#form.separator);
      this.#texts.push(content);
    }
    if (calls.length > 0) this.#endsInText = false;
    else if (content !== "") this.#endsInText = true;
    else if (reasoning !== undefined) this.#endsInText = false;
    this.#endsInText = endsInText ?? this.#endsInText;
    this.#hasCalls ||= calls.length > 0;
    this.#lastMark = marks.at(-1) ?? this.#lastMark;
    this.#lastText = content;
  }

  /** @returns the whole turn; `undefined` where there is none. */
  end(): ClientAssistant | undefined {
    const pieces = this.#pieces;
    const text = this.#texts.join("");
    this.#pieces = [];
    this.#texts = [];
    this.#endsInText = false;
    this.#hasCalls = false;
    this.#lastMark = undefined;
    this.#lastText = "";
    return pieces.length > 1 ? joinPieces(pieces, text) : pieces[0];
  }
}

function joinPieces(pieces: readonly ClientAssistant[], content: string): ClientAssistant {
  const reasoning = pieces.map((piece) => piece.reasoning ?? "").join("");
  return {
    role: "assistant",
    content,
    ...(reasoning !== "" && { reasoning }),
    calls: pieces.flatMap(({ calls }) => calls),
    marks: pieces.flatMap(({ marks }) => marks),
  };
}
