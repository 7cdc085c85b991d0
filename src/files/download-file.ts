import { open, readFile, rm, stat, writeFile } from "node:fs/promises";
import type * as undici from "undici";
import type { Dispatcher } from "undici";
import { UsageError, describeError } from "../errors.ts";
import { backOffMs } from "../async/back-off.ts";
import { systemClock } from "../async/clock.ts";
import { followRedirects } from "../http/follow-redirects.ts";

/** The source and the target of a download. */
export interface DownloadOptions {
  readonly url: string;
  /** The target file. An earlier, interrupted download is resumed. */
  readonly file: string;
  readonly maxBytes: number;
  readonly signal: AbortSignal;
  /** Sent only to the URL's own host, not to hosts that it redirects to. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The number of connection attempts. Default 4. */
  readonly maxAttempts?: number;
  /** Pause before the first retry in milliseconds; doubled for each further one, and spread. Default 1,000. */
  readonly pauseMs?: number;
  /** Reports the number of bytes received so far. */
  readonly onProgress?: (receivedBytes: number, totalBytes: number | undefined) => void;
}

/** Milliseconds without any byte after which a connection counts as broken. */
const silenceMs = 60_000;

/**
 * Downloads a file through the proxy of `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`, if any. A broken connection is
 * opened again, and the download continues after the received bytes if the server supports that (entity tag and
 * ranges). Otherwise it starts over.
 *
 * @throws UsageError if the download fails. Received bytes are kept if the next call can resume them, else removed.
 * @throws the signal's reason if it aborts.
 */
export async function downloadFile(options: DownloadOptions): Promise<void> {
  const { url, file, signal, maxAttempts = 4, pauseMs = 1_000 } = options;
  // Imported here, as few processes download files.
  const library = await import("undici");
  await using agent = new ProxyAgent(library);
  for (let attempt = 1; ; attempt++) {
    try {
      await fetchRest(options, agent);
      await rm(tagFile(file), { force: true });
      return;
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof UsageError) throw error;
      if (attempt >= maxAttempts) {
        throw new UsageError(`Cannot download ${url}: ${describeError(error)}`, { cause: error });
      }
      const { random } = Math;
      await systemClock.sleep(backOffMs(attempt, { firstMs: pauseMs, random }), { signal });
    }
  }
}

/** Closes its connections when disposed of. */
class ProxyAgent implements AsyncDisposable {
  readonly request: typeof undici.request;
  readonly dispatcher: Dispatcher;

  constructor({ EnvHttpProxyAgent, request }: typeof undici) {
    this.request = request;
    this.dispatcher = new EnvHttpProxyAgent({
      headersTimeout: silenceMs,
      bodyTimeout: silenceMs,
      connectTimeout: 30_000,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.dispatcher.destroy();
  }
}

/** Requests the missing bytes and appends them. */
async function fetchRest(options: DownloadOptions, agent: ProxyAgent): Promise<void> {
  const { file, maxBytes, onProgress } = options;
  const there = await resumePoint(options);
  const reply = await ask(options, agent, there);
  const { statusCode, headers, body } = reply;
  const isRest = statusCode === 206 && rangeStart(headers["content-range"]) === there?.bytes;
  if (statusCode !== 200 && !isRest) {
    await body.dump();
    if (statusCode === 206 || statusCode === 416) {
      await forget(file);
      throw new Error("the server gave another range");
    }
    const problem = `the server answered ${statusCode}`;
    if (statusCode >= 500 || statusCode === 429) throw new Error(problem);
    throw new UsageError(`Cannot download ${options.url}: ${problem}`);
  }
  const coding = headers["content-encoding"] ?? "identity";
  if (coding !== "identity") {
    await body.dump();
    throw new UsageError(
      `Cannot download ${options.url}: it comes as ${String(coding)} although no Content-Encoding ` +
        "was asked for; look at the proxy in between",
    );
  }
  let received = isRest ? (there?.bytes ?? 0) : 0;
  const length = Number(headers["content-length"] ?? Number.NaN);
  const total = Number.isNaN(length) ? undefined : received + length;
  const tag = headers["etag"];
  if (typeof tag === "string" && !tag.startsWith("W/")) {
    await writeFile(tagFile(file), JSON.stringify({ url: options.url, tag }));
  } else {
    await rm(tagFile(file), { force: true });
  }
  // Writes each piece at once, so that the received bytes are on disk if the connection breaks.
  const output = await open(file, isRest ? "a" : "w");
  try {
    for await (const piece of body as AsyncIterable<Buffer>) {
      received += piece.length;
      if (received > maxBytes) {
        throw new UsageError(`Cannot download ${options.url}: it exceeds ${maxBytes} bytes`);
      }
      await output.writeFile(piece);
      onProgress?.(received, total);
    }
    if (total !== undefined && received !== total) throw new Error("the connection broke off");
  } catch (error) {
    if (error instanceof UsageError || (await resumePoint(options)) === undefined)
      await forget(file);
    throw error;
  } finally {
    await output.close();
  }
}

/** The part of the file that exists and can be resumed. */
async function resumePoint({
  url,
  file,
}: DownloadOptions): Promise<{ readonly bytes: number; readonly tag: string } | undefined> {
  const text = await readFile(tagFile(file), "utf8").catch(() => "null");
  const size = await stat(file).then(
    (found) => found.size,
    () => 0,
  );
  try {
    const known = JSON.parse(text) as { readonly url?: string; readonly tag?: string } | null;
    if (size === 0 || known?.url !== url || typeof known.tag !== "string") return undefined;
    return { bytes: size, tag: known.tag };
  } catch {
    return undefined;
  }
}

async function ask(
  { url, signal, headers }: DownloadOptions,
  { request, dispatcher }: ProxyAgent,
  there: { readonly bytes: number; readonly tag: string } | undefined,
): Promise<Dispatcher.ResponseData> {
  return await followRedirects(
    url,
    async (target, { isOwn }) =>
      await request(target, {
        dispatcher,
        signal,
        headers: {
          "user-agent": "turnwright",
          ...(isOwn && headers),
          "accept-encoding": "identity",
          ...(there !== undefined && { range: `bytes=${there.bytes}-`, "if-range": there.tag }),
        },
      }),
  );
}

function rangeStart(contentRange: string | string[] | undefined): number | undefined {
  const match = /^bytes (\d+)-/.exec(String(contentRange));
  return match === null ? undefined : Number(match[1]);
}

async function forget(file: string): Promise<void> {
  await rm(file, { force: true });
  await rm(tagFile(file), { force: true });
}

/** The path of the file with an interrupted download's entity tag. */
function tagFile(file: string): string {
  return `${file}.tag`;
}
