import { stringifyPythonJson } from "../../../packages/python-values/src/json/json-stringify.ts";
import { UsageError } from "../../errors.ts";
import { parseJsonText } from "../../json/parse-json.ts";
import type { ToolDefinition } from "../../message.ts";
import { isObject } from "../../values/is-object.ts";
import type { SamplingParameters } from "../sampling-parameters.ts";
import type {
  ChatTurnRequest,
  OtherMembers,
  SentAssistantMessage,
  SentMessage,
  SentToolCall,
} from "./chat-turn.ts";

/** The member with the limit of sampled tokens. OpenAI's newer models refuse the older one. */
export type LimitMember = "max_tokens" | "max_completion_tokens";

/** The members of a request that are the same for all turns. */
interface BodyTerms {
  readonly model: string;
  readonly limitMember: LimitMember;
  readonly body: OtherMembers;
  readonly returnedMembers: readonly string[];
}

/** Members of a request that the engine itself needs. */
const ownMembers = ["model", "messages", "tools", "stream", "n"];

/** Members of a request that have settings, with the setting of each. A user can only leave them out. */
const settingOf: Readonly<Record<string, string>> = {
  temperature: "temperature",
  top_p: "top-p",
  top_k: "top-k",
  min_p: "min-p",
  seed: "sampling-seed",
  max_tokens: "max-tokens-per-turn",
  max_completion_tokens: "max-tokens-per-turn",
};

/**
 * Refuses further members of a request that the engine itself writes, or that a setting writes.
 *
 * @throws UsageError if a further member of requests is one of the engine's own, or has a setting.
 */
export function requireFreeMembers(body: OtherMembers): void {
  for (const [name, value] of Object.entries(body)) {
    if (ownMembers.includes(name)) {
      throw new UsageError(`Cannot add ${name} to requests: the engine writes it itself`);
    }
    const setting = Object.hasOwn(settingOf, name) ? settingOf[name] : undefined;
    if (setting === undefined || value === null) continue;
    throw new UsageError(
      `Cannot add ${name} to requests: expected ${setting} in its place, or null to leave it out`,
    );
  }
}

/** Writes a request as JSON. Tools keep the key order and the number format of their source. */
export function writeChatBody(
  { messages, tools, sampling, maxNewTokens }: ChatTurnRequest,
  { model, limitMember, body, returnedMembers }: BodyTerms,
): string {
  const members = {
    model,
    messages: messages.map((message) => toWire(message, returnedMembers)),
    ...samplingMembers(sampling),
    [limitMember]: maxNewTokens,
    ...sampling.extra,
    ...body,
  };
  const sent = Object.entries(members).filter(([, value]) => value !== null);
  const text = JSON.stringify(Object.fromEntries(sent));
  return tools.length === 0 ? text : `${text.slice(0, -1)},"tools":${writeTools(tools)}}`;
}

/** The JSON of lists of tools. An episode sends the same list with each turn. */
const written = new WeakMap<readonly ToolDefinition[], string>();

function writeTools(tools: readonly ToolDefinition[]): string {
  const known = written.get(tools);
  if (known !== undefined) return known;
  const text = stringifyPythonJson(
    tools.map(({ openai }) => openai),
    { ensureAscii: false },
  );
  written.set(tools, text);
  return text;
}

/**
 * Returns the members for sampling. Leaves out parameters at their defaults, because many servers refuse parameters
 * that they do not know.
 */
function samplingMembers(sampling: SamplingParameters): Readonly<Record<string, unknown>> {
  const { temperature, topP = 1, topK = -1, minP = 0, seed } = sampling;
  const { frequencyPenalty, presencePenalty, repetitionPenalty } = sampling;
  return {
    temperature,
    ...(topP !== 1 && { top_p: topP }),
    ...(topK !== -1 && { top_k: topK }),
    ...(minP !== 0 && { min_p: minP }),
    ...(seed !== undefined && { seed }),
    ...(frequencyPenalty !== undefined && { frequency_penalty: frequencyPenalty }),
    ...(presencePenalty !== undefined && { presence_penalty: presencePenalty }),
    ...(repetitionPenalty !== undefined && { repetition_penalty: repetitionPenalty }),
  };
}

function toWire(message: SentMessage, returnedMembers: readonly string[]): object {
  switch (message.role) {
    case "assistant":
      return toWireAssistant(message, returnedMembers);
    case "tool":
      return { role: "tool", tool_call_id: message.toolCallId, content: message.content };
    default:
      return { role: message.role, content: message.content };
  }
}

function toWireAssistant(
  { content, toolCalls = [], members = {} }: SentAssistantMessage,
  returnedMembers: readonly string[],
): object {
  const returned = returnedMembers.filter((name) => Object.hasOwn(members, name));
  return {
    ...Object.fromEntries(returned.map((name) => [name, members[name]])),
    role: "assistant",
    // OpenAI's own form of a turn with calls only.
    content: content === "" && toolCalls.length > 0 ? null : content,
    ...(toolCalls.length > 0 && { tool_calls: toolCalls.map(toWireCall) }),
  };
}

function toWireCall({ id, name, argumentsText, members = {} }: SentToolCall): object {
  return {
    ...members,
    id,
    type: "function",
    function: { name, arguments: readableArguments(argumentsText) },
  };
}

/**
 * Returns arguments that every server accepts in a history. Servers with a chat template parse the arguments of earlier
 * calls, and refuse the conversation if one is not a JSON object. Such arguments become the value of one member, so that
 * the model still sees its own text.
 */
function readableArguments(text: string): string {
  return isJsonObject(text) ? text : JSON.stringify({ malformed_arguments: text });
}

function isJsonObject(text: string): boolean {
  return isObject(parseJsonText(text));
}
