import { expect, test } from "vitest";
import { fiftyLamps, switchingEngine, takeAll } from "../../run/lamp-groups.fixture.ts";
import { lampSetup } from "../../run/lamp-run.fixture.ts";
import { startRun } from "../../run/start-run.ts";
import { createTaskList } from "../../run/schedule/task-source.ts";
import { Redactor } from "../../secrets/redactor.ts";
import { policyKey } from "../store/keys.ts";
import { FaultyStore } from "../local/faulty-connection.fixture.ts";
import { faultyClients, plainLine } from "../local/faulty-connection.fixture.ts";
import { QueueStore } from "../store/queue-store.ts";
import { QueueWorker } from "../worker/queue-worker.ts";
import { HandOut, type HandOutOptions } from "./hand-out.ts";
import { RemotePolicy } from "./remote-policy.ts";

async function connect(memory: FaultyStore): Promise<QueueStore> {
  const clients = faultyClients(plainLine(memory));
  return await QueueStore.connect({ url: "redis://memory" }, { clients, env: {} });
}

/** The policy state that workers read. */
function found(memory: FaultyStore): unknown {
  const { gate, version } = JSON.parse(memory.get(policyKey("r"))!) as Record<string, unknown>;
  return { gate, version };
}

/** The state of a process that is gone: version 7, and sampling cut short. */
async function leavePaused(memory: FaultyStore): Promise<number> {
  const policy = await RemotePolicy.open(await connect(memory), "r", { isMarked: true });
  policy.announce(7);
  await policy.close("interrupt");
  return policy.revision;
}

test("a policy is taken over with its version, and stays closed until a first attempt is played", async () => {
  const memory = new FaultyStore(() => 0);
  const revision = await leavePaused(memory);
  const policy = await RemotePolicy.open(await connect(memory), "r", { isMarked: true });
  expect(found(memory)).toEqual({ gate: "interrupt", version: 7 });
  expect([policy.version, policy.revision > revision]).toEqual([7, true]);
  policy.begin();
  await policy.written();
  expect(found(memory)).toEqual({ gate: "open", version: 7 });
});

test("a policy that its new owner closed stays closed when attempts are played", async () => {
  const memory = new FaultyStore(() => 0);
  await leavePaused(memory);
  const policy = await RemotePolicy.open(await connect(memory), "r", { isMarked: true });
  await policy.close("hold");
  policy.begin();
  await policy.written();
  expect(found(memory)).toEqual({ gate: "hold", version: 7 });
});

test("workers find only the current state of a policy", async () => {
  const memory = new FaultyStore(() => 0);
  await leavePaused(memory);
  for (const known of [{ gate: "hold", version: 8 } as const, { gate: "interrupt" } as const]) {
    const policy = await RemotePolicy.open(await connect(memory), "r", { isMarked: true, known });
    expect(found(memory)).toEqual({ version: undefined, ...known });
    policy.begin();
    await policy.written();
    expect(found(memory)).toEqual({ version: undefined, ...known });
  }
});

/**
 * The versions of the tokens of a run whose hand-out takes over from one that was paused at version
 * 7.
 */
async function sampleAfter(options: Partial<HandOutOptions>): Promise<readonly string[]> {
  const memory = new FaultyStore(() => Date.now());
  await leavePaused(memory);
  const setup = lampSetup({ environment: fiftyLamps, engine: switchingEngine() });
  await using _worker = await QueueWorker.start({
    store: await connect(memory),
    setup,
    terms: { tokenizer: "t1" },
    redactor: new Redactor(),
    concurrency: 2,
    // A slow machine must not count as a lost worker.
    leaseMs: 600_000,
  });
  await using handOut = await HandOut.open({
    store: await connect(memory),
    run: "r",
    environment: "lamp",
    sampling: {},
    terms: { tokenizer: "t1" },
    isRecorded: true,
    everyMs: 100,
    isMarked: true,
    ...options,
  });
  const run = startRun({
    source: createTaskList(fiftyLamps, { split: "test", taskIndexes: [3] }),
    setup,
    grouping: { size: 2 },
    admission: { concurrency: 2 },
    player: handOut.player(),
  });
  const groups = await takeAll(run);
  const sampled = groups.flatMap(({ episodes }) =>
    episodes.flatMap(({ segments }) =>
      segments.flatMap(({ policyVersions, lossMask }) =>
        policyVersions.filter((_, at) => lossMask[at] === 1),
      ),
    ),
  );
  return [...new Set(sampled)];
}

test("a resumed run samples, and its tokens carry the version announced before it stopped", async () => {
  expect(await sampleAfter({})).toEqual(["7"]);
  expect(await sampleAfter({ policy: { gate: "open", version: 9 } })).toEqual(["9"]);
});
