import {
  isPyDict,
  type PyDict,
  PythonError,
  pythonStrip,
  type PyValue,
} from "../../../../python-values/src/index.ts";
import type { Block } from "../../attempt.ts";
import { defineParser, type EngineResult } from "../../grammar.ts";
import {
  miniCpmTags,
  readMiniCpmPattern,
  readMiniCpmXml,
  splitMiniCpmBlocks,
  type MiniCpmCall,
} from "./minicpm5-markup.ts";
import {
  readMiniCpmDeclarations,
  readMiniCpmLiteral,
  type MiniCpmDeclaration,
} from "./minicpm5-schema.ts";
import type { ParseContext } from "../../parse-context.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { requireJson, type PythonLiteral } from "../../shared/python/python-literal.ts";
import { malformed, type Frame } from "../../shared/tags/tag-blocks.ts";
import type { CompatCall } from "../../tool-call-parser.ts";
import { sglangReading } from "../../sglang/sglang-reading.ts";
import { vllmMinicpm5 } from "./vllm-minicpm5.ts";
import { callsNamed } from "../../sglang/base-json.ts";

const { open, close } = miniCpmTags;

/**
 * SGLang's detector for MiniCPM 5: reads XML, or text that resembles it. A call that does not fit
 * its tool is returned as text.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/function_call/minicpm5_detector.py`.
 */
function detect(text: string, context: ParseContext): EngineResult {
  if (!text.includes(open)) return { normalText: text, calls: [] };
  const declared = readMiniCpmDeclarations(context);
  return catchPython(() => readText(text, declared, context)) ?? { normalText: text, calls: [] };
}

function readText(
  text: string,
  declared: ReadonlyMap<string, MiniCpmDeclaration>,
  context: ParseContext,
): EngineResult {
  const normal: string[] = [];
  const calls: CompatCall[] = [];
  for (const { text: piece, isBlock } of splitMiniCpmBlocks(text)) {
    const call = isBlock ? readCall(piece, declared) : undefined;
    if (call === undefined) {
      normal.push(piece);
      continue;
    }
    calls.push(...callsNamed(call.name, requireJson(call.literal), context));
  }
  return { normalText: normal.join(""), calls };
}

/** Reads the call of a block; `undefined` if it is malformed or does not fit its tool. */
function readCall(
  block: string,
  declared: ReadonlyMap<string, MiniCpmDeclaration>,
): { name: string; literal: PythonLiteral } | undefined {
  const written = readMiniCpmXml(block);
  const first =
    written === undefined ? undefined : catchPython(() => readParameters(written, declared));
  const isNamed = written !== undefined && written.name !== "" && first !== undefined;
  if (!isNamed && first?.type === "invalid") return undefined;
  const call = isNamed ? written : readMiniCpmPattern(block);
  if (call === undefined) return undefined;
  const parameters = isNamed ? first : catchPython(() => readParameters(call, declared));
  const declaration = declared.get(call.name);
  if (parameters?.type !== "valid" || declaration === undefined) return undefined;
  const { literal } = parameters;
  const isComplete = [...declaration.required].every((name) => (literal.value as PyDict).has(name));
  return isComplete ? { name: call.name, literal } : undefined;
}

type ReadParameters =
  | { readonly type: "valid"; readonly literal: PythonLiteral }
  /** A parameter has no name, is not declared, or appears twice. */
  | { readonly type: "invalid" };

/**
 * Reads the parameters of a call.
 *
 * @throws PythonError if a schema has another form than the engine expects.
 */
function readParameters(
  { name, parameters }: MiniCpmCall,
  declared: ReadonlyMap<string, MiniCpmDeclaration>,
): ReadParameters {
  const declaration = declared.get(name);
  const values = new Map<string, PyValue>();
  let isJson = true;
  for (const { name: key, text } of parameters) {
    const allowed = declaration?.properties;
    const isForeign = allowed !== undefined && allowed.size > 0 && !allowed.has(key ?? "");
    if (key === undefined || key === "" || isForeign || values.has(key)) return { type: "invalid" };
    const literal =
      typeOf(key, declaration) === "string"
        ? { value: pythonStrip(text), isJson: true }
        : readMiniCpmLiteral(pythonStrip(text));
    isJson &&= literal.isJson;
    values.set(key, literal.value);
  }
  return { type: "valid", literal: { value: values, isJson } };
}

function typeOf(key: string, declaration: MiniCpmDeclaration | undefined): PyValue | undefined {
  if (declaration === undefined) return undefined;
  if (!declaration.hasProperties)
    throw new PythonError("AttributeError", "the properties are missing");
  const schema = declaration.properties.get(key);
  if (schema === undefined) return undefined;
  if (isPyDict(schema)) return schema.get("type");
  throw new PythonError("AttributeError", "a schema is not an object");
}

function readBlock({ span, inner }: Frame, context: ParseContext): Block[] {
  const block = `${open}${inner}${close}`;
  const written = readMiniCpmXml(block) ?? readMiniCpmPattern(block);
  if (written === undefined) return [{ span, problem: malformed("expected <function name=…>") }];
  const { name } = written;
  const declared =
    catchPython(() => readMiniCpmDeclarations(context)) ?? new Map<string, MiniCpmDeclaration>();
  const parameters = catchPython(() => readParameters(written, declared));
  if (parameters?.type !== "valid") {
    return [
      {
        span,
        name,
        problem: malformed("a parameter is not declared, has no name, or stands twice"),
      },
    ];
  }
  if (!parameters.literal.isJson) {
    return [{ span, name, problem: malformed("an argument cannot be written as JSON") }];
  }
  return [{ span, name, argumentValue: parameters.literal.value }];
}

/** MiniCPM 5: `<function name="…"><param name="…">value</param></function>`. */
export const minicpm5 = defineParser({
  name: "minicpm5",
  markers: ["<function name="],
  readings: {
    sglang: sglangReading({
      marker: open,
      detect,
    }),
    vllm: vllmMinicpm5,
  },
  blocks: {
    open,
    close,
    begins: /^(?:\s+name=|\s*$)/,
    read: readBlock,
  },
});
