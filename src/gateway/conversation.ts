import type { SamplingParameters } from "../engine/engine.ts";
import type { ToolDefinition } from "../message.ts";
import type { CallForm } from "./call-form.ts";

/** A tool call in a client's conversation. */
export interface ClientCall {
  /** The call's id as the client sends it. */
  readonly id: string;
  readonly name: string;
  /** JSON text. Clients often print it differently than the policy did. */
  readonly argumentsText: string;
  /** Path of the arguments in the request. Absent if they are a JSON object. */
  readonly argumentsPlace?: string;
}

/** An assistant turn that a client sends back: sampled here, or written elsewhere. */
export interface ClientAssistant {
  readonly role: "assistant";
  /** Empty if the client sends no text, `null` or no member. */
  readonly content: string;
  readonly reasoning?: string;
  readonly calls: readonly ClientCall[];
  /** Ids of items, and signatures of reasoning. Some of them come from this gateway. */
  readonly marks: readonly string[];
}

/** The result of a call. */
export interface ClientResult {
  readonly role: "tool";
  readonly callId: string;
  readonly content: string;
}

/** One message of a conversation, independent of the dialect. */
export type ClientMessage =
  | { readonly role: "system" | "user"; readonly content: string }
  | ClientAssistant
  | ClientResult;

/** The tools that the policy may or must call. */
export type ToolChoice =
  /** `allowed`: names of the tools that the policy may call. Absent: all. */
  | { readonly type: "auto" | "required"; readonly allowed?: readonly string[] }
  | { readonly type: "none" }
  | { readonly type: "named"; readonly name: string };

/**
 * A requested feature that the gateway does not support. It is counted, or the request is refused.
 */
export interface UnsupportedFeature {
  /** The feature's name in the counts, such as `tool web_search`. */
  readonly what: string;
  readonly why: string;
}

/** The tools of a request. */
export interface ToolSet {
  /** The tools as the policy sees them. */
  readonly tools: readonly ToolDefinition[];
  /**
   * The forms of calls in the client's protocol, by tool name. Absent for functions with a JSON
   * object.
   */
  readonly callForms: ReadonlyMap<string, CallForm>;
  /** Server tools, which the policy does not see, and unenforced properties of the other tools. */
  readonly unsupported: readonly UnsupportedFeature[];
  /** Members of tools without an effect here, such as `tools[].defer_loading`. */
  readonly ignoredFields: readonly string[];
}

/** The required form of a reply's text. */
export type TextFormat =
  | { readonly type: "json-object" }
  | { readonly type: "json-schema"; readonly schema: Readonly<Record<string, unknown>> };

/** A decoded request for the next turn of a conversation. */
export interface RequestedTurn {
  /** The model's name as the client spells it. Every name is accepted. */
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
  /** The client's limit of sampled tokens. Absent if the client sets none. */
  readonly maxTokens?: number;
  /** Texts that end the turn. */
  readonly stop: readonly string[];
  readonly toolChoice: ToolChoice;
  /** True if a turn may contain several calls. */
  readonly parallelCalls: boolean;
  /** The required form of the text. Absent for free text. */
  readonly textFormat?: TextFormat;
  /** Chat Completions: true if the stream ends with the usage. */
  readonly includesUsage: boolean;
  /** Chat Completions and Responses: true if the reply contains logprobs. */
  readonly includesLogprobs: boolean;
  /** Responses: true if reasoning items carry `encrypted_content`. */
  readonly includesEncryptedReasoning: boolean;
  /**
   * Responses: true if the first message comes from `instructions`. A reply that continues this one
   * by its id does not inherit it.
   */
  readonly hasInstructions?: true;
  /** Responses: request fields that the reply repeats. */
  readonly echo: Readonly<Record<string, unknown>>;
  /** Names of request fields without an effect here. */
  readonly ignoredFields: readonly string[];
  readonly unsupported: readonly UnsupportedFeature[];
}

/** One part of a sampled turn in the reply. JSON-able. */
export type ReplyPart =
  | {
      readonly type: "reasoning";
      readonly id: string;
      /**
       * An opaque value that clients send back with the turn, so that the gateway recognises it.
       */
      readonly signature: string;
      readonly text: string;
    }
  | { readonly type: "text"; readonly id: string; readonly text: string }
  | {
      readonly type: "call";
      /** The item's id, in dialects that have items. */
      readonly id: string;
      readonly callId: string;
      readonly name: string;
      /** A JSON object, exactly as the policy wrote it. */
      readonly text: string;
      /** The call's form in the client's protocol. Absent for a function with a JSON object. */
      readonly form?: CallForm;
    };

/** The events of a reply, in order. Each part starts, grows and ends before the next part starts. */
export type ReplyEvent =
  /** `part.text` is empty. */
  | { readonly type: "part-start"; readonly index: number; readonly part: ReplyPart }
  | { readonly type: "part-delta"; readonly index: number; readonly text: string }
  /** `part.text` is complete. */
  | { readonly type: "part-end"; readonly index: number; readonly part: ReplyPart };

/** The reason for the turn's end, as reported to the client. */
export type ReplyFinish =
  | { readonly type: "stop" | "calls" | "length" }
  | { readonly type: "stop-text"; readonly text: string };

/** Token counts of a turn. */
export interface ReplyUsage {
  readonly promptTokenCount: number;
  readonly cachedTokenCount: number;
  readonly sampledTokenCount: number;
  /**
   * The sampled tokens that contain reasoning, without its markup. Absent if the protocol does not
   * report them.
   */
  readonly reasoningTokenCount?: number;
}

/** The facts about a reply that are known before sampling. */
export interface ReplyStart {
  /** The reply's id, in the dialect's style. */
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly createdAtMs: number;
  readonly promptTokenCount: number;
  readonly requested: RequestedTurn;
}

/** A token of the reply with its logprob. */
export interface ReplyToken {
  /** The UTF-8 bytes that the token stands for, possibly a part of a character. */
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
   * The tokens of the reply's text, if the client requested logprobs. The token that ends the turn
   * and the tokens after a stop text are left out.
   */
  readonly tokens?: readonly ReplyToken[];
}
