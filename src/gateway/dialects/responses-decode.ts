import type { AskedTurn, ClientAssistant, ClientMessage } from "../conversation.ts";
import { alternatives, openAiSampling, parallelCallsOf } from "./chat-decode.ts";
import { contentText, readContent } from "./content-text.ts";
import type { Recollection } from "./dialect.ts";
import {
  askedForm,
  responsesParts,
  responsesSaidParts,
  responsesThoughtParts,
  saidForm,
} from "./message-parts.ts";
import { extendHistory, messagesOf, noHistory, type AddedTool, type History } from "./history.ts";
import { readResponsesTool } from "./openai-tools.ts";
import {
  flagOf,
  invalid,
  isAbsent,
  listOf,
  objectOf,
  optionalText,
  requireShallow,
  samplingOf,
  schemaMembers,
  sharedFields,
  textFormatOf,
  textOf,
  unreadMembers,
  type Json,
} from "./read-body.ts";
import { readCallItem, readResultItem } from "./responses-calls.ts";
import { readToolChoice } from "./tool-choice.ts";
import { toolsOf } from "./tool-set.ts";

const knownFields = [
  "model",
  "input",
  "instructions",
  "tools",
  "tool_choice",
  "stream",
  "previous_response_id",
  "temperature",
  "top_p",
  "top_k",
  "seed",
  "max_output_tokens",
  "text",
  "include",
  "store",
  "parallel_tool_calls",
  "metadata",
  "frequency_penalty",
  "presence_penalty",
  "background",
  "top_logprobs",
  "truncation",
];

/** The extras that a request can ask to be in the reply. */
const included = {
  reasoning: "reasoning.encrypted_content",
  logprobs: "message.output_text.logprobs",
};

const echoed = [
  "instructions",
  "tools",
  "tool_choice",
  "parallel_tool_calls",
  "metadata",
  "store",
  "text",
  "previous_response_id",
  "temperature",
  "top_p",
  "max_output_tokens",
  "reasoning",
  "truncation",
  "user",
  "service_tier",
  "prompt_cache_key",
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
  if (flagOf(body["background"], "background"))
    throw invalid("background", "turns are sampled at once");
  refuseStoredText(body);
  const instructions = optionalText(body["instructions"], "instructions") ?? "";
  const earlier = earlierMessages(body, recollection);
  const input = known ?? readInput(body["input"], recollection);
  const history = [...earlier, ...messagesOf(input)];
  // A conversation that began in another dialect has them as its first message.
  const [first] = earlier;
  const isKnown = first?.role === "system" && first.content === instructions;
  const hasInstructions = instructions !== "" && !isKnown;
  const { textFormat, ignoredFields } = readFormat(body["text"]);
  const include = readInclude(body["include"]);
  const fields = sharedFields(body, { known: knownFields, maxTokens: ["max_output_tokens"] });
  const added = addedTools(body, input);
  const { tools, callForms, ...ofTools } = toolsOf(body["tools"], {
    dialect: "responses",
    recollection,
    added,
    read: readResponsesTool,
  });
  const choice = readToolChoice(body["tool_choice"]);
  return {
    ...fields,
    messages: hasInstructions ? [{ role: "system", content: instructions }, ...history] : history,
    ...(hasInstructions && { hasInstructions }),
    tools,
    callForms,
    sampling: samplingOf(body, openAiSampling),
    stop: [],
    toolChoice: choice.toolChoice,
    parallelCalls: parallelCallsOf(body["parallel_tool_calls"]),
    ...(textFormat !== undefined && { textFormat }),
    includesUsage: true,
    includesLogprobs: include.includes(included.logprobs),
    includesEncryptedReasoning: include.includes(included.reasoning),
    echo: readEcho(body, added),
    ignoredFields: [
      ...fields.ignoredFields,
      ...ofTools.ignoredFields,
      ...choice.ignoredFields,
      ...ignoredFields,
      ...ignoredInclude(include),
    ],
    unkept: [
      ...fields.unkept,
      ...ofTools.unkept,
      ...choice.unkept,
      ...alternatives(body["top_logprobs"]),
      ...truncation(body["truncation"]),
    ],
  };
}

function readFormat(text: unknown): Pick<AskedTurn, "textFormat" | "ignoredFields"> {
  const config = isAbsent(text) ? {} : objectOf(text, "text");
  const { format } = config;
  const ofConfig = unreadMembers(config, "text", ["format"]);
  if (isAbsent(format)) return { ignoredFields: ofConfig };
  const place = "text.format";
  const body = objectOf(format, place);
  const schema = { schema: body["schema"], schemaPlace: `${place}.schema` };
  const textFormat = textFormatOf(body, { place, ...schema });
  const ignoredFields = [...ofConfig, ...unreadMembers(body, place, ["type", ...schemaMembers])];
  return { ...(textFormat !== undefined && { textFormat }), ignoredFields };
}

function readInclude(include: unknown): readonly string[] {
  if (isAbsent(include)) return [];
  return listOf(include, "include").map((name, index) => textOf(name, `include[${index}]`));
}

function ignoredInclude(include: readonly string[]): readonly string[] {
  const known = Object.values(included);
  return include.filter((name) => !known.includes(name)).map((name) => `include ${name}`);
}

/** The wish that a conversation that is too long be shortened. */
function truncation(value: unknown): AskedTurn["unkept"] {
  if (isAbsent(value) || value === "disabled") return [];
  const why = "a conversation that is too long is refused, not shortened";
  return [{ what: "truncation", why }];
}

/**
 * The fields that a reply repeats. Tools that the conversation gives stand among the others.
 *
 * @throws ClientError where a field cannot be repeated.
 */
function readEcho(body: Json, added: readonly AddedTool[]): Json {
  const fields = echoed.filter((name) => name in body).map((name) => [name, body[name]] as const);
  for (const [name, value] of fields) requireShallow(value, name);
  const echo = Object.fromEntries(fields);
  if (added.length === 0) return echo;
  for (const { place, tool } of added) requireShallow(tool, place);
  const own = Array.isArray(body["tools"]) ? (body["tools"] as readonly unknown[]) : [];
  return { ...echo, tools: [...own, ...added.map(({ tool }) => tool)] };
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
  const added = [...(before.addedTools ?? [])];
  const read = items.map((value, index) => {
    const place = `input[${before.itemCount + index}]`;
    const item = resolve(objectOf(value, place), { place, recollection });
    if (item["type"] === "additional_tools") {
      addTools(item, place, added);
      return [];
    }
    const said = readTurnItem(item, place);
    return said === undefined ? readOtherItem(item, { place, recollection }) : [said];
  });
  const history = extendHistory(before, read, {
    goesOn: ({ mark }, next) => isSameReply(mark, next, recollection),
    isNothing: (turn) => isSealed(turn, recollection),
    separator: "",
  });
  return added.length === 0 ? history : { ...history, addedTools: added };
}

/** The tools that the conversation gives and the request's own list lacks. */
function addedTools({ tools }: Json, { addedTools: added = [] }: History): readonly AddedTool[] {
  if (added.length === 0 || !Array.isArray(tools)) return added;
  const known = new Set(tools.map((tool) => JSON.stringify(tool)));
  return added.filter(({ tool }) => !known.has(JSON.stringify(tool)));
}

/** Adds the tools of an item, as Codex gives them. Some clients give the same ones again with a later turn. */
function addTools(item: Json, place: string, added: AddedTool[]): void {
  const known = new Set(added.map(({ tool }) => JSON.stringify(tool)));
  listOf(item["tools"], `${place}.tools`).forEach((tool, index) => {
    if (known.has(JSON.stringify(tool))) return;
    added.push({ place: `${place}.tools[${index}]`, tool });
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

/** Returns whether a turn is nothing but items of another server without a text, such as encrypted reasoning. */
function isSealed(
  { content, reasoning = "", calls, marks }: ClientAssistant,
  recollection: Recollection,
): boolean {
  if (content !== "" || reasoning !== "" || calls.length > 0) return false;
  return marks.length > 0 && marks.every((mark) => recollection.replyOf?.(mark) === undefined);
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
  const call = readCallItem(item, place);
  if (call !== undefined) return { ...nothing, calls: [call] };
  if ((type === undefined || type === "message") && role === "assistant") {
    const { said, thought } = readContent(item["content"], `${place}.content`, turnForm);
    return { ...nothing, content: said, ...(thought !== "" && { reasoning: thought }) };
  }
  return undefined;
}

function readOtherItem(
  item: Json,
  where: { readonly place: string; readonly recollection: Recollection },
): readonly ClientMessage[] {
  const { type, role } = item;
  const { place } = where;
  const result = readResultItem(item, where);
  if (result !== undefined) return [result];
  if (type !== undefined && type !== "message") {
    const problem = `there is no item of type ${JSON.stringify(type)}`;
    throw invalid(`${place}.type`, `${problem}; leave it out, or send what it says as a message`);
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
