import { exactKey } from "../../json/exact-json.ts";
import type { RequestedTurn, ClientAssistant, ClientMessage } from "../conversation.ts";
import { alternatives, openAiSampling, parallelCallsOf } from "./chat-decode.ts";
import { contentText, readContent } from "./content-text.ts";
import type { Recollection } from "./dialect.ts";
import {
  inputForm,
  responsesParts,
  responsesSaidParts,
  responsesThoughtParts,
  assistantForm,
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

const readFields = [
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

/** Values of `include` with an effect here. */
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
 * Decodes a request of Responses. The items of one turn (reasoning, text and calls) become one
 * message. Items that the request names by id are looked up.
 */
export function decodeResponses(
  value: unknown,
  recollection: Recollection = {},
  decoded?: History,
): RequestedTurn {
  const body = objectOf(value, "the body");
  if (flagOf(body["background"], "background"))
    throw invalid("background", "turns are sampled immediately");
  refuseStoredText(body);
  const instructions = optionalText(body["instructions"], "instructions") ?? "";
  const earlier = earlierMessages(body, recollection);
  const input = decoded ?? readInput(body["input"], recollection);
  const history = [...earlier, ...messagesOf(input)];
  // A conversation that continues one in another dialect already starts with the instructions.
  const [first] = earlier;
  const isKnown = first?.role === "system" && first.content === instructions;
  const hasInstructions = instructions !== "" && !isKnown;
  const { textFormat, ignoredFields } = readFormat(body["text"]);
  const include = readInclude(body["include"]);
  const fields = sharedFields(body, { readFields, maxTokens: ["max_output_tokens"] });
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
    unsupported: [
      ...fields.unsupported,
      ...ofTools.unsupported,
      ...choice.unsupported,
      ...alternatives(body["top_logprobs"]),
      ...truncation(body["truncation"]),
    ],
  };
}

function readFormat(text: unknown): Pick<RequestedTurn, "textFormat" | "ignoredFields"> {
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

/** Returns the unsupported feature `truncation` if the request sets it. */
function truncation(value: unknown): RequestedTurn["unsupported"] {
  if (isAbsent(value) || value === "disabled") return [];
  const why = "a conversation that is too long is refused, not shortened";
  return [{ what: "truncation", why }];
}

/**
 * Returns the fields that a reply repeats, with added tools among `tools`.
 *
 * @throws ClientError if a field is nested too deeply to print.
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

/**
 * Refuses references to stored text.
 *
 * @throws ClientError if the request refers to text that only OpenAI's server stores.
 */
function refuseStoredText(body: Json): void {
  if (!isAbsent(body["conversation"])) {
    const remedy = "send the items in input, or continue with previous_response_id";
    throw invalid("conversation", `conversations are not stored here; ${remedy}`);
  }
  if (!isAbsent(body["prompt"])) {
    throw invalid("prompt", "prompts are not stored here; send the text in instructions or input");
  }
}

/** Returns the conversation that `previous_response_id` names, without its instructions. */
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

const textForm = inputForm(responsesParts);
const turnForm = assistantForm(responsesSaidParts);
const thoughtForm = assistantForm(responsesThoughtParts);

function readInput(input: unknown, recollection: Recollection): History {
  if (isAbsent(input)) return noHistory;
  if (typeof input !== "string") return readResponsesHistory(listOf(input, "input"), recollection);
  return { messages: [{ role: "user", content: input }], itemCount: 1 };
}

/** Reads the items of a Responses request. */
export function readResponsesHistory(
  items: readonly unknown[],
  recollection: Recollection = {},
  before: History = noHistory,
): History {
  const added = new Map(before.addedTools);
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
    continuesTurn: ({ mark }, next) => isSameReply(mark, next, recollection),
    isDropped: (turn) => isUnreadable(turn, recollection),
    separator: "",
  });
  return added.size === 0 ? history : { ...history, addedTools: added };
}

/** Returns the tools that items add and the request's own list lacks. */
function addedTools({ tools }: Json, { addedTools: added }: History): readonly AddedTool[] {
  if (added === undefined) return [];
  const present = new Set(Array.isArray(tools) ? tools.map(textOfTool) : []);
  return [...added].flatMap(([text, tool]) => (present.has(text) ? [] : [tool]));
}

function textOfTool(tool: unknown): string {
  return typeof tool === "object" && tool !== null ? exactKey(tool) : JSON.stringify(tool);
}

/**
 * Adds the tools of an `additional_tools` item, as Codex sends it. Some clients repeat the same
 * tools later.
 */
function addTools(item: Json, place: string, added: Map<string, AddedTool>): void {
  listOf(item["tools"], `${place}.tools`).forEach((tool, index) => {
    const text = textOfTool(tool);
    if (added.has(text)) return;
    added.set(text, { place: `${place}.tools[${index}]`, tool });
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

/** True unless the two items are from different replies of this session. */
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

/**
 * True if a turn consists only of another server's items without text, such as encrypted reasoning.
 */
function isUnreadable(
  { content, reasoning = "", calls, marks }: ClientAssistant,
  recollection: Recollection,
): boolean {
  if (content !== "" || reasoning !== "" || calls.length > 0) return false;
  return marks.length > 0 && marks.every((mark) => recollection.replyOf?.(mark) === undefined);
}

/**
 * Returns an item's contribution to an assistant turn, or `undefined` if the item is from another
 * role.
 */
function readTurnItem(item: Json, place: string): ClientAssistant | undefined {
  const { type, role, id } = item;
  const marks = typeof id === "string" && id !== "" ? [id] : [];
  const empty = { role: "assistant", content: "", calls: [], marks } as const;
  if (type === "reasoning") {
    const { content, summary, encrypted_content: encrypted } = item;
    const thought =
      contentText(content ?? null, `${place}.content`, thoughtForm) ||
      contentText(summary ?? null, `${place}.summary`, thoughtForm);
    const own = typeof encrypted === "string" && encrypted !== "" ? [...marks, encrypted] : marks;
    return { ...empty, reasoning: thought, marks: own };
  }
  const call = readCallItem(item, place);
  if (call !== undefined) return { ...empty, calls: [call] };
  if ((type === undefined || type === "message") && role === "assistant") {
    const { said, thought } = readContent(item["content"], `${place}.content`, turnForm);
    return { ...empty, content: said, ...(thought !== "" && { reasoning: thought }) };
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
