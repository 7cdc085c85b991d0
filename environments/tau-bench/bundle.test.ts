import { rm } from "node:fs/promises";
import path from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { writeTinyTauBundle } from "./tiny-tau-bundle.fixture.ts";
import { UsageError } from "../../src/errors.ts";
import type { PyValue } from "../../packages/python-values/src/value.ts";
import { loadTauBenchBundle } from "./bundle.ts";

const folders: string[] = [];

afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true });
});

async function write(changes?: Readonly<Record<string, string>>): Promise<string> {
  const folder = await writeTinyTauBundle(changes);
  folders.push(folder);
  return folder;
}

describe("loadTauBenchBundle()", () => {
  test("reads both domains, with integers and floats kept apart", async () => {
    const bundle = await loadTauBenchBundle(await write());
    expect(Object.keys(bundle.retail.tables)).toEqual(["orders", "products", "users"]);
    expect(Object.keys(bundle.airline.tables)).toEqual(["flights", "reservations", "users"]);
    const user = bundle.retail.tables["users"]?.get("bo_ray_2");
    const methods = user?.get("payment_methods") as ReadonlyMap<string, PyValue>;
    expect((methods.get("gift_card_2") as ReadonlyMap<string, PyValue>).get("balance")).toBe(247);
    const other = bundle.retail.tables["users"]?.get("ann_lee_1")?.get("payment_methods");
    const card = (other as ReadonlyMap<string, PyValue>).get("gift_card_1");
    expect((card as ReadonlyMap<string, PyValue>).get("balance")).toBe(5n);
    expect(bundle.retail.tools).toHaveLength(16);
    expect(bundle.airline.tools).toHaveLength(14);
    expect(bundle.retail.wiki).toBe("# Shop policy\n");
    expect([...bundle.airline.terminatingTools]).toEqual(["transfer_to_human_agents"]);
    expect(bundle.retail.tasks["test"]?.at(1)).toEqual({
      id: "tau-retail/test/1",
      environment: "tau-retail",
      split: "test",
      index: 1,
      instruction: "You are Bo Ray. Ask what the rug cost.",
      data: {
        userId: "bo_ray_2",
        actions: [{ name: "transfer_to_human_agents", kwargs: new Map([["summary", "done"]]) }],
        outputs: ["1080", "Rug"],
      },
    });
  });

  test("reads of a bundle only the domain that is asked for", async () => {
    const folder = await write({ "airline/flights.json": "[" });
    const bundle = await loadTauBenchBundle(folder, { only: ["retail"] });
    expect(Object.keys(bundle)).toEqual(["directory", "retail"]);
    expect(Object.keys(bundle.retail.tables)).toEqual(["orders", "products", "users"]);
    await expect(loadTauBenchBundle(folder)).rejects.toThrow("airline/flights.json");
  });

  test("reads a folder once and freezes its data", async () => {
    const folder = await write();
    const bundle = await loadTauBenchBundle(folder);
    const again = await loadTauBenchBundle(`${folder}/.`);
    expect(again.retail).toBe(bundle.retail);
    expect(again.airline).toBe(bundle.airline);
    const order = bundle.retail.tables["orders"]?.get("#W1") as Map<string, PyValue>;
    expect(() => order.set("status", "x")).toThrow("it is frozen");
  });

  test.each([
    ["retail/orders.json", "[]", "expected an object"],
    ["retail/orders.json", '{"#W1": 5}', '"#W1" is not an object'],
    ["retail/users.json", "{", "Expecting property name enclosed in double quotes"],
    ["airline/tasks_test.json", "{}", "expected a list of tasks"],
    ["airline/tasks_test.json", "[{}", "Expecting ',' delimiter"],
    ["airline/tasks_test.json", "[{},]", "Expecting value"],
    ["retail/rules.json", "[5]", "expected a list of strings"],
    ["retail/tools.json", "[{}]", 'expected {"type": "function"'],
    [
      "airline/tools.json",
      '[{"type": "function", "function": {"name": "fly"}}]',
      'there is no tool "fly" in τ-bench airline',
    ],
  ])("names %s if it contains %s", async (file, text, problem) => {
    const folder = await write({ [file]: text });
    const error = await loadTauBenchBundle(folder).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(UsageError);
    expect((error as Error).message).toContain(`Cannot read ${path.join(folder, file)}`);
    expect((error as Error).message).toContain(problem);
  });

  test.each([
    ["5", "[1]: expected an object"],
    ['{"user_id": "a", "instruction": 5}', "[1].instruction: expected a string"],
    [
      '{"user_id": "a", "instruction": "", "actions": [{"name": "x"}], "outputs": []}',
      "[1].actions[0].kwargs: expected an object",
    ],
    [
      '{"user_id": "a", "instruction": "", "actions": [], "outputs": [5]}',
      "[1].outputs[0]: expected a string",
    ],
  ])(
    "names the task that is %s when it is asked for, and gives the others",
    async (text, problem) => {
      const sound = '{"user_id": "b", "instruction": "]", "actions": [], "outputs": ["[\\"", ""]}';
      const folder = await write({ "retail/tasks_dev.json": ` [${sound} , ${text},${sound}]\n` });
      const { retail } = await loadTauBenchBundle(folder);
      const tasks = retail.tasks["dev"]!;
      expect(tasks.length).toBe(3);
      const file = path.join(folder, "retail/tasks_dev.json");
      expect(() => tasks.at(1)).toThrow(new UsageError(`Cannot read ${file}: ${problem}`));
      const data = { userId: "b", actions: [], outputs: ['["', ""] };
      const place = { environment: "tau-retail", split: "dev", instruction: "]" };
      expect(tasks.at(2)).toEqual({ ...place, id: "tau-retail/dev/2", index: 2, data });
      expect(tasks.at(2)).toBe(tasks.at(2));
      for (const index of [3, -1, 0.5]) expect(tasks.at(index)).toBeUndefined();
    },
  );

  test("reads JSON that only Python accepts", async () => {
    const task =
      '{"user_id": "b", "instruction": "", "actions": [{"name": "x", "kwargs": {"n": NaN}}], "outputs": []}';
    const folder = await write({ "retail/tasks_dev.json": `[${task}]` });
    const { retail } = await loadTauBenchBundle(folder);
    expect(retail.tasks["dev"]?.at(0)?.data.actions[0]?.kwargs.get("n")).toBe(Number.NaN);
  });

  test("names the file that a folder lacks, and tries again when asked again", async () => {
    const folder = path.join(await write(), "nowhere");
    for (let round = 0; round < 2; round++) {
      await expect(loadTauBenchBundle(folder)).rejects.toThrow(
        `Cannot read ${folder}/retail/orders.json: expected a τ-bench bundle in the folder`,
      );
    }
  });
});
