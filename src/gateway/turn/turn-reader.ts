import { fitsForm, type CallForm } from "../call-form.ts";
import type { ReplyEvent, ReplyPart } from "../conversation.ts";
import type { ToolDefinition } from "../../message.ts";
import type { ReasoningStream } from "../../parser/reasoning/reasoning-parser.ts";
import type {
  Attempt,
  CompatCall,
  ParseOptions,
  ToolCallParser,
  ToolCallStream,
  ToolStreamEvent,
} from "../../parser/tool-call-parser.ts";
import { ReplySequencer, type PartIds } from "./reply-sequencer.ts";
import { StopFilter } from "./stop-filter.ts";

/** In which formats a model writes its turns. */
export interface ReplyFormats {
  /** Absent: nothing is read as a call. */
  readonly parser?: ToolCallParser;
  readonly parseOptions: Pick<
    ParseOptions,
    "dialect" | "engineVersion" | "vocabulary" | "responseTemplate"
  >;
  /** Absent: everything is text. */
  createReasoningStream?(options: { readonly opened: boolean }): ReasoningStream;
}

/** What a turn is read with. */
export interface TurnToStream {
  readonly formats: ReplyFormats;
  /** Calls are looked for only where there are any. */
  readonly tools: readonly ToolDefinition[];
  /** The forms in which calls go to the client, by the tool's name; see `ToolSet.callForms`. */
  readonly callForms?: ReadonlyMap<string, CallForm>;
  /** True where the client takes several calls; else it gets the first one alone. Default true. */
  readonly parallelCalls?: boolean;
  /** Whether the prompt ended inside an opened reasoning block. */
  readonly reasoningOpened: boolean;
  /** Texts that end what is said. */
  readonly stops: readonly string[];
  readonly ids: PartIds;
}

/**
 * Reads a turn as it is sampled: what was thought, what is said and what is called, as an inference
 * server of the same model would tell them apart. Text is released as soon as nothing that may still
 * come can change it; what was released is never taken back.
 */
export class TurnReader {
  readonly #sequencer: ReplySequencer;
  readonly #reasoning: ReasoningStream | undefined;
  readonly #stops: StopFilter;
  readonly #turn: TurnToStream;
  #calls: ToolCallStream | undefined;
  /** Text behind the reasoning, and how much of it was handed on as text. */
  #normal = "";
  #saidLength = 0;
  /** How much of it was searched for closed blocks, how many were found, and what was made of them. */
  #searchedLength = 0;
  #closedCount = 0;
  #releasedCount = 0;
  #releasedLength = 0;
  /** Whether there is anything but reasoning and white space. */
  #isHeard = false;
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

  /** The parts that are whole: all of them after `end()`. */
  get parts(): readonly ReplyPart[] {
    return this.#sequencer.parts;
  }

  /** The text at which the reply was cut; nothing more comes then. */
  get stopText(): string | undefined {
    return this.#stops.found;
  }

  /** Every attempt to call a tool, once the turn has ended. */
  get attempts(): readonly Attempt[] {
    return this.#attempts;
  }

  /** The number of calls that the client does not get, because it takes one alone. */
  get leftOutCount(): number {
    return this.#leftOutCount;
  }

  /** @param text - The next piece of the turn's text, without the token that ends it. */
  push(text: string): readonly ReplyEvent[] {
    if (this.stopText !== undefined || text === "") return [];
    if (this.#reasoning === undefined) return this.#readNormal(text);
    const { reasoning, normalText } = this.#reasoning.push(text);
    return [...this.#sequencer.reasoning(reasoning), ...this.#readNormal(normalText)];
  }

  /** @param ending - How the turn ended, and the literal of the token that ended it. */
  end(ending: {
    readonly finish: "stop" | "length";
    readonly closedBy?: string;
  }): readonly ReplyEvent[] {
    if (this.stopText !== undefined) return this.#sequencer.end();
    const rest = this.#reasoning?.end() ?? { reasoning: "", normalText: "" };
    const { closedBy = "" } = ending;
    const keepsStop = this.#parser?.closingStops?.includes(closedBy) === true;
    return [
      ...this.#sequencer.reasoning(rest.reasoning),
      ...this.#readNormal(rest.normalText + (keepsStop ? closedBy : "")),
      ...this.#endCalls(ending.finish),
      ...this.#sequencer.text(this.#stops.end()),
      ...this.#sequencer.end(),
    ];
  }

  get #parser(): ToolCallParser | undefined {
    return this.#turn.tools.length === 0 ? undefined : this.#turn.formats.parser;
  }

  #readNormal(text: string): readonly ReplyEvent[] {
    if (text === "") return [];
    if (this.#parser === undefined) return this.#say(text);
    this.#normal += text;
    this.#calls ??= this.#parser.createStream(this.#parseOptions());
    const events = this.#calls.push(text).flatMap((event) => this.#handOn(event));
    return [...events, ...this.#releaseClosed(this.#parser)];
  }

  /** Calls are certain once their blocks are closed, in formats where each block stands for itself. */
  #releaseClosed(parser: ToolCallParser): readonly ReplyEvent[] {
    const close = this.#closer;
    if (close === undefined) return [];
    const events: ReplyEvent[] = [];
    for (;;) {
      const at = this.#normal.indexOf(close, this.#searchedLength);
      if (at === -1 || this.#closedCount >= mostEarlyBlocks) break;
      const end = at + close.length;
      [this.#searchedLength, this.#closedCount] = [end, this.#closedCount + 1];
      const { compat, attempts } = parser.parse(this.#normal.slice(0, end), this.#parseOptions());
      if (compat.raises) {
        this.#closedCount = mostEarlyBlocks;
        break;
      }
      this.#attempts = attempts;
      const certain = compat.calls.slice(this.#releasedCount);
      events.push(...certain.flatMap((call) => this.#handCall(call)));
      this.#releasedCount += certain.length;
      if (certain.length > 0) this.#releasedLength = end;
    }
    // What may be the beginning of a closer is looked at again.
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
    const whole = this.#normal;
    const ended = this.#calls.end();
    const last = ended.at(-1);
    if (last?.type === "end") this.#attempts = last.result.attempts;
    if (finish === "length") {
      // Attempts are judged by how the turn ended, which the stream was not told when it was made.
      this.#attempts = this.#parser?.parse(whole, this.#parseOptions(finish)).attempts ?? [];
    }
    for (const event of ended) {
      if (event.type !== "end") events.push(...this.#handOn(event));
      // Where the engine's own parser raises, the text is shown as it is.
      else if (event.result.compat.raises) {
        // What was released stands.
        events.push(...this.#say(whole.slice(Math.max(this.#saidLength, this.#releasedLength))));
      }
    }
    // Clients drop a turn that says nothing, and the next one would not continue it.
    if (!this.#isHeard && this.stopText === undefined) {
      events.push(...this.#say(this.#attempts.map(({ raw }) => raw).join("\n")));
    }
    return events;
  }

  #handOn(event: ToolStreamEvent): readonly ReplyEvent[] {
    if (event.type === "end") return [];
    if (event.type === "text") {
      this.#saidLength += event.text.length;
      return this.#say(event.text);
    }
    return event.index < this.#releasedCount ? [] : this.#handCall(event.call);
  }

  #handCall({ name, argumentsText: written }: CompatCall): readonly ReplyEvent[] {
    if (this.stopText !== undefined) return [];
    const argumentsText = written || "{}";
    const { callForms, parallelCalls = true } = this.#turn;
    const form = callForms?.get(name);
    // Clients hand arguments to tools as an object: what is none is shown as it was written.
    if (!isJsonObject(argumentsText) || !fitsForm(form, argumentsText)) {
      return this.#say(this.#rawOf(name, argumentsText));
    }
    if (!parallelCalls && this.#callCount > 0) {
      this.#leftOutCount += 1;
      return [];
    }
    this.#callCount += 1;
    this.#isHeard = true;
    return [
      ...this.#sequencer.text(this.#stops.end()),
      ...this.#sequencer.call(name, argumentsText, form),
    ];
  }

  #rawOf(name: string, argumentsText: string): string {
    const found = this.#attempts.find(
      (attempt) => attempt.name === name && attempt.argumentsText === argumentsText,
    );
    return found?.raw ?? argumentsText;
  }

  #say(text: string): readonly ReplyEvent[] {
    this.#isHeard ||= text.trim() !== "";
    return this.#sequencer.text(this.#stops.push(text));
  }
}

/**
 * What closes a block, by the parser: those that read each block by itself, so that nothing that comes
 * later changes what a closed one says.
 */
const closers: Readonly<Record<string, string>> = { qwen25: "</tool_call>" };

/** Each closed block is read with all before it; those beyond so many wait for the turn's end. */
const mostEarlyBlocks = 32;

function isJsonObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}
