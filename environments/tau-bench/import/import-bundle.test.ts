import { mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { sharedData } from "../../../src/testing/shared-data.fixture.ts";
import { agentSource, smallTauCheckout, writeFiles } from "./small-tau-checkout.fixture.ts";
import { checkBundle } from "./bundle-manifest.ts";
import { importTauBench } from "./import-bundle.ts";
import { pinnedSource } from "./pinned-source.ts";

let dir = "";
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-import-"));
});
afterEach(async () => {
  await rm(dir, { recursive: true });
});

async function writeCheckout(changes: Readonly<Record<string, string>> = {}): Promise<string> {
  const from = path.join(dir, "checkout");
  await writeFiles(from, { ...smallTauCheckout, ...changes });
  return from;
}

const bundled = async (name: string) => await readFile(path.join(dir, "bundle", name), "utf8");

describe("importTauBench()", () => {
  test("writes the content of the Python sources, with a manifest", async () => {
    const from = await writeCheckout();
    const manifest = await importTauBench({ from, to: path.join(dir, "bundle") });
    expect(await bundled("retail/orders.json")).toBe('{"1": {"n": 1.0}}');
    expect(await bundled("retail/wiki.md")).toBe("# Policy é\n");
    expect(JSON.parse(await bundled("airline/rules.json"))).toEqual(["Be kind."]);
    expect(JSON.parse(await bundled("airline/terminate_tools.json"))).toEqual(["leave"]);
    expect(await bundled("retail/tasks_dev.json")).toContain('"amount": -1.0,\n     "count": 1\n');
    expect(JSON.parse(await bundled("airline/tasks_test.json"))).toEqual([
      {
        annotator: "0",
        user_id: "u_1",
        instruction: 'Your name is U. Cancel "#1".',
        actions: [{ name: "cancel", kwargs: { id: "#1", amount: -1, count: 1 } }],
        outputs: ["10"],
      },
    ]);
    expect(JSON.parse(await bundled("retail/tools.json"))).toEqual([
      { type: "function", function: { name: "cancel", description: "a b" } },
    ]);
    const opening =
      'WIKI é\n#Tools\n[{"type": "function", "function": {"name": "t", "description": "d \\u00e9", "parameters": {}}}]';
    expect(JSON.parse(await bundled("agent-prompts.json"))).toEqual({
      react: `${opening}\nThought, then {"name": respond}\n`,
      act: `${opening}\n{"content": 1}\n`,
    });
    expect(JSON.parse(await bundled("user-simulator-prompts.json"))).toEqual({
      llm: { none: "Play.\nStop.", with: "Play.\n\nInstruction: DO THIS\n\nStop." },
      react: { none: "Think.", with: "Think.\nWant: DO THIS\n" },
      verify: "Good? {transcript} {response}",
      reflect: "Better! {transcript} {response}",
    });
    expect(manifest).toMatchObject({
      commit: null,
      license: "MIT",
      source: pinnedSource.repository,
    });
    expect(Object.keys(manifest.inputs)).toHaveLength(Object.keys(smallTauCheckout).length);
    expect(await checkBundle(path.join(dir, "bundle"))).toEqual(manifest);
  });

  test("names the commit of a clone", async () => {
    const commit = "0123456789abcdef0123456789abcdef01234567";
    const from = await writeCheckout({
      ".git/HEAD": "ref: refs/heads/main\n",
      ".git/packed-refs": `# pack-refs\n${commit} refs/heads/main\n`,
    });
    const manifest = await importTauBench({ from, to: path.join(dir, "bundle") });
    expect(manifest.commit).toBe(commit);
  });

  test.each([
    [
      { "tau_bench/envs/retail/tasks_dev.py": 'X = 1\nTASKS = [\n  Task(a=f"{X}"),\n]\n' },
      "tasks_dev.py:3: an f-string, expected a literal",
    ],
    [
      { "tau_bench/envs/retail/tasks_dev.py": "TASKS = [\n  Task(\n    user_id=USER),\n]\n" },
      "tasks_dev.py:3: the name USER with an unknown value",
    ],
    [
      { "tau_bench/envs/retail/tasks_dev.py": '\nTASKS = [Task(user_id="a")]\n' },
      "tasks_dev.py:2: Task() without instruction, expected instruction=…",
    ],
    [
      {
        "tau_bench/envs/retail/tasks_dev.py":
          'TASKS = [Task(user_id="a", instruction="b", outputs=[], actions=[\nAction(name=1, kwargs={})])]\n',
      },
      "tasks_dev.py:2: Action() with another name, expected name to be a text",
    ],
    [
      { "tau_bench/envs/retail/tasks_dev.py": "DATA = []\n" },
      'tasks_dev.py: expected "TASKS_DEV" or "TASKS = [Task(…)]"',
    ],
    [
      { "tau_bench/envs/airline/tools/__init__.py": "ALL_TOOLS = [\n  Book]\n" },
      "__init__.py:2: Book, expected a class that `from .module import …` brings in",
    ],
    [
      {
        "tau_bench/envs/airline/tools/cancel.py":
          "class Cancel:\n  def get_info():\n    x = {}\n    return x\n",
      },
      "cancel.py:3: another body, expected one `return` of a literal",
    ],
    [{ "tau_bench/envs/airline/data/users.json": "[1, 2" }, "users.json: Expecting ',' delimiter"],
    [{ "tau_bench/envs/airline/data/users.json": "[]" }, "users.json: expected an object"],
    [
      {
        "tau_bench/agents/chat_react_agent.py": agentSource.replace(
          "{RESPOND_ACTION_FIELD_NAME}",
          "{secret()}",
        ),
      },
      "{secret()} in an f-string, expected one of the names",
    ],
  ])("refuses unreadable input, with file and line (%#)", async (changes, message) => {
    const from = await writeCheckout(changes);
    await expect(importTauBench({ from, to: path.join(dir, "bundle") })).rejects.toThrow(message);
    expect(await readdir(dir)).toEqual(["checkout"]);
  });

  test("names the missing file of a checkout", async () => {
    await expect(importTauBench({ from: dir, to: path.join(dir, "bundle") })).rejects.toThrow(
      "tau_bench/envs/retail/data/orders.json: no such file, expected a checkout",
    );
  });

  test("replaces a bundle, and no other folder", async () => {
    const from = await writeCheckout();
    const to = path.join(dir, "bundle");
    await importTauBench({ from, to });
    await writeFile(path.join(to, "left-over.txt"), "");
    await importTauBench({ from, to });
    expect(await readdir(to)).not.toContain("left-over.txt");
    await expect(importTauBench({ from, to: from })).rejects.toThrow("it contains other files");
  });
});

describe("checkBundle()", () => {
  test("names the file that was changed or is gone", async () => {
    const to = path.join(dir, "bundle");
    await importTauBench({ from: await writeCheckout(), to });
    await writeFile(path.join(to, "retail", "rules.json"), "[]");
    await expect(checkBundle(to)).rejects.toThrow("retail/rules.json: its SHA-256 is");
    const retail = checkBundle(to, { under: "retail/" });
    await expect(retail).rejects.toThrow("retail/rules.json: its SHA-256 is");
    expect((await checkBundle(to, { under: "airline/" }))?.benchmark).toBe("tau-bench");
    await rm(path.join(to, "retail", "rules.json"));
    await expect(checkBundle(to)).rejects.toThrow("retail/rules.json, which bundle.json names");
  });

  test("names the manifest's field that is broken", async () => {
    await writeFile(path.join(dir, "bundle.json"), '{"format": 2}');
    await expect(checkBundle(dir)).rejects.toThrow("bundle.json: format: ");
    await writeFile(path.join(dir, "bundle.json"), "{");
    await expect(checkBundle(dir)).rejects.toThrow(`Cannot read ${path.join(dir, "bundle.json")}`);
  });

  test("passes a folder without a manifest", async () => {
    expect(await checkBundle(dir)).toBeUndefined();
  });
});

/** A real checkout cannot be part of this repository. */
const realCheckout = process.env["TURNWRIGHT_TAU_BENCH_CHECKOUT"];
if (realCheckout === undefined) {
  console.warn("Skipping the import of a real checkout: set TURNWRIGHT_TAU_BENCH_CHECKOUT");
}
const shared = sharedData();

describe.skipIf(realCheckout === undefined || shared === null)("a real checkout", () => {
  test("gives the recorded bundle, file for file", async () => {
    const to = path.join(dir, "bundle");
    const manifest = await importTauBench({ from: realCheckout ?? "", to });
    expect(manifest.commit).toBe(pinnedSource.commit);
    const wanted = path.join(shared ?? "", "data", "tau-bench");
    const files = (await readdir(wanted, { recursive: true })).filter(
      (file) => /\.(?:jsonl?|md)$/.test(file) && !file.startsWith("golden"),
    );
    expect(files.length).toBeGreaterThan(20);
    for (const file of files) {
      const [got, want] = [await bundled(file), await readFile(path.join(wanted, file), "utf8")];
      if (!file.endsWith(".json")) expect(got === want, file).toBe(true);
      else if (file.startsWith("user-")) expect(JSON.parse(got)).toMatchObject(JSON.parse(want));
      else expect(JSON.parse(got), file).toEqual(JSON.parse(want));
    }
  });
});
