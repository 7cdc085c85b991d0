import { createHash } from "node:crypto";
import type { Difference } from "../../src/environment/state/difference.ts";
import { describe, expect, test } from "vitest";
import { playActions } from "../../src/environment/play-actions.ts";
import { InvariantError, UsageError } from "../../src/errors.ts";
import { isLeaving, textOfLine, type UserLine } from "../../src/user/user.ts";
import { createScriptedUser } from "../../src/user/scripted-user.ts";
import { demonstrate } from "./demonstrate.ts";
import { drawTask } from "./draw-task.ts";
import type { WriteCall } from "./goal.ts";
import { createStorefront } from "./storefront.ts";
import { createStorefrontNovice } from "./storefront-novice.ts";
import { createStorefrontUser } from "./storefront-user.ts";
import { splitOf } from "./words.ts";

const { signal } = new AbortController();
const storefront = createStorefront();

/** Every name and number of a task that its split owns. */
function wordsOf(index: number, split: "train" | "test"): readonly string[] {
  const { records, customer, wrongPostcode, goals } = drawTask(split, index);
  return [
    ...records.customers.flatMap(({ name, postcode }) => [...name.split(" "), postcode]),
    ...records.products.flatMap(({ name, items }) => [name, ...Object.values(items)]),
    ...records.orders.flatMap(({ id, address }) => [id, address.split(" ")[1] ?? ""]),
    ...customer.name.split(" "),
    ...(wrongPostcode === undefined ? [] : [wrongPostcode]),
    ...goals.map(({ wish }) => (wish.type === "readdress" ? wish.address.split(" ")[1] : "")),
  ].filter((word): word is string => word !== "" && word !== undefined && word !== "sold out");
}

async function openSilent(index: number) {
  const task = storefront.task("test", index);
  const user = createScriptedUser({ lines: ["Hello.", { text: "Bye.", leaves: true }] }).open(
    task,
    {
      seed: 0,
    },
  );
  return { task, world: await storefront.open(task, { user, signal }) };
}

function toAction({ name, arguments: given }: WriteCall) {
  return { type: "call", name, arguments: new Map(Object.entries(given)) } as const;
}

/** The first test task that has a goal with an end of this type. */
function taskEnding(type: string): number {
  for (let index = 0; ; index++) {
    const { goals } = storefront.task("test", index).data;
    if (goals.length === 1 && goals[0]?.end.type === type) return index;
  }
}

describe("createStorefront()", () => {
  test("draws the same task from the same place, and another from another", () => {
    expect(storefront.task("test", 7)).toEqual(createStorefront().task("test", 7));
    const instructions = Array.from(
      { length: 200 },
      (_, i) => storefront.task("test", i).instruction,
    );
    expect(new Set(instructions).size).toBe(200);
  });

  test("draws the tasks that it has always drawn, to the byte", () => {
    const hashOf = (split: "train" | "test", size: number): string => {
      const hash = createHash("sha256");
      for (let index = 0; index < size; index++) {
        hash.update(JSON.stringify(storefront.task(split, index)));
      }
      return hash.digest("hex");
    };
    expect(hashOf("train", 1000)).toBe(
      "6030c89cb52f287b607376af3be3f8347d2e049035b348ef749956b04856e7aa",
    );
    expect(hashOf("test", 200)).toBe(
      "4aed0e643a85192959327c345a9c762fc6ff5b788e7478ff0d14d485c01536ec",
    );
  });

  test("keeps the words of the two splits apart", () => {
    for (const split of ["train", "test"] as const) {
      for (let index = 0; index < 200; index++) {
        for (const word of wordsOf(index, split)) expect(splitOf(word)).toBe(split);
      }
    }
  });

  test("refuses splits and places that do not exist", () => {
    expect(() => storefront.task("dev", 0)).toThrow(UsageError);
    expect(() => storefront.task("test", 200)).toThrow(UsageError);
    expect(() => storefront.task("toString", 0)).toThrow(UsageError);
  });

  test("has data that survives JSON", () => {
    const { data } = storefront.task("test", 4);
    expect(JSON.parse(JSON.stringify(data))).toEqual(data);
  });

  test("answers every call, and a mistake changes nothing", async () => {
    const { task, world } = await openSilent(taskEnding("done"));
    await world.begin({ signal });
    const calls: readonly (WriteCall & { observation: string })[] = [
      { name: "constructor", arguments: {}, observation: "Error: no tool constructor" },
      { name: "get_order", arguments: {}, observation: "Error: get_order needs order, a string" },
      { name: "get_order", arguments: { order: "X" }, observation: "Error: no order X" },
      {
        name: "find_customer",
        arguments: { name: "Nobody", postcode: "0" },
        observation: "Error: no such customer",
      },
    ];
    for (const { observation, ...call } of calls) {
      const step = await world.step(toAction(call), { signal });
      expect(step).toEqual({ observation, from: "tool", source: call.name, isError: true });
    }
    expect(await world.score({ signal })).toMatchObject({
      reward: 0,
      details: { level: task.data.level, stateMatches: false, missingOutputs: [] },
    });
  });

  test("lists the differences between the actual and the wanted shop", async () => {
    const { task, world } = await openSilent(taskEnding("done"));
    const [goal] = task.data.goals;
    if (goal?.end.type !== "done") throw new Error("expected a write");
    const { call } = goal.end;
    const missed = await world.score({ signal });
    const { difference } = missed.details as { difference: Difference };
    expect(difference.missingCalls.map(({ name }) => name)).toContain(call.name);
    expect(difference.state.map(({ record }) => record)).toContain(goal.orderId);
    expect(difference.extraCalls).toEqual([]);
    const wrong = { ...call, arguments: { ...call.arguments, order: "0" } };
    await world.step(toAction(wrong), { signal });
    await world.step(toAction(call), { signal });
    const { details } = await world.score({ signal });
    expect((details as { difference: Difference }).difference.extraCalls).toEqual([
      {
        name: call.name,
        argumentsText: expect.stringContaining('"order": "0"') as string,
        error: "Error: no order 0",
      },
    ]);
    expect((details as { difference: Difference }).difference.state).toEqual(
      difference.state.filter(({ record }) => record !== goal.orderId),
    );
  });

  test("repeats only the start of a policy's text", async () => {
    const index = taskEnding("done");
    const { task, world } = await openSilent(index);
    const long = "x".repeat(1_000_000);
    const [goal] = task.data.goals;
    const call = { name: "change_address", arguments: { order: long, address: long } };
    const step = await world.step(toAction(call), { signal });
    expect(step.observation).toBe(`Error: no order ${"x".repeat(1984)}…`);
    const pending = task.data.records.orders.find(({ status }) => status === "pending");
    const moved = { ...call, arguments: { order: pending?.id ?? "", address: long } };
    await world.step(toAction(moved), { signal });
    const { details } = await world.score({ signal });
    expect(goal).toBeDefined();
    expect(details).toMatchObject({
      difference: {
        extraCalls: [
          { name: "change_address", error: step.observation },
          { name: "change_address" },
        ],
        state: expect.arrayContaining([
          expect.objectContaining({ field: "address", got: `${"x".repeat(2000)}…` }),
        ]) as unknown,
      },
    });
    expect(JSON.stringify(details).length).toBeLessThan(20_000);
  });

  test("does nothing once its signal is aborted", async () => {
    const index = taskEnding("done");
    const { task, world } = await openSilent(index);
    const reason = new Error("cancelled");
    const aborted = { signal: AbortSignal.abort(reason) };
    const [goal] = task.data.goals;
    if (goal?.end.type !== "done") throw new Error("expected a write");
    await expect(world.begin(aborted)).rejects.toBe(reason);
    await expect(world.step(toAction(goal.end.call), aborted)).rejects.toBe(reason);
    await expect(world.score(aborted)).rejects.toBe(reason);
    expect((await world.score({ signal })).reward).toBe(0);
  });

  test("changes one episode's shop and no other's", async () => {
    const index = taskEnding("done");
    const { task, world } = await openSilent(index);
    const [goal] = task.data.goals;
    if (goal?.end.type !== "done") throw new Error("expected a write");
    const step = await world.step(toAction(goal.end.call), { signal });
    expect(step.isError).toBeUndefined();
    expect((await world.score({ signal })).reward).toBe(1);
    const other = await openSilent(index);
    expect((await other.world.score({ signal })).reward).toBe(0);
  });

  test("accepts the answer with any commas and case", async () => {
    const { task, world } = await openSilent(taskEnding("answered"));
    const [goal] = task.data.goals;
    if (goal?.end.type !== "answered") throw new Error("expected a question");
    await world.begin({ signal });
    const content = `It is ${goal.end.answer.toUpperCase().split("").join(",")}.`;
    await world.step({ type: "say", content }, { signal });
    expect((await world.score({ signal })).reward).toBe(1);
    await expect(world.step({ type: "say", content }, { signal })).rejects.toThrow(InvariantError);
  });
});

describe("the end of a conversation", () => {
  test("is when the user leaves, not when a line announces it", async () => {
    const task = storefront.task("test", 0);
    const lines = ["Hello.", "What does ###STOP### mean?", { text: "Ah.", leaves: true }] as const;
    const actions = [
      { type: "say", content: "Bye." } as const,
      { type: "say", content: "It ends." } as const,
    ];
    const user = createScriptedUser({ lines });
    const { steps } = await playActions(storefront, { task, user, actions }, { signal });
    expect(steps).toEqual([
      { observation: "What does ###STOP### mean?", from: "user", source: "user" },
      { observation: "Ah.", from: "user", source: "user", done: "user-left" },
    ]);
  });
});

describe("createStorefrontExpert()", () => {
  test("solves 500 tasks of each split that has them", async () => {
    for (const [split, count] of [
      ["train", 500],
      ["test", 200],
    ] as const) {
      for (let index = 0; index < count; index++) {
        const { reward, messages, isDone } = await demonstrate(storefront.task(split, index), {
          seed: index,
        });
        expect(reward, messages.map(({ content }) => content).join("\n")).toBe(1);
        expect(isDone).toBe(true);
      }
    }
  });

  test("solves most, not all, tasks when it slips, and always finishes", async () => {
    let sum = 0;
    for (let index = 0; index < 100; index++) {
      const task = storefront.task("train", index);
      const { reward, isDone } = await demonstrate(task, { seed: index, slipRate: 0.25 });
      expect(isDone).toBe(true);
      sum += reward;
    }
    expect(sum).toBeGreaterThan(40);
    expect(sum).toBeLessThan(95);
  });

  test("does the same again from the same seed", async () => {
    const task = storefront.task("train", 14);
    const first = await demonstrate(task, { seed: 3, slipRate: 0.3 });
    expect(await demonstrate(task, { seed: 3, slipRate: 0.3 })).toEqual(first);
  });
});

describe("createStorefrontNovice()", () => {
  async function lead(index: number, mistakeRate: number) {
    const agent = createStorefrontNovice({ seed: index, mistakeRate });
    return await demonstrate(storefront.task("train", index), { seed: index, agent });
  }

  test("solves every task without mistakes, and fewer with more mistakes", async () => {
    const solved = [];
    for (const mistakeRate of [0, 0.1, 0.3]) {
      let sum = 0;
      for (let index = 0; index < 100; index++) {
        const { reward, isDone, turns } = await lead(index, mistakeRate);
        expect(isDone).toBe(true);
        expect(turns.some(({ isSlip }) => isSlip)).toBe(false);
        sum += reward;
      }
      solved.push(sum);
    }
    const [never, seldom = 0, often = 0] = solved;
    expect(never).toBe(100);
    expect(seldom).toBeLessThan(95);
    expect(often).toBeLessThan(seldom);
    expect(often).toBeGreaterThan(30);
  });

  test("stops early, asks needless questions, misspells, and writes without consent", async () => {
    const texts = [];
    for (let index = 0; index < 60; index++) {
      const { turns } = await lead(index, 0.3);
      texts.push(...turns.map(({ text }) => text));
    }
    const all = texts.join("\n");
    expect(all).toContain("I cannot find that among your orders");
    expect(all).toContain("no change");
    expect(all).toContain("Which color would you like?");
    // An unsolicited write: none of the words before it in that conversation asks.
    const hasty = [];
    for (let index = 0; index < 60; index++) {
      const { turns } = await lead(index, 0.3);
      const first = turns.findIndex(({ text }) => /"name": "(cancel|change|return)_/.test(text));
      if (first > 0 && !turns.slice(0, first).some(({ text }) => /Shall I|want me to/.test(text))) {
        hasty.push(index);
      }
    }
    expect(hasty.length).toBeGreaterThan(0);
  });

  test("does the same again from the same seed", async () => {
    expect(await lead(14, 0.3)).toEqual(await lead(14, 0.3));
  });
});

describe("createStorefrontUser()", () => {
  async function converse(index: number, seed: number, agentLines: readonly string[]) {
    const session = createStorefrontUser().open(storefront.task("test", index), { seed });
    const lines: UserLine[] = [await session.begin({ signal })];
    for (const line of agentLines) lines.push(await session.reply(line, { signal }));
    return lines;
  }

  test("speaks for storefront's tasks only", () => {
    const task = { ...storefront.task("test", 0), environment: "tau-retail" };
    expect(() => createStorefrontUser().open(task, { seed: 0 })).toThrow(UsageError);
  });

  test("says the same with the same seed and varies with other seeds", async () => {
    const openings = new Set<string>();
    for (let seed = 0; seed < 20; seed++) {
      const [opening = ""] = await converse(1, seed, []);
      expect(await converse(1, seed, [])).toEqual([opening]);
      openings.add(textOfLine(opening));
    }
    expect(openings.size).toBeGreaterThan(10);
  });

  test("says who they are when asked", async () => {
    const { customer } = storefront.task("test", 1).data;
    const [, reply = ""] = await converse(1, 0, ["What is your name and postcode?"]);
    expect(textOfLine(reply)).toContain(customer.name);
    expect(textOfLine(reply)).toContain(customer.postcode);
  });

  test("never reveals facts that only the shop knows", async () => {
    for (let index = 0; index < 200; index++) {
      const task = storefront.task("test", index);
      const { messages } = await demonstrate(task, { seed: index });
      const spoken = messages.filter(({ role }) => role === "user").map(({ content }) => content);
      for (const { end, knowsOrderId, orderId } of task.data.goals) {
        const secret = end.type === "answered" ? end.answer : orderId;
        if (end.type !== "answered" && knowsOrderId) continue;
        expect(spoken.join("\n")).not.toContain(secret);
      }
    }
  });

  test("does not agree to another order than the one they meant", async () => {
    const index = taskEnding("done");
    const [goal] = storefront.task("test", index).data.goals;
    const [, reply] = await converse(index, 0, ["Shall I cancel order 0000?"]);
    expect(goal?.knowsOrderId).toBe(true);
    expect(reply).toMatch(/^No, /);
  });

  test("says no in the end if the goal is to change one's mind", async () => {
    const index = taskEnding("declined");
    const { messages } = await demonstrate(storefront.task("test", index), { seed: 5 });
    const calls = messages.flatMap((message) => (message.role === "tool" ? [message.name] : []));
    expect(calls).not.toContain("cancel_order");
    expect(messages.some(({ content }) => /^No,|^Rather not/.test(content))).toBe(true);
  });

  test("leaves an agent that makes no sense after three lines", async () => {
    const lines = await converse(3, 0, ["?", "?", "?"]);
    expect(lines.map(isLeaving)).toEqual([false, false, false, true]);
  });

  test("leaves an agent that asks the same thing over and over", async () => {
    const session = createStorefrontUser().open(storefront.task("test", 2), { seed: 0 });
    await session.begin({ signal });
    let count = 0;
    for (let said: UserLine = ""; !isLeaving(said); count++) {
      said = await session.reply("Your name and postcode?", { signal });
    }
    expect(count).toBeLessThanOrEqual(6);
  });
});
