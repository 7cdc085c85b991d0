import { readFile } from "node:fs/promises";
import path from "node:path";
import { parsePythonJson } from "../../../packages/python-values/src/json/json-parse.ts";
import { PythonError } from "../../../packages/python-values/src/python-error.ts";
import { toPlainJson } from "../../../packages/python-values/src/value.ts";
import { describeError, UsageError } from "../../errors.ts";
import { parseJsonText } from "../../json/parse-json.ts";
import { isObject } from "../../values/is-object.ts";
import { readNpy, toRouteTable } from "./read-npy.ts";
import type { InputProblemKind, RouteTable, TrainerRow } from "./trainer-row.ts";

/** The reason why a line is not a row. */
export interface LineFault {
  readonly kind: Extract<InputProblemKind, "not-json" | "shape">;
  readonly detail: string;
}

/**
 * Reads a line of a file of trainer's logprobs. Accepts `NaN` and `Infinity`, as Python writes them.
 *
 * @param folder - The folder that paths of routes are relative to.
 */
export function readTrainerRow(text: string, folder: string): TrainerRow | LineFault {
  const value = parseTrainerLine(text);
  if (value === undefined) return { kind: "not-json", detail: "it is not JSON" };
  return toTrainerRow(value, folder);
}

/** Maximum length of a version's name, in UTF-16 code units. Each compared row stores the name. */
const longestVersion = 200;

/** Parses a line. Accepts `NaN` and `Infinity`. Returns `undefined` if the line is not JSON. */
export function parseTrainerLine(text: string): unknown {
  return parseJsonText(text) ?? parsePythonText(text);
}

/**
 * Reads the value of a line.
 *
 * @param folder - The folder that paths of routes are relative to. `undefined` refuses paths: the line is from outside.
 */
export function toTrainerRow(value: unknown, folder: string | undefined): TrainerRow | LineFault {
  if (!isObject(value)) return { kind: "shape", detail: "it is not an object" };
  const { rolloutId, segment, logprobs, policyVersion, routedExperts } = value;
  if (typeof rolloutId !== "string") return lacking("rolloutId", "a text");
  if (!Number.isSafeInteger(segment)) return lacking("segment", "a whole number");
  if (!Array.isArray(logprobs)) return lacking("logprobs", "a list with one entry for each token");
  const values = toLogprobs(logprobs);
  if (values === undefined) return lacking("logprobs", "a list of numbers and null");
  const hasVersion = typeof policyVersion === "string" || Number.isSafeInteger(policyVersion);
  if (!hasVersion && policyVersion !== undefined && policyVersion !== null) {
    return lacking("policyVersion", "a whole number or a text, or none");
  }
  if (typeof policyVersion === "string" && policyVersion.length > longestVersion) {
    const detail = `"policyVersion" has ${policyVersion.length} characters, expected at most ${longestVersion}`;
    return { kind: "shape", detail };
  }
  if (folder === undefined && hasValue(routedExperts) && !hasBase64(routedExperts)) {
    return lacking("routedExperts", 'an object with "shape", "dtype" and "base64"');
  }
  return {
    rolloutId,
    segment: segment as number,
    logprobs: values,
    ...(hasVersion && policyVersion !== "" && { policyVersion: String(policyVersion) }),
    ...(hasValue(routedExperts) && { routedExperts: routesReader(routedExperts, folder) }),
  };
}

function lacking(member: string, expected: string): LineFault {
  return {
    kind: "shape",
    detail: `"${member}" is missing or of another type, expected ${expected}`,
  };
}

function parsePythonText(text: string): unknown {
  // The reader of Python's JSON needs seconds for a large body that was cut.
  if (!/NaN|Infinity/.test(text)) return undefined;
  try {
    return toPlainJson(parsePythonJson(text));
  } catch (error) {
    // Also for a text that nests too deeply.
    if (error instanceof PythonError) return undefined;
    throw error;
  }
}

/**
 * Converts the entries to numbers: `null` to `NaN`, and values that are not finite to infinity. Returns `undefined` if
 * an entry is no number.
 */
function toLogprobs(list: readonly unknown[]): Float64Array | undefined {
  const values = new Float64Array(list.length);
  for (let index = 0; index < list.length; index++) {
    const value = list[index];
    if (value === null) values[index] = NaN;
    else if (typeof value !== "number") return undefined;
    else values[index] = Number.isFinite(value) ? value : Infinity;
  }
  return values;
}

/** Returns a function that reads a row's routes. Bytes of files are not kept in memory. */
function routesReader(value: unknown, folder = "."): () => Promise<RouteTable> {
  if (hasBase64(value)) {
    const { base64, dtype, shape } = value;
    const bytes = Buffer.from(base64, "base64");
    return async () => await Promise.resolve().then(() => toRouteTable(bytes, { dtype, shape }));
  }
  return async () => await readRoutes(value, folder);
}

function hasValue(member: unknown): boolean {
  return member !== undefined && member !== null;
}

function hasBase64(
  value: unknown,
): value is { readonly base64: string; readonly dtype?: unknown; readonly shape?: unknown } {
  return isObject(value) && typeof value["base64"] === "string";
}

async function readRoutes(value: unknown, folder: string): Promise<RouteTable> {
  if (typeof value === "string") return readNpy(await readBytes(value, folder));
  if (!isObject(value)) {
    throw new UsageError(
      'its routes are neither a path nor an object with "shape", "dtype" and "base64" or "path"',
    );
  }
  const { path: file, dtype, shape } = value;
  if (typeof file !== "string") throw new UsageError('its routes have neither "base64" nor "path"');
  return toRouteTable(await readBytes(file, folder), { dtype, shape });
}

async function readBytes(file: string, folder: string): Promise<Uint8Array> {
  try {
    return await readFile(path.resolve(folder, file));
  } catch (error) {
    throw new UsageError(describeError(error), { cause: error });
  }
}
