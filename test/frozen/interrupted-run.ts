import { createRun } from "../../src/composition/create-run.ts";
import { readRunConfig } from "../../src/composition/config/run-config.ts";
import { startRun } from "../../src/run/start-run.ts";
import { createPlanSource } from "../../src/run/schedule/task-source.ts";
import { startSglangTestServer } from "../../src/testing/index.ts";
import type {
  PolicyToken,
  PolicyTokens,
  ServerPolicy,
} from "../../src/testing/policies/server-policy.ts";
import type { GivenSettings } from "../../src/composition/config/setting.ts";
import { recordRequests } from "./request-recorder.ts";

/** Ids that a turn has before its weights change. */
const idsBefore = 3;

/**
 * Plays a run whose policy gets new weights in the middle of every fourth turn. Each of these turns stops after three ids
 * and continues from them. Returns the requests that the server received.
 */
export async function playInterruptedRun(
  policy: ServerPolicy,
  settings: GivenSettings,
): Promise<{ readonly requests: readonly string[]; readonly urls: readonly string[] }> {
  let turnCount = 0;
  let update: () => void = () => {};
  const interrupting: ServerPolicy = {
    ...policy,
    async begin(request) {
      turnCount += 1;
      const tokens = await policy.begin(request);
      return turnCount % 4 === 0 ? stopAfter(tokens, request.signal, () => update()) : tokens;
    },
  };
  await using server = await startSglangTestServer({ policy: interrupting, weightVersion: "0" });
  await using recorder = await recordRequests(server.url);
  const config = readRunConfig({ ...settings, url: [recorder.url] });
  await using run = await createRun(config);
  await using folder = await run.openFolder(() => {}, { isOpen: true });
  const live = startRun({
    folder,
    setup: run.setup,
    source: createPlanSource(run.plan),
    grouping: { size: 2 },
    admission: { concurrency: 1 },
    redactor: run.redactor,
  });
  let version = 0;
  live.announcePolicy(version);
  const updates: Promise<void>[] = [];
  update = () => {
    version += 1;
    const next = async () => server.setWeightVersion(String(version));
    updates.push(live.updatePolicy(version, next, "interrupt"));
  };
  for await (const _group of live);
  await Promise.all(updates);
  await live.result;
  return { requests: recorder.requests, urls: [recorder.url, server.url] };
}

/** Yields the first tokens, starts an update of the weights, and waits until the request is aborted. */
async function* stopAfter(
  tokens: PolicyTokens,
  signal: AbortSignal,
  update: () => void,
): AsyncGenerator<PolicyToken> {
  let count = 0;
  for await (const token of tokens) {
    if (count === idsBefore) {
      update();
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      return;
    }
    count += 1;
    yield token;
  }
}
