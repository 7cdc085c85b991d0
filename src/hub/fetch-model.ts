import { createHash } from "node:crypto";
import { copyFile, readFile, rename, rm, stat, symlink, writeFile } from "node:fs/promises";
import { makeFolder } from "../internal/make-folder.ts";
import path from "node:path";
import { EnvHttpProxyAgent, request } from "undici";
import { UsageError, describeError } from "../errors.ts";
import { downloadFile } from "../internal/download-file.ts";
import { plainReply, readReplyText } from "../internal/read-reply.ts";
import { readHubPlace, readHubToken, type HubPlace, type HubVariables } from "./hub-place.ts";
import type { ModelName } from "./model-name.ts";
import { readRepository, type RepositoryFile } from "./repository.ts";

/** How a model is fetched. */
export interface FetchModelOptions {
  /** The hub's variables and the proxy's. Default: the process's. */
  readonly env?: HubVariables;
  readonly signal?: AbortSignal;
  /** Told of each file before it is fetched. */
  readonly onFile?: (name: string, bytes: number) => void;
}

/** Longest wait for the list of a model's files, in milliseconds. */
const listTimeoutMs = 60_000;

/**
 * Fetches a model's tokenizer and template files, no weights, into the hub's own cache, where its Python
 * library finds them, too. What is there already is not fetched again; a commit that is there whole is
 * asked for nowhere. A file counts once its content has the hash that the hub gave for it.
 *
 * @returns the snapshot's folder.
 * @throws UsageError where the hub refuses, cannot be reached, or has no such model.
 */
export async function fetchModel(
  model: ModelName,
  { env = process.env, signal = new AbortController().signal, onFile }: FetchModelOptions = {},
): Promise<string> {
  const place = readHubPlace(env);
  const dir = path.join(place.cacheDir, `models--${model.owner}--${model.name}`);
  const known = await findCached(dir, model.revision);
  const isCommit = /^[0-9a-f]{40}$/.test(model.revision);
  if (known !== undefined && (isCommit || place.isOffline)) return known;
  if (place.isOffline) {
    throw new UsageError(
      `Cannot fetch ${spell(model)}: HF_HUB_OFFLINE is set and ${dir} does not have it`,
    );
  }
  const token = await readHubToken(env);
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const list = await listFiles(model, { place, headers, signal });
  if (list === "unreachable") return known!;
  const { commit, files } = list;
  const snapshot = path.join(dir, "snapshots", commit);
  await makeFolder(path.join(dir, "blobs"));
  await makeFolder(snapshot);
  for (const file of files) {
    const blob = path.join(dir, "blobs", file.hash);
    if (!(await isThere(blob))) {
      onFile?.(file.name, file.bytes);
      const base = `${place.endpoint}/${model.owner}/${model.name}/resolve/${commit}`;
      await fetchBlob(`${base}/${file.name}`, { file, blob, headers, signal });
    }
    await link(blob, path.join(snapshot, file.name));
  }
  if (!isCommit) {
    const ref = path.join(dir, "refs", model.revision);
    await makeFolder(path.dirname(ref));
    await writeFile(ref, commit);
  }
  return snapshot;

  /** What the hub has; where it cannot be reached and the cache has some of it, that is said. */
  async function listFiles(...[name, how]: Parameters<typeof askRepository>) {
    try {
      return await askRepository(name, how);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof UsageError) throw error;
      if (known !== undefined) return "unreachable" as const;
      throw new UsageError(
        `Cannot fetch ${spell(model)}: ${place.endpoint} cannot be reached: ${describeError(error)}`,
        { cause: error },
      );
    }
  }
}

function spell({ owner, name, revision }: ModelName): string {
  return `hf:${owner}/${name}${revision === "main" ? "" : `@${revision}`}`;
}

/** A snapshot of the cache with a tokenizer in it. */
async function findCached(dir: string, revision: string): Promise<string | undefined> {
  const ref = await readFile(path.join(dir, "refs", revision), "utf8").catch(() => revision);
  const snapshot = path.join(dir, "snapshots", ref.trim());
  return (await isThere(path.join(snapshot, "tokenizer.json"))) ? snapshot : undefined;
}

async function askRepository(
  model: ModelName,
  how: {
    readonly place: HubPlace;
    readonly headers: Readonly<Record<string, string>>;
    readonly signal: AbortSignal;
  },
) {
  const { owner, name, revision } = model;
  const { endpoint } = how.place;
  const url = `${endpoint}/api/models/${owner}/${name}/revision/${encodeURIComponent(revision)}?blobs=true`;
  const dispatcher = new EnvHttpProxyAgent({
    headersTimeout: listTimeoutMs,
    bodyTimeout: listTimeoutMs,
  });
  try {
    const reply = await request(url, {
      dispatcher,
      signal: how.signal,
      headers: { "user-agent": "turnwright", ...plainReply, ...how.headers },
    });
    const { statusCode } = reply;
    const text = await readReplyText(reply);
    if (statusCode >= 500 || statusCode === 429) throw new Error(`it answers ${statusCode}`);
    if (statusCode !== 200) throw new UsageError(refusal(model, endpoint, statusCode));
    return readRepository(text, spell(model));
  } finally {
    await dispatcher.destroy();
  }
}

function refusal(model: ModelName, endpoint: string, status: number): string {
  const { owner, name, revision } = model;
  const cannot = `Cannot fetch ${spell(model)}: ${endpoint} answers ${status}`;
  if (status === 401 || status === 403) {
    return (
      `${cannot}, expected a model that is public, or a token in HF_TOKEN that may read it ` +
      `(see ${endpoint}/${owner}/${name})`
    );
  }
  return `${cannot}, expected a model that there is${revision === "main" ? "" : ` and a revision of it`}`;
}

async function fetchBlob(
  url: string,
  {
    file,
    blob,
    headers,
    signal,
  }: {
    readonly file: RepositoryFile;
    readonly blob: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  const part = `${blob}.incomplete`;
  await downloadFile({ url, file: part, maxBytes: file.bytes, signal, headers });
  const content = await readFile(part);
  const isWhole =
    file.hash.length === 64
      ? createHash("sha256").update(content).digest("hex") === file.hash
      : createHash("sha1").update(`blob ${content.length}\0`).update(content).digest("hex") ===
        file.hash;
  if (!isWhole) {
    await rm(part, { force: true });
    throw new UsageError(`Cannot use ${url}: its content is not what the hub announced, try again`);
  }
  await rename(part, blob);
}

/** A link as the hub's own library makes it; a copy where there are no links. */
async function link(blob: string, file: string): Promise<void> {
  if (await isThere(file)) return;
  await makeFolder(path.dirname(file));
  await rm(file, { force: true });
  try {
    await symlink(path.relative(path.dirname(file), blob), file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return;
    await copyFile(blob, file);
  }
}

async function isThere(file: string): Promise<boolean> {
  return await stat(file).then(
    () => true,
    () => false,
  );
}
