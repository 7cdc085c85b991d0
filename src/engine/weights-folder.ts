import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { UsageError } from "../errors.ts";
import { INDEX_FILE, readSafetensorsHeader, type TensorHeader } from "./safetensors-header.ts";

/**
 * What a folder lacks to be loaded in the place of other weights, where that can be seen from here: nothing
 * where this machine does not see the folder, or where it has no weights in safetensors format.
 *
 * Servers do not check: vLLM 0.32 keeps what a folder does not have of the weights before and says that all
 * is well, and SGLang 0.5.23 loads the broken file once more to go back, and ends.
 *
 * @param before - The folder that the server has its weights from.
 */
export async function findWeightsProblem(
  folder: string,
  before?: string,
): Promise<string | undefined> {
  try {
    const tensors = await readTensors(folder);
    if (tensors === undefined) return undefined;
    const others = before === undefined ? undefined : await readTensors(before).catch(() => {});
    if (others === undefined) return undefined;
    return await findDifference({ folder, tensors }, { folder: before!, tensors: others });
  } catch (error) {
    if (error instanceof UsageError) return error.message;
    throw error;
  }
}

type Tensors = ReadonlyMap<string, TensorHeader>;

/**
 * Lists what a folder has; undefined where it cannot be seen or has no such files.
 *
 * @throws UsageError where a file is torn or missing.
 */
async function readTensors(folder: string): Promise<Tensors | undefined> {
  // A name that the server knows is no folder here.
  if (!path.isAbsolute(folder)) return undefined;
  let names: readonly string[];
  try {
    names = await readdir(folder);
  } catch {
    return undefined;
  }
  const files = names.filter((name) => name.endsWith(".safetensors"));
  const listed = names.includes(INDEX_FILE) ? await readIndex(folder) : undefined;
  const tensors = new Map<string, TensorHeader>();
  for (const file of listed === undefined ? files : new Set(listed.values())) {
    for (const tensor of await readSafetensorsHeader(folder, file))
      tensors.set(tensor.name, tensor);
  }
  const missing = [...(listed?.keys() ?? [])].find((name) => !tensors.has(name));
  if (missing !== undefined) {
    throw new UsageError(
      `Cannot load the model in ${folder}: ${listed!.get(missing)} does not hold tensor ${missing}, ` +
        `which ${INDEX_FILE} says it does`,
    );
  }
  return tensors.size === 0 ? undefined : tensors;
}

/** Which file has which tensor. */
async function readIndex(folder: string): Promise<ReadonlyMap<string, string>> {
  const problem = (cause?: unknown): UsageError =>
    new UsageError(
      `Cannot load the model in ${folder}: ${INDEX_FILE} has no weight_map, expected the names of ` +
        "tensors with those of files in the folder",
      { cause },
    );
  let map: unknown;
  try {
    const text = await readFile(path.join(folder, INDEX_FILE), "utf8");
    ({ weight_map: map } = JSON.parse(text) as { weight_map?: unknown });
  } catch (error) {
    throw problem(error);
  }
  if (typeof map !== "object" || map === null) throw problem();
  const entries = Object.entries(map) as [string, unknown][];
  const isPlain = ([, file]: [string, unknown]): boolean =>
    typeof file === "string" && path.basename(file) === file;
  if (!entries.every(isPlain)) throw problem();
  return new Map(entries as [string, string][]);
}

interface Folder {
  readonly folder: string;
  readonly tensors: Tensors;
}

/** What tells that a folder is of another model, or has not all of it. */
async function findDifference(now: Folder, before: Folder): Promise<string | undefined> {
  const [config, other] = [await readConfig(now.folder), await readConfig(before.folder)];
  const architecture = architectureOf(config);
  const expected = architectureOf(other);
  if (architecture !== undefined && expected !== undefined && architecture !== expected) {
    return (
      `Cannot load the model in ${now.folder}: config.json names ${architecture}, expected ${expected}, ` +
      `as in ${before.folder}, from which the server has its weights`
    );
  }
  for (const [name, { shape }] of now.tensors) {
    const had = before.tensors.get(name)?.shape;
    if (had === undefined || had.join() === shape.join()) continue;
    return (
      `Cannot load the model in ${now.folder}: tensor ${name} has shape [${shape.join(", ")}], ` +
      `expected [${had.join(", ")}], as in ${before.folder}, from which the server has its weights`
    );
  }
  const tiesHead = [config, other].some((each) => each?.["tie_word_embeddings"] === true);
  const lacks = [...before.tensors.keys()].find(
    (name) => !now.tensors.has(name) && !(tiesHead && name === "lm_head.weight"),
  );
  // Some write the same weights under other names, several in one.
  if (lacks === undefined || countFloats(now) >= countFloats(before)) return undefined;
  return (
    `Cannot load the model in ${now.folder}: tensor ${lacks} is missing, which ${before.folder} has, from ` +
    "which the server has its weights"
  );
}

function countFloats({ tensors }: Folder): number {
  let count = 0;
  for (const { shape } of tensors.values()) count += shape.reduce((all, size) => all * size, 1);
  return count;
}

/** Undefined where there is none to be read: servers need none to load weights. */
async function readConfig(folder: string): Promise<Readonly<Record<string, unknown>> | undefined> {
  try {
    const text = await readFile(path.join(folder, "config.json"), "utf8");
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

function architectureOf(config: Readonly<Record<string, unknown>> | undefined): string | undefined {
  const architectures = config?.["architectures"];
  const [first] = Array.isArray(architectures) ? (architectures as unknown[]) : [];
  return typeof first === "string" ? first : undefined;
}
