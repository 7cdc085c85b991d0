import type { AskedTurn, ClientCall, ClientMessage, ToolChoice } from "../conversation.ts";
import type { ToolDefinition } from "../../message.ts";
import { contentText, partSeparator } from "./content-text.ts";
import {
  flagOf,
  ignoredFields,
  invalid,
  listOf,
  objectOf,
  optionalNumber,
  optionalText,
  stopTexts,
  textOf,
  toolOf,
  type Json,
} from "./read-body.ts";

const knownFields = new Set([
  ...["model", "messages", "tools", "tool_choice", "stream", "stream_options", "stop", "n"],
  ...["temperature", "top_p", "top_k", "seed", "frequency_penalty", "presence_penalty"],
  ...["max_tokens", "max_completion_tokens", "response_format", "logprobs", "top_logprobs"],
]);

/** Reads a request of Chat Completions. */
export function decodeChat(value: unknown): AskedTurn {
  const body = objectOf(value, "the body");
  const { stream_options: streamOptions, n } = body;
  if (n !== undefined && n !== null && n !== 1) {
    throw invalid("n", "one turn is sampled a request; ask several times for several");
  }
  const options = isAbsent(streamOptions) ? {} : objectOf(streamOptions, "stream_options");
  const maxTokens =
    optionalNumber(body["max_completion_tokens"], "max_completion_tokens", wholeFromOne) ??
    optionalNumber(body["max_tokens"], "max_tokens", wholeFromOne);
  const textFormat = readFormat(body["response_format"]);
  return {
    model: optionalText(body["model"], "model") ?? "",
    isStreamed: flagOf(body["stream"], "stream"),
    messages: listOf(body["messages"], "messages").map((message, index) =>
      readMessage(objectOf(message, `messages[${index}]`), `messages[${index}]`),
    ),
    tools: readTools(body["tools"]),
    sampling: readSampling(body),
    ...(maxTokens === undefined ? {} : { maxTokens }),
    stop: stopTexts(body["stop"], "stop"),
    toolChoice: readToolChoice(body["tool_choice"]),
    ...(textFormat === undefined ? {} : { textFormat }),
    includesUsage: flagOf(options["include_usage"], "stream_options.include_usage"),
    includesLogprobs: flagOf(body["logprobs"], "logprobs"),
    includesEncryptedReasoning: false,
    echo: {},
    ignoredFields: ignoredFields(body, knownFields),
  };
}

const wholeFromOne = { min: 1, whole: true };

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null;
}

/** The parameters that Chat Completions and Responses share. */
export function readSampling(body: Json): AskedTurn["sampling"] {
  const read = {
    temperature: optionalNumber(body["temperature"], "temperature", { min: 0, max: 100 }),
    topP: optionalNumber(body["top_p"], "top_p", { min: 0, max: 1 }),
    topK: optionalNumber(body["top_k"], "top_k", { min: -1, whole: true }),
    seed: optionalNumber(body["seed"], "seed", { min: Number.MIN_SAFE_INTEGER, whole: true }),
    frequencyPenalty: optionalNumber(body["frequency_penalty"], "frequency_penalty", { min: -2 }),
    presencePenalty: optionalNumber(body["presence_penalty"], "presence_penalty", { min: -2 }),
  };
  return Object.fromEntries(Object.entries(read).filter(([, number]) => number !== undefined));
}

const textForm = { textTypes: ["text", "input_text"], separator: partSeparator };
const saidForm = {
  textTypes: ["text", "output_text", "refusal"],
  separator: "",
  passedOver: ["thinking", "reasoning"],
};

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
  const reasoning = message["reasoning_content"] ?? message["reasoning"];
  return {
    role: "assistant",
    content: contentText(content, `${place}.content`, saidForm),
    ...(typeof reasoning === "string" && reasoning !== "" ? { reasoning } : {}),
    calls: isAbsent(calls)
      ? []
      : listOf(calls, `${place}.tool_calls`).map((call, index) =>
          readCall(objectOf(call, `${place}.tool_calls[${index}]`), {
            index,
            place: `${place}.tool_calls[${index}]`,
          }),
        ),
    marks: [],
  };
}

function readCall(call: Json, { index, place }: { index: number; place: string }): ClientCall {
  const body = objectOf(call["function"], `${place}.function`);
  const text = body["arguments"];
  return {
    // A client that drops ids is told from others by the place of the call.
    id: optionalText(call["id"], `${place}.id`) ?? `#${index}`,
    name: textOf(body["name"], `${place}.function.name`),
    argumentsText: typeof text === "string" ? text : JSON.stringify(text ?? {}),
  };
}

function readTools(tools: unknown): readonly ToolDefinition[] {
  if (isAbsent(tools)) return [];
  return listOf(tools, "tools").flatMap((value, index) => {
    const tool = objectOf(value, `tools[${index}]`);
    if (tool["type"] !== "function" && !("function" in tool)) return [];
    const place = `tools[${index}].function`;
    const body = objectOf(tool["function"], place);
    const name = textOf(body["name"], `${place}.name`);
    return [
      toolOf({ name, description: body["description"], parameters: body["parameters"] }, place),
    ];
  });
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
  return textFormatOf(objectOf(format, "response_format")["type"]);
}

/** The form that a reply's text is to have. */
export function textFormatOf(type: unknown): AskedTurn["textFormat"] {
  if (type === "json_object") return "json-object";
  return type === "json_schema" ? "json-schema" : undefined;
}
