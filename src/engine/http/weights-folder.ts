import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { UsageError } from "../../errors.ts";
import {
  INDEX_FILE,
  readSafetensorsHeader,
  SINGLE_FILE,
  type TensorHeader,
} from "./safetensors-header.ts";

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
    const others =
      before === undefined ? undefined : await readTensors(before, "least").catch(() => {});
    if (others === undefined) return undefined;
    return await findDifference({ folder, tensors }, { folder: before!, tensors: others });
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    // Files that only the server may read, such as those of another user, are not seen from here.
    return isForbidden(error.cause) ? undefined : error.message;
  }
}

function isForbidden(cause: unknown): boolean {
  const code = cause instanceof Error && "code" in cause ? cause.code : undefined;
  return code === "EACCES" || code === "EPERM";
}

type Tensors = ReadonlyMap<string, TensorHeader>;

/**
 * Lists what a folder has; undefined where it cannot be seen or has no such files.
 *
 * @param extent - Without an index a server reads all files; "least": those it cannot do without, as some
 *   publishers lay the same weights beside them in a form of their own (`consolidated.safetensors`).
 * @throws UsageError where a file is torn or missing.
 */
async function readTensors(
  folder: string,
  extent: "all" | "least" = "all",
): Promise<Tensors | undefined> {
  // A name that the server knows is no folder here.
  if (!path.isAbsolute(folder)) return undefined;
  let names: readonly string[];
  try {
    names = await readdir(folder);
  } catch {
    return undefined;
  }
  const all = names.filter((name) => name.endsWith(".safetensors"));
  const files = extent === "least" && all.includes(SINGLE_FILE) ? [SINGLE_FILE] : all;
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
  const counts = layerCountOf(other);
  const needed = new Map(
    [...before.tensors].filter(
      ([name]) => !isSpare(name, counts) && !(tiesHead && name === "lm_head.weight"),
    ),
  );
  const lacks = [...needed.keys()].find((name) => !now.tensors.has(name));
  // Some write the same weights under other names, several in one.
  if (lacks === undefined || countFloats(now.tensors) >= countFloats(needed)) return undefined;
  return (
    `Cannot load the model in ${now.folder}: tensor ${lacks} is missing, which ${before.folder} has, from ` +
    "which the server has its weights"
  );
}

/**
 * Whether a tensor is one that many published folders have and trainers do not write: layers that guess
 * further tokens, behind those that the configuration counts, and tables that are computed. Without them a
 * server samples the same.
 *
 * **Source:** huggingface/transformers, `_keys_to_ignore_on_load_unexpected` of deepseek_v3, glm4_moe, qwen3_next.
 */
function isSpare(name: string, layerCount: number): boolean {
  const layer = /^(?:(?:model|language_model)\.)*layers\.(\d+)\./.exec(name)?.[1];
  return (
    name.endsWith("rotary_emb.inv_freq") ||
    /^(?:model\.)?mtp\./.test(name) ||
    (layer !== undefined && Number(layer) >= layerCount)
  );
}

/** Infinite where it is not said. */
function layerCountOf(config: Readonly<Record<string, unknown>> | undefined): number {
  const text = config?.["text_config"] as Readonly<Record<string, unknown>> | null | undefined;
  const count = config?.["num_hidden_layers"] ?? text?.["num_hidden_layers"];
  return typeof count === "number" ? count : Infinity;
}

function countFloats(tensors: Tensors): number {
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
  // A model that is split over processes by FSDP2 names its class so.
  return typeof first === "string" ? first.replace(/^FSDP/, "") : undefined;
}
