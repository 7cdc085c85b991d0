import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { openTinyTau, type TinyTau } from "../../environments/tau-bench/tiny-tau-bundle.fixture.ts";

/** A recorded observation: the text itself, or its hash and length where it is long. */
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

/** Data, calls and episodes that we invented, and what the Python original did with them. */
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

/** Only what a recording says of an observation. */
export function recordedObservation({
  obs,
  obs_sha256,
  obs_len,
}: RecordedObservation): RecordedObservation {
  if (obs_sha256 === undefined) return { obs: obs ?? null };
  return { obs_sha256, ...(obs_len !== undefined && { obs_len }) };
}
