import { isObject } from "../../values/is-object.ts";
import { callControl } from "../http/control-call.ts";
import { toWorker } from "../http/http-engine.ts";
import { parseLenientObject } from "../http/reply-reading.ts";
import type { Worker } from "../http/worker-set.ts";
import type { SglangSettings } from "./sglang-options.ts";

/** Aborts requests at the workers of a router, because the router itself has no abort. */
interface RouterAborter {
  /**
   * Aborts a request as `SamplingProtocol.cutShort()` does. True if each listed worker accepted it.
   */
  readonly abortRequest: (router: Worker, wireId: string) => Promise<boolean>;
  /** Closes the connections to workers. */
  readonly close: () => Promise<void>;
}

/** Time that a router's list of workers is cached, in milliseconds. Many turns are cut short at the same time. */
const LISTED_MS = 5_000;

/** Time that an unreachable worker is skipped, in milliseconds, so that turns do not wait for this worker. */
const UNREACHED_MS = 60_000;

/**
 * Creates an aborter. Only the router knows which worker has a request, so all workers get the
 * abort. A worker without such a request ignores it.
 *
 * **Source:** sgl-project/sglang sgl-model-gateway/src/server.rs (`/workers`); THUDM/slime
 * slime/rollout/sglang_rollout.py, which aborts at each engine in the same way.
 */
export function createRouterAborter(settings: SglangSettings): RouterAborter {
  const { clock, timeouts } = settings;
  const halfTime = { ...timeouts, controlMs: timeouts.controlMs / 2 };
  /** Half the usual time limit, so that listing and aborting together stay within it. */
  const context = { settings: { ...settings, timeouts: halfTime }, parents: [] };
  const lists = new Map<Worker, { readonly urls: Promise<readonly string[]>; untilMs: number }>();
  const workers = new Map<string, Worker>();
  const unreachedUntilMs = new Map<string, number>();

  async function list(router: Worker): Promise<readonly string[]> {
    const outcome = await callControl(router, { method: "GET", path: "/workers" }, context);
    if (outcome.type !== "reply" || outcome.status !== 200) return [];
    const { workers: listed } = parseLenientObject(outcome.text);
    if (!Array.isArray(listed)) return [];
    return listed.map((each) => (isObject(each) ? toAddress(each["url"]) : ""));
  }

  function listed(router: Worker): Promise<readonly string[]> {
    let known = lists.get(router);
    if (known === undefined || known.untilMs <= clock.now()) {
      known = { urls: list(router), untilMs: clock.now() + LISTED_MS };
      lists.set(router, known);
    }
    return known.urls;
  }

  function workerAt(url: string): Worker {
    let worker = workers.get(url);
    if (worker === undefined) {
      worker = toWorker(url, settings);
      workers.set(url, worker);
    }
    return worker;
  }

  async function abortAt(url: string, body: string): Promise<boolean> {
    if (!URL.canParse(url) || (unreachedUntilMs.get(url) ?? 0) > clock.now()) return false;
    const request = { method: "POST", path: "/abort_request", body } as const;
    const outcome = await callControl(workerAt(url), request, context);
    if (outcome.type === "reply") return outcome.status === 200;
    unreachedUntilMs.set(url, clock.now() + UNREACHED_MS);
    return false;
  }

  return {
    async abortRequest(router, wireId) {
      const urls = await listed(router);
      const body = JSON.stringify({ rid: wireId });
      const aborted = await Promise.all([...new Set(urls)].map((url) => abortAt(url, body)));
      return aborted.length > 0 && aborted.every((isAborted) => isAborted);
    },
    async close() {
      await Promise.all(
        [...workers.values()].flatMap(({ transport, control }) => [
          transport.close(),
          control.close(),
        ]),
      );
    },
  };
}

/**
 * Converts a worker's address to a URL, or `""` if it is not HTTP. Ranks of one server differ in
 * the suffix `@rank`.
 */
function toAddress(url: unknown): string {
  if (typeof url !== "string" || !/^https?:\/\//.test(url)) return "";
  return url.replace(/@\d+$/, "");
}
