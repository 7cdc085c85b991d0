import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { call, noPython, openPython } from "./python-environment.fixture.ts";

const source = (more: string): string => `import os, random
from turnwright import Environment
env = Environment("leaves", tasks=[{"instruction": "Go." + ${more}}])

@env.tool
def leave() -> None:
    """End the process."""
    os._exit(1)

@env.score
def score(state):
    return 1
`;

/** Opens an environment, lets its process die, and returns the failure of the next episode. */
async function failureAfterDeath(first: string, change?: string): Promise<unknown> {
  const dir = await mkdtemp(path.join(tmpdir(), "turnwright-restart-"));
  onTestFinished(async () => await rm(dir, { recursive: true }));
  const file = path.join(dir, "leaves_env.py");
  await writeFile(file, first);
  await using opened = await openPython(file);
  const world = await opened.world();
  await expect(call(world, "leave")).rejects.toMatchObject({ code: "environment/unreachable" });
  await world[Symbol.asyncDispose]().then(undefined, () => undefined);
  if (change !== undefined) await writeFile(file, change);
  return await opened.world().then(
    () => undefined,
    (error: unknown) => error,
  );
}

test.skipIf(noPython !== undefined)(
  "a process that cannot be started again fails one episode, and says why",
  async () => {
    expect(await failureAfterDeath(source('""'), source('"Now."'))).toMatchObject({
      name: "RolloutError",
      code: "environment/unreachable",
      retryable: false,
      message: expect.stringContaining(
        "leaves_env.py changed after the run had loaded it",
      ) as string,
    });
    expect(await failureAfterDeath(source('""'), "name = 1 +")).toMatchObject({
      name: "RolloutError",
      code: "environment/unreachable",
      message: expect.stringMatching(/SyntaxError.*leaves_env\.py:1/) as string,
    });
    expect(await failureAfterDeath(source("str(random.random())"))).toMatchObject({
      name: "RolloutError",
      message: expect.stringContaining("its tasks are not those of the first process") as string,
    });
  },
);
