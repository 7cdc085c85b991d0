import { rm } from "node:fs/promises";
import path from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { writeTinyTauBundle } from "./tiny-tau-bundle.fixture.ts";
import { UsageError } from "../../src/errors.ts";
import type { PyValue } from "../../src/python/value.ts";
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
    expect(bundle.retail.tasks["test"]?.[1]).toEqual({
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

  test("reads a folder once and freezes what it read", async () => {
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
    ["retail/orders.json", '{"#W1": 5}', '"#W1" is no object'],
    ["retail/users.json", "{", "Expecting property name enclosed in double quotes"],
    ["airline/tasks_test.json", "{}", "expected a list of tasks"],
    ["airline/tasks_test.json", "[5]", "[0]: expected an object"],
    ["airline/tasks_test.json", '[{"user_id": "a", "instruction": 5}]', "[0].instruction"],
    [
      "retail/tasks_dev.json",
      '[{"user_id": "a", "instruction": "", "actions": [{"name": "x"}], "outputs": []}]',
      "[0].actions[0].kwargs: expected an object",
    ],
    [
      "retail/tasks_dev.json",
      '[{"user_id": "a", "instruction": "", "actions": [], "outputs": [5]}]',
      "[0].outputs[0]: expected a string",
    ],
    ["retail/rules.json", "[5]", "expected a list of strings"],
    ["retail/tools.json", "[{}]", 'expected {"type": "function"'],
    [
      "airline/tools.json",
      '[{"type": "function", "function": {"name": "fly"}}]',
      'there is no tool "fly" in τ-bench airline',
    ],
  ])("names %s where it holds %s", async (file, text, problem) => {
    const folder = await write({ [file]: text });
    const error = await loadTauBenchBundle(folder).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(UsageError);
    expect((error as Error).message).toContain(`Cannot read ${path.join(folder, file)}`);
    expect((error as Error).message).toContain(problem);
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
