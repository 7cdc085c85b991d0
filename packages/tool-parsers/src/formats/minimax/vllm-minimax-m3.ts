import {
  isPyDict,
  isPyList,
  type PyDict,
  pythonStrip,
  type PyValue,
} from "../../../../python-values/src/index.ts";
import { typesOfSchema } from "../../shared/schema/schema-type.ts";
import { minimaxNamespace } from "./minimax-m3-elements.ts";
import { engineReading, type EngineStep } from "../../vllm/parser-engine.ts";
import { coerceToSchema } from "../../vllm/schema-coercion.ts";
import { sinceVllm033 } from "../../vllm/vllm-reading.ts";
import { skipPythonSpace } from "../../shared/text/skip-characters.ts";

const sectionOpen = `${minimaxNamespace}<tool_call>`;
const sectionClose = `${minimaxNamespace}</tool_call>`;
const invokeClose = `${minimaxNamespace}</invoke>`;
const nameEnds = ['">', "'>", ">"];
const invocation: Readonly<Record<string, EngineStep>> = Object.fromEntries(
  ['"', "'", ""].map((quote) => [
    `${minimaxNamespace}<invoke name=${quote}`,
    { to: "name", starts: true } as const,
  ]),
);

/** The deepest nesting of elements. Deeper ones are malformed. */
const MAX_DEPTH = 128;
/** The field for text beside elements. */
const mixedField = "$text";

/** An element: its text, or the elements inside it. */
interface Element {
  readonly name: string;
  readonly value: string | readonly Element[];
}

/** An element, and its end in the text. */
interface ElementReading {
  readonly element: Element;
  readonly end: number;
}

/** Reads the element that starts at `start`; `undefined` if it is malformed or not closed. */
function readElement(text: string, start: number, depth: number): ElementReading | undefined {
  const nameStart = start + minimaxNamespace.length + 1;
  const nameEnd = text.indexOf(">", nameStart);
  const name = text.slice(nameStart, nameEnd);
  const isNamed = nameEnd !== -1 && !name.startsWith("/") && pythonStrip(name) !== "";
  if (depth > MAX_DEPTH || !isNamed) return undefined;
  const close = `${minimaxNamespace}</${name}>`;
  const texts: string[] = [];
  const children: Element[] = [];
  let position = nameEnd + 1;
  for (;;) {
    const marker = text.indexOf(minimaxNamespace, position);
    if (marker === -1) return undefined;
    texts.push(text.slice(position, marker));
    if (text.startsWith(close, marker)) {
      return { element: { name, value: join(texts, children) }, end: marker + close.length };
    }
    if (text[marker + minimaxNamespace.length] !== "<") return undefined;
    const child = readElement(text, marker, depth + 1);
    if (child === undefined) return undefined;
    children.push(child.element);
    position = child.end;
  }
}

/** Adds text beside elements as an element of its own, under a name that is not in use. */
function join(texts: readonly string[], children: readonly Element[]): string | readonly Element[] {
  const text = texts.join("");
  if (children.length === 0) return text;
  if (pythonStrip(text) === "") return children;
  const names = new Set(children.map((child) => child.name));
  let field = mixedField;
  while (names.has(field)) field = `$${field}`;
  return [...children, { name: field, value: text }];
}

/** Reads the parameters of a call, up to the first malformed one. */
function readParameters(body: string): Element[] {
  const found: Element[] = [];
  let position = 0;
  for (;;) {
    position = skipPythonSpace(body, position);
    if (!body.startsWith(`${minimaxNamespace}<`, position)) return found;
    const reading = readElement(body, position, 1);
    if (reading === undefined) return found;
    found.push(reading.element);
    position = reading.end;
  }
}

/** The first alternative of a schema that is a list or an object. */
function findContainer(
  schema: PyDict,
): { readonly kind: "array" | "object"; readonly schema: PyDict } | undefined {
  const type = schema.get("type") ?? null;
  for (const kind of ["array", "object"] as const) {
    if (type === kind || (isPyList(type) && type.includes(kind))) return { kind, schema };
  }
  if (type === null && schema.has("items")) return { kind: "array", schema };
  if (type === null && (schema.has("properties") || schema.has("additionalProperties"))) {
    return { kind: "object", schema };
  }
  for (const field of ["anyOf", "oneOf"]) {
    const choices = schema.get(field);
    for (const choice of isPyList(choices) ? choices : []) {
      const found = isPyDict(choice) ? findContainer(choice) : undefined;
      if (found !== undefined) return found;
    }
  }
  return undefined;
}

function convertElement(value: Element["value"], schema: PyValue | undefined): PyValue {
  const known = isPyDict(schema) ? schema : undefined;
  const container = known === undefined ? undefined : findContainer(known);
  if (typeof value === "string") {
    if (known === undefined) return value;
    const types = typesOfSchema(known);
    if (container !== undefined && !types.has("string") && pythonStrip(value) === "") {
      return container.kind === "array" ? [] : new Map<string, PyValue>();
    }
    return coerceToSchema(value, types);
  }
  if (container?.kind === "array") {
    const items = container.schema.get("items");
    return value.map((child) => convertElement(child.value, items));
  }
  return convertObject(value, container?.schema);
}

/** Converts elements to an object. Elements of one name become a list. */
function convertObject(elements: readonly Element[], schema: PyDict | undefined): PyDict {
  const properties = schema?.get("properties");
  const additional = schema?.get("additionalProperties");
  const known = isPyDict(properties) ? properties : new Map<string, PyValue>();
  const lists = new Map<string, PyValue[]>();
  for (const { name, value } of elements) {
    const converted = convertElement(value, known.has(name) ? known.get(name) : additional);
    const list = lists.get(name);
    if (list === undefined) lists.set(name, [converted]);
    else list.push(converted);
  }
  return new Map(
    [...lists].map(([name, list]) => {
      const [first = null] = list;
      return [name, list.length === 1 ? first : list] as const;
    }),
  );
}

/**
 * vLLM's table for MiniMax M3: a call that is cut off counts with the parameters before the cut,
 * and text after the calls is lost.
 *
 * **Source:** vllm-project/vllm 0.33, `vllm/parser/minimax_m3.py`.
 */
export const vllmMinimaxM3 = sinceVllm033(
  engineReading({
    literals: [sectionOpen, sectionClose, ...Object.keys(invocation), invokeClose, ...nameEnds],
    steps: {
      content: { [sectionOpen]: { to: "preamble" } },
      preamble: { ...invocation, [sectionClose]: { to: "between" } },
      name: Object.fromEntries(nameEnds.map((end) => [end, { to: "arguments" }] as const)),
      arguments: { [invokeClose]: { to: "between" } },
      between: { ...invocation, [sectionClose]: { to: "between" } },
    },
    keepsSpace: true,
    convertArguments: (body, properties) =>
      convertObject(readParameters(body), new Map([["properties", properties()]])),
  }),
);
