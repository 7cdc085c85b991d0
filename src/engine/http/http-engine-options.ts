import { UsageError } from "../../errors.ts";
import { hideEverywhere, Redactor } from "../../secrets/redactor.ts";
import { shownUrl } from "../../secrets/find-secrets.ts";
import type { Clock } from "../../async/clock.ts";
import { createClock } from "../../async/clock.ts";
import type { RetryPolicy } from "./http-retry.ts";

/** Time limits in milliseconds. `Infinity` means no limit, except for `connectMs`. */
export interface EngineTimeouts {
  /** Time to open a connection. Default 10 000. */
  readonly connectMs: number;
  /**
   * Time for the answer to one HTTP request, including time during which the engine is paused.
   * Default 1 800 000.
   */
  readonly requestMs: number;
  /** Time for a turn, including all retries and resumptions. Default 3 600 000. */
  readonly turnMs: number;
  /** Time for the answer to a control call: abort, model and server information. Default 5 000. */
  readonly controlMs: number;
}

/** The way turns resume after the engine interrupts them, for example for a weight update. */
export interface ResumePolicy {
  /** Maximum number of interruptions of one turn. Default 32. */
  readonly maxResumes: number;
  /**
   * Wait before a turn resumes, in milliseconds. Doubles while nothing new is sampled. Default 250.
   */
  readonly delayMs: number;
  /** Maximum of that wait, in milliseconds. Default 5 000. */
  readonly maxDelayMs: number;
}

/** Settings of every engine that is reached over HTTP. */
export interface HttpEngineOptions {
  /**
   * The server's address, such as `http://127.0.0.1:30000`. Several addresses are workers: each
   * session stays on one of them, and moves to another one while that worker is down.
   */
  readonly url: string | readonly string[];
  /** Sent as a bearer token. */
  readonly apiKey?: string;
  readonly timeouts?: Partial<EngineTimeouts>;
  /**
   * The number of attempts and the pauses between them. Default: 8 attempts, pauses of 250 ms doubling up to 10,000 ms.
   */
  readonly retry?: Partial<RetryPolicy>;
  readonly resume?: Partial<ResumePolicy>;
  /**
   * Maximum number of concurrent sampling requests for each address. Further requests wait. Default
   * 4 096.
   */
  readonly maxConnections?: number;
  /** Maximum length of a reply in bytes. Default 67 108 864. */
  readonly maxReplyBytes?: number;
  /**
   * Time during which no request goes to a worker that did not answer, in milliseconds. Default 5
   * 000.
   */
  readonly workerCooldownMs?: number;
  /** Returns the time. Default: the machine's monotonic clock. */
  readonly now?: Clock["now"];
  /** Waits. Also used for deadlines. Default: the machine's timers. */
  readonly sleep?: Clock["sleep"];
  /**
   * Returns a number in [0, 1), used to spread retries and to make request ids unique at the
   * server. Two engines that are used at the same time must get different first numbers. Default
   * `Math.random`.
   */
  readonly random?: () => number;
}

/** The options, complete and checked. */
export interface HttpEngineSettings {
  readonly urls: readonly string[];
  /** Removes the API key from texts. */
  readonly redactor: Redactor;
  readonly headers: Readonly<Record<string, string>>;
  readonly timeouts: EngineTimeouts;
  readonly retry: RetryPolicy;
  readonly resume: ResumePolicy;
  readonly maxConnections: number;
  readonly maxReplyBytes: number;
  readonly workerCooldownMs: number;
  readonly clock: Clock;
  readonly random: () => number;
}

/**
 * Fills in the defaults.
 *
 * @throws UsageError naming the option that cannot be used.
 */
export function toHttpEngineSettings(options: HttpEngineOptions): HttpEngineSettings {
  const urls = typeof options.url === "string" ? [options.url] : [...options.url];
  if (urls.length === 0) throw new UsageError("Cannot use an empty list as url: expected a URL");
  for (const url of urls) checkUrl(url);
  if (options.apiKey !== undefined && !/^[\x21-\x7e]+$/.test(options.apiKey)) {
    throw new UsageError("Cannot use the apiKey: expected visible ASCII characters only");
  }
  const secrets = options.apiKey === undefined ? [] : [options.apiKey];
  hideEverywhere({ secrets });
  const settings: HttpEngineSettings = {
    urls,
    redactor: new Redactor(secrets),
    headers: options.apiKey === undefined ? {} : { authorization: `Bearer ${options.apiKey}` },
    timeouts: {
      connectMs: 10_000,
      requestMs: 1_800_000,
      turnMs: 3_600_000,
      controlMs: 5_000,
      ...options.timeouts,
    },
    retry: { maxAttempts: 8, baseDelayMs: 250, maxDelayMs: 10_000, ...options.retry },
    resume: { maxResumes: 32, delayMs: 250, maxDelayMs: 5_000, ...options.resume },
    maxConnections: options.maxConnections ?? 4_096,
    maxReplyBytes: options.maxReplyBytes ?? 64 * 2 ** 20,
    workerCooldownMs: options.workerCooldownMs ?? 5_000,
    clock: createClock({ now: options.now, sleep: options.sleep }),
    random: options.random ?? Math.random,
  };
  checkNumbers(settings);
  return settings;
}

function checkUrl(url: string): void {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed === undefined || !/^https?:$/.test(parsed.protocol)) {
    throw new UsageError(
      `Cannot use ${JSON.stringify(shownUrl(url))} as the engine's url: expected one such as http://127.0.0.1:30000`,
    );
  }
  const { username, password, search, origin, pathname } = parsed;
  if (username === "" && password === "" && search === "") return;
  // The address may contain a secret, so the message does not repeat it.
  throw new UsageError(
    `Cannot use the engine's url: it holds ${search === "" ? "a user or password" : "a query"}, ` +
      `expected ${origin}${pathname} and, for an engine that needs a key, ` +
      "an environment variable with it (--api-key-env)",
  );
}

/** The longest connect timeout. The HTTP library uses a Node timer, which fires immediately for longer times. */
const LONGEST_CONNECT_MS = 2 ** 31 - 1;

function checkNumbers(settings: HttpEngineSettings): void {
  const { timeouts, retry, resume, maxConnections, maxReplyBytes, workerCooldownMs } = settings;
  for (const [name, ms] of Object.entries(timeouts) as [string, number][]) {
    checkRange(`timeouts.${name}`, ms, 1, name === "connectMs" ? LONGEST_CONNECT_MS : Infinity);
  }
  checkRange("retry.maxAttempts", retry.maxAttempts, 1, 1_000);
  checkRange("retry.baseDelayMs", retry.baseDelayMs, 0, Infinity);
  checkRange("retry.maxDelayMs", retry.maxDelayMs, 0, Infinity);
  checkRange("resume.maxResumes", resume.maxResumes, 0, 1_000_000);
  checkRange("resume.delayMs", resume.delayMs, 0, Infinity);
  checkRange("resume.maxDelayMs", resume.maxDelayMs, 0, Infinity);
  checkRange("maxConnections", maxConnections, 1, 1_000_000);
  checkRange("maxReplyBytes", maxReplyBytes, 1, Number.MAX_SAFE_INTEGER);
  checkRange("workerCooldownMs", workerCooldownMs, 0, Infinity);
}

function checkRange(name: string, value: number, min: number, max: number): void {
  if (value >= min && value <= max) return;
  const expected = max === Infinity ? `a number of at least ${min}` : `a number, ${min} to ${max}`;
  throw new UsageError(`Cannot use ${value} as ${name}: expected ${expected}`);
}
