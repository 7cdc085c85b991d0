import { callControl } from "../http/control-call.ts";
import { toWorker } from "../http/http-engine.ts";
import { isObject, parseLenientObject } from "../http/reply-reading.ts";
import type { Worker } from "../http/worker-set.ts";
import type { SglangSettings } from "./sglang-options.ts";

/** Tells the workers behind a router, which itself has no path for it, to stop sampling. */
interface RouterAborter {
  /** As `SamplingProtocol.cutShort()`: true where each worker that the router lists was told. */
  readonly abortRequest: (router: Worker, wireId: string) => Promise<boolean>;
  /** Drops the connections to workers. */
  readonly close: () => Promise<void>;
}

/** How long a router's list is believed: many turns are cut short at once. */
const LISTED_MS = 5_000;

/** How long a worker that could not be reached from here is not asked again: each turn would wait for it. */
const UNREACHED_MS = 60_000;

/**
 * Makes what tells workers. Which of them has a request only the router knows, so that all are told; one that
 * has no such request takes no notice.
 *
 * **Source:** sgl-project/sglang sgl-model-gateway/src/server.rs (`/workers`); THUDM/slime
 * slime/rollout/sglang_rollout.py, which tells the engines behind its router so as well.
 */
export function createRouterAborter(settings: SglangSettings): RouterAborter {
  const { clock, timeouts } = settings;
  const halfTime = { ...timeouts, controlMs: timeouts.controlMs / 2 };
  /** Listing and telling together take no longer than another control call. */
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

  async function tell(url: string, body: string): Promise<boolean> {
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
      const told = await Promise.all([...new Set(urls)].map((url) => tell(url, body)));
      return told.length > 0 && told.every((isTold) => isTold);
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

/** A worker's address as it can be asked; `""` where it speaks no HTTP. Ranks of one server differ in `@rank`. */
function toAddress(url: unknown): string {
  if (typeof url !== "string" || !/^https?:\/\//.test(url)) return "";
  return url.replace(/@\d+$/, "");
}
