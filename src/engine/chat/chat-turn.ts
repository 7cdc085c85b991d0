import type { AssistantMessage, Message, ToolCall, ToolDefinition } from "../../message.ts";
import type { SamplingParameters } from "../sampling-parameters.ts";

/** Members of a JSON object that this package does not interpret. */
export type OtherMembers = Readonly<Record<string, unknown>>;

/** A tool call in a reply. Members that the model left out, or wrote in another form, are absent. */
export interface ChatToolCall {
  readonly id?: string;
  readonly name?: string;
  /** The arguments exactly as the model wrote them. They may be any text. */
  readonly argumentsText: string;
  /** Other members of the call, such as signatures that the server wants back. */
  readonly members?: OtherMembers;
}

/** A tool call of an earlier turn. */
export interface SentToolCall extends ToolCall {
  /** Other members of the server's own call. */
  readonly members?: OtherMembers;
}

/** An earlier turn of the policy. */
export interface SentAssistantMessage extends AssistantMessage {
  readonly toolCalls?: readonly SentToolCall[];
  /** Other members of the server's own message, such as `annotations`, and its reasoning in its own member. */
  readonly members?: OtherMembers;
}

/** A message that an engine sends. */
export type SentMessage = Exclude<Message, AssistantMessage> | SentAssistantMessage;

/** One call of a policy that takes and returns messages. */
export interface ChatTurnRequest {
  readonly messages: readonly SentMessage[];
  readonly tools: readonly ToolDefinition[];
  readonly sampling: SamplingParameters;
  /** At least 1. */
  readonly maxNewTokens: number;
  /** The name of the call in records. */
  readonly requestId: string;
  /** The id of the session, which stays the same during an episode. */
  readonly sessionId: string;
}

/** The token counts of a turn, as the server reports them. JSON-able. */
export interface ChatTurnUsage {
  /** Includes cached tokens. */
  readonly promptTokenCount: number;
  /** The number of prompt tokens from the cache. Absent if the server does not report it. */
  readonly cachedTokenCount?: number;
  /** The number of sampled tokens, including those of reasoning. */
  readonly sampledTokenCount: number;
}

/** The reply of an engine that returns messages. JSON-able. */
export interface ChatTurn {
  /** The text, or the model's refusal. `""` if there is none. */
  readonly content: string;
  /** The reasoning. Absent if the server shows none. */
  readonly reasoning?: string;
  readonly toolCalls: readonly ChatToolCall[];
  /** `length`: the reply is cut at the token limit. */
  readonly finish: "stop" | "length";
  /** The token counts. Absent if the server reports none. */
  readonly usage?: ChatTurnUsage;
  /** The model that answered, in the server's words. Absent if the server does not name it. */
  readonly model?: string;
  /** Other members of the message with a value, such as `reasoning_content` or `annotations`. Absent if there are none. */
  readonly members?: OtherMembers;
}
