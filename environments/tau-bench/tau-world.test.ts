import { afterAll, describe, expect, test } from "vitest";
import { InvariantError, UsageError, isOwnBug } from "../../src/errors.ts";
import type { Action, World } from "../../src/environment/environment.ts";
import type { PyValue } from "../../packages/python-values/src/value.ts";
import { createScriptedUser } from "../../src/user/scripted-user.ts";
import type { UserLine, UserSession } from "../../src/user/user.ts";
import { openTinyTau } from "./tiny-tau-bundle.fixture.ts";
import type { TauEnvironment } from "./tau-environment.ts";

const signal = new AbortController().signal;
const tau = await openTinyTau();
const { folder, retail, airline } = tau;
afterAll(() => tau[Symbol.asyncDispose]());

interface Opening {
  readonly environment?: TauEnvironment;
  readonly index?: number;
  readonly lines?: readonly UserLine[];
}

async function begin({
  environment = retail,
  index = 0,
  lines = [],
}: Opening = {}): Promise<World> {
  const task = environment.task("test", index);
  const user = createScriptedUser({ lines: ["Hi", ...lines] }).open(task, { seed: 0 });
  const world = await environment.open(task, { user, signal });
  await world.begin({ signal });
  return world;
}

function call(name: string, given: Readonly<Record<string, PyValue>> = {}): Action {
  return { type: "call", name, arguments: new Map(Object.entries(given)) };
}

async function thrownBy(work: Promise<unknown>): Promise<unknown> {
  return await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
}

const cancel = call("cancel_pending_order", { order_id: "#W1", reason: "no longer needed" });

describe("a τ-bench environment", () => {
  test("describes its domain", () => {
    expect([retail.name, airline.name]).toEqual(["tau-retail", "tau-airline"]);
    expect(retail.splits).toEqual({ test: 2, train: 0, dev: 0 });
    expect(airline.splits).toEqual({ test: 1 });
    expect(retail.policyText).toBe("# Shop policy\n");
    expect(retail.tools.map(({ name }) => name)).toContain("calculate");
    expect(retail.source).toBe(`sierra-research/tau-bench (MIT), retail, from ${folder}`);
  });

  test("refuses splits and indices that it does not have, and other domains' tasks", async () => {
    expect(() => retail.task("validation", 0)).toThrow(
      'Cannot find split "validation" of tau-retail: expected one of test, train, dev',
    );
    expect(() => retail.task("test", 2)).toThrow(
      "Cannot find task 2 of tau-retail/test: expected 0 to 1",
    );
    expect(() => retail.task("train", 0)).toThrow(
      "Cannot find task 0 of tau-retail/train: the split is empty",
    );
    expect(() => retail.task("constructor", 0)).toThrow(UsageError);
    const task = airline.task("test", 0);
    const user = createScriptedUser({ lines: [] }).open(task, { seed: 0 });
    await expect(retail.open(task, { user, signal })).rejects.toThrow(
      "Cannot open task tau-airline/test/0: it belongs to tau-airline, expected one of tau-retail",
    );
  });
});

describe("a τ-bench episode", () => {
  test("ends if the user's reply contains the stop marker, and rewards the wanted state", async () => {
    await using world = await begin({ lines: ["ok", "Thanks! ###STOP### Bye"] });
    const first = await world.step({ type: "say", content: "Hello" }, { signal });
    expect(first).toEqual({ observation: "ok", from: "user", source: "user" });
    const cancelled = await world.step(cancel, { signal });
    expect(cancelled).toMatchObject({ from: "tool", source: "cancel_pending_order" });
    expect(cancelled.observation).toContain('"status": "cancelled"');
    expect(cancelled.isError).toBeUndefined();
    const last = await world.step({ type: "say", content: "Done" }, { signal });
    expect(last.done).toBe("user-left");
    const score = await world.score({ signal });
    expect(score).toMatchObject({
      reward: 1,
      details: {
        reward: 1,
        info: { r_actions: 1, gt_data_hash: expect.stringMatching(/^[0-9a-f]{64}$/) },
        actions: [
          { name: "get_order_details", kwargs: expect.objectContaining({ order_id: "#W1" }) },
          {
            name: "cancel_pending_order",
            kwargs: expect.objectContaining({ order_id: "#W1", reason: "no longer needed" }),
          },
        ],
      },
    });
    expect(JSON.parse(JSON.stringify(score))).toBeTruthy();
  });

  test("ends if the user leaves without the stop marker", async () => {
    await using world = await begin({ lines: [{ text: "Bye.", leaves: true }] });
    expect(await world.step({ type: "say", content: "Done" }, { signal })).toEqual({
      observation: "Bye.",
      from: "user",
      source: "user",
      done: "user-left",
    });
  });

  test("continues if the stop marker is in the opening line or spelled differently", async () => {
    const task = retail.task("test", 0);
    const lines = ["###STOP###", "###stop###", "###STOP###"];
    const user = createScriptedUser({ lines }).open(task, { seed: 0 });
    await using world = await retail.open(task, { user, signal });
    expect(await world.begin({ signal })).toBe("###STOP###");
    expect((await world.step({ type: "say", content: "a" }, { signal })).done).toBeUndefined();
    expect((await world.step({ type: "say", content: "b" }, { signal })).done).toBe("user-left");
    expect((await world.score({ signal })).reward).toBe(0);
  });

  test("ends with a transfer to a person even if that call failed", async () => {
    await using world = await begin();
    const step = await world.step(call("transfer_to_human_agents"), { signal });
    expect(step).toEqual({
      observation:
        "Error: TransferToHumanAgents.invoke() missing 1 required positional argument: 'summary'",
      from: "tool",
      source: "transfer_to_human_agents",
      isError: true,
      done: "terminal-tool",
    });
  });

  test("shows the agent its mistakes", async () => {
    await using world = await begin({ lines: ["ok"] });
    const steps = [
      [call("fly_away"), "Unknown action fly_away", "fly_away"],
      [
        call("get_order_details"),
        "Error: GetOrderDetails.invoke() missing 1 required positional argument: 'order_id'",
        "get_order_details",
      ],
      [
        call("get_order_details", { order_id: "#W9" }),
        "Error: order not found",
        "get_order_details",
      ],
      [
        call("get_order_details", { order_id: [] }),
        "Error: unhashable type: 'list'",
        "get_order_details",
      ],
      [call("respond", { text: "x" }), "Error: 'content'", "respond"],
    ] as const;
    for (const [action, observation, source] of steps) {
      expect(await world.step(action, { signal })).toEqual({
        observation,
        from: "tool",
        source,
        isError: true,
      });
    }
  });

  test("takes a call named `respond` for words to the user", async () => {
    await using world = await begin({ lines: ["ok"] });
    expect(await world.step(call("respond", { content: "Hello", extra: 1n }), { signal })).toEqual({
      observation: "ok",
      from: "user",
      source: "user",
    });
  });

  test("shows an error if the original's tool returns `None`, and continues", async () => {
    await using world = await begin({ environment: airline });
    const certificate = call("send_certificate", { user_id: "cy_fox_3", amount: 50.5 });
    for (const id of [3221322, 3221323, 3221324]) {
      expect((await world.step(certificate, { signal })).observation).toBe(
        `Certificate certificate_${id} added to user cy_fox_3 with amount 50.5.`,
      );
    }
    expect(await world.step(certificate, { signal })).toMatchObject({
      observation: "Error: send_certificate returned None",
      isError: true,
    });
  });

  test("scores 0 if it was not done, and says so", async () => {
    await using world = await begin();
    await world.step(cancel, { signal });
    expect(await world.score({ signal })).toMatchObject({
      reward: 0,
      details: {
        done: false,
        why: "τ-bench rewards only episodes that the user or a terminating tool has ended",
      },
    });
  });

  test("searches outputs in the agent's words, ignoring commas and case", async () => {
    await using world = await begin({ index: 1, lines: ["and?", "###STOP###"] });
    await world.step({ type: "say", content: "It is a RUG." }, { signal });
    await world.step({ type: "say", content: "It cost $1,080.00" }, { signal });
    expect(await world.score({ signal })).toMatchObject({
      reward: 1,
      details: {
        reward: 1,
        info: { r_outputs: 1, outputs: { "1080": true, Rug: true } },
        actions: [{ name: "transfer_to_human_agents", kwargs: expect.anything() }],
      },
    });
  });

  test("ignores an output that was only thought, and words that are not text", async () => {
    await using thinker = await begin({ index: 1, lines: ["###STOP###"] });
    await thinker.step(call("think", { thought: "1080 Rug" }), { signal });
    await thinker.step({ type: "say", content: "Rug" }, { signal });
    expect((await thinker.score({ signal })).details["info"]).toEqual({
      r_outputs: 0,
      outputs: { "1080": false, Rug: true },
    });
    await using mumbler = await begin({ index: 1, lines: ["###STOP###"] });
    await mumbler.step(call("respond", { content: null }), { signal });
    expect(await mumbler.score({ signal })).toEqual({
      reward: 0,
      details: {
        error: "'NoneType' object has no attribute 'lower'",
        exception: "AttributeError",
      },
    });
  });

  test("refuses to be stepped, started or scored out of order", async () => {
    await using world = await begin({ lines: ["###STOP###"] });
    const misuses = [await thrownBy(world.begin({ signal }))];
    await world.step({ type: "say", content: "x" }, { signal });
    misuses.push(await thrownBy(world.step(cancel, { signal })));
    await world.score({ signal });
    misuses.push(await thrownBy(world.score({ signal })));
    expect(misuses).toEqual([
      new InvariantError("Cannot begin: the episode has begun already"),
      new InvariantError("Cannot step: the episode is done, expected one that is running"),
      new InvariantError("Cannot score: the episode is scored already"),
    ]);
    // A caller's misuse is the caller's fault, and ends no run.
    expect(misuses.map(isOwnBug)).toEqual([false, false, false]);
  });

  test("does nothing once its signal is aborted", async () => {
    const reason = new Error("cancelled");
    const aborted = { signal: AbortSignal.abort(reason) };
    await using world = await begin({ lines: ["###STOP###"] });
    await expect(world.step(cancel, aborted)).rejects.toBe(reason);
    await world.step({ type: "say", content: "x" }, { signal });
    await expect(world.score(aborted)).rejects.toBe(reason);
    expect((await world.score({ signal })).reward).toBe(0);
  });

  test("stops waiting for a user who never answers when the signal aborts", async () => {
    const task = retail.task("test", 0);
    const user: UserSession = {
      begin: async () => "Hi",
      reply: (_said, { signal: given }) =>
        new Promise((_resolve, reject) => {
          given.addEventListener("abort", () => reject(given.reason as Error));
        }),
      usage: () => ({ callCount: 0, inputTokenCount: 0, outputTokenCount: 0 }),
    };
    await using world = await retail.open(task, { user, signal });
    await world.begin({ signal });
    const abort = new AbortController();
    const step = world.step({ type: "say", content: "x" }, { signal: abort.signal });
    const reason = new Error("over");
    abort.abort(reason);
    await expect(step).rejects.toBe(reason);
  });

  test("does not see other episodes' writes", async () => {
    const [mine, theirs] = [
      await begin({ lines: ["###STOP###"] }),
      await begin({ lines: ["###STOP###"] }),
    ];
    await mine.step(cancel, { signal });
    const details = call("get_order_details", { order_id: "#W1" });
    expect((await theirs.step(details, { signal })).observation).toContain('"status": "pending"');
    expect((await mine.step(details, { signal })).observation).toContain('"status": "cancelled"');
  });

  test("passes the user's usage and failures on", async () => {
    await using world = await begin();
    expect(world.userUsage()).toEqual({ callCount: 0, inputTokenCount: 0, outputTokenCount: 0 });
    await expect(world.step({ type: "say", content: "x" }, { signal })).rejects.toMatchObject({
      code: "user/script-exhausted",
    });
  });
});
