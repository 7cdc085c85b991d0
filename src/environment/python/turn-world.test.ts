import { execFileSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { UsageError, describeError } from "../../errors.ts";
import type { AgentTurn } from "../environment.ts";
import { createPythonEnvironment } from "./create-python-environment.ts";

/** The reason why Python cannot be started here; `undefined` if it can. */
function obstacle(): string | undefined {
  try {
    execFileSync("python3", ["-c", "import sys; assert sys.version_info >= (3, 10)"], {
      stdio: "ignore",
    });
    return undefined;
  } catch {
    return "there is no python3 of 3.10 or newer";
  }
}

const why = obstacle();
if (why !== undefined) console.warn(`Skipping the tests of worlds in Python: ${why}`);

const { signal } = new AbortController();

/** Writes an environment that repeats what it gets. Returns it. */
async function createEcho(members = "") {
  const dir = await mkdtemp(path.join(tmpdir(), "turnwright-echo-"));
  onTestFinished(async () => await rm(dir, { recursive: true }));
  const file = path.join(dir, "echo_env.py");
  await writeFile(
    file,
    `import json, os
from turnwright.environments import BadEnvironment
from turnwright.host.hosted import Hosted

class Episode:
    def turn(self, message, **more):
        return {"messages": [{"role": "user", "content": json.dumps([message, more])}]}
    async def score(self, outcome):
        return {"reward": 1, "details": {"calls": outcome["calls"]}}
    def close(self):
        pass

class Echo(Hosted):
    def facts(self):
        source = str(os.environ.get("PYTHONDONTWRITEBYTECODE"))
        return {"name": "echo", "source": source, "policy": "", "tools": [], "repeatable": False, "user": "none"}
    async def splits(self):
        return {"test": [{"instruction": "Echo."}]}
    async def open(self, task, context):
        return Episode(), {"messages": [{"role": "user", "content": "Hello."}]}

def create_environment():
${members === "" ? "    return Echo()" : members}
`,
  );
  const environment = await createPythonEnvironment({ environment: file, python: "python3" });
  onTestFinished(async () => await environment[Symbol.asyncDispose]());
  return environment;
}

async function openEcho() {
  const environment = await createEcho();
  const task = environment.task("test", 0);
  const user = environment.user.open(task, { seed: 0 });
  return await environment.open(task, { user, signal });
}

test.skipIf(why !== undefined)(
  "a turn is handed over whole, with its finish and its usage",
  async () => {
    await using world = await openEcho();
    expect(await world.begin({ signal })).toBe("Hello.");
    const action = { type: "say", content: "Hi." } as const;
    const turn: AgentTurn = {
      message: { role: "assistant", content: "Hi.", reasoning: "They greet." },
      finish: "length",
      usage: { promptTokens: 7, sampledTokens: 3 },
      actions: [{ callId: "a", action }],
    };
    const step = await world.step(action, { signal, turn });
    expect(JSON.parse(step.observation)).toEqual([
      { role: "assistant", content: "Hi.", reasoning_content: "They greet." },
      { finish: "length", usage: { prompt_tokens: 7, completion_tokens: 3 } },
    ]);
  },
);

test.skipIf(why !== undefined)(
  "a call is answered with an error if the model has no tools",
  async () => {
    await using world = await openEcho();
    const step = await world.step({ type: "call", name: "book", arguments: new Map() } as never, {
      signal,
    });
    expect(step).toEqual({
      observation: "Error: no tool book, there are none",
      from: "tool",
      source: "book",
      isError: true,
    });
    const { details } = await world.score({ signal });
    expect(details).toEqual({ calls: [{ name: "book", arguments: {}, isError: true }] });
  },
);

test.skipIf(why !== undefined)(
  "Python writes compiled files, also if this process must not",
  async () => {
    const before = process.env["PYTHONDONTWRITEBYTECODE"];
    process.env["PYTHONDONTWRITEBYTECODE"] = "1";
    onTestFinished(() => {
      if (before === undefined) delete process.env["PYTHONDONTWRITEBYTECODE"];
      else process.env["PYTHONDONTWRITEBYTECODE"] = before;
    });
    expect((await createEcho()).source).toBe("None");
  },
);

test.skipIf(why !== undefined)("a refusal is one UsageError with its reason alone", async () => {
  const error = await createEcho(
    '    raise BadEnvironment("echo has 2 agents (A, B): use the gateway")',
  ).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(UsageError);
  expect(describeError(error)).toMatch(
    /^Cannot load environment \S+echo_env\.py: echo has 2 agents \(A, B\): use the gateway$/,
  );
});
