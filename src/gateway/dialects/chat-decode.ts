import type { AskedTurn, ClientCall, ClientMessage, ToolChoice } from "../conversation.ts";
import type { ToolDefinition } from "../../message.ts";
import type { Recollection } from "./dialect.ts";
import { contentText, partSeparator, readContent } from "./content-text.ts";
import { askedForm, chatParts, chatSaidParts, saidForm } from "./message-parts.ts";
import { extendHistory, messagesOf, noHistory, oneMessageTurns, type History } from "./history.ts";
import {
  flagOf,
  invalid,
  isAbsent,
  listOf,
  objectOf,
  optionalText,
  samplingOf,
  sharedFields,
  stopTexts,
  textFormatOf,
  textOf,
  toolOf,
  toolsOf,
  type Json,
} from "./read-body.ts";
import { writeExactJson } from "../../python/exact-json.ts";

const knownFields = new Set([
  ...["model", "messages", "tools", "tool_choice", "stream", "stream_options", "stop", "n"],
  ...["temperature", "top_p", "top_k", "seed", "frequency_penalty", "presence_penalty"],
  ...["max_tokens", "max_completion_tokens", "response_format", "logprobs", "top_logprobs"],
]);

/** Reads a request of Chat Completions. */
export function decodeChat(
  value: unknown,
  recollection: Recollection = {},
  history?: History,
): AskedTurn {
  const body = objectOf(value, "the body");
  const { stream_options: streamOptions, n } = body;
  if (n !== undefined && n !== null && n !== 1) {
    throw invalid("n", "one turn is sampled a request; ask several times for several");
  }
  const options = isAbsent(streamOptions) ? {} : objectOf(streamOptions, "stream_options");
  const textFormat = readFormat(body["response_format"]);
  return {
    ...sharedFields(body, {
      known: knownFields,
      maxTokens: ["max_completion_tokens", "max_tokens"],
    }),
    messages: messagesOf(history ?? readChatHistory(listOf(body["messages"], "messages"))),
    tools: toolsOf(body["tools"], { dialect: "chat", recollection, read: readTool }),
    sampling: samplingOf(body, openAiSampling),
    stop: stopTexts(body["stop"], "stop"),
    toolChoice: readToolChoice(body["tool_choice"]),
    ...(textFormat === undefined ? {} : { textFormat }),
    includesUsage: flagOf(options["include_usage"], "stream_options.include_usage"),
    includesLogprobs: flagOf(body["logprobs"], "logprobs"),
    includesEncryptedReasoning: false,
    echo: {},
  };
}

/** Reads messages of Chat Completions. */
export function readChatHistory(
  items: readonly unknown[],
  _recollection: Recollection = {},
  before: History = noHistory,
): History {
  const read = items.map((item, index) => {
    const place = `messages[${before.itemCount + index}]`;
    return [readMessage(objectOf(item, place), place)];
  });
  return extendHistory(before, read, oneMessageTurns);
}

/** The parameters that Chat Completions and Responses share. */
export const openAiSampling = [
  ...(["temperature", "top_p", "top_k", "seed"] as const),
  ...(["frequency_penalty", "presence_penalty"] as const),
];

const textForm = askedForm(chatParts);
const turnForm = saidForm(chatSaidParts);

function readMessage(message: Json, place: string): ClientMessage {
  const { role, content } = message;
  switch (role) {
    case "system":
    case "developer":
      return { role: "system", content: contentText(content, `${place}.content`, textForm) };
    case "user":
      return { role: "user", content: contentText(content, `${place}.content`, textForm) };
    case "tool":
    case "function":
      return {
        role: "tool",
        callId: textOf(message["tool_call_id"] ?? message["name"], `${place}.tool_call_id`),
        content: contentText(content, `${place}.content`, textForm),
      };
    case "assistant":
      return readAssistant(message, place);
    default:
      throw invalid(`${place}.role`, `there is no role ${JSON.stringify(role)}`);
  }
}

function readAssistant(message: Json, place: string): ClientMessage {
  const { content, tool_calls: calls } = message;
  if (!isAbsent(message["audio"])) {
    throw invalid(
      `${place}.audio`,
      "audio cannot be shown to the policy; send its transcript as text",
    );
  }
  const { said, thought } = readContent(content, `${place}.content`, turnForm);
  const refusal = optionalText(message["refusal"], `${place}.refusal`) ?? "";
  const told = message["reasoning_content"] ?? message["reasoning"];
  const reasoning = typeof told === "string" && told !== "" ? told : thought;
  return {
    role: "assistant",
    content: withRefusal(said, refusal),
    ...(reasoning === "" ? {} : { reasoning }),
    calls: isAbsent(calls)
      ? []
      : listOf(calls, `${place}.tool_calls`).map((call, index) => {
          const where = `${place}.tool_calls[${index}]`;
          return readCall(objectOf(call, where), { index, place: where });
        }),
    marks: [],
  };
}

/** Some clients say a refusal twice, in the content and in the member of its own. */
function withRefusal(said: string, refusal: string): string {
  if (refusal === "" || refusal === said) return said;
  return said === "" ? refusal : `${said}${partSeparator}${refusal}`;
}

function readCall(call: Json, { index, place }: { index: number; place: string }): ClientCall {
  const body = objectOf(call["function"], `${place}.function`);
  const text = body["arguments"];
  return {
    // A client that drops ids is told from others by the place of the call.
    id: optionalText(call["id"], `${place}.id`) ?? `#${index}`,
    name: textOf(body["name"], `${place}.function.name`),
    argumentsText: typeof text === "string" ? text : writeExactJson(text ?? {}),
  };
}

function readTool(tool: Json, where: string): readonly ToolDefinition[] {
  if (tool["type"] !== "function" && !("function" in tool)) return [];
  const place = `${where}.function`;
  const { name, description, parameters } = objectOf(tool["function"], place);
  return [toolOf({ name: textOf(name, `${place}.name`), description, parameters }, place)];
}

/** Which tools are to be called, in OpenAI's spelling: a word, or the tool's name in an object. */
export function readToolChoice(choice: unknown): ToolChoice {
  if (isAbsent(choice) || choice === "auto") return { type: "auto" };
  if (choice === "none" || choice === "required") return { type: choice };
  if (typeof choice === "string") {
    throw invalid("tool_choice", `there is no choice ${JSON.stringify(choice)}`);
  }
  const { type, name, function: body, mode } = objectOf(choice, "tool_choice");
  if (type === "allowed_tools") return readToolChoice(mode);
  if (type !== "function") return { type: "auto" };
  const named = name ?? objectOf(body, "tool_choice.function")["name"];
  return { type: "named", name: textOf(named, "tool_choice.name") };
}

function readFormat(format: unknown): AskedTurn["textFormat"] {
  if (isAbsent(format)) return undefined;
  const body = objectOf(format, "response_format");
  const place = "response_format.json_schema";
  const schema =
    body["type"] === "json_schema" ? objectOf(body["json_schema"], place)["schema"] : undefined;
  return textFormatOf(body, { schema, place: `${place}.schema` });
}
