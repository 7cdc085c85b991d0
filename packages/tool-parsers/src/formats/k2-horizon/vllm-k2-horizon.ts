import {
  isPyDict,
  isPythonSpace,
  pythonStrip,
  PythonValueError,
  type PyValue,
} from "../../../../python-values/src/index.ts";
import type { ParseContext } from "../../parse-context.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { typesOfSchema } from "../../shared/schema/schema-type.ts";
import { findArguments } from "../../shared/tags/arg-pairs.ts";
import { k2Arguments } from "./k2-horizon-block.ts";
import { coerceToSchema, findVllmProperties } from "../../vllm/schema-coercion.ts";
import {
  sinceVllm033,
  vllmReading,
  type VllmCall,
  type VllmExtraction,
} from "../../vllm/vllm-reading.ts";
import { writeJson } from "../../shared/json/write-json.ts";
import { outsideTags, betweenTags } from "../../shared/tags/between-tags.ts";

const groupOpen = "<ifm|tool_calls>";
const groupClose = "</ifm|tool_calls>";
const open = "<ifm|tool_call>";
const close = "</ifm|tool_call>";
const argumentFormat = { ...k2Arguments, unicodeSpace: true };
const argumentTag = /<\/?ifm\|arg_(?:key|type|value)>/;

function extract(text: string, context: ParseContext): VllmExtraction {
  const start = text.indexOf(groupOpen);
  const bodyStart = start + groupOpen.length;
  const end = start === -1 ? -1 : text.indexOf(groupClose, bodyStart);
  const calls =
    end === -1
      ? undefined
      : catchPython(
          () => readGroup(text.slice(bodyStart, end), context),
          "ValueError",
          "TypeError",
        );
  if (calls === undefined) return { content: orEmpty(text), calls: [] };
  const content = text.slice(0, start) + text.slice(end + groupClose.length);
  return { content: orEmpty(content), calls };
}

/** Returns the text, or an empty text if it is all white space. */
function orEmpty(text: string): string {
  return pythonStrip(text) === "" ? "" : text;
}

/** Reads the calls of a group. @throws PythonError if anything in the group is malformed. */
function readGroup(text: string, context: ParseContext): VllmCall[] {
  if (pythonStrip(outsideTags(text, open, close)) !== "") {
    throw new PythonValueError("there is text beside the calls");
  }
  const bodies = betweenTags(text, open, close);
  if (bodies.length === 0) throw new PythonValueError("the group is empty");
  return bodies.map((body) => readCall(body, context));
}

/** Reads a call. @throws PythonError if the call is malformed. */
function readCall(body: string, context: ParseContext): VllmCall {
  const first = body.indexOf(k2Arguments.keyOpen);
  if (first === -1 && argumentTag.test(body)) throw malformed();
  const name = checkName(pythonStrip(first === -1 ? body : body.slice(0, first)), context);
  const values = first === -1 ? new Map() : readArguments(name, body.slice(first), context);
  return { name, argumentsText: writeJson(values) };
}

function checkName(name: string, { tools }: ParseContext): string {
  const isSpaced = [...name].some((character) => isPythonSpace(character.charCodeAt(0)));
  const isKnown = tools.length === 0 || tools.some((tool) => tool.name === name);
  if (name === "" || isSpaced || !isKnown) throw new PythonValueError("the name is invalid");
  return name;
}

function readArguments(name: string, text: string, context: ParseContext): Map<string, PyValue> {
  const properties = findVllmProperties(name, context);
  const values = new Map<string, PyValue>();
  let position = 0;
  for (const { key: written, type, value, start, end } of findArguments(text, argumentFormat)) {
    const key = pythonStrip(written);
    const isPlain = pythonStrip(text.slice(position, start)) === "" && type === undefined;
    if (!isPlain || key === "" || values.has(key)) throw malformed();
    const schema = properties.get(key);
    const types = isPyDict(schema) ? typesOfSchema(schema) : new Set(["string"]);
    values.set(key, coerceToSchema(types.has("string") ? value : pythonStrip(value), types));
    position = end;
  }
  if (position === 0 || pythonStrip(text.slice(position)) !== "") throw malformed();
  return values;
}

function malformed(): PythonValueError {
  return new PythonValueError("the tags of the arguments are malformed");
}

/**
 * vLLM's parser for K2 Horizon, in its default format without types. Anything malformed in the
 * first group, or an unknown tool, loses all calls.
 *
 * **Source:** vllm-project/vllm 0.33, `vllm/tool_parsers/k2_horizon_tool_parser.py`.
 */
export const vllmK2Horizon = sinceVllm033(
  vllmReading({ release: { stops: ["<ifm|"], holdsAll: true }, extract }),
);
