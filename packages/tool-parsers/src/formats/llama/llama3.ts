import {
  decodePythonJsonAt,
  isPyDict,
  PythonJsonError,
  pythonStrip,
  type PyValue,
} from "../../../../python-values/src/index.ts";
import type { Block } from "../../attempt.ts";
import { defineParser, type EngineResult } from "../../grammar.ts";
import { readJson } from "../../shared/json/json-payload.ts";
import type { ParseContext } from "../../parse-context.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { evaluatePythonLiteral } from "../../shared/python/python-literal.ts";
import { markerOnly, unclosed, invalidJson } from "../../shared/tags/tag-blocks.ts";
import { argumentsOfEntry, parseBaseJson } from "../../sglang/base-json.ts";
import { sglangReading } from "../../sglang/sglang-reading.ts";
import { vllmLlama3 } from "./vllm-llama3.ts";
import { writeJson } from "../../shared/json/write-json.ts";

const tag = "<|python_tag|>";

/**
 * Maximum number of times, in multiples of the text's length, that objects inside objects may be read again after the
 * outer object failed. The limit is enough for any real call, and keeps the time linear.
 */
const MAX_READS = 32;

/** An object that was read from the text. */
interface ReadObject {
  readonly value: PyValue;
  readonly start: number;
  readonly end: number;
  /** True for JSON; false for a Python dictionary. */
  readonly isJson: boolean;
}

/**
 * SGLang's detector for Llama 3: JSON objects with one separating character between them. An object
 * that is not JSON is tried as a Python dictionary. If that fails, the search continues at the next
 * `{"name":`.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/function_call/llama32_detector.py`.
 */
function detect(text: string, context: ParseContext): EngineResult {
  const tagStart = text.indexOf(tag);
  if (tagStart === -1 && !text.startsWith("{")) return { normalText: text, calls: [] };
  const before = tagStart === -1 ? "" : text.slice(0, tagStart);
  const actions = tagStart === -1 ? text : text.slice(tagStart + tag.length);
  const objects = readObjects(actions);
  const calls =
    objects.length === 0
      ? []
      : parseBaseJson(
          objects.map(({ value }) => value),
          context,
        );
  const last = objects.at(-1);
  const rest = actions.slice(last === undefined ? 0 : skipCharacter(actions, last.end));
  return { normalText: before + pythonStrip(rest), calls };
}

function readObjects(text: string): ReadObject[] {
  const objects: ReadObject[] = [];
  const braces = new BraceIndex(text);
  let budget = MAX_READS * text.length;
  let index = 0;
  while (index < text.length && budget >= 0) {
    const decoded = decode(text.slice(index));
    budget -= decoded.readLength;
    if (decoded.value !== undefined) {
      const end = index + decoded.readLength;
      objects.push({ value: decoded.value, start: index, end, isJson: true });
      index = skipCharacter(text, end);
      continue;
    }
    const end = braces.endOfDict(index);
    const dict = end === undefined ? undefined : readDict(text.slice(index, end));
    budget -= (end ?? index) - index;
    if (dict !== undefined && end !== undefined) {
      objects.push({ value: dict, start: index, end, isJson: false });
      index = skipCharacter(text, end);
      continue;
    }
    index = text.indexOf('{"name":', index + 1);
    if (index === -1) break;
  }
  return objects;
}

/** Returns the position after the character that separates objects. The character is a code point, as in Python. */
function skipCharacter(text: string, index: number): number {
  return index + ((text.codePointAt(index) ?? 0) > 0xffff ? 2 : 1);
}

/** Reads the JSON value at the start of the text, and reports the length that was read. */
function decode(text: string): { value?: PyValue; readLength: number } {
  try {
    const { value, end } = decodePythonJsonAt(text, 0);
    return { value, readLength: end };
  } catch (error) {
    if (!(error instanceof PythonJsonError)) throw error;
    return { readLength: error.index };
  }
}

/** Reads a Python dictionary, if its JSON differs from its source. */
function readDict(source: string): PyValue | undefined {
  const literal = catchPython(() => evaluatePythonLiteral(pythonStrip(source)));
  if (literal === undefined || !literal.isJson || !isPyDict(literal.value)) return undefined;
  const { value } = literal;
  const json = catchPython(() => writeJson(value));
  return json === undefined || json === source ? undefined : value;
}

/** Finds balanced braces, in logarithmic time after one pass over the text. */
class BraceIndex {
  readonly #text: string;
  #depths: Int32Array | undefined;
  /** The positions of closing braces in ascending order, by the nesting depth after the brace. */
  #closings = new Map<number, number[]>();

  constructor(text: string) {
    this.#text = text;
  }

  /** Returns the position after the first closing brace that balances all braces since `start`. */
  endOfDict(start: number): number | undefined {
    this.#depths ??= this.#countDepths();
    const places = this.#closings.get(this.#depths[start] ?? 0) ?? [];
    let low = 0;
    let high = places.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((places[middle] ?? 0) < start) low = middle + 1;
      else high = middle;
    }
    const place = places[low];
    return place === undefined ? undefined : place + 1;
  }

  #countDepths(): Int32Array {
    const depths = new Int32Array(this.#text.length + 1);
    let depth = 0;
    for (let index = 0; index < this.#text.length; index++) {
      const character = this.#text[index];
      if (character === "{") depth += 1;
      if (character === "}") {
        depth -= 1;
        const places = this.#closings.get(depth);
        if (places === undefined) this.#closings.set(depth, [index]);
        else places.push(index);
      }
      depths[index + 1] = depth;
    }
    return depths;
  }
}

function findBlocks(text: string): Block[] {
  const tagStart = text.indexOf(tag);
  if (tagStart === -1 && !text.startsWith("{")) return [];
  const from = tagStart === -1 ? 0 : tagStart + tag.length;
  if (!/^\s*(?:\{|$)/.test(text.slice(from, from + 64))) return [markerOnly(tagStart, tag)];
  const objects = catchPython(() => readObjects(text.slice(from))) ?? [];
  const blocks: Block[] = [];
  let position = Math.max(tagStart, 0);
  for (const { value, start, end, isJson } of objects) {
    const gapEnd = from + start;
    blocks.push(...readGap(text, position === from ? gapEnd : position, gapEnd));
    const blockStart = blocks.length === 0 ? position : gapEnd;
    blocks.push(readBlock([blockStart, from + end], value, isJson));
    position = from + end;
  }
  return [...blocks, ...readGap(text, position, text.length)];
}

/**
 * Looks for an object that cannot be read in the text before, between or after objects. Returns its block, if there is
 * one.
 */
function readGap(text: string, start: number, end: number): Block[] {
  const gap = text.slice(start, end);
  const opens = gap.indexOf("{");
  if (opens === -1) return [];
  const json = readJson(gap.slice(opens).trim());
  const problem =
    json.type === "problem" && gap.trimEnd().endsWith("}")
      ? invalidJson(json.detail)
      : unclosed("}");
  return [{ span: [start + (gap.startsWith(tag) ? 0 : opens), end], problem }];
}

function readBlock(span: Block["span"], value: PyValue, isJson: boolean): Block {
  const notes = isJson
    ? {}
    : { notes: [{ status: "coerced", detail: "read as a Python dictionary" } as const] };
  if (!isPyDict(value)) {
    const detail = "the call is not a JSON object";
    return { span, problem: { status: "malformed-structure", detail } };
  }
  const name = value.get("name");
  return {
    span,
    ...(typeof name === "string" && { name }),
    argumentValue: argumentsOfEntry(value),
    ...notes,
  };
}

/** Llama 3: `<|python_tag|>{"name": …, "parameters": …};{…}`; the tag may be missing. */
export const llama3 = defineParser({
  name: "llama3",
  aliases: ["llama3_json", "llama4_json"],
  markers: [tag],
  readings: {
    sglang: sglangReading({
      release: { stops: [tag], startStop: "{" },
      hasToolCall: (text) => text.includes(tag) || text.startsWith("{"),
      detect,
    }),
    vllm: vllmLlama3,
  },
  findBlocks,
});
