export {
  shownToolName,
  toolFromOpenAi,
  toolParameters,
  toolsFromOpenAi,
  type ToolDefinition,
} from "../packages/tool-parsers/src/tool-definition.ts";

/** One tool call of an assistant message. */
export interface ToolCall {
  readonly id: string;
  readonly name: string;
  /** The arguments exactly as the model wrote them, or as the engine's parser reports them. */
  readonly argumentsText: string;
}

/** A parsed turn of the policy. */
export interface AssistantMessage {
  readonly role: "assistant";
  readonly content: string;
  /** The reasoning before the answer, if any, without its markup. */
  readonly reasoning?: string;
  readonly toolCalls?: readonly ToolCall[];
}

/** A message of the conversation. Token ids are never made from it. */
export type Message =
  | { readonly role: "system" | "user"; readonly content: string }
  | AssistantMessage
  | {
      readonly role: "tool";
      readonly content: string;
      readonly toolCallId: string;
      readonly name: string;
    };
