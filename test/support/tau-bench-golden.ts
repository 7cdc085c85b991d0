import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { retailDomain } from "../../environments/tau-bench/retail/retail-domain.ts";
import {
  openTinyTau,
  writeTinyTauBundle,
  type TinyTau,
} from "../../environments/tau-bench/tiny-tau-bundle.fixture.ts";

/** A recorded observation: the text itself, or its hash and length if it is long. */
export interface RecordedObservation {
  readonly obs?: string | null;
  readonly obs_sha256?: string;
  /** In code points. */
  readonly obs_len?: number;
}

/** A recorded action. */
export interface RecordedAction extends RecordedObservation {
  readonly name: string;
  readonly kwargs_json: string;
}

/** Data, calls and episodes that we invented, and the Python original's results for them. */
const ownRecordings = fileURLToPath(new URL("../tau-bench/recorded/", import.meta.url));

/** Returns the rows of a file that `test/tau-bench/recorded/record.py` wrote. */
export function readOwnGolden<Row>(name: string): Row[] {
  return readRows(path.join(ownRecordings, `${name}.jsonl.gz`));
}

/** Writes a bundle with the invented databases into a new temporary folder, and opens its environments. */
export async function openInventedTau(): Promise<TinyTau> {
  const packed = readFileSync(path.join(ownRecordings, "databases.json.gz"));
  return await openTinyTau(JSON.parse(gunzipSync(packed).toString("utf8")));
}

/**
 * Writes a bundle with the invented databases, whose retail tests are the tasks of the recorded
 * episodes.
 * @returns the bundle's folder and the indexes of its tasks.
 */
export async function writeInventedTasks(): Promise<{ folder: string; taskIndexes: number[] }> {
  const databases = JSON.parse(
    gunzipSync(readFileSync(path.join(ownRecordings, "databases.json.gz"))).toString("utf8"),
  );
  const tasks = readOwnGolden<{ env: string; kind: string; task: InventedTask }>("episodes")
    .filter(({ env, kind }) => env === "retail" && kind === "outputs")
    .filter(({ task }) => task.actions.every(fitsDefinition))
    .map(({ task }) => ({ annotator: "0", ...task }));
  const folder = await writeTinyTauBundle({
    ...databases,
    "retail/tasks_test.json": JSON.stringify(tasks),
    "retail/tools.json": JSON.stringify([...retailDomain.tools.values()].map(toTypedTool)),
  });
  return { folder, taskIndexes: tasks.map((_, index) => index) };
}

interface InventedTask {
  readonly actions: readonly {
    readonly name: string;
    readonly kwargs: Readonly<Record<string, unknown>>;
  }[];
}

/** True if an action has the tool's parameters and no value of another type than the definition's. */
function fitsDefinition({ name, kwargs }: InventedTask["actions"][number]): boolean {
  const { parameters = [] } = retailDomain.tools.get(name) ?? {};
  return Object.entries(kwargs).every(([key, value]) => {
    const isList = key.endsWith("_ids") && Array.isArray(value);
    return parameters.includes(key) && (isList || typeof value === "string");
  });
}

/** A tool's definition: formats that write arguments as plain text need their types. */
function toTypedTool({ name, parameters }: { name: string; parameters: readonly string[] }) {
  const typeOf = (parameter: string) =>
    parameter.endsWith("_ids") ? { type: "array", items: { type: "string" } } : { type: "string" };
  const properties = Object.fromEntries(parameters.map((each) => [each, typeOf(each)]));
  const schema = { type: "object", properties, required: parameters };
  return { type: "function", function: { name, description: name, parameters: schema } };
}

/** The rows of a file of recordings from the Python original, zipped or not. */
export function readGolden<Row>(shared: string, name: string): Row[] {
  const plain = path.join(shared, "data/tau-bench/golden", `${name}.jsonl`);
  return readRows(existsSync(plain) ? plain : `${plain}.gz`);
}

function readRows<Row>(file: string): Row[] {
  const bytes = readFileSync(file);
  const text = (file.endsWith(".gz") ? gunzipSync(bytes) : bytes).toString("utf8");
  return text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Row);
}

/** An observation in the form in which its recording has it. */
export function asRecorded(
  observation: string | null,
  { obs_sha256 }: RecordedObservation,
): RecordedObservation {
  if (obs_sha256 === undefined || observation === null) return { obs: observation };
  return {
    obs_sha256: createHash("sha256").update(observation).digest("hex"),
    obs_len: Array.from(observation).length,
  };
}

/** Only the recorded part of an observation. */
export function recordedObservation({
  obs,
  obs_sha256,
  obs_len,
}: RecordedObservation): RecordedObservation {
  if (obs_sha256 === undefined) return { obs: obs ?? null };
  return { obs_sha256, ...(obs_len !== undefined && { obs_len }) };
}
