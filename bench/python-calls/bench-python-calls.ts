import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { createPythonEnvironment } from "../../src/environment/python/create-python-environment.ts";
import { packageFile } from "../../src/files/package-file.ts";
import type { BenchFigure } from "../bench-figure.ts";
import { cpuMs, median } from "../cpu-time.ts";

const callCount = 5_000;
const rounds = 5;
const text = "x".repeat(200);

/** The cost of a call: CPU of this process, and the time until the answer, both in milliseconds. */
interface CallCost {
  readonly cpu: number;
  readonly wall: number;
}

/** Measures a call of a tool in Python, against a bare exchange of the same text with a Python process. */
export async function* benchPythonCalls(): AsyncGenerator<BenchFigure> {
  const ours = await withTool(measure);
  const bare = await withBareProcess(measure);
  for (const [figure, part] of [
    ["CPU of a call of a Python tool, against a bare exchange of lines", "cpu"],
    ["time until a Python tool's answer, against a bare exchange of lines", "wall"],
  ] as const) {
    const [value, baseline] = [ours[part], bare[part]];
    yield { bench: "python-calls", figure, value, unit: "ms", baseline, ratio: baseline / value };
  }
}

async function measure(call: () => Promise<string>): Promise<CallCost> {
  const [cpus, walls]: [number[], number[]] = [[], []];
  for (let round = 0; round <= rounds; round++) {
    const times: number[] = [];
    const cpu = await cpuMs(async () => {
      for (let index = 0; index < callCount; index++) {
        const start = performance.now();
        if ((await call()) !== text) throw new Error("the answer is another text");
        times.push(performance.now() - start);
      }
    });
    // The first round warms up.
    if (round > 0) cpus.push(cpu / callCount);
    if (round > 0) walls.push(median(times));
  }
  return { cpu: median(cpus), wall: median(walls) };
}

async function withTool<Result>(
  work: (call: () => Promise<string>) => Promise<Result>,
): Promise<Result> {
  const file = packageFile("bench/python-calls/echo_env.py");
  await using environment = await createPythonEnvironment({ environment: file });
  const task = environment.task("test", 0);
  const user = environment.user.open(task, { seed: 0 });
  const { signal } = new AbortController();
  await using world = await environment.open(task, { user, signal });
  const action = { type: "call", name: "echo", arguments: new Map([["text", text]]) } as const;
  return await work(async () => (await world.step(action, { signal })).observation);
}

async function withBareProcess<Result>(
  work: (call: () => Promise<string>) => Promise<Result>,
): Promise<Result> {
  const child = spawn("python3", ["-u", packageFile("bench/python-calls/bare_echo.py")], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const waiting = new Map<number, (answer: string) => void>();
  createInterface({ input: child.stdout }).on("line", (line) => {
    const { id, ok } = JSON.parse(line) as { id: number; ok: { text: string } };
    waiting.get(id)?.(ok.text);
    waiting.delete(id);
  });
  let next = 0;
  try {
    return await work(
      () =>
        new Promise((resolve) => {
          const id = next++;
          waiting.set(id, resolve);
          child.stdin.write(`${JSON.stringify({ id, text })}\n`);
        }),
    );
  } finally {
    child.stdin.end();
  }
}
