import {
  isPyDict,
  isPyList,
  parsePythonJson,
  type PyDict,
  pythonLower,
  pythonStrip,
  pythonTruthy,
  type PyValue,
} from "../../../../python-values/src/index.ts";
import type { Dialect } from "../../tool-call-parser.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { parsePythonFloat, parsePythonInt } from "../../shared/python/python-number.ts";

/** The rules by which arguments are converted to the types of a tool's schema. */
interface Coercion {
  readonly dialect: Dialect;
  /** The schemas of a tool's parameters; `undefined` for an unknown tool. */
  readonly propertiesOf: (name: string) => PyDict | undefined;
  /**
   * True if the arguments were written as JSON. SGLang then leaves strings unchanged for a
   * parameter that allows strings.
   */
  readonly isJson: boolean;
}

/** Casts the strings among a call's arguments to the types that the tool declares for them. */
export function coerceCalls(value: PyValue, coercion: Coercion): PyValue {
  if (isPyList(value)) return value.map((item) => coerceCalls(item, coercion));
  const called = isPyDict(value) ? value.get("function") : undefined;
  if (!isPyDict(value) || !isPyDict(called)) return value;
  const name = called.get("name");
  const given = called.get("arguments");
  const properties = typeof name === "string" ? coercion.propertiesOf(name) : undefined;
  if (!isPyDict(given) || properties === undefined) return value;
  const coerced = new Map(
    [...given].map(([key, argument]) => [
      key,
      coerceArgument(argument, typesOf(properties.get(key)), coercion),
    ]),
  );
  return new Map([...value, ["function", new Map([...called, ["arguments", coerced]])]]);
}

function coerceArgument(value: PyValue, types: readonly string[], coercion: Coercion): PyValue {
  const { dialect, isJson } = coercion;
  if (types.length === 0) return value;
  if (dialect === "sglang" && isJson && types.includes("string")) return value;
  if (typeof value === "string") return coerceText(value, types, dialect);
  // Values of a key that appeared several times.
  if (!isPyList(value) || types.includes("array")) return value;
  return value.map((item) => (typeof item === "string" ? coerceText(item, types, dialect) : item));
}

/** The types that a schema declares, alternatives included. */
function typesOf(schema: PyValue | undefined): readonly string[] {
  if (!isPyDict(schema)) return [];
  const declared = schema.get("type");
  const listed = isPyList(declared) ? declared : [declared];
  const types = listed.filter((type) => typeof type === "string");
  for (const keyword of ["anyOf", "oneOf"]) {
    const choices = schema.get(keyword);
    if (isPyList(choices)) types.push(...choices.flatMap(typesOf));
  }
  const isNullable = pythonTruthy(schema.get("nullable") ?? false);
  return isNullable && !types.includes("null") ? [...types, "null"] : types;
}

function coerceText(raw: string, types: readonly string[], dialect: Dialect): PyValue {
  for (const type of dialect === "sglang" ? narrow(raw, types) : types) {
    const value = castText(raw, type, dialect);
    if (value !== undefined) return value;
  }
  return raw;
}

/** Returns the types to cast to. If a string is allowed, a text is cast only if it is the JSON of another type. */
function narrow(raw: string, types: readonly string[]): readonly string[] {
  if (!types.includes("string") || types.every((type) => type === "string")) return types;
  const decoded = catchPython(() => parsePythonJson(raw), "ValueError", "RecursionError");
  if (decoded === undefined || raw !== pythonStrip(raw)) return [];
  const names = namesOf(decoded);
  return types.filter((type) => names.includes(type));
}

function namesOf(value: PyValue): readonly string[] {
  if (value === null) return ["null"];
  if (isPyList(value)) return ["array"];
  if (isPyDict(value)) return ["object"];
  switch (typeof value) {
    case "boolean":
      return ["boolean"];
    case "bigint":
      return ["integer", "number"];
    case "number":
      return ["number"];
    default:
      return ["string"];
  }
}

/** The text as a value of the type; `undefined` if it does not fit. */
function castText(raw: string, type: string, dialect: Dialect): PyValue | undefined {
  switch (type) {
    case "integer":
      return readInt(raw) ?? readWholeFloat(raw);
    case "number":
      return (dialect === "sglang" ? readInt(raw) : undefined) ?? readNumber(raw);
    case "boolean": {
      const word = pythonLower(pythonStrip(raw));
      if (!["true", "1", "false", "0"].includes(word)) return undefined;
      return word === "true" || word === "1";
    }
    case "null":
      return ["null", "None"].includes(pythonStrip(raw)) ? null : undefined;
    case "object":
    case "array": {
      const forgiven = dialect === "sglang" ? (["RecursionError"] as const) : [];
      const decoded = catchPython(() => parsePythonJson(raw), "ValueError", ...forgiven);
      const fits = type === "object" ? isPyDict(decoded) : isPyList(decoded);
      return fits ? decoded : undefined;
    }
    default:
      return undefined;
  }
}

function readInt(raw: string): bigint | undefined {
  return catchPython(() => parsePythonInt(raw), "ValueError");
}

function readWholeFloat(raw: string): bigint | undefined {
  const value = catchPython(() => parsePythonFloat(raw), "ValueError");
  return value !== undefined && Number.isInteger(value) ? BigInt(value) : undefined;
}

function readNumber(raw: string): bigint | number | undefined {
  const value = catchPython(() => parsePythonFloat(raw), "ValueError");
  if (value === undefined || !Number.isFinite(value)) return undefined;
  return Number.isInteger(value) && !raw.includes(".") ? BigInt(value) : value;
}
