import { customArguments } from "../call-form.ts";
import type {
  AskedTurn,
  ClientAssistant,
  ClientCall,
  ClientMessage,
  ToolSet,
} from "../conversation.ts";
import type { Recollection } from "./dialect.ts";
import { contentText, partSeparator, readContent } from "./content-text.ts";
import { askedForm, chatParts, chatSaidParts, saidForm } from "./message-parts.ts";
import { extendHistory, messagesOf, noHistory, type History, type LastOfTurn } from "./history.ts";
import { NamedResults } from "./named-results.ts";
import { readChatTool, readOlderFunction } from "./openai-tools.ts";
import {
  begunTurn,
  flagOf,
  givenArguments,
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
import { writeExactJson } from "../../python/json/exact-json.ts";
import { readFunctionCall, readToolChoice } from "./tool-choice.ts";
import { toolsOf } from "./tool-set.ts";

const knownFields = [
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
  const { textFormat, ignoredFields } = readFormat(body["response_format"]);
  refuseBegunTurn(body);
  const fields = sharedFields(body, {
    known: knownFields,
    maxTokens: ["max_completion_tokens", "max_tokens"],
  });
  const { tools, callForms, ...ofTools } = readTools(body, recollection);
  const choice = readChoice(body);
  return {
    ...fields,
    messages: messagesOf(
      history ?? readChatHistory(listOf(body["messages"], "messages"), recollection),
    ),
    tools,
    callForms,
    sampling: samplingOf(body, openAiSampling),
    stop: stopTexts(body["stop"], "stop"),
    toolChoice: choice.toolChoice,
    // A message has room for one call of the older kind.
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
    unkept: [
      ...fields.unkept,
      ...ofTools.unkept,
      ...choice.unkept,
      ...alternatives(body["top_logprobs"]),
    ],
  };
}

/**
 * Refuses the wish that the last message be gone on from, in the spellings of vLLM and SGLang, DeepSeek and
 * Mistral, and Moonshot.
 */
function refuseBegunTurn({ messages, continue_final_message: goesOn }: Json): void {
  const index = Array.isArray(messages) ? messages.length - 1 : -1;
  const last = ((messages as readonly unknown[] | undefined)?.[index] ?? {}) as Json;
  const spelling = ["prefix", "partial"].find((name) => last[name] === true);
  if (goesOn !== true && spelling === undefined) return;
  const place = goesOn === true ? "continue_final_message" : `messages[${index}].${spelling}`;
  throw invalid(place, begunTurn);
}

/** Tools, or those in the older field. A client that gives both knows the newer one. */
function readTools(body: Json, recollection: Recollection): ToolSet {
  const { functions } = body;
  const set = toolsOf(body["tools"], {
    dialect: "chat",
    recollection,
    read: readChatTool,
  });
  if (isAbsent(functions)) return set;
  if (!givesTools(body)) return toolsOf(functions, { ...olderFunctions, recollection });
  const why = "the request gives tools, which stand in the place of functions";
  return { ...set, unkept: [...set.unkept, { what: "functions", why }] };
}

const olderFunctions = {
  dialect: "chat",
  field: "functions",
  read: readOlderFunction,
} as const;

function givesTools({ tools }: Json): boolean {
  return !isAbsent(tools) && !(Array.isArray(tools) && tools.length === 0);
}

function readChoice(body: Json) {
  const { tool_choice: choice, function_call: older } = body;
  return !givesTools(body) && isAbsent(choice) ? readFunctionCall(older) : readToolChoice(choice);
}

/** Returns whether a turn may hold several calls, as OpenAI's protocols spell it. */
export function parallelCallsOf(value: unknown): boolean {
  return isAbsent(value) || flagOf(value, "parallel_tool_calls");
}

/** The wish for tokens that might have been sampled instead. */
export function alternatives(count: unknown): AskedTurn["unkept"] {
  const asked = optionalNumber(count, "top_logprobs", { min: 0, whole: true }) ?? 0;
  const why = "the engine is asked for the logprobs of the sampled tokens alone";
  return asked === 0 ? [] : [{ what: "top_logprobs", why }];
}

/** Reads messages of Chat Completions. Some clients send the text of a turn and its calls one by one. */
export function readChatHistory(
  items: readonly unknown[],
  recollection: Recollection = {},
  before: History = noHistory,
): History {
  const results = new NamedResults(messagesOf(before));
  const read = items.map((item, index) => {
    const place = `messages[${before.itemCount + index}]`;
    const message = readMessage(objectOf(item, place), { place, results });
    results.enter(message);
    return [message];
  });
  return extendHistory(before, read, {
    goesOn: (last, next) => areCallsOfText(last, next, recollection),
    separator: "\n",
  });
}

/** Calls alone belong to the text before them, unless they were sampled here without it. */
function areCallsOfText(
  { text }: LastOfTurn,
  { content, calls: [first] }: ClientAssistant,
  recollection: Recollection,
): boolean {
  if (first === undefined || content !== "") return false;
  const sampled = recollection.textBeside?.(first.id);
  return sampled === undefined || sampled.trim() === text.trim();
}

/** The parameters that Chat Completions and Responses share. */
export const openAiSampling = [
  ...(["temperature", "top_p", "top_k", "seed"] as const),
  ...(["frequency_penalty", "presence_penalty"] as const),
];

const textForm = askedForm(chatParts);
const turnForm = saidForm(chatSaidParts);

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

/** The id of the call that a result answers. Some clients give the tool's name in its place. */
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
  const { said, thought } = readContent(content, `${place}.content`, turnForm);
  const refusal = optionalText(message["refusal"], `${place}.refusal`) ?? "";
  const reasoning = toldThought(message) || thought;
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
 * The thoughts of an assistant, from the members in which servers tell them.
 *
 * **Source:** openrouter.ai/docs/use-cases/reasoning-tokens (`reasoning_details`); BerriAI/litellm
 * docs/reasoning_content.md (`thinking_blocks`).
 */
function toldThought(message: Json): string {
  for (const name of ["reasoning_content", "reasoning"]) {
    const told = message[name];
    if (typeof told === "string" && told !== "") return told;
  }
  for (const name of ["reasoning_details", "thinking_blocks"]) {
    const blocks = message[name];
    const told = Array.isArray(blocks) ? blocks.map(blockThought).join("") : "";
    if (told !== "") return told;
  }
  return "";
}

/** The text of a block; empty where it is encrypted. */
function blockThought(block: unknown): string {
  const { text, summary, thinking } = (block ?? {}) as Json;
  const told = text ?? summary ?? thinking;
  return typeof told === "string" ? told : "";
}

/** Some clients say a refusal twice, in the content and in the member of its own. */
function withRefusal(said: string, refusal: string): string {
  if (refusal === "" || refusal === said) return said;
  return said === "" ? refusal : `${said}${partSeparator}${refusal}`;
}

function readCall(call: Json, { index, place }: { index: number; place: string }): ClientCall {
  // A client that drops ids is told from others by the place of the call.
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
  return {
    name: textOf(name, `${place}.name`),
    argumentsText: typeof text === "string" ? givenArguments(text) : writeExactJson(text ?? {}),
  };
}

/** A call of the older kind has no id: its result names the function. */
function olderCall(value: unknown, place: string): readonly ClientCall[] {
  if (isAbsent(value)) return [];
  const called = calledFunction(value, place);
  return [{ id: called.name, ...called }];
}

function readFormat(format: unknown): Pick<AskedTurn, "textFormat" | "ignoredFields"> {
  if (isAbsent(format)) return { ignoredFields: [] };
  const body = objectOf(format, "response_format");
  const place = "response_format";
  const innerPlace = `${place}.json_schema`;
  const inner = body["type"] === "json_schema" ? objectOf(body["json_schema"], innerPlace) : {};
  // llama.cpp's server and others take a schema here, too.
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
