import { parseJsonObject } from "../json-object.ts";
import type { RequestedTurn, ClientCall, ClientMessage } from "../conversation.ts";
import { readMessagesTool } from "./anthropic-tools.ts";
import type { Recollection } from "./dialect.ts";
import { blockText, contentText, partSeparator, unshowable } from "./content-text.ts";
import { inputForm, messagesParts } from "./message-parts.ts";
import { extendHistory, messagesOf, noHistory, type History } from "./history.ts";
import {
  givenArguments,
  invalid,
  isAbsent,
  listOf,
  objectOf,
  optionalText,
  placedArguments,
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
import { readMessagesChoice } from "./tool-choice.ts";
import { toolsOf } from "./tool-set.ts";

const readFields = [
  "model",
  "messages",
  "system",
  "tools",
  "tool_choice",
  "stream",
  "stop_sequences",
  "temperature",
  "top_p",
  "top_k",
  "max_tokens",
  "metadata",
  "output_format",
  "output_config",
];

/** Decodes a request of Messages. */
export function decodeMessages(
  value: unknown,
  recollection: Recollection = {},
  history?: History,
): RequestedTurn {
  const body = objectOf(value, "the body");
  const system = contentText(body["system"] ?? null, "system", textForm);
  const read = history ?? readMessagesHistory(listOf(body["messages"], "messages"), recollection);
  const messages = messagesOf(read);
  if (messages.at(-1)?.role === "assistant") {
    const place = `messages[${read.itemCount - 1}]`;
    throw invalid(place, "the policy's turn cannot be prefilled; end with a user message");
  }
  const { textFormat, ignoredFields } = readFormat(body);
  const fields = sharedFields(body, { readFields, maxTokens: ["max_tokens"] });
  const { tools, callForms, ...ofTools } = toolsOf(body["tools"], {
    dialect: "messages",
    recollection,
    read: readMessagesTool,
  });
  const choice = readMessagesChoice(body["tool_choice"]);
  return {
    ...fields,
    messages: system === "" ? messages : [{ role: "system", content: system }, ...messages],
    tools,
    callForms,
    sampling: samplingOf(body, ["temperature", "top_p", "top_k"]),
    stop: stopTexts(body["stop_sequences"], "stop_sequences"),
    toolChoice: choice.toolChoice,
    parallelCalls: choice.parallelCalls,
    ...(textFormat !== undefined && { textFormat }),
    includesUsage: true,
    includesLogprobs: false,
    includesEncryptedReasoning: true,
    echo: {},
    ignoredFields: [
      ...fields.ignoredFields,
      ...ofTools.ignoredFields,
      ...choice.ignoredFields,
      ...ignoredFields,
    ],
    unsupported: [...fields.unsupported, ...ofTools.unsupported, ...choice.unsupported],
  };
}

/**
 * Reads the messages of a Messages request. Consecutive assistant messages form one turn, as the
 * protocol specifies.
 */
export function readMessagesHistory(
  items: readonly unknown[],
  recollection: Recollection = {},
  before: History = noHistory,
): History {
  const read = items.map((item, index) => {
    const place = `messages[${before.itemCount + index}]`;
    return readMessage(objectOf(item, place), place, recollection);
  });
  return extendHistory(before, read, { continuesTurn: () => true, separator: "\n" });
}

/**
 * Reads the schema of the reply's text from `output_config.format` or the earlier `output_format`.
 */
function readFormat(body: Json): Pick<RequestedTurn, "textFormat" | "ignoredFields"> {
  const { output_config: given, output_format: before } = body;
  const config = isAbsent(given) ? {} : objectOf(given, "output_config");
  const format = config["format"] ?? before;
  const ofConfig = unreadMembers(config, "output_config", ["format"]);
  if (isAbsent(format)) return { ignoredFields: ofConfig };
  const place = format === before ? "output_format" : "output_config.format";
  const read = objectOf(format, place);
  const textFormat = textFormatOf(read, {
    place,
    schema: read["schema"],
    schemaPlace: `${place}.schema`,
  });
  const ignoredFields = [...ofConfig, ...unreadMembers(read, place, ["type", ...schemaMembers])];
  return { ...(textFormat !== undefined && { textFormat }), ignoredFields };
}

const textForm = inputForm(messagesParts);

function readMessage(
  { role, content }: Json,
  place: string,
  recollection: Recollection,
): readonly ClientMessage[] {
  switch (role) {
    case "system":
      return [{ role, content: contentText(content, `${place}.content`, textForm) }];
    case "user":
      return readUser(content, `${place}.content`);
    case "assistant":
      return [readAssistant(content, `${place}.content`, recollection)];
    default:
      throw invalid(`${place}.role`, `there is no role ${JSON.stringify(role)}`);
  }
}

/** Reads a user message. Results of calls in it become messages before the user's text. */
function readUser(content: unknown, place: string): readonly ClientMessage[] {
  if (!Array.isArray(content)) {
    return [{ role: "user", content: contentText(content, place, textForm) }];
  }
  const results: ClientMessage[] = [];
  const said: string[] = [];
  content.forEach((value: unknown, index) => {
    const where = `${place}[${index}]`;
    const block = objectOf(value, where);
    if (block["type"] !== "tool_result") {
      said.push(blockText(block, where, textForm));
      return;
    }
    results.push({
      role: "tool",
      callId: textOf(block["tool_use_id"], `${where}.tool_use_id`),
      content: resultText(block, where),
    });
  });
  const hasOnlyResults = said.length === 0 && results.length > 0;
  return hasOnlyResults
    ? results
    : [...results, { role: "user", content: said.join(partSeparator) }];
}

/**
 * Returns a result's text. An error without text becomes `Error`, so that it does not look like
 * success.
 */
function resultText({ content, is_error: isError }: Json, place: string): string {
  const said = contentText(content ?? null, `${place}.content`, textForm);
  return said === "" && isError === true ? "Error" : said;
}

function readAssistant(content: unknown, place: string, recollection: Recollection): ClientMessage {
  if (!Array.isArray(content)) {
    const said = contentText(content, place, textForm);
    return { role: "assistant", content: said, calls: [], marks: [] };
  }
  const said: string[] = [];
  const thought: string[] = [];
  const calls: ClientCall[] = [];
  const marks: string[] = [];
  content.forEach((value: unknown, index) => {
    const where = `${place}[${index}]`;
    const block = objectOf(value, where);
    switch (block["type"]) {
      case "text":
        said.push(textOf(block["text"], `${where}.text`));
        break;
      case "thinking":
        thought.push(optionalText(block["thinking"], `${where}.thinking`) ?? "");
        marks.push(...marksOf(block["signature"]));
        break;
      case "redacted_thinking":
        marks.push(...marksOf(block["data"]));
        break;
      case "tool_use":
        calls.push(readCall(block, where, recollection));
        break;
      default:
        throw unshowable(block, where, "block");
    }
  });
  const reasoning = thought.join("");
  return {
    role: "assistant",
    content: said.join(""),
    ...(reasoning !== "" && { reasoning }),
    calls,
    marks,
  };
}

function readCall(block: Json, place: string, recollection: Recollection): ClientCall {
  const { input = {} } = block;
  const id = textOf(block["id"], `${place}.id`);
  const name = textOf(block["name"], `${place}.name`);
  // Clients may send an object as JSON text. The input of a call that was sampled here is not
  // converted.
  const isText = typeof input === "string" && recollection.textBeside?.(id) === undefined;
  const argumentsText = isText ? objectText(input, `${place}.input`) : undefined;
  return {
    id,
    name,
    ...placedArguments(argumentsText ?? writeExactJson(input ?? {}), `${place}.input`),
  };
}

/** Returns the text if it is a JSON object, otherwise `undefined`. */
function objectText(given: string, place: string): string | undefined {
  const text = givenArguments(textOf(given, place));
  return parseJsonObject(text) === undefined ? undefined : text;
}

function marksOf(value: unknown): readonly string[] {
  return typeof value === "string" && value !== "" ? [value] : [];
}
