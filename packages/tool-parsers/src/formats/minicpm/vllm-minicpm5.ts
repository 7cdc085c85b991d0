import {
  isPyDict,
  type PyDict,
  PythonError,
  pythonLstrip,
  pythonStrip,
  type PyValue,
} from "../../../../python-values/src/index.ts";
import { toolParameters } from "../../tool-definition.ts";
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
import { renameMiniCpmCall } from "./minicpm5-renames.ts";
import { vllmReading, type VllmCall, type VllmExtraction } from "../../vllm/vllm-reading.ts";
import { writeJson } from "../../shared/json/write-json.ts";
import { holdsAll } from "../../tool-call-stream.ts";

type Declarations = ReadonlyMap<string, MiniCpmDeclaration>;

function extract(source: string, context: ParseContext): VllmExtraction {
  const text = normalize(source);
  if (!text.includes(miniCpmTags.open)) return { content: dropThinking(text), calls: [] };
  const declared = readDeclarations(context);
  // Up to 0.24 values lose the white space around them.
  const strips = context.engineVersion === "0.24";
  return catchPython(() => readText(text, declared, strips)) ?? { content: text, calls: [] };
}

/** Reverts the changes that decoders and the model make to spaces. */
function normalize(text: string): string {
  return text
    .replaceAll("\u0120", " ")
    .replaceAll("\u010a", "\n")
    .replaceAll("<functionname=", "<function name=")
    .replaceAll("<paramname=", "<param name=");
}

function dropThinking(text: string): string {
  const end = text.lastIndexOf("</think>");
  const visible = end === -1 ? "" : pythonLstrip(text.slice(end + "</think>".length));
  return visible === "" ? text : visible;
}

/**
 * Reads the declarations of all tools.
 *
 * @throws PythonError if the properties of a tool are not an object.
 */
function readDeclarations(context: ParseContext): Declarations {
  for (const tool of context.tools) {
    const parameters = toolParameters(tool);
    const properties = isPyDict(parameters) ? parameters.get("properties") : undefined;
    if (properties !== undefined && !isPyDict(properties)) {
      throw new PythonError("AttributeError", "the properties are not an object");
    }
  }
  return readMiniCpmDeclarations(context);
}

function readText(text: string, declared: Declarations, strips: boolean): VllmExtraction {
  const normal: string[] = [];
  const calls: VllmCall[] = [];
  for (const { text: piece, isBlock } of splitMiniCpmBlocks(text)) {
    const call = isBlock ? readCall(piece, { declared, strips }) : undefined;
    if (call === undefined) normal.push(piece);
    else calls.push(call);
  }
  return { content: calls.length > 0 ? "" : dropThinking(pythonStrip(normal.join(""))), calls };
}

/** Reads the call of a block; `undefined` if it is malformed or does not fit its tool. */
function readCall(
  block: string,
  { declared, strips }: { readonly declared: Declarations; readonly strips: boolean },
): VllmCall | undefined {
  const xml = readMiniCpmXml(block);
  const isNamed = xml !== undefined && xml.name !== "";
  const first = isNamed ? catchPython(() => readParameters(xml, declared, strips)) : undefined;
  const written = first === undefined ? readMiniCpmPattern(block) : xml;
  if (written === undefined) return undefined;
  const read = first ?? catchPython(() => readParameters(trimPattern(written), declared, strips));
  if (read === undefined || read === "invalid") return undefined;
  const { name, values } = renameMiniCpmCall({ name: written.name, values: read.values }, declared);
  const declaration = declared.get(name);
  if (declaration === undefined) return undefined;
  if (![...declaration.required].every((required) => values.has(required))) return undefined;
  if (!read.isJson) throw new PythonError("TypeError", "an argument is not JSON serializable");
  return { name, argumentsText: writeJson(values) };
}

/** Trims white space around the values of a call whose block is not XML. Values in a CDATA section stay as they are. */
function trimPattern({ name, parameters }: MiniCpmCall): MiniCpmCall {
  return {
    name,
    parameters: parameters.map((parameter) => {
      const { isSection = false, text } = parameter;
      return isSection ? parameter : { ...parameter, text: pythonStrip(text) };
    }),
  };
}

/** The arguments of a call. */
interface ReadArguments {
  readonly values: Map<string, PyValue>;
  readonly isJson: boolean;
}

/**
 * Reads the parameters of a call.
 *
 * @throws PythonError if a schema has another form than the engine expects.
 */
function readParameters(
  { name, parameters }: MiniCpmCall,
  declared: Declarations,
  strips: boolean,
): ReadArguments | "invalid" {
  const reader = new ParameterReader(declared.get(name));
  for (const { name: key, text } of parameters) {
    const value = strips ? pythonStrip(text) : text;
    if (key === undefined || key === "" || !reader.add(key, value)) return "invalid";
  }
  return reader;
}

class ParameterReader implements ReadArguments {
  readonly values = new Map<string, PyValue>();
  isJson = true;
  readonly #properties: PyDict;

  constructor(declaration: MiniCpmDeclaration | undefined) {
    this.#properties = declaration?.properties ?? new Map();
  }

  /** Adds a parameter; false if it appears twice. Undeclared parameters are ignored. */
  add(key: string, text: string): boolean {
    const isDeclared = this.#properties.has(key);
    if (this.#properties.size > 0 && !isDeclared) {
      return key === "properties" || key === "arguments" ? this.#addAll(text) : true;
    }
    return this.#addOne(key, text);
  }

  /** Adds the members of a dictionary that replaces the parameters. */
  #addAll(text: string): boolean {
    const { value, isJson } = readMiniCpmLiteral(text);
    if (!isPyDict(value)) return false;
    this.isJson &&= isJson;
    const members = [...value].filter(([key]) => this.#properties.has(key));
    return members.length > 0 && members.every(([key, member]) => this.#addOne(key, member));
  }

  #addOne(key: string, value: PyValue): boolean {
    if (this.values.has(key)) return false;
    this.values.set(key, this.#coerce(key, value));
    return true;
  }

  #coerce(key: string, value: PyValue): PyValue {
    const schema = this.#properties.get(key);
    if (schema !== undefined && !isPyDict(schema)) {
      throw new PythonError("AttributeError", "a schema is not an object");
    }
    if (schema?.get("type") === "string") {
      return typeof value === "string" ? value : writeJson(value);
    }
    if (typeof value !== "string") return value;
    const literal = readMiniCpmLiteral(value);
    this.isJson &&= literal.isJson;
    return literal.value;
  }
}

/**
 * vLLM's parser for MiniCPM 5: undeclared parameters are ignored, and any call drops the text
 * around it.
 *
 * **Source:** vllm-project/vllm, `vllm/tool_parsers/minicpm5xml_tool_parser.py`.
 */
export const vllmMinicpm5 = vllmReading({
  release: holdsAll,
  extract,
});
