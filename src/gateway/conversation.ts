import type { SamplingParameters } from "../engine/engine.ts";
import type { ToolDefinition } from "../message.ts";
import type { CallForm } from "./call-form.ts";

/** A call in a conversation as a client sends it. */
export interface ClientCall {
  /** The id under which the client knows the call. */
  readonly id: string;
  readonly name: string;
  /** As the client spells them: seldom as the policy did. */
  readonly argumentsText: string;
}

/** A turn of an assistant's as a client sends it back: sampled here, or written by somebody else. */
export interface ClientAssistant {
  readonly role: "assistant";
  /** Empty where the client says nothing, however it says that. */
  readonly content: string;
  readonly reasoning?: string;
  readonly calls: readonly ClientCall[];
  /** Ids and signatures beside those of calls, which may be ours. */
  readonly marks: readonly string[];
}

/** The result of a call. */
export interface ClientResult {
  readonly role: "tool";
  readonly callId: string;
  readonly content: string;
}

/** One message of a conversation, the same for all dialects. */
export type ClientMessage =
  | { readonly role: "system" | "user"; readonly content: string }
  | ClientAssistant
  | ClientResult;

/** Which of the tools the policy is to call. */
export type ToolChoice =
  /** `allowed`: the names of the tools that it may call; absent: all. */
  | { readonly type: "auto" | "required"; readonly allowed?: readonly string[] }
  | { readonly type: "none" }
  | { readonly type: "named"; readonly name: string };

/** A wish of a request that nothing here keeps. It is counted, or the request is refused. */
export interface UnkeptWish {
  /** Such as `tool web_search`. */
  readonly what: string;
  readonly why: string;
}

/** The tools of a request. */
export interface ToolSet {
  /** As the policy is shown them. */
  readonly tools: readonly ToolDefinition[];
  /** The forms in which calls go to the client, by the tool's name; absent for functions with a JSON object. */
  readonly callForms: ReadonlyMap<string, CallForm>;
  /** Tools that the policy is not shown, and what of the others nothing enforces. */
  readonly unkept: readonly UnkeptWish[];
  /** Members of tools that change nothing here, such as `tools[].defer_loading`. */
  readonly ignoredFields: readonly string[];
}

/** A form that a reply's text is to have. */
export type TextFormat =
  | { readonly type: "json-object" }
  | { readonly type: "json-schema"; readonly schema: Readonly<Record<string, unknown>> };

/** What a client asks for: one turn behind a conversation. */
export interface AskedTurn {
  /** The model's name as the client spells it; any is answered. */
  readonly model: string;
  readonly isStreamed: boolean;
  readonly messages: readonly ClientMessage[];
  readonly tools: readonly ToolDefinition[];
  /** See `ToolSet.callForms`. */
  readonly callForms: ReadonlyMap<string, CallForm>;
  readonly sampling: Pick<
    SamplingParameters,
    "temperature" | "topP" | "topK" | "seed" | "frequencyPenalty" | "presencePenalty"
  >;
  /** Absent where the client names no limit. */
  readonly maxTokens?: number;
  /** Texts that end the turn. */
  readonly stop: readonly string[];
  readonly toolChoice: ToolChoice;
  /** True where a turn may hold several calls. */
  readonly parallelCalls: boolean;
  /** A form that the text is to have, as the client asked for it; absent for free text. */
  readonly textFormat?: TextFormat;
  /** Chat Completions: whether the stream ends with the usage. */
  readonly includesUsage: boolean;
  /** Chat Completions and Responses: whether the reply carries the logprobs of its tokens. */
  readonly includesLogprobs: boolean;
  /** Responses: whether reasoning comes with content that only we can read. */
  readonly includesEncryptedReasoning: boolean;
  /**
   * Responses: present where the first message is made of the instructions, which a reply that continues
   * this one by its id does not take over.
   */
  readonly hasInstructions?: true;
  /** Responses: what the reply repeats of the request. */
  readonly echo: Readonly<Record<string, unknown>>;
  /** Fields of the request that change nothing here, by their names. */
  readonly ignoredFields: readonly string[];
  readonly unkept: readonly UnkeptWish[];
}

/** One stretch of a sampled turn as it goes to the client. JSON-able. */
export type ReplyPart =
  | {
      readonly type: "reasoning";
      readonly id: string;
      /** What a client sends back unread, so that the turn is known by it. */
      readonly signature: string;
      readonly text: string;
    }
  | { readonly type: "text"; readonly id: string; readonly text: string }
  | {
      readonly type: "call";
      /** The item's own id, where a dialect has items. */
      readonly id: string;
      readonly callId: string;
      readonly name: string;
      /** A JSON object, exactly as the policy spelled it. */
      readonly text: string;
      /** The form in which the call goes to the client; absent for a function with a JSON object. */
      readonly form?: CallForm;
    };

/** What a turn brings, in order; each part is begun, grows, and is ended before the next begins. */
export type ReplyEvent =
  /** `part.text` is empty. */
  | { readonly type: "part-start"; readonly index: number; readonly part: ReplyPart }
  | { readonly type: "part-delta"; readonly index: number; readonly text: string }
  /** `part.text` is whole. */
  | { readonly type: "part-end"; readonly index: number; readonly part: ReplyPart };

/** Why a turn ended, as clients tell it apart. */
export type ReplyFinish =
  | { readonly type: "stop" | "calls" | "length" }
  | { readonly type: "stop-text"; readonly text: string };

/** Tokens of a turn. */
export interface ReplyUsage {
  readonly promptTokenCount: number;
  readonly cachedTokenCount: number;
  readonly sampledTokenCount: number;
}

/** What is known of a reply before anything is sampled. */
export interface ReplyStart {
  /** The reply's id, in the dialect's style. */
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly createdAtMs: number;
  readonly promptTokenCount: number;
  readonly asked: AskedTurn;
}

/** A token of the reply with its logprob, for clients that ask for them. */
export interface ReplyToken {
  /** The text that the token stands for; it may be part of a character. */
  readonly bytes: Uint8Array;
  /** Natural logarithm. */
  readonly logprob: number;
}

/** A finished reply. */
export interface Reply {
  readonly start: ReplyStart;
  readonly parts: readonly ReplyPart[];
  readonly finish: ReplyFinish;
  readonly usage: ReplyUsage;
  /**
   * Only where the client asked for them: the tokens of the reply's text. A token that ends the turn, and
   * what follows a stop text, are not among them.
   */
  readonly tokens?: readonly ReplyToken[];
}
