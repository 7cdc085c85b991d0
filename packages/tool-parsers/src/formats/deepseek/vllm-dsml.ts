import {
  isPyDict,
  parsePythonJson,
  type PyDict,
  type PyValue,
} from "../../../../python-values/src/index.ts";
import type { EngineReading } from "../../grammar.ts";
import type { ParseContext } from "../../parse-context.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { unicodePattern } from "../../shared/text/python-pattern.ts";
import { betweenTags, findByHead } from "../../shared/tags/between-tags.ts";
import { typesOfSchema } from "../../shared/schema/schema-type.ts";
import { coerceToSchema, findVllmProperties } from "../../vllm/schema-coercion.ts";
import {
  byVersion,
  sinceVllm033,
  vllmReading,
  type VllmCall,
  type VllmExtraction,
} from "../../vllm/vllm-reading.ts";
import { engineReading, type EngineTable } from "../../vllm/parser-engine.ts";
import { writeJson } from "../../shared/json/write-json.ts";

/** The bar is outside ASCII. A constant lets the patterns be written in ASCII alone. */
const bar = "｜";
const invokeHead = unicodePattern(String.raw`<${bar}DSML${bar}invoke\s+name="([^"]+)"\s*>`, "g");
const invokeClose = "</｜DSML｜invoke>";
const parameterHead = unicodePattern(
  String.raw`<${bar}DSML${bar}parameter\s+name="([^"]+)"\s+string="(true|false)"\s*>`,
  "g",
);
const parameterClose = "</｜DSML｜parameter>";

function extract(text: string, context: ParseContext, section: string): VllmExtraction | undefined {
  const open = `<｜DSML｜${section}>`;
  const calls = betweenTags(text, open, `</｜DSML｜${section}>`).flatMap((block) =>
    readCalls(block, context),
  );
  if (calls.length === 0) return undefined;
  return { content: text.slice(0, text.indexOf(open)), calls };
}

function readCalls(block: string, context: ParseContext): VllmCall[] {
  return findByHead(block, invokeHead, invokeClose).map(({ head, inner }) => {
    const name = head[1] ?? "";
    const values = readArguments(inner, name, context);
    return { name, argumentsText: writeJson(values) };
  });
}

function readArguments(body: string, name: string, context: ParseContext): PyDict {
  const properties = findVllmProperties(name, context);
  const values = new Map<string, PyValue>();
  for (const { head, inner } of findByHead(body, parameterHead, parameterClose)) {
    const [, key = "", isString] = head;
    const types = typesOfSchema(properties.get(key) ?? new Map());
    values.set(key, isString === "true" ? inner : coerceToSchema(inner, types));
  }
  return unwrap(values, properties);
}

/**
 * Unwraps arguments that a model wrapped once more in `arguments` or `input`, if the tool has no
 * such parameter.
 */
function unwrap(values: PyDict, properties: PyDict): PyDict {
  const [wrapper] = values.keys();
  const isWrapper = wrapper === "arguments" || wrapper === "input";
  if (values.size !== 1 || !isWrapper || properties.has(wrapper)) return values;
  const inner = values.get(wrapper);
  const value =
    typeof inner === "string"
      ? catchPython(() => parsePythonJson(inner), "JSONDecodeError")
      : inner;
  return isPyDict(value) && [...value.keys()].every((key) => properties.has(key)) ? value : values;
}

function defineReading(section: string): EngineReading {
  const open = `<｜DSML｜${section}>`;
  return vllmReading({
    marker: open,
    catchesAll: true,
    extract: (text, context) => extract(text, context, section),
  });
}

/**
 * Reads the arguments as vLLM does since 0.33: a value that is not marked as a string is read as
 * JSON, if it is JSON.
 */
function readParameters(body: string, gap: string): PyDict {
  const values = new Map<string, PyValue>();
  const tag = `｜DSML｜${gap}parameter`;
  const head = unicodePattern(
    String.raw`<${tag}\s+name="([^"]+)"(?:\s+string="([^"]*)")?\s*>`,
    "g",
  );
  // A value ends with its closing tag, or where the next parameter begins.
  const tail = unicodePattern(String.raw`</${tag}>|<${tag}\s+name=`, "g");
  for (let match = head.exec(body); match !== null; match = head.exec(body)) {
    tail.lastIndex = head.lastIndex;
    const end = tail.exec(body);
    if (end === null) break;
    const text = body.slice(head.lastIndex, end.index);
    const json =
      match[2] === "true" ? undefined : catchPython(() => parsePythonJson(text), "ValueError");
    values.set(match[1] ?? "", json === undefined ? text : json);
    head.lastIndex = end[0] === `</${tag}>` ? tail.lastIndex : end.index;
  }
  return values;
}

/** vLLM's reading since 0.33. `gap` is the text before the names of tags. */
function newReading(
  section: string,
  more: EngineTable["steps"],
  opens: string[],
  gap = "",
): EngineReading {
  const close = `</｜DSML｜${section}>`;
  const prefix = `<｜DSML｜${gap}invoke name="`;
  const prefixClose = `</｜DSML｜${gap}invoke>`;
  const starts = { to: "name", starts: true } as const;
  const preamble = Object.fromEntries(opens.map((open) => [open, { to: "preamble" } as const]));
  const think = more.reasoning === undefined ? [] : ["<think>", "</think>"];
  return engineReading({
    literals: [
      ...think,
      ...opens,
      close,
      prefix,
      '">',
      prefixClose,
      `<｜DSML｜${gap}parameter`,
      `</｜DSML｜${gap}parameter>`,
    ],
    steps: {
      ...(more.reasoning !== undefined && { reasoning: { ...more.reasoning, ...preamble } }),
      content: { ...more.content, ...preamble, [prefix]: starts },
      preamble: { [prefix]: starts },
      name: { '">': { to: "arguments" } },
      arguments: { [prefixClose]: { to: "between" }, [close]: { to: "between" } },
      between: { [prefix]: starts, ...preamble },
    },
    keepsSpace: true,
    convertArguments: (body) => readParameters(body, gap),
    adaptArguments: (values, properties) =>
      properties.size === 0 ? values : unwrap(values, properties),
  });
}

/**
 * vLLM's parser for DeepSeek V3.2: everything must be closed, and values that are not strings are
 * read by the tool's schema.
 *
 * **Source:** vllm-project/vllm, `vllm/tool_parsers/deepseekv32_tool_parser.py`.
 */
export const vllmDeepseekV32 = byVersion(
  defineReading("function_calls"),
  newReading("function_calls", {}, ["<｜DSML｜function_calls>"]),
);

const thinking: EngineTable["steps"] = {
  content: { "<think>": { to: "reasoning" }, "</think>": { to: "content" } },
  reasoning: { "<think>": { to: "reasoning" }, "</think>": { to: "content" } },
};

/** vLLM's parser for DeepSeek V4: as for V3.2, inside `<｜DSML｜tool_calls>`. */
export const vllmDeepseekV4 = byVersion(
  defineReading("tool_calls"),
  newReading("tool_calls", thinking, [
    "<｜DSML｜tool_calls>",
    "<｜DSML｜toolcalls>",
    "<｜DSML｜tool>",
  ]),
);

/** vLLM's parser for DeepSeek V4.1: as for V4, with a space before the names of tags. */
export const vllmDeepseekV41 = sinceVllm033(
  newReading(" calls", thinking, ["<｜DSML｜ calls>"], " "),
);
