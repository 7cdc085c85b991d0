import { spawnSync } from "node:child_process";
import path from "node:path";
import type { PyValue } from "../../../packages/python-values/src/value.ts";
import type { Step, World } from "../environment.ts";
import { createPythonEnvironment, type PythonEnvironment } from "./create-python-environment.ts";

/** The reason why tests of Python environments are skipped. `undefined` if they run. */
export const noPython: string | undefined = findReason();

function findReason(): string | undefined {
  const { status } = spawnSync("python3", [
    "-c",
    "import sys; sys.exit(sys.version_info < (3, 10))",
  ]);
  return status === 0 ? undefined : "python3 of version 3.10 or newer is not here";
}

/** A Python environment under test, with what it prints and reports. */
export interface OpenedEnvironment extends AsyncDisposable {
  readonly environment: PythonEnvironment;
  readonly output: string[];
  readonly troubles: string[];
  /** Opens a world for the first task. */
  world(split?: string, index?: number): Promise<World>;
}

/** Opens an environment in Python. The interpreter is `python3`. */
export async function openPython(
  file: string,
  more: { readonly args?: Readonly<Record<string, unknown>>; readonly processes?: number } = {},
): Promise<OpenedEnvironment> {
  const output: string[] = [];
  const troubles: string[] = [];
  const environment = await createPythonEnvironment({
    environment: path.resolve(import.meta.dirname, file),
    python: "python3",
    onOutput: (text) => void output.push(text),
    onTrouble: (trouble) => void troubles.push(trouble),
    ...more,
  });
  return {
    environment,
    output,
    troubles,
    async world(split = "test", index = 0) {
      const task = environment.task(split, index);
      const user = environment.user.open(task, { seed: 1 });
      const { signal } = new AbortController();
      const world = await environment.open(task, { user, signal });
      await world.begin({ signal });
      return world;
    },
    [Symbol.asyncDispose]: async () => await environment[Symbol.asyncDispose](),
  };
}

/** Calls a tool of a world. */
export async function call(
  world: World,
  name: string,
  given: Readonly<Record<string, PyValue>> = {},
): Promise<Step> {
  const { signal } = new AbortController();
  return await world.step(
    { type: "call", name, arguments: new Map(Object.entries(given)) },
    { signal },
  );
}

/** Says a text to the user of a world. */
export async function say(world: World, content: string): Promise<Step> {
  const { signal } = new AbortController();
  return await world.step({ type: "say", content }, { signal });
}
