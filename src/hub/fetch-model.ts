import path from "node:path";
import { EnvHttpProxyAgent, request } from "undici";
import { UsageError, describeError } from "../errors.ts";
import { followRedirects } from "../http/follow-redirects.ts";
import { plainReply, readReplyText } from "../http/read-reply.ts";
import { fetchFile } from "./fetch-file.ts";
import { shownUrl } from "../secrets/find-secrets.ts";
import {
  readHubPlace,
  readHubToken,
  requireAddress,
  type HubPlace,
  type HubVariables,
} from "./hub-place.ts";
import type { ModelName } from "./model-name.ts";
import { replaceText } from "./replace-file.ts";
import { readRepository } from "./repository.ts";
import {
  findMissing,
  folderOf,
  isRecordedComplete,
  readCommit,
  recordSnapshot,
  type Snapshot,
} from "./snapshot.ts";

/** Settings of `fetchModel()`. */
export interface FetchModelOptions {
  /** The hub's variables and the proxy's. Default: the process's. */
  readonly env?: HubVariables;
  readonly signal?: AbortSignal;
  /** Called with each file before it is downloaded. */
  readonly onFile?: (name: string, bytes: number) => void;
}

/** Time limit for the list of a model's files, in milliseconds. */
const listTimeoutMs = 60_000;

/**
 * Downloads a model's tokenizer and template files, without weights, into the hub's own cache, where its Python library
 * finds them too.
 *
 * A file counts when its content has the hash that the hub announced, and existing files are not downloaded again. A
 * record next to the files marks a commit as complete. The hub is then not contacted for a commit that is named by its
 * hash. Several processes may fetch a model at the same time.
 *
 * @returns the snapshot's folder.
 * @throws UsageError if the hub refuses, cannot be reached, or has no such model, and if the cache cannot be written
 *   or, without the hub, lacks a file.
 */
export async function fetchModel(
  model: ModelName,
  { env = process.env, signal = new AbortController().signal, onFile }: FetchModelOptions = {},
): Promise<string> {
  const place = readHubPlace(env);
  const modelDir = path.join(place.cacheDir, `models--${model.owner}--${model.name}`);
  const cached = { modelDir, commit: await readCommit(modelDir, model.revision) };
  const isCommit = /^[0-9a-f]{40}$/.test(model.revision);
  if (isCommit && (await isRecordedComplete(cached))) return folderOf(cached);
  if (place.isOffline)
    return await findOffline(model, cached, "HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE is set");
  requireAddress(place);
  const token = await readHubToken(env);
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const list = await listFiles(model, { place, headers, signal });
  if (typeof list === "string") return list;
  const { commit, files } = list;
  const snapshot = { modelDir, commit };
  const base = `${place.endpoint}/${model.owner}/${model.name}/resolve/${commit}`;
  try {
    for (const file of files) await fetchFile(snapshot, file, { base, headers, signal, onFile });
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof UsageError) throw error;
    throw new UsageError(
      `Cannot fetch ${formatName(model)}: the cache ${modelDir} cannot be written: ${describeError(error)}, ` +
        "expected HF_HUB_CACHE to name a folder that can",
      { cause: error },
    );
  }
  await writeRecord().catch(() => {
    // The cache is read-only, and all files exist.
  });
  return folderOf(snapshot);

  async function writeRecord(): Promise<void> {
    if (!(await isRecordedComplete(snapshot))) {
      await recordSnapshot(
        snapshot,
        files.map(({ name }) => name),
      );
    }
    if (isCommit || (await readCommit(modelDir, model.revision)) === commit) return;
    await replaceText(path.join(modelDir, "refs", model.revision), commit);
  }

  /**
   * Lists the model's files at the hub. If the hub cannot be reached, returns the folder in the
   * cache.
   */
  async function listFiles(...[name, context]: Parameters<typeof askRepository>) {
    try {
      return await askRepository(name, context);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof UsageError) throw error;
      const reason = `${shownUrl(place.endpoint)} cannot be reached: ${describeError(error)}`;
      return await findOffline(model, cached, reason);
    }
  }
}

function formatName({ owner, name, revision }: ModelName): string {
  return `hf:${owner}/${name}${revision === "main" ? "" : `@${revision}`}`;
}

/**
 * Returns the folder of a snapshot that can be used without the hub.
 *
 * @param reason - The reason for not contacting the hub.
 * @throws UsageError if the snapshot lacks a file.
 */
async function findOffline(model: ModelName, snapshot: Snapshot, reason: string): Promise<string> {
  const missing = await findMissing(snapshot);
  if (missing === undefined) return folderOf(snapshot);
  throw new UsageError(
    `Cannot fetch ${formatName(model)}: ${reason}, and ${folderOf(snapshot)} lacks ${missing}; ` +
      "expected a complete snapshot; start once with the hub in reach to download it",
  );
}

async function askRepository(
  model: ModelName,
  context: {
    readonly place: HubPlace;
    readonly headers: Readonly<Record<string, string>>;
    readonly signal: AbortSignal;
  },
) {
  const { owner, name, revision } = model;
  const { endpoint } = context.place;
  const url = `${endpoint}/api/models/${owner}/${name}/revision/${encodeURIComponent(revision)}?blobs=true`;
  const dispatcher = new EnvHttpProxyAgent({
    headersTimeout: listTimeoutMs,
    bodyTimeout: listTimeoutMs,
  });
  try {
    // A renamed model redirects to its new name, and a mirror may redirect to the hub.
    const reply = await followRedirects(
      url,
      async (target, { isOwn }) =>
        await request(target, {
          dispatcher,
          signal: context.signal,
          headers: { "user-agent": "turnwright", ...plainReply, ...(isOwn && context.headers) },
        }),
    );
    const { statusCode } = reply;
    const text = await readReplyText(reply);
    if (statusCode >= 500 || statusCode === 429) throw new Error(`it answers ${statusCode}`);
    if (statusCode !== 200) throw new UsageError(refusal(model, shownUrl(endpoint), statusCode));
    return readRepository(text, formatName(model));
  } finally {
    await dispatcher.destroy();
  }
}

function refusal(model: ModelName, endpoint: string, status: number): string {
  const { owner, name, revision } = model;
  const cannot = `Cannot fetch ${formatName(model)}: ${endpoint} answers ${status}`;
  if (status === 401 || status === 403) {
    return (
      `${cannot}, expected a model that is public, or a token in HF_TOKEN that may read it ` +
      `(see ${endpoint}/${owner}/${name})`
    );
  }
  return `${cannot}, expected an existing model${revision === "main" ? "" : " and revision"}`;
}
