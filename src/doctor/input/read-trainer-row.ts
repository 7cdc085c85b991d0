import { readFile } from "node:fs/promises";
import path from "node:path";
import { parsePythonJson } from "../../../packages/python-values/src/json/json-parse.ts";
import { PythonValueError } from "../../../packages/python-values/src/python-error.ts";
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

/** Parses a line. Accepts `NaN` and `Infinity`. Returns `undefined` if it is not JSON. */
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
  return {
    rolloutId,
    segment: segment as number,
    logprobs: values,
    ...(hasVersion && policyVersion !== "" && { policyVersion: String(policyVersion) }),
    ...(routedExperts !== undefined &&
      routedExperts !== null && { routedExperts: routesReader(routedExperts, folder) }),
  };
}

function lacking(member: string, expected: string): LineFault {
  return {
    kind: "shape",
    detail: `"${member}" is missing or of another type, expected ${expected}`,
  };
}

function parsePythonText(text: string): unknown {
  try {
    return toPlainJson(parsePythonJson(text));
  } catch (error) {
    if (error instanceof PythonValueError) return undefined;
    throw error;
  }
}

/** Returns the values, `null` as `NaN` and what is not finite as infinite. `undefined` if an entry is no number. */
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
function routesReader(value: unknown, folder: string | undefined): () => Promise<RouteTable> {
  if (isObject(value) && typeof value["base64"] === "string") {
    const { dtype, shape } = value;
    const bytes = Buffer.from(value["base64"], "base64");
    return async () => await Promise.resolve().then(() => toRouteTable(bytes, { dtype, shape }));
  }
  if (folder !== undefined) return async () => await readRoutes(value, folder);
  const message = 'its routes are not an object with "shape", "dtype" and "base64"';
  return async () => await Promise.reject(new UsageError(message));
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
