import { customArguments } from "../call-form.ts";
import type {
  RequestedTurn,
  ClientAssistant,
  ClientCall,
  ClientMessage,
  ToolSet,
} from "../conversation.ts";
import type { Recollection } from "./dialect.ts";
import { contentText, partSeparator, readContent } from "./content-text.ts";
import { inputForm, chatParts, chatSaidParts, assistantForm } from "./message-parts.ts";
import { extendHistory, messagesOf, noHistory, type History, type LastOfTurn } from "./history.ts";
import { NamedResults } from "./named-results.ts";
import { readChatTool, readFunctionEntry } from "./openai-tools.ts";
import {
  prefillError,
  flagOf,
  givenArguments,
  placedArguments,
  invalid,
  isAbsent,
  listOf,
  objectOf,
  optionalNumber,
  optionalText,
  samplingOf,
  schemaMembers,
  sharedFields,
  stopTexts,
  textFormatOf,
  textOf,
  unreadMembers,
  type Json,
} from "./read-body.ts";
import { writeExactJson } from "../../json/exact-json.ts";
import { readFunctionCall, readToolChoice } from "./tool-choice.ts";
import { toolsOf } from "./tool-set.ts";

const readFields = [
  "model",
  "messages",
  "tools",
  "tool_choice",
  "stream",
  "stream_options",
  "stop",
  "n",
  "temperature",
  "top_p",
  "top_k",
  "seed",
  "frequency_penalty",
  "presence_penalty",
  "max_tokens",
  "max_completion_tokens",
  "response_format",
  "logprobs",
  "top_logprobs",
  "parallel_tool_calls",
  "functions",
  "function_call",
];

/** Decodes a request of Chat Completions. */
export function decodeChat(
  value: unknown,
  recollection: Recollection = {},
  history?: History,
): RequestedTurn {
  const body = objectOf(value, "the body");
  const { stream_options: streamOptions, n } = body;
  if (n !== undefined && n !== null && n !== 1) {
    throw invalid("n", "a request samples one turn; send several requests for several turns");
  }
  const options = isAbsent(streamOptions) ? {} : objectOf(streamOptions, "stream_options");
  const { textFormat, ignoredFields } = readFormat(body["response_format"]);
  const fields = sharedFields(body, {
    readFields,
    maxTokens: ["max_completion_tokens", "max_tokens"],
  });
  const { tools, callForms, ...ofTools } = readTools(body, recollection);
  const choice = readChoice(body);
  const read = history ?? readChatHistory(listOf(body["messages"], "messages"), recollection);
  refusePrefill(body, read);
  return {
    ...fields,
    messages: messagesOf(read),
    tools,
    callForms,
    sampling: samplingOf(body, openAiSampling),
    stop: stopTexts(body["stop"], "stop"),
    toolChoice: choice.toolChoice,
    // An assistant message has room for only one `function_call`.
    parallelCalls:
      parallelCallsOf(body["parallel_tool_calls"]) &&
      ![...callForms.values()].includes("function-call"),
    ...(textFormat !== undefined && { textFormat }),
    includesUsage: flagOf(options["include_usage"], "stream_options.include_usage"),
    includesLogprobs: flagOf(body["logprobs"], "logprobs"),
    includesEncryptedReasoning: false,
    echo: {},
    ignoredFields: [
      ...fields.ignoredFields,
      ...ofTools.ignoredFields,
      ...choice.ignoredFields,
      ...unreadMembers(options, "stream_options", ["include_usage"]),
      ...ignoredFields,
    ],
    unsupported: [
      ...fields.unsupported,
      ...ofTools.unsupported,
      ...choice.unsupported,
      ...alternatives(body["top_logprobs"]),
    ],
  };
}

/**
 * Refuses a prefilled assistant turn, in the spellings of vLLM and SGLang
 * (`continue_final_message`), DeepSeek and Mistral (`prefix`), and Moonshot (`partial`).
 */
function refusePrefill({ continue_final_message: isContinued }: Json, { prefill }: History): void {
  const place = isContinued === true ? "continue_final_message" : prefill;
  if (place !== undefined) throw invalid(place, prefillError);
}

/** Reads `tools`, or `functions` if the request has no tools. */
function readTools(body: Json, recollection: Recollection): ToolSet {
  const { functions } = body;
  const set = toolsOf(body["tools"], {
    dialect: "chat",
    recollection,
    read: readChatTool,
  });
  if (isAbsent(functions)) return set;
  if (!givesTools(body)) return toolsOf(functions, { ...olderFunctions, recollection });
  const why = "the request gives tools, which replace functions";
  return { ...set, unsupported: [...set.unsupported, { what: "functions", why }] };
}

const olderFunctions = {
  dialect: "chat",
  field: "functions",
  read: readFunctionEntry,
} as const;

function givesTools({ tools }: Json): boolean {
  return !isAbsent(tools) && !(Array.isArray(tools) && tools.length === 0);
}

function readChoice(body: Json) {
  const { tool_choice: choice, function_call: older } = body;
  return !givesTools(body) && isAbsent(choice) ? readFunctionCall(older) : readToolChoice(choice);
}

/** Reads `parallel_tool_calls`: true if a turn may contain several calls. */
export function parallelCallsOf(value: unknown): boolean {
  return isAbsent(value) || flagOf(value, "parallel_tool_calls");
}

/** Returns the unsupported feature `top_logprobs` if the request sets it. */
export function alternatives(count: unknown): RequestedTurn["unsupported"] {
  const requested = optionalNumber(count, "top_logprobs", { min: 0, whole: true }) ?? 0;
  const why = "the engine is asked for the logprobs of the sampled tokens alone";
  return requested === 0 ? [] : [{ what: "top_logprobs", why }];
}

/**
 * Reads messages of Chat Completions. Some clients send a turn's text and its calls as separate
 * messages.
 */
export function readChatHistory(
  items: readonly unknown[],
  recollection: Recollection = {},
  before: History = noHistory,
): History {
  const results = new NamedResults(messagesOf(before));
  const read = items.map((item, index) => {
    const place = `messages[${before.itemCount + index}]`;
    const message = readMessage(objectOf(item, place), { place, results });
    results.add(message);
    return [message];
  });
  const history = extendHistory(before, read, {
    continuesTurn: (last, next) => areCallsOfText(last, next, recollection),
    separator: "\n",
  });
  const last = items.at(-1) as Json | null | undefined;
  const spelling = ["prefix", "partial"].find((name) => last?.[name] === true);
  if (spelling === undefined) return history;
  return { ...history, prefill: `messages[${history.itemCount - 1}].${spelling}` };
}

/**
 * True if a message with calls alone continues the text message before it. False if the gateway sampled these calls
 * with another text.
 */
function areCallsOfText(
  { text }: LastOfTurn,
  { content, calls: [first] }: ClientAssistant,
  recollection: Recollection,
): boolean {
  if (first === undefined || content !== "") return false;
  const sampled = recollection.textBeside?.(first.id);
  return sampled === undefined || sampled.trim() === text.trim();
}

/** The sampling parameters that Chat Completions and Responses share. */
export const openAiSampling = [
  ...(["temperature", "top_p", "top_k", "seed"] as const),
  ...(["frequency_penalty", "presence_penalty"] as const),
];

const textForm = inputForm(chatParts);
const turnForm = assistantForm(chatSaidParts);

function readMessage(
  message: Json,
  { place, results }: { readonly place: string; readonly results: NamedResults },
): ClientMessage {
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
        callId: resultId(message, { place, results }),
        content: contentText(content, `${place}.content`, textForm),
      };
    case "assistant":
      return readAssistant(message, place);
    default:
      throw invalid(`${place}.role`, `there is no role ${JSON.stringify(role)}`);
  }
}

/** Returns the id of the call that a result answers. Some clients send the tool's name instead. */
function resultId(
  { tool_call_id: id, name }: Json,
  { place, results }: { readonly place: string; readonly results: NamedResults },
): string {
  if (!isAbsent(id) && id !== "") return textOf(id, `${place}.tool_call_id`);
  return results.idOf(textOf(name ?? id, `${place}.tool_call_id`));
}

function readAssistant(message: Json, place: string): ClientMessage {
  const { content, tool_calls: calls } = message;
  if (!isAbsent(message["audio"])) {
    throw invalid(
      `${place}.audio`,
      "audio cannot be shown to the policy; send its transcript as text",
    );
  }
  const { said, thought } = readContent(content ?? null, `${place}.content`, turnForm);
  const refusal = optionalText(message["refusal"], `${place}.refusal`) ?? "";
  const reasoning = reasoningOf(message) || thought;
  return {
    role: "assistant",
    content: withRefusal(said, refusal),
    ...(reasoning !== "" && { reasoning }),
    calls: [
      ...(isAbsent(calls) ? [] : listOf(calls, `${place}.tool_calls`)).map((call, index) => {
        const where = `${place}.tool_calls[${index}]`;
        return readCall(objectOf(call, where), { index, place: where });
      }),
      ...olderCall(message["function_call"], `${place}.function_call`),
    ],
    marks: [],
  };
}

/**
 * Returns the assistant's reasoning from the members in which servers put it.
 *
 * **Source:** openrouter.ai/docs/use-cases/reasoning-tokens (`reasoning_details`); BerriAI/litellm
 * docs/reasoning_content.md (`thinking_blocks`).
 */
function reasoningOf(message: Json): string {
  for (const name of ["reasoning_content", "reasoning"]) {
    const text = message[name];
    if (typeof text === "string" && text !== "") return text;
  }
  for (const name of ["reasoning_details", "thinking_blocks"]) {
    const blocks = message[name];
    const text = Array.isArray(blocks) ? blocks.map(blockReasoning).join("") : "";
    if (text !== "") return text;
  }
  return "";
}

/** Returns a block's text, or an empty text if it is encrypted. */
function blockReasoning(block: unknown): string {
  const { text, summary, thinking } = (block ?? {}) as Json;
  const reasoning = text ?? summary ?? thinking;
  return typeof reasoning === "string" ? reasoning : "";
}

/** Joins text and refusal. Some clients send the refusal in both members. */
function withRefusal(said: string, refusal: string): string {
  if (refusal === "" || refusal === said) return said;
  return said === "" ? refusal : `${said}${partSeparator}${refusal}`;
}

function readCall(call: Json, { index, place }: { index: number; place: string }): ClientCall {
  // For clients that drop ids, the index of the call identifies it.
  const id = optionalText(call["id"], `${place}.id`) || `#${index}`;
  const type = call["type"] || "function";
  switch (type) {
    case "function":
      return { id, ...calledFunction(call["function"], `${place}.function`) };
    case "custom": {
      const { name, input } = objectOf(call["custom"], `${place}.custom`);
      return {
        id,
        name: textOf(name, `${place}.custom.name`),
        argumentsText: customArguments(textOf(input, `${place}.custom.input`)),
      };
    }
    default:
      throw invalid(`${place}.type`, `there is no call of type ${JSON.stringify(type)}`);
  }
}

function calledFunction(value: unknown, place: string): Omit<ClientCall, "id"> {
  const { name, arguments: text } = objectOf(value, place);
  const argumentsText =
    typeof text === "string" ? givenArguments(text) : writeExactJson(text ?? {});
  return {
    name: textOf(name, `${place}.name`),
    ...placedArguments(argumentsText, `${place}.arguments`),
  };
}

/** Reads `function_call`. It has no id, and its result names the function. */
function olderCall(value: unknown, place: string): readonly ClientCall[] {
  if (isAbsent(value)) return [];
  const called = calledFunction(value, place);
  return [{ id: called.name, ...called }];
}

function readFormat(format: unknown): Pick<RequestedTurn, "textFormat" | "ignoredFields"> {
  if (isAbsent(format)) return { ignoredFields: [] };
  const body = objectOf(format, "response_format");
  const place = "response_format";
  const innerPlace = `${place}.json_schema`;
  const inner = body["type"] === "json_schema" ? objectOf(body["json_schema"], innerPlace) : {};
  // llama.cpp's server, for example, accepts a schema here too.
  const isLoose = body["type"] === "json_object" && !isAbsent(body["schema"]);
  const textFormat = isLoose
    ? textFormatOf(
        { type: "json_schema" },
        { place, schema: body["schema"], schemaPlace: `${place}.schema` },
      )
    : textFormatOf(body, { place, schema: inner["schema"], schemaPlace: `${innerPlace}.schema` });
  const ignoredFields = [
    ...unreadMembers(body, place, ["type", "json_schema", ...(isLoose ? ["schema"] : [])]),
    ...unreadMembers(inner, innerPlace, schemaMembers),
  ];
  return { ...(textFormat !== undefined && { textFormat }), ignoredFields };
}
