import {
  isPyDict,
  isPyList,
  type PyDict,
  PythonError,
  pythonLower,
  pythonStrip,
  type PyValue,
} from "../../../../python-values/src/index.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { propertiesOfSchema } from "../../sglang/sglang-parameters.ts";
import { parsePythonInt, parsePythonNumber } from "../../shared/python/python-number.ts";

/** The text before each tag of MiniMax M3. */
export const minimaxNamespace = "]<]minimax[>[";

/** A value under construction. */
type Value = PyValue | PyValue[] | Map<string, PyValue>;

/** An element that is open. */
interface Frame {
  readonly tag: string;
  readonly schema: PyDict | undefined;
  value: Value;
  /** True if the value is a list because its first element was an item. */
  isInferredList: boolean;
}

/**
 * Reads nested elements as an object. Repeated tags become a list, `<item>` elements of an array
 * become its items, and the schema types the values.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/function_call/minimax_m3.py`
 * (`_parse_parameter`).
 *
 * Since 0.5.23 (`infersTypes`) JSON's constants and lists of items are recognized without a schema.
 *
 * @throws PythonError `ValueError` if the tags do not match.
 */
export function readNestedElements(
  body: string,
  schema: PyDict | undefined,
  infersTypes: boolean,
): PyValue {
  const chunks = body
    .split(minimaxNamespace)
    .map((chunk) => pythonStrip(chunk))
    .filter((chunk) => chunk !== "");
  const isList = hasType(schema, "array") && chunks[0]?.startsWith("<item>") === true;
  const value = isList ? [] : new Map<string, PyValue>();
  const root: Frame = { tag: "", schema, value, isInferredList: false };
  const stack: Frame[] = [root];
  for (const chunk of chunks) {
    if (chunk.startsWith("</")) closeElement(chunk, stack);
    else if (chunk.startsWith("<")) {
      stack.push(openElement(chunk, stack.at(-1) ?? root, infersTypes));
    }
  }
  return root.value;
}

function closeElement(chunk: string, stack: Frame[]): void {
  const end = chunk.indexOf(">", 2);
  const tag = pythonStrip(chunk.slice(2, end === -1 ? chunk.length : end));
  const frame = stack.at(-1);
  if (stack.length === 1 || frame?.tag !== tag) {
    throw new PythonError("ValueError", "a closing tag does not match");
  }
  stack.pop();
  assign(stack.at(-1)?.value, frame);
}

function openElement(chunk: string, parent: Frame, infersTypes: boolean): Frame {
  const end = chunk.indexOf(">");
  if (end === -1) throw new PythonError("ValueError", "substring not found");
  const tag = pythonStrip(chunk.slice(1, end));
  const text = chunk.slice(end + 1);
  if (infersTypes && isUntyped(parent.schema)) inferContainer(parent, tag);
  const schema = childSchema(parent, tag, infersTypes);
  const types = typesOf(schema);
  const isScalar =
    types.some((type) => scalarTypes.has(type)) &&
    !types.some((type) => type === "object" || type === "array");
  const isInferredList = false;
  if (text !== "" || isScalar) {
    const value = infersTypes && isUntyped(schema) ? readConstant(text) : convertLeaf(text, types);
    return { tag, schema, value, isInferredList };
  }
  const value = types.includes("array") ? [] : new Map<string, PyValue>();
  return { tag, schema, value, isInferredList };
}

/** True if a schema does not restrict its elements. */
function isUntyped(schema: PyDict | undefined): boolean {
  if (schema === undefined) return true;
  const hasParts = ["properties", "items", "prefixItems"].some((key) => schema.has(key));
  return typesOf(schema).length === 0 && !hasParts;
}

/**
 * Makes a list of a value with an `item` as its first element. A later element of another name turns the list into an
 * object again.
 */
function inferContainer(frame: Frame, tag: string): void {
  const { value } = frame;
  if (tag === "item") {
    if (!(value instanceof Map) || value.size > 0) return;
    frame.value = [];
    frame.isInferredList = true;
  } else if (frame.isInferredList && Array.isArray(value)) {
    const [first = null] = value;
    frame.value = new Map([["item", value.length === 1 ? first : value]]);
    frame.isInferredList = false;
  }
}

function readConstant(text: string): PyValue {
  const constant = constants.get(pythonStrip(text));
  return constant === undefined ? text : constant;
}

const constants: ReadonlyMap<string, PyValue> = new Map([
  ["true", true],
  ["false", false],
  ["null", null],
]);

function assign(parent: Value | undefined, { tag, value }: Frame): void {
  if (Array.isArray(parent)) {
    parent.push(value);
    return;
  }
  if (!(parent instanceof Map)) throw new PythonError("TypeError", "text cannot have elements");
  const existing: PyValue | undefined = parent.get(tag);
  if (existing === undefined) parent.set(tag, value);
  else if (isPyList(existing)) (existing as PyValue[]).push(value);
  else parent.set(tag, [existing, value]);
}

function childSchema(parent: Frame, tag: string, infersTypes: boolean): PyDict | undefined {
  const { schema } = parent;
  if (schema === undefined) return undefined;
  if (hasType(schema, "array") && tag === "item") return itemSchema(schema, parent.value);
  const properties = infersTypes ? propertiesOfSchema(schema) : schema.get("properties");
  if (isPyDict(properties) && properties.has(tag)) return asDict(properties.get(tag));
  return asDict(schema.get("additionalProperties"));
}

function itemSchema(schema: PyDict, items: Value): PyDict | undefined {
  const prefix = schema.get("prefixItems");
  const prefixes = isPyList(prefix) ? prefix : [];
  const index = Array.isArray(items) ? items.length : 0;
  if (index < prefixes.length) return asDict(prefixes[index]);
  return (
    asDict(schema.get("additionalItems")) ?? asDict(schema.get("items")) ?? asDict(prefixes.at(-1))
  );
}

function asDict(value: PyValue | undefined): PyDict | undefined {
  return isPyDict(value) ? value : undefined;
}

const scalarTypes: ReadonlySet<string> = new Set(
  "string str integer int number float boolean bool null".split(" "),
);

function typesOf(schema: PyDict | undefined): string[] {
  const type = schema?.get("type");
  return (isPyList(type) ? type : [type]).flatMap((item) =>
    typeof item === "string" ? [pythonLower(item)] : [],
  );
}

function hasType(schema: PyDict | undefined, type: string): boolean {
  return typesOf(schema).includes(type);
}

function convertLeaf(text: string, types: readonly string[]): PyValue {
  const has = (...names: string[]): boolean => names.some((name) => types.includes(name));
  if (has("string", "str") && !has("null")) return text;
  if (has("null") && ["null", "Null", "NULL", ""].includes(text)) return null;
  const int = has("integer", "int")
    ? catchPython(() => parsePythonInt(text), "ValueError")
    : undefined;
  if (int !== undefined) return int;
  const number = has("number", "float")
    ? catchPython(() => parsePythonNumber(text), "ValueError")
    : undefined;
  if (number !== undefined) return number;
  const lower = pythonStrip(pythonLower(text));
  if (has("boolean", "bool")) {
    if (["true", "1", "yes", "on"].includes(lower)) return true;
    if (["false", "0", "no", "off"].includes(lower)) return false;
  }
  return text;
}
