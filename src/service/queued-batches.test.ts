import path from "node:path";
import { expect, test } from "vitest";
import { withResolvers } from "../async/with-resolvers.ts";
import { lampEngine, QueueBench, until } from "../queue/queue.fixture.ts";
import { missingStore } from "../queue/store/store-server.fixture.ts";
import { caller, openLamps, twoLamps } from "./lamp-service.fixture.ts";
import type { RemotePlayers } from "./rollout-service-options.ts";

test.skipIf(missingStore !== undefined)(
  "workers play batches, with the service's versions, pauses and deadlines",
  async () => {
    await using bench = await QueueBench.open();
    const held = withResolvers();
    const begun: string[] = [];
    await bench.worker({
      engine: lampEngine(async ({ sessionId }) => {
        begun.push(sessionId);
        if (sessionId.startsWith("lamp/test/9")) await held.promise;
      }),
    });
    const handOut = await bench.handOut({ isMarked: true });
    const openRemote = async (): Promise<RemotePlayers> => ({
      policy: handOut.policy,
      player: (scope) => handOut.player(scope),
      [Symbol.asyncDispose]: async () => await handOut[Symbol.asyncDispose](),
    });
    // The service itself samples nothing if batches are handed out.
    const engine = lampEngine(() => new Error("the service samples by itself"));
    const options = { engine, openRemote };
    await using service = await openLamps(path.join(bench.dir, "service"), options);
    const call = caller(service);
    await call("POST", "/v1/policy", { version: 7 });
    await call("POST", "/v1/pause");
    await call("POST", "/v1/batches", twoLamps);
    await until(() => service.health.batches === 1);
    expect((await call("GET", "/v1/health")).body).toMatchObject({ state: "paused" });
    expect(begun).toEqual([]);
    await call("POST", "/v1/resume");
    const { body } = await call("GET", "/v1/groups?batch=b1");
    const lines = body as readonly string[];
    expect(lines).toHaveLength(3);
    expect(lines.join("\n")).toContain('"7"');
    expect(begun).toHaveLength(8);
    // The same rollouts of another batch are other ones.
    await call("POST", "/v1/batches", { ...twoLamps, key: "step-2" });
    expect((await call("GET", "/v1/groups?batch=b2")).body).toHaveLength(3);
    expect(begun).toHaveLength(16);
    const late = { ...twoLamps, key: "late", tasks: [9], deadlineS: 1 };
    await call("POST", "/v1/batches", late);
    const ended = (await call("GET", "/v1/groups?batch=b3")).body as readonly string[];
    expect(ended[0]).toContain('"outcome":"aborted"');
    held.resolve();
  },
);
