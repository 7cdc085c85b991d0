import { fitsForm, type CallForm } from "../call-form.ts";
import { parseJsonObject } from "../json-object.ts";
import type { ReplyEvent, ReplyPart } from "../conversation.ts";
import type { ToolDefinition } from "../../message.ts";
import type { ReasoningStream } from "../../../packages/tool-parsers/src/reasoning/reasoning-parser.ts";
import type {
  Attempt,
  CompatCall,
  ParseOptions,
  ToolCallParser,
  ToolCallStream,
  ToolStreamEvent,
} from "../../../packages/tool-parsers/src/tool-call-parser.ts";
import { escapeHalves, toWellFormed } from "../../text/well-formed.ts";
import { ReplySequencer, type PartIds } from "./reply-sequencer.ts";
import { StopFilter } from "./stop-filter.ts";

/** The formats in which a model writes its turns. */
export interface ReplyFormats {
  /** The parser of calls. Absent: calls are not parsed. */
  readonly parser?: ToolCallParser;
  readonly parseOptions: Pick<
    ParseOptions,
    "dialect" | "engineVersion" | "vocabulary" | "responseTemplate"
  >;
  /** Creates a parser of reasoning. Absent: all text counts as visible text. */
  createReasoningStream?(options: { readonly opened: boolean }): ReasoningStream;
}

/** The settings for reading one turn. */
export interface TurnToStream {
  readonly formats: ReplyFormats;
  /** The request's tools. Without tools, calls are not parsed. */
  readonly tools: readonly ToolDefinition[];
  /** The forms of calls for the client, by tool name. See `ToolSet.callForms`. */
  readonly callForms?: ReadonlyMap<string, CallForm>;
  /** True if the client accepts several calls. Otherwise it gets only the first. Default true. */
  readonly parallelCalls?: boolean;
  /** True if the prompt ended inside an open reasoning block. */
  readonly reasoningOpened: boolean;
  /** Texts that end the reply's text. */
  readonly stops: readonly string[];
  readonly ids: PartIds;
}

/**
 * Reads a turn while it is sampled and splits it into reasoning, text and calls, as an inference
 * server of the same model does. Text is released once later tokens cannot change it.
 */
export class TurnReader {
  readonly #sequencer: ReplySequencer;
  readonly #reasoning: ReasoningStream | undefined;
  readonly #stops: StopFilter;
  readonly #turn: TurnToStream;
  #calls: ToolCallStream | undefined;
  /** The text after the reasoning, and the length of its part that was released as text. */
  #normal = "";
  #releasedTextLength = 0;
  /**
   * The progress of the search for closed call blocks: the offset up to which the text was searched, the number of
   * blocks found, the number of calls released, and the offset after these.
   */
  #searchedLength = 0;
  #closedCount = 0;
  #releasedCount = 0;
  #releasedLength = 0;
  /** True if the turn has a call, or text that is not only white space. */
  #hasOutput = false;
  #attempts: readonly Attempt[] = [];
  #callCount = 0;
  #leftOutCount = 0;

  constructor(turn: TurnToStream) {
    const { formats, ids, reasoningOpened, stops } = turn;
    this.#turn = turn;
    this.#sequencer = new ReplySequencer(ids);
    this.#stops = new StopFilter(stops);
    this.#reasoning = formats.createReasoningStream?.({ opened: reasoningOpened });
  }

  /** The complete parts. After `end()` these are all parts. */
  get parts(): readonly ReplyPart[] {
    return this.#sequencer.parts;
  }

  /** The stop text that cut the reply, if any. No events follow it. */
  get stopText(): string | undefined {
    return this.#stops.found;
  }

  /** Every attempt to call a tool, available after `end()`. */
  get attempts(): readonly Attempt[] {
    return this.#attempts;
  }

  /** Number of calls that are withheld because the client accepts only one call. */
  get leftOutCount(): number {
    return this.#leftOutCount;
  }

  /**
   * Reads the next piece of the turn, and returns its events.
   *
   * @param text - The next piece of the turn's text, without the token that ends it.
   */
  push(text: string): readonly ReplyEvent[] {
    if (this.stopText !== undefined || text === "") return [];
    if (this.#reasoning === undefined) return this.#readNormal(text);
    const { reasoning, normalText } = this.#reasoning.push(text);
    return [...this.#sequencer.reasoning(reasoning), ...this.#readNormal(normalText)];
  }

  /**
   * Ends the turn, and returns its last events.
   *
   * @param ending - The finish reason, and the literal of the token that ended the turn.
   */
  end(ending: {
    readonly finish: "stop" | "length";
    readonly closedBy?: string;
  }): readonly ReplyEvent[] {
    const { finish, closedBy = "" } = ending;
    const closesCall = this.#parser?.closingStops?.includes(closedBy) === true;
    // A format with channels drops a call that is not closed, so the stop comes before the end.
    const closing = closesCall ? this.push(closedBy) : [];
    if (this.stopText !== undefined) return [...closing, ...this.#sequencer.end()];
    const rest = this.#reasoning?.end() ?? { reasoning: "", normalText: "" };
    return [
      ...closing,
      ...this.#sequencer.reasoning(rest.reasoning),
      ...this.#readNormal(rest.normalText),
      ...this.#endCalls(finish),
      ...this.#sequencer.text(this.#stops.end()),
      ...this.#sequencer.end(),
    ];
  }

  get #parser(): ToolCallParser | undefined {
    return this.#turn.tools.length === 0 ? undefined : this.#turn.formats.parser;
  }

  #readNormal(text: string): readonly ReplyEvent[] {
    if (text === "") return [];
    if (this.#parser === undefined) return this.#releaseText(text);
    this.#normal += text;
    this.#calls ??= this.#parser.createStream(this.#parseOptions());
    const events = this.#calls.push(text).flatMap((event) => this.#forward(event));
    return [...events, ...this.#releaseClosed(this.#parser)];
  }

  /** Releases the calls of closed blocks, in formats in which later text cannot change them. */
  #releaseClosed(parser: ToolCallParser): readonly ReplyEvent[] {
    const close = this.#closer;
    if (close === undefined) return [];
    const events: ReplyEvent[] = [];
    for (;;) {
      const at = this.#normal.indexOf(close, this.#searchedLength);
      if (at === -1 || this.#closedCount >= maxEarlyBlocks) break;
      const end = at + close.length;
      [this.#searchedLength, this.#closedCount] = [end, this.#closedCount + 1];
      const { compat, attempts } = parser.parse(this.#normal.slice(0, end), this.#parseOptions());
      if (compat.raises) {
        this.#closedCount = maxEarlyBlocks;
        break;
      }
      this.#attempts = attempts;
      const certain = compat.calls.slice(this.#releasedCount);
      events.push(...certain.flatMap((call) => this.#releaseCall(call)));
      this.#releasedCount += certain.length;
      if (certain.length > 0) this.#releasedLength = end;
    }
    // A closing tag may start in the last characters.
    const seen = this.#normal.length - close.length + 1;
    this.#searchedLength = Math.max(this.#searchedLength, seen);
    return events;
  }

  get #closer(): string | undefined {
    const { parser, parseOptions } = this.#turn.formats;
    return parser === undefined || parseOptions.dialect === "vllm"
      ? undefined
      : closers[parser.name];
  }

  #parseOptions(finishReason?: "stop" | "length"): ParseOptions {
    const { formats, tools } = this.#turn;
    const ending = finishReason === undefined ? {} : { finishReason };
    return { ...formats.parseOptions, tools, ...ending };
  }

  #endCalls(finish: "stop" | "length"): readonly ReplyEvent[] {
    if (this.#calls === undefined) return [];
    const events: ReplyEvent[] = [];
    const text = this.#normal;
    const ended = this.#calls.end();
    const last = ended.at(-1);
    if (last?.type === "end") this.#attempts = last.result.attempts;
    if (finish === "length") {
      // The status of an attempt depends on the finish reason, which is known only now.
      this.#attempts = this.#parser?.parse(text, this.#parseOptions(finish)).attempts ?? [];
    }
    for (const event of ended) {
      if (event.type !== "end") events.push(...this.#forward(event));
      // If the engine's own parser raises, the client gets the raw text.
      else if (event.result.compat.raises) {
        // Calls that were already released are not repeated as text.
        events.push(
          ...this.#releaseText(
            text.slice(Math.max(this.#releasedTextLength, this.#releasedLength)),
          ),
        );
      }
    }
    // Clients drop an empty turn, after which the next request could not continue it.
    if (!this.#hasOutput && this.stopText === undefined) {
      events.push(...this.#releaseText(this.#attempts.map(({ raw }) => raw).join("\n")));
    }
    return events;
  }

  #forward(event: ToolStreamEvent): readonly ReplyEvent[] {
    if (event.type === "end") return [];
    if (event.type === "text") {
      this.#releasedTextLength += event.text.length;
      return this.#releaseText(event.text);
    }
    return event.index < this.#releasedCount ? [] : this.#releaseCall(event.call);
  }

  #releaseCall({ name, argumentsText: written }: CompatCall): readonly ReplyEvent[] {
    if (this.stopText !== undefined) return [];
    const argumentsText = written || "{}";
    const { callForms, parallelCalls = true } = this.#turn;
    const form = callForms?.get(name);
    // Clients pass arguments to tools as an object. Other arguments are shown as text.
    if (parseJsonObject(argumentsText) === undefined || !fitsForm(form, argumentsText)) {
      return this.#releaseText(this.#rawOf(name, argumentsText));
    }
    if (!parallelCalls && this.#callCount > 0) {
      this.#leftOutCount += 1;
      return [];
    }
    this.#callCount += 1;
    this.#hasOutput = true;
    return [
      ...this.#sequencer.text(this.#stops.end()),
      ...this.#sequencer.call(toWellFormed(name), escapeHalves(argumentsText), form),
    ];
  }

  #rawOf(name: string, argumentsText: string): string {
    const found = this.#attempts.find(
      (attempt) => attempt.name === name && attempt.argumentsText === argumentsText,
    );
    return found?.raw ?? argumentsText;
  }

  #releaseText(text: string): readonly ReplyEvent[] {
    this.#hasOutput ||= text.trim() !== "";
    return this.#sequencer.text(this.#stops.push(text));
  }
}

/** The closing tag of a call block, for parsers that read each block independently. */
const closers: Readonly<Record<string, string>> = { qwen25: "</tool_call>" };

/**
 * Maximum number of blocks that are read before the turn's end, because each is parsed with all
 * text before it.
 */
const maxEarlyBlocks = 32;
