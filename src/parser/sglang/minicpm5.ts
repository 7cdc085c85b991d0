import { parsePythonJson } from "../../python/json-parse.ts";
import { PythonError } from "../../python/python-error.ts";
import { pythonStrip } from "../../python/strip.ts";
import { pythonTruthy } from "../../python/truthy.ts";
import type { PyDict, PyValue } from "../../python/value.ts";
import { isPyDict, isPyList } from "../../python/value.ts";
import { toolParameters } from "../../message.ts";
import type { Block } from "../attempt.ts";
import type { EngineResult } from "../grammar.ts";
import { defineParser } from "../grammar.ts";
import type { ParseContext } from "../parse-context.ts";
import { catchPython } from "../python-catch.ts";
import type { PythonLiteral } from "../python-literal.ts";
import { evaluatePythonLiteral } from "../python-literal.ts";
import { pythonPattern } from "../python-pattern.ts";
import type { Frame } from "../tag-blocks.ts";
import { findTagBlocks, malformed } from "../tag-blocks.ts";
import type { CompatCall } from "../tool-call-parser.ts";
import { parseXmlElement } from "../xml-element.ts";
import { parseBaseJson } from "./base-json.ts";
import { sglangReading } from "./sglang-reading.ts";

const open = "<function";
const close = "</function>";
const namePattern = pythonPattern(String.raw`<function\s+name=['"]([^'"]+)['"][^>]*>`, "");
const parameterHead = pythonPattern(String.raw`<param\s+name=['"]([^'"]+)['"]>`, "g");
const parameterClose = "</param>";

/** A parameter as it is written; without a name where it has none. */
interface Parameter {
  readonly name: string | undefined;
  readonly text: string;
}

/** A call as it is written. */
interface WrittenCall {
  readonly name: string;
  readonly parameters: readonly Parameter[];
}

/**
 * SGLang's detector for MiniCPM 5: XML, or what looks like it. A call that does not fit its tool comes
 * back as text.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/function_call/minicpm5_detector.py`.
 */
function detect(text: string, context: ParseContext): EngineResult {
  if (!text.includes(open)) return { normalText: text, calls: [] };
  const declared = readDeclarations(context);
  return catchPython(() => readText(text, declared, context)) ?? { normalText: text, calls: [] };
}

function readText(
  text: string,
  declared: ReadonlyMap<string, Declaration>,
  context: ParseContext,
): EngineResult {
  const normal: string[] = [];
  const calls: CompatCall[] = [];
  let position = 0;
  for (;;) {
    const start = text.indexOf(open, position);
    const bodyEnd = start === -1 ? -1 : text.indexOf(close, start + open.length);
    if (bodyEnd === -1) break;
    normal.push(text.slice(position, start));
    position = bodyEnd + close.length;
    const block = text.slice(start, position);
    const call = readCall(block, declared);
    if (call === undefined) {
      normal.push(block);
      continue;
    }
    const { name, literal } = call;
    if (!literal.isJson) throw new PythonError("TypeError", "an argument is not JSON serializable");
    const entry = new Map<string, PyValue>([
      ["name", name],
      ["parameters", literal.value],
    ]);
    calls.push(...parseBaseJson(entry, context));
  }
  return { normalText: normal.join("") + text.slice(position), calls };
}

/** What a tool declares about its parameters. */
interface Declaration {
  readonly properties: PyDict;
  readonly hasProperties: boolean;
  readonly required: ReadonlySet<string>;
}

function readDeclarations({ tools }: ParseContext): Map<string, Declaration> {
  return new Map(
    tools.flatMap((tool) => {
      if (tool.name === "") return [];
      const parameters = toolParameters(tool);
      const declared = isPyDict(parameters) ? parameters : undefined;
      const properties = declared?.get("properties") ?? new Map<string, PyValue>();
      if (!isPyDict(properties) && pythonTruthy(properties)) {
        throw new PythonError("AttributeError", "the properties are no object");
      }
      const required = declared?.get("required") ?? [];
      const names = isPyList(required)
        ? required
        : [...(typeof required === "string" ? required : "")];
      const isHashable = names.every((name) => !isPyList(name) && !isPyDict(name));
      const known = new Set(
        isHashable ? names.map((name) => (typeof name === "string" ? name : "\u0000")) : [],
      );
      return [
        [
          tool.name,
          {
            properties: isPyDict(properties) ? properties : new Map<string, PyValue>(),
            hasProperties:
              declared === undefined || !declared.has("properties") || isPyDict(properties),
            required: known,
          },
        ] as const,
      ];
    }),
  );
}

/** The call of a block; `undefined` where it is none, or does not fit its tool. */
function readCall(
  block: string,
  declared: ReadonlyMap<string, Declaration>,
): { name: string; literal: PythonLiteral } | undefined {
  const written = readAsXml(block);
  const first =
    written === undefined ? undefined : catchPython(() => readParameters(written, declared));
  const isNamed = written !== undefined && written.name !== "" && first !== undefined;
  if (!isNamed && first?.type === "invalid") return undefined;
  const call = isNamed ? written : readByPattern(block);
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
  /** A parameter has no name, is not declared, or stands twice. */
  | { readonly type: "invalid" };

/** @throws PythonError where a schema is not what the engine expects. */
function readParameters(
  { name, parameters }: WrittenCall,
  declared: ReadonlyMap<string, Declaration>,
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
        : readLiteral(pythonStrip(text));
    isJson &&= literal.isJson;
    values.set(key, literal.value);
  }
  return { type: "valid", literal: { value: values, isJson } };
}

function typeOf(key: string, declaration: Declaration | undefined): PyValue | undefined {
  if (declaration === undefined) return undefined;
  if (!declaration.hasProperties)
    throw new PythonError("AttributeError", "the properties are none");
  const schema = declaration.properties.get(key);
  if (schema === undefined) return undefined;
  if (isPyDict(schema)) return schema.get("type");
  throw new PythonError("AttributeError", "a schema is no object");
}

function readLiteral(text: string): PythonLiteral {
  const raw = { value: text, isJson: true };
  const read = (): PythonLiteral => {
    const json = catchPython(() => parsePythonJson(text), "JSONDecodeError", "TypeError");
    return json === undefined ? evaluatePythonLiteral(text) : { value: json, isJson: true };
  };
  return catchPython(read, "ValueError", "SyntaxError", "TypeError") ?? raw;
}

function readAsXml(block: string): WrittenCall | undefined {
  const element = parseXmlElement(block);
  if (element?.tag !== "function") return undefined;
  const direct = element.children.filter(({ tag }) => tag === "param");
  const nested = element.children.find(({ tag }) => tag === "arguments")?.children ?? [];
  const parameters = direct.length > 0 ? direct : nested.filter(({ tag }) => tag === "param");
  return {
    name: pythonStrip(element.attributes.get("name") ?? ""),
    parameters: parameters.map(({ attributes, text }) => ({ name: attributes.get("name"), text })),
  };
}

/** What is written, where it is no XML; a parameter without a name comes first. */
function readByPattern(block: string): WrittenCall | undefined {
  const name = pythonStrip(namePattern.exec(block)?.[1] ?? "");
  if (name === "") return undefined;
  const parameters: Parameter[] = hasNameless(block) ? [{ name: undefined, text: "" }] : [];
  const head = new RegExp(parameterHead);
  for (let match = head.exec(block); match !== null; match = head.exec(block)) {
    const end = block.indexOf(parameterClose, head.lastIndex);
    if (end === -1) break;
    const text = block.slice(head.lastIndex, end);
    const isSection = text.startsWith("<![CDATA[") && text.endsWith("]]>");
    parameters.push({
      name: pythonStrip(match[1] ?? ""),
      text: isSection ? text.slice(9, -3) : text,
    });
    head.lastIndex = end + parameterClose.length;
  }
  return { name, parameters };
}

/** Whether some `<param…>` tag has no name in it. */
function hasNameless(block: string): boolean {
  for (let start = block.indexOf("<param"); start !== -1;) {
    const end = block.indexOf(">", start);
    if (end === -1) return false;
    if (!/(?<![\p{L}\p{N}_])name=/u.test(block.slice(start + 6, end))) return true;
    start = block.indexOf("<param", end);
  }
  return false;
}

function readBlock({ span, inner }: Frame, context: ParseContext): Block[] {
  const block = `${open}${inner}${close}`;
  const written = readAsXml(block) ?? readByPattern(block);
  if (written === undefined) return [{ span, problem: malformed("expected <function name=…>") }];
  const { name } = written;
  const declared = catchPython(() => readDeclarations(context)) ?? new Map<string, Declaration>();
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
  aliases: [],
  markers: ["<function name="],
  readings: {
    sglang: sglangReading({
      release: { stops: [open], strips: false },
      hasToolCall: (text) => text.includes(open),
      detect,
    }),
  },
  findBlocks: (text, context) =>
    findTagBlocks(text, {
      open,
      close,
      begins: /^(?:\s+name=|\s*$)/,
      read: (frame) => readBlock(frame, context),
    }),
});
