import type { AskedTurn, ClientAssistant, ClientMessage } from "../conversation.ts";
import type { ToolDefinition } from "../../message.ts";
import { openAiSampling, readToolChoice } from "./chat-decode.ts";
import { contentText, readContent } from "./content-text.ts";
import type { Recollection } from "./dialect.ts";
import {
  askedForm,
  responsesParts,
  responsesSaidParts,
  responsesThoughtParts,
  saidForm,
} from "./message-parts.ts";
import { extendHistory, messagesOf, noHistory, type History } from "./history.ts";
import {
  invalid,
  isAbsent,
  listOf,
  objectOf,
  optionalText,
  requireShallow,
  samplingOf,
  sharedFields,
  textFormatOf,
  textOf,
  toolOf,
  toolsOf,
  type Json,
} from "./read-body.ts";
import { flatName } from "./tool-namespaces.ts";

const knownFields = new Set([
  ...["model", "input", "instructions", "tools", "tool_choice", "stream", "previous_response_id"],
  ...["temperature", "top_p", "top_k", "seed", "max_output_tokens", "text", "include", "store"],
  ...["parallel_tool_calls", "metadata", "reasoning", "truncation", "frequency_penalty"],
  "presence_penalty",
]);

const echoed = [
  ...["instructions", "tools", "tool_choice", "parallel_tool_calls", "metadata", "store", "text"],
  ...["previous_response_id", "temperature", "top_p", "max_output_tokens", "reasoning"],
  ...["truncation", "user", "service_tier", "prompt_cache_key"],
];

/**
 * Reads a request of Responses. Items that follow each other and are of one turn (what was thought,
 * said and called) become one message, as do those that the request only names by their ids.
 */
export function decodeResponses(
  value: unknown,
  recollection: Recollection = {},
  known?: History,
): AskedTurn {
  const body = objectOf(value, "the body");
  if (body["background"] === true) throw invalid("background", "turns are sampled at once");
  refuseStoredText(body);
  const instructions = optionalText(body["instructions"], "instructions") ?? "";
  const earlier = earlierMessages(body, recollection);
  const history = [...earlier, ...messagesOf(known ?? readInput(body["input"], recollection))];
  // A conversation that began in another dialect has them as its first message.
  const [first] = earlier;
  const isKnown = first?.role === "system" && first.content === instructions;
  const hasInstructions = instructions !== "" && !isKnown;
  const textFormat = readFormat(body["text"]);
  const include = isAbsent(body["include"]) ? [] : listOf(body["include"], "include");
  return {
    ...sharedFields(body, { known: knownFields, maxTokens: ["max_output_tokens"] }),
    messages: hasInstructions ? [{ role: "system", content: instructions }, ...history] : history,
    ...(hasInstructions ? { hasInstructions } : {}),
    tools: toolsOf(body["tools"], {
      ...{ dialect: "responses", recollection },
      read: (tool, place) => readTool(tool, place),
    }),
    sampling: samplingOf(body, openAiSampling),
    stop: [],
    toolChoice: readToolChoice(body["tool_choice"]),
    ...(textFormat === undefined ? {} : { textFormat }),
    includesUsage: true,
    includesLogprobs: false,
    includesEncryptedReasoning: include.includes("reasoning.encrypted_content"),
    echo: readEcho(body),
  };
}

function readFormat(text: unknown): AskedTurn["textFormat"] {
  const format = isAbsent(text) ? undefined : objectOf(text, "text")["format"];
  if (isAbsent(format)) return undefined;
  const body = objectOf(format, "text.format");
  return textFormatOf(body, { schema: body["schema"], place: "text.format.schema" });
}

/** @throws ClientError where a field cannot be repeated. */
function readEcho(body: Json): Json {
  const fields = echoed.filter((name) => name in body).map((name) => [name, body[name]] as const);
  for (const [name, value] of fields) requireShallow(value, name);
  return Object.fromEntries(fields);
}

/** @throws ClientError where a part of the conversation is named that only the client's own server knows. */
function refuseStoredText(body: Json): void {
  if (!isAbsent(body["conversation"])) {
    const remedy = "send the items in input, or go on with previous_response_id";
    throw invalid("conversation", `conversations are not stored here; ${remedy}`);
  }
  if (!isAbsent(body["prompt"])) {
    throw invalid("prompt", "prompts are not stored here; send the text in instructions or input");
  }
}

/** The conversation that the request goes on from. Instructions are not carried over. */
function earlierMessages(body: Json, recollection: Recollection): readonly ClientMessage[] {
  const id = optionalText(body["previous_response_id"], "previous_response_id");
  if (id === undefined) return [];
  const earlier = recollection.conversationOf?.(id);
  if (earlier !== undefined) return earlier;
  throw invalid(
    "previous_response_id",
    `no reply of this session has the id ${JSON.stringify(id)}`,
  );
}

const textForm = askedForm(responsesParts);
const turnForm = saidForm(responsesSaidParts);
const thoughtForm = saidForm(responsesThoughtParts);

function readInput(input: unknown, recollection: Recollection): History {
  if (isAbsent(input)) return noHistory;
  if (typeof input !== "string") return readResponsesHistory(listOf(input, "input"), recollection);
  return { messages: [{ role: "user", content: input }], itemCount: 1 };
}

/** Reads items of Responses. Those of one turn follow each other. */
export function readResponsesHistory(
  items: readonly unknown[],
  recollection: Recollection = {},
  before: History = noHistory,
): History {
  const read = items.map((value, index) => {
    const place = `input[${before.itemCount + index}]`;
    const item = resolve(objectOf(value, place), { place, recollection });
    const said = readTurnItem(item, place);
    return said === undefined ? readOtherItem(item, place) : [said];
  });
  return extendHistory(before, read, {
    goesOn: (mark, next) => isSameReply(mark, next, recollection),
    separator: "",
  });
}

function resolve(
  item: Json,
  { place, recollection }: { place: string; recollection: Recollection },
): Json {
  if (item["type"] !== "item_reference") return item;
  const id = textOf(item["id"], `${place}.id`);
  const known = recollection.item?.(id);
  if (known !== undefined) return objectOf(known, place);
  throw invalid(`${place}.id`, `no item of this session has the id ${JSON.stringify(id)}`);
}

/** Items that follow each other are one turn, unless they stood in different replies of ours. */
function isSameReply(
  mark: string | undefined,
  { marks: [first] }: ClientAssistant,
  recollection: Recollection,
): boolean {
  const [before, after] = [mark, first].map((id) =>
    id === undefined ? id : recollection.replyOf?.(id),
  );
  return before === undefined || after === undefined || before === after;
}

/** What an item adds to a turn of the assistant's; `undefined` where it is of somebody else. */
function readTurnItem(item: Json, place: string): ClientAssistant | undefined {
  const { type, role, id } = item;
  const marks = typeof id === "string" && id !== "" ? [id] : [];
  const nothing = { role: "assistant", content: "", calls: [], marks } as const;
  if (type === "reasoning") {
    const { content, summary, encrypted_content: encrypted } = item;
    const thought =
      contentText(content, `${place}.content`, thoughtForm) ||
      contentText(summary, `${place}.summary`, thoughtForm);
    const own = typeof encrypted === "string" && encrypted !== "" ? [...marks, encrypted] : marks;
    return { ...nothing, reasoning: thought, marks: own };
  }
  if (type === "function_call") {
    const callId = textOf(item["call_id"], `${place}.call_id`);
    const own = textOf(item["name"], `${place}.name`);
    const namespace = optionalText(item["namespace"], `${place}.namespace`);
    const name = namespace === undefined ? own : flatName({ namespace, name: own });
    const argumentsText = textOf(item["arguments"], `${place}.arguments`);
    return { ...nothing, calls: [{ id: callId, name, argumentsText }] };
  }
  if ((type === undefined || type === "message") && role === "assistant") {
    const { said, thought } = readContent(item["content"], `${place}.content`, turnForm);
    return { ...nothing, content: said, ...(thought === "" ? {} : { reasoning: thought }) };
  }
  return undefined;
}

function readOtherItem(item: Json, place: string): readonly ClientMessage[] {
  const { type, role } = item;
  if (type === "function_call_output") {
    const callId = textOf(item["call_id"], `${place}.call_id`);
    return [
      { role: "tool", callId, content: contentText(item["output"], `${place}.output`, textForm) },
    ];
  }
  if (type !== undefined && type !== "message") {
    throw invalid(`${place}.type`, `there is no item of type ${JSON.stringify(type)}`);
  }
  const content = contentText(item["content"], `${place}.content`, textForm);
  switch (role) {
    case "system":
    case "developer":
      return [{ role: "system", content }];
    case "user":
      return [{ role, content }];
    default:
      throw invalid(`${place}.role`, `there is no role ${JSON.stringify(role)}`);
  }
}

/**
 * Tools that a server would run itself are not the policy's: they are passed over. Those of a namespace
 * are tools like others, under one name.
 */
function readTool(tool: Json, place: string, namespace?: string): readonly ToolDefinition[] {
  const { type, description, parameters } = tool;
  if (type === "namespace" && namespace === undefined) {
    const group = textOf(tool["name"], `${place}.name`);
    return listOf(tool["tools"], `${place}.tools`).flatMap((inner, index) => {
      const where = `${place}.tools[${index}]`;
      return readTool(objectOf(inner, where), where, group);
    });
  }
  if (type !== "function") return [];
  const own = textOf(tool["name"], `${place}.name`);
  const name = namespace === undefined ? own : flatName({ namespace, name: own });
  return [toolOf({ name, description, parameters }, place)];
}
