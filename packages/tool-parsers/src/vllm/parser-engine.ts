import {
  isPyDict,
  parsePythonJson,
  type PyDict,
  PythonError,
  pythonStrip,
  pythonTruthy,
  type PyValue,
} from "../../../python-values/src/index.ts";
import type { EngineReading } from "../grammar.ts";
import type { ParseContext } from "../parse-context.ts";
import { catchPython } from "../shared/python/python-catch.ts";
import { unicodePattern } from "../shared/text/python-pattern.ts";
import { coerceMembers, findVllmProperties } from "./schema-coercion.ts";
import { asName, vllmReading, type VllmCall, type VllmExtraction } from "./vllm-reading.ts";
import { writeJson } from "../shared/json/write-json.ts";

/** The state of the engine in a text. Text in `preamble` and `between` is lost. */
export type EngineState = "content" | "reasoning" | "preamble" | "name" | "arguments" | "between";

/** The effect of a literal in a state. A literal without an effect is text. */
export interface EngineStep {
  readonly to: EngineState;
  /** True if a call starts here. */
  readonly starts?: boolean;
  /** True if the call ends here. Set in formats in which other steps out of a call do not end it. */
  readonly ends?: boolean;
  /** True if the literal itself is part of the arguments. */
  readonly keeps?: boolean;
}

/** The description of a format for vLLM's declarative engine. */
export interface EngineTable {
  /** All literals with an effect. If two match, the longer one counts. */
  readonly literals: readonly string[];
  readonly steps: Readonly<
    Partial<Record<EngineState, Readonly<Partial<Record<string, EngineStep>>>>>
  >;
  /** True if calls to unknown tools are dropped when the request has tools. Default false. */
  readonly dropsUnknownTools?: boolean;
  /** True if names lose the white space around them as soon as they are read. Default false. */
  readonly stripsNames?: boolean;
  /** True if a stream must hold all text back. Default false. */
  readonly holdsAll?: boolean;
  /** Returns the text that the engine reads instead of the given one. */
  readonly prepare?: (text: string) => string;
  /** True if the text around the calls is lost, given the reasoning. */
  readonly losesContent?: (reasoning: string) => boolean;
  /** Walks through the text of a format in which literals and steps cannot delimit the calls. */
  readonly walk?: (text: string) => EngineWalk;
  /** Returns the call's name, given the text at the position of the name, and the arguments. Default: that text. */
  readonly readName?: (header: string, body: string) => string;
  /** True if a call without a name counts. Default false. */
  readonly allowsNoName?: boolean;
  /**
   * Returns the arguments, or the text to report as the arguments. `properties` returns the properties of the tool that
   * the first call with such a body names.
   */
  readonly convertArguments: (body: string, properties: () => PyDict) => PyDict | string;
  /** Adapts the arguments to the tool's properties. */
  readonly adaptArguments?: (values: PyDict, properties: PyDict) => PyDict;
  /** True if white space around the text is kept beside calls. Default false. */
  readonly keepsSpace?: boolean;
  /** True if text of only white space is kept beside calls. Default false. */
  readonly keepsBlank?: boolean;
  /** Changes the text around the calls, for example to drop an incomplete marker at its end. */
  readonly cutContent?: (content: string) => string;
}

/** A call under construction. */
interface Slot {
  name: string;
  body: string;
  /** True if neither arguments nor the end of the call were read. The text after the call is then kept. */
  isOpen?: boolean;
  /** The tool that has the schema of the arguments. Default: the call's own name. */
  readonly schemaName?: string;
}

/** The result of a walk through the text. */
export interface EngineWalk {
  before: string;
  /** The text after the first call. */
  after: string;
  reasoning: string;
  readonly slots: Slot[];
}

function walkByTable(text: string, table: EngineTable): EngineWalk {
  const longestFirst = table.literals.toSorted((a, b) => b.length - a.length);
  const pattern = new RegExp(
    `(${longestFirst.map((literal) => literal.replace(/[[\]{|}()]/g, String.raw`\$&`)).join("|")})`,
  );
  const found: EngineWalk = { before: "", after: "", reasoning: "", slots: [] };
  const marksEnds = Object.values(table.steps).some((steps) =>
    Object.values(steps).some((step) => step?.ends === true),
  );
  let state: EngineState = "content";
  for (const [index, token] of text.split(pattern).entries()) {
    const step: EngineStep | undefined = index % 2 === 1 ? table.steps[state]?.[token] : undefined;
    if (step?.starts === true) found.slots.push({ name: "", body: "", isOpen: marksEnds });
    state = step?.to ?? state;
    if (step === undefined || step.keeps === true) addText(found, state, token);
    const slot = found.slots.at(-1);
    if (step?.ends === true && slot !== undefined) slot.isOpen = false;
  }
  const last = found.slots.at(-1);
  if (last !== undefined && state !== "content" && state !== "reasoning") last.isOpen = false;
  return found;
}

function addText(found: EngineWalk, state: EngineState, text: string): void {
  const slot = found.slots.at(-1);
  if (state === "reasoning") found.reasoning += text;
  else if (state === "content" && slot === undefined) found.before += text;
  else if (state === "content") found.after += text;
  else if (state === "name" && slot !== undefined) slot.name += text;
  else if (state === "arguments" && slot !== undefined) slot.body += text;
  else if (state === "arguments" && text !== "") {
    throw new PythonError("IndexError", "arguments stand before any call");
  }
}

const quotedName = unicodePattern(String.raw`"name"\s*:\s*"([^"]*)"`, "");

/** Returns the first name in a call's arguments. Empty if they contain none. */
export function findQuotedName(body: string): string {
  return quotedName.exec(body)?.[1] ?? "";
}

function extract(source: string, context: ParseContext, table: EngineTable): VllmExtraction {
  const { before, after, reasoning, slots } = (table.walk ?? walkByTable)(
    table.prepare?.(source) ?? source,
    table,
  );
  let isAnyNamed = false;
  const schemaNames = new Map<string, string>();
  const calls = slots.flatMap(({ name: header, body, isOpen = false }): VllmCall[] => {
    const written = table.readName?.(header, body) ?? header;
    const name = table.stripsNames === true ? pythonStrip(written) : written;
    const found = name === "" ? findQuotedName(body) : name;
    const isNamed = table.allowsNoName === true || (found !== "" && isKnown(found, context, table));
    isAnyNamed ||= isNamed && (!isOpen || body !== "");
    if (table.allowsNoName === true) return readNameless({ name, body }, context, table);
    const known = isNamed ? found : name;
    const schemaName = schemaNames.get(body) ?? pythonStrip(known);
    schemaNames.set(body, schemaName);
    return readSlot({ name: known, body, schemaName }, context, table);
  });
  // Text after a named call is lost. If no call has a name, that text comes first up to 0.24, and
  // in its own place since 0.33.
  const isOld = context.engineVersion === "0.24";
  const whole = isAnyNamed ? before : isOld ? after + before : before + after;
  const content = table.cutContent?.(whole) ?? whole;
  // Since 0.33 white space is kept if no call has started.
  const mayDrop = table.keepsBlank !== true && (isOld || slots.length > 0);
  const isBlank = mayDrop && pythonStrip(content) === "";
  if (isBlank || (reasoning !== "" && table.losesContent?.(reasoning) === true)) {
    return { content: "", calls };
  }
  const strips = calls.length > 0 && table.keepsSpace !== true;
  return { content: strips ? pythonStrip(content) : content, calls };
}

function isKnown(name: string, { tools }: ParseContext, table: EngineTable): boolean {
  if (table.dropsUnknownTools !== true || tools.length === 0) return true;
  return tools.some((tool) => tool.name === name);
}

/**
 * Reads a call.
 *
 * @throws PythonError if the name is not a string, or the tool's schema is not an object.
 */
function readSlot(slot: Slot, context: ParseContext, table: EngineTable): VllmCall[] {
  const name = pythonStrip(slot.name);
  const isBlank = pythonStrip(slot.body) === "";
  const written =
    name === "" && !isBlank ? readJsonBody(pythonStrip(slot.body)) : { name, text: "{}" };
  if (!pythonTruthy(written.name)) return [];
  if (typeof written.name === "string" && !isKnown(written.name, context, table)) return [];
  const text =
    name === "" || isBlank ? written.text : writeArguments({ ...slot, name }, context, table);
  const known = asName(written.name);
  return [{ name: known, argumentsText: fixTypes(text, known, context) }];
}

/** Reads a call in a format in which the name always counts unchanged, even an empty one. */
function readNameless(slot: Slot, context: ParseContext, table: EngineTable): VllmCall[] {
  if (slot.name === "" && slot.body === "") return [];
  const name = pythonStrip(slot.name);
  const isBlank = pythonStrip(slot.body) === "";
  const text = isBlank ? "{}" : writeArguments({ ...slot, name }, context, table);
  return [{ name, argumentsText: name === "" ? text : fixTypes(text, name, context) }];
}

function writeArguments(slot: Slot, context: ParseContext, table: EngineTable): string {
  const { body, name, schemaName = name } = slot;
  const values = table.convertArguments(body, () => findVllmProperties(schemaName, context));
  if (typeof values === "string") return values;
  const adapted = table.adaptArguments?.(values, findVllmProperties(name, context)) ?? values;
  return writeJson(adapted);
}

/** Reads a call that is written as JSON in a format of its own. */
export function readJsonBody(
  body: string,
  argumentKeys: readonly string[] = ["arguments", "parameters"],
): { name: PyValue; text: string } {
  const value = catchPython(() => parsePythonJson(body), "JSONDecodeError");
  if (!isPyDict(value)) return { name: "", text: body };
  const name = value.get("name") ?? "";
  const field = argumentKeys.find((key) => value.has(key));
  const written =
    field === undefined
      ? new Map([...value].filter(([key]) => key !== "name"))
      : (value.get(field) ?? null);
  const isText = field !== undefined && typeof written === "string";
  return { name, text: isText ? written : writeJson(written) };
}

/** Converts the values of the arguments to the types of the tool's schema, if they fit. */
export function fixTypes(text: string, name: string, context: ParseContext): string {
  const value =
    context.tools.length === 0 ? undefined : catchPython(() => parsePythonJson(text), "ValueError");
  if (!isPyDict(value)) return text;
  const properties = findVllmProperties(name, context);
  const coerced = coerceMembers(value, properties, {
    keepsEqual: context.engineVersion === "0.24",
  });
  return coerced === value ? text : writeJson(coerced);
}

/**
 * Makes the reading of a format that vLLM describes with a table of states.
 *
 * **Source:** vllm-project/vllm, `vllm/parser/engine/parser_engine.py`,
 * `streaming_parser_engine.py` and `incremental_lexer.py`.
 */
export function engineReading(table: EngineTable): EngineReading {
  return vllmReading({
    release: {
      stops: Object.keys(table.steps.content ?? {}),
      strips: true,
      mayRewrite: true,
      holdsAll: table.holdsAll ?? false,
    },
    extract: (text, context) => extract(text, context, table),
  });
}
