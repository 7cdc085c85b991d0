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
 * Returns a message if a folder cannot replace the server's weights, as far as this machine can
 * see. Returns `undefined` if this machine cannot read the folder, or if it has no safetensors
 * files.
 *
 * Servers do not check this. vLLM 0.32 keeps the old weights for tensors that the folder lacks, and
 * reports success. SGLang 0.5.23 exits after it fails to load a broken file.
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
      before === undefined ? undefined : await readTensors(before, "required").catch(() => {});
    if (others === undefined) return undefined;
    return await findDifference({ folder, tensors }, { folder: before!, tensors: others });
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    // The server may run as another user and can read files that this process cannot.
    return isForbidden(error.cause) ? undefined : error.message;
  }
}

function isForbidden(cause: unknown): boolean {
  const code = cause instanceof Error && "code" in cause ? cause.code : undefined;
  return code === "EACCES" || code === "EPERM";
}

type Tensors = ReadonlyMap<string, TensorHeader>;

/**
 * Lists a folder's tensors. Returns `undefined` if the folder cannot be read or has no safetensors
 * files.
 *
 * @param extent - `all`: all files, which a server reads if there is no index. `required`: only the
 *   necessary files, because some publishers add the same weights in their own format
 *   (`consolidated.safetensors`).
 * @throws UsageError if a file is damaged or missing.
 */
async function readTensors(
  folder: string,
  extent: "all" | "required" = "all",
): Promise<Tensors | undefined> {
  // A relative name is a name that the server knows, not a folder.
  if (!path.isAbsolute(folder)) return undefined;
  let names: readonly string[];
  try {
    names = await readdir(folder);
  } catch {
    return undefined;
  }
  const all = names.filter((name) => name.endsWith(".safetensors"));
  const files = extent === "required" && all.includes(SINGLE_FILE) ? [SINGLE_FILE] : all;
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

/** Reads the file of each tensor. */
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

/** Returns a message if a folder belongs to another model, or lacks tensors. */
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
    const expectedShape = before.tensors.get(name)?.shape;
    if (expectedShape === undefined || expectedShape.join() === shape.join()) continue;
    return (
      `Cannot load the model in ${now.folder}: tensor ${name} has shape [${shape.join(", ")}], ` +
      `expected [${expectedShape.join(", ")}], as in ${before.folder}, from which the server has its weights`
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
  // Some trainers store the same weights under other names, or several tensors as one.
  if (lacks === undefined || countFloats(now.tensors) >= countFloats(needed)) return undefined;
  return (
    `Cannot load the model in ${now.folder}: tensor ${lacks} is missing, which ${before.folder} has, from ` +
    "which the server has its weights"
  );
}

/**
 * True for a tensor that published folders contain and trainers do not write, and without which a
 * server samples the same: layers for multi-token prediction after the model's own layers, and
 * computed tables.
 *
 * **Source:** huggingface/transformers, `_keys_to_ignore_on_load_unexpected` of deepseek_v3,
 * glm4_moe, qwen3_next.
 */
function isSpare(name: string, layerCount: number): boolean {
  const layer = /^(?:(?:model|language_model)\.)*layers\.(\d+)\./.exec(name)?.[1];
  return (
    name.endsWith("rotary_emb.inv_freq") ||
    /^(?:model\.)?mtp\./.test(name) ||
    (layer !== undefined && Number(layer) >= layerCount)
  );
}

/** Returns the number of layers, or `Infinity` if the configuration does not have it. */
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

/** Reads `config.json`. Returns `undefined` if there is no readable file, because servers load weights without it. */
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
  // FSDP2 adds this prefix to the class of a sharded model.
  return typeof first === "string" ? first.replace(/^FSDP/, "") : undefined;
}
