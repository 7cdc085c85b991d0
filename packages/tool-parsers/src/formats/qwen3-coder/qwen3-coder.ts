import { pythonTextEnd } from "../../shared/text/python-pattern.ts";
import { malformed, unclosed, type TagFormat, type Frame } from "../../shared/tags/tag-blocks.ts";
import { isPyDict, type PyValue } from "../../../../python-values/src/index.ts";
import type { Block, Diagnostic } from "../../attempt.ts";
import { defineParser, type EngineResult } from "../../grammar.ts";
import type { ParseContext } from "../../parse-context.ts";
import { sglangParameters } from "../../sglang/sglang-parameters.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import type { CompatCall } from "../../tool-call-parser.ts";
import {
  betweenTags,
  findOpened,
  divideSpan,
  type TagText,
} from "../../shared/tags/between-tags.ts";
import { convertQwen3CoderValue } from "./qwen3-coder-value.ts";
import { isSince } from "../../engine-version.ts";
import { sglangVersion } from "../../sglang/sglang-version.ts";
import { sglangReading } from "../../sglang/sglang-reading.ts";
import { vllmQwen3Coder } from "./vllm-qwen3-coder.ts";
import { writeJson } from "../../shared/json/write-json.ts";
import { requireJson } from "../../shared/python/python-literal.ts";

const open = "<tool_call>";
const close = "</tool_call>";
const functionOpen = "<function=";
const functionClose = "</function>";
const parameterOpen = "<parameter=";
const parameterClose = "</parameter>";

/**
 * SGLang's detector for Qwen3-Coder: every closing tag may be missing, so a call that was cut off
 * is reported with the arguments that are present.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/function_call/qwen3_coder_detector.py`.
 */
function detect(text: string, context: ParseContext): EngineResult {
  const first = text.indexOf(open);
  if (first === -1) return { normalText: text, calls: [] };
  const closed = betweenTags(text, open, close);
  const inners = closed.length > 0 ? closed : [text];
  const calls: CompatCall[] = [];
  for (const inner of inners) {
    for (const { inner: body } of findOpened(inner, functionOpen, functionClose)) {
      const call = readFunction(body, context);
      if (call === undefined) continue;
      const argumentsText = writeArguments(call);
      calls.push({ name: call.name, argumentsText, toolIndex: calls.length });
    }
  }
  return { normalText: text.slice(0, first), calls };
}

/** A call that was read. `isJson` is false if JSON cannot represent an argument. */
interface FunctionCall {
  readonly name: string;
  readonly values: ReadonlyMap<string, PyValue>;
  readonly isJson: boolean;
}

function readFunction(body: string, context: ParseContext): FunctionCall | undefined {
  const nameEnd = body.indexOf(">");
  if (nameEnd === -1) return undefined;
  const name = body.slice(0, nameEnd);
  const schemas = findParameterSchemas(name, context);
  const values = new Map<string, PyValue>();
  let isJson = true;
  for (const { text } of findParameters(body.slice(nameEnd + 1))) {
    const keyEnd = text.indexOf(">");
    if (keyEnd === -1) continue;
    const key = text.slice(0, keyEnd);
    const literal = convertQwen3CoderValue(trimLineBreaks(text.slice(keyEnd + 1)), {
      key,
      schemas,
      context,
    });
    isJson &&= literal.isJson;
    values.set(key, literal.value);
  }
  return { name, values, isJson };
}

function writeArguments({ values, isJson }: FunctionCall): string {
  return writeJson(requireJson({ value: values, isJson }));
}

/** Drops one line break at either end. */
function trimLineBreaks(text: string): string {
  const cut = text.startsWith("\n") ? text.slice(1) : text;
  return cut.endsWith("\n") ? cut.slice(0, -1) : cut;
}

/**
 * Finds the parameters of a function. Each ends at its closing tag, at the next parameter, or at
 * the end.
 */
function findParameters(text: string): { text: string; closed: boolean }[] {
  const found: { text: string; closed: boolean }[] = [];
  const stop = /<\/parameter>|<parameter=|<\/function>/g;
  // Python's `$` also matches before a line break at the end of the text.
  const textEnd = pythonTextEnd(text);
  let position = 0;
  for (;;) {
    const start = text.indexOf(parameterOpen, position);
    if (start === -1) return found;
    const bodyStart = start + parameterOpen.length;
    stop.lastIndex = bodyStart;
    const match = stop.exec(text);
    const end = match === null ? Math.max(textEnd, bodyStart) : match.index;
    const closed = match?.[0] === parameterClose;
    found.push({ text: text.slice(bodyStart, end), closed });
    position = closed ? end + parameterClose.length : end;
  }
}

/**
 * The schemas of a tool's parameters. For a tool without `properties`, the schema itself is used.
 */
function findParameterSchemas(name: string, context: ParseContext): PyValue {
  const tool = context.tools.find((candidate) => {
    return candidate.name === name && (candidate.openai.get("type") ?? "function") === "function";
  });
  const parameters = tool === undefined ? undefined : sglangParameters(tool, context);
  if (!isPyDict(parameters)) return new Map();
  if (isSince(sglangVersion(context), "0.5.23")) {
    const properties = parameters.get("properties");
    return isPyDict(properties) && properties.size > 0 ? properties : parameters;
  }
  return parameters.has("properties") ? (parameters.get("properties") ?? null) : parameters;
}

function readBlocks({ span, inner, innerStart }: Frame, context: ParseContext): Block[] {
  const functions = findOpened(inner, functionOpen, functionClose);
  if (functions.length === 0) return [{ span, problem: malformed(`expected ${functionOpen}`) }];
  const starts = functions.map(({ start }) => innerStart + start);
  return divideSpan(span, starts).map((part, index) =>
    readBlock(part, functions[index] as TagText, context),
  );
}

function readBlock(span: Block["span"], found: TagText, context: ParseContext): Block {
  const call = catchPython(() => readFunction(found.inner, context));
  if (call === undefined) return { span, problem: malformed("expected > after the name") };
  const base = { span, name: call.name };
  if (!call.isJson) return { ...base, problem: malformed("an argument cannot be written as JSON") };
  const problem = checkStructure(found);
  return { ...base, argumentValue: call.values, ...(problem !== undefined && { problem }) };
}

function checkStructure(found: TagText): Diagnostic | undefined {
  if (!found.closed) return unclosed(functionClose);
  const parameters = findParameters(found.inner);
  if (parameters.some(({ closed }) => !closed)) return malformed(`expected ${parameterClose}`);
  return parameters.some(({ text }) => !text.includes(">"))
    ? malformed("expected > after a parameter's name")
    : undefined;
}

/** SGLang's reading of the format. */
export const sglangQwen3Coder = sglangReading({
  marker: open,
  catchesAll: true,
  detect,
});

/** Describes a format that puts Qwen3-Coder's calls between tags. */
export function qwen3CoderBlocks(tags: {
  readonly open: string;
  readonly close: string;
}): TagFormat {
  return { ...tags, begins: /^\s*(?:<function=|$)/, read: readBlocks };
}

/** Literals that open a call. */
export const qwen3CoderMarkers = [`${open}\n${functionOpen}`, functionOpen];

/** Qwen3-Coder: `<function=name><parameter=key>value</parameter></function>`. */
export const qwen3Coder = defineParser({
  name: "qwen3_coder",
  aliases: ["qwen3_xml", "nanbeige"],
  markers: qwen3CoderMarkers,
  readings: { sglang: sglangQwen3Coder, vllm: vllmQwen3Coder },
  blocks: qwen3CoderBlocks({ open, close }),
});
