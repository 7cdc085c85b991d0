import { createRequire } from "node:module";
import type { ValidateFunction } from "ajv";
import type * as ajvLibrary from "ajv/dist/2020.js";
import { stringifyPythonJson } from "../python/json-stringify.ts";
import type { PyDict, PyValue } from "../python/value.ts";
import { isPyDict, isPyList } from "../python/value.ts";
import { plainlyFits } from "./plain-schema.ts";
import { checkUniqueItemsByText } from "./unique-items.ts";

let loaded: ajvLibrary.Ajv2020 | undefined;

/**
 * Formats are not checked, unknown keywords pass, and all mismatches of a call are wanted. The library
 * is loaded with the first call that does not plainly fit its schema: a start needs it no sooner.
 */
function loadAjv(): ajvLibrary.Ajv2020 {
  if (loaded !== undefined) return loaded;
  const require = createRequire(import.meta.url);
  const { Ajv2020 } = require("ajv/dist/2020.js") as typeof ajvLibrary;
  loaded = new Ajv2020({
    strict: false,
    allErrors: true,
    validateFormats: false,
    validateSchema: false,
    addUsedSchema: false,
    logger: false,
  });
  checkUniqueItemsByText(loaded);
  return loaded;
}

/** A compiled schema; `null` where it is broken. */
type Validator = ValidateFunction | null;

/** How many different schemas stay compiled; the one that was compiled first goes first. */
const MAX_COMPILED = 1000;

const validatorsByText = new Map<string, Validator>();
/** Saves writing out a schema whose tool definition was seen before. */
const validatorsByObject = new WeakMap<PyDict, Validator>();

/**
 * Says where arguments do not fit the tool's JSON Schema (2020-12), as `path: what is expected`, such as
 * `/days: must be integer`. A schema that is itself broken counts as none.
 */
export function findSchemaMismatches(schema: PyDict, value: PyDict): string[] {
  if (plainlyFits(schema, value)) return [];
  const validate = validatorOf(schema);
  if (validate === null || accepts(validate, value)) return [];
  return (validate.errors ?? []).map(
    ({ instancePath, message }) => `${instancePath === "" ? "/" : instancePath}: ${message}`,
  );
}

function accepts(validate: ValidateFunction, value: PyDict): boolean {
  try {
    return validate(toObject(value));
  } catch {
    // The comparison of constants trips over members with names such as `valueOf`.
    return true;
  }
}

const ordinary = { configurable: true, enumerable: true, writable: true };

/** The value as ordinary objects, which the validator's comparisons need. */
function toObject(value: PyValue): unknown {
  if (typeof value === "bigint") return Number(value);
  if (isPyList(value)) return value.map(toObject);
  if (!isPyDict(value)) return value;
  const object: Record<string, unknown> = {};
  for (const [key, member] of value) {
    if (key !== "__proto__") object[key] = toObject(member);
    // Set like the others it would be another object's members.
    else Object.defineProperty(object, key, { ...ordinary, value: toObject(member) });
  }
  return object;
}

function validatorOf(schema: PyDict): Validator {
  let validator = validatorsByObject.get(schema);
  if (validator !== undefined) return validator;
  const text = stringifyPythonJson(schema);
  validator = validatorsByText.get(text);
  if (validator === undefined) {
    validator = compile(schema);
    if (validatorsByText.size >= MAX_COMPILED) {
      for (const oldest of validatorsByText.keys()) {
        validatorsByText.delete(oldest);
        break;
      }
    }
    validatorsByText.set(text, validator);
  }
  validatorsByObject.set(schema, validator);
  return validator;
}

function compile(schema: PyDict): Validator {
  const plain = toObject(schema) as object;
  const ajv = loadAjv();
  try {
    return ajv.compile(plain);
  } catch {
    // Whatever is wrong with a schema from outside: it cannot tell right arguments from wrong ones.
    return null;
  } finally {
    // The instance would keep every schema that it has ever seen.
    ajv.removeSchema(plain);
  }
}
